//! A call through the gate beside the same call without it, through the least relay, and through
//! other gateways. The ways take turns within each round, all answers are checked, and client, gate,
//! relay and upstream are separate processes.

mod rig {
    pub(crate) mod catalog;
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod client;
    pub(crate) mod load;
    pub(crate) mod machine;
    pub(crate) mod options;
    pub(crate) mod peers;
    pub(crate) mod pipes;
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod process;
    pub(crate) mod relay;
    pub(crate) mod row;
    pub(crate) mod tree;
    pub(crate) mod upstream;
}

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use testkit::figures::quantile;

use rig::catalog::Set;
use rig::client::Client;
use rig::load::{Crew, Target, ToolCall};
use rig::machine;
use rig::options::Options;
use rig::peers::{self, Evidence, Peer};
use rig::process::{Gate, Process, program};
use rig::relay::relay;
use rig::row::{FLOOR, Load, Rounds, Route, Row, Way};
use rig::tree;
use rig::upstream::{self, Upstream};

const RESULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/results/compare.json");

const SMALL: usize = 100;
const MIDDLE: usize = 10 * 1024;
const LARGE: usize = 1024 * 1024;

const SOAK_CLIENTS: usize = 8;
const SOAK_SLICE: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let options = Options::given();
    match options.words().as_slice() {
        ["upstream", tools, servers] => {
            let number = |text: &str| text.parse().expect("a number");
            let serving = upstream::serve(Set::named("scale"), number(tools), number(servers));
            many_threads().block_on(serving);
            return ExitCode::SUCCESS;
        }
        ["relay", target] => {
            many_threads().block_on(relay(target));
            return ExitCode::SUCCESS;
        }
        ["stdio"] => {
            let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
            let echo = Arc::new(Upstream::echo());
            one_thread().block_on(mcp::lines::serve(stdin, stdout, echo, |_| ()));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    match arguments(options) {
        Ok(arguments) => {
            one_thread().block_on(measure(&arguments));
            ExitCode::SUCCESS
        }
        Err(fault) => {
            refuse(&fault);
            ExitCode::from(2)
        }
    }
}

#[allow(clippy::print_stderr, reason = "a person runs it")]
fn refuse(fault: &str) {
    eprintln!("{fault}");
}

/// Returns a runtime like the gate's.
fn many_threads() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

fn one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

struct Arguments {
    rounds: Rounds,
    peers: Option<PathBuf>,
    soak: Option<Duration>,
    wants_all: bool,
    saves: bool,
}

fn arguments(mut options: Options) -> Result<Arguments, String> {
    let count = options.value("--rounds")?.unwrap_or(5).max(1);
    let seconds: f64 = options.value("--seconds")?.unwrap_or(1.0);
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| "--seconds is no time")?;
    let peers: Option<PathBuf> = options.value("--peers")?;
    if peers.as_ref().is_some_and(|folder| !folder.is_absolute()) {
        return Err("--peers needs an absolute path".to_owned());
    }
    let arguments = Arguments {
        rounds: Rounds { count, time },
        peers,
        soak: options.value("--soak")?.map(Duration::from_secs),
        wants_all: options.flag("--all"),
        saves: options.flag("--save"),
    };
    options.finish()?;
    Ok(arguments)
}

/// Rows that share an upstream, a gate and a relay.
struct Stage {
    tools: usize,
    upstreams: usize,
    /// Measured over stdin and stdout as well.
    pipe_loads: Vec<Load>,
    /// Measured beside the peers and with writing calls.
    is_wide: bool,
    loads: Vec<Load>,
}

fn loads(clients: &[usize], payload_bytes: usize) -> Vec<Load> {
    clients.iter().map(|clients| Load { clients: *clients, payload_bytes }).collect()
}

