//! An edge told in sentences, with times.

use jiff::{SignedDuration, Timestamp};

use super::graph::Edge;
use super::touch::ContentionKind;
use crate::targets::Access;

/// One of the calls behind an edge.
#[derive(Clone, Debug)]
pub struct StoryTouch {
    pub agent: String,
    pub access: Access,
    pub at: Timestamp,
    /// `server:tool`
    pub tool: String,
    pub resource: String,
}

impl<R> Edge<R> {
    /// Tells how the agents met, from the touches of the closest meeting in order.
    pub fn story(&self, touches: &[StoryTouch], window: SignedDuration) -> Vec<String> {
        let mut story = vec![self.opening(window)];
        let mut before: Option<&StoryTouch> = None;
        for touch in touches {
            let did = deed(touch.access);
            let StoryTouch { agent, tool, resource, .. } = touch;
            story.push(match before {
                None => {
                    format!("At {}, {agent} {did} '{resource}' ({tool}).", moment(touch.at))
                }
                Some(last) => {
                    let what = if last.resource == *resource {
                        "it".to_owned()
                    } else {
                        format!("'{resource}'")
                    };
                    let gap = span(touch.at.duration_since(last.at));
                    format!("{gap} later, at {}, {agent} {did} {what} ({tool}).", moment(touch.at))
                }
            });
            before = Some(touch);
        }
        story.extend(self.meaning(touches));
        story
    }

    fn opening(&self, window: SignedDuration) -> String {
        let Edge { from, to, system, .. } = self;
        let times =
            if self.meetings == 1 { "once".to_owned() } else { format!("{} times", self.meetings) };
        let things = match (self.resources_total, self.containers.is_empty()) {
            (1, true) => format!("one resource of '{system}'"),
            (count, true) => format!("{count} resources of '{system}'"),
            (1, false) => format!("a container of '{system}' and something in it"),
            (count, false) => format!("containers of '{system}' and {count} things in them"),
        };
        let [first, last] = [self.first, self.last]
            .map(|at_us| Timestamp::from_microsecond(at_us).map(moment).unwrap_or_default());
        let when =
            if first == last { format!("at {first}") } else { format!("from {first} to {last}") };
        let closest = span(SignedDuration::from_millis(self.smallest_gap_ms));
        format!(
            "{from} and {to} touched {things} within {} of each other {times}, {when}; the closest \
             were {closest} apart.",
            span(window)
        )
    }

    /// Says what the meeting may have led to.
    fn meaning(&self, touches: &[StoryTouch]) -> Option<String> {
        let (first, last) = (touches.first()?, touches.last()?);
        let Edge { from, to, .. } = self;
        Some(match self.kind {
            ContentionKind::StaleRead => format!(
                "{from} did not read it again before it wrote, so it may have worked from an \
                 outdated version and overwritten what {to} had written."
            ),
            ContentionKind::WriteWrite => format!(
                "Both wrote, so {} may have overwritten what {} had written.",
                last.agent, first.agent
            ),
            ContentionKind::ReadWrite if first.access == Access::Read => {
                format!("What {} had read may be outdated since then.", first.agent)
            }
            ContentionKind::ReadWrite => {
                format!("{} read what {} had just written.", last.agent, first.agent)
            }
            ContentionKind::Unknown => {
                "Neither the tool's annotations, nor the declared intent, nor the tool's name show \
                 whether such a call reads or writes, so there may have been no conflict."
                    .to_owned()
            }
            ContentionKind::ReadRead => "Both only read, so there was no conflict.".to_owned(),
        })
    }
}

fn deed(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "wrote",
        Access::Unknown => "read or wrote",
    }
}

fn moment(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// Formats a duration for people.
fn span(duration: SignedDuration) -> String {
    let ms = duration.as_millis().max(0);
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{seconds}.{} s", ms % 1_000 / 100),
        60_000..3_600_000 if seconds == 0 => format!("{minutes} min"),
        60_000..3_600_000 => format!("{minutes} min {seconds} s"),
        _ if minutes == 0 => format!("{hours} h"),
        _ => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::edge_id::EdgeId;

    fn edge(kind: ContentionKind) -> Edge<String> {
        Edge {
            id: EdgeId::of(["a#1", "b#2"], kind, "fs", false),
            from: "a#1".to_owned(),
            to: "b#2".to_owned(),
            kind,
            system: "fs".to_owned(),
            resources: vec!["/x".into()],
            containers: vec![],
            resources_total: 1,
            meetings: 1,
            first: 4_200_000,
            last: 4_200_000,
            smallest_gap_ms: 4_200,
            records: vec![],
        }
    }

    fn touch(agent: &str, access: Access, ms: i64) -> StoryTouch {
        StoryTouch {
            agent: agent.to_owned(),
            access,
            at: Timestamp::from_millisecond(ms).unwrap(),
            tool: "files:edit".to_owned(),
            resource: "/x".to_owned(),
        }
    }

    #[test]
    fn an_edge_is_told_in_sentences() {
        let touches = [
            touch("a#1", Access::Read, 0),
            touch("b#2", Access::Write, 4_200),
            touch("a#1", Access::Write, 64_200),
        ];
        let hour = SignedDuration::from_hours(1);
        assert_eq!(
            edge(ContentionKind::StaleRead).story(&touches, hour),
            [
                "a#1 and b#2 touched one resource of 'fs' within 1 h of each other once, at \
                 1970-01-01T00:00:04.200Z; the closest were 4.2 s apart.",
                "At 1970-01-01T00:00:00.000Z, a#1 read '/x' (files:edit).",
                "4.2 s later, at 1970-01-01T00:00:04.200Z, b#2 wrote it (files:edit).",
                "1 min later, at 1970-01-01T00:01:04.200Z, a#1 wrote it (files:edit).",
                "a#1 did not read it again before it wrote, so it may have worked from an outdated \
                 version and overwritten what b#2 had written.",
            ]
        );
        for (kind, first, second, expected) in [
            (ContentionKind::WriteWrite, Access::Write, Access::Write, "may have overwritten"),
            (ContentionKind::ReadWrite, Access::Read, Access::Write, "may be outdated"),
            (ContentionKind::ReadWrite, Access::Write, Access::Read, "b#2 read what a#1"),
            (ContentionKind::Unknown, Access::Unknown, Access::Write, "may have been no conflict"),
            (ContentionKind::ReadRead, Access::Read, Access::Read, "no conflict"),
        ] {
            let story = edge(kind).story(&[touch("a#1", first, 0), touch("b#2", second, 10)], hour);
            assert!(story.last().unwrap().contains(expected), "{story:?}");
        }
        assert_eq!(edge(ContentionKind::WriteWrite).story(&[], hour).len(), 1);
    }
}
