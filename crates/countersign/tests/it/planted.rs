//! Sixty secrets of different families, planted wherever text enters the gate: no byte of the home,
//! no export, no log line and no answer of the API may hold one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::two_keys;
use testkit::gate::{Gate, http_client};
use testkit::program::{run, stderr, stdout};
use testkit::wait::eventually;

use crate::events::hook;
use crate::ledger::{records, records_when};

/// A secret as it is found in the wild.
struct Planted {
    /// With what makes it recognizable.
    written: String,
    /// The part that must not be kept.
    core: String,
}

/// Makes text that differs with every call and is the same in every run.
struct Noise(u64);

impl Noise {
    fn of(&mut self, alphabet: &str, length: usize) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        let mut next = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            alphabet[usize::try_from(self.0 >> 33).unwrap() % alphabet.len()]
        };
        // A token without a digit is as rare as it looks.
        let mut text: String = (0..length).map(|_| next()).collect();
        text.replace_range(length - 1.., "7");
        text
    }

    fn word(&mut self, length: usize) -> String {
        self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", length)
    }

    fn hex(&mut self, length: usize) -> String {
        self.of("0123456789abcdef", length)
    }
}

/// `W` stands for letters and digits, `H` for hex digits, followed by their number; the longest of
/// them is the core.
const FORMS: [&str; 60] = [
    "ghp_{W36}",
    "github_pat_{W22}_{W59}",
    "glpat-{W20}",
    "xoxb-123456789012-{W24}",
    "https://hooks.slack.com/services/T0000/B0000/{W24}",
    "sk-proj-{W48}",
    "sk-ant-api03-{W60}",
    "AIza{W35}",
    "GOCSPX-{W28}",
    "ya29.{W60}",
    "sk_live_{W24}",
    "npm_{W36}",
    "pypi-AgEIcHlwaS5vcmc{W80}",
    "hf_{W34}",
    "dop_v1_{H64}",
    "shpat_{H32}",
    "AGE-SECRET-KEY-1{W58}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{W43}",
    "-----BEGIN PRIVATE KEY----- {W64} -----END PRIVATE KEY-----",
    "SG.{W22}.{W43}",
    "hvs.{W24}",
    "hvb.{W100}",
    "s.{W24}",
    "ATATT3{W180}",
    "ntn_{W46}",
    "secret_{W43}",
    "lin_api_{W40}",
    "dp.pt.{W43}",
    "dapi{H32}",
    "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{W27}",
    "https://discord.com/api/webhooks/123456789/{W68}",
    "123456789:AA{W33}",
    "SK{H32}",
    "key-{H32}",
    "abc8Q~{W34}",
    "glsa_{W32}_{H8}",
    "sq0atp-{W22}",
    "HRKU-{W60}",
    "dckr_pat_{W27}",
    "sntryu_{H64}",
    "https://h.example/f?sv=2022&sig={W43}%3D",
    "https://h.example/f?X-Amz-Signature={H64}",
    "https://h.example/f?X-Amz-Security-Token={W60}",
    "https://h.example/f?key={W39}",
    "https://h.example/f?code={W40}",
    "Authorization: Bearer {W40}",
    "Cookie: sessionid={W32}",
    "curl -u bob:{W12} https://h.example",
    "mysql -u root -p{W12} app",
    "psql --password {W12}",
    "[\"--password\", \"{W12}\"]",
    "machine h.example login bob password {W12}",
    "{\"auths\": {\"h.example\": {\"auth\": \"{W24}\"}}}",
    "postgres://bob:{W12}@db.example/app",
    "DB_PASS={W12}",
    "password: {W12}",
    "jwt={W40}",
    "bearer: {W20}",
    "AccountName=a;AccountKey={W86}==",
    "<password>{W12}</password>",
];

fn planted() -> Vec<Planted> {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    FORMS.iter().map(|form| plant(form, &mut noise)).collect()
}

