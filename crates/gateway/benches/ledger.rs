//! The ledger's cost to callers: the same gate with and without it, in turn, over HTTP on loopback
//! to a server in the same process. Prints calls per second and the added time per call.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::Router;
use axum::http::{HeaderValue, header};
use domain::Caller;
use futures_util::FutureExt;
use gateway::front::http::{Front, FrontDoor};
use gateway::spec::ServerSpec;
use gateway::{GateSettings, Gateway};
use mcp::http::client::{Endpoint, connect};
use mcp::http::guard::Guard;
use mcp::server::{Server, text_result};
use serde_json::json;
use store::Store;
use testkit::client::Client;
use tokio::net::TcpListener;

const TOKEN: &str = "cst_bench";
const ROUNDS: usize = 12;
const CALLS: usize = 2_000;
const CLIENTS: [usize; 2] = [1, 32];

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

async fn measure() {
    let home = tempfile::tempdir().expect("a folder");
    let rules = domain::config::Config::default().ledger;
    let on = serve(Store::open(home.path(), &rules).expect("a ledger")).await;
    let off = serve(Store::nowhere()).await;
    println!("| tool | clients | calls/s with | without | share | added at the median |");
    println!("|---|---|---|---|---|---|");
    for tool in ["read", "write"] {
        for clients in CLIENTS {
            let (mut with, mut without) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                with.push(round(&on, tool, clients).await);
                without.push(round(&off, tool, clients).await);
            }
            tell(tool, clients, &with, &without);
        }
    }
}

/// Prints the medians of the rounds.
fn tell(tool: &str, clients: usize, with: &[Round], without: &[Round]) {
    let rate = |rounds: &[Round]| median(rounds.iter().map(|round| round.rate).collect());
    let added = with.iter().zip(without).map(|(with, without)| with.wait_us - without.wait_us);
    let (on, off) = (rate(with), rate(without));
    println!(
        "| {tool} | {clients} | {on:.0} | {off:.0} | {:.0} % | {:+.0} µs |",
        100.0 * on / off,
        median(added.collect())
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Round {
    rate: f64,
    wait_us: f64,
}

async fn round(address: &str, tool: &'static str, clients: usize) -> Round {
    let mut connected = Vec::new();
    for _ in 0..clients {
        connected.push(client(address).await);
    }
    let since = Instant::now();
    let working = connected.into_iter().map(|client| {
        tokio::spawn(async move {
            let mut waits = Vec::new();
            for _ in 0..CALLS / clients {
                let since = Instant::now();
                client.call(tool, json!({"path": "/srv/project/src/totals.rs", "n": 7})).await;
                waits.push(since.elapsed().as_secs_f64() * 1e6);
            }
            waits
        })
    });
    let mut waits = Vec::new();
    for work in working.collect::<Vec<_>>() {
        waits.extend(work.await.expect("a client"));
    }
    let rate = waits.len() as f64 / since.elapsed().as_secs_f64();
    Round { rate, wait_us: median(waits) }
}

async fn client(address: &str) -> Client {
    let mut endpoint = Endpoint::new(format!("http://{address}/mcp/s/tools"));
    let bearer = HeaderValue::from_str(&format!("Bearer {TOKEN}")).expect("a header");
    endpoint.headers.push((header::AUTHORIZATION, bearer));
    Client::greet(json!({}), vec![], |service| connect(endpoint, service).expect("a url")).await
}

async fn serve(store: Store) -> String {
    let gateway = Gateway::new(GateSettings::default(), store);
    gateway.add_upstream(ServerSpec::embedded("tools", tools));
    gateway.settled(Duration::from_secs(5)).await;
    gateway.tokens().know(TOKEN, Caller::agent("bench"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let guard = Arc::new(ArcSwap::from_pointee(Guard::new([address.clone()], [])));
    let door = FrontDoor::new(Front::new(gateway), Router::new(), guard);
    tokio::spawn(async move { axum::serve(listener, door.router()).await });
    address
}

fn tools() -> Server {
    let mut server = Server::new("tools", "1");
    for (name, reads) in [("read", true), ("write", false)] {
        let definition = json!({
            "name": name,
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
            "annotations": {"readOnlyHint": reads, "destructiveHint": false},
        });
        server.register_tool(&definition, |_| async { Ok(text_result("done")) }.boxed());
    }
    server
}
