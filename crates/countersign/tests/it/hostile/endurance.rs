//! All floods, one after another, against one gate: its memory and the time of `/healthz` meanwhile.
//! The time is printed and not asserted: it depends on the machine, and a new connection waits while
//! a crowd is accepted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde_json::{Value, json};
use testkit::client::Client;
use testkit::gate::{Gate, http_client};
use testkit::upstream::{accepting_new, scripted};
use testkit::wait::eventually;
use tokio_util::task::AbortOnDropHandle;

use super::agent::{call_as, display};
use super::network;
use super::server::{self, review};

const MEMORY_MAX_KB: u64 = 150_000;
const PROBE_EVERY: Duration = Duration::from_millis(50);

/// The answers to requests for the gate's health.
#[derive(Default)]
struct Health {
    count: AtomicU64,
    slowest_us: AtomicU64,
}

/// Asks for the gate's health until dropped.
fn watch(gate: &Gate) -> (Arc<Health>, AbortOnDropHandle<()>) {
    let health = Arc::<Health>::default();
    let noted = health.clone();
    let (client, url) = (http_client(), format!("http://{}/healthz", gate.address));
    let watching = tokio::spawn(async move {
        loop {
            let start = Instant::now();
            // A connection without a token may have to make room; then another one is made.
            while !client.get(&url).send().await.is_ok_and(|answer| answer.status() == 200) {}
            let took = u64::try_from(start.elapsed().as_micros()).unwrap();
            noted.slowest_us.fetch_max(took, Ordering::Relaxed);
            noted.count.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(PROBE_EVERY).await;
        }
    });
    (health, AbortOnDropHandle::new(watching))
}

impl Health {
    /// Returns the slowest answer since this was last asked, with the one under way.
    async fn slowest_ms(&self) -> f64 {
        let count = || self.count.load(Ordering::Relaxed);
        let before = count();
        eventually(|| async { (count() > before).then_some(()) }).await;
        self.slowest_us.swap(0, Ordering::Relaxed) as f64 / 1e3
    }
}

/// Returns the most memory that the process has used since this was last asked.
fn peak_kb(pid: Pid) -> u64 {
    let folder = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
    let status = std::fs::read_to_string(folder.join("status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    // The number that resets the peak.
    std::fs::write(folder.join("clear_refs"), "5").unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Adds a server to the running gate.
async fn add(gate: &Gate, name: &str, make: impl FnOnce(&Path) -> Value) {
    let entry = make(gate.dir.path());
    gate.rewrite(|config| config["mcpServers"][name] = entry);
    gate.server_when(name, |entry| entry["tool_count"].as_u64().is_some_and(|count| count > 0))
        .await;
}

/// Makes honest calls while a server floods the gate.
async fn pings(gate: &Gate, honest: &Client, count: usize, id_bytes: usize) {
    add(gate, "floods", |dir| server::floods(dir, count, id_bytes)).await;
    for _ in 0..1000 {
        assert_eq!(honest.code_of("write", "s:t").await, "ok");
    }
    gate.rewrite(|config| drop(config["mcpServers"].as_object_mut().unwrap().remove("floods")));
}

async fn client_names(gate: &Gate) {
    let long = "x".repeat(5_000_000);
    for _ in 0..10 {
        assert!(call_as(gate, &long, "t").await["result"].is_object());
    }
}

async fn storm(gate: &Gate, honest: &Client) {
    let tools = json!([{"name": "storm", "x-do": {"storm": 3000, "every_ms": 1}}]);
    add(gate, "storm", |dir| accepting_new(scripted(dir, "storm", &tools))).await;
    assert_eq!(honest.code_of("write", "storm:storm").await, "ok");
}

// The answers are timed on a thread that does not attack.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_attacks_leave_memory_and_health_alone() {
    if !testkit::run::is_long_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let good = scripted(dir.path(), "s", &json!([{"name": "t"}]));
    let config =
        json!({"mcpServers": {"s": good}, "workspace": {"enabled": true, "root": dir.path()}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let gate = Gate::open(dir).await;
    gate.ready("s").await;
    let honest = gate.http().await;
    let (health, _watching) = watch(&gate);
    let note = async |attack: &str| {
        let (memory, healthz) = (peak_kb(gate.pid()), health.slowest_ms().await);
        println!("| {attack:34} | {:7.1} | {healthz:18.1} |", memory as f64 / 1e3);
        assert!(memory < MEMORY_MAX_KB, "{attack}: {memory} kB");
    };
    println!("| {:34} | peak MB | slowest healthz ms |", "attack");
    note("none").await;
    pings(&gate, &honest, 100_000, 3_000).await;
    note("100,000 pings with ids of 3 kB").await;
    pings(&gate, &honest, 3_000, 300_000).await;
    note("3,000 pings with ids of 300 kB").await;
    add(&gate, "excessive", |dir| scripted(dir, "excessive", &server::excessive(40))).await;
    note("80 excessive definitions, 12 MB").await;
    let crowd = network::crowd(&gate).await;
    honest.request("tools/list", json!({})).await.unwrap();
    note("1,030 connections that never read").await;
    drop(crowd);
    network::guess_2000_times(&gate).await;
    note("2,000 wrong tokens").await;
    storm(&gate, &honest).await;
    note("3,000 announced changes of a list").await;
    add(&gate, "grows", |dir| accepting_new(scripted(dir, "grows", &review::growing()))).await;
    review::grow(&gate, &honest, "grows").await;
    note("2,400 new tools with auto_approve").await;
    client_names(&gate).await;
    note("10 client names of 5 MB").await;
    for _ in 0..20 {
        display::glob_braces(&honest).await;
    }
    note("20 times Glob with 500 braces").await;
    assert!(!gate.log().contains("panicked"), "{}", gate.log());
}
