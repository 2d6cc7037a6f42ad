//! An entry on its way from the journal to where it is filed.

use std::sync::Arc;

use receipt::key::SigningKey;

use crate::database::timestamp;
use crate::record::{CallEnd, CallStart, Payload};
use crate::write::link::Link;

pub(crate) struct JournalRow {
    /// Its number in the chain's journal; 0 for what is filed without having been there.
    pub(crate) entry: i64,
    /// Absent for receipts that no call left, such as the terminal one.
    pub(crate) call: Option<Arc<CallStart>>,
    pub(crate) ended: Option<Arc<CallEnd>>,
    /// The entry that holds the start of the call that ends here.
    pub(crate) start: Option<i64>,
    pub(crate) link: Option<Link>,
    /// The receipt that a dead process promised for it.
    pub(crate) promise: Option<ReceiptPromise>,
}

/// The hash under which a receipt was committed, and when that was: its text is made again from the
/// record. An older program did not keep the time.
pub(crate) struct ReceiptPromise {
    pub(crate) hash: String,
    pub(crate) issued_at: Option<String>,
}

/// The start of a call, and the entry of the journal that holds it.
#[derive(Clone, Copy)]
pub(crate) struct StartEntry<'a> {
    pub(crate) entry: i64,
    pub(crate) call: &'a CallStart,
}

impl JournalRow {
    /// A receipt that no call left.
    pub(crate) fn of_link(link: Link) -> JournalRow {
        let link = Some(link);
        JournalRow { entry: 0, call: None, ended: None, start: None, link, promise: None }
    }

    /// About what it takes in memory.
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
