//! A plugin that shares no code with us: in Python, with the official gRPC and protobuf.

use serde_json::json;
use testkit::foreign;

use crate::rig::Rig;

#[tokio::test]
async fn a_plugin_in_python_is_found_started_asked_and_ended() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let mut rig = Rig::new();
    let python = foreign::program("python-plugin");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plugin/foreign.py");
    let run = format!(
        "echo $$ > pid\nPYTHONPATH={0}/generated exec {0}/bin/python {program}",
        python.display()
    );
    rig.script("foreign", &run);
    rig.configure("foreign", &json!({"greeting": "Hej", "loud": true}));
    let foreign = rig.connect("foreign", rig.start()).await.unwrap();
    let tools = foreign.tools().await;
    assert_eq!(tools[0]["name"], "foreign_greet");
    assert_eq!(
        tools[0]["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Whom"},
                "times": {"type": "integer", "default": 1},
                "page": {"type": "string", "format": "uri"},
                "tags": {"type": "array", "items": {}, "default": ["a"]},
                "more": {"type": "object"},
                "sure": {"type": "boolean", "default": false},
                "share": {"type": "number", "default": 0.5},
            },
            "required": ["name"],
            "additionalProperties": false,
        })
    );
    let arguments = r#"{"name": "Åsa", "times": 2, "more": {"deep": [1, {"x": null}]}}"#;
    let said = foreign.call("foreign_greet", arguments).await.unwrap();
    assert!(!said.is_error, "{}", said.text);
    assert_eq!(
        said.result["structuredContent"],
        json!({
            "greeting": "Hej Åsa! Hej Åsa!",
            "inputs": {"name": "Åsa", "times": 2, "more": {"deep": [1, {"x": null}]}},
            "output": "greeted",
        })
    );
    let failed = foreign.call("foreign_fail", "{}").await.unwrap();
    assert!(failed.is_error && failed.text == "it always does", "{}", failed.text);
    let raised = foreign.call("foreign_raise", "{}").await.unwrap();
    assert!(raised.is_error && raised.text.contains("Exception calling application: oh"));
    foreign.heard("greeting Åsa").await;
    foreign.connected.close().await;
    crate::rig::gone(std::fs::read_to_string(rig.project.join("pid")).unwrap().trim()).await;
    rig.assert_empty();
}
