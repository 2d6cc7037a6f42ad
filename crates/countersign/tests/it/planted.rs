//! Secrets of 86 families, planted in 29 places where text enters the gate: no byte of the home, no
//! export, no log line, no span and no answer of the API may hold one. Words in the same places are
//! found, so the search would find a secret.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::two_keys;
use testkit::gate::{Gate, http_client};
use testkit::otlp::Collector;
use testkit::planted::{Planted, planted};
use testkit::program::{run, stderr, stdout};
use testkit::wait::eventually;

use crate::events::{connect, frame, hook, send_frame};
use crate::ledger::records_when;
use crate::wrap::{words, wrapped};

/// The places in which a text enters the gate.
#[derive(Clone, Copy, Debug)]
enum Place {
    Argument,
    Item,
    ArgumentName,
    NestedName,
    Address,
    Reason,
    RequestId,
    ToolUseId,
    TraceState,
    Client,
    ResultText,
    ResultValue,
    ResultName,
    ErrorResult,
    ErrorMessage,
    Stderr,
    UnknownTool,
    UnknownServer,
    WholeName,
    UnknownParameter,
    WrongValue,
    Resource,
    Prompt,
    PromptArgument,
    HookTool,
    HookSession,
    HookInput,
    FrameIdentity,
    FrameError,
}

impl Place {
    const ALL: [Place; 29] = [
        Place::Argument,
        Place::Item,
        Place::ArgumentName,
        Place::NestedName,
        Place::Address,
        Place::Reason,
        Place::RequestId,
        Place::ToolUseId,
        Place::TraceState,
        Place::Client,
        Place::ResultText,
        Place::ResultValue,
        Place::ResultName,
        Place::ErrorResult,
        Place::ErrorMessage,
        Place::Stderr,
        Place::UnknownTool,
        Place::UnknownServer,
        Place::WholeName,
        Place::UnknownParameter,
        Place::WrongValue,
        Place::Resource,
        Place::Prompt,
        Place::PromptArgument,
        Place::HookTool,
        Place::HookSession,
        Place::HookInput,
        Place::FrameIdentity,
        Place::FrameError,
    ];

    /// Returns a word that is found again if it is kept.
    fn word(self) -> String {
        format!("ordinary-{self:?}-word")
    }
}

/// A text for each place: a unique word, or the same secret everywhere.
enum Seed<'a> {
    Word,
    Secret(&'a Planted),
}

impl Seed<'_> {
    fn at(&self, place: Place) -> String {
        match self {
            Seed::Word => place.word(),
            Seed::Secret(planted) => planted.written.clone(),
        }
    }

    /// Returns the text in pieces too short to be found.
    fn pieces(&self, place: Place) -> Vec<String> {
        // A line on stderr is all that a server says at once.
        let text = match place {
            Place::Stderr => self.at(place).replace('\n', "\\n"),
            _ => self.at(place),
        };
        let text: Vec<char> = text.chars().collect();
        text.chunks(5).map(|piece| piece.iter().collect()).collect()
    }
}

fn script() -> Value {
    let read = json!({"readOnlyHint": true});
    json!({
        "tools": [
            {"name": "echo", "annotations": read},
            {"name": "mirror", "annotations": read, "x-do": "mirror"},
            {"name": "closed", "annotations": read, "inputSchema": {"type": "object",
                "properties": {"count": {"type": "integer"}}, "additionalProperties": false}},
        ],
        "prompts": [{"name": "p"}],
        "resources": [{"uri": "test://r", "name": "r"}],
    })
}

/// Names the secrets of which the text has at least the end.
fn found(planted: &[Planted], text: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(text);
    let end = |core: &str| core[core.len() - 12..].to_owned();
    let found = planted.iter().filter(|planted| text.contains(&end(&planted.core)));
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
    let keys = ["api-key", "agent-token"];
    for file in files(home).iter().filter(|file| !keys.iter().any(|key| file.ends_with(key))) {
        // A file may vanish: a journal is replaced.
        let text = std::fs::read(file).unwrap_or_default();
        let leaked = found(planted, &text);
        assert_eq!(leaked, BTreeSet::new(), "{}: {}", file.display(), around(planted, &text));
    }
}

/// Shows the text around the first secret, to tell which place kept it.
fn around(planted: &[Planted], text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let ends = planted.iter().map(|planted| &planted.core[planted.core.len() - 12..]);
    let places = ends.filter_map(|end| text.find(end));
    let shown = |at: usize| {
        let start = text.floor_char_boundary(at.saturating_sub(600));
        text[start..text.floor_char_boundary(at + 100)].to_owned()
    };
    places.map(shown).next().unwrap_or_default()
}