fn plant(form: &str, noise: &mut Noise) -> Planted {
    let (mut written, mut core, mut rest) = (String::new(), String::new(), form);
    while let Some(open) = rest.find("{W").or_else(|| rest.find("{H")) {
        let (before, hole) = (&rest[..open], &rest[open..]);
        let close = hole.find('}').unwrap();
        let length = hole[2..close].parse().unwrap();
        let text = if hole.starts_with("{W") { noise.word(length) } else { noise.hex(length) };
        written.push_str(before);
        written.push_str(&text);
        if text.len() > core.len() {
            core = text;
        }
        rest = &hole[close + 1..];
    }
    Planted { written: written + rest, core }
}

fn tools() -> Value {
    json!([
        {"name": "echo", "annotations": {"readOnlyHint": true}},
        {"name": "fail", "annotations": {"readOnlyHint": true}, "x-do": "fail"},
        {"name": "log", "annotations": {"readOnlyHint": true}, "x-do": "log"},
    ])
}

/// Names the secrets whose core is in the text.
fn found(planted: &[Planted], text: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(text);
    let found = planted.iter().filter(|planted| text.contains(&planted.core));
    found.map(|planted| planted.written.clone()).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .flat_map(|entry| match entry.file_type().unwrap() {
            kind if kind.is_dir() => files(&entry.path()),
            kind if kind.is_file() => vec![entry.path()],
            _ => Vec::new(),
        })
        .collect()
}

fn assert_clean_home(planted: &[Planted], home: &Path) {
    for file in files(home) {
        // A file may vanish: a journal is replaced.
        let text = std::fs::read(&file).unwrap_or_default();
        assert_eq!(found(planted, &text), BTreeSet::new(), "{}", file.display());
    }
}

/// Arguments, results, addresses, errors, stderr and reasons.
async fn call_with(gate: &Gate, planted: &[Planted]) {
    let client = gate.http().await;
    for Planted { written, core } in planted {
        let url = format!("https://u:{core}@h.example/x?token={core}");
        let args = json!({"note": written, "list": [written], "url": url});
        let mut keys = two_keys("read", "s:echo", args);
        keys["arguments"]["intent"]["reason"] = written.as_str().into();
        client.request("tools/call", keys).await.unwrap();
        for tool in ["s:fail", "s:log"] {
            client.two_key_call("read", tool, json!({"message": written})).await;
        }
    }
}

