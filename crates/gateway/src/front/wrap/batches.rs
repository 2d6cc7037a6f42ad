//! Batches of a client of 2025-03-26. Their messages pass one by one, so that each call is checked
//! and recorded, and the responses come back together, in one array.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mcp::Id;

use crate::limits::WRAP_CALLS_MAX;

#[derive(Default)]
pub(super) struct Batches(Mutex<OpenBatches>);

#[derive(Default)]
struct OpenBatches {
    /// The batch of each request that waits for its response.
    waiting: HashMap<Id, u64>,
    /// The responses so far.
    ready: HashMap<u64, Vec<Bytes>>,
    opened: u64,
}

impl Batches {
    /// Opens a batch with these requests, and responses that are known at once. Returns its line if
    /// nothing is left to wait for, or a sentence saying why it cannot be taken.
    pub(super) fn open(
        &self,
        requests: &[Id],
        known: Vec<Bytes>,
    ) -> Result<Option<Bytes>, &'static str> {
        let mut batches = self.lock();
        if batches.waiting.len() + requests.len() > WRAP_CALLS_MAX {
            return Err("too many requests are running, try again later");
        }
        let number = batches.opened;
        batches.opened += 1;
        for (place, id) in requests.iter().enumerate() {
            if batches.waiting.contains_key(id) {
                for id in &requests[..place] {
                    batches.waiting.remove(id);
                }
                return Err("a request with this id is still running");
            }
            batches.waiting.insert(id.clone(), number);
        }
        batches.ready.insert(number, known);
        Ok(batches.finished(number))
    }

    /// Takes a response line; returns what is to be sent to the client now.
    pub(super) fn take(&self, id: &Id, line: Bytes) -> Option<Bytes> {
        self.end(id, Some(line))
    }

    /// Notes that a request gets no response, because it was cancelled.
    pub(super) fn leave_out(&self, id: &Id) -> Option<Bytes> {
        self.end(id, None)
    }

    fn end(&self, id: &Id, line: Option<Bytes>) -> Option<Bytes> {
        let mut batches = self.lock();
        let Some(number) = batches.waiting.remove(id) else {
            return line;
        };
        batches.ready.entry(number).or_default().extend(line);
        batches.finished(number)
    }

    fn lock(&self) -> MutexGuard<'_, OpenBatches> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenBatches {
    /// Returns the array of a batch whose requests have all ended; none if it has no responses.
    fn finished(&mut self, number: u64) -> Option<Bytes> {
        if self.waiting.values().any(|batch| *batch == number) {
            return None;
        }
        let lines = self.ready.remove(&number).filter(|lines| !lines.is_empty())?;
        Some([b"[".as_slice(), &lines.join(&b","[..]), b"]"].concat().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn responses_are_collected_until_the_last() {
        let batches = Batches::default();
        let ids = [Id::from(1), Id::from("b"), Id::from(3)];
        assert_eq!(batches.open(&ids, vec![line("bad")]), Ok(None));
        assert!(batches.open(&[Id::from(1)], Vec::new()).is_err(), "the id is in use");
        assert_eq!(batches.take(&Id::from(9), line("other")), Some(line("other")));
        assert_eq!(batches.take(&Id::from(3), line("c")), None);
        assert_eq!(batches.leave_out(&Id::from("b")), None);
        assert_eq!(batches.take(&Id::from(1), line("a")), Some(line("[bad,c,a]")));
        assert_eq!(batches.take(&Id::from(1), line("again")), Some(line("again")));
        assert_eq!(batches.open(&[], vec![line("x")]), Ok(Some(line("[x]"))));
        assert_eq!(batches.open(&[], Vec::new()), Ok(None), "only notifications");
    }
}
