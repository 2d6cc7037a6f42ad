//! Runs of workflows, written by one process and read through another: REST, events, the command
//! line.

use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use store::Store;
use store::run::{RunEnd, RunRecord, RunStatus, StepRecord, StepStatus, StepText};
use testkit::client::PATIENCE;
use testkit::gate::{Gate, http_client};
use testkit::program::{run, stderr, stdout};

use crate::cli::in_both_ways;

pub(crate) fn open(home: &Path) -> Store {
    Store::open(home, &domain::config::Ledger::default()).unwrap()
}

/// Returns ids like generated ones, a millisecond apart.
fn id(number: u8) -> String {
    format!("01a1de05-f6{number:02x}-7275-a785-685f5814b4{number:02x}")
}

fn begun(number: u8, workflow: &str) -> RunRecord {
    RunRecord {
        id: id(number),
        workflow: workflow.to_owned(),
        version: Some("1.0".to_owned()),
        file: Some("/srv/flow.yaml".to_owned()),
        pid: std::process::id(),
        started_at: Timestamp::now(),
        ended_at: None,
        status: RunStatus::Running,
        message: None,
        exit_code: None,
        trace_id: None,
        resumed_from: None,
    }
}

fn end(run: &RunRecord, status: RunStatus) -> RunEnd {
    let at = run.started_at + SignedDuration::from_secs(12);
    RunEnd { status, message: Some("that was it".to_owned()), exit_code: Some(1), at }
}

fn step(run: &RunRecord, number: u32) -> StepRecord {
    StepRecord {
        provider: Some("claude".to_owned()),
        model: Some("sonnet".to_owned()),
        isolation: Some("full".to_owned()),
        ..StepRecord::begun(&run.id, number, "agent", "refactor", run.started_at)
    }
}

fn failed(step: StepRecord, sessions: Vec<String>) -> StepRecord {
    StepRecord {
        status: StepStatus::TimedOut,
        ended_at: Some(step.started_at + SignedDuration::from_millis(1_500)),
        exit_code: Some(-15),
        tokens: Some(1_200),
        cost_usd: Some(0.25),
        error_code: Some("TIMEOUT".to_owned()),
        error: Some("it took too long".to_owned()),
        output: Some("half of it".to_owned()),
        stderr: Some("it was killed\n".to_owned()),
        root: Some("both".to_owned()),
        sessions,
        ..step
    }
}

/// Returns a text of an agent.
fn text(words: &str) -> StepText {
    let (kind, text) = ("text".to_owned(), words.to_owned());
    StepText { position: 1, at: Timestamp::now(), kind, text }
}

/// Adds a run that failed, one that succeeded, and one that continues as long as the store exists.
pub(crate) fn three(store: &Store, sessions: &[String]) {
    let state = store.state();
    let (first, second, third) = (begun(1, "deploy"), begun(2, "deploy"), begun(3, "test"));
    state.begin_run(&first).unwrap();
    state.begin_step(&step(&first, 1)).unwrap();
    state.add_step_texts(&first.id, 1, &[text("I look at the plan.")]).unwrap();
    state.end_step(&failed(step(&first, 1), sessions.to_vec())).unwrap();
    state.end_run(&first.id, &end(&first, RunStatus::Failure)).unwrap();
    state.begin_run(&second).unwrap();
    state.end_run(&second.id, &end(&second, RunStatus::Success)).unwrap();
    state.begin_run(&third).unwrap();
    state.begin_step(&step(&third, 1)).unwrap();
}

/// Adds a run that begins now.
pub(crate) fn one_more(store: &Store, workflow: &str) {
    store.state().begin_run(&begun(4, workflow)).unwrap();
}

/// Adds a run whose every text is foreign.
pub(crate) fn hostile(store: &Store, text: &str) {
    let run = RunRecord { file: Some(text.to_owned()), ..begun(5, text) };
    let step = StepRecord { state: text.to_owned(), ..step(&run, 1) };
    let ended = StepRecord {
        error: Some(text.to_owned()),
        output: Some(text.to_owned()),
        stderr: Some(text.to_owned()),
        ..failed(step.clone(), vec![])
    };
    let end = RunEnd { message: Some(text.to_owned()), ..end(&run, RunStatus::Failure) };
    let state = store.state();
    state.begin_run(&run).unwrap();
    state.begin_step(&step).unwrap();
    state.add_step_texts(&run.id, 1, &[self::text(text)]).unwrap();
    state.end_step(&ended).unwrap();
    state.end_run(&run.id, &end).unwrap();
}

