//! Bash.

use std::time::Duration;

use provider::{CallContext, ProviderError};
use serde_json::json;
use testkit::client::PATIENCE;

use crate::rig::Rig;

#[tokio::test]
async fn output_errors_and_exit_code_come_back() {
    let rig = Rig::new();
    rig.put("sub/file", "");
    let root = rig.root.to_str().unwrap();
    for (arguments, expected, is_error) in [
        (json!({"command": "echo hi"}), "hi\n[exit code 0]".to_owned(), false),
        (json!({"command": "printf hi"}), "hi\n[exit code 0]".to_owned(), false),
        (json!({"command": "true"}), "[exit code 0]".to_owned(), false),
        (
            json!({"command": "echo out; echo err >&2; exit 3"}),
            "out\n[stderr]\nerr\n[exit code 3]".to_owned(),
            true,
        ),
        (json!({"command": "kill -9 $$"}), "[killed by signal 9]".to_owned(), true),
        (json!({"command": "pwd"}), format!("{root}\n[exit code 0]"), false),
        (json!({"command": "ls", "cwd": "sub"}), "file\n[exit code 0]".to_owned(), false),
        (json!({"command": "cat"}), "[exit code 0]".to_owned(), false),
    ] {
        let said = rig.call("Bash", arguments.clone()).await;
        assert_eq!((said.text(), said.is_error), (expected.as_str(), is_error), "{arguments}");
    }
    for (arguments, words) in [
        (json!({}), "'command' is missing"),
        (json!({"command": "true", "timeout_seconds": 601}), "at most 600"),
        (json!({"command": "true", "timeout_seconds": 0}), "must be more than 0"),
        (json!({"command": "true", "cwd": "no"}), "no' does not exist"),
        (json!({"command": "true", "cwd": "sub/file"}), "is not a directory"),
    ] {
        rig.call("Bash", arguments).await.refused(words);
    }
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle() {
    let rig = Rig::new();
    let command = "echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end";
    let said = rig.call("Bash", json!({"command": command})).await.ok();
    assert!(said.text().starts_with("begin\nxxx"));
    assert!(said.text().ends_with("xxx\nend\n[exit code 0]"));
    assert!(said.text().contains("bytes omitted"));
    assert!(said.text().len() <= 1024 * 1024, "{}", said.text().len());
}

#[tokio::test]
async fn a_timeout_kills_the_whole_group() {
    let rig = Rig::new();
    let command = "echo begun; (sleep 300 & echo $! > child; wait) & sleep 300";
    let calling = rig.call("Bash", json!({"command": command, "timeout_seconds": 1}));
    let said = tokio::time::timeout(PATIENCE, calling).await.expect("it ends before its children");
    assert_eq!(said.text(), "begun\n[killed: timed out after 1 s]");
    assert!(said.is_error);
    gone(rig.get("child").trim()).await;
}

#[tokio::test]
async fn what_a_command_leaves_running_ends_with_it() {
    let rig = Rig::new();
    let said = rig.call("Bash", json!({"command": "sleep 300 & echo $! > child"})).await;
    assert_eq!(said.ok().text(), "[exit code 0]");
    gone(rig.get("child").trim()).await;
}

#[tokio::test]
async fn a_cancelled_command_is_killed() {
    let rig = Rig::new();
    let ctx = CallContext::within(Duration::from_secs(60));
    let asked = json!({"command": "echo $$ > child; sleep 300"});
    let calling = rig.call_with("Bash", asked, &ctx);
    let cancelling = async {
        while !rig.root.join("child").exists() || rig.get("child").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        ctx.cancel.cancel();
    };
    let (said, ()) = tokio::join!(calling, cancelling);
    assert!(matches!(said, Err(ProviderError::Cancelled { .. })), "{said:?}");
    gone(rig.get("child").trim()).await;
}

#[tokio::test]
async fn a_command_is_killed_at_the_deadline_of_its_call() {
    let rig = Rig::new();
    let ctx = CallContext::within(Duration::from_millis(1500));
    let said = rig.call_with("Bash", json!({"command": "echo so far; sleep 300"}), &ctx).await;
    let said = said.unwrap();
    assert!(said.text().starts_with("so far\n[killed: "), "{}", said.text());
}

#[tokio::test]
async fn a_path_is_never_taken_for_a_command() {
    let rig = Rig::new();
    for path in ["$(touch pwned)", "`touch pwned`", "x; touch pwned", "x\ntouch pwned"] {
        rig.call("Write", json!({"path": path, "content": "y"})).await.ok();
        assert_eq!(rig.call("Read", json!({"path": path})).await.ok().text(), "y");
        rig.call("Grep", json!({"path": path, "pattern": "$(touch pwned)"})).await.ok();
        rig.call("Glob", json!({"pattern": path})).await;
        rig.call("Bash", json!({"command": "true", "cwd": path})).await.refused("directory");
    }
    assert!(!rig.root.join("pwned").exists());
}

/// Waits until a process is gone: a killed one may remain visible until its parent has reaped it.
async fn gone(id: &str) {
    for _ in 0..500 {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {id} is still there");
}
