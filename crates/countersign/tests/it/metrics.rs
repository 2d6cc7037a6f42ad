//! Monitoring of the gate: liveness, readiness, and its counters. Prometheus's own parser reads the
//! text.

use std::path::Path;
use std::process::Stdio;

use reqwest::Method;
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::client::{PATIENCE, two_keys};
use testkit::foreign;
use testkit::gate::{Gate, http_client};
use testkit::program::command;
use testkit::upstream::scripted;
use testkit::wait::eventually;
use tokio::io::AsyncWriteExt;

fn tools(dir: &Path) -> Value {
    json!([
        {"name": "echo", "annotations": {"readOnlyHint": true}},
        {"name": "plain"},
        {"name": "error", "x-do": "error"},
        {"name": "slow", "x-do": {"work": {"log": dir.join("slow.log"), "until": dir.join("go")}}},
    ])
}

async fn gate() -> Gate {
    let servers = |dir: &Path| json!({"s": scripted(dir, "s", &tools(dir)), "off": {"command": "x", "disabled": true}});
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    gate
}

/// All samples of `/metrics`, as `name{label=value,…}` with labels sorted.
struct Scrape(Vec<(String, f64)>);

impl Scrape {
    async fn of(gate: &Gate) -> Scrape {
        let url = format!("http://{}/metrics", gate.address);
        let request = http_client().get(url).bearer_auth(gate.secret("api-key"));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
        Scrape::parse(gate.dir.path(), &response.text().await.unwrap()).await
    }

    async fn parse(dir: &Path, text: &str) -> Scrape {
        let mut found = Vec::new();
        for family in families(dir, text).await {
            assert_ne!(family["type"], "unknown", "{family}");
            assert_ne!(family["help"], "", "{family}");
            for sample in family["samples"].as_array().unwrap() {
                // A sample outside its family is one that the parser could not place.
                let name = sample["name"].as_str().unwrap();
                assert!(name.starts_with(family["name"].as_str().unwrap()), "{sample}");
                let labels = sample["labels"].as_object().unwrap();
                let mut labels: Vec<String> = labels
                    .iter()
                    .map(|(name, value)| format!("{name}={}", value.as_str().unwrap()))
                    .collect();
                labels.sort();
                let key = format!("{name}{{{}}}", labels.join(","));
                found.push((key, sample["value"].as_f64().unwrap()));
            }
        }
        let mut keys: Vec<&String> = found.iter().map(|(key, _)| key).collect();
        keys.sort();
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "each sample comes once: {keys:?}");
        Scrape(found)
    }

    fn get(&self, key: &str) -> Option<f64> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| *value)
    }

    fn with(&self, prefix: &str) -> Vec<(&str, f64)> {
        let fitting = self.0.iter().filter(|(key, _)| key.starts_with(prefix));
        fitting.map(|(key, value)| (&key[prefix.len()..], *value)).collect()
    }
}

async fn families(dir: &Path, text: &str) -> Vec<Value> {
    let python = foreign::program("python-prometheus/bin/python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/peers/prometheus.py");
    let mut child = command(&python, dir)
        .arg("-P")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("python starts: run ./test --setup");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).await.unwrap();
    drop(stdin);
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{text}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn probe(gate: &Gate, path: &str) -> (u16, Value) {
    let response =
        http_client().get(format!("http://{}{path}", gate.address)).send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

#[tokio::test]
async fn calls_are_counted_by_outcome() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = gate().await;
    let before = Scrape::of(&gate).await;
    assert_eq!(before.with("countersign_calls_total"), []);
    let client = gate.http().await;
    for (operation, tool) in [
        ("read", "s:echo"),
        ("read", "s:echo"),
        ("write", "s:plain"),
        ("read", "s:error"),
        ("read", "s:none"),
        ("read", "made-up-by-a-caller:echo"),
        ("read", "off:x"),
        ("destructive", "off:x"),
    ] {
        client.two_key_call(operation, tool, json!({})).await;
    }
    let scrape = Scrape::of(&gate).await;
    let mut calls = scrape.with("countersign_calls_total");
    calls.sort_by(|one, other| one.0.cmp(other.0));
    let expected = [
        ("{class=destructive,outcome=blocked,server=off}", 1.0),
        ("{class=read,outcome=blocked,server=off}", 1.0),
        ("{class=read,outcome=blocked,server=s}", 1.0),
        ("{class=read,outcome=blocked,server=}", 1.0),
        ("{class=read,outcome=success,server=s}", 2.0),
        ("{class=write,outcome=error,server=s}", 1.0),
        ("{class=write,outcome=success,server=s}", 1.0),
    ];
    assert_eq!(calls, expected);
    let codes = scrape.with("countersign_refusals_total");
    let codes: Vec<_> = codes.into_iter().filter(|(_, count)| *count > 0.0).collect();
    let expected = [
        ("{code=TOOL_NOT_FOUND}", 2.0),
        ("{code=TOOL_BLOCKED}", 2.0),
        ("{code=UPSTREAM_ERROR}", 1.0),
    ];
    assert_eq!(codes, expected);
}

