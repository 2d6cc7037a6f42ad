//! `GET /events` for a client whose connection is cut at any byte: with the id of the last complete
//! event it resumes there, without gaps or duplicates.

use std::collections::HashMap;

use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::client::{Client, PATIENCE};
use testkit::gate::{Gate, http_client};

use crate::ledger::records_when;

const ROUNDS: usize = 5;

/// The number of calls while no client listens, and again while one does.
const CALLS: usize = 10;

/// Fewer bytes than the events of one round have.
const CUT_BYTES_MAX: usize = 5_000;

struct Listener {
    last: Option<String>,
    /// The record of each event that carries one, in order.
    heard: Vec<(i64, Value)>,
}

impl Listener {
    async fn connect(&self, gate: &Gate) -> reqwest::Response {
        let url = format!("http://{}/api/v1/events", gate.address);
        let mut request = http_client().get(url).bearer_auth(gate.secret("api-key"));
        if let Some(last) = &self.last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// Listens until this many bytes have arrived, and takes the complete events.
    async fn listen_for_bytes(&mut self, gate: &Gate, bytes: usize) {
        let mut response = self.connect(gate).await;
        let mut text = Vec::new();
        while text.len() < bytes {
            text.extend_from_slice(&response.chunk().await.unwrap().expect("the gate runs"));
        }
        text.truncate(bytes);
        self.take(&mut text);
    }

    async fn listen_until(&mut self, gate: &Gate, enough: impl Fn(&Listener) -> bool) {
        let mut response = self.connect(gate).await;
        let mut text = Vec::new();
        while !enough(self) {
            text.extend_from_slice(&response.chunk().await.unwrap().expect("the gate runs"));
            self.take(&mut text);
        }
    }

    /// Takes the complete events off the front.
    fn take(&mut self, text: &mut Vec<u8>) {
        while let Some(end) = text.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = text.drain(..end + 2).collect();
            self.hear(str::from_utf8(&event).unwrap());
        }
    }

    fn hear(&mut self, event: &str) {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        let Some(id) = field("id: ") else {
            return;
        };
        if field("event: ") == Some("ledger") {
            let resumed = self.last.as_deref().is_none_or(|last| last == id);
            assert!(resumed, "it goes on after {:?}: {event}", self.last);
        } else {
            let data: Value = serde_json::from_str(field("data: ").unwrap()).unwrap();
            self.heard.push((id.parse().unwrap(), data));
        }
        self.last = Some(id.to_owned());
    }

    /// Counts the events that report the end of a call, by its record.
    fn ends(&self) -> HashMap<&str, usize> {
        let mut ends = HashMap::new();
        let ended = self.heard.iter().filter(|(_, data)| data["phase"] != "start");
        for (_, data) in ended {
            *ends.entry(data["record"]["id"].as_str().unwrap()).or_default() += 1;
        }
        ends
    }
}

async fn calls(client: &Client) {
    for number in 0..CALLS {
        let (operation, tool) = match number % 3 {
            0 => ("read", "s:echo"),
            1 => ("write", "s:plain"),
            _ => ("read", "s:drop"),
        };
        client.two_key_call(operation, tool, json!({})).await;
    }
}

/// Returns random places to cut; a failing test reports the seed.
fn cuts(seed: u64) -> impl Iterator<Item = usize> {
    let mut state = seed;
    std::iter::from_fn(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(usize::try_from(state >> 33).unwrap() % CUT_BYTES_MAX)
    })
}

