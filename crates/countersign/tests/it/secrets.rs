//! `countersign secret` and `${secret:NAME}`: servers get the values, and nothing else has them but
//! the encrypted file.

mod command;
mod keychain;

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::{PATIENCE, two_keys};
use testkit::gate::Gate;
use testkit::program::{program, stderr, stdout};
use testkit::upstream::scripted;
use testkit::wait::eventually;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;

/// Values that nothing but the vault marks as secrets.
const PLANTED: [&str; 3] = ["tuesday-lunch", "wednesday-lunch", "thursday-lunch"];

/// Runs `countersign secret` with the config of a folder.
async fn secret(dir: &Path, args: &[&str], input: &str) -> Output {
    finished(
        program(dir).arg("--config").arg(dir.join("config.json")).arg("secret").args(args),
        input,
    )
    .await
}

async fn finished(command: &mut Command, input: &str) -> Output {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    // A command that takes no value does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes()).await;
    tokio::time::timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap()
}

async fn set(dir: &Path, name: &str, value: &str) -> Output {
    let output = secret(dir, &["set", name], value).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    output
}

async fn list(dir: &Path) -> Value {
    let output = secret(dir, &["list", "-o", "json"], "").await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

fn config(dir: &Path, config: &Value) {
    std::fs::write(dir.join("config.json"), config.to_string()).unwrap();
}

/// Returns a server that says on stderr and in a file what it was given, and then works.
fn talkative(dir: &Path, name: &str) -> Value {
    let tools = json!([{"name": "echo", "annotations": {"readOnlyHint": true}}]);
    let server = scripted(dir, name, &tools);
    let note = r#"echo "$API_TOKEN $1" > "$0"; echo "using $API_TOKEN $1" >&2; shift; exec "$@""#;
    json!({
        "command": "sh",
        "args": ["-c", note, dir.join("told"), "--pin=${secret:pin}", server["command"],
            server["args"][0]],
        "env": {"API_TOKEN": "${secret:TOKEN}"},
    })
}

async fn told(dir: &Path) -> String {
    let file = dir.join("told");
    let told = eventually(|| async {
        std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'))
    })
    .await;
    std::fs::remove_file(file).unwrap();
    told
}

/// Returns the value of the header that the next request to a listener has.
async fn authorization(listener: &TcpListener) -> String {
    let (stream, _) = tokio::time::timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let mut lines = BufReader::new(stream).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("the header is sent");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("authorization: ") {
            return line[line.len() - value.len()..].to_owned();
        }
    }
}

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(below).collect()
}

fn assert_clean(what: &str, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    for planted in PLANTED {
        assert!(!text.contains(planted), "{what} has '{planted}': {text}");
    }
}

