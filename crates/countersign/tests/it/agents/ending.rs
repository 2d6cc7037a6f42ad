//! Runs that are ended by Ctrl+C, by a signal, by the step's time limit and by SIGKILL, during a call
//! and while their model is silent. No process is left, and the work in progress is recorded. Here a
//! scripted agent and Codex, which is quick to start, are ended; in the long run all real programs.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::foreign;
use testkit::model::Turn;
use testkit::program::{run, stderr};
use testkit::run::is_long_or_skipped;
use testkit::wait::eventually_within;
use tokio::process::Child;

use super::ours;
use super::stage::{PATIENCE, Stage};
use crate::ledger::records_when;

/// Five seconds, twice, for programs that do not end on request, plus time for a busy machine.
const SOON: Duration = Duration::from_secs(25);

/// The ways to end a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Interrupt,
    Terminate,
    Hangup,
    Kill,
    TimeOut,
}

impl End {
    const ALL: [End; 5] = [End::Interrupt, End::Terminate, End::Hangup, End::Kill, End::TimeOut];

    fn signal(self) -> Option<Signal> {
        match self {
            End::Interrupt => Some(Signal::INT),
            End::Terminate => Some(Signal::TERM),
            End::Hangup => Some(Signal::HUP),
            End::Kill => Some(Signal::KILL),
            End::TimeOut => None,
        }
    }

    /// Returns the exit code, and the recorded status of the run, its steps and the open call.
    fn leaves(self) -> (Option<i32>, &'static str, &'static str, &'static str) {
        match self {
            End::Interrupt | End::Terminate | End::Hangup => {
                (Some(130), "cancelled", "cancelled", "unknown")
            }
            End::Kill => (None, "interrupted", "interrupted", "interrupted"),
            End::TimeOut => (Some(0), "success", "timed_out", "unknown"),
        }
    }
}

/// Two agents at once: one has made a call to Bash, the other gets no response from its model.
struct Busy {
    stage: Stage,
    silent: Stage,
    child: Child,
    /// Everything that the run has started, by process and by group.
    family: Family,
}

/// The agents of a run that is to be ended.
#[derive(Clone, Copy, Debug)]
enum Agents {
    Scripted,
    /// A real program in a call, and a scripted one.
    Real(&'static str),
    /// Two real programs.
    Both(&'static str),
}

impl Agents {
    async fn stages(self) -> [Stage; 2] {
        let sleep = [ours("Bash", json!({"command": "echo begun > begun.txt; sleep 1000"}))];
        let silent = [Turn::Stall];
        match self {
            Agents::Scripted => [Stage::scripted(sleep).await, Stage::scripted(silent).await],
            Agents::Real(provider) => {
                [Stage::new(provider, sleep).await, Stage::scripted(silent).await]
            }
            Agents::Both(provider) => {
                [Stage::new(provider, sleep).await, Stage::new(provider, silent).await]
            }
        }
    }

    /// Returns a time in which the programs can begin their work on a busy machine.
    fn time(self) -> &'static str {
        match self {
            Agents::Both("gemini" | "opencode") => "60s",
            Agents::Scripted | Agents::Real(_) | Agents::Both(_) => "20s",
        }
    }
}

async fn busy(agents: Agents, timeout: &str) -> Busy {
    let [stage, silent] = agents.stages().await;
    let steps = [&stage, &silent].map(|stage| {
        let mut step = stage.step(&json!({"enable": true}));
        step["timeout"] = json!(timeout);
        step
    });
    // One that was too slow does not end the other.
    let both = json!({"type": "parallel", "parallel": ["a", "b"], "strategy": "best_effort",
                      "on_success": "done"});
    let [a, b] = steps;
    let flow = stage.flow_of(json!({"initial": "both", "both": both, "a": a, "b": b}));
    let child = stage.command(&flow, &stage.patient_gate()).spawn().unwrap();
    let begun = stage.workspace().join("begun.txt");
    eventually_within(PATIENCE, || async {
        (begun.exists() && !silent.model.turns().is_empty()).then_some(())
    })
    .await;
    let family = Family::of(pid(&child));
    assert!(family.pids.len() > 5, "run, two supervisors, two agents, Bash: {family:?}");
    Busy { stage, silent, child, family }
}

pub(super) fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().expect("it runs").cast_signed()).unwrap()
}

/// Processes and their groups.
#[derive(Debug, Default)]
struct Family {
    pids: BTreeSet<i32>,
    groups: BTreeSet<i32>,
}

