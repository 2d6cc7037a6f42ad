//! A foreign server: llama.cpp's own, with a tiny model that only knows which token follows which.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::foreign;
use testkit::program::command;
use testkit::wait::eventually_within;
use tokio::process::Child;

use super::{KEY, PROVIDER};
use crate::agents::stage::Stage;
use crate::ledger::records_when;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/peers/llama.py");

/// The server, which ends when its stdin does.
struct Llama {
    child: Child,
    url: String,
}

impl Llama {
    async fn start(stage: &Stage) -> Llama {
        let python = foreign::program("python-llama/bin/python");
        let told = std::fs::File::create(stage.dir().join("llama.log")).unwrap();
        let url = stage.dir().join("llama.url");
        let mut command = command(&python, stage.dir());
        command
            .args([SCRIPT, KEY])
            .arg(stage.dir().join("bigram.gguf"))
            .arg(&url)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(told)
            .kill_on_drop(true);
        let child = command.spawn().unwrap();
        let url = eventually_within(crate::agents::stage::PATIENCE, || async {
            std::fs::read_to_string(&url).ok().filter(|url| url.ends_with('\n'))
        })
        .await;
        Llama { child, url: url.trim().to_owned() }
    }
}

#[tokio::test]
async fn llama_cpp_works_through_the_gate() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let stage = Stage::new(PROVIDER, []).await;
    let mut llama = Llama::start(&stage).await;
    for (number, stream) in [true, false].into_iter().enumerate() {
        let mut step = stage.step(&json!({"enable": true}));
        step["options"]["base_url"] = json!(format!("{}/v1", llama.url));
        step["options"]["api_key"] = json!(KEY);
        step["options"]["stream"] = json!(stream);
        let flow = stage.flow_of(json!({"initial": "task", "task": step}));
        let (ran, words) = stage.run_json(&flow, &[]).await;
        let step = &ran["steps"][0];
        assert_eq!(step["output"], "The file has been read \u{2713}", "{words}");
        assert!(step["tokens"].as_u64().is_some_and(|tokens| tokens > 100), "{words}");
        let records = records_when(&stage.home(), |records| records.len() == number + 1).await;
        let record = records.last().unwrap();
        assert_eq!((&record["tool"], &record["status"]), (&json!("Read"), &json!("success")));
        assert!(record["receipt_id"].is_string(), "{record}");
    }
    let mut step = stage.step(&json!({"enable": true}));
    step["options"]["base_url"] = json!(format!("{}/v1", llama.url));
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let (ran, words) = stage.run_json(&flow, &[]).await;
    let message: &Value = &ran["steps"][0]["error_message"];
    let said = "rejected the api_key (HTTP 401): Invalid API Key";
    assert!(message.as_str().unwrap().ends_with(said), "{words}");
    llama.child.kill().await.unwrap();
}
