//! The process that an event from outside comes from, and the sessions and agents under which it may
//! count. A name belongs to the agent's process that used it first, as long as that
//! process lives: its children may use it, other processes may not. What the operating system says
//! about processes comes in as values.

use std::collections::HashMap;
use std::time::Duration;

/// Programs that start others and are no agents themselves.
const SHELLS: [&str; 12] =
    ["ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "mksh", "nu", "sh", "tcsh", "zsh"];

/// A younger process is a script that an agent started for one event; an agent has waited for its
/// model before its first.
const AGENT_AGE_MIN: Duration = Duration::from_secs(2);

/// Names with an owner. When they are used up, those of processes that have ended are forgotten.
const NAMES_MAX: usize = 8192;

/// Names that one process may own: its sessions and the agents within it.
const NAMES_OF_PROCESS_MAX: usize = 1024;

/// A process, which the time of its start, in ticks since boot, tells apart from later ones with the
/// same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessMark {
    pub pid: i32,
    pub started: u64,
}

/// A sender, or a process that started it.
#[derive(Clone, Debug)]
pub struct Ancestor {
    pub process: ProcessMark,
    /// The name of its program.
    pub program: String,
    pub age: Duration,
}

/// The sender of an event and the processes that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    processes: Vec<ProcessMark>,
    agent: Option<ProcessMark>,
}

impl Lineage {
    /// Finds the agent in a line of ancestors that begins with the sender: the nearest process that is
    /// neither a shell nor a script of the moment.
    pub fn new(line: &[Ancestor]) -> Lineage {
        let is_agent = |ancestor: &&Ancestor| {
            ancestor.age >= AGENT_AGE_MIN && !SHELLS.contains(&ancestor.program.as_str())
        };
        Lineage {
            processes: line.iter().map(|ancestor| ancestor.process).collect(),
            agent: line.iter().find(is_agent).map(|ancestor| ancestor.process),
        }
    }

    /// Returns the process of the agent, if there is one.
    pub fn agent(&self) -> Option<ProcessMark> {
        self.agent
    }
}

/// The names of sessions and agents that events have used, each with the process that owns it.
#[derive(Default)]
pub struct NameOwners {
    owners: HashMap<String, ProcessMark>,
}

impl NameOwners {
    /// Decides whether an event may count under these names, and gives those without an owner to
    /// its agent. An unknown sender may use only names without an owner, and gets none.
    pub fn admit(
        &mut self,
        names: &[String],
        sender: Option<&Lineage>,
        is_alive: impl Fn(ProcessMark) -> bool,
    ) -> bool {
        let is_of_sender =
            |owner: &ProcessMark| sender.is_some_and(|sender| sender.processes.contains(owner));
        let is_foreign = |name: &String| {
            self.owners.get(name).is_some_and(|owner| !is_of_sender(owner) && is_alive(*owner))
        };
        if names.iter().any(is_foreign) {
            return false;
        }
        if let Some(agent) = sender.and_then(Lineage::agent) {
            for name in names {
                if !self.owners.get(name).is_some_and(is_of_sender)
                    && self.has_room(agent, &is_alive)
                {
                    self.owners.insert(name.clone(), agent);
                }
            }
        }
        true
    }

