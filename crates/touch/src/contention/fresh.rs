//! A write that meets another agent's recent touch of the same resource, as it is recorded.

use super::touch::ContentionKind;
use crate::targets::Access;

/// One of the most recent touches of a resource. `agent` identifies the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshTouch<A, R> {
    pub agent: A,
    pub access: Access,
    pub at_us: i64,
    pub record: R,
}

/// The touch of another agent that a write met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshMeeting<A, R> {
    pub kind: ContentionKind,
    pub other: FreshTouch<A, R>,
    pub gap_us: i64,
}

/// Returns the worst meeting of a write, and of equally bad ones the closest. `recent` holds other
/// touches of the resource in any order, the writer's own among them; some may be a little later
/// than the write, because other processes record theirs at their own pace.
pub fn meeting<A: PartialEq + Copy, R: Copy>(
    write: &FreshTouch<A, R>,
    recent: &[FreshTouch<A, R>],
    window_us: i64,
) -> Option<FreshMeeting<A, R>> {
    if write.access != Access::Write {
        return None;
    }
    let gap = |touch: &FreshTouch<A, R>| write.at_us.abs_diff(touch.at_us);
    let window = window_us.unsigned_abs();
    let fresh = || recent.iter().filter(|touch| gap(touch) <= window);
    let own_read = fresh()
        .filter(|touch| touch.agent == write.agent && touch.access == Access::Read)
        .map(|touch| touch.at_us)
        .filter(|at_us| *at_us <= write.at_us)
        .max();
    let kind = |touch: &FreshTouch<A, R>| {
        let is_outdated = touch.access == Access::Write
            && touch.at_us <= write.at_us
            && own_read.is_some_and(|read| read < touch.at_us);
        if is_outdated {
            ContentionKind::StaleRead
        } else {
            ContentionKind::of(touch.access, write.access)
        }
    };
    let others = fresh().filter(|touch| touch.agent != write.agent);
    let worst = others.min_by_key(|touch| (kind(touch), gap(touch)))?;
    let gap_us = i64::try_from(gap(worst)).unwrap_or(i64::MAX);
    Some(FreshMeeting { kind: kind(worst), other: *worst, gap_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kind and the record that the last touch meets; `a r 3` is a read by a at 3.
    fn met(text: &str) -> Option<(&'static str, usize)> {
        let mut touches: Vec<FreshTouch<String, usize>> = Vec::new();
        for (record, touch) in text.split(", ").enumerate() {
            let parts: Vec<&str> = touch.split(' ').collect();
            let access = match parts[1] {
                "r" => Access::Read,
                "w" => Access::Write,
                _ => Access::Unknown,
            };
            let (agent, at_us) = (parts[0].to_owned(), parts[2].parse().unwrap());
            touches.push(FreshTouch { agent, access, at_us, record });
        }
        let touches: Vec<FreshTouch<&str, usize>> = touches
            .iter()
            .map(|touch| FreshTouch {
                agent: touch.agent.as_str(),
                access: touch.access,
                at_us: touch.at_us,
                record: touch.record,
            })
            .collect();
        let (write, recent) = touches.split_last().unwrap();
        meeting(write, recent, 10).map(|met| (met.kind.as_str(), met.other.record))
    }

    #[test]
    fn a_write_meets_the_worst_and_closest_touch_of_another_agent() {
        for (text, expected) in [
            ("a w 0", None),
            ("a w 0, a w 1", None),
            ("a w 0, b r 1", None),
            ("a r 0, b w 1", Some(("read-write", 0))),
            ("a w 0, b w 1", Some(("write-write", 0))),
            ("a u 0, b w 1", Some(("unknown", 0))),
            ("a w 0, b w 11", None),
            ("a w 0, c w 2, b w 3", Some(("write-write", 1))),
            ("a r 2, c w 0, b w 3", Some(("write-write", 1))),
            ("b r 0, a w 1, b w 2", Some(("stale-read", 1))),
            ("b r 0, a w 1, b r 2, b w 3", Some(("write-write", 1))),
            // recorded by another process a moment after the write
            ("a w 5, b w 4", Some(("write-write", 0))),
        ] {
            assert_eq!(met(text), expected, "{text}");
        }
    }
}