/// One client's session with a view, over plain HTTP.
struct Session {
    web: reqwest::Client,
    url: String,
    token: String,
    id: Option<String>,
}

impl Session {
    async fn open(gate: &Gate, path: &str, client: &str) -> Session {
        let url = format!("http://{}{path}", gate.address);
        let token = gate.secret("agent-token");
        let mut session = Session { web: http_client(), url, token, id: None };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": client, "version": client}});
        let answer = session.send(json!("hello"), "initialize", hello).await;
        let id = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        session.id = Some(id);
        session.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        session
    }

    async fn post(&self, message: Value) -> reqwest::Response {
        let request = self.web.post(&self.url).bearer_auth(&self.token).body(message.to_string());
        let request = request.header("content-type", "application/json");
        let mut request = request.header("accept", "application/json, text/event-stream");
        if let Some(id) = &self.id {
            request = request.header("mcp-session-id", id);
        }
        request.send().await.unwrap()
    }

    async fn send(&self, id: Value, method: &str, params: Value) -> reqwest::Response {
        self.post(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await
    }

    async fn ask(&self, method: &str, params: Value) -> String {
        self.send(json!(1), method, params).await.text().await.unwrap()
    }

    async fn call(&self, tool: &str, args: Value) -> String {
        self.ask("tools/call", two_keys("read", tool, args)).await
    }
}

/// The number of calls of `plant_seed` that the gate records, whatever is planted.
const CALLS: usize = 8;

/// Plants a text in every place.
async fn plant_seed(gate: &Gate, seed: &Seed<'_>) {
    let session = Session::open(gate, "/mcp", &seed.at(Place::Client)).await;
    say_all(&session, seed).await;
    let mirrored = json!({"text": seed.pieces(Place::ResultText),
        "value": seed.pieces(Place::ResultValue), "name": seed.pieces(Place::ResultName),
        "stderr": seed.pieces(Place::Stderr)});
    session.call("s:mirror", mirrored).await;
    let error = json!({"text": seed.pieces(Place::ErrorResult), "is_error": true});
    session.call("s:mirror", error).await;
    let error = json!({"error": seed.pieces(Place::ErrorMessage)});
    session.call("s:mirror", error).await;
    session.call(&format!("s:{}", seed.at(Place::UnknownTool)), json!({})).await;
    session.call(&format!("{}:t", seed.at(Place::UnknownServer)), json!({})).await;
    let whole = seed.at(Place::WholeName);
    let whole = if whole.contains(':') { whole } else { format!("x:{whole}") };
    session.call(&whole, json!({})).await;
    let refused = session.call("s:closed", json!({seed.at(Place::UnknownParameter): 1})).await;
    assert!(refused.contains("INVALID_ARGUMENTS"), "{refused}");
    session.call("s:closed", json!({"count": seed.at(Place::WrongValue)})).await;

    let session = Session::open(gate, "/mcp/s/s", "planter").await;
    session.ask("resources/read", json!({"uri": seed.at(Place::Resource)})).await;
    let arguments = json!({"note": seed.at(Place::PromptArgument)});
    let prompt = json!({"name": seed.at(Place::Prompt), "arguments": arguments});
    session.ask("prompts/get", prompt).await;

    let identity = seed.at(Place::FrameIdentity);
    let members = json!({"issuer_name": identity, "issuer_model": identity, "operator_id": identity,
        "agent_id": identity, "agent_type": identity, "correlation_id": identity,
        "idempotency_key": identity, "error": seed.at(Place::FrameError)});
    send_frame(&mut connect(gate).await, &frame("planted", members)).await;
    send_hook(gate.dir.path(), seed).await;
}

/// Makes a call with a text in every part of its request.
async fn say_all(session: &Session, seed: &Seed<'_>) {
    let url = match seed {
        Seed::Word => format!("https://h.example/{}", Place::Address.word()),
        Seed::Secret(Planted { core, .. }) => format!("https://u:{core}@h.example/x?token={core}"),
    };
    let args = json!({"note": seed.at(Place::Argument), "list": [[seed.at(Place::Item)]],
        seed.at(Place::ArgumentName): 1, "nested": {seed.at(Place::NestedName): [1]}, "url": url});
    let mut call = two_keys("read", "s:echo", args);
    call["arguments"]["intent"]["reason"] = seed.at(Place::Reason).into();
    call["_meta"] = json!({"claudecode/toolUseId": seed.at(Place::ToolUseId),
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "tracestate": format!("vendor={}", seed.at(Place::TraceState))});
    let answer = session.send(seed.at(Place::RequestId).into(), "tools/call", call).await;
    let answer = answer.text().await.unwrap();
    assert!(answer.contains("content"), "{answer}");
}

async fn send_hook(dir: &Path, seed: &Seed<'_>) {
    let (session, input) = (seed.at(Place::HookSession), seed.at(Place::HookInput));
    let event = json!({"hook_event_name": "PostToolUse", "session_id": session, "cwd": "/srv",
        "tool_name": seed.at(Place::HookTool), "tool_input": {"command": input, "file_path": input},
        "tool_response": {"stdout": input}, "error": input, "tool_use_id": input});
    let output = hook(dir, event.to_string().as_bytes()).await;
    assert_eq!(output.status.code(), Some(0));
}

/// Returns the events of every change of the ledger so far, up to this record.
async fn event_stream(gate: &Gate, last: &str) -> Vec<u8> {
    let url = format!("http://{}/api/v1/events", gate.address);
    let request = http_client().get(url).bearer_auth(gate.secret("api-key"));
    let mut response = request.header("last-event-id", "0").send().await.unwrap();
    let mut events = Vec::new();
    while !String::from_utf8_lossy(&events).contains(last) {
        events.extend(response.chunk().await.unwrap().expect("the stream goes on"));
    }
    events
}

/// Returns everything that shows what was kept.
async fn answers(gate: &Gate, kept: &[Value]) -> Vec<(String, Vec<u8>)> {
    let mut answers = vec![("the log".to_owned(), gate.log().into_bytes())];
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    let last = kept.iter().map(id).max().unwrap();
    answers.push(("events".to_owned(), event_stream(gate, &last).await));
    let fixed = [
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
        "agents",
        "targets/coverage",
    ];
    let records = kept.iter().map(|record| format!("activity/{}", id(record)));
    for path in fixed.map(str::to_owned).into_iter().chain(records) {
        let (status, answer) = gate.rest(Method::GET, &format!("/api/v1/{path}"), None).await;
        assert!(status < 500, "{path}: {answer}");
        answers.push((path, answer.to_string().into_bytes()));
    }
    let metrics = http_client().get(format!("http://{}/metrics", gate.address));
    let metrics = metrics.bearer_auth(gate.secret("api-key")).send().await.unwrap();
    answers.push(("metrics".to_owned(), metrics.bytes().await.unwrap().to_vec()));
    for args in [
        &["upstream", "logs", "s", "-n", "1000"][..],
        &["activity", "export"],
        &["activity", "export", "--format", "csv"],
        &["activity", "list", "--limit", "500"],
        &["activity", "list", "-o", "json", "--limit", "500"],
        &["activity", "show", &last],
        &["activity", "summary"],
        &["contention"],
        &["receipt", "list"],
        &["receipt", "export"],
        &["upstream", "list", "-o", "json"],
    ] {
        let output = gate.cli(args).await;
        answers.push((args.join(" "), [output.stdout, output.stderr].concat()));
    }
    answers
}

/// A key that the operator has chosen, which only its file gives away.
const OWN_KEY: &str = "tuesday-lunch-with-ada";

/// Puts that key into the home below a folder.
fn put_own_key(dir: &Path) {
    let home = dir.join("home");
    std::fs::create_dir(&home).unwrap();
    let key = home.join("api-key");
    std::fs::write(&key, OWN_KEY).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn own_key() -> Planted {
    Planted { written: OWN_KEY.to_owned(), core: OWN_KEY.to_owned() }
}

async fn open(collector: &Collector) -> Gate {
    let dir = tempfile::tempdir().unwrap();
    let server = testkit::upstream::scripted(dir.path(), "s", &script());
    let config = json!({"mcpServers": {"s": server}, "search": {"learned": false}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    put_own_key(dir.path());
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str());
    let gate =
        Gate::open_with(dir, |command| command.envs([endpoint, ("OTEL_BSP_SCHEDULE_DELAY", "50")]));
    let gate = gate.await;
    gate.ready("s").await;
    gate
}

#[tokio::test]
async fn secrets_of_86_families_in_29_places_are_kept_nowhere() {
    let collector = Collector::grpc().await;
    let mut gate = open(&collector).await;
    let mut planted = planted();
    planted.push(own_key());
    let token = gate.secret("agent-token");
    planted.push(Planted { written: token.clone(), core: token });
    plant_seed(&gate, &Seed::Word).await;
    for planted in &planted {
        plant_seed(&gate, &Seed::Secret(planted)).await;
    }
    let seeds = planted.len() + 1;
    let kept = records_when(&gate.home(), |records| {
        let of = |source: &str| records.iter().filter(|it| it["source"] == source).count();
        of("hook") == seeds && of("socket") == seeds
    })
    .await;
    assert!(kept.len() >= (CALLS + 2) * seeds, "{} records of {seeds} seeds", kept.len());
    eventually(|| async {
        let output = gate.cli(&["upstream", "logs", "s", "-n", "1000"]).await;
        (stdout(&output).lines().count() > planted.len()).then_some(())
    })
    .await;
    let spans = collector.spans(planted.len()).await.len();
    assert!(spans > 0, "the collector takes spans");
    assert_clean_home(&planted, &gate.home());
    let mut answers = answers(&gate, &kept).await;
    answers.push(("spans".to_owned(), collector.text().into_bytes()));
    for (what, text) in &answers {
        assert_eq!(found(&planted, text), BTreeSet::new(), "{what}");
    }
    assert_words_are_found(&gate.home(), &answers);
    gate.end().await;
    for planted in &planted {
        send_hook(gate.dir.path(), &Seed::Secret(planted)).await;
    }
    assert_clean_home(&planted, &gate.home());
    let output = run(gate.dir.path(), ["receipt", "verify"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
}

/// Fails if a word was not kept: then its place shows nothing, whatever is planted there.
fn assert_words_are_found(home: &Path, answers: &[(String, Vec<u8>)]) {
    let files = files(home)
        .into_iter()
        .map(|file| (file.display().to_string(), std::fs::read(file).unwrap_or_default()));
    let outputs: Vec<(String, String)> = files
        .chain(answers.iter().cloned())
        .map(|(what, text)| (what, String::from_utf8_lossy(&text).into_owned()))
        .collect();
    let has = |text: &str, what: &str| {
        outputs.iter().any(|(name, output)| name.ends_with(what) && output.contains(text))
    };
    for place in Place::ALL {
        assert!(has(&place.word(), ""), "{place:?}");
    }
    for (what, place) in [
        ("the log", Place::UnknownTool),
        ("events", Place::Reason),
        ("ledger.db", Place::ArgumentName),
        ("spans", Place::TraceState),
        ("spans", Place::RequestId),
        ("spans", Place::UnknownTool),
        ("receipt export", Place::FrameIdentity),
        ("activity export", Place::UnknownServer),
        ("activity export --format csv", Place::WholeName),
        ("upstream logs s -n 1000", Place::Stderr),
    ] {
        assert!(has(&place.word(), what), "{place:?} in {what}");
    }
}

/// A step's command prints the secrets: later steps may use its output, but nothing keeps them.
#[tokio::test]
async fn smoke_the_output_of_a_workflow_keeps_no_secret() {
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

/// Returns the files of a home that have a text in them.
fn holders(home: &Path, text: &str) -> usize {
    let has_it = |file: &PathBuf| {
        let bytes = std::fs::read(file).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(text)
    };
    files(home).iter().filter(|file| has_it(file)).count()
}

#[tokio::test]
async fn a_key_that_the_operator_chose_is_hidden_by_wrap_too() {
    let dir = tempfile::tempdir().unwrap();
    put_own_key(dir.path());
    let home = dir.path().join("home");
    let server = testkit::upstream::scripted(dir.path(), "s", &script());
    let mut wire = wrapped(dir.path(), "s", &words(&server));
    wire.greet().await;
    let pieces = Seed::Secret(&own_key()).pieces(Place::ResultText);
    for (id, tool, args) in [
        ("echo", "echo", json!({"note": OWN_KEY, OWN_KEY: [OWN_KEY], "word": "kept-as-it-is"})),
        ("mirror", "mirror", json!({"text": pieces, "stderr": pieces})),
        ("unknown", OWN_KEY, json!({})),
    ] {
        wire.call(id, tool, args).await;
    }
    wire.close();
    wire.ended().await;
    records_when(&home, |records| records.len() == 3).await;
    assert_clean_home(&[own_key()], &home);
    assert!(holders(&home, "kept-as-it-is") > 0 && holders(&home, "[redacted") > 0);
}

#[tokio::test]
async fn a_key_that_the_operator_chose_is_hidden_by_run_too() {
    let dir = tempfile::tempdir().unwrap();
    put_own_key(dir.path());
    std::fs::create_dir(dir.path().join("work")).unwrap();
    let told = format!("it is {OWN_KEY}, and kept-as-it-is\n");
    std::fs::write(dir.path().join("work/secrets.txt"), told).unwrap();
    let flow = json!({"name": "flow", "states": {
        "initial": "show",
        "show": {"type": "step", "dir": "work", "command": format!("cat secrets.txt; echo {OWN_KEY} >&2"),
                 "on_success": "done"},
        "done": {"type": "terminal", "status": "success"},
    }});
    std::fs::write(dir.path().join("flow.yaml"), flow.to_string()).unwrap();
    let output = run(dir.path(), ["run", "flow.yaml", "-o", "json"]).await;
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let home = dir.path().join("home");
    assert_clean_home(&[own_key()], &home);
    assert!(holders(&home, "kept-as-it-is") > 0 && holders(&home, "[redacted") > 0);
}
