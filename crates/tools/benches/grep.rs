//! Grep compared with ripgrep, over 50,000 files. Both in turn, so that other load on the machine
//! affects both.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Caller;
use domain::method::Method;
use domain::tool::ToolName;
use provider::{Call, CallContext, Declared, Surface, ToolProvider};
use serde_json::{Value, json};
use text::json::Object;
use tools::builtin::{OffLimits, Permissions, Workspace};

const FOLDERS: usize = 1_000;
const FILES: usize = 50;
const ROUNDS: usize = 11;

/// Typical searches of a person or a model. Each has fewer matches than one result holds, so that
/// both search all files.
const QUESTIONS: [(&str, &str); 3] = [
    ("a rare word", "needle_17_3"),
    ("a regular expression", r"fn\s+name_\d*777\b"),
    ("files", r"name_\d*1777\b"),
];

/// Creates files like source code: lines of moderate length, with repeated names.
fn plant(root: &Path) {
    for folder in 0..FOLDERS {
        let path = root.join(format!("part_{}/module_{folder}", folder % 30));
        std::fs::create_dir_all(&path).unwrap();
        for file in 0..FILES {
            let lines = (0..40).map(|line| {
                let number = folder * 31 + file * 7 + line;
                format!(
                    "fn name_{number}(value_{}: usize) -> usize {{ value + {line} }}\n",
                    line % 9
                )
            });
            let text: String = lines.chain([format!("// needle_{folder}_{file}\n")]).collect();
            std::fs::write(path.join(format!("file_{file}.rs")), text).unwrap();
        }
    }
}

fn call(pattern: &str, mode: &str) -> Call {
    let arguments = json!({"pattern": pattern, "output_mode": mode}).to_string();
    Call {
        id: String::new(),
        caller: Arc::new(Caller::admin()),
        client: None,
        session: None,
        request_id: None,
        surface: Surface::Cli,
        method: Method::ToolCall,
        tool: ToolName { server: "workspace".to_owned(), tool: "Grep".to_owned() },
        arguments: Object::parse(&arguments).unwrap().unwrap(),
        declared: Declared::Nothing,
        other: Vec::new(),
    }
}

fn ours(
    runtime: &tokio::runtime::Runtime,
    workspace: &Workspace,
    call: &Call,
) -> (Duration, usize) {
    let start = Instant::now();
    let reply =
        runtime.block_on(workspace.call(call, &CallContext::within(Duration::from_secs(600))));
    let took = start.elapsed();
    let result: Value = serde_json::from_str(reply.unwrap().result.get()).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    (took, text.lines().filter(|line| *line != "no matching lines").count())
}

fn theirs(program: &Path, root: &Path, args: &[&str]) -> (Duration, usize) {
    let start = Instant::now();
    let output =
        Command::new(program).args(args).current_dir(root).stdin(Stdio::null()).output().unwrap();
    (start.elapsed(), output.stdout.iter().filter(|byte| **byte == b'\n').count())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let Some(program) = ripgrep() else {
        println!("no ripgrep on PATH: install it, or name it in RIPGREP");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    plant(dir.path());
    let workspace =
        Workspace::new(dir.path(), Permissions::default(), OffLimits::default()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    println!("{} files; medians of {ROUNDS}", FOLDERS * FILES);
    for (name, pattern) in QUESTIONS {
        let (mode, args) = match name {
            "files" => ("files_with_matches", vec!["-l", pattern, "."]),
            _ => ("content", vec!["-n", pattern, "."]),
        };
        let call = call(pattern, mode);
        let (mut own, mut other, mut lines) = (Vec::new(), Vec::new(), (0, 0));
        for _ in 0..ROUNDS {
            let (took, found) = ours(&runtime, &workspace, &call);
            own.push(took);
            let (took, theirs) = theirs(&program, dir.path(), &args);
            other.push(took);
            lines = (found, theirs);
        }
        let (own, other) = (median(own), median(other));
        println!(
            "{name:<22} ours {:>6.1} ms ({} lines)  ripgrep {:>6.1} ms ({} lines)  {:.2} x",
            own.as_secs_f64() * 1e3,
            lines.0,
            other.as_secs_f64() * 1e3,
            lines.1,
            own.as_secs_f64() / other.as_secs_f64()
        );
    }
}

fn ripgrep() -> Option<PathBuf> {
    let named = std::env::var_os("RIPGREP").map(PathBuf::from);
    let path = std::env::var_os("PATH")?;
    named.or_else(|| {
        std::env::split_paths(&path).map(|folder| folder.join("rg")).find(|rg| rg.is_file())
    })
}
