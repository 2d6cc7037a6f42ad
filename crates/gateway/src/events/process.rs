//! Reads from `/proc` which processes started a sender, and whether a process runs. Elsewhere than on
//! Linux nothing is known.

use std::time::Duration;

use touch::lineage::{Ancestor, Lineage, ProcessMark};

/// Ancestors of a process that are looked at.
const ANCESTORS_MAX: usize = 64;

/// Ticks in `/proc`; the same on every architecture that Rust supports.
const TICKS_PER_SECOND: u64 = 100;

/// Returns a process with those that started it; `None` if it has ended. Blocks.
pub(super) fn lineage(pid: i32) -> Option<Lineage> {
    let uptime = uptime()?;
    let (mut line, mut next) = (Vec::new(), pid);
    while line.len() < ANCESTORS_MAX
        && let Some(stat) = Stat::of(next)
    {
        let started = Duration::from_millis(stat.started * 1000 / TICKS_PER_SECOND);
        let process = ProcessMark { pid: next, started: stat.started };
        let age = uptime.saturating_sub(started);
        line.push(Ancestor { process, program: stat.program, age });
        next = stat.parent;
    }
    (!line.is_empty()).then(|| Lineage::new(&line))
}

/// Reports whether a process runs. Blocks.
pub(super) fn is_alive(process: ProcessMark) -> bool {
    Stat::of(process.pid).is_some_and(|stat| stat.started == process.started && !stat.has_ended)
}

/// The part of `/proc/<pid>/stat` that matters here.
struct Stat {
    program: String,
    has_ended: bool,
    parent: i32,
    /// In ticks since boot.
    started: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Stat> {
        let text = (pid > 0).then(|| std::fs::read(format!("/proc/{pid}/stat")).ok())??;
        Stat::parse(&String::from_utf8_lossy(&text))
    }

    /// The name of the program is in parentheses, and may contain any character.
    fn parse(text: &str) -> Option<Stat> {
        let (before, rest) = text.rsplit_once(") ")?;
        let (_, program) = before.split_once('(')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Stat {
            program: program.to_owned(),
            has_ended: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

fn uptime() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_is_read_whatever_the_program_is_called() {
        let text = "42 (a) b (c) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 100 200";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.parent, stat.started, stat.has_ended), (7, 4711, false));
        assert_eq!(stat.program, "a) b (c");
        assert!(Stat::parse("42 (a) Z 7 1").is_none());
        assert!(Stat::parse("").is_none());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_runs_and_has_ancestors() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let started = Stat::of(pid).unwrap().started;
        assert!(is_alive(ProcessMark { pid, started }));
        assert!(!is_alive(ProcessMark { pid, started: started + 1 }));
        assert!(lineage(pid).is_some());
        assert!(lineage(0).is_none() && lineage(i32::MAX).is_none());
    }
}
