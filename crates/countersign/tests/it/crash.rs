//! The program is repeatedly killed at work: every confirmed call is in the ledger, every begun one
//! shows as interrupted, and every chain is intact.

mod damage;
mod hundred;
mod random;
mod remains;
mod writers;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use mcp::peer::RequestError;
use receipt::chain::ChainStatus;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::client::{Client, PATIENCE, two_keys};
use testkit::gate::Gate;
use testkit::program::program;
use testkit::upstream::{scripted, scripted_upstream};
use testkit::wait::eventually;
use testkit::wire::Wire;
use tokio::io::AsyncWriteExt;
use tokio::process::Child;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ledger::{journals, records, records_when, whole_chains};

/// Returns the number of rounds, fifty in the long run.
fn rounds() -> usize {
    if testkit::run::is_long() { 50 } else { 3 }
}

/// Each client makes these calls in turn.
const CALLS: [(&str, &str); 6] = [
    ("read", "read"),
    ("write", "plain"),
    ("destructive", "delete"),
    ("read", "delete"),
    ("read", "error"),
    ("read", "large"),
];

fn tools(dir: &Path) -> Value {
    json!([
        {"name": "read", "annotations": {"readOnlyHint": true}},
        {"name": "plain"},
        {"name": "delete", "annotations": {"destructiveHint": true}},
        {"name": "error", "x-do": "error"},
        {"name": "large", "x-do": {"text": 100_000}},
        {"name": "endless", "x-do": {"work": {"log": dir.join("endless.log"), "until": dir.join("never")}}},
    ])
}

/// A client's view of the gate.
#[derive(Clone, Copy)]
enum View {
    Discovery,
    Plain,
}

impl View {
    /// Returns the parameters of a call in this view.
    fn params(self, operation: &str, tool: &str, args: Value) -> Value {
        match self {
            View::Discovery => two_keys(operation, &format!("s:{tool}"), args),
            View::Plain => json!({"name": tool, "arguments": args}),
        }
    }
}

/// Makes calls without end, each on its own resource, and reports those that got a response.
async fn load(client: Client, view: View, who: String, answered: UnboundedSender<String>) {
    for n in 0.. {
        let (operation, tool) = CALLS[n % CALLS.len()];
        let resource = format!("/{who}/{n}");
        let params = view.params(operation, tool, json!({"path": resource}));
        match client.request("tools/call", params).await {
            Ok(answer) => {
                let code = &testkit::client::refusal(&answer)["code"];
                assert_ne!(code, "LEDGER_UNAVAILABLE", "{answer}");
            }
            Err(RequestError::Refused(_)) => {}
            Err(_) => return,
        }
        if answered.send(resource).is_err() {
            client.peer.close("it has seen enough");
            return;
        }
    }
}

/// Waits for this many responses.
async fn answers(answered: &mut UnboundedReceiver<String>, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let next = tokio::time::timeout(PATIENCE, answered.recv()).await;
        seen.push(next.expect("calls are answered").expect("somebody calls"));
    }
    seen
}

/// Returns all responses received until no client calls any more.
async fn rest(answered: &mut UnboundedReceiver<String>) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(resource) = answered.recv().await {
        seen.push(resource);
    }
    seen
}

fn random(below: usize) -> usize {
    let number = getrandom::u32().expect("there is randomness");
    usize::try_from(number).unwrap() % below
}

/// Checks that every call with a response has its record and receipt, none is pending, and every
/// chain is intact and complete.
fn check(home: &Path, answered: &[String]) {
    assert_eq!(journals(home), 0);
    let mut found: HashMap<String, Vec<Value>> = HashMap::new();
    for record in records(home) {
        let resource = record["resource"].as_str().unwrap_or_default().to_owned();
        assert_ne!(record["status"], "pending", "{record}");
        assert!(record["receipt"].is_object(), "{record}");
        found.entry(resource).or_default().push(record);
    }
    for resource in answered {
        let records = found.get(resource).unwrap_or_else(|| panic!("{resource} was lost"));
        assert_eq!(records.len(), 1, "{records:?}");
        assert_ne!(records[0]["status"], "interrupted", "{records:?}");
    }
    for (chain, check) in whole_chains(home) {
        let expected = match check.status {
            ChainStatus::Complete => "complete",
            ChainStatus::Interrupted => "interrupted",
            ChainStatus::Unknown => "an end",
        };
        assert_eq!(chain["status"], expected, "{chain}");
    }
}

