//! Config entries for scripted stdio servers, and the processes that a gate starts from them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::example;
use crate::wait::eventually;

/// Returns the scripted server's program.
pub fn scripted_upstream() -> PathBuf {
    example("scripted_upstream")
}

/// Returns a config entry for a scripted server with these tools.
pub fn scripted(dir: &Path, name: &str, tools: &Value) -> Value {
    let file = dir.join(format!("{name}.tools.json"));
    std::fs::write(&file, tools.to_string()).expect("the tools can be written");
    json!({"command": scripted_upstream(), "args": [file]})
}

/// Makes the server's new tools need no approval, for lists that change on purpose.
pub fn accepting_new(mut entry: Value) -> Value {
    entry["auto_approve"] = "new".into();
    entry
}

/// Returns an entry for the same server, which first adds its process id to the file `<name>.pids`.
pub fn counted(dir: &Path, name: &str, tools: &Value) -> Value {
    let server = scripted(dir, name, tools);
    let note = r#"echo $$ >> "$0"; exec "$@""#;
    let pids = dir.join(format!("{name}.pids"));
    json!({"command": "sh", "args": ["-c", note, pids, server["command"], server["args"][0]]})
}

/// Returns the processes of a counted server, oldest first.
pub fn pids(dir: &Path, name: &str) -> Vec<i32> {
    let text = std::fs::read_to_string(dir.join(format!("{name}.pids"))).unwrap_or_default();
    text.lines().map(|pid| pid.parse().expect("a pid")).collect()
}

/// Waits until the process is gone.
pub async fn ended(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
    eventually(|| async { rustix::process::test_kill_process(pid).is_err().then_some(()) }).await;
}