async fn get(gate: &Gate, path: &str) -> Value {
    let (status, answer) = gate.rest(Method::GET, path, None).await;
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

async fn ids(gate: &Gate, query: &str) -> Vec<String> {
    let answer = get(gate, &format!("/api/v1/runs{query}")).await;
    let runs = answer["runs"].as_array().unwrap().iter();
    runs.map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn runs_are_listed_newest_first_and_by_every_filter() {
    let gate = Gate::scripted(json!([])).await;
    assert_eq!(
        get(&gate, "/api/v1/runs").await,
        json!({"runs": [], "next_cursor": null, "total": 0, "total_is_exact": true})
    );
    let store = open(&gate.home());
    three(&store, &[]);
    for (query, numbers) in [
        ("", vec![3, 2, 1]),
        ("?status=running", vec![3]),
        ("?status=failure", vec![1]),
        ("?status=success&workflow=deploy", vec![2]),
        ("?status=success&workflow=test", vec![]),
        ("?workflow=deploy", vec![2, 1]),
        ("?status=cancelled", vec![]),
        ("?status=interrupted", vec![]),
        ("?workflow=de%25", vec![]),
        ("?limit=2", vec![3, 2]),
    ] {
        let expected: Vec<String> = numbers.into_iter().map(id).collect();
        assert_eq!(ids(&gate, query).await, expected, "{query}");
    }
    let first = get(&gate, "/api/v1/runs?limit=2").await;
    assert_eq!(first["total"], 3);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = get(&gate, &format!("/api/v1/runs?limit=2&cursor={cursor}")).await;
    assert_eq!((&rest["runs"][0]["id"], &rest["next_cursor"]), (&json!(id(1)), &Value::Null));
    let mut run = rest["runs"][0].clone();
    for time in ["started_at", "ended_at"] {
        assert!(run[time].take().as_str().unwrap().parse::<Timestamp>().is_ok());
    }
    assert_eq!(
        run,
        json!({"id": id(1), "workflow": "deploy", "version": "1.0", "file": "/srv/flow.yaml",
            "pid": std::process::id(), "status": "failure", "message": "that was it",
            "exit_code": 1, "started_at": null, "ended_at": null, "duration_ms": 12_000.0,
            "trace_id": null, "resumed_from": null, "steps_total": 1, "tokens": 1_200, "cost_usd": 0.25})
    );
}

#[tokio::test]
async fn invalid_requests_for_runs_are_rejected() {
    let gate = Gate::scripted(json!([])).await;
    let store = open(&gate.home());
    three(&store, &[]);
    for (path, status, code, words) in [
        ("?status=done", 400, "INVALID_REQUEST", "status must be one of running, success"),
        ("?limit=0", 400, "INVALID_REQUEST", "limit must be between 1 and 100, got 0"),
        ("?limit=101", 400, "INVALID_REQUEST", "limit must be between 1 and 100, got 101"),
        ("?limit=x", 400, "INVALID_REQUEST", "limit"),
        ("?cursor=x", 400, "INVALID_REQUEST", "'x' is not a cursor of this list"),
        ("?cursor=a1", 400, "INVALID_REQUEST", "'a1' is not a cursor of this list"),
        ("?name=x", 400, "INVALID_REQUEST", "unknown parameter 'name'"),
        ("/nothing", 404, "NOT_FOUND", "run 'nothing' not found"),
        ("/01a", 404, "NOT_FOUND", "run '01a' not found"),
        ("/01a1de05-f6", 400, "INVALID_REQUEST", "'01a1de05-f6' matches several runs"),
        ("/%25%25%25%25", 404, "NOT_FOUND", "run '%%%%' not found"),
    ] {
        let (found, answer) = gate.rest(Method::GET, &format!("/api/v1/runs{path}"), None).await;
        let error = &answer["error"];
        assert_eq!((found, &error["code"]), (status, &json!(code)), "{path}: {answer}");
        assert!(error["message"].as_str().unwrap().contains(words), "{path}: {answer}");
    }
    let (_, answer) = gate.rest(Method::GET, "/api/v1/runs/01a1de05-f6", None).await;
    assert_eq!(answer["error"]["details"]["near"], json!([id(1), id(2), id(3)]));
}

#[tokio::test]
async fn smoke_a_run_shows_its_steps_and_the_calls_that_they_made() {
    let gate =
        Gate::scripted(json!([{"name": "peek", "annotations": {"readOnlyHint": true}}])).await;
    gate.ready("s").await;
    let client = gate.http().await;
    for path in ["/a", "/b"] {
        client.two_key_call("read", "s:peek", json!({"path": path})).await;
    }
    client.two_key_call("write", "s:peek", json!({})).await;
    let records = get(&gate, "/api/v1/activity").await;
    let session = records["activities"][0]["session_id"].as_str().unwrap().to_owned();
    let store = open(&gate.home());
    three(&store, &["of nobody".to_owned(), session.clone()]);

    let whole = get(&gate, &format!("/api/v1/runs/{}", id(1))).await;
    assert_eq!(whole, get(&gate, "/api/v1/runs/01A1DE05-F601").await, "by its beginning");
    assert_eq!((&whole["id"], &whole["steps_total"]), (&json!(id(1)), &json!(1)));
    let [step] = whole["steps"].as_array().unwrap().as_slice() else { panic!("{whole}") };
    for (name, value) in [
        ("number", json!(1)),
        ("state", json!("refactor")),
        ("kind", json!("agent")),
        ("attempt", json!(1)),
        ("provider", json!("claude")),
        ("model", json!("sonnet")),
        ("isolation", json!("full")),
        ("status", json!("timed_out")),
        ("duration_ms", json!(1_500.0)),
        ("exit_code", json!(-15)),
        ("tokens", json!(1_200)),
        ("cost_usd", json!(0.25)),
        ("error_code", json!("TIMEOUT")),
        ("error_message", json!("it took too long")),
        ("output", json!("half of it")),
        ("stderr", json!("it was killed\n")),
        ("root", json!("both")),
        ("sessions", json!(["of nobody", session])),
        ("calls_total", json!(3)),
    ] {
        assert_eq!(step[name], value, "{name}: {step}");
    }
    let wrote = &step["texts"][0];
    assert_eq!((&wrote["kind"], &wrote["text"]), (&json!("text"), &json!("I look at the plan.")));
    let calls = step["calls"].as_array().unwrap();
    let told: Vec<_> = calls.iter().map(|call| (&call["tool_name"], &call["status"])).collect();
    let (peek, success) = (json!("peek"), json!("success"));
    assert_eq!(told[..2], [(&peek, &success), (&peek, &success)], "the newest last: {step}");
    let file = json!({"system": "filesystem", "resource": "/a"});
    assert_eq!(calls[0]["target"], file, "{step}");
    assert_eq!(calls[2]["id"], records["activities"][0]["id"], "{step}");
    assert!(calls[0]["duration_ms"].is_number() && calls[0].get("arguments").is_none());

    let shown = stdout(&gate.cli(&["runs", "show", "01a1de05-f601"]).await);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.contains(&"status    failed (exit code 1)"), "{shown}");
    let step = "1     refactor  1        claude    timed out  1.5 s  1200    3      \
                TIMEOUT: it took too long";
    assert!(lines.contains(&step), "{shown}");
    assert!(
        lines
            .iter()
            .any(|line| line.contains("  s:peek  success") && line.contains("filesystem /b"))
    );
    let running = get(&gate, &format!("/api/v1/runs/{}", id(3))).await;
    assert_eq!((&running["status"], &running["duration_ms"]), (&json!("running"), &Value::Null));
    assert_eq!(running["steps"][0]["calls"], json!([]));
}

#[tokio::test]
async fn a_run_whose_process_is_gone_is_interrupted() {
    let gate = Gate::scripted(json!([])).await;
    let store = open(&gate.home());
    three(&store, &[]);
    assert_eq!(get(&gate, &format!("/api/v1/runs/{}", id(3))).await["status"], "running");
    drop(store);
    let whole = get(&gate, &format!("/api/v1/runs/{}", id(3))).await;
    assert_eq!((&whole["status"], &whole["ended_at"]), (&json!("interrupted"), &Value::Null));
    assert_eq!(whole["steps"][0]["status"], "interrupted");
    assert_eq!(ids(&gate, "?status=interrupted").await, [id(3)]);
    assert_eq!(ids(&gate, "?status=running").await, Vec::<String>::new());
}

#[tokio::test]
async fn runs_are_shown_at_the_command_line() {
    in_both_ways(async |dir| {
        std::fs::create_dir_all(dir.join("home")).unwrap();
        let output = run(dir, ["runs", "list"]).await;
        assert_eq!(stdout(&output), "no matching runs\n", "{}", stderr(&output));
        let store = open(&dir.join("home"));
        three(&store, &[]);
        let table = stdout(&run(dir, ["runs", "list"]).await);
        let lines: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["ID", "WORKFLOW", "STATUS", "STARTED", "TOOK", "STEPS"]);
        assert_eq!(lines[1][..3], ["01a1de05-f603", "test", "running"]);
        assert_eq!(lines[1][4..], ["-", "1"]);
        assert_eq!(lines[3][..3], ["01a1de05-f601", "deploy", "failed"]);
        assert_eq!(lines[3][4..], ["12.0", "s", "1"]);
        assert_eq!(lines.len(), 4, "{table}");

        let output =
            run(dir, ["runs", "list", "--workflow", "deploy", "--limit", "1", "-o", "json"]).await;
        let answer: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!((&answer["runs"][0]["id"], &answer["total"]), (&json!(id(2)), &json!(2)));
        let output = run(dir, ["runs", "list", "--limit", "2"]).await;
        assert!(
            stderr(&output).contains("2 of 3; continue with --cursor w"),
            "{}",
            stderr(&output)
        );
        let output = run(dir, ["runs", "show", &id(1), "-o", "yaml"]).await;
        assert!(stdout(&output).contains("workflow: deploy"), "{}", stdout(&output));
        for (args, words) in [
            (["runs", "show", "01a1de05-f6"], "matches several runs"),
            (["runs", "show", "nothing"], "NOT_FOUND: run 'nothing' not found"),
            (["runs", "list", "--status=done"], "invalid value 'done' for '--status"),
        ] {
            let output = run(dir, args).await;
            assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{args:?}");
            assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
        }
        drop(store);
        let table = stdout(&run(dir, ["runs", "list", "--status", "interrupted"]).await);
        assert!(table.contains("01a1de05-f603"), "{table}");
    })
    .await;
}

