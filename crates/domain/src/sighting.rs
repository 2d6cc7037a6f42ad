//! One call, seen from several places: by the gate or `wrap`, and by the hook of the program that made
//! it, once before and once after. Records with one tool-use id are joined, so that the call counts
//! once.
//!
//! A client chooses the tool-use id, so an id alone proves nothing: the rules here never let a record
//! of one agent hide what another agent touched. A record loses its touches only if another one, of
//! the same tool at the same time, has them all. If two agents use one id at the gate, it joins
//! nothing. And what a program does with its own tools cannot have passed the gate.

use crate::exposed::{exposed_name, hashed_name};
use touch::targets::Access;

/// The longest time between the end of a call at the gate and the hook that reports it. The program
/// starts the hook at once.
const REPORT_AFTER_US: i64 = 10_000_000;

/// One record of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The id of the record.
    pub id: String,
    pub observer: Observer,
    pub stage: Stage,
    pub agent: String,
    pub client: String,
    pub session: Option<String>,
    pub server: String,
    pub tool: String,
    /// The gate's tool that was called, on interfaces with an intent.
    pub variant: Option<String>,
    pub at_us: i64,
    /// The numbers of the touched resources.
    pub touched: Vec<(i64, Access)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observer {
    /// The gate itself, or `wrap`.
    Gate,
    /// The program that made the call, through an event.
    Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// An event before the call.
    Announced,
    /// A call at the gate that has not ended.
    Running,
    /// An event after the call, or a call at the gate, with the time of its end.
    Ended(i64),
}

impl Sighting {
    /// Returns the gate's record of the call that this event is about.
    pub fn own_call<'a>(
        &self,
        others: impl Iterator<Item = &'a Sighting> + Clone,
    ) -> Option<&'a Sighting> {
        let own = others.filter(|other| other.observer == Observer::Gate);
        if self.observer == Observer::Gate || is_contested(own.clone()) {
            return None;
        }
        own.into_iter().find(|own| self.is_of(own))
    }

    /// Reports whether an event is about a call at the gate.
    fn is_of(&self, own: &Sighting) -> bool {
        // A server's name stands in place of the client's unless the tool is the program's own.
        let is_of_server = self.server != self.client;
        let is_at_the_time = match (self.stage, own.stage) {
            (Stage::Announced, _) => self.at_us <= own.at_us,
            (Stage::Running | Stage::Ended(_), Stage::Ended(ended_us)) => {
                own.at_us <= self.at_us && self.at_us.saturating_sub(ended_us) <= REPORT_AFTER_US
            }
            (Stage::Running | Stage::Ended(_), Stage::Announced | Stage::Running) => false,
        };
        is_of_server && is_at_the_time && self.is_tool_of(own) && own.covers(self)
    }

    /// Reports whether the program knows the tool of the gate's record under this name.
    fn is_tool_of(&self, own: &Sighting) -> bool {
        let name = self.tool.as_str();
        own.tool == name
            || own.variant.as_deref() == Some(name)
            || exposed_name(&own.server, &own.tool) == name
            || hashed_name(&own.server, &own.tool) == name
    }

    /// Reports whether this record has every touch of another one, and each write as a write.
    fn covers(&self, other: &Sighting) -> bool {
        other.touched.iter().all(|(target, access)| {
            self.touched.iter().any(|(own, own_access)| {
                own == target && (*own_access == Access::Write || *access != Access::Write)
            })
        })
    }

    /// Reports whether this event ends a call that another event announced.
    pub fn ends(&self, announced: &Sighting) -> bool {
        let is_pair = self.observer == Observer::Program
            && announced.observer == Observer::Program
            && matches!(self.stage, Stage::Ended(_))
            && announced.stage == Stage::Announced;
        is_pair
            && announced.at_us <= self.at_us
            && (&self.agent, &self.session) == (&announced.agent, &announced.session)
            && (&self.server, &self.tool) == (&announced.server, &announced.tool)
    }

    /// Reports whether the event before a call adds nothing to this one after it.
    pub fn stands_for(&self, announced: &Sighting) -> bool {
        self.ends(announced) && self.covers(announced)
    }
}

