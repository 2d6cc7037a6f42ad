//! Agents that report their actions under the session of another one. Each agent is a program with a
//! shell that runs hooks.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::program::{command, countersign};
use testkit::run::skipped;
use testkit::wait::eventually;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::ledger::{records, records_when, whole_chains};

const VICTIM: &str = "7d1f0c52-victim01";
const HOSTILE: &str = "7d1f0c52-hostil02";

/// Runs a hook for each line.
const RUNS_HOOKS: &str =
    r#"while IFS= read -r event; do printf '%s' "$event" | "$0" hook; echo done; done"#;

struct Agent {
    child: Child,
    events: ChildStdin,
    done: BufReader<ChildStdout>,
}

impl Agent {
    /// Starts a program that waits for its shell, and waits until its age tells it from a script.
    async fn start(dir: &Path) -> Agent {
        let mut command = command(Path::new("timeout"), dir);
        command.args(["900", "sh", "-c", RUNS_HOOKS]).arg(countersign());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let events = child.stdin.take().unwrap();
        let done = BufReader::new(child.stdout.take().unwrap());
        let pid = child.id().unwrap();
        eventually(|| async { (age_s(pid) > 2.1).then_some(()) }).await;
        Agent { child, events, done }
    }

    /// Reports a write to a file with this name.
    async fn writes(&mut self, file: &str, members: Value) {
        self.events.write_all(format!("{}\n", event(file, members)).as_bytes()).await.unwrap();
        let mut line = String::new();
        self.done.read_line(&mut line).await.unwrap();
        assert_eq!(line, "done\n");
    }

    fn name(&self) -> String {
        format!("process#{}", self.child.id().unwrap())
    }
}

fn age_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let started = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap();
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    uptime - started.parse::<f64>().unwrap() / 100.0
}

fn event(file: &str, members: Value) -> Value {
    let mut event = json!({"hook_event_name": "PostToolUse", "session_id": VICTIM, "cwd": "/srv",
        "tool_name": "Write", "tool_input": {"file_path": file}});
    for (name, value) in members.as_object().unwrap() {
        event[name] = value.clone();
    }
    event
}

fn frame(file: &str) -> Value {
    json!({"v": "1", "ts_emit": jiff::Timestamp::now().to_string(), "session_id": VICTIM,
        "channel": "claude-code", "tool": {"name": "Write"}, "decision": "allowed",
        "target_system": "filesystem", "target_resource": format!("/srv/{file}"),
        "capture_method": "hook"})
}

/// Waits for the record of a file; returns its agent, session and warnings.
async fn of(gate: &Gate, file: &str) -> (String, Value, String) {
    let path = format!("/srv/{file}");
    let is_it = |record: &&Value| record["resource"] == path;
    let records = records_when(&gate.home(), |all| all.iter().any(|one| is_it(&one))).await;
    let record = records.iter().find(is_it).unwrap();
    assert_eq!(record["runtime"]["agent_id"], record["agent_name"], "{record}");
    let agent = record["agent_name"].as_str().unwrap().to_owned();
    (agent, record["session_id"].clone(), record["warnings"].to_string())
}

#[tokio::test]
async fn an_agent_reports_nothing_under_the_session_of_another() {
    if !cfg!(target_os = "linux") {
        return skipped("only Linux tells which process started another");
    }
    let gate = Gate::scripted(json!([])).await;
    let (mut victim, mut hostile) =
        tokio::join!(Agent::start(gate.dir.path()), Agent::start(gate.dir.path()));
    let of_victim = ("claude-code#victim01".to_owned(), json!(VICTIM), "null".to_owned());
    victim.writes("own", json!({})).await;
    assert_eq!(of(&gate, "own").await, of_victim);
    hostile.writes("hostile-own", json!({"session_id": HOSTILE})).await;
    let (agent, session, _) = of(&gate, "hostile-own").await;
    assert_eq!((&*agent, session), ("claude-code#hostil02", json!(HOSTILE)));

    hostile.writes("by-hook", json!({})).await;
    hostile.writes("by-agent", json!({"session_id": HOSTILE, "agent_id": VICTIM})).await;
    for file in ["by-hook", "by-agent"] {
        let (agent, session, warnings) = of(&gate, file).await;
        assert_eq!((agent, session), (hostile.name(), Value::Null), "{file}");
        assert!(warnings.contains("of another process"), "{file}: {warnings}");
    }
    let text = frame("by-socket").to_string();
    let mut stream = UnixStream::connect(gate.home().join("events.sock")).await.unwrap();
    stream.write_u32(u32::try_from(text.len()).unwrap()).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let (agent, session, _) = of(&gate, "by-socket").await;
    assert!(agent.starts_with("process#") && session.is_null(), "{agent} {session}");
    let text = frame("by-spool").to_string();
    let name = format!("spool/{}-{}.json", uuid::Uuid::now_v7(), text.len());
    std::fs::write(gate.home().join(name), text).unwrap();
    let (agent, session, _) = of(&gate, "by-spool").await;
    assert_eq!((&*agent, session), ("unknown process", Value::Null));

    victim.writes("own-again", json!({})).await;
    assert_eq!(of(&gate, "own-again").await, of_victim);
    victim.child.kill().await.unwrap();
    let mut resumed = Agent::start(gate.dir.path()).await;
    resumed.writes("resumed", json!({})).await;
    assert_eq!(of(&gate, "resumed").await, of_victim, "its process has ended");
    whole_chains(&gate.home());
}

#[tokio::test]
async fn no_event_takes_the_session_of_a_client_of_the_gate() {
    let gate = Gate::scripted(json!([{"name": "t"}])).await;
    gate.ready("s").await;
    let client = gate.http().await;
    client.two_key_call("write", "s:t", json!({})).await;
    let own = records_when(&gate.home(), |records| records.len() == 1).await;
    let (agent, session) = (&own[0]["agent_name"], &own[0]["session_id"]);
    let (program, _) = agent.as_str().unwrap().split_once('#').unwrap();
    let mut stream = UnixStream::connect(gate.home().join("events.sock")).await.unwrap();
    for (file, channel, session) in
        [("a", program, session), ("b", "other", session), ("c", program, &json!("its-own"))]
    {
        let mut frame = frame(file);
        (frame["channel"], frame["session_id"]) = (channel.into(), session.clone());
        let text = frame.to_string();
        stream.write_u32(u32::try_from(text.len()).unwrap()).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
    }
    let (honest, admitted, _) = of(&gate, "c").await;
    assert_eq!((&*honest, admitted), (&*format!("{program}#its-own"), json!("its-own")));
    for file in ["a", "b"] {
        let (agent, session, warnings) = of(&gate, file).await;
        assert!(session.is_null() && warnings.contains("of another"), "{session} {warnings}");
        assert!(!agent.contains(program), "{agent}");
    }
    let of_session = |record: &&Value| record["session_id"] == *session;
    assert_eq!(records(&gate.home()).iter().filter(of_session).count(), 1);
}
