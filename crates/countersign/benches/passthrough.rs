//! The gate's overhead on a passed-through server, for a list of ten thousand tools and for a small
//! call, compared with a relay that reads a message and forwards it. All paths are measured in turn
//! within one run, and each end of a path is a separate process.

mod rig {
    pub(crate) mod catalog;
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod client;
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod process;
    pub(crate) mod relay;
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod upstream;
}

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use axum::Router;
use axum::serve::ListenerExt;
use domain::Caller;
use futures_util::future::join_all;
use gateway::front::http::{Front, FrontDoor};
use gateway::spec::ServerSpec;
use gateway::{GateSettings, Gateway};
use http_body_util::BodyExt;
use hyper::Request;
use mcp::http::guard::Guard;
use serde_json::json;
use store::Store;
use tokio::net::TcpListener;

use rig::catalog::Set;
use rig::client::{Client, INITIALIZE};
use rig::process::{Gate, Process};
use rig::relay::relay;
use rig::upstream::{self, Upstream};
use testkit::figures::{median, quantile};

const TOOLS: usize = 10_000;
const LIST_ROUNDS: usize = 40;
const CALL_ROUNDS: usize = 100;
const CALLS_PER_ROUND: usize = 30;
const CLIENTS: usize = 32;

const TOKEN: &str = "a token of this measurement";

const READ: &str = r#"{"name":"echo_read","arguments":{"text":"hello"}}"#;
const WRITE: &str = r#"{"name":"echo_write","arguments":{"text":"hello"}}"#;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["upstream"] => many_threads().block_on(upstream::serve(Set::named("scale"), TOOLS, 1)),
        ["relay", target] => many_threads().block_on(relay(target)),
        ["pooled", target] => many_threads().block_on(pooled_relay(target)),
        ["forgetful", target] => many_threads().block_on(forgetful_gate(target)),
        ["stdio"] => one_thread().block_on(mcp::lines::serve(
            tokio::io::stdin(),
            tokio::io::stdout(),
            Arc::new(Upstream::echo()),
            |_| (),
        )),
        _ => one_thread().block_on(measure()),
    }
}

/// Returns a runtime like the gate's.
fn many_threads() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

fn one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[allow(clippy::print_stdout, reason = "the table is what the program is for")]
async fn measure() {
    let upstream = Process::role(&["upstream"]);
    let address = &upstream.line;
    let others = ["relay", "pooled", "forgetful"].map(|role| Process::role(&[role, address]));
    let own = std::env::current_exe().expect("a program has a path");
    let gate = Gate::start(&json!({
        "big": {"url": format!("http://{address}/0")},
        "echo": {"url": format!("http://{address}/echo")},
        "piped": {"command": own, "args": ["stdio"]},
    }));
    println!("| way | median | 90th percentile | beside direct |\n|---|---|---|---|");
    lists(address, &gate).await;
    for clients in [1, CLIENTS] {
        calls(clients, address, &others, &gate).await;
    }
    piped(&gate).await;
}

/// The samples of one path, and their median in each round.
#[derive(Default)]
struct Way {
    samples_us: Vec<f64>,
    rounds_us: Vec<f64>,
}

impl Way {
    fn add_round(&mut self, samples_us: Vec<f64>) {
        self.rounds_us.push(median(&samples_us));
        self.samples_us.extend(samples_us);
    }

    /// Returns the median over the rounds of this path's extra time over the other's.
    fn beyond(&self, other: &Way) -> f64 {
        let pairs = self.rounds_us.iter().zip(&other.rounds_us);
        median(&pairs.map(|(ours, theirs)| ours - theirs).collect::<Vec<_>>())
    }

    #[allow(clippy::print_stdout, reason = "the table is what the program is for")]
    fn print(&self, name: &str, beside: &str) {
        let (middle, late) = (median(&self.samples_us), quantile(&self.samples_us, 0.9));
        println!("| {name} | {middle:.0} µs | {late:.0} µs | {beside} |");
    }
}

async fn lists(address: &str, gate: &Gate) {
    let mut clients = [
        Client::greet(address, "/0", "").await,
        Client::greet(&gate.address, "/mcp/s/big", &gate.token).await,
    ];
    let mut ways = [Way::default(), Way::default()];
    let mut sizes = [0; 2];
    for _ in 0..LIST_ROUNDS {
        for place in 0..2 {
            let started = Instant::now();
            sizes[place] = clients[place].ask("tools/list", "{}").await.len();
            ways[place].add_round(vec![started.elapsed().as_secs_f64() * 1e6]);
        }
    }
    let [direct, through] = ways;
    // Ids differ in length, nothing else does.
    assert!(sizes[0].abs_diff(sizes[1]) < 8, "{sizes:?}");
    let size_mb = sizes[0] as f64 / 1e6;
    let ratio = median(&through.samples_us) / median(&direct.samples_us);
    direct.print(&format!("tools/list of {TOOLS} tools ({size_mb:.1} MB), direct"), "");
    through.print("tools/list, gate", &format!("**{ratio:.2} ×** (target 1.5)"));
}

