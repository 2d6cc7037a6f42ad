//! The example plugins, end to end.

use std::collections::BTreeSet;

use provider::Connector;
use serde_json::json;
use tools::plugin::{Plugin, StartOptions, operations};

use crate::rig::{Rig, built, place};

#[tokio::test]
async fn the_echo_plugin_gives_back_what_it_is_given() {
    let rig = Rig::new();
    rig.install("echo", "awf-plugin-echo");
    let echo = rig.connect("echo", rig.start()).await.unwrap();
    let tools = echo.tools().await;
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0]["name"], "echo_echo");
    let words = tools[0]["description"].as_str().unwrap();
    assert!(words.ends_with("Returns a JSON object with: text."), "{words}");
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["text"]));
    assert!(tools[0].get("annotations").is_none(), "a plugin says nothing of its effects");

    let said = echo.call("echo_echo", r#"{"text": "grüß \"dich\"\n", "prefix": "> "}"#).await;
    let said = said.unwrap();
    assert!(!said.is_error);
    assert_eq!(said.result["structuredContent"], json!({"text": "> grüß \"dich\"\n"}));
    assert_eq!(said.text, said.result["structuredContent"].to_string());

    let refused = echo.call("echo_echo", "{}").await.unwrap();
    assert!(
        refused.is_error && refused.text == "'text' is required and must be a string",
        "{refused:?}"
    );
    let unknown = echo.call("echo_other", "{}").await.unwrap();
    assert!(unknown.is_error && unknown.text.contains("has no tool 'echo_other'"));

    echo.connected.close().await;
    assert!(echo.connected.lost().await.reason.contains("closed"));
    rig.assert_empty();
}

