//! Retention as operators see it: the rules of the home, signed statements, and tokens over their
//! share.

use std::fs;
use std::future::ready;
use std::path::Path;

use reqwest::Method;
use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::client::{Client, code};
use testkit::gate::Gate;
use testkit::program::{run, stderr, stdout};
use testkit::upstream::scripted;
use testkit::wait::eventually;
use testkit::wire::Wire;

use crate::locks::{client_with, decisions, make_token};

fn tools() -> Value {
    json!([{"name": "t", "annotations": {"readOnlyHint": true}}])
}

async fn gate(ledger: Value) -> Gate {
    let servers = |dir: &Path| json!({"s": scripted(dir, "s", &tools())});
    Gate::start(servers, json!({"ledger": ledger})).await
}

fn open(home: &Path) -> Connection {
    let db = testkit::ledger::edit(home);
    db.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    db
}

fn count(home: &Path, of: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) FROM {of}");
    open(home).query_row(&sql, [], |row| row.get(0)).unwrap()
}

/// Makes all records look older.
fn age(home: &Path, days: i64) {
    let by = days * 24 * 3_600_000_000;
    open(home).execute("UPDATE activity SET started_us = started_us - ?1", [by]).unwrap();
}

async fn call(gate: &Gate) {
    let output = gate.cli(&["call", "tool-read", "--tool-name=s:t"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// Repeats records of a token until it has this many.
pub(crate) fn fill(home: &Path, token: &str, count: i64) {
    let sql = "
        INSERT INTO activity (id, changed, chain, type, source, surface, server, tool, agent,
          started_us, status)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
        SELECT 'fill-' || i, i + (SELECT MAX(changed) FROM activity), chain, type, source, surface,
          server, tool, agent, started_us, status
        FROM n, (SELECT * FROM activity JOIN agents USING (agent) WHERE token = ?1 LIMIT 1)
        WHERE i <= ?2 - (SELECT COUNT(*) FROM activity JOIN agents USING (agent) WHERE token = ?1)";
    open(home).execute(sql, (token, count)).unwrap();
}

/// Repeats a call until it is refused because its token has filled the ledger.
pub(crate) async fn refused(client: &Client, tool: &str, arguments: Value) {
    eventually(|| async {
        let result = client.call(tool, arguments.clone()).await;
        (code(&result) == "LEDGER_SHARE_EXCEEDED").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_wrap_without_config_keeps_what_serve_was_told_to_keep() {
    let mut gate = gate(json!({"activity_retention_days": 36_500})).await;
    call(&gate).await;
    gate.end().await;
    // Older than the default of 90 days, and expired data that no receipt states yet: as soon as
    // that is stated, a whole round has passed.
    age(&gate.home(), 100);
    let left =
        r#"[{"kind":"payloads","reason":"size","holder":null,"count":1,"bytes":1,"span_us":null}]"#;
    let mut keys = fs::read_dir(gate.home().join("keys")).unwrap().map(|file| file.unwrap().path());
    let secret = keys.find(|path| path.to_string_lossy().ends_with(".secret.pem")).unwrap();
    let key = receipt::SigningKey::from_pem(&fs::read_to_string(secret).unwrap()).unwrap();
    let signature = receipt::statement::sign(&key, "deletions", left);
    let left = format!(r#"{{"signature":"{signature}","deleted":{left}}}"#);
    let sql = "INSERT INTO settings (name, value) VALUES ('expired_records', ?1)";
    open(&gate.home()).execute(sql, [left]).unwrap();
    let mut command = testkit::program::program(gate.dir.path());
    let server = scripted(gate.dir.path(), "s", &tools());
    command.args(["wrap", "--name", "s", "--"]).arg(server["command"].as_str().unwrap());
    command.args(server["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()));
    let mut wire = Wire::open(command);
    wire.greet().await;
    let home = gate.home();
    let is_stated = || count(&home, "settings WHERE name = 'expired_records'") == 0;
    eventually(|| ready(is_stated().then_some(()))).await;
    assert_eq!(count(&home, "activity WHERE tool = 't'"), 1);
}

#[tokio::test]
async fn a_reloaded_rule_applies_and_what_it_deletes_is_signed() {
    let mut gate = gate(json!({"activity_retention_days": 36_500})).await;
    call(&gate).await;
    gate.end().await;
    age(&gate.home(), 100);
    gate.restart().await;
    call(&gate).await;
    gate.rewrite(|config| config["ledger"]["activity_retention_days"] = 90.into());
    let home = gate.home();
    eventually(|| ready((count(&home, "activity WHERE tool = 't'") == 1).then_some(()))).await;
    let stated = "receipts WHERE action_type = 'agent_receipts.records_expired'";
    eventually(|| ready((count(&home, stated) == 1).then_some(()))).await;
    let list = ["receipt", "list", "--action-type", "agent_receipts.records_expired", "-o", "json"];
    let list: Value = serde_json::from_str(&stdout(&gate.cli(&list).await)).unwrap();
    let id = list["receipts"][0]["id"].as_str().unwrap();
    let receipt = stdout(&gate.cli(&["receipt", "show", "--raw", id]).await);
    let receipt: Value = serde_json::from_str(&receipt).unwrap();
    let expired = receipt["issuer"]["runtime"]["expired_records"].as_array().unwrap();
    let records = expired.iter().find(|data| data["kind"] == "records").unwrap();
    assert_eq!((&records["count"], &records["reason"]), (&1.into(), &"age".into()), "{receipt}");
    assert_eq!(records["from"], records["to"]);
}

#[tokio::test]
async fn a_token_that_fills_the_ledger_within_a_day_is_refused() {
    let mut gate = gate(json!({"max_records": 1_000})).await;
    let call = json!({"name": "s:t", "intent": {"operation_type": "read"}});
    for name in ["greedy", "honest"] {
        make_token(&decisions(&gate), name, &json!({"operations": ["read"]}));
        let client = client_with(&gate, name, "/mcp").await;
        assert_eq!(code(&client.call("call_tool_read", call.clone()).await), "ok");
    }
    gate.end().await;
    fill(&gate.home(), "greedy", 1_100);
    gate.restart().await;
    let greedy = client_with(&gate, "greedy", "/mcp").await;
    refused(&greedy, "call_tool_read", call.clone()).await;
    refused(&greedy, "call_tool_read", call.clone()).await;
    let honest = client_with(&gate, "honest", "/mcp").await;
    assert_eq!(code(&honest.call("call_tool_read", call.clone()).await), "ok");
    let (_, found) = gate.rest(Method::GET, "/api/v1/activity?status=blocked&tool=t", None).await;
    assert_eq!(found["total"], 1, "refusals are recorded once a minute: {found}");
    assert_eq!(found["activities"][0]["error_code"], "LEDGER_SHARE_EXCEEDED");
    assert!(count(&gate.home(), "activity") > 1_100, "nothing of the last day is deleted");
    gate.rewrite(|config| config["ledger"]["max_records"] = 10_000.into());
    eventually(|| async {
        let result = greedy.call("call_tool_read", call.clone()).await;
        (code(&result) == "ok").then_some(())
    })
    .await;
}

#[tokio::test]
async fn smoke_nothing_is_deleted_after_a_start_whose_clock_is_days_ahead() {
    let mut gate = gate(json!({"activity_retention_days": 1})).await;
    call(&gate).await;
    gate.end().await;
    age(&gate.home(), 30);
    let past = "UPDATE receipts SET receipt_json = json_set(receipt_json, '$.issuanceDate',
                  '2020-01-01T00:00:00.000Z')";
    open(&gate.home()).execute(past, []).unwrap();
    gate.restart().await;
    gate.log_line("more than a day before the time that the clock shows").await;
    call(&gate).await;
    let output = run(gate.dir.path(), ["activity", "list", "--tool", "t", "-o", "json"]).await;
    let list: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(list["total"], 2, "{list}");
}
