//! Ctrl+C while the model is silent, and during one of its calls: the run ends at once, and no
//! process or file is left.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testkit::model::{ModelAnswer, Then, Turn};
use testkit::wait::eventually_within;

use super::{PROVIDER, chunk};
use crate::agents::ours;
use crate::agents::stage::{PATIENCE, Stage};
use crate::ledger::records_when;

#[tokio::test]
async fn a_run_that_is_interrupted_ends_at_once() {
    let begun = ModelAnswer::events([&chunk(json!({"content": "well"}), None)]);
    let sleep = json!({"command": "touch begun.txt; sleep 1000"});
    for (turn, calls) in [
        (Turn::Stall, 0),
        (Turn::Raw(begun.then(Then::Silence)), 0),
        (ours("Bash", sleep), 1),
        (Turn::Raw(ModelAnswer::status(429, "").with("retry-after", "30")), 0),
    ] {
        let name = format!("{turn:?}");
        let stage = Stage::new(PROVIDER, [turn, Turn::Stall]).await;
        let flow = stage.flow(&json!({"enable": true}));
        let mut child = stage.command(&flow, &stage.patient_gate()).spawn().unwrap();
        let begun = stage.workspace().join("begun.txt");
        eventually_within(PATIENCE, || async {
            (stage.model.turns().len() == 1 && begun.exists() == (calls == 1)).then_some(())
        })
        .await;
        let pid = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        let ended = tokio::time::timeout(PATIENCE, child.wait()).await;
        assert_eq!(ended.unwrap_or_else(|_| panic!("{name}")).unwrap().code(), Some(130), "{name}");
        let run = stage.last_run().await;
        assert_eq!(
            (&run["status"], &run["steps"][0]["status"]),
            (&json!("cancelled"), &json!("cancelled"))
        );
        let records = records_when(&stage.home(), |records| records.len() == calls).await;
        assert!(records.iter().all(|record| record["status"] == "unknown"), "{records:?}");
        stage.assert_nothing_left().await;
    }
}