/// Reports whether several agents used one id at the gate: then its owner is unknown.
pub fn is_contested<'a>(others: impl Iterator<Item = &'a Sighting>) -> bool {
    let mut agents = others.filter(|other| other.observer == Observer::Gate).map(|own| &own.agent);
    let first = agents.next();
    agents.any(|agent| Some(agent) != first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Sighting {
        Sighting {
            id: "own".to_owned(),
            observer: Observer::Gate,
            stage: Stage::Ended(20),
            agent: "claude-code#mcp".to_owned(),
            client: "claude-code".to_owned(),
            session: Some("mcp".to_owned()),
            server: "files".to_owned(),
            tool: "write_file".to_owned(),
            variant: Some("call_tool_write".to_owned()),
            at_us: 10,
            touched: vec![(1, Access::Write), (2, Access::Read)],
        }
    }

    fn event(stage: Stage, at_us: i64) -> Sighting {
        Sighting {
            id: "event".to_owned(),
            observer: Observer::Program,
            stage,
            agent: "claude-code#session".to_owned(),
            session: Some("session".to_owned()),
            variant: None,
            at_us,
            touched: vec![(1, Access::Write)],
            ..own()
        }
    }

    fn is_joined(event: &Sighting, own: &[Sighting]) -> bool {
        event.own_call(own.iter()).is_some()
    }

    #[test]
    fn an_event_is_joined_with_the_gates_record_of_the_same_call() {
        let (before, after) = (event(Stage::Announced, 5), event(Stage::Ended(21), 21));
        for event in [&before, &after] {
            assert!(is_joined(event, &[own()]));
            for name in ["call_tool_write", "files__write_file"] {
                let named = Sighting { tool: name.to_owned(), ..event.clone() };
                assert!(is_joined(&named, &[own()]), "{name}");
            }
            let quiet = Sighting { touched: vec![], ..event.clone() };
            assert!(is_joined(&quiet, &[own()]));
        }
        let running = Sighting { stage: Stage::Running, ..own() };
        assert!(is_joined(&before, std::slice::from_ref(&running)));
        assert!(!is_joined(&after, &[running]), "it has not ended");
    }

    #[test]
    fn a_foreign_id_hides_no_touch_of_another_agent() {
        let after = event(Stage::Ended(21), 21);
        let cases = [
            ("another resource", Sighting { touched: vec![(9, Access::Write)], ..after.clone() }),
            (
                "a write where the gate saw a read",
                Sighting { touched: vec![(2, Access::Write)], ..after.clone() },
            ),
            ("another tool", Sighting { tool: "delete_file".to_owned(), ..after.clone() }),
            (
                "a tool of the program itself",
                Sighting { server: "claude-code".to_owned(), ..after.clone() },
            ),
            ("long after the call", event(Stage::Ended(30_000_000), 30_000_000)),
            ("before the call", event(Stage::Ended(9), 9)),
            ("announced after the call had begun", event(Stage::Announced, 11)),
        ];
        for (case, event) in &cases {
            assert!(!is_joined(event, &[own()]), "{case}");
        }
        let stranger = Sighting { agent: "other#1".to_owned(), ..own() };
        assert!(!is_joined(&after, &[own(), stranger]), "two agents use the id");
        assert!(is_joined(&after, &[own(), own()]), "one agent used it twice");
        assert!(!is_joined(&own(), &[own()]), "a record of the gate is never joined");
    }

    #[test]
    fn an_announced_call_ends_with_the_event_after_it() {
        let (before, after) = (event(Stage::Announced, 5), event(Stage::Ended(21), 21));
        assert!(after.ends(&before) && after.stands_for(&before));
        assert!(!before.ends(&after));
        assert!(!event(Stage::Ended(4), 4).ends(&before), "earlier");
        let other = |change: fn(&mut Sighting)| {
            let mut other = after.clone();
            change(&mut other);
            other
        };
        for stranger in [
            other(|it| it.agent = "x".to_owned()),
            other(|it| it.session = None),
            other(|it| it.tool = "x".to_owned()),
            other(|it| it.server = "x".to_owned()),
        ] {
            assert!(!stranger.ends(&before), "{stranger:?}");
        }
        let elsewhere = Sighting { touched: vec![(9, Access::Write)], ..after };
        assert!(elsewhere.ends(&before) && !elsewhere.stands_for(&before));
    }
}
