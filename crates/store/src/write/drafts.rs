//! Entries before they are committed: those written now, those that briefly wait for their end, and
//! those that wait until the file can be written.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

use domain::config::OnFailure;
use touch::targets::Touches;

use crate::error::StoreError;
use crate::limits::HOLD;
use crate::record::{CallEnd, CallStart, Entry};
use crate::write::commit::Safety;
use crate::write::draft::{Draft, DraftOutcome, DraftPart};
use crate::write::message::{CommitReply, Submission};
use crate::write::row::{JournalRow, StartEntry};

#[derive(Default)]
pub(crate) struct Drafts {
    /// Starts that are written with their ends, if those come soon.
    held: HashSet<CallById>,
    /// The held starts in order of time, including some whose ends have come.
    order: VecDeque<HeldStart>,
    /// Running calls, with the journal entry that holds their start.
    running: HashMap<CallById, i64>,
    /// Ends of calls whose start is still being written.
    early: Vec<Submission>,
    /// Drafts that could not be written yet, oldest first.
    queue: VecDeque<Draft>,
}

/// A held start, and the time since when.
struct HeldStart {
    since: Instant,
    call: Arc<CallStart>,
}

/// A call, hashed and compared by its id.
struct CallById(Arc<CallStart>);

impl Borrow<str> for CallById {
    fn borrow(&self) -> &str {
        &self.0.id
    }
}

impl Hash for CallById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

/// The result of a draft that its caller has yet to get.
pub(crate) struct DueReply {
    reply: CommitReply,
    result: Result<Safety, StoreError>,
}

impl DueReply {
    pub(crate) fn send(self) {
        let _ = self.reply.send(self.result);
    }
}

impl PartialEq for CallById {
    fn eq(&self, other: &CallById) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for CallById {}

impl Drafts {
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Returns the time at which the next held start is due without its end.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.order.front().map(|start| start.since + HOLD)
    }

    /// Takes the entries that came too early to be written with the last drafts.
    pub(crate) fn early(&mut self) -> Vec<Submission> {
        std::mem::take(&mut self.early)
    }

    /// Makes drafts of the entries to write now, after those that could not be written before.
    pub(crate) fn sort(
        &mut self,
        submissions: Vec<Submission>,
        urgent: bool,
        now: Instant,
    ) -> Vec<Draft> {
        let mut drafts: Vec<Draft> = self.queue.drain(..).collect();
        for Submission { entry, reply } in submissions {
            match entry {
                Entry::Started(started) if started.changes_things() => {
                    drafts.push(Draft { call: Arc::from(started), part: DraftPart::Start, reply });
                }
                Entry::Started(started) => self.hold(Arc::from(started), now),
                Entry::Ended(ended) => {
                    if let Some(draft) = self.end(&drafts, ended, reply) {
                        drafts.push(draft);
                    }
                }
                Entry::Whole(started, ended) => {
                    let (call, part) = (Arc::from(started), DraftPart::Whole(Arc::from(ended)));
                    drafts.push(Draft { call, part, reply });
                }
            }
        }
        while let Some(call) = self.next_due(urgent, now) {
            drafts.push(Draft { call, part: DraftPart::Start, reply: None });
        }
        drafts
    }

    fn hold(&mut self, call: Arc<CallStart>, now: Instant) {
        self.order.push_back(HeldStart { since: now, call: call.clone() });
        self.held.insert(CallById(call));
    }

    /// Returns the next start that has waited long enough for its end.
    fn next_due(&mut self, urgent: bool, now: Instant) -> Option<Arc<CallStart>> {
        loop {
            let HeldStart { since, call } = self.order.front()?;
            let is_held = self.held.contains(&*call.id);
            if is_held && !urgent && now.duration_since(*since) < HOLD {
                return None;
            }
            let HeldStart { call, .. } = self.order.pop_front()?;
            if is_held {
                self.held.remove(&*call.id);
                return Some(call);
            }
        }
    }

