//! The log lines of writes that met another agent's recent touch. Two agents that keep meeting at one
//! resource are logged once a minute.

use std::collections::HashMap;

use touch::targets::{Access, Target};

use crate::limits::{MEETING_LOG_EVERY, NAMES_MAX};
use crate::record::CallStart;
use crate::write::touching::MetTouch;

/// A meeting in words, until it is committed.
pub(crate) struct MeetingWords {
    agent: String,
    other: String,
    did: &'static str,
    kind: &'static str,
    target: (i64, Option<Target>),
    at_us: i64,
    gap_us: i64,
}

impl MeetingWords {
    /// `position` is that of the resource among those of the call.
    pub(crate) fn new(call: &CallStart, position: usize, met: &MetTouch) -> MeetingWords {
        let named = call.touches.all().get(position).map(|touched| touched.target.clone());
        MeetingWords {
            agent: call.agent.name.clone(),
            other: met.meeting.other.agent.clone(),
            did: match met.meeting.other.access {
                Access::Read => "read",
                Access::Write => "wrote",
                Access::Unknown => "read or wrote",
            },
            kind: met.meeting.kind.as_str(),
            target: (met.target, named),
            at_us: call.at.as_microsecond(),
            gap_us: met.meeting.gap_us,
        }
    }
}

/// The meetings that were logged recently.
#[derive(Default)]
pub(crate) struct MeetingLog {
    told: HashMap<(String, String, i64), i64>,
}

impl MeetingLog {
    pub(crate) fn tell(&mut self, met: Vec<MeetingWords>) {
        for words in met {
            if self.is_new(&words) {
                let MeetingWords { agent, other, did, kind, target: (_, target), .. } = &words;
                let system = target.as_ref().map_or("-", Target::system);
                let resource = target.as_ref().map_or("-", Target::resource);
                let gap_ms = words.gap_us / 1000;
                tracing::warn!(
                    %agent, %other, kind, system, resource, gap_ms,
                    "contention: an agent wrote a resource that another agent {did} shortly before"
                );
            }
        }
    }

    fn is_new(&mut self, words: &MeetingWords) -> bool {
        let key = (words.agent.clone(), words.other.clone(), words.target.0);
        let pause_us = i64::try_from(MEETING_LOG_EVERY.as_micros()).unwrap_or(i64::MAX);
        let last = self.told.get(&key).copied();
        if last.is_some_and(|last| words.at_us.abs_diff(last) < pause_us.unsigned_abs()) {
            return false;
        }
        if self.told.len() == NAMES_MAX {
            self.told.clear();
        }
        self.told.insert(key, words.at_us);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meeting_that_repeats_is_logged_once_a_minute() {
        let mut log = MeetingLog::default();
        let words = |other: &str, second: i64| MeetingWords {
            agent: "a".to_owned(),
            other: other.to_owned(),
            did: "wrote",
            kind: "write-write",
            target: (1, None),
            at_us: second * 1_000_000,
            gap_us: 0,
        };
        let found: Vec<bool> = [("b", 0), ("b", 1), ("c", 1), ("b", 60), ("b", 61)]
            .map(|(other, second)| log.is_new(&words(other, second)))
            .to_vec();
        assert_eq!(found, [true, false, true, true, false]);
    }
}
