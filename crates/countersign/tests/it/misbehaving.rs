//! Servers that hang, die, print noise, flood and refuse to end: each affects only its own calls,
//! reports the reason, and leaves no process behind.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::client::{Client, code, text};
use testkit::gate::Gate;
use testkit::program::{program, run, stdout};
use testkit::upstream::{accepting_new, scripted, scripted_upstream};
use testkit::wait::{eventually, eventually_within};
use tokio_util::sync::CancellationToken;

/// The grace that the supervisor gives a child twice, plus time for a busy machine.
const GRACE: Duration = Duration::from_secs(10);

/// Makes a server of a shell script, in which the scripted server is `$SERVER` and its tools are
/// `$TOOLS`.
fn shell(dir: &Path, name: &str, tools: &Value, script: &str) -> Value {
    let entry = scripted(dir, name, tools);
    let env = json!({"SERVER": scripted_upstream(), "TOOLS": entry["args"][0], "DIR": dir});
    json!({"command": "sh", "args": ["-c", script], "env": env})
}

/// Returns a server that works, ignores SIGTERM and the end of its stdin, and has two children, one
/// of which has left the process group. Their ids and the supervisor's are written to
/// `<name>.pids`.
fn stubborn(dir: &Path, name: &str) -> Value {
    let script = format!(
        "trap '' TERM; sleep 1000 & near=$!; setsid sleep 1000 &
         echo \"$PPID $$ $near $!\" > \"$DIR/{name}.pids\"
         \"$SERVER\" \"$TOOLS\"; while :; do sleep 1000; done"
    );
    shell(dir, name, &json!([{"name": "t"}]), &script)
}