    fn end(
        &mut self,
        drafts: &[Draft],
        mut ended: Box<CallEnd>,
        reply: Option<CommitReply>,
    ) -> Option<Draft> {
        if let Some(CallById(call)) = self.held.take(&*ended.id) {
            let call = joined(call, &mut ended);
            return Some(Draft { call, part: DraftPart::Whole(Arc::from(ended)), reply });
        }
        if let Some((CallById(call), start)) = self.running.remove_entry(&*ended.id) {
            let call = joined(call, &mut ended);
            return Some(Draft { call, part: DraftPart::End(start, Arc::from(ended)), reply });
        }
        if drafts.iter().any(|draft| draft.starts(&ended.id)) {
            self.early.push(Submission { entry: Entry::Ended(ended), reply });
            return None;
        }
        if let Some(reply) = reply {
            let unknown = StoreError::Write(format!("call {} was never started", ended.id));
            let _ = reply.send(Err(unknown));
        }
        None
    }

    /// Marks the drafts as safe in these rows.
    pub(crate) fn committed(&mut self, drafts: Vec<Draft>, rows: &[JournalRow]) {
        for (mut draft, row) in drafts.into_iter().zip(rows) {
            draft.answer(Ok(Safety::Committed));
            if let DraftPart::Start = draft.part {
                self.running.insert(CallById(draft.call), row.entry);
            }
        }
    }

    /// Refuses, holds or queues each draft, since the file cannot be written. Returns the replies,
    /// to be sent once the length of the queue is published: a caller's next call depends on it.
    pub(crate) fn failed(
        &mut self,
        drafts: Vec<Draft>,
        error: &StoreError,
        policy: OnFailure,
        now: Instant,
    ) -> Vec<DueReply> {
        let mut replies = Vec::new();
        for mut draft in drafts {
            let outcome = draft.outcome_on_failure(self.queue.len(), policy);
            let reply = draft.reply.take();
            let result = match outcome {
                DraftOutcome::Queued => Ok(Safety::Queued),
                DraftOutcome::Refused | DraftOutcome::QueuedWithError => Err(error.clone()),
                DraftOutcome::Held => {
                    self.hold(draft.call, now);
                    continue;
                }
            };
            replies.extend(reply.map(|reply| DueReply { reply, result }));
            if outcome != DraftOutcome::Refused {
                self.queue.push_back(draft);
            }
        }
        replies
    }

    /// Returns calls whose start is committed and whose end is not.
    pub(crate) fn running(&self) -> impl Iterator<Item = StartEntry<'_>> {
        self.running.iter().map(|(CallById(call), entry)| StartEntry { entry: *entry, call })
    }

    /// Ends running calls as interrupted when the process ends.
    pub(crate) fn interrupt(&mut self) -> Vec<Draft> {
        let mut drafts: Vec<Draft> = self.queue.drain(..).collect();
        let held = self.order.drain(..).filter(|start| self.held.contains(&*start.call.id));
        for HeldStart { call, .. } in held {
            let ended = Arc::new(CallEnd::interrupted(&call.id));
            drafts.push(Draft { call, part: DraftPart::Whole(ended), reply: None });
        }
        self.held.clear();
        let mut running: Vec<_> = self.running.drain().collect();
        running.sort_by_key(|(CallById(call), _)| call.at);
        for (CallById(call), start) in running {
            let ended = Arc::new(CallEnd::interrupted(&call.id));
            drafts.push(Draft { call, part: DraftPart::End(start, ended), reply: None });
        }
        drafts
    }
}
/// Returns the start of a call as its end leaves it. An end that names the same resources again, or
/// says the same of them, need not keep that.
fn joined(call: Arc<CallStart>, ended: &mut CallEnd) -> Arc<CallStart> {
    if ended.touches.is_said_by(&call.touches) {
        ended.touches = Touches::default();
    }
    ended.warnings.retain(|warning| !call.warnings.contains(warning));
    call.ended(ended)
}
