//! The writers of a round: a gate and its clients, a wrapped server, commands and hooks. At a random
//! moment some of them are killed, and the others end.

use std::path::Path;
use std::process::Stdio;

use mcp::peer::RequestError;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use testkit::client::{Client, PATIENCE};
use testkit::gate::Gate;
use testkit::program::program;
use testkit::upstream::scripted_upstream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::random::Random;
use super::{Talker, View, talker};

/// A call that somebody got an answer to, or an event that a hook delivered.
#[derive(Clone, Debug)]
pub(super) struct Confirmed {
    pub(super) resource: String,
    pub(super) arguments: Value,
    /// The answer, but for an event.
    pub(super) answer: Option<Value>,
}

/// The calls of each client in turn. The server returns the arguments, so that no two results are
/// equal; the last call is refused.
const CALLS: [(&str, &str); 4] =
    [("read", "read"), ("write", "plain"), ("destructive", "delete"), ("read", "delete")];

pub(super) fn tools() -> Value {
    json!([
        {"name": "read", "annotations": {"readOnlyHint": true}},
        {"name": "plain"},
        {"name": "delete", "annotations": {"destructiveHint": true}},
    ])
}

/// The answers of a round, and who is to stop or to die.
struct Stage {
    confirmed: UnboundedSender<Confirmed>,
    over: CancellationToken,
}

fn arguments(resource: &str, n: usize) -> Value {
    json!({"path": resource, "text": "some words ".repeat(n % 20)})
}

/// Makes calls until the connection or the round ends.
async fn load(client: Client, view: View, who: String, confirmed: UnboundedSender<Confirmed>) {
    for n in 0.. {
        let (operation, tool) = CALLS[n % CALLS.len()];
        let resource = format!("/{who}/{n}");
        let arguments = arguments(&resource, n);
        let params = view.params(operation, tool, arguments.clone());
        let answer = match client.request("tools/call", params).await {
            Ok(answer) => Some(answer),
            Err(RequestError::Refused(error)) => panic!("{resource}: {error:?}"),
            Err(_) => return,
        };
        if confirmed.send(Confirmed { resource, arguments, answer }).is_err() {
            client.peer.close("the round is over");
            return;
        }
    }
}

/// Waits for the end of a command and returns what it printed, or kills it when `kill` says so.
async fn ended_or_killed(mut child: Child, kill: &CancellationToken) -> Option<String> {
    tokio::select! {
        status = child.wait() => {
            let mut text = String::new();
            if let Some(mut stdout) = child.stdout.take() {
                stdout.read_to_string(&mut text).await.unwrap();
            }
            status.unwrap().success().then_some(text)
        }
        () = kill.cancelled() => {
            child.kill().await.unwrap();
            None
        }
    }
}

/// Makes a call at the command line; returns it if it was answered.
pub(super) async fn command(
    dir: &Path,
    resource: &str,
    kill: &CancellationToken,
) -> Option<Confirmed> {
    let arguments = arguments(resource, 3);
    let child = program(dir)
        .args(["--config", "config.json", "call", "tool-write", "s:plain"])
        .args(["--reason", "to crash", "-o", "json", &arguments.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let text = ended_or_killed(child, kill).await?;
    let answer =
        Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")));
    Some(Confirmed { resource: resource.to_owned(), arguments, answer })
}

/// Delivers an event as an agent's hook does.
async fn hook(dir: &Path, resource: &str, kill: &CancellationToken) -> Option<Confirmed> {
    let arguments = json!({"file_path": resource});
    let event = json!({"hook_event_name": "PostToolUse", "session_id": "hooked", "cwd": "/",
        "tool_name": "Read", "tool_input": arguments, "tool_response": {}});
    let mut child =
        program(dir).arg("hook").stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(event.to_string().as_bytes()).await.unwrap();
    drop(stdin);
    ended_or_killed(child, kill).await?;
    Some(Confirmed { resource: resource.to_owned(), arguments, answer: None })
}

/// Repeats one of these until the round is over or it is killed.
async fn repeat<F: Future<Output = Option<Confirmed>>>(
    (who, stage, kill): (String, Stage, CancellationToken),
    work: impl Fn(String, CancellationToken) -> F,
) {
    for n in 0.. {
        if let Some(confirmed) = work(format!("/{who}/{n}"), kill.clone()).await
            && stage.confirmed.send(confirmed).is_err()
        {
            return;
        }
        if stage.over.is_cancelled() || kill.is_cancelled() {
            return;
        }
    }
}

/// Returns answers until there are so many.
async fn answers(from: &mut UnboundedReceiver<Confirmed>, count: usize) -> Vec<Confirmed> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let next = tokio::time::timeout(PATIENCE, from.recv()).await;
        seen.push(next.expect("calls are answered").expect("somebody calls"));
    }
    seen
}