    fn has_room(&mut self, agent: ProcessMark, is_alive: &impl Fn(ProcessMark) -> bool) -> bool {
        if self.owners.len() >= NAMES_MAX {
            self.owners.retain(|_, owner| is_alive(*owner));
        }
        let own = self.owners.values().filter(|owner| **owner == agent).count();
        self.owners.len() < NAMES_MAX && own < NAMES_OF_PROCESS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(pid: i32) -> ProcessMark {
        ProcessMark { pid, started: 1 }
    }

    /// Returns the lineage of `pid program seconds`, sender first.
    fn lineage(line: &[(i32, &str, u64)]) -> Lineage {
        let ancestor = |(pid, program, seconds): &(i32, &str, u64)| Ancestor {
            process: mark(*pid),
            program: (*program).to_owned(),
            age: Duration::from_secs(*seconds),
        };
        Lineage::new(&line.iter().map(ancestor).collect::<Vec<_>>())
    }

    const OUTSIDE: [(i32, &str, u64); 3] =
        [(20, "bash", 900), (10, "tmux", 999), (1, "init", 9999)];

    fn of_agent(agent: i32, below: &[(i32, &str, u64)]) -> Lineage {
        lineage(&[below, &[(agent, "claude", 60)], &OUTSIDE].concat())
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_agent_is_the_nearest_lasting_process_that_is_no_shell() {
        for (line, expected) in [
            (&[(3, "countersign", 0), (2, "sh", 0), (1, "claude", 60)][..], Some(1)),
            (&[(4, "countersign", 0), (3, "sh", 0), (2, "node", 1), (1, "claude", 60)], Some(1)),
            (&[(3, "countersign", 0), (2, "node", 60), (1, "bash", 99)], Some(2)),
            (&[(1, "python3", 60)], Some(1)),
            (&[(2, "python3", 0), (1, "bash", 99)], None),
            (&[], None),
        ] {
            assert_eq!(lineage(line).agent().map(|agent| agent.pid), expected, "{line:?}");
        }
    }

    #[test]
    fn a_name_belongs_to_the_first_agent_that_used_it_while_that_lives() {
        let mut owners = NameOwners::default();
        let victim = of_agent(100, &[(101, "countersign", 0), (102, "sh", 0)]);
        let session = names(&["session"]);
        assert!(owners.admit(&session, None, |_| true), "nobody owns it, and nobody gets it");
        assert!(owners.admit(&session, Some(&victim), |_| true));
        let hostile = |below: &[(i32, &str, u64)]| of_agent(200, below);
        for (case, sender, is_admitted) in [
            ("its next hook", of_agent(100, &[(103, "countersign", 0)]), true),
            (
                "through a wrapper",
                of_agent(100, &[(105, "countersign", 0), (104, "node", 0)]),
                true,
            ),
            ("an agent within it", of_agent(100, &[(106, "claude", 60)]), true),
            ("the process itself", of_agent(100, &[]), true),
            ("a hook of another agent", hostile(&[(201, "countersign", 0)]), false),
            ("a shell of another agent", hostile(&[(203, "python3", 0), (202, "bash", 9)]), false),
            ("a daemon", lineage(&[(204, "python3", 60), (1, "init", 9999)]), false),
            ("the terminal they share", lineage(&OUTSIDE), false),
        ] {
            assert_eq!(owners.admit(&session, Some(&sender), |_| true), is_admitted, "{case}");
        }
        assert!(!owners.admit(&session, None, |_| true), "an unknown sender");
        let later = Lineage { processes: vec![ProcessMark { pid: 100, started: 2 }], agent: None };
        assert!(!owners.admit(&session, Some(&later), |_| true), "another process with its id");
        let other = names(&["other"]);
        assert!(owners.admit(&other, Some(&hostile(&[])), |_| true), "a name of its own");
        let both = names(&["other", "session"]);
        assert!(!owners.admit(&both, Some(&hostile(&[])), |_| true), "one of two is foreign");
    }

    #[test]
    fn a_resumed_session_belongs_to_its_new_process() {
        let mut owners = NameOwners::default();
        let session = names(&["session"]);
        assert!(owners.admit(&session, Some(&of_agent(100, &[])), |_| true));
        let next = of_agent(300, &[]);
        assert!(!owners.admit(&session, Some(&next), |_| true));
        assert!(owners.admit(&session, Some(&next), |owner| owner != mark(100)));
        assert!(!owners.admit(&session, Some(&of_agent(100, &[])), |_| true));
    }

    #[test]
    fn a_flood_of_names_takes_nobodys_place() {
        let mut owners = NameOwners::default();
        let victim = of_agent(100, &[]);
        assert!(owners.admit(&names(&["session"]), Some(&victim), |_| true));
        for number in 0..NAMES_MAX {
            let hostile = of_agent(200 + i32::try_from(number % 50).unwrap(), &[]);
            assert!(owners.admit(&[format!("n{number}")], Some(&hostile), |_| true));
        }
        assert_eq!(owners.owners.len(), NAMES_MAX);
        assert!(!owners.admit(&names(&["session"]), Some(&of_agent(200, &[])), |_| true));
        let new = names(&["new"]);
        assert!(owners.admit(&new, Some(&victim), |_| true), "there is no room for its owner");
        assert!(owners.admit(&new, Some(&of_agent(200, &[])), |owner| owner == mark(100)));
        assert_eq!(owners.owners.len(), 2, "those of processes that ended are forgotten");
        let many: Vec<String> = (0..NAMES_MAX).map(|number| format!("m{number}")).collect();
        owners.admit(&many, Some(&victim), |_| true);
        assert_eq!(owners.owners.len(), 1 + NAMES_OF_PROCESS_MAX);
    }
}
