//! Plugins that misbehave: each gets a clear error, and leaves nothing behind.

use std::time::Duration;

use futures_util::future::join_all;
use provider::{CallContext, ProviderError};
use serde_json::json;
use tools::plugin::StartOptions;

use crate::rig::{Rig, gone};

/// The operations of the faulty plugin that can be tools.
const FAULTY: [&str; 9] =
    ["ok", "die", "hang", "freeze", "huge", "garbage", "refuse", "print", "fork"];

async fn refusal(rig: &Rig, name: &str, start: StartOptions) -> String {
    match rig.connect(name, start).await {
        Ok(_) => panic!("'{name}' was connected"),
        Err(reason) => reason,
    }
}

#[tokio::test]
async fn a_plugin_with_a_bad_handshake_is_reported_and_leaves_nothing() {
    for (name, body, words) in [
        ("silent", "exit 0", "the process exited (exit status: 0)"),
        (
            "broken",
            "echo 'no such library' >&2; exit 3",
            "(exit status: 3); last output: no such library",
        ),
        ("chatty", "yes noise", "it printed other output and did not announce its address"),
        ("core", "echo '9|1|unix|/x|grpc|'; sleep 300", "version 9 of go-plugin, expected 1"),
        ("version", "echo '1|2|unix|/x|grpc|'; sleep 300", "protocol version 2, expected 1"),
        (
            "netrpc",
            "echo '1|1|unix|/x|netrpc|'; sleep 300",
            "it uses the protocol 'netrpc', expected grpc",
        ),
        ("tcp", "echo '1|1|tcp|127.0.0.1:1|grpc|'; sleep 300", "it listens on 'tcp'"),
        (
            "tls",
            "echo \"1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/x|grpc|MIIB\"; sleep 300",
            "it requires TLS",
        ),
        ("outside", "echo '1|1|unix|/tmp/x|grpc|'; sleep 300", "is outside its private folder"),
        (
            "above",
            "echo \"1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/../x|grpc|\"; sleep 300",
            "is outside its private folder",
        ),
        (
            "nothing",
            "echo \"1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/x|grpc|\"; sleep 300",
            "is not a socket",
        ),
    ] {
        let rig = Rig::new();
        rig.script(name, &format!("echo $$ > pid\n{body}"));
        let refused = refusal(&rig, name, rig.start()).await;
        assert!(refused.starts_with(&format!("plugin '{name}': ")), "{refused}");
        assert!(refused.contains(words), "{name}: {refused}");
        gone(std::fs::read_to_string(rig.project.join("pid")).unwrap().trim()).await;
        rig.assert_empty();
    }
}

#[tokio::test]
async fn a_plugin_that_says_nothing_is_not_waited_for() {
    let rig = Rig::new();
    rig.script("slow", "echo $$ > pid\nwhile :; do sleep 1; done");
    let start = StartOptions { timeout: Duration::from_millis(800), ..rig.start() };
    let refused = refusal(&rig, "slow", start).await;
    assert!(refused.contains("not ready after 1 s"), "{refused}");
    gone(std::fs::read_to_string(rig.project.join("pid")).unwrap().trim()).await;
    rig.assert_empty();
}

#[tokio::test]
async fn the_environment_has_the_cookie_and_no_keys_of_ours() {
    let rig = Rig::new();
    rig.script("spy", "env > env; exit 1");
    refusal(&rig, "spy", rig.start()).await;
    let env = std::fs::read_to_string(rig.project.join("env")).unwrap();
    assert!(env.contains("AWF_PLUGIN=awf-plugin-v1\n"), "{env}");
    assert!(
        env.contains("PLUGIN_PROTOCOL_VERSIONS=1\n") && env.contains("PLUGIN_UNIX_SOCKET_DIR=/")
    );
    assert!(!env.contains("PLUGIN_CLIENT_CERT") && !env.contains("COUNTERSIGN_"), "{env}");
    assert!(env.contains("PATH=") && !env.contains("CARGO_"), "cargo set some: {env}");
}

#[tokio::test]
async fn a_plugin_that_misses_its_cookie_says_so() {
    let rig = Rig::new();
    let program = crate::rig::built("awf-plugin-echo");
    rig.script("uncooked", &format!("unset AWF_PLUGIN; exec {}", program.display()));
    let refused = refusal(&rig, "uncooked", rig.start()).await;
    assert!(
        refused.contains("(exit status: 1); last output: This binary is a plugin."),
        "{refused}"
    );
    rig.script("tls", &format!("PLUGIN_CLIENT_CERT=x exec {}", program.display()));
    assert!(refusal(&rig, "tls", rig.start()).await.contains("requires mutual TLS"));
    rig.assert_empty();
}

#[tokio::test]
async fn a_config_that_the_plugin_rejects_is_reported() {
    let mut rig = Rig::new();
    rig.install("faulty", "awf-plugin-faulty");
    rig.configure("faulty", &json!({"refuse": true}));
    let refused = refusal(&rig, "faulty", rig.exposing(&FAULTY)).await;
    assert!(refused.contains("Init failed: not with this config"), "{refused}");
    rig.assert_empty();
}

#[tokio::test]
async fn unusable_answers_are_reported_and_the_plugin_keeps_running() {
    let rig = Rig::new();
    rig.install("faulty", "awf-plugin-faulty");
    let faulty = rig.connect("faulty", rig.exposing(&FAULTY)).await.unwrap();
    for (tool, words) in [
        ("faulty_garbage", "returned data that is not valid JSON: 'bad'"),
        ("faulty_huge", "operation 'huge': the response must not exceed 16 MiB"),
    ] {
        let lost = faulty.call(tool, "{}").await;
        assert!(matches!(&lost, Err(ProviderError::Lost(it)) if it.contains(words)), "{lost:?}");
    }
    let said = faulty.call("faulty_refuse", "{}").await.unwrap();
    assert!(said.is_error && said.text.contains("operation 'refuse': not like this"), "{said:?}");
    let said = faulty.call("faulty_ok", "{}").await.unwrap();
    assert!(!said.is_error && said.text == "fine", "{said:?}");
    assert!(said.result.get("structuredContent").is_none());
    faulty.connected.close().await;
    rig.assert_empty();
}