/// Events one by one; the greeting comes first.
pub(crate) struct Events {
    response: reqwest::Response,
    text: String,
}

impl Events {
    pub(crate) async fn listen(gate: &Gate, last: Option<&str>) -> Events {
        let url = format!("http://{}/api/v1/events", gate.address);
        let mut request = http_client().get(url).bearer_auth(gate.secret("api-key"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let mut events = Events { response: request.send().await.unwrap(), text: String::new() };
        assert_eq!(events.next().await.0, "ledger");
        events
    }

    /// Returns the name, id and content of the next event.
    pub(crate) async fn next(&mut self) -> (String, String, Value) {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let found = field("data: ").map(|data| {
                    let word = |name| field(name).unwrap().to_owned();
                    (word("event: "), word("id: "), serde_json::from_str(data).unwrap())
                });
                self.text = rest.to_owned();
                match found {
                    Some(found) => return found,
                    None => continue,
                }
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await;
            let chunk = chunk.expect("something is told").unwrap().expect("the gate runs");
            self.text.push_str(str::from_utf8(&chunk).unwrap());
        }
    }

    async fn next_run(&mut self) -> (String, String) {
        let (name, event_id, data) = self.next().await;
        assert_eq!(name, "run", "{data}");
        let step = match &data["step"] {
            Value::Null => "run".to_owned(),
            step => {
                let long = ["output", "stderr", "texts"];
                assert!(long.iter().all(|name| step.get(*name).is_none()), "{data}");
                format!("step {} {}", step["number"], step["status"].as_str().unwrap())
            }
        };
        let words = [&data["run"]["workflow"], &data["phase"], &data["run"]["status"]];
        let words = words.map(|word| word.as_str().unwrap());
        (event_id, format!("{} {} {step}", words[0], words[1..].join(" ")))
    }
}

#[tokio::test]
async fn runs_of_other_processes_are_streamed_live() {
    let gate =
        Gate::scripted(json!([{"name": "peek", "annotations": {"readOnlyHint": true}}])).await;
    gate.ready("s").await;
    let store = open(&gate.home());
    let state = store.state();
    let mut events = Events::listen(&gate, None).await;
    let deploy = begun(1, "deploy");
    state.begin_run(&deploy).unwrap();
    let (first, words) = events.next_run().await;
    assert_eq!(words, "deploy start running run");
    state.begin_step(&step(&deploy, 1)).unwrap();
    assert_eq!(events.next_run().await.1, "deploy start running step 1 running");
    let client = gate.http().await;
    client.two_key_call("read", "s:peek", json!({})).await;
    let (name, _, data) = events.next().await;
    assert_eq!((name.as_str(), &data["phase"]), ("activity", &json!("end")), "{data}");
    state.end_step(&failed(step(&deploy, 1), vec![])).unwrap();
    assert_eq!(events.next_run().await.1, "deploy end running step 1 timed_out");
    state.end_run(&deploy.id, &end(&deploy, RunStatus::Failure)).unwrap();
    assert_eq!(events.next_run().await.1, "deploy end failure run");
    drop(events);

    let mut events = Events::listen(&gate, Some(&first)).await;
    assert_eq!(events.next().await.0, "activity", "what came since, as it is now");
    assert_eq!(events.next_run().await.1, "deploy end failure step 1 timed_out");
    assert_eq!(events.next_run().await.1, "deploy end failure run");
    let lost = begun(2, "lost");
    state.begin_run(&lost).unwrap();
    assert_eq!(events.next_run().await.1, "lost start running run");
    drop(store);
    assert_eq!(events.next_run().await.1, "lost end interrupted run", "nobody asked for it");
    let quiet = tokio::time::timeout(Duration::from_millis(1_500), events.next()).await;
    assert!(quiet.is_err(), "it is told once: {quiet:?}");
}