#[tokio::test]
async fn a_reconnecting_client_receives_every_change_exactly_once() {
    let gate = Gate::scripted(json!([
        {"name": "echo", "annotations": {"readOnlyHint": true}},
        {"name": "plain"},
        {"name": "drop", "annotations": {"destructiveHint": true}},
    ]))
    .await;
    gate.ready("s").await;
    let seed = jiff::Timestamp::now().as_nanosecond().unsigned_abs() as u64;
    println!("seed {seed}");
    let client = gate.http().await;
    let mut listener = Listener { last: None, heard: Vec::new() };
    listener.listen_until(&gate, |listener| listener.last.is_some()).await;
    for cut in cuts(seed).take(ROUNDS) {
        calls(&client).await;
        let listening = listener.listen_for_bytes(&gate, cut);
        let both = async { tokio::join!(listening, calls(&client)) };
        tokio::time::timeout(PATIENCE, both).await.expect("so much is to be heard");
    }
    let all = ROUNDS * 2 * CALLS;
    let enough = |listener: &Listener| listener.ends().len() == all;
    let listening = listener.listen_until(&gate, enough);
    tokio::time::timeout(PATIENCE, listening).await.expect("every end is heard of");
    assert!(listener.heard.is_sorted_by(|one, next| one.0 < next.0), "no change comes twice");
    assert!(listener.ends().values().all(|count| *count == 1), "{:?}", listener.ends());
    let records = records_when(&gate.home(), |records| records.len() >= all).await;
    assert_eq!(records.len(), all);
    for record in &records {
        let heard = listener.heard.iter().rfind(|(_, data)| data["record"]["id"] == record["id"]);
        let (change, data) = heard.expect("every record was heard of");
        assert_eq!(
            (change, &data["record"]["status"]),
            (&record["changed"].as_i64().unwrap(), &record["status"])
        );
    }
}

/// The events outside the ledger that a listener gets, in order.
struct Told {
    response: reqwest::Response,
    text: Vec<u8>,
}

impl Told {
    async fn by(gate: &Gate, last: Option<&str>) -> Told {
        let listener = Listener { last: last.map(str::to_owned), heard: Vec::new() };
        let mut told = Told { response: listener.connect(gate).await, text: Vec::new() };
        assert_eq!(told.next().await.0, "ledger", "it is heard");
        told
    }

