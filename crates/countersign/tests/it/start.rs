//! Start and stop of the program, and its messages if it cannot start.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;
use testkit::gate::{Gate, Serving, http_client};
use testkit::program::{program, run, stderr, stdio_client, stdout};
use testkit::run::skipped;
use testkit::wait::eventually;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::ChildStdout;

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn smoke_with_nothing_configured_it_makes_its_home_and_serves() {
    let dir = tempfile::tempdir().unwrap();
    let serving = Serving::start(program(dir.path())).await;
    let ready = &serving.ready;
    assert_eq!(ready["event"], "ready");
    let home = dir.path().join("home");
    assert_eq!(ready["home"], home.to_str().unwrap());
    assert_eq!(ready["api_key_file"], home.join("api-key").to_str().unwrap());
    assert_eq!(ready["agent_token_file"], home.join("agent-token").to_str().unwrap());
    assert_eq!(mode(&home), 0o700);
    for name in ["api-key", "agent-token", "control.sock"] {
        assert_eq!(mode(&home.join(name)), 0o600, "{name}");
    }
    let client = stdio_client(dir.path(), &[], json!({}), vec![]).await;
    let found = client.document("retrieve_tools", json!({"query": "read a file"})).await;
    assert_eq!(found["tools"], json!([]), "the person's whole folder is not opened unasked");
}

