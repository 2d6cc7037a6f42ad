//! The price of a call in instructions, which other programs on the machine do not change.
//!
//! The gate runs under callgrind twice, with some calls and with many; what the second run executed
//! more, by its additional calls, is the price. A run ends with SIGTERM, after which the gate signs
//! and files everything, so that no work of a call is left out. `testkit::price` says how the price
//! is divided among the parts of the gate; callgrind keeps functions apart by their callers for that.

mod rig {
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod catalog;
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod client;
    pub(crate) mod machine;
    pub(crate) mod options;
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod process;
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod upstream;
}

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::callgrind::{self, ThreadCosts};
use testkit::figures::movements;
use testkit::price::{Price, PricePart, RunCosts, SUM_GOAL};

use rig::catalog::Set;
use rig::client::Client;
use rig::machine;
use rig::options::Options;
use rig::process::{Gate, Process, program};

const FEW_CALLS: u64 = 100;
const MORE_CALLS: u64 = 600;

/// The callers by which functions are kept apart: more than there are between a library's function
/// and the code of ours that called it.
const CALLERS: &str = "--separate-callers=40";

const RESULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/results/instructions.json");

/// A difference between two runs of the same build.
const NOISE: u64 = 1_000;

const NO_VALGRIND: &str = "valgrind is not installed: `apt install valgrind`, `dnf install \
                           valgrind` or `pacman -S valgrind`";

struct Arguments {
    more_calls: u64,
    functions: usize,
    saves: bool,
}

#[allow(clippy::print_stderr, reason = "a person runs it")]
fn main() -> ExitCode {
    let options = Options::given();
    if options.words() == ["upstream"] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(rig::upstream::serve(Set::named("scale"), 1, 1));
        return ExitCode::SUCCESS;
    }
    match arguments(options).and_then(|arguments| measure(&arguments)) {
        Ok(code) => code,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::from(2)
        }
    }
}

fn arguments(mut options: Options) -> Result<Arguments, String> {
    let saves = options.flag("--save");
    let functions = options.value("--functions")?.unwrap_or(0);
    let more_calls = options.value("--calls")?.unwrap_or(MORE_CALLS).max(1);
    options.finish()?;
    Ok(Arguments { more_calls, functions, saves })
}

fn measure(arguments: &Arguments) -> Result<ExitCode, String> {
    machine::version("valgrind").ok_or(NO_VALGRIND)?;
    let (few, many) = (run(FEW_CALLS)?, run(FEW_CALLS + arguments.more_calls)?);
    let price = Price::between(few, many, arguments.more_calls);
    print(&price, arguments.functions);
    let machine = machine::describe(&["valgrind"]);
    let has_risen = compare(&price, &machine)?;
    if arguments.saves {
        let result = json!({
            "machine": machine,
            "calls": arguments.more_calls,
            "instructions_per_call": price.figures(),
        });
        machine::save(Path::new(RESULT), &result);
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::from(u8::from(has_risen)))
}

/// Runs the gate for this many calls.
fn run(calls: u64) -> Result<RunCosts, String> {
    let upstream = Process::role(&["upstream"]);
    let profiles = tempfile::tempdir().expect("a temporary folder");
    let config = json!({
        "mcpServers": {"plain": {"url": format!("http://{}/plain", upstream.line)}},
        "search": {"learned": false},
    });
    let out = format!("--callgrind-out-file={}/thread", profiles.path().display());
    let valgrind = [
        "valgrind",
        "--tool=callgrind",
        "--quiet",
        "--separate-threads=yes",
        CALLERS,
        "--compress-mangled=yes",
        "--dump-line=no",
        &out,
    ];
    let gate = Gate::under(&valgrind.map(OsStr::new), &config);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(call(&gate, calls));
    let home = gate.end();
    expect_receipts(&home, calls)?;
    let run = RunCosts::divide(&threads(profiles.path())?);
    match run.missing().as_slice() {
        [] => Ok(run),
        missing => Err(format!(
            "no code was found for: {}. The program needs its symbols (cargo's profile `measured`), \
             and the anchors in crates/testkit/src/price.rs must name its modules.",
            missing.join(", ")
        )),
    }
}

