//! Scenes in which something happens while the page is open: a run continues, and the gate itself
//! ends and starts again.

use std::cell::RefCell;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::foreign;
use testkit::gate::Serving;
use testkit::program::{program, run, stdout};
use testkit::wait::eventually;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use super::{nothing, play};
use crate::agents::stage::Stage;
use crate::run_story::{TALKS, go};

#[tokio::test]
async fn a_run_is_shown_while_it_goes_on() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let stage = Stage::new("claude", []).await;
    let mut step = stage.step_with(&json!({"enable": false}), &stage.fake_claude(TALKS));
    step["on_success"] = json!("check");
    let check =
        json!({"type": "step", "command": "echo out of cheese >&2; exit 7", "on_success": "done"});
    let flow = stage.flow_of(json!({"initial": "task", "task": step, "check": check}));
    let _gate = Serving::start(program(stage.dir())).await;
    let running = RefCell::new(None);
    let act = async |what: &str, args: Value| {
        match what {
            "link" => {
                let link = stdout(&run(stage.dir(), ["page"]).await);
                return json!({"link": link.trim()});
            }
            "run" => {
                let mut command = stage.command(&flow, &["-o", "quiet"]);
                command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
                running.replace(Some(command.spawn().unwrap()));
            }
            "go" => go(&stage),
            what => return nothing(what, args).await,
        }
        json!({})
    };
    play(stage.dir(), ("run.mjs", json!({})), act).await;
    let mut ended = running.take().unwrap();
    assert_eq!(ended.wait().await.unwrap().code(), Some(3));
}

/// Starts a gate at an address that another program has left. Somebody else may have its port for a
/// moment.
pub(super) async fn start_again(dir: &Path, address: &str) -> Child {
    eventually(|| async {
        let mut command = program(dir);
        command.args(["serve", "--listen", address, "-o", "json"]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let is_ready = matches!(said.next_line().await, Ok(Some(_)));
        is_ready.then_some(child)
    })
    .await
}

#[tokio::test]
async fn the_page_says_that_the_gate_is_gone_and_goes_on_when_it_is_back() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let first = Serving::start(program(dir.path())).await;
    let address = first.ready["listen"].as_str().unwrap().to_owned();
    let serving = RefCell::new(Some(first.child));
    let act = async |what: &str, args: Value| match what {
        "link" => json!({"link": stdout(&run(dir.path(), ["page"]).await).trim()}),
        "end" => {
            let mut child = serving.take().unwrap();
            child.kill().await.unwrap();
            json!({})
        }
        "start" => {
            serving.replace(Some(start_again(dir.path(), &address).await));
            json!({})
        }
        what => nothing(what, args).await,
    };
    play(dir.path(), ("gone.mjs", json!({})), act).await;
}