#[tokio::test]
async fn mcp_without_a_running_gate_is_a_gate_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({"workspace": {"root": dir.path()}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let args = ["--config", "config.json"];
    let client = stdio_client(dir.path(), &args, json!({}), vec![]).await;
    let (intent, args) = (json!({"operation_type": "read"}), json!({"path": "config.json"}));
    let asked = json!({"name": "workspace:Read", "args": args, "intent": intent});
    let result = client.call("call_tool_read", asked).await;
    assert_eq!(testkit::client::text(&result), config.to_string(), "{result}");
}

#[tokio::test]
async fn a_second_gate_in_the_same_home_names_the_first() {
    let gate = Gate::scripted(json!([])).await;
    let output = gate.cli(&["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("another 'serve' (pid "), "{}", stderr(&output));
}

#[tokio::test]
async fn a_taken_port_is_a_system_error() {
    let gate = Gate::scripted(json!([])).await;
    let other = tempfile::tempdir().unwrap();
    let output = run(other.path(), ["serve", "--listen", &gate.address]).await;
    assert_eq!(output.status.code(), Some(4));
    assert!(
        stderr(&output).contains(&format!("cannot listen on {}", gate.address)),
        "{}",
        stderr(&output)
    );
    assert_eq!(stdout(&output), "");
}

/// Browsers try both loopback addresses for the name of the page, and take the one that answers.
#[tokio::test]
async fn the_page_has_both_loopback_addresses_or_none() {
    let Ok(foreign) = TcpListener::bind("[::1]:0").await else {
        return skipped("this machine has no IPv6");
    };
    let taken = foreign.local_addr().unwrap();
    let listen = format!("127.0.0.1:{}", taken.port());
    let dir = tempfile::tempdir().unwrap();
    let serve = || {
        let mut command = program(dir.path());
        command.args(["serve", "--listen", &listen]).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        (BufReader::new(child.stdout.take().unwrap()).lines(), child)
    };
    let reason = format!("another program listens on {taken}");
    let (mut said, mut child) = serve();
    let line = next_with(&mut said, "none: ").await;
    assert!(line.contains(&reason), "{line}");
    let refused = run(dir.path(), ["page"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains(&format!("CONFLICT: {reason}")), "{}", stderr(&refused));
    // Agents are served as ever.
    let client = stdio_client(dir.path(), &[], json!({}), vec![]).await;
    client.request("tools/list", json!({})).await.unwrap();
    let alive = |host: SocketAddr| http_client().get(format!("http://{host}/healthz")).send();
    assert_eq!(alive(listen.parse().unwrap()).await.unwrap().status(), 200);
    child.kill().await.unwrap();
    drop(foreign);
    // Control: with the address free there is a link, and the gate has both.
    let (mut said, _child) = serve();
    next_with(&mut said, "/#code=").await;
    assert_eq!(alive(taken).await.unwrap().status(), 200);
    assert!(TcpListener::bind(taken).await.is_err());
}

/// Returns the next line with these words.
async fn next_with(said: &mut Lines<BufReader<ChildStdout>>, words: &str) -> String {
    loop {
        let line = said.next_line().await.unwrap().expect("another line");
        if line.contains(words) {
            return line;
        }
    }
}

#[tokio::test]
async fn a_missing_config_and_every_fault_of_one_are_reported_at_start() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), ["serve", "--config", "nowhere.json"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("nowhere.json"), "{}", stderr(&output));

    let text = r#"{
  "listen": 7420,
  "tools_limit": "many",
  "mcpSevers": {},
  "mcpServers": {
    "a": {"command": "x", "url": "http://127.0.0.1:1"},
    "b": {"comand": "x"}
  }
}"#;
    std::fs::write(dir.path().join("wrong.json"), text).unwrap();
    for command in [&["serve"][..], &["config", "check"], &["mcp"], &["tools", "list"]] {
        let args = command.iter().copied().chain(["--config", "wrong.json"]);
        let output = run(dir.path(), args).await;
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let words = stderr(&output);
        for place in ["line 2", "line 3", "line 4", "line 6", "line 7"] {
            assert!(words.contains(place), "{command:?}: no {place} in {words}");
        }
        assert!(words.contains("mcpServers") && words.contains("command"), "{words}");
    }
}

#[tokio::test]
async fn a_key_file_that_others_can_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("api-key"), "csk_known\n").unwrap();
    std::fs::set_permissions(home.join("api-key"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let output = run(dir.path(), ["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("chmod 600"), "{}", stderr(&output));
    assert_eq!(mode(&home), 0o700, "an open home is closed");
}

#[tokio::test]
async fn on_sigterm_running_calls_finish_new_ones_are_refused_and_the_exit_is_clean() {
    let files = tempfile::tempdir().unwrap();
    let (log, go) = (files.path().join("log"), files.path().join("go"));
    let work = json!({"name": "work", "x-do": {"work": {"log": log, "until": go}}});
    let gate = Gate::scripted(json!([work, {"name": "echo"}])).await;
    let call = |tool: &str| json!({"name": format!("s:{tool}"), "intent_operation_type": "write"});
    let (stdio, http) = (gate.stdio().await, gate.http().await);
    let socket = gate.home().join("control.sock");
    let at_work = || std::fs::read_to_string(&log).is_ok_and(|text| text.lines().count() == 2);
    let stopping = async {
        eventually(|| async { at_work().then_some(()) }).await;
        gate.stop().await
    };
    let going_on = async {
        eventually(|| async {
            let refused = http.call("call_tool_write", call("echo")).await;
            let code = &testkit::client::refusal(&refused)["code"];
            (code == "SHUTTING_DOWN").then_some(())
        })
        .await;
        std::fs::write(&go, "").unwrap();
    };
    let (exit, (), by_stdio, by_http) = tokio::join!(
        stopping,
        going_on,
        stdio.call("call_tool_write", call("work")),
        http.call("call_tool_write", call("work")),
    );
    for result in [by_stdio, by_http] {
        assert_ne!(result["isError"], true, "{result}");
    }
    assert_eq!(exit, Some(0));
    assert!(!socket.exists());
}

#[tokio::test]
async fn the_control_socket_wants_a_token_too() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let gate = Gate::scripted(json!([])).await;
    for (path, token, expected) in [
        ("/api/v1/status", "wrong".to_owned(), "401"),
        ("/api/v1/status", gate.secret("agent-token"), "403"),
        ("/api/v1/status", gate.secret("api-key"), "200"),
        ("/mcp/lines", "wrong".to_owned(), "401"),
        ("/mcp/lines", gate.secret("agent-token"), "426"),
    ] {
        let mut stream =
            tokio::net::UnixStream::connect(gate.home().join("control.sock")).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{path} {token}: {answer}");
    }
}