impl Family {
    /// Returns a process and all its descendants.
    fn of(head: Pid) -> Family {
        let own_group = rustix::process::getpgrp().as_raw_nonzero().get();
        let all = processes();
        let mut family = Family::default();
        family.pids.insert(head.as_raw_nonzero().get());
        loop {
            let known = family.pids.len();
            for (pid, parent, group) in &all {
                if family.pids.contains(parent) {
                    family.pids.insert(*pid);
                    // A process that has just been forked is still in the group of the tests.
                    if *group != own_group {
                        family.groups.insert(*group);
                    }
                }
            }
            if family.pids.len() == known {
                return family;
            }
        }
    }

    fn left(&self) -> Vec<i32> {
        let is_one = |(pid, _, group): &(i32, i32, i32)| {
            self.pids.contains(pid) || self.groups.contains(group)
        };
        processes().iter().filter(|it| is_one(it)).map(|(pid, _, _)| *pid).collect()
    }
}

/// Returns every process that is not a zombie, with its parent and its group.
fn processes() -> Vec<(i32, i32, i32)> {
    let read = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut rest = stat.rsplit(')').next()?.split_whitespace();
        let state = rest.next()?;
        let (parent, group) = (rest.next()?.parse().ok()?, rest.next()?.parse().ok()?);
        (state != "Z").then_some((pid, parent, group))
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(read).collect()
}

async fn ends(agents: Agents, end: End) {
    let timeout = if end == End::TimeOut { agents.time() } else { "10m" };
    let Busy { stage, silent: _silent, mut child, family } = busy(agents, timeout).await;
    let patience = match end.signal() {
        Some(signal) => {
            kill_process(pid(&child), signal).unwrap();
            SOON
        }
        None => PATIENCE,
    };
    let status = tokio::time::timeout(patience, child.wait()).await.expect("it ends").unwrap();
    let (code, run_status, step_status, call_status) = end.leaves();
    assert_eq!(status.code(), code, "{agents:?} {end:?}: {status}");
    let nobody = || async { (family.left().is_empty() && stage.left().is_empty()).then_some(()) };
    eventually_within(SOON, nobody).await;
    let steps = stage.home().join("steps");
    if end == End::Kill {
        assert_ne!(std::fs::read_dir(&steps).unwrap().count(), 0, "it could not tidy up");
        next_start(&stage).await;
    }
    stage.assert_nothing_left().await;
    let runs = run(stage.dir(), ["runs", "list", "--workflow", "flow", "-o", "json"]).await;
    let runs: Value = serde_json::from_slice(&runs.stdout).unwrap();
    assert_eq!(runs["runs"][0]["status"], run_status, "{agents:?} {end:?}: {runs}");
    let id = runs["runs"][0]["id"].as_str().unwrap();
    let shown = run(stage.dir(), ["runs", "show", id, "-o", "json"]).await;
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2, "{shown}");
    assert!(steps.iter().all(|step| step["status"] == step_status), "{agents:?} {end:?}: {shown}");
    let fits = |record: &Value| record["tool"] == "Bash" && record["status"] == call_status;
    records_when(&stage.home(), |records| records.iter().any(fits)).await;
}

/// Starts another run in the same home, which finds the leftovers of the killed one.
async fn next_start(stage: &Stage) {
    let file = stage.dir().join("next.yaml");
    let text = "{name: next, states: {initial: a, a: {type: step, command: 'true', on_success: b}, \
                b: {type: terminal, status: success}}}";
    std::fs::write(&file, text).unwrap();
    let next = stage.run(&file, &["-o", "quiet"]).await;
    assert_eq!(next.status.code(), Some(0), "{}", stderr(&next));
}

#[tokio::test]
async fn ctrl_c_leaves_nothing_of_codex() {
    if foreign::are_here_or_skipped() {
        ends(Agents::Real("codex"), End::Interrupt).await;
    }
}

#[tokio::test]
async fn sigterm_ends_a_run_like_ctrl_c() {
    ends(Agents::Scripted, End::Terminate).await;
}

#[tokio::test]
async fn a_closed_terminal_ends_a_run_like_ctrl_c() {
    ends(Agents::Scripted, End::Hangup).await;
}

#[tokio::test]
async fn a_killed_run_takes_everything_with_it() {
    ends(Agents::Scripted, End::Kill).await;
}

#[tokio::test]
async fn a_step_that_takes_too_long_is_ended() {
    ends(Agents::Scripted, End::TimeOut).await;
}

/// Ends runs of a real program in every way, twenty times.
async fn again_and_again(provider: &'static str) {
    if !is_long_or_skipped() {
        return;
    }
    for _ in 0..20 {
        for end in End::ALL {
            ends(Agents::Both(provider), end).await;
        }
    }
}

#[tokio::test]
async fn long_nothing_is_ever_left_of_claude() {
    again_and_again("claude").await;
}