#[tokio::test]
async fn durations_fall_into_buckets_that_add_up() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = gate().await;
    let client = gate.http().await;
    for _ in 0..5 {
        client.two_key_call("read", "s:echo", json!({})).await;
    }
    let scrape = Scrape::of(&gate).await;
    let name = "countersign_call_duration_seconds";
    let buckets: Vec<f64> = scrape
        .with(&format!("{name}_bucket{{class=read,"))
        .iter()
        .map(|(_, count)| *count)
        .collect();
    assert_eq!(buckets.len(), 15);
    assert!(buckets.is_sorted(), "{buckets:?}");
    assert_eq!(scrape.get(&format!("{name}_bucket{{class=read,le=+Inf}}")), Some(5.0));
    assert_eq!(scrape.get(&format!("{name}_count{{class=read}}")), Some(5.0));
    assert_eq!(scrape.get(&format!("{name}_count{{class=destructive}}")), Some(0.0));
    let sum = scrape.get(&format!("{name}_sum{{class=read}}")).unwrap();
    assert!(sum > 0.0 && sum < 60.0, "{sum}");
}

#[tokio::test]
async fn metrics_cover_servers_tools_sessions_and_the_ledger() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = gate().await;
    let value = |scrape: &Scrape, key: &str| scrape.get(key).unwrap_or_else(|| panic!("no {key}"));
    let first = Scrape::of(&gate).await;
    assert_eq!(
        first.with("countersign_upstream_state"),
        [("{server=off,state=disabled}", 1.0), ("{server=s,state=ready}", 1.0)]
    );
    assert_eq!(value(&first, "countersign_tools{status=callable}"), 4.0);
    assert_eq!(value(&first, "countersign_tools{status=pending_approval}"), 0.0);
    assert_eq!(value(&first, "countersign_mcp_sessions{}"), 0.0);
    let version = format!("countersign_build_info{{version={}}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(value(&first, &version), 1.0);
    let now = jiff::Timestamp::now().as_millisecond() as f64 / 1000.0;
    let age = now - value(&first, "process_start_time_seconds{}");
    assert!((0.0..60.0).contains(&age), "{age}");
    let clients = [gate.http().await, gate.stdio().await];
    let entries = value(&first, "countersign_ledger_entries_total{}");
    for client in &clients {
        client.two_key_call("write", "s:plain", json!({})).await;
    }
    let scrape = Scrape::of(&gate).await;
    assert_eq!(value(&scrape, "countersign_mcp_sessions{}"), 2.0);
    assert!(value(&scrape, "countersign_ledger_entries_total{}") >= entries + 2.0);
    assert_eq!(value(&scrape, "countersign_ledger_failures_total{}"), 0.0);
    drop(clients);
    eventually(|| async {
        let scrape = Scrape::of(&gate).await;
        let filed = value(&scrape, "countersign_ledger_unfiled{}") == 0.0;
        // A session over HTTP lasts until it is ended or expires.
        (filed && value(&scrape, "countersign_mcp_sessions{}") < 2.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_ledger_that_cannot_be_written_makes_the_gate_unready() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = gate().await;
    assert_eq!(probe(&gate, "/healthz").await, (200, json!({"status": "ok"})));
    assert_eq!(probe(&gate, "/readyz").await, (200, json!({"status": "ready"})));
    let client = gate.http().await;
    client.two_key_call("write", "s:plain", json!({})).await;
    let holder = Connection::open(gate.home().join("ledger.db")).unwrap();
    holder.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    client.two_key_call("write", "s:plain", json!({})).await;
    let unready = json!({"status": "unready", "reason": "the ledger cannot be written"});
    assert_eq!(probe(&gate, "/readyz").await, (503, unready));
    assert_eq!(probe(&gate, "/healthz").await.0, 200);
    let scrape = Scrape::of(&gate).await;
    assert_eq!(scrape.get("countersign_ledger_failing{}"), Some(1.0));
    assert!(scrape.get("countersign_ledger_failures_total{}").unwrap() >= 1.0);
    assert_eq!(scrape.get("countersign_refusals_total{code=LEDGER_UNAVAILABLE}"), Some(1.0));
    let blocked = "countersign_calls_total{class=write,outcome=blocked,server=s}";
    assert_eq!(scrape.get(blocked), Some(1.0));
    holder.execute_batch("COMMIT").unwrap();
    eventually(|| async { (probe(&gate, "/readyz").await.0 == 200).then_some(()) }).await;
    assert_eq!(Scrape::of(&gate).await.get("countersign_ledger_failing{}"), Some(0.0));
}

#[tokio::test]
async fn a_gate_that_drains_lives_and_is_not_ready() {
    let gate = gate().await;
    let client = gate.http().await;
    let dir = gate.dir.path().to_owned();
    let slow = tokio::spawn(async move {
        client.request("tools/call", two_keys("read", "s:slow", json!({}))).await
    });
    eventually(|| async { dir.join("slow.log").exists().then_some(()) }).await;
    rustix::process::kill_process(gate.pid(), Signal::TERM).unwrap();
    let (_, answer) = eventually(|| async {
        let answer = probe(&gate, "/readyz").await;
        (answer.0 == 503).then_some(answer)
    })
    .await;
    assert_eq!(answer["reason"], "the gate is shutting down and accepts no new calls");
    assert_eq!(probe(&gate, "/healthz").await.0, 200);
    std::fs::write(dir.join("go"), "").unwrap();
    slow.await.unwrap().unwrap();
}

#[tokio::test]
async fn smoke_health_and_metrics_reject_unknown_hosts_and_origins() {
    let gate = gate().await;
    for path in ["/healthz", "/readyz", "/metrics"] {
        for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example")] {
            let request = http_client().get(format!("http://{}{path}", gate.address));
            let request = request.bearer_auth(gate.secret("api-key")).header(name, value);
            assert_eq!(request.send().await.unwrap().status(), 403, "{path} with {name}");
        }
        let (status, _) = gate.rest(Method::POST, path, None).await;
        assert_eq!(status, 405, "{path} changes nothing");
    }
}
