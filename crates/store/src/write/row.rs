//! An entry between the journal and the tables.

use std::sync::Arc;

use receipt::key::SigningKey;

use crate::database::timestamp;
use crate::record::{CallEnd, CallStart, Payload};
use crate::write::link::Link;

pub(crate) struct JournalRow {
    /// Its number in the chain's journal; 0 for a row that is filed without having been there.
    pub(crate) entry: i64,
    /// Absent for receipts that belong to no call, such as the terminal one.
    pub(crate) call: Option<Arc<CallStart>>,
    pub(crate) ended: Option<Arc<CallEnd>>,
    /// The entry that holds the start of the call that ends here.
    pub(crate) start: Option<i64>,
    pub(crate) link: Option<Link>,
    /// The receipt that a dead process promised for it.
    pub(crate) promise: Option<ReceiptPromise>,
}

/// The place, the hash and the time of a committed receipt, whose text is composed again from the
/// record.
pub(crate) struct ReceiptPromise {
    pub(crate) sequence: u64,
    pub(crate) hash: String,
    pub(crate) issued_at: String,
    /// The record is in the tables, and only the receipt is missing.
    pub(crate) is_recorded: bool,
}

/// The start of a call, and the entry of the journal that holds it.
#[derive(Clone, Copy)]
pub(crate) struct StartEntry<'a> {
    pub(crate) entry: i64,
    pub(crate) call: &'a CallStart,
}

impl JournalRow {
    /// Returns the row of a receipt that belongs to no call.
    pub(crate) fn of_link(link: Link) -> JournalRow {
        let link = Some(link);
        JournalRow { entry: 0, call: None, ended: None, start: None, link, promise: None }
    }

    /// Returns the approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        let kept = |payload: &Payload| payload.kept.as_ref().map_or(0, String::len);
        let body = self.link.as_ref().map_or(0, |link| link.body.text().len());
        body + self.call.as_ref().map_or(0, |call| kept(&call.arguments))
            + self.ended.as_ref().map_or(0, |ended| kept(&ended.response))
    }

    /// Signs the receipt, if the row has one.
    pub(crate) fn sign(&mut self, key: &SigningKey) {
        if let Some(link) = &mut self.link {
            link.signed = Some(link.body.sign(key, &timestamp::now()));
        }
    }
}