#[tokio::test]
async fn a_server_waits_for_its_secrets_and_gets_them_by_env_argument_and_header() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let remote = json!({"url": url, "headers": {"Authorization": "Bearer ${secret:TOKEN}"}});
    let servers = |dir: &Path| json!({"n": talkative(dir, "n"), "h": remote});
    let gate = Gate::start(servers, json!({})).await;
    let dir = gate.dir.path();
    let says =
        |words: &'static str| move |server: &Value| server["error"].to_string().contains(words);
    let missing = "secret 'TOKEN' is not set: run 'countersign secret set TOKEN'";
    gate.server_when("n", says(missing)).await;
    gate.server_when("h", says(missing)).await;
    let output = set(dir, "TOKEN", "tuesday-lunch\n").await;
    assert_eq!(stdout(&output), "secret 'TOKEN' is set; its key is in a file of the home\n");
    assert!(stderr(&output).contains("countersign upstream restart n"), "{}", stderr(&output));
    // Nothing has to be restarted for a secret that was missing.
    gate.server_when("n", says("secret 'pin' is not set")).await;
    set(dir, "pin", "wednesday-lunch").await;
    assert_eq!(told(dir).await, "tuesday-lunch --pin=wednesday-lunch\n");
    assert_eq!(authorization(&listener).await, "Bearer tuesday-lunch");
    gate.ready("n").await;
    // A changed one applies to the next connection.
    set(dir, "TOKEN", "thursday-lunch").await;
    assert!(!dir.join("told").exists());
    let output = gate.cli(&["upstream", "restart", "n"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(told(dir).await, "thursday-lunch --pin=wednesday-lunch\n");
}

#[tokio::test]
async fn planted_secrets_are_nowhere_but_encrypted() {
    let dir = tempfile::tempdir().unwrap();
    config(dir.path(), &json!({"mcpServers": {"n": talkative(dir.path(), "n")}}));
    set(dir.path(), "TOKEN", PLANTED[0]).await;
    set(dir.path(), "pin", PLANTED[1]).await;
    set(dir.path(), "unused", PLANTED[2]).await;
    let mut gate = Gate::open(dir).await;
    told(gate.dir.path()).await;
    gate.ready("n").await;
    let client = gate.http().await;
    // A server may hand out what it was given; an agent may say what it should not know.
    let mut call = two_keys("read", "n:echo", json!({"text": format!("it is {}", PLANTED[0])}));
    call["arguments"]["intent"]["reason"] = json!(PLANTED[1]);
    let answer = client.request("tools/call", call).await.unwrap();
    assert!(
        answer.to_string().contains(PLANTED[0]),
        "the caller gets the answer as it is: {answer}"
    );
    eventually(|| async {
        let logs = stdout(&gate.cli(&["upstream", "logs", "n"]).await);
        logs.contains("using [redacted] --pin=[redacted]").then_some(())
    })
    .await;
    for args in [
        &["upstream", "list", "-o", "json"][..],
        &["upstream", "get", "n", "-o", "json"],
        &["upstream", "get", "n"],
        &["upstream", "logs", "n"],
        &["activity", "list", "-o", "json"],
        &["activity", "export", "--format", "jsonl"],
        &["activity", "export", "--format", "csv"],
        &["receipt", "export"],
    ] {
        let output = gate.cli(args).await;
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
        assert_clean(&format!("{args:?}"), &[output.stdout, output.stderr].concat());
    }
    for path in ["servers", "servers/n", "servers/n/logs", "servers/n/review", "status", "activity"]
    {
        let (status, answer) = gate.rest(Method::GET, &format!("/api/v1/{path}"), None).await;
        assert_eq!(status, 200, "{path}: {answer}");
        assert_clean(path, answer.to_string().as_bytes());
    }
    let config = gate.config_file();
    let shown = testkit::program::run(
        gate.dir.path(),
        ["--config".as_ref(), config.as_os_str(), "config".as_ref(), "show".as_ref()],
    )
    .await;
    assert!(stdout(&shown).contains("${secret:TOKEN}"), "{}", stdout(&shown));
    assert_clean("config show", &shown.stdout);
    let listed = secret(gate.dir.path(), &["list", "-o", "yaml"], "").await;
    assert_clean("secret list", &listed.stdout);
    gate.end().await;
    assert_clean("the log", gate.log().as_bytes());
    let files = files(&gate.home());
    assert!(files.iter().any(|file| file.ends_with("secrets/vault.json")), "{files:?}");
    for file in files {
        assert_clean(&file.display().to_string(), &std::fs::read(&file).unwrap_or_default());
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn only_the_server_s_own_command_line_shows_a_secret_argument() {
    let dir = tempfile::tempdir().unwrap();
    let tools = json!([{"name": "echo", "annotations": {"readOnlyHint": true}}]);
    let server = scripted(dir.path(), "n", &tools);
    let note = r#"cat /proc/$PPID/cmdline /dev/null > "$0.above"; cat /proc/$$/cmdline > "$0.own"
        env > "$0.env"; shift; exec "$@""#;
    let server = json!({"command": "sh", "args": ["-c", note, dir.path().join("lines"),
        "--pin=${secret:pin}", server["command"], server["args"][0]]});
    config(dir.path(), &json!({"mcpServers": {"n": server}}));
    set(dir.path(), "pin", PLANTED[1]).await;
    let checked = testkit::program::run(dir.path(), ["config", "check", "--config", "config.json"]);
    let checked = stdout(&checked.await);
    assert!(checked.contains("a secret in an argument is visible to every user"), "{checked}");
    let checked = testkit::program::run(dir.path(), ["doctor", "--config", "config.json"]);
    let checked = stdout(&checked.await);
    assert!(checked.contains("a secret in an argument is visible to every user"), "{checked}");
    let mut gate = Gate::open(dir).await;
    gate.ready("n").await;
    let text = |name: &str| std::fs::read_to_string(gate.dir.path().join(name)).unwrap();
    assert!(text("lines.own").contains(PLANTED[1]), "the server was given it as an argument");
    let above = text("lines.above");
    assert!(above.contains("supervise"), "{above}");
    assert_clean("the supervisor's command line", above.as_bytes());
    assert!(
        !text("lines.env").contains("COUNTERSIGN_ARGUMENT"),
        "the server inherits none of them"
    );
    gate.end().await;
    let add = ["upstream", "add", "n", "--", "x", "--token", "${secret:pin}"];
    let added = stderr(&testkit::program::run(gate.dir.path(), add).await);
    assert!(added.contains("a secret in an argument is visible to every user"), "{added}");
}

#[tokio::test]
async fn a_server_that_repeats_its_secret_in_an_error_is_not_quoted() {
    let dir = tempfile::tempdir().unwrap();
    let answer = r#"read -r line
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"bad token %s"}}\n' "$id" "$T"
        cat > /dev/null"#;
    let server = json!({"command": "sh", "args": ["-c", answer], "env": {"T": "${secret:TOKEN}"}});
    config(dir.path(), &json!({"mcpServers": {"n": server}}));
    set(dir.path(), "TOKEN", PLANTED[0]).await;
    let gate = Gate::open(dir).await;
    let says = |server: &Value| server["error"].to_string().contains("bad token [redacted]");
    gate.server_when("n", says).await;
    assert_clean("the log", gate.log().as_bytes());
}

#[tokio::test]
async fn a_list_names_secrets_and_their_users_and_no_values() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    config(
        dir,
        &json!({"mcpServers": {
            "a": {"command": "x", "env": {"T": "${secret:both}", "U": "${secret:absent}"}},
            "b": {"url": "https://h.example/${secret:both}/mcp"},
        }}),
    );
    let used = json!([
        {"name": "absent", "set_at": null, "used_by": ["a"]},
        {"name": "both", "set_at": null, "used_by": ["a", "b"]},
    ]);
    assert_eq!(list(dir).await, json!({"key": null, "secrets": used}));
    assert!(!dir.join("home").exists(), "looking makes nothing");
    set(dir, "both", PLANTED[0]).await;
    set(dir, "spare", PLANTED[1]).await;
    let listed = list(dir).await;
    let names = listed["secrets"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["both", "spare", "absent"]);
    assert_eq!(listed["key"], "file");
    assert!(listed["secrets"][0]["set_at"].as_str().unwrap().starts_with("20"), "{listed}");
    let table = stdout(&secret(dir, &["list"], "").await);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].starts_with("both") && lines[1].ends_with("a, b"), "{table}");
    assert!(lines[3].contains("not set"), "{table}");
    assert_clean("the table", table.as_bytes());

    let output = secret(dir, &["remove", "both"], "").await;
    assert_eq!(stdout(&output), "removed secret 'both'\n");
    assert!(
        stderr(&output).contains("'a' uses it, and cannot be connected"),
        "{}",
        stderr(&output)
    );
    let output = secret(dir, &["remove", "both"], "").await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("NOT_FOUND: secret 'both' is not set"), "{}", stderr(&output));
    assert!(secret(dir, &["remove", "spare"], "").await.status.success());
    assert_eq!(list(dir).await["key"], Value::Null, "the key goes with the last secret");
}