/// Measures with `clients` at once, each with its own connection and session on every path.
async fn calls(clients: usize, address: &str, others: &[Process; 3], gate: &Gate) {
    let through = "/mcp/s/echo";
    let mut ways = [
        (address, "/echo", "", READ),
        (&others[0].line, "/echo", "", READ),
        (&others[1].line, "/echo", "", READ),
        (&others[2].line, through, TOKEN, READ),
        (&gate.address, through, &gate.token, READ),
        (&gate.address, through, &gate.token, WRITE),
    ]
    .map(|(address, path, token, params)| {
        (Way::default(), Vec::new(), address, path, token, params)
    });
    for (_, connections, address, path, token, _) in &mut ways {
        for _ in 0..clients {
            connections.push(Client::greet(address, path, token).await);
        }
    }
    for round in 0..=CALL_ROUNDS {
        for (way, connections, _, _, _, params) in &mut ways {
            let calling = connections.iter_mut().map(|client| timed(client, params, clients));
            let samples = join_all(calling).await.concat();
            // The first round fills caches and pools.
            if round > 0 {
                way.add_round(samples);
            }
        }
    }
    let [direct, relay, pooled, forgetful, read, write] = ways.map(|(way, ..)| way);
    let relay_adds = relay.beyond(&direct);
    let pooled_adds = pooled.beyond(&direct);
    let added = |way: &Way| {
        let adds = way.beyond(&direct);
        let (bare, ready_made) = (adds / relay_adds, adds / pooled_adds);
        format!(
            "+{adds:.0} µs, **{bare:.2} × the relay** (target 2), {ready_made:.2} × axum + reqwest"
        )
    };
    let name = |way: &str| match clients {
        1 => format!("tools/call, 1 client, {way}"),
        many => format!("tools/call, {many} clients, {way}"),
    };
    direct.print(&name("direct"), "");
    relay.print(&name("relay"), &format!("+{relay_adds:.0} µs"));
    pooled.print(&name("relay of axum + reqwest"), &format!("+{pooled_adds:.0} µs"));
    forgetful.print(&name("gate without ledger and log"), &added(&forgetful));
    read.print(&name("gate, reading tool"), &added(&read));
    write.print(&name("gate, writing tool"), &added(&write));
}

async fn timed(client: &mut Client, params: &str, clients: usize) -> Vec<f64> {
    let mut samples = Vec::new();
    for _ in 0..CALLS_PER_ROUND.div_ceil(clients) {
        let started = Instant::now();
        let answer = client.ask("tools/call", params).await;
        samples.push(started.elapsed().as_secs_f64() * 1e6);
        assert!(!answer.ends_with(br#""isError":true}}"#), "{answer:?}");
    }
    samples
}

/// Measures a server on pipes: called by its own client, and by an HTTP client through the gate.
async fn piped(gate: &Gate) {
    let mut own = Pipes::greet();
    let mut client = Client::greet(&gate.address, "/mcp/s/piped", &gate.token).await;
    let (mut direct, mut through) = (Way::default(), Way::default());
    for round in 0..=CALL_ROUNDS {
        let samples = own.timed();
        let samples_through = timed(&mut client, READ, 1).await;
        if round > 0 {
            direct.add_round(samples);
            through.add_round(samples_through);
        }
    }
    direct.print("tools/call on pipes, 1 client, direct", "");
    let adds = through.beyond(&direct);
    through.print("tools/call on pipes, 1 HTTP client, gate", &format!("+{adds:.0} µs"));
}

/// A client that blocks on the pipes of its server.
struct Pipes {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Pipes {
    fn greet() -> Pipes {
        let own = std::env::current_exe().expect("a program has a path");
        let mut child = Command::new(own)
            .arg("stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut pipes = Pipes { child, stdin, stdout };
        pipes.ask("initialize", INITIALIZE);
        pipes
    }

    fn ask(&mut self, method: &str, params: &str) {
        let params = params.replace('\n', " ");
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}{}"#, "\n");
        self.stdin.write_all(line.as_bytes()).expect("it reads");
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).expect("it answers");
        assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":"#), "{answer}");
    }

    fn timed(&mut self) -> Vec<f64> {
        let mut samples = Vec::new();
        for _ in 0..CALLS_PER_ROUND {
            let started = Instant::now();
            self.ask("tools/call", READ);
            samples.push(started.elapsed().as_secs_f64() * 1e6);
        }
        samples
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the gate with a store that keeps nothing and without a log, in its own process.
async fn forgetful_gate(target: &str) {
    let servers = json!({"mcpServers": {"echo": {"url": format!("http://{target}/echo")}}});
    let config = domain::config::parse(&servers.to_string()).expect("a sound config").config;
    let gateway = Gateway::new(GateSettings::from(&config), Store::nowhere());
    gateway.tokens().know(TOKEN, Caller::agent("bench"));
    gateway.add_upstream(ServerSpec::configured(&config.servers[0], None));
    gateway.settled(config.connect_timeout).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    upstream::announce(&listener);
    let address = listener.local_addr().expect("an address").to_string();
    let guard = Arc::new(ArcSwap::from_pointee(Guard::new([address], [])));
    let door = FrontDoor::new(Front::new(gateway), Router::new(), guard);
    let serving =
        axum::serve(listener.tap_io(|stream| drop(stream.set_nodelay(true))), door.router());
    tokio::select! {
        _ = serving.into_future() => {}
        () = upstream::parent_gone() => {}
    }
}

/// Runs a relay as most would write it: a router in front, a client with a pool behind.
async fn pooled_relay(target: &str) {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build().expect("a client");
    let target = format!("http://{target}");
    let router = axum::Router::new().fallback(move |request: Request<axum::body::Body>| {
        let (client, target) = (client.clone(), target.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.expect("a whole message").to_bytes();
            let request = client.request(parts.method, format!("{target}{}", parts.uri.path()));
            let response = request.headers(parts.headers).body(body).send().await;
            let response = response.expect("an answer");
            let (status, headers) = (response.status(), response.headers().clone());
            let body = response.bytes().await.expect("a whole answer");
            (status, headers, body)
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    upstream::announce(&listener);
    tokio::select! {
        _ = axum::serve(listener, router) => {}
        () = upstream::parent_gone() => {}
    }
}
