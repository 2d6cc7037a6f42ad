//! The gate with ten thousand tools, and the cost of starting a server: `retrieve_tools` over both
//! transports, memory use, the size of compact responses, and the supervisor's share.

mod rig {
    pub(crate) mod catalog;
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod client;
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod process;
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod upstream;
}

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use rig::catalog::Set;
use rig::client::{Client, INITIALIZE};
use rig::process::{Gate, Process, program};
use rig::upstream::{self, Upstream};
use testkit::figures::{median, quantile};

const TOOLS: usize = 10_000;
const SERVERS: usize = 100;
const COMPACT_TOOLS: usize = 500;
const COMPACT_SERVERS: usize = 10;
const QUERIES: usize = 1_000;
const STARTS: usize = 50;

/// Words that are one token of the search model each.
const ONE_TOKEN_WORDS: &str = "find all large files in my home folder and then send a short list \
                               of them to the whole team by mail before the end of the day so that \
                               we can talk about it next week at the table with the new people who \
                               came here";

/// Long enough for freed memory to be returned.
const IDLE: Duration = Duration::from_secs(1);

/// The polling interval, long enough not to take time from the gate.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = match arguments.as_slice() {
        ["upstream", ..] => tokio::runtime::Builder::new_multi_thread().enable_all().build(),
        _ => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    }
    .expect("a runtime");
    match arguments.as_slice() {
        ["upstream", set, tools, servers] => {
            let number = |text: &str| text.parse().expect("a number");
            runtime.block_on(upstream::serve(Set::named(set), number(tools), number(servers)));
        }
        ["stdio"] => runtime.block_on(mcp::lines::serve(
            tokio::io::stdin(),
            tokio::io::stdout(),
            Arc::new(Upstream::echo()),
            |_| (),
        )),
        _ => runtime.block_on(measure()),
    }
}

#[allow(clippy::print_stdout, reason = "the table is what the program is for")]
async fn measure() {
    println!("| figure | median | 90th percentile | target |\n|---|---|---|---|");
    retrieve().await;
    retrieve_locked().await;
    retrieve_learned().await;
    for set in ["scale", "bfcl"] {
        compact(set).await;
    }
    supervisor().await;
}

#[allow(clippy::print_stdout, reason = "the table is what the program is for")]
fn print(name: &str, unit: &str, samples: &[f64], target: &str) {
    let digits = usize::from(median(samples) < 100.0);
    let (middle, late) = (median(samples), quantile(samples, 0.9));
    println!("| {name} | {middle:.digits$} {unit} | {late:.digits$} {unit} | {target} |");
}

/// Starts a gate in front of the set's tools, and the upstream that must live as long as it does.
fn gate(set: &str, tools: usize, servers: usize) -> (Gate, Process) {
    gate_with(set, tools, servers, |_, _| ())
}

/// Starts the same with additional members in the config entry of each server, by its number.
fn gate_with(
    set: &str,
    tools: usize,
    servers: usize,
    more: impl Fn(usize, &mut Value),
) -> (Gate, Process) {
    let upstream = Process::role(&["upstream", set, &tools.to_string(), &servers.to_string()]);
    (Gate::start(&entries(&upstream, servers, more)), upstream)
}

/// Returns the config entries of the servers that an upstream plays.
fn entries(upstream: &Process, servers: usize, more: impl Fn(usize, &mut Value)) -> Value {
    let entry = |number: usize| {
        let url = format!("http://{}/{number}", upstream.line);
        let mut entry = json!({"url": url});
        more(number, &mut entry);
        (format!("server-{number}"), entry)
    };
    Value::Object((0..servers).map(entry).collect::<Map<_, _>>())
}

/// Returns the queries of both development sets, evenly drawn.
fn queries() -> Vec<String> {
    #[derive(Deserialize)]
    struct Queries {
        queries: Vec<Labelled>,
    }
    #[derive(Deserialize)]
    struct Labelled {
        query: String,
    }
    let all: Vec<String> = [
        include_str!("../../search/testdata/retrieval/dev-bfcl.json"),
        include_str!("../../search/testdata/retrieval/dev-metatool.json"),
    ]
    .into_iter()
    .map(|text| serde_json::from_str::<Queries>(text).expect("the set is in the repository"))
    .flat_map(|set| set.queries)
    .map(|labelled| labelled.query)
    .collect();
    (0..QUERIES).map(|place| all[place * all.len() / QUERIES].clone()).collect()
}