/// Runs `secret set TYPED` on a terminal and types at its prompt; returns what the terminal showed.
#[cfg(target_os = "linux")]
async fn typed(dir: &Path, keys: &str) -> String {
    let words = format!(
        "{} --config {} secret set TYPED",
        testkit::program::countersign().display(),
        dir.join("config.json").display()
    );
    let mut terminal = testkit::program::command(Path::new("script"), dir);
    terminal.args(["--quiet", "--return", "--command", &words, "/dev/null"]);
    let mut child = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut shown = Vec::new();
    let prompt = async {
        while !shown.ends_with(b"(not shown): ") {
            shown.push(output.read_u8().await.unwrap());
        }
    };
    tokio::time::timeout(PATIENCE, prompt).await.unwrap();
    child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).await.unwrap();
    let rest = async {
        output.read_to_end(&mut shown).await.unwrap();
        child.wait().await.unwrap()
    };
    tokio::time::timeout(PATIENCE, rest).await.unwrap();
    String::from_utf8(shown).unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_typed_value_is_not_shown() {
    if !testkit::foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    config(dir, &json!({}));
    let shown = typed(dir, "\u{3}").await;
    assert!(shown.contains("nothing was set"), "{shown}");
    assert_eq!(list(dir).await["secrets"], json!([]));
    let shown = typed(dir, "tuesday-lunch\r").await;
    assert!(shown.contains("secret 'TYPED' is set"), "{shown}");
    assert_clean("the terminal", shown.as_bytes());
    assert_eq!(list(dir).await["secrets"][0]["name"], "TYPED");
}