#[tokio::test]
async fn the_sqlite_plugin_answers_from_the_database_of_its_config() {
    let mut rig = Rig::new();
    let folder =
        place(&rig.own, "sqlite", include_str!("../../../../examples/plugins/sqlite/plugin.yaml"));
    std::fs::copy(built("awf-plugin-sqlite"), folder.join("awf-plugin-sqlite")).unwrap();
    assert_eq!(rig.found("sqlite").fault.as_deref(), Some("config 'database' is required"));

    let file = rig.project.join("x.db");
    let database = rusqlite::Connection::open(&file).unwrap();
    let rows = "CREATE TABLE pets (name TEXT, age INTEGER);
        INSERT INTO pets VALUES ('Tom', 3), ('Kim', 9), ('Zoe', NULL);";
    database.execute_batch(rows).unwrap();
    rig.configure("sqlite", &json!({"database": file, "rows_max": 2}));
    let sqlite = rig.connect("sqlite", rig.start()).await.unwrap();

    let asked = r#"{"sql": "SELECT name, age FROM pets WHERE age > ?1", "values": [4]}"#;
    let said = sqlite.call("sqlite_query", asked).await.unwrap();
    let expected = json!({"columns": ["name", "age"], "more": false, "rows": [["Kim", 9]]});
    assert_eq!(said.result["structuredContent"], expected);
    let all = sqlite.call("sqlite_query", r#"{"sql": "SELECT age FROM pets"}"#).await.unwrap();
    assert_eq!(all.result["structuredContent"]["more"], true, "the config allows two rows");
    let tables = sqlite.call("sqlite_tables", "{}").await.unwrap();
    assert_eq!(tables.result["structuredContent"]["tables"][0]["name"], "pets");
    let refused = sqlite.call("sqlite_query", r#"{"sql": "DELETE FROM pets"}"#).await.unwrap();
    assert!(refused.is_error && refused.text.contains("readonly"), "{}", refused.text);
    sqlite.connected.close().await;
}

#[tokio::test]
async fn only_what_is_exposed_becomes_tools() {
    let rig = Rig::new();
    rig.install("faulty", "awf-plugin-faulty");
    let some = rig.connect("faulty", rig.exposing(&["ok", "print"])).await.unwrap();
    let names: Vec<_> = some.tools().await.iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["faulty_ok", "faulty_print"]);
    let hidden = some.call("faulty_refuse", "{}").await.unwrap();
    assert!(hidden.is_error && hidden.text.contains("has no tool"), "{}", hidden.text);
    some.connected.close().await;

    let Err(all) = rig.connect("faulty", rig.start()).await else { panic!("it was mapped") };
    assert!(
        all.contains("plugin 'faulty', operation 'odd', input 'at': unknown type 'date'"),
        "{all}"
    );
    let needed = Some(BTreeSet::from(["ok".to_owned()]));
    let start = StartOptions { needed, ..rig.start() };
    let most = rig.connect("faulty", start).await.unwrap();
    let names: Vec<_> = most.tools().await.iter().map(|tool| tool["name"].clone()).collect();
    assert!(names.contains(&json!("faulty_ok")) && names.contains(&json!("faulty_print")));
    assert!(!names.contains(&json!("faulty_odd")), "{names:?}");
    most.connected.close().await;
    let Err(missing) = rig.connect("faulty", rig.exposing(&["hung"])).await else { panic!() };
    assert!(missing.contains("no operation 'hung'; did you mean 'hang'"), "{missing}");
    rig.assert_empty();

    let names = operations(&rig.plugin("faulty", rig.start())).await.unwrap();
    assert!(names["odd"].is_err() && names["ok"].is_ok(), "{names:?}");
    rig.assert_empty();
}

#[tokio::test]
async fn arguments_arrive_as_they_were_written() {
    let rig = Rig::new();
    rig.install("faulty", "awf-plugin-faulty");
    let faulty = rig.connect("faulty", rig.exposing(&["mirror"])).await.unwrap();
    let written = r#"{"a":[1.50,12345678901234567890123,{"b":null}],"n":-0.0,"s":"\u00e9"}"#;
    let said = faulty.call("faulty_mirror", written).await.unwrap();
    assert_eq!(said.text, written, "there and back, every number and escape is the same text");
    faulty.connected.close().await;
}

#[tokio::test]
async fn the_same_plugin_can_be_started_again_and_at_once() {
    let rig = Rig::new();
    rig.install("echo", "awf-plugin-echo");
    let plugin = rig.plugin("echo", rig.start());
    let said = mcp::child::StderrTail::default();
    let (first, second) = tokio::join!(plugin.connect(&said), plugin.connect(&said));
    let (first, second) = (first.unwrap(), second.unwrap());
    first.close().await;
    assert_eq!(second.tools().await.unwrap().len(), 1);
    second.close().await;
    let third = plugin.connect(&said).await.unwrap();
    third.close().await;
    rig.assert_empty();
}

#[tokio::test]
async fn the_approved_program_is_the_one_that_is_started() {
    let mut rig = Rig::new();
    let plugins = rig.project.join(".countersign/plugins");
    let folder = place(&plugins, "echo", &crate::rig::manifest("echo"));
    let program = folder.join("awf-plugin-echo");
    std::fs::copy(built("awf-plugin-echo"), &program).unwrap();
    let found = rig.found("echo");
    assert!(found.needs_approval());
    let approved = Plugin::new(found.clone(), rig.start());
    let said = mcp::child::StderrTail::default();
    let echo = approved.connect(&said).await.unwrap();
    let running = std::fs::read_dir(rig.sockets()).unwrap().next().unwrap().unwrap().path();
    assert!(running.join("awf-plugin-echo").is_file(), "it runs from a copy of its own");
    echo.close().await;

    let mark = rig.project.join("ran");
    std::fs::remove_file(&program).unwrap();
    crate::rig::executable(&program, &format!("touch {}", mark.display()));
    let Err(refused) = approved.connect(&said).await else { panic!("it was started") };
    assert!(refused.reason.contains("has changed since it was approved"), "{refused}");
    assert!(!mark.exists());
    assert_ne!(rig.found("echo").identity(), found.identity());
    rig.assert_empty();

    rig.configured.push(domain::config::PluginConfig {
        name: "echo".to_owned(),
        path: None,
        config: Default::default(),
        env: Vec::new(),
        sha256: Some(found.executable_sha256),
    });
    let pinned = rig.found("echo");
    assert!(pinned.fault.as_deref().unwrap().contains("SHA-256 is"), "{:?}", pinned.fault);
    let Err(refused) = Plugin::new(pinned, rig.start()).connect(&said).await else { panic!() };
    assert!(refused.reason.contains("SHA-256") && !mark.exists(), "{refused}");
}