/// Calls the tool over one kept connection, and checks each answer.
async fn call(gate: &Gate, calls: u64) {
    let mut client = Client::greet(&gate.address, "/mcp/s/plain", &gate.token).await;
    // Each of these calls waits some seconds for the server, so that few are made.
    while echo(&mut client, 0).await.contains("UPSTREAM_UNAVAILABLE") {}
    for number in 0..calls {
        let answer = echo(&mut client, number).await;
        let is_echo = answer.contains(&word(number)) && !answer.contains("\"isError\":true");
        assert!(is_echo, "{answer}");
    }
}

async fn echo(client: &mut Client, number: u64) -> String {
    let params = json!({"name": "echo", "arguments": {"text": word(number)}}).to_string();
    let answer = client.ask("tools/call", &params).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn word(number: u64) -> String {
    format!("word-{number}-")
}

/// Checks that every call has its signed receipt.
fn expect_receipts(home: &TempDir, calls: u64) -> Result<(), String> {
    let output = program(home).args(["receipt", "verify", "-o", "json"]).output();
    let output = output.map_err(|error| format!("the receipts cannot be verified: {error}"))?;
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let has_all = found["receipts"].as_u64().is_some_and(|receipts| receipts >= calls);
    match found["valid"] == true && has_all {
        true => Ok(()),
        false => Err(format!("{calls} calls were made, and the receipts are: {found}")),
    }
}

fn threads(folder: &Path) -> Result<Vec<ThreadCosts>, String> {
    let mut threads = Vec::new();
    for file in fs::read_dir(folder).expect("the folder is there") {
        let file = file.expect("a file").path();
        let profile = fs::read_to_string(&file).map_err(|error| error.to_string())?;
        // Callgrind also leaves an empty file of the plain name.
        if !profile.is_empty() {
            let threads_costs = callgrind::parse(&profile);
            threads.push(threads_costs.map_err(|fault| format!("{}: {fault}", file.display()))?);
        }
    }
    Ok(threads)
}

#[allow(clippy::print_stdout, reason = "the table is what the program is for")]
fn print(price: &Price, functions: usize) {
    println!("| part of a call | instructions | goal | met |\n|---|---|---|---|");
    let row = |name: &str, cost: u64, goal: Option<u64>| {
        let (goal, met) = match goal {
            Some(goal) if cost <= goal => (thousands(goal), "yes"),
            Some(goal) => (thousands(goal), "**no**"),
            None => ("–".to_owned(), ""),
        };
        println!("| {name} | {} | {goal} | {met} |", thousands(cost));
    };
    for part in PricePart::ALL {
        row(part.name(), price.of(part), part.goal());
    }
    row("sum", price.sum(), Some(SUM_GOAL));
    for part in PricePart::ALL.into_iter().filter(|_| functions > 0) {
        println!("\n{}", part.name());
        for (function, cost) in price.top_functions(part, functions) {
            println!("{cost:>9}  {function}");
        }
    }
}

/// Compares with the result in the repository and reports whether a figure has risen.
#[allow(clippy::print_stdout, reason = "the comparison is what the program is for")]
fn compare(price: &Price, machine: &Value) -> Result<bool, String> {
    let Ok(text) = fs::read_to_string(RESULT) else {
        println!("\nThere is no baseline: `./bench instructions --save` writes it.");
        return Ok(false);
    };
    let baseline: Value =
        serde_json::from_str(&text).map_err(|fault| format!("{RESULT}: {fault}"))?;
    let before: BTreeMap<String, u64> =
        serde_json::from_value(baseline["instructions_per_call"].clone())
            .map_err(|fault| format!("{RESULT}: {fault}"))?;
    println!();
    for key in ["cpu", "rustc", "valgrind"] {
        if baseline["machine"][key] != machine[key] {
            println!("The baseline has another {key}: {}.", baseline["machine"][key]);
        }
    }
    let moved = movements(&before, &price.figures(), NOISE);
    for figure in &moved {
        let way = if figure.is_rise() { "rose" } else { "fell" };
        let (before, now) = (thousands(figure.before), thousands(figure.now));
        println!("{} {way} from {before} to {now}.", figure.figure);
    }
    if moved.is_empty() {
        println!("No figure is more than 5 % from the baseline.");
    }
    Ok(moved.iter().any(|figure| figure.is_rise()))
}

fn thousands(count: u64) -> String {
    format!("{:.1}k", count as f64 / 1_000.0)
}