fn search(query: &str, detail: &str) -> String {
    let arguments = json!({"query": query, "detail": detail});
    json!({"name": "retrieve_tools", "arguments": arguments}).to_string()
}

async fn retrieve() {
    let (gate, _upstream) = gate("scale", TOOLS, SERVERS);
    let ready = Instant::now();
    let mut http = Client::greet(&gate.address, "/mcp", &gate.token).await;
    http.listed(SERVERS).await;
    let listed_ms = ready.elapsed().as_secs_f64() * 1e3;
    let mut bridge = Bridge::greet(&gate).await;
    tokio::time::sleep(IDLE).await;
    let pid = gate.process.child.id();
    let name = |what: &str| format!("{what}, {TOOLS} tools of {SERVERS} servers");
    let listed_mb = memory_mb(pid, "Rss");
    let [mut over_http, mut over_stdio, mut over_http_compact] = [const { Vec::new() }; 3];
    for query in queries() {
        over_http.push(timed_us(http.ask("tools/call", &search(&query, "full"))).await);
        over_stdio.push(timed_us(bridge.ask("tools/call", &search(&query, "full"))).await);
        let compact = search(&query, "compact");
        over_http_compact.push(timed_us(http.ask("tools/call", &compact)).await);
    }
    print(&name("retrieve_tools over HTTP"), "µs", &over_http, "300 µs");
    print(&name("retrieve_tools over stdio"), "µs", &over_stdio, "300 µs");
    print(&name("retrieve_tools over HTTP, compact"), "µs", &over_http_compact, "");
    print(&name("all listed after the ready line"), "ms", &[listed_ms], "");
    print(&name("RSS of the gate, listed"), "MB", &[listed_mb], "60 MB");
    print(&name("RSS of the gate, after the queries"), "MB", &[memory_mb(pid, "Rss")], "60 MB");
}

/// Measures with half of the servers locked: some in quarantine, found by names alone, some by the
/// config.
async fn retrieve_locked() {
    let (gate, _upstream) = gate_with("scale", TOOLS, SERVERS, |number, entry| match number % 4 {
        0 => entry["quarantined"] = true.into(),
        1 => entry["enabled_tools"] = json!([]),
        _ => {}
    });
    let mut http = Client::greet(&gate.address, "/mcp", &gate.token).await;
    tokio::time::sleep(IDLE).await;
    let name = |what: &str| format!("{what}, {TOOLS} tools of {SERVERS} servers, half locked");
    let [mut with, mut without] = [const { Vec::new() }; 2];
    for query in queries() {
        let arguments = json!({"query": query, "include_disabled": true});
        let locked = json!({"name": "retrieve_tools", "arguments": arguments}).to_string();
        with.push(timed_us(http.ask("tools/call", &locked)).await);
        without.push(timed_us(http.ask("tools/call", &search(&query, "full"))).await);
    }
    print(&name("retrieve_tools with include_disabled"), "µs", &with, "500 µs");
    print(&name("retrieve_tools without"), "µs", &without, "");
}

/// Measures the search by meaning: the time until all vectors are made, and queries after it.
async fn retrieve_learned() {
    for (tools, servers) in [(COMPACT_TOOLS, COMPACT_SERVERS), (TOOLS, SERVERS)] {
        let upstream =
            Process::role(&["upstream", "scale", &tools.to_string(), &servers.to_string()]);
        let gate = Gate::configured(&json!({"mcpServers": entries(&upstream, servers, |_, _| ())}));
        let ready = Instant::now();
        let made = made(&gate, ready, tools).await;
        let name = |what: &str| format!("{what}, {tools} tools");
        let target = if tools == COMPACT_TOOLS { "10 s" } else { "" };
        print(&name("all vectors made after the ready line"), "s", &[made], target);
        let mut http = Client::greet(&gate.address, "/mcp", &gate.token).await;
        for (tokens, target) in [(16, "3 ms"), (32, "6 ms")] {
            let mut times = Vec::new();
            for start in 0..QUERIES / 4 {
                // Each word is one token; two more mark the ends.
                let words = ONE_TOKEN_WORDS.split(' ').cycle().skip(start).take(tokens - 2);
                let query: Vec<&str> = words.collect();
                let asked = search(&query.join(" "), "full");
                times.push(timed_us(http.ask("tools/call", &asked)).await / 1e3);
            }
            let name = name(&format!("retrieve_tools by meaning over HTTP, {tokens} tokens"));
            print(&name, "ms", &times, target);
        }
        let memory = memory_mb(gate.process.child.id(), "Rss");
        print(&name("RSS with vectors, after the queries"), "MB", &[memory], "");
    }
}