    /// Returns the next event: its name, its id and its data.
    async fn next(&mut self) -> (String, Option<String>, Value) {
        let reading = async {
            loop {
                if let Some(end) = self.text.windows(2).position(|pair| pair == b"\n\n") {
                    let event: Vec<u8> = self.text.drain(..end + 2).collect();
                    let event = String::from_utf8(event).unwrap();
                    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                    if let Some(kind) = field("event: ") {
                        let data = serde_json::from_str(field("data: ").unwrap()).unwrap();
                        return (kind.to_owned(), field("id: ").map(str::to_owned), data);
                    }
                }
                let chunk = self.response.chunk().await.unwrap().expect("the gate runs");
                self.text.extend_from_slice(&chunk);
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("something is told")
    }

    /// Returns the next event outside the ledger; it has no id, so a client that reconnects names
    /// the last one of the ledger.
    async fn next_beside(&mut self, of: &str) -> Value {
        loop {
            let (kind, id, data) = self.next().await;
            if kind == "server" || kind == "tool" {
                assert_eq!((kind.as_str(), id), (of, None), "{data}");
                return data;
            }
        }
    }

    /// Returns the states that a server goes through, up to this one.
    async fn server_until(&mut self, name: &str, state: &str) -> Vec<Value> {
        let mut told = Vec::new();
        loop {
            let (kind, _, data) = self.next().await;
            if kind != "server" || data["name"] != name {
                continue;
            }
            let is_last = data["state"] == state;
            told.push(data);
            if is_last {
                return told;
            }
        }
    }
}

#[tokio::test]
async fn status_changes_of_servers_and_tools_are_streamed() {
    let after =
        json!([{"name": "echo", "description": "Another", "annotations": {"readOnlyHint": true}}]);
    let gate = Gate::scripted(json!([
        {"name": "echo", "description": "One", "annotations": {"readOnlyHint": true}},
        {"name": "grow", "x-do": {"become": after}},
    ]))
    .await;
    gate.ready("s").await;
    let post = async |path: &str, body: Value| {
        let path = format!("/api/v1{path}");
        let (status, answer) = gate.rest(reqwest::Method::POST, &path, Some(body)).await;
        assert!(status < 300, "{path}: {answer}");
    };
    let mut told = Told::by(&gate, None).await;
    let tool = |status: &str, was: &str| json!({"name": "s:echo", "server": "s", "status": status, "was": was});

    post("/tools/s/echo/disable", json!({})).await;
    assert_eq!(told.next_beside("tool").await, tool("disabled_by_user", "callable"));
    post("/tools/s/echo/enable", json!({})).await;
    assert_eq!(told.next_beside("tool").await, tool("callable", "disabled_by_user"));
    let grow = json!({"tool_variant": "call_tool_write", "name": "s:grow", "intent": {"operation_type": "write"}});
    post("/tools/call", grow).await;
    assert_eq!(told.next_beside("tool").await, tool("pending_approval", "callable"));
    let gone = json!({"name": "s:grow", "server": "s", "status": "removed", "was": "callable"});
    assert_eq!(told.next_beside("tool").await, gone);
    gate.cli(&["tools", "approve", "s:echo", "--yes"]).await;
    assert_eq!(told.next_beside("tool").await, tool("callable", "pending_approval"));

    post("/servers", json!({"name": "n", "command": "nothing-of-that-name"})).await;
    let added = told.next_beside("server").await;
    assert_eq!(added, json!({"name": "n", "state": "quarantined", "was": null}));
    gate.cli(&["upstream", "approve", "n", "--yes"]).await;
    let states = told.server_until("n", "error").await;
    assert_eq!(states[0]["was"], "quarantined", "{states:?}");
    let error = states.last().unwrap()["error"].as_str().unwrap();
    assert!(error.contains("nothing-of-that-name"), "{error}");
    post("/servers/s/disable", json!({})).await;
    let off = json!({"name": "s", "state": "disabled", "was": "ready"});
    assert_eq!(told.server_until("s", "disabled").await, [off]);
    post("/servers/s/enable", json!({})).await;
    told.server_until("s", "ready").await;
    let (status, _) = gate.rest(reqwest::Method::DELETE, "/api/v1/servers/n", None).await;
    assert_eq!(status, 200);
    told.server_until("n", "removed").await;
}

#[tokio::test]
async fn smoke_reconnecting_replays_ledger_events_and_nothing_else() {
    let gate =
        Gate::scripted(json!([{"name": "echo", "annotations": {"readOnlyHint": true}}])).await;
    gate.ready("s").await;
    let mut told = Told::by(&gate, Some("0")).await;
    let path = "/api/v1/tools/s/echo/disable";
    let (status, _) = gate.rest(reqwest::Method::POST, path, None).await;
    assert_eq!(status, 200);
    let mut seen = [false; 2];
    while seen != [true; 2] {
        let (kind, id, _) = told.next().await;
        seen[usize::from(kind == "tool")] = true;
        assert_eq!(id.is_none(), kind == "tool");
    }
    drop(told);
    let mut told = Told::by(&gate, Some("0")).await;
    let (kind, id, data) = told.next().await;
    assert_eq!((kind.as_str(), id.is_some()), ("activity", true), "{data}");
    assert_eq!(data["record"]["type"], "tool_change");
    gate.http().await.two_key_call("read", "s:none", json!({})).await;
    let (kind, _, data) = told.next().await;
    assert_eq!((kind.as_str(), &data["phase"]), ("activity", &json!("refused")), "{data}");
}

#[tokio::test]
async fn ledger_failure_and_recovery_are_streamed() {
    let gate = Gate::scripted(json!([{"name": "plain"}])).await;
    gate.ready("s").await;
    let client = gate.http().await;
    client.two_key_call("write", "s:plain", json!({})).await;
    let mut told = Told::by(&gate, None).await;
    let holder = Connection::open(gate.home().join("ledger.db")).unwrap();
    holder.busy_timeout(PATIENCE).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    client.two_key_call("write", "s:plain", json!({})).await;
    let ledger = async |told: &mut Told| loop {
        let (kind, id, data) = told.next().await;
        if kind == "ledger" {
            assert_eq!(id, None, "{data}");
            return data;
        }
    };
    let failing = ledger(&mut told).await;
    assert_eq!(failing["state"], "failing", "{failing}");
    assert!(failing["last_error"].is_string(), "{failing}");
    holder.execute_batch("COMMIT").unwrap();
    assert_eq!(ledger(&mut told).await["state"], "ok");
}

#[tokio::test]
async fn an_invalid_last_event_id_is_rejected() {
    let gate = Gate::scripted(json!([])).await;
    for id in ["-1", "", "x", "1.5", "99999999999999999999"] {
        let url = format!("http://{}/api/v1/events", gate.address);
        let request = http_client().get(url).bearer_auth(gate.secret("api-key"));
        let response = request.header("last-event-id", id).send().await.unwrap();
        assert_eq!(response.status(), 400, "{id:?}");
    }
}