#[tokio::test]
async fn what_is_too_large_to_send_is_not_sent() {
    let rig = Rig::new();
    rig.install("echo", "awf-plugin-echo");
    let echo = rig.connect("echo", rig.start()).await.unwrap();
    let arguments = json!({"text": "x".repeat(17 * 1024 * 1024)}).to_string();
    let said = echo.call("echo_echo", &arguments).await.unwrap();
    assert!(
        said.is_error && said.text.contains("the arguments must not exceed 16 MiB"),
        "{:.200}",
        said.text
    );
    echo.connected.close().await;
}

#[tokio::test]
async fn noise_becomes_log_lines() {
    let rig = Rig::new();
    rig.install("faulty", "awf-plugin-faulty");
    let faulty = rig.connect("faulty", rig.exposing(&FAULTY)).await.unwrap();
    faulty.call("faulty_print", "{}").await.unwrap();
    for words in [
        "noise before the line",
        "noise behind the line",
        "printed while it works",
        "complained while it works",
        "the plugin reports another name: 'other'",
    ] {
        faulty.heard(words).await;
    }
    faulty.connected.close().await;
}

#[tokio::test]
async fn a_crash_during_a_call_shows_the_last_output_to_operators_only() {
    let rig = Rig::new();
    rig.install("faulty", "awf-plugin-faulty");
    let faulty = rig.connect("faulty", rig.exposing(&FAULTY)).await.unwrap();
    let (died, lost) = tokio::join!(faulty.call("faulty_die", "{}"), faulty.connected.lost());
    assert!(matches!(died, Err(ProviderError::Lost(_))), "{died:?}");
    for reason in [died.unwrap_err().to_string(), lost.to_string()] {
        assert!(reason.starts_with("plugin 'faulty': the process exited (signal: 6"), "{reason}");
    }
    assert!(lost.said.as_deref().is_some_and(|said| said.contains("it is all over")), "{lost}");
    let after = faulty.call("faulty_ok", "{}").await;
    assert!(matches!(&after, Err(ProviderError::Unavailable(_))), "{after:?}");
    faulty.connected.close().await;
    rig.assert_empty();
}

#[tokio::test]
async fn a_hanging_call_ends_at_its_deadline_or_when_cancelled() {
    let rig = Rig::new();
    rig.install("faulty", "awf-plugin-faulty");
    let faulty = rig.connect("faulty", rig.exposing(&FAULTY)).await.unwrap();
    let ctx = CallContext::within(Duration::from_millis(300));
    let late = faulty.call_with("faulty_hang", "{}", &ctx).await;
    assert!(matches!(late, Err(ProviderError::Timeout { sent: true })), "{late:?}");

    let ctx = CallContext::within(crate::rig::PATIENCE);
    let calling = faulty.call_with("faulty_hang", "{}", &ctx);
    let cancelling = async { ctx.cancel.cancel() };
    let (cancelled, ()) = tokio::join!(calling, cancelling);
    assert!(matches!(cancelled, Err(ProviderError::Cancelled { .. })), "{cancelled:?}");
    let said = faulty.call("faulty_ok", "{}").await.unwrap();
    assert_eq!(said.text, "fine", "one call that hangs is not a plugin that hangs");
    faulty.connected.close().await;
    rig.assert_empty();
}

#[tokio::test]
async fn an_unresponsive_plugin_is_given_up() {
    let rig = Rig::new();
    rig.install("faulty", "awf-plugin-faulty");
    let faulty = rig.connect("faulty", rig.exposing(&FAULTY)).await.unwrap();
    let pids = faulty.call("faulty_fork", "{}").await.unwrap().text;
    let ctx = CallContext::within(Duration::from_millis(300));
    let late = faulty.call_with("faulty_freeze", "{}", &ctx).await;
    assert!(matches!(late, Err(ProviderError::Timeout { .. })), "{late:?}");
    let lost = faulty.connected.lost().await;
    assert!(lost.reason.contains("plugin 'faulty': it has stopped responding"), "{lost}");
    faulty.connected.close().await;
    for pid in pids.split(' ') {
        gone(pid).await;
    }
    rig.assert_empty();
}

#[tokio::test]
async fn a_plugin_that_does_not_exit_is_killed_with_its_children() {
    let rig = Rig::new();
    rig.install("faulty", "awf-plugin-faulty");
    // At once, since both wait for it to exit.
    let ended = [true, false].map(async |is_closed| {
        let faulty = rig.connect("faulty", rig.exposing(&FAULTY)).await.unwrap();
        let pids = faulty.call("faulty_fork", "{}").await.unwrap().text;
        assert_eq!(pids.split(' ').count(), 2, "{pids}");
        if is_closed {
            faulty.connected.close().await
        } else {
            // A plugin that is dropped without a close leaves nothing behind either.
            drop(faulty)
        }
        for pid in pids.split(' ') {
            if is_closed {
                gone(pid).await
            } else {
                tokio::time::timeout(crate::rig::PATIENCE, slowly_gone(pid)).await.unwrap()
            }
        }
    });
    join_all(ended).await;
}

/// Waits until the process is gone; a dropped plugin first gets time to shut down.
async fn slowly_gone(pid: &str) {
    while std::path::Path::new(&format!("/proc/{pid}")).exists() {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if state.contains(") Z ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