/// Waits until every tool has a vector, and returns the seconds taken.
async fn made(gate: &Gate, since: Instant, tools: usize) -> f64 {
    loop {
        let mut command = Command::from(program(&gate.dir));
        let status = command.args(["status", "-o", "json"]).output().await.expect("it runs");
        let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
        let search = &status["status"]["search"];
        assert!(search["learned"] != false, "this processor computes no vectors");
        if search["vectors"] == tools {
            return since.elapsed().as_secs_f64();
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn timed_us<T>(answer: impl Future<Output = T>) -> f64 {
    let started = Instant::now();
    answer.await;
    started.elapsed().as_secs_f64() * 1e6
}

/// Returns a value from the kernel's memory statistics of a process, such as `Rss` or `Pss`.
fn memory_mb(pid: u32, line: &str) -> f64 {
    let account = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("it runs");
    let value = account.lines().find_map(|text| text.strip_prefix(&format!("{line}:")));
    let value = value.expect("Linux tells").trim().trim_end_matches(" kB");
    value.parse::<f64>().expect("a number") / 1024.0
}

/// Measures the sizes of compact responses, as the text that the model reads.
async fn compact(set: &str) {
    let (gate, _upstream) = gate(set, COMPACT_TOOLS, COMPACT_SERVERS);
    let mut client = Client::greet(&gate.address, "/mcp", &gate.token).await;
    client.listed(COMPACT_SERVERS).await;
    let (mut by_length, mut by_words) = (Vec::new(), Vec::new());
    for query in queries() {
        let answer = client.ask("tools/call", &search(&query, "compact")).await;
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
        by_length.push(text.chars().count() as f64 / 4.0);
        by_words.push(words_and_marks(text) as f64);
    }
    let name = |how: &str| format!("compact answer, {COMPACT_TOOLS} tools ({set}), {how}");
    print(&name("characters / 4"), "tokens", &by_length, "800 tokens");
    print(&name("words and marks"), "tokens", &by_words, "");
}

/// Counts runs of letters and digits, and every other character that is not a space.
fn words_and_marks(text: &str) -> usize {
    let mut count = 0;
    let mut in_word = false;
    for c in text.chars() {
        let is_word = c.is_alphanumeric();
        count += usize::from(!(c.is_whitespace() || is_word && in_word));
        in_word = is_word;
    }
    count
}

/// Measures a server's start up to its response to `initialize`, without and with the supervisor.
async fn supervisor() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let own = std::env::current_exe().expect("a program has a path");
    let mut bare = Vec::new();
    let mut supervised = Vec::new();
    let [mut resident, mut proportional] = [const { Vec::new() }; 2];
    for _ in 0..STARTS {
        let mut command = Command::new(&own);
        let started = Instant::now();
        let bridge = Bridge::start(command.arg("stdio")).await;
        bare.push(started.elapsed().as_secs_f64() * 1e3);
        drop(bridge);
        let mut command = Command::from(program(&dir));
        command.args(["supervise", "--"]).arg(&own).arg("stdio");
        let started = Instant::now();
        let bridge = Bridge::start(&mut command).await;
        supervised.push(started.elapsed().as_secs_f64() * 1e3);
        let pid = bridge.child.id().expect("it runs");
        resident.push(memory_mb(pid, "Rss"));
        proportional.push(memory_mb(pid, "Pss"));
    }
    print("start of a trivial stdio server, bare", "ms", &bare, "");
    print("start of a trivial stdio server, supervised", "ms", &supervised, "");
    print("RSS of a supervisor", "MB", &resident, "");
    print("PSS of a supervisor (shared pages by share)", "MB", &proportional, "");
}

/// A client on the pipes of a child.
struct Bridge {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Bridge {
    /// Connects a client through `countersign mcp`, which finds the running gate.
    async fn greet(gate: &Gate) -> Bridge {
        Bridge::start(Command::from(program(&gate.dir)).arg("mcp")).await
    }

    async fn start(command: &mut Command) -> Bridge {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let stdin = child.stdin.take().expect("stdin is piped");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let mut bridge = Bridge { child, stdin, lines };
        bridge.ask("initialize", &INITIALIZE.replace('\n', " ")).await;
        bridge
    }

    async fn ask(&mut self, method: &str, params: &str) -> String {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.expect("it reads");
        let answer = self.lines.next_line().await.expect("it answers").expect("a line");
        assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":"#), "{answer}");
        answer
    }
}