#[tokio::test]
async fn long_killed_gate_loses_nothing_it_answered() {
    let mut gate =
        Gate::start(|dir| json!({"s": scripted(dir, "s", &tools(dir))}), json!({})).await;
    let mut all = Vec::new();
    for round in 0..rounds() {
        let (sender, mut answered) = mpsc::unbounded_channel();
        let (mut stdio, mut http) = (JoinSet::new(), JoinSet::new());
        for n in 0..3 {
            let who = format!("{round}-http-{n}");
            http.spawn(load(gate.http().await, View::Discovery, who, sender.clone()));
        }
        for n in 0..2 {
            let who = format!("{round}-stdio-{n}");
            stdio.spawn(load(gate.stdio().await, View::Discovery, who, sender.clone()));
        }
        drop(sender);
        let endless = gate.http_at("/mcp/s/s").await;
        let params = json!({"name": "endless", "arguments": {"path": format!("/{round}/endless")}});
        let endless = tokio::spawn(async move { endless.request("tools/call", params).await });
        let log = gate.dir.path().join("endless.log");
        eventually(|| async { log.exists().then_some(()) }).await;
        all.extend(answers(&mut answered, 10 + random(150)).await);
        gate.kill().await;
        // These get pending responses and then the end; those over HTTP would retry until their
        // patience is over.
        stdio.join_all().await;
        http.shutdown().await;
        endless.abort();
        all.extend(rest(&mut answered).await);
        std::fs::remove_file(log).unwrap();
        gate.restart().await;
        check(&gate.home(), &all);
        interrupted(&gate.home(), &format!("/{round}/endless"));
    }
    let interrupted = whole_chains(&gate.home()).into_iter();
    let interrupted = interrupted.filter(|(_, check)| check.status == ChainStatus::Interrupted);
    assert_eq!(interrupted.count(), rounds(), "each kill leaves one");
}

/// Checks that a call that had begun is recorded, without any claim about its end.
fn interrupted(home: &Path, resource: &str) {
    let records = records(home);
    let record = records.iter().find(|record| record["resource"] == resource).unwrap();
    assert_eq!(record["status"], "interrupted");
    assert_eq!(record["outcome"]["status"], "pending");
    assert_eq!(record["runtime"]["interrupted"], true);
}

#[tokio::test]
async fn smoke_a_client_sees_that_its_gate_was_killed() {
    let mut gate =
        Gate::start(|dir| json!({"s": scripted(dir, "s", &tools(dir))}), json!({})).await;
    let mut command = program(gate.dir.path());
    command.arg("mcp");
    let mut wire = Wire::open(command);
    wire.greet().await;
    gate.kill().await;
    assert_eq!(wire.hear().await, "", "its stdout ends, though its stdin is open");
    assert_eq!(wire.ended().await.code(), Some(4));
}

/// A process of the program, driven over its pipes.
struct Talker {
    child: Child,
    pid: Pid,
}

/// Starts a process, and a client that calls through it.
async fn talker(dir: &Path, args: &[&str]) -> (Talker, Client) {
    let mut child = program(dir)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the program starts");
    let (stdout, stdin) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let client =
        Client::greet(json!({}), vec![], |service| mcp::lines::connect(stdout, stdin, service));
    let client = client.await;
    let pid = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    (Talker { child, pid }, client)
}

#[tokio::test]
async fn long_killed_process_among_five_harms_none_of_the_others() {
    for round in 0..rounds() {
        // The shared gate, a process that is a gate itself, and one that wraps a server.
        five([0, 1, 3][round % 3]).await;
    }
}