/// Opens a session under each secret as the client's name, and makes a call in it.
async fn name_clients(gate: &Gate, planted: &[Planted]) {
    let (web, url) = (http_client(), format!("http://{}/mcp", gate.address));
    let token = gate.secret("agent-token");
    for Planted { written, .. } in planted {
        let send = async |session: Option<&str>, message: Value| {
            let mut request = web.post(&url).bearer_auth(&token).body(message.to_string());
            request = request.header("content-type", "application/json");
            request = request.header("accept", "application/json, text/event-stream");
            if let Some(session) = session {
                request = request.header("mcp-session-id", session);
            }
            request.send().await.unwrap()
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": written, "version": written}});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
        let answer = send(None, hello).await;
        let session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        send(Some(&session), json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        let params = two_keys("read", "s:echo", json!({}));
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        let answer = send(Some(&session), call).await.text().await.unwrap();
        assert!(answer.contains("content"), "{answer}");
    }
}

async fn send_hooks(dir: &Path, planted: &[Planted]) {
    for Planted { written, .. } in planted {
        let event = json!({"hook_event_name": "PostToolUse", "session_id": written, "cwd": "/srv",
            "tool_name": "Bash", "tool_input": {"command": written, "file_path": written},
            "tool_response": {"stdout": written}, "error": written, "tool_use_id": written});
        let output = hook(dir, event.to_string().as_bytes()).await;
        assert_eq!(output.status.code(), Some(0));
    }
}

/// Returns every answer that shows what was kept.
async fn answers(gate: &Gate) -> Vec<(String, Vec<u8>)> {
    let mut answers = vec![("the log".to_owned(), gate.log().into_bytes())];
    let mut paths: Vec<String> = [
        "activity?limit=500",
        "receipts?limit=500",
        "servers",
        "status",
        "servers/s",
        "servers/s/logs",
        "contention",
        "activity/summary",
        "tools",
        "chains",
    ]
    .map(str::to_owned)
    .into();
    let record = |record: &Value| format!("activity/{}", record["id"].as_str().unwrap());
    paths.extend(records(&gate.home()).iter().map(record));
    for path in paths {
        let (status, answer) = gate.rest(Method::GET, &format!("/api/v1/{path}"), None).await;
        assert!(status < 500, "{path}: {answer}");
        answers.push((path, answer.to_string().into_bytes()));
    }
    for args in [
        &["upstream", "logs", "s", "-n", "1000"][..],
        &["activity", "export"],
        &["activity", "list", "-o", "json", "--limit", "500"],
        &["receipt", "export"],
        &["upstream", "list", "-o", "json"],
    ] {
        let output = gate.cli(args).await;
        answers.push((args.join(" "), [output.stdout, output.stderr].concat()));
    }
    answers
}

#[tokio::test]
async fn sixty_secrets_in_eight_places_are_kept_nowhere() {
    let planted = planted();
    let servers = |dir: &Path| json!({"s": testkit::upstream::scripted(dir, "s", &tools())});
    let mut gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    call_with(&gate, &planted).await;
    name_clients(&gate, &planted).await;
    send_hooks(gate.dir.path(), &planted).await;
    let (of_calls, of_hooks) = (4 * planted.len(), planted.len());
    let kept = records_when(&gate.home(), |records| records.len() == of_calls + of_hooks).await;
    assert!(kept.iter().all(|record| record["receipt"].is_object()), "all are signed");
    eventually(|| async {
        let output = gate.cli(&["upstream", "logs", "s", "-n", "1000"]).await;
        (stdout(&output).lines().count() >= planted.len()).then_some(())
    })
    .await;
    assert_clean_home(&planted, &gate.home());
    for (what, text) in answers(&gate).await {
        assert_eq!(found(&planted, &text), BTreeSet::new(), "{what}");
    }
    assert!(gate.log().contains("echo"), "the log has lines: {}", gate.log());
    gate.end().await;
    send_hooks(gate.dir.path(), &planted).await;
    assert_clean_home(&planted, &gate.home());
    let output = run(gate.dir.path(), ["receipt", "verify"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
}

/// A step's command prints the secrets: later steps may use its output, but nothing keeps them.
#[tokio::test]
async fn the_output_of_a_workflow_keeps_no_secret() {
    let planted = planted();
    let dir = tempfile::tempdir().unwrap();
    let texts: Vec<&str> = planted.iter().map(|planted| planted.written.as_str()).collect();
    std::fs::create_dir(dir.path().join("work")).unwrap();
    std::fs::write(dir.path().join("work/secrets.txt"), texts.join("\n")).unwrap();
    let flow = json!({"name": "flow", "states": {
        "initial": "show",
        "show": {"type": "step", "dir": "work", "command": "cat secrets.txt", "on_success": "fail"},
        "fail": {"type": "step", "dir": "work", "command": "cat secrets.txt >&2; exit 3",
                 "on_success": "done", "on_failure": "done"},
        "done": {"type": "terminal", "status": "success"},
    }});
    std::fs::write(dir.path().join("flow.yaml"), flow.to_string()).unwrap();
    let output = run(dir.path(), ["run", "flow.yaml", "-o", "json"]).await;
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_clean_home(&planted, &dir.path().join("home"));
    let shown = run(dir.path(), ["runs", "list", "-o", "json"]).await;
    let shown: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    let id = shown["runs"][0]["id"].as_str().unwrap();
    let shown = run(dir.path(), ["runs", "show", id, "-o", "json"]).await;
    assert!(stdout(&shown).contains("[redacted"), "the rest is kept: {}", stdout(&shown));
}