#[tokio::test]
async fn long_nothing_is_ever_left_of_gemini() {
    again_and_again("gemini").await;
}

#[tokio::test]
async fn long_nothing_is_ever_left_of_codex() {
    again_and_again("codex").await;
}

#[tokio::test]
async fn long_nothing_is_ever_left_of_opencode() {
    again_and_again("opencode").await;
}

/// An agent that only SIGKILL ends, with a child that has left its group.
const STUBBORN: &str = r#"trap '' TERM INT HUP
setsid sleep 1000 &
echo "$$ $!" > "$HOME_OF_GATE.begun"
while :; do sleep 1000; done"#;

async fn stubborn() -> (Stage, Child, Family) {
    let stage = Stage::new("claude", []).await;
    let program = stage.fake_claude(STUBBORN);
    let step = stage.step_with(&json!({"enable": true}), &program);
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let child = stage.command(&flow, &[]).spawn().unwrap();
    let begun = stage.dir().join("home.begun");
    eventually_within(PATIENCE, || async {
        std::fs::read_to_string(&begun).ok().filter(|text| text.ends_with('\n')).map(|_| ())
    })
    .await;
    let family = Family::of(pid(&child));
    (stage, child, family)
}

#[tokio::test]
async fn an_agent_that_does_not_want_to_end_is_killed() {
    for signal in [Signal::INT, Signal::HUP] {
        let (stage, mut child, family) = stubborn().await;
        kill_process(pid(&child), signal).unwrap();
        let status = tokio::time::timeout(SOON, child.wait()).await.expect("it ends").unwrap();
        assert_eq!((status.code(), family.left()), (Some(130), vec![]), "{signal:?}");
        stage.assert_nothing_left().await;
        assert_eq!(stage.last_run().await["status"], "cancelled");
    }
}

/// `nohup` starts a program with SIGHUP ignored, so that it outlives its terminal.
#[tokio::test]
async fn a_run_that_ignores_hangups_goes_on() {
    let stage = Stage::new("claude", []).await;
    let wait = "touch begun; while [ ! -e end ]; do sleep 0.05; done; echo well";
    let step = json!({"type": "step", "command": wait, "on_success": "done"});
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let program = testkit::program::countersign();
    let mut command = stage.countersign_at("/usr/bin/nohup".as_ref(), program.to_str().unwrap());
    let child = command.arg("run").arg(&flow).spawn().unwrap();
    let begun = stage.workspace().join("begun");
    eventually_within(PATIENCE, || async { begun.exists().then_some(()) }).await;
    let run = pid(&child);
    for member in Family::of(run).pids {
        let _ = kill_process(Pid::from_raw(member).unwrap(), Signal::HUP);
    }
    std::fs::write(stage.workspace().join("end"), "").unwrap();
    let output = tokio::time::timeout(SOON, child.wait_with_output()).await.expect("it ends");
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn a_second_ctrl_c_does_not_wait() {
    let (stage, mut child, family) = stubborn().await;
    kill_process(pid(&child), Signal::INT).unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    kill_process(pid(&child), Signal::INT).unwrap();
    let status = tokio::time::timeout(SOON, child.wait()).await.expect("it ends").unwrap();
    assert_eq!(status.code(), Some(130));
    eventually_within(SOON, || async { family.left().is_empty().then_some(()) }).await;
    stage.assert_nothing_left().await;
    // No process waited for its end.
    assert_eq!(stage.last_run().await["status"], "interrupted");
}

/// Before anything runs, the program is queried for its abilities; that can be ended too.
#[tokio::test]
async fn a_version_query_ends_with_the_process_that_made_it() {
    for (word, signal, code) in [
        ("run", Signal::INT, Some(130)),
        ("run", Signal::KILL, None),
        ("validate", Signal::INT, Some(130)),
    ] {
        let stage = Stage::new("claude", []).await;
        let program = stage.program("echo asked > \"$HOME_OF_GATE.asked\"; exec sleep 1000");
        let step = stage.step_with(&json!({"enable": true}), &program);
        let flow = stage.flow_of(json!({"initial": "task", "task": step}));
        let mut child = stage.countersign(word).arg(&flow).spawn().unwrap();
        let asked = stage.dir().join("home.asked");
        eventually_within(PATIENCE, || async { asked.exists().then_some(()) }).await;
        let family = Family::of(pid(&child));
        kill_process(pid(&child), signal).unwrap();
        let status = tokio::time::timeout(SOON, child.wait()).await.expect("it ends").unwrap();
        assert_eq!(status.code(), code, "{word} {signal:?}: {status}");
        eventually_within(SOON, || async { family.left().is_empty().then_some(()) }).await;
        stage.assert_nothing_left().await;
    }
}