/// The result of a round at work.
pub(super) struct Work {
    pub(super) confirmed: Vec<Confirmed>,
    /// The number of processes that were killed.
    pub(super) killed: usize,
}

/// Lets everybody work, kills some at a random moment, and ends the others. In some rounds there is
/// no shared gate, and each process is one.
pub(super) async fn work(gate: &mut Gate, round: usize, random: &mut Random) -> Work {
    let (sender, mut confirmed) = mpsc::unbounded_channel();
    let over = CancellationToken::new();
    let is_shared = random.is_in(75);
    if is_shared {
        gate.restart().await;
    }
    let mut loads = JoinSet::new();
    let mut http = JoinSet::new();
    if is_shared {
        let client = gate.http().await;
        http.spawn(load(client, View::Discovery, format!("{round}-http"), sender.clone()));
    }
    let mut talkers = talkers(gate.dir.path(), is_shared, round, (&mut loads, &sender)).await;
    let kills = [CancellationToken::new(), CancellationToken::new()];
    let mut repeated = JoinSet::new();
    let stage = || Stage { confirmed: sender.clone(), over: over.clone() };
    let dir = gate.dir.path().to_owned();
    repeated.spawn(repeat(
        (format!("{round}-call"), stage(), kills[0].clone()),
        move |resource, kill| {
            let dir = dir.clone();
            async move { command(&dir, &resource, &kill).await }
        },
    ));
    let dir = gate.dir.path().to_owned();
    repeated.spawn(repeat(
        (format!("{round}-hook"), stage(), kills[1].clone()),
        move |resource, kill| {
            let dir = dir.clone();
            async move { hook(&dir, &resource, &kill).await }
        },
    ));
    drop(sender);

    let mut all = answers(&mut confirmed, 5 + random.below(60)).await;
    // All of them, or each with an even chance.
    let is_all = random.is_in(50);
    let mut killed = 0;
    let mut dies = |random: &mut Random| {
        let dies = is_all || random.is_in(50);
        killed += usize::from(dies);
        dies
    };
    let gate_dies = is_shared && dies(random);
    if gate_dies {
        gate.kill().await;
    }
    for talker in &talkers {
        if dies(random) {
            kill_process(talker.pid, Signal::KILL).unwrap();
        }
    }
    kills.iter().filter(|_| dies(random)).for_each(CancellationToken::cancel);
    over.cancel();
    repeated.join_all().await;
    http.shutdown().await;
    confirmed.close();
    while let Some(answered) = confirmed.recv().await {
        all.push(answered);
    }
    loads.join_all().await;
    for talker in &mut talkers {
        tokio::time::timeout(PATIENCE, talker.child.wait()).await.expect("it ends").unwrap();
    }
    if is_shared && !gate_dies {
        assert_eq!(gate.end().await, Some(0));
    }
    Work { confirmed: all, killed }
}

/// Starts a wrapped server, and a process that passes calls on to the gate or is one.
async fn talkers(
    dir: &Path,
    is_shared: bool,
    round: usize,
    (loads, sender): (&mut JoinSet<()>, &UnboundedSender<Confirmed>),
) -> Vec<Talker> {
    let upstream = scripted_upstream();
    let file = dir.join("s.tools.json");
    let wrap = ["wrap", "--name", "s", "--", upstream.to_str().unwrap(), file.to_str().unwrap()];
    let own = ["mcp", "--config", "config.json"];
    let mcp = if is_shared { &own[..1] } else { &own };
    let ((wrapped, plain), (passing, discovery)) =
        tokio::join!(talker(dir, &wrap), talker(dir, mcp));
    loads.spawn(load(plain, View::Plain, format!("{round}-wrap"), sender.clone()));
    loads.spawn(load(discovery, View::Discovery, format!("{round}-mcp"), sender.clone()));
    vec![wrapped, passing]
}