async fn five(killed: usize) {
    let dir = TempDir::new().unwrap();
    let server = scripted(dir.path(), "s", &tools(dir.path()));
    let config = dir.path().join("config.json");
    std::fs::write(&config, json!({"mcpServers": {"s": server}}).to_string()).unwrap();
    let config = config.to_str().unwrap().to_owned();
    let mcp = ["mcp", "--config", &config];
    let upstream = scripted_upstream();
    let file = dir.path().join("s.tools.json");
    let wrap = ["wrap", "--name", "s", "--", upstream.to_str().unwrap(), file.to_str().unwrap()];
    let (sender, mut answered) = mpsc::unbounded_channel();
    let mut clients = JoinSet::new();
    let mut talkers = Vec::new();
    // While no gate runs, each of these is a gate itself.
    for (n, (args, view)) in [
        (&mcp[..], View::Discovery),
        (&mcp, View::Discovery),
        (&wrap, View::Plain),
        (&wrap, View::Plain),
    ]
    .into_iter()
    .enumerate()
    {
        let (talker, client) = talker(dir.path(), args).await;
        clients.spawn(load(client, view, format!("talker-{n}"), sender.clone()));
        talkers.push(talker);
    }
    let mut gate = Gate::open(dir).await;
    clients.spawn(load(gate.http().await, View::Discovery, "http".into(), sender));
    let mut all = Vec::new();
    while ["talker-0", "talker-1", "talker-2", "talker-3", "http"]
        .iter()
        .any(|who| !all.iter().any(|resource: &String| resource.starts_with(&format!("/{who}/"))))
    {
        all.extend(answers(&mut answered, 1).await);
    }
    all.extend(answers(&mut answered, random(100)).await);
    match killed {
        0 => gate.kill().await,
        n => kill_process(talkers[n - 1].pid, Signal::KILL).unwrap(),
    }
    // The others continue undisturbed.
    all.extend(answers(&mut answered, 60).await);
    answered.close();
    all.extend(rest(&mut answered).await);
    clients.join_all().await;
    for (n, talker) in talkers.iter_mut().enumerate() {
        let status = tokio::time::timeout(PATIENCE, talker.child.wait()).await.unwrap().unwrap();
        assert_eq!(status.success(), killed != n + 1, "{n}: {status}");
    }
    if killed != 0 {
        assert_eq!(gate.end().await, Some(0));
    }
    gate.restart().await;
    check(&gate.home(), &all);
    let chains = whole_chains(&gate.home());
    let complete = chains.iter().filter(|(_, check)| check.status == ChainStatus::Complete);
    assert_eq!((chains.len(), complete.count()), (5, 4), "killed {killed}");
}

/// Makes a hook record an action on a resource. Once it has ended, the event is with the gate or in
/// the spool.
async fn hook(dir: &Path, resource: &str) {
    let event = json!({"hook_event_name": "PostToolUse", "session_id": "hooked", "cwd": "/",
        "tool_name": "Read", "tool_input": {"file_path": resource}, "tool_response": {}});
    let mut child =
        program(dir).arg("hook").stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(event.to_string().as_bytes()).await.unwrap();
    drop(stdin);
    assert!(child.wait().await.unwrap().success());
}

/// Runs a workflow with one command, whose record names the file that it writes.
async fn workflow(dir: &Path, resource: &str) -> bool {
    let file = dir.join(format!("{}.yaml", resource.replace('/', "-")));
    let text = format!(
        "name: round\nstates:\n  initial: one\n  one:\n    type: step\n    \
         command: echo done > .{resource}\n    on_success: done\n  done:\n    type: terminal\n"
    );
    std::fs::write(&file, text).unwrap();
    let output = testkit::program::run(dir, [OsStr::new("run"), file.as_os_str()]).await;
    output.status.success()
}

