//! The description of the machine and the build that a result comes from.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Describes this machine, the commit of the working tree, and the versions of `tools`.
pub(crate) fn describe(tools: &[&str]) -> Value {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut machine = json!({
        "cpu": cpu(),
        "cores": cores,
        // What follows the version names a distribution's build.
        "kernel": read("/proc/sys/kernel/osrelease").split('-').next(),
        "rustc": version("rustc"),
        "commit": commit(),
    });
    for tool in tools {
        machine[*tool] = json!(version(tool));
    }
    machine
}

/// Returns the first line that `tool --version` prints, unless it cannot be run.
pub(crate) fn version(tool: &str) -> Option<String> {
    first_line(Command::new(tool).arg("--version"))
}

/// Writes a result that is kept in the repository.
pub(crate) fn save(file: &Path, result: &Value) {
    let text = serde_json::to_string_pretty(result).expect("JSON") + "\n";
    fs::create_dir_all(file.parent().expect("it is in a folder")).expect("a folder");
    fs::write(file, text).expect("the result can be written");
}

fn cpu() -> String {
    let text = read("/proc/cpuinfo");
    let model = text.lines().find_map(|line| line.strip_prefix("model name"));
    model.unwrap_or_default().trim_start_matches([' ', '\t', ':']).to_owned()
}

fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        first_line(command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments))
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some();
    Some(if is_changed { format!("{commit}, changed") } else { commit })
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_owned)
}

fn read(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default().trim().to_owned()
}
