//! The key of a model's server is in nothing that people or programs can read.

use std::path::Path;

use serde_json::json;
use testkit::model::{ModelAnswer, Turn};
use testkit::otlp::Collector;
use testkit::program::{stderr, stdout};

use super::{KEY, PROVIDER, calls, chunk};
use crate::agents::say;
use crate::agents::stage::{Stage, ended};

/// Checks that the key is in no output, and in no byte of the home, which holds the records of the
/// run too.
pub(super) async fn assert_nowhere(stage: &Stage, words: &str) {
    assert!(!words.contains(KEY), "{words}");
    let shown = stage.last_run().await.to_string();
    assert!(!shown.contains(KEY), "{shown}");
    assert!(searched(&stage.home()) > 3, "the home has files");
}

/// Returns the number of files searched; none may contain the key.
fn searched(folder: &Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            count += searched(&path);
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
            assert!(!found, "{}", path.display());
            count += 1;
        }
    }
    count
}

/// A server that repeats the key wherever it can.
#[tokio::test]
async fn a_key_echoed_by_the_server_appears_nowhere() {
    let collector = Collector::grpc().await;
    let error = json!({"error": {"message": "bad key {authorization}"}}).to_string();
    let echo = |finish: &str| chunk(json!({"content": "you said {authorization}"}), Some(finish));
    let endings = [
        Turn::Raw(ModelAnswer::status(401, &error)),
        Turn::Raw(ModelAnswer::status(500, "oh {authorization}")),
        Turn::Raw(ModelAnswer::events([
            &json!({"error": {"message": "no {authorization}", "code": 400}}),
        ])),
        Turn::Raw(ModelAnswer::events([&echo("stop")])),
    ];
    for (number, ending) in endings.into_iter().enumerate() {
        let path = "{\"path\": \"{authorization}\"}";
        let bash = "{\"command\": \"env; echo $OPENAI_API_KEY\"}";
        let asked = [
            json!({"id": "a", "name": "Read", "arguments": path}),
            json!({"id": "b", "name": "Bash", "arguments": bash}),
        ];
        let turns = [calls(&asked, "tool_calls")];
        let turns = turns.into_iter().chain(vec![ending; 4]).chain([say("never")]);
        let stage = Stage::new(PROVIDER, turns).await;
        let mut step = stage.step(&json!({"enable": true}));
        step["options"].as_object_mut().unwrap().remove("api_key");
        let then = json!({"type": "step", "command": "echo {{.states.task.Output}}",
                          "on_success": "done"});
        step["on_success"] = json!("then");
        let flow = stage.flow_of(json!({"initial": "task", "task": step, "then": then}));
        let mut command = stage.command(&flow, &["-o", "json", "--otel-exporter", &collector.url]);
        command.env("OPENAI_API_KEY", KEY).env("COUNTERSIGN_LOG", "trace").env("RUST_LOG", "trace");
        let output = ended(command).await;
        let words = format!("{}\n{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code() == Some(0), number == 3, "{words}");
        assert!(words.contains("[redacted]"), "{words}");
        assert_eq!(stage.model.turns()[0].authorization, Some(format!("Bearer {KEY}")));
        assert_nowhere(&stage, &words).await;
    }
    collector.spans(4 * 5).await;
    assert!(!collector.text().contains(KEY));
}