/// Returns a scripted server that logs its requests to `<name>.requests`.
pub(crate) fn recorded(dir: &Path, name: &str, tools: &Value) -> Value {
    let script = format!(r#"tee -a "$DIR/{name}.requests" | "$SERVER" "$TOOLS""#);
    shell(dir, name, tools, &script)
}

/// Counts the `tools/list` requests that a recorded server received.
pub(crate) fn lists_asked(dir: &Path, name: &str) -> usize {
    let requests = std::fs::read_to_string(dir.join(format!("{name}.requests")));
    requests.unwrap_or_default().matches(r#""method":"tools/list""#).count()
}

/// One of each kind.
fn crowd(dir: &Path) -> Value {
    let t = json!([{"name": "t"}]);
    let wrong = json!({"jsonrpc": "2.0", "id": 999_999, "result": {"content": []}}).to_string();
    let text_id = r#"{"jsonrpc":"2.0","id":"$id","result":{"content":[]}}"#;
    let mut wrong_ids = scripted(
        dir,
        "wrong_ids",
        &json!([{"name": "number", "x-do": {"say": wrong, "hang": true}},
                {"name": "text", "x-do": {"say": text_id, "hang": true}},
                {"name": "extra", "x-do": {"say": wrong}}]),
    );
    wrong_ids["call_timeout"] = "1s".into();
    let closes =
        json!([{"name": "t"}, {"name": "close", "x-do": {"close": r#"{"jsonrpc":"2.0","#}}]);
    let before = json!([{"name": "before", "x-do": "die"}]);
    json!({
        "good": scripted(dir, "good", &t),
        "hangs": {"command": "sleep", "args": ["1000"]},
        "dies": scripted(dir, "dies", &json!([{"name": "t"}, {"name": "die", "x-do": "die"}])),
        "noisy": shell(dir, "noisy", &t, NOISY),
        "floods": shell(dir, "floods", &t, FLOODS),
        "stubborn": stubborn(dir, "stubborn"),
        "wrong_ids": wrong_ids,
        "closes": scripted(dir, "closes", &closes),
        "changes": accepting_new(shell(dir, "changes", &before, CHANGES)),
    })
}

/// Lines around every message that are not messages: words, half an object, bytes that are not
/// text, JSON that is not JSON-RPC.
const NOISY: &str = r#"echo 'Server 1.0 starting...'
"$SERVER" "$TOOLS" | while IFS= read -r line; do
  printf 'DEBUG: about to write\n{"jsonrpc":\n\n\377\376\n[1,2]\n%s\n"done"\n' "$line"
done"#;

/// 50 MB in lines of 500 characters, before it serves.
const FLOODS: &str = r#"seq -f '%0499.f' 1 100000 >&2; exec "$SERVER" "$TOOLS""#;

/// Another list of tools at the second start.
const CHANGES: &str = r#"if [ -e "$DIR/changed" ]; then TOOLS="$DIR/after.json"; fi
echo '[{"name": "after"}]' > "$DIR/after.json"
: > "$DIR/changed"; exec "$SERVER" "$TOOLS""#;

pub(crate) async fn server(client: &Client, name: &str) -> Value {
    let get = json!({"operation": "get", "name": name});
    client.document("upstream_servers", get).await["servers"][0].clone()
}

/// Waits until the server is in this state, and returns its entry.
pub(crate) async fn in_state(client: &Client, name: &str, state: &str) -> Value {
    eventually(|| async {
        let entry = server(client, name).await;
        (entry["state"] == state).then_some(entry)
    })
    .await
}

/// Reports whether the process exists and is not a zombie.
pub(crate) fn lives(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| {
        !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
    })
}

/// Returns the supervisor, the server and its child, once they have written their ids.
async fn pids(file: PathBuf) -> Vec<Pid> {
    eventually(|| async {
        let text = std::fs::read_to_string(&file).ok()?;
        let pids = text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        let pids: Vec<Pid> = pids.collect();
        (pids.len() == 4 && pids.iter().all(|pid| lives(*pid))).then_some(pids)
    })
    .await
}

pub(crate) async fn all_end(pids: &[Pid]) {
    eventually_within(GRACE, || async { pids.iter().all(|pid| !lives(*pid)).then_some(()) }).await;
}

pub(crate) fn memory_kb(pid: Pid) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Calls `good:t` without a pause until stopped, and counts; any failure fails the test.
async fn keep_calling(client: Client, stop: CancellationToken, count: Arc<AtomicUsize>) {
    while !stop.is_cancelled() {
        assert_eq!(client.code_of("write", "good:t").await, "ok", "call {count:?}");
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn bad_servers_do_not_affect_a_good_one() {
    let gate = Gate::start(crowd, json!({"connect_timeout": "8s"})).await;
    let client = gate.http().await;
    // A call of the hanging server waits for its first connection, and no other call waits with it.
    let waiting = gate.http().await;
    let waiting = tokio::spawn(async move { waiting.code_of("write", "hangs:t").await });
    assert_eq!(client.code_of("write", "good:t").await, "ok");
    assert!(!waiting.is_finished(), "the good server waited for the one that hangs");
    let (stop, count) = (CancellationToken::new(), Arc::<AtomicUsize>::default());
    let good = tokio::spawn(keep_calling(gate.http().await, stop.clone(), count.clone()));

    // Each server's effect on its own calls, once the flood is over.
    in_state(&client, "floods", "ready").await;
    for (tool, code) in [
        ("noisy:t", "ok"),
        ("floods:t", "ok"),
        ("stubborn:t", "ok"),
        ("dies:t", "ok"),
        ("dies:die", "OUTCOME_UNKNOWN"),
        ("changes:before", "OUTCOME_UNKNOWN"),
        ("wrong_ids:number", "TIMEOUT"),
        ("wrong_ids:text", "TIMEOUT"),
        ("wrong_ids:extra", "ok"),
        ("closes:t", "ok"),
        ("closes:close", "OUTCOME_UNKNOWN"),
    ] {
        let before = count.load(Ordering::Relaxed);
        assert_eq!(client.code_of("write", tool).await, code, "{tool}");
        let held_up = count.load(Ordering::Relaxed) == before;
        assert!(code != "TIMEOUT" || !held_up, "{tool} held the good server up");
    }
    assert_eq!(waiting.await.unwrap(), "UPSTREAM_UNAVAILABLE");
    let hangs = in_state(&client, "hangs", "error").await;
    let reason = "no answer within 8 s";
    assert!(hangs["error"].as_str().unwrap().contains(reason), "{hangs}");
    // A call does not wait for the next attempt: it reports the result of the last one.
    let refused = client.two_key_call("write", "hangs:t", json!({})).await;
    assert_eq!(code(&refused), "UPSTREAM_UNAVAILABLE");
    assert!(text(&refused).contains(reason), "{refused}");

    // The server that restarted with another list has that list.
    eventually(|| async { (client.code_of("write", "changes:after").await == "ok").then_some(()) })
        .await;
    assert_eq!(client.code_of("write", "changes:before").await, "TOOL_NOT_FOUND");
    // The servers that died or closed were started again.
    for tool in ["dies:t", "closes:t"] {
        eventually(|| async { (client.code_of("write", tool).await == "ok").then_some(()) }).await;
    }
    for name in ["good", "noisy", "floods", "stubborn", "wrong_ids"] {
        assert_eq!(server(&client, name).await["state"], "ready", "{name}");
    }
    stop.cancel();
    good.await.unwrap();
    assert!(count.load(Ordering::Relaxed) > 20, "the good server was used all the time");
}

#[tokio::test]
async fn the_reason_is_shown_to_people_and_to_agents() {
    // Servers that stay dead: the second start fails.
    let once = r#"if [ -e "$DIR/$NAME" ]; then echo "$NAME is out of order" >&2; exit 7; fi
        : > "$DIR/$NAME"; exec "$SERVER" "$TOOLS""#;
    let servers = |dir: &Path| {
        let tools = json!([{"name": "die", "x-do": "die"}]);
        let mut dies = shell(dir, "dies", &tools, once);
        dies["env"]["NAME"] = "dies".into();
        json!({"dies": dies, "hangs": {"command": "sleep", "args": ["1000"]},
               "good": scripted(dir, "good", &json!([{"name": "t"}]))})
    };
    let gate = Gate::start(servers, json!({"connect_timeout": "8s"})).await;
    let client = gate.http().await;
    assert_eq!(client.code_of("write", "dies:die").await, "OUTCOME_UNKNOWN");
    let (reason, said) = ("exit status: 7)", "; last output: dies is out of order");
    eventually(|| async {
        let entry = in_state(&client, "dies", "error").await;
        entry["error"].as_str()?.ends_with(reason).then_some(())
    })
    .await;
    in_state(&client, "hangs", "error").await;
    let table = stdout(&gate.cli(&["upstream", "list"]).await);
    let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let whole = format!("{reason}{said}");
    assert!(row("dies").contains("error") && row("dies").contains(&whole), "{table}");
    assert!(row("hangs").contains("error") && row("hangs").contains("no answer within"), "{table}");
    assert!(row("good").contains("ready"), "{table}");
    let refused = client
        .call("call_tool_write", json!({"name": "dies:die", "intent": {"operation_type": "write"}}))
        .await;
    assert!(text(&refused).contains(reason), "{refused}");

    // Its output, and its recovery.
    let logs = stdout(&gate.cli(&["upstream", "logs", "dies"]).await);
    assert!(logs.lines().any(|line| line == "dies is out of order"), "{logs}");
    std::fs::remove_file(gate.dir.path().join("dies")).unwrap();
    let output = gate.cli(&["upstream", "restart", "dies"]).await;
    assert_eq!(output.status.code(), Some(0));
    in_state(&client, "dies", "ready").await;
}

#[tokio::test]
async fn a_flood_on_stderr_is_read_and_only_its_end_is_kept() {
    let flood = r#"if [ -e "$DIR/go" ]; then seq -f '%0499.f' 1 100000 >&2; fi
        exec "$SERVER" "$TOOLS""#;
    let servers = |dir: &Path| json!({"s": shell(dir, "s", &json!([{"name": "t"}]), flood)});
    let gate = Gate::start(servers, json!({"connect_timeout": "60s"})).await;
    let client = gate.http().await;
    assert_eq!(client.code_of("write", "s:t").await, "ok");
    let before = memory_kb(gate.pid());
    std::fs::write(gate.dir.path().join("go"), "").unwrap();
    gate.cli(&["upstream", "restart", "s"]).await;
    let logs = async || stdout(&gate.cli(&["upstream", "logs", "s", "--lines", "5000"]).await);
    eventually(|| async { logs().await.trim_end().ends_with("0100000").then_some(()) }).await;
    eventually(|| async { (client.code_of("write", "s:t").await == "ok").then_some(()) }).await;
    let grown = memory_kb(gate.pid()).saturating_sub(before);
    assert!(grown < 16 * 1024, "the gate grew by {grown} kB");
    let logs = logs().await;
    let lines: Vec<&str> = logs.lines().collect();
    assert_eq!(lines.len(), 1000);
    assert!(lines[999].ends_with("0100000") && lines[0].ends_with("0099001"), "{}", lines[0]);
}

#[tokio::test]
async fn noise_beyond_the_pipe_capacity_does_not_block_an_answer() {
    // The server writes all of it before it reads again, as a single-threaded program does.
    let noise =
        json!([{"name": "noise", "x-do": {"say": "DEBUG: still working on it", "times": 20_000}}]);
    let servers = |dir: &Path| {
        let mut server = scripted(dir, "s", &noise);
        server["call_timeout"] = "10s".into();
        json!({"s": server})
    };
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    assert_eq!(client.code_of("write", "s:noise").await, "ok");
    assert_eq!(client.code_of("write", "s:noise").await, "ok");
}

#[tokio::test]
async fn smoke_a_servers_death_is_detected_while_its_child_holds_the_pipes() {
    let orphans = r#"sleep 1000 & near=$!; setsid sleep 1000 & echo "$near $!" >> "$DIR/orphans"
        exec "$SERVER" "$TOOLS""#;
    let tools = json!([{"name": "t"}, {"name": "die", "x-do": "die"}]);
    let servers = |dir: &Path| json!({"s": shell(dir, "s", &tools, orphans)});
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    // Detected at once, and not when the call's time is over.
    assert_eq!(client.code_of("write", "s:die").await, "OUTCOME_UNKNOWN");
    eventually(|| async { (client.code_of("write", "s:t").await == "ok").then_some(()) }).await;
    let orphans = std::fs::read_to_string(gate.dir.path().join("orphans")).unwrap();
    let first = orphans.lines().next().unwrap().split(' ');
    let first: Vec<Pid> = first.map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect();
    all_end(&first).await;
}

#[tokio::test]
async fn nothing_is_left_when_the_gate_is_told_to_stop() {
    nothing_is_left_after(Signal::TERM).await;
}

#[tokio::test]
async fn nothing_is_left_when_the_gates_terminal_is_closed() {
    nothing_is_left_after(Signal::HUP).await;
}

#[tokio::test]
async fn nothing_is_left_when_the_gate_is_killed() {
    nothing_is_left_after(Signal::KILL).await;
}

/// Ends with its stdin, and leaves a child and a daemon.
const LEAVES: &str = r#"sleep 1000 & (setsid sh -c 'echo $$ > "$DIR/daemon"; exec sleep 1000' &)
exec "$SERVER" "$TOOLS""#;

async fn nothing_is_left_after(signal: Signal) {
    let servers = |dir: &Path| {
        json!({"stubborn": stubborn(dir, "stubborn"),
               "good": shell(dir, "good", &json!([{"name": "t"}]), LEAVES),
               "hangs": {"command": "sleep", "args": ["1000"]}})
    };
    let gate = Gate::start(servers, json!({"shutdown_timeout": "1s"})).await;
    let client = gate.http().await;
    assert_eq!(client.code_of("write", "stubborn:t").await, "ok");
    assert_eq!(client.code_of("write", "good:t").await, "ok");
    let mut pids = pids(gate.dir.path().join("stubborn.pids")).await;
    let daemon = eventually(|| async {
        let text = std::fs::read_to_string(gate.dir.path().join("daemon")).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    })
    .await;
    let supervisors = children(gate.pid());
    assert_eq!(supervisors.len(), 3, "{supervisors:?}");
    assert!(supervisors.contains(&pids[0]), "{supervisors:?} {pids:?}");
    let servers: Vec<Pid> = supervisors.iter().flat_map(|pid| children(*pid)).collect();
    assert!(servers.contains(&daemon), "a daemon becomes its supervisor's child: {servers:?}");
    let theirs: Vec<Pid> = servers.iter().flat_map(|pid| children(*pid)).collect();
    assert!(servers.len() == 4 && theirs.len() >= 4, "{servers:?} {theirs:?}");
    pids.extend(supervisors.into_iter().chain(servers).chain(theirs));
    kill_process(gate.pid(), signal).unwrap();
    all_end(&pids).await;
}

/// Returns the children of a process: each belongs to the thread that started it.
fn children(parent: Pid) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero())).unwrap();
    let lists =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}

/// Makes a folder whose configuration has one stubborn server.
fn home_with_a_stubborn_server() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({"mcpServers": {"stubborn": stubborn(dir.path(), "stubborn")}});
    let folder = dir.path().join("xdg-config/countersign");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    dir
}

#[tokio::test]
async fn nothing_is_left_when_a_gate_on_stdio_is_killed() {
    let dir = home_with_a_stubborn_server();
    let mut gate = program(dir.path())
        .arg("mcp")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pids = pids(dir.path().join("stubborn.pids")).await;
    gate.kill().await.unwrap();
    all_end(&pids).await;
}

#[tokio::test]
async fn nothing_is_left_when_a_command_with_a_gate_of_its_own_has_ended() {
    let dir = home_with_a_stubborn_server();
    let listing = run(dir.path(), ["tools", "list"]);
    let (output, pids) = tokio::join!(listing, pids(dir.path().join("stubborn.pids")));
    assert!(stdout(&output).contains("stubborn:t"), "{}", stdout(&output));
    assert!(!pids.iter().any(|pid| lives(*pid)), "they end before the command does");
}

#[tokio::test]
async fn a_server_that_stops_listing_holds_up_neither_a_restart_nor_the_end() {
    let servers = |dir: &Path| {
        let tools = json!([{"name": "change", "x-do": {"become": [{"name": "new"}]}}]);
        json!({"s": recorded(dir, "s", &json!({"list": {"falter": 1}, "tools": tools}))})
    };
    // Waiting for that list would take longer than the test does.
    let config = json!({"connect_timeout": "10m", "shutdown_timeout": "5m"});
    let gate = Gate::start(servers, config).await;
    let client = gate.http().await;
    let lists = async |count: usize| {
        let asked = || lists_asked(gate.dir.path(), "s");
        eventually(|| async { (asked() == count).then_some(()) }).await;
    };
    // The gate requests the new list and gets no response.
    assert_eq!(client.code_of("write", "s:change").await, "ok");
    lists(2).await;
    assert_eq!(gate.cli(&["upstream", "restart", "s"]).await.status.code(), Some(0));
    lists(3).await;
    in_state(&client, "s", "ready").await;
    assert_eq!(client.code_of("write", "s:change").await, "ok");
    lists(4).await;
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn a_supervisor_adds_only_the_arguments_that_it_is_told_of() {
    let dir = tempfile::tempdir().unwrap();
    for (count, expected) in [(None, "a: none\n"), (Some("1"), "a one: none\n")] {
        let mut command = program(dir.path());
        command.arg("supervise").args(count.map(|count| format!("--handed-over={count}")));
        command.args(["--gate", &std::process::id().to_string(), "--"]);
        command.args(["sh", "-c", "echo \"$*: ${COUNTERSIGN_ARGUMENT_1-none}\"", "sh", "a"]);
        let variables = [("COUNTERSIGN_ARGUMENT_0", "one"), ("COUNTERSIGN_ARGUMENT_1", "two")];
        let output = command.envs(variables).process_group(0).output().await.unwrap();
        assert_eq!(stdout(&output), expected, "{count:?}");
    }
}