#[tokio::test]
async fn wrong_input_stores_nothing_and_repeats_no_value() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    config(dir, &json!({}));
    let large = "x".repeat(64 * 1024 + 1);
    for (args, input, says) in [
        (&["set", "A"][..], "", "the value of 'A' is empty"),
        (&["set", "A"], "\n", "the value of 'A' is empty"),
        (&["set", "A"], "tuesday-lunch\0", "has a NUL character"),
        (&["set", "A"], &large, "must have 1 to 65536 bytes"),
        (&["set", "a b"], "tuesday-lunch", "use up to 100 letters"),
        (&["set", "../a"], "tuesday-lunch", "use up to 100 letters"),
        (&["set", "A", "--value", "x"], "", "unexpected argument"),
        (&["set", "A", "x"], "", "unexpected argument"),
    ] {
        let output = secret(dir, args, input).await;
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains(says), "{args:?}: {}", stderr(&output));
        assert_clean("the message", &output.stderr);
    }
    assert_eq!(list(dir).await, json!({"key": null, "secrets": []}));
}

#[tokio::test]
async fn a_damaged_file_stops_its_servers_and_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let plain = scripted(dir.path(), "p", &json!([{"name": "echo"}]));
    config(dir.path(), &json!({"mcpServers": {"n": talkative(dir.path(), "n"), "p": plain}}));
    set(dir.path(), "TOKEN", PLANTED[0]).await;
    let file = dir.path().join("home/secrets/vault.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    let gate = Gate::open(dir).await;
    let says = |server: &Value| server["error"].to_string().contains("are damaged");
    gate.server_when("n", says).await;
    gate.ready("p").await;
    let output = secret(gate.dir.path(), &["set", "pin"], PLANTED[1]).await;
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("SECRETS_UNAVAILABLE: the secrets in"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), &text[..text.len() / 2]);
    // The gate continues as soon as the file is restored.
    std::fs::write(&file, &text).unwrap();
    set(gate.dir.path(), "pin", PLANTED[1]).await;
    gate.ready("n").await;
}

#[tokio::test]
async fn smoke_an_added_server_keeps_the_reference() {
    let gate = Gate::start(|_| json!({}), json!({})).await;
    let dir = gate.dir.path();
    let note = r#"echo "$T" > "$0"; exec cat > /dev/null"#;
    let file = dir.join("told");
    let add = ["upstream", "add", "n", "--env", "T=${secret:TOKEN}", "--", "sh", "-c", note];
    let output = gate.cli(&[&add[..], &[file.to_str().unwrap()]].concat()).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!gate.home().join("secrets.json").exists());
    assert_eq!(list(dir).await["secrets"][0]["used_by"], json!(["n"]));
    set(dir, "TOKEN", PLANTED[0]).await;
    gate.cli(&["upstream", "approve", "n", "--yes"]).await;
    assert_eq!(told(dir).await, "tuesday-lunch\n");
}
