//! `GET /events` for a client whose connection is cut at any byte: with the id of the last event
//! that came whole it goes on from there, misses nothing and gets nothing twice.

use std::collections::HashMap;

use serde_json::{Value, json};
use testkit::client::{Client, PATIENCE};

use crate::gate::{Gate, http_client};
use crate::ledger::{records_when, two_keys};

const ROUNDS: usize = 5;

/// Calls while nobody listens, and as many while somebody does.
const CALLS: usize = 10;

/// Fewer bytes than the events of one round have.
const CUT_BYTES_MAX: usize = 5_000;

struct Listener {
    last: Option<String>,
    /// The record of each event that tells of one, as it came.
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

    /// Listens until so many bytes have come, and takes what was whole then.
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

    /// Takes the whole events off the front.
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

    /// Events that tell how a call ended, by its record.
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
        client.request("tools/call", two_keys(operation, tool, json!({}))).await.unwrap();
    }
}

/// Another place to cut each time; the seed is told when the test fails.
fn cuts(seed: u64) -> impl Iterator<Item = usize> {
    let mut state = seed;
    std::iter::from_fn(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(usize::try_from(state >> 33).unwrap() % CUT_BYTES_MAX)
    })
}

#[tokio::test]
async fn a_client_that_is_cut_off_anywhere_hears_every_change_once() {
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