fn stages(wants_all: bool) -> Vec<Stage> {
    if wants_all {
        return every_stage();
    }
    let wide = [loads(&[1, 8, 32, 128], SMALL), loads(&[1, 32], MIDDLE), loads(&[1], LARGE)];
    let pipe_loads = loads(&[1, 8], SMALL);
    let first = Stage { tools: 10, upstreams: 1, pipe_loads, is_wide: true, loads: wide.concat() };
    let sizes = [(1_000, 1), (10_000, 1), (1_000, 10), (10_000, 100)];
    let scaled = sizes.map(|(tools, upstreams)| Stage {
        tools,
        upstreams,
        pipe_loads: Vec::new(),
        is_wide: false,
        loads: loads(&[1, 8], SMALL),
    });
    [first].into_iter().chain(scaled).collect()
}

fn every_stage() -> Vec<Stage> {
    let mut stages = Vec::new();
    for tools in [10, 1_000, 10_000] {
        for upstreams in [1, 10, 100].into_iter().filter(|upstreams| *upstreams <= tools) {
            let sizes = [SMALL, MIDDLE, LARGE];
            let loads = sizes.map(|bytes| loads(&[1, 8, 32, 128], bytes)).concat();
            let is_first = stages.is_empty();
            let pipe_loads = if is_first { loads.clone() } else { Vec::new() };
            stages.push(Stage { tools, upstreams, pipe_loads, is_wide: true, loads });
        }
    }
    stages
}

async fn measure(arguments: &Arguments) {
    if let Some(time) = arguments.soak {
        return soak(time).await;
    }
    let mut rows = Vec::new();
    let mut peers = Value::Null;
    for (number, stage) in stages(arguments.wants_all).iter().enumerate() {
        let setup = Setup::start(stage).await;
        let found = match &arguments.peers {
            Some(folder) if number == 0 => peers::start_all(folder, &setup.upstream.line).await,
            _ => Vec::new(),
        };
        if number == 0 {
            peers = found.iter().map(report).collect();
        }
        let ways = setup.ways(stage, &found);
        let title = format!("tools: {}, upstreams: {}", stage.tools, stage.upstreams);
        for load in &stage.loads {
            rows.push(row(&title, stage, &ways, *load, arguments.rounds).await);
        }
        let (ways, title) = (setup.ways_on_pipes(), format!("{title}, stdio"));
        for load in &stage.pipe_loads {
            rows.push(row(&title, stage, &ways, *load, arguments.rounds).await);
        }
    }
    if arguments.saves {
        let rounds = json!({
            "count": arguments.rounds.count,
            "seconds": arguments.rounds.time.as_secs_f64(),
        });
        let machine = machine::describe(&[]);
        let result = json!({"machine": machine, "rounds": rounds, "rows": rows, "peers": peers});
        machine::save(Path::new(RESULT), &result);
    }
}

async fn row(title: &str, stage: &Stage, ways: &[Way], load: Load, rounds: Rounds) -> Value {
    let row = Row::measure(ways, load, rounds).await;
    row.print(title);
    let mut row = row.json();
    row["tools"] = stage.tools.into();
    row["upstreams"] = stage.upstreams.into();
    row
}

/// Says how a peer came up, and keeps what it wrote if it did not.
#[allow(clippy::print_stdout, reason = "the table is what the program is for")]
fn report(peer: &Peer) -> Value {
    match &peer.outcome {
        Ok(_) => json!({"peer": peer.name, "served": true}),
        Err(Evidence { reason, output }) => {
            println!("{} is not measured: {reason}", peer.name);
            output.iter().for_each(|line| println!("  {line}"));
            json!({"peer": peer.name, "served": false, "reason": reason, "output": output})
        }
    }
}

/// The processes that a stage needs.
struct Setup {
    upstream: Process,
    floor: Process,
    gate: Gate,
}

impl Setup {
    async fn start(stage: &Stage) -> Setup {
        let (tools, upstreams) = (stage.tools.to_string(), stage.upstreams.to_string());
        let upstream = Process::role(&["upstream", &tools, &upstreams]);
        let address = &upstream.line;
        let floor = Process::role(&["relay", address]);
        let entry = |number| {
            (format!("server-{number}"), json!({"url": format!("http://{address}/{number}")}))
        };
        let mut servers: Map<String, Value> = (0..stage.upstreams).map(entry).collect();
        servers.insert("echo".to_owned(), json!({"url": format!("http://{address}/echo")}));
        let gate = Gate::start(&Value::Object(servers));
        let mut client = Client::greet(&gate.address, "/mcp", &gate.token).await;
        client.listed(stage.upstreams + 1).await;
        Setup { upstream, floor, gate }
    }