/// Repeats the work with its own numbers until the round is over, and returns the resources of
/// those that succeeded.
async fn repeat<F: Future<Output = bool>>(
    over: CancellationToken,
    name: String,
    work: impl Fn(String) -> F,
) -> Vec<String> {
    let mut done = Vec::new();
    for number in 0.. {
        if over.is_cancelled() {
            break;
        }
        let resource = format!("/{name}-{number}");
        if work(resource.clone()).await {
            done.push(resource);
        }
    }
    done
}

/// One round of everything at once: the shared gate, a separate gate, a wrapped server, hooks,
/// workflows and rotations of the key. Returns what was confirmed.
async fn everything(gate: &mut Gate, round: usize) -> Vec<String> {
    let dir = gate.dir.path().to_owned();
    let upstream = scripted_upstream();
    let file = dir.join("s.tools.json");
    let wrap = ["wrap", "--name", "s", "--", upstream.to_str().unwrap(), file.to_str().unwrap()];
    let (sender, mut answered) = mpsc::unbounded_channel();
    let (mut clients, mut http) = (JoinSet::new(), JoinSet::new());
    let (mut wrapped, client) = talker(&dir, &wrap).await;
    clients.spawn(load(client, View::Plain, format!("{round}-wrap"), sender.clone()));
    let through = gate.stdio().await;
    clients.spawn(load(through, View::Discovery, format!("{round}-mcp"), sender.clone()));
    http.spawn(load(gate.http().await, View::Discovery, format!("{round}-http"), sender));
    let over = CancellationToken::new();
    let (at, names) = (dir.clone(), format!("{round}-run"));
    let workflows = tokio::spawn(repeat(over.clone(), names, move |resource| {
        let dir = at.clone();
        async move { workflow(&dir, &resource).await }
    }));
    let (at, names) = (dir.clone(), format!("{round}-key"));
    let rotations = tokio::spawn(repeat(over.clone(), names, move |_| {
        let dir = at.clone();
        async move { testkit::program::run(&dir, ["keys", "rotate"]).await.status.success() }
    }));
    let mut all = answers(&mut answered, 50 + random(150)).await;
    let live: Vec<String> = (0..5).map(|n| format!("/{round}-hook-{n}")).collect();
    for resource in &live {
        hook(&dir, resource).await;
    }
    // A gate does not confirm events: those that it has taken are in the ledger a moment later.
    let home = gate.home();
    records_when(&home, |records| {
        live.iter().all(|wanted| records.iter().any(|record| record["resource"] == **wanted))
    })
    .await;
    all.extend(live);
    gate.kill().await;
    kill_process(wrapped.pid, Signal::KILL).unwrap();
    wrapped.child.wait().await.unwrap();
    over.cancel();
    for n in 5..8 {
        // No gate runs: these go to the spool.
        let resource = format!("/{round}-hook-{n}");
        hook(&dir, &resource).await;
        all.push(resource);
    }
    http.shutdown().await;
    clients.join_all().await;
    all.extend(rest(&mut answered).await);
    let written = workflows.await.unwrap().into_iter();
    let root = std::fs::canonicalize(&dir).unwrap();
    all.extend(written.map(|resource| format!("{}{resource}", root.display())));
    rotations.await.unwrap();
    all
}

#[tokio::test]
async fn long_killed_processes_of_every_kind_lose_nothing_they_confirmed() {
    let rounds = if testkit::run::is_long() { 20 } else { 1 };
    let mut gate =
        Gate::start(|dir| json!({"s": scripted(dir, "s", &tools(dir))}), json!({})).await;
    let mut all = Vec::new();
    for round in 0..rounds {
        all.extend(everything(&mut gate, round).await);
        gate.restart().await;
        let home = gate.home();
        // The spool is taken in once the gate runs.
        let wanted = format!("/{round}-hook-7");
        records_when(&home, |records| records.iter().any(|record| record["resource"] == wanted))
            .await;
        assert_eq!(gate.end().await, Some(0));
        check(&home, &all);
        let report =
            testkit::program::run(gate.dir.path(), ["ledger", "check", "-o", "json"]).await;
        assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stdout));
        gate.restart().await;
    }
    println!("{rounds} rounds, {} confirmed, 0 lost", all.len());
}
