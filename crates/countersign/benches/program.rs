//! The program from the user's side: the time until it is ready, and its memory when idle.

mod rig {
    #[allow(dead_code, reason = "each measurement uses its part")]
    pub(crate) mod process;
}

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rig::process::program_file;

const RUNS: usize = 20;

/// Long enough for the first connections to settle.
const IDLE: Duration = Duration::from_millis(500);

#[allow(clippy::print_stdout, reason = "the table is what the program is for")]
fn main() {
    let mut ready: Vec<f64> = Vec::new();
    let mut memory: Vec<f64> = Vec::new();
    for _ in 0..RUNS {
        let (ready_ms, rss_mb) = measure();
        ready.push(ready_ms);
        memory.push(rss_mb);
    }
    println!("| figure | median | worst of {RUNS} |\n|---|---|---|");
    for (name, mut values) in [("ready after, ms", ready), ("idle RSS, MB", memory)] {
        values.sort_by(f64::total_cmp);
        println!("| {name} | {:.1} | {:.1} |", values[RUNS / 2], values[RUNS - 1]);
    }
}

fn measure() -> (f64, f64) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let started = Instant::now();
    let mut child = Command::new(program_file())
        .args(["serve", "--listen", "127.0.0.1:0", "-o", "json", "--home"])
        .arg(home.path())
        .env("XDG_CONFIG_HOME", home.path())
        .current_dir(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    stdout.read_line(&mut line).expect("it gets ready");
    let ready_ms = started.elapsed().as_secs_f64() * 1000.0;
    #[allow(clippy::disallowed_methods, reason = "a measurement waits for time, not for an event")]
    std::thread::sleep(IDLE);
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells");
    let kilobytes: f64 = rss.trim().trim_end_matches(" kB").parse().expect("a number");
    child.kill().expect("it can be stopped");
    let _ = child.wait();
    (ready_ms, kilobytes / 1024.0)
}