    fn ways(&self, stage: &Stage, peers: &[Peer]) -> Vec<Way> {
        let way = |name: &str, target, pid| Way {
            name: name.to_owned(),
            route: Route::Http(target),
            pid,
        };
        let named = |tool: &str| ToolCall::Named(tool.to_owned());
        let bare = |address: &str| Target {
            address: address.to_owned(),
            path: "/echo".to_owned(),
            token: String::new(),
            tool: named("echo_read"),
        };
        let gate_pid = Some(self.gate.process.child.id());
        let through = |path: &str, tool| Target {
            address: self.gate.address.clone(),
            path: path.to_owned(),
            token: self.gate.token.clone(),
            tool,
        };
        let mut ways = vec![
            way("direct", bare(&self.upstream.line), None),
            way(FLOOR, bare(&self.floor.line), Some(self.floor.child.id())),
            way("gate, read", through("/mcp/s/echo", named("echo_read")), gate_pid),
        ];
        if stage.is_wide {
            let write = through("/mcp/s/echo", named("echo_write"));
            ways.push(way("gate, write", write, gate_pid));
        }
        let discovered = ToolCall::Read("echo:echo_read".to_owned());
        ways.push(way("gate, discovery", through("/mcp", discovered), gate_pid));
        for peer in peers {
            if let Ok(serving) = &peer.outcome {
                ways.push(way(peer.name, serving.target.clone(), Some(serving.process.pid())));
            }
        }
        ways
    }

    /// The same server on pipes, and `countersign wrap` in its place.
    fn ways_on_pipes(&self) -> Vec<Way> {
        let own = std::env::current_exe().expect("a program has a path");
        let server = own.clone();
        let direct = move || {
            let mut command = tokio::process::Command::new(&server);
            command.arg("stdio");
            command
        };
        let dir = Arc::new(tempfile::tempdir().expect("a temporary folder"));
        let wrapped = move || {
            let mut command = tokio::process::Command::from(program(&dir));
            command.args(["wrap", "--name", "echo", "--"]).arg(&own).arg("stdio");
            command
        };
        let way = |name: &str, route| Way { name: name.to_owned(), route, pid: None };
        vec![
            way("direct", Route::Pipes(Box::new(direct))),
            way("wrap", Route::Pipes(Box::new(wrapped))),
        ]
    }
}

/// Calls through the gate for a long time and prints the 99th percentile of each slice.
#[allow(clippy::print_stdout, reason = "the table is what the program is for")]
async fn soak(time: Duration) {
    let stage = Stage {
        tools: 10,
        upstreams: 1,
        pipe_loads: Vec::new(),
        is_wide: false,
        loads: loads(&[SOAK_CLIENTS], SMALL),
    };
    let setup = Setup::start(&stage).await;
    let gate = Target {
        address: setup.gate.address.clone(),
        path: "/mcp/s/echo".to_owned(),
        token: setup.gate.token.clone(),
        tool: ToolCall::Named("echo_read".to_owned()),
    };
    let mut crew = Crew::open(&gate, SOAK_CLIENTS).await.expect("the gate serves");
    println!("| seconds | calls a second | p50 | p99 | RSS | errors |\n|---|---|---|---|---|---|");
    let started = Instant::now();
    while started.elapsed() < time {
        let slice = SOAK_SLICE.min(time.saturating_sub(started.elapsed()));
        let burst = crew.work(slice, SMALL).await;
        let quantile = |part| match burst.samples_us.is_empty() {
            true => f64::NAN,
            false => quantile(&burst.samples_us, part),
        };
        println!(
            "| {:.0} | {:.0} | {:.0} µs | {:.0} µs | {:.0} MB | {} |",
            started.elapsed().as_secs_f64(),
            burst.samples_us.len() as f64 / burst.seconds,
            quantile(0.5),
            quantile(0.99),
            tree::rss_mb(setup.gate.process.child.id()),
            burst.errors,
        );
    }
}
