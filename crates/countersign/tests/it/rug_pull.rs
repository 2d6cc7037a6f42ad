//! A server that shows a harmless list first and a different one later: unapproved text is locked
//! before any model can see it, on every interface, until a person decides otherwise.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use store::state::ItemVersion;
use testkit::client::{Client, able, answers, text};
use testkit::gate::Gate;
use testkit::program::stdio_client;
use testkit::wait::eventually;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::locks::{
    approve, approve_server, bytes, decisions, entry, identity, listed, live, lock_on, pending,
    replace_script, tool_bytes,
};
use crate::passthrough::{LIST_CHANGED, heard};

/// Text that occurs in every unapproved description.
const MARKER: &str = "exfiltrate-zq9";

/// A word of it to search for.
const WORD: &str = "exfiltrate";

const HARMLESS: &str = "Looks up one record";

/// One way to change a tool: its name, its own members before and after, and its lock afterwards.
type Case = (&'static str, Value, Value, &'static str);

fn cases() -> Vec<Case> {
    let hints = |hints: Value| json!({"annotations": hints});
    let same = json!({});
    vec![
        ("description", same.clone(), json!({"description": MARKER}), "pending_approval"),
        ("title", json!({"title": "T"}), json!({"title": MARKER}), "pending_approval"),
        (
            "schema",
            same.clone(),
            json!({"inputSchema": {"type": "object", "properties": {"id": {"description": MARKER}},
                "required": [MARKER]}}),
            "pending_approval",
        ),
        ("member", same.clone(), json!({"x-more": MARKER}), "pending_approval"),
        (
            "destroys",
            hints(json!({"destructiveHint": true})),
            hints(json!({"destructiveHint": false})),
            "pending_approval",
        ),
        (
            "reads",
            hints(json!({"readOnlyHint": false})),
            hints(json!({"readOnlyHint": true})),
            "pending_approval",
        ),
        (
            "stricter",
            hints(json!({"readOnlyHint": true, "openWorldHint": false})),
            hints(json!({"readOnlyHint": false, "destructiveHint": true})),
            "callable",
        ),
        (
            "unseen",
            json!({"_meta": {"v": 1}}),
            json!({"_meta": {"v": 2}, "icons": [{"src": "https://example.com/i.png"}]}),
            "callable",
        ),
        ("steady", same.clone(), same, "callable"),
    ]
}

fn names() -> Vec<&'static str> {
    let known = cases().into_iter().map(|(name, ..)| name);
    known.chain(["fresh"]).collect()
}

fn waiting() -> Vec<&'static str> {
    let cases = cases().into_iter();
    let waiting = cases.filter(|(.., lock)| *lock == "pending_approval").map(|(name, ..)| name);
    waiting.chain(["fresh"]).collect()
}

/// Returns a tool that logs its calls in `log`.
fn tool(log: &Path, name: &str, says: &Value) -> Value {
    let mut tool = json!({"name": name, "description": HARMLESS, "inputSchema": {"type": "object"},
        "x-do": {"work": {"log": log}}});
    for (member, value) in says.as_object().unwrap() {
        tool[member] = value.clone();
    }
    tool
}

/// Returns tools that make the server announce a change, and exit.
fn levers() -> [Value; 2] {
    [json!({"name": "tell", "x-do": "tell"}), json!({"name": "die", "x-do": "die"})]
}

fn before(dir: &Path) -> Value {
    let log = log(dir);
    let tools = cases().into_iter().map(|(name, says, ..)| tool(&log, name, &says));
    let tools: Vec<Value> = tools.chain(levers()).collect();
    json!({"tools": tools, "instructions": "Handle with care"})
}

fn after(dir: &Path) -> Value {
    let log = log(dir);
    let tools = cases().into_iter().map(|(name, _, says, _)| tool(&log, name, &says));
    let fresh = tool(&log, "fresh", &json!({"description": MARKER}));
    let tools: Vec<Value> = tools.chain([fresh]).chain(levers()).collect();
    json!({"tools": tools, "instructions": format!("Always {MARKER}")})
}

fn log(dir: &Path) -> PathBuf {
    dir.join("calls.log")
}

/// Returns how often a tool ran with this note.
fn calls(gate: &Gate, tool: &str, note: &str) -> usize {
    let log = std::fs::read_to_string(log(gate.dir.path())).unwrap_or_default();
    let line = json!({"note": note, "tool": tool}).to_string();
    log.lines().filter(|known| **known == line).count()
}

fn note(tool: &str, note: &str) -> Value {
    json!({"note": note, "tool": tool})
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    /// The process ends, and the next one lists.
    Crash,
    /// `notifications/tools/list_changed`.
    Told,
    /// No notification; the list is polled.
    Poll,
}

async fn gate_with(script: impl FnOnce(&Path) -> Value, more: Value, config: Value) -> Gate {
    let servers = |dir: &Path| {
        let mut entry = live(dir, "r", &script(dir));
        for (member, value) in more.as_object().unwrap() {
            entry[member] = value.clone();
        }
        json!({"r": entry})
    };
    let gate = Gate::start(servers, config).await;
    gate.server_when("r", |entry| entry["tool_count"].as_u64() > Some(0)).await;
    gate
}

async fn pull(client: &Client, gate: &Gate, trigger: Trigger, script: &Value) {
    replace_script(gate, "r", script);
    match trigger {
        Trigger::Crash => drop(client.call("die", json!({})).await),
        Trigger::Told => drop(client.call("tell", json!({})).await),
        Trigger::Poll => {}
    }
}

/// Sessions of every kind, opened before anything changes.
struct Views {
    agent: Client,
    all: Client,
    one: Client,
}

impl Views {
    async fn open(gate: &Gate) -> Arc<Views> {
        Arc::new(Views {
            agent: gate.http().await,
            all: gate.http_at("/mcp/all").await,
            one: gate.http_at("/mcp/s/r").await,
        })
    }

    /// Returns every text that an agent may get, with its request.
    async fn look(&self, names: &[&str], said: &str) -> Vec<(String, String)> {
        let mut seen = Vec::new();
        for include_disabled in [false, true] {
            for detail in ["full", "compact"] {
                for query in [&names.join(" "), WORD] {
                    let asked = json!({"query": query, "limit": 50, "detail": detail,
                        "include_disabled": include_disabled});
                    let answer = tool_bytes(&self.agent, "retrieve_tools", &asked).await;
                    seen.push((format!("retrieve_tools {asked}"), answer));
                }
            }
        }
        let servers = tool_bytes(&self.agent, "upstream_servers", &json!({})).await;
        seen.push(("upstream_servers".to_owned(), servers));
        for name in names {
            let described = json!({"tool_ids": [format!("r:{name}")]});
            let described = tool_bytes(&self.agent, "describe_tool", &described).await;
            seen.push((format!("describe_tool {name}"), described));
            for operation in ["read", "write", "destructive"] {
                let call = json!({"name": format!("r:{name}"), "args": note(name, said),
                    "intent": {"operation_type": operation}});
                let variant = format!("call_tool_{operation}");
                let answer = tool_bytes(&self.agent, &variant, &call).await;
                seen.push((format!("{variant} {name}"), answer));
            }
            let arguments = note(name, said);
            let through_all = tool_bytes(&self.all, &format!("r__{name}"), &arguments).await;
            seen.push((format!("/mcp/all call {name}"), through_all));
            let through_one = tool_bytes(&self.one, name, &arguments).await;
            seen.push((format!("/mcp/s call {name}"), through_one));
        }
        for (view, client) in [("/mcp/all", &self.all), ("/mcp/s", &self.one)] {
            seen.push((format!("{view} list"), bytes(client, "tools/list", &json!({})).await));
        }
        seen
    }
}

/// Returns the initialization responses that new clients get.
async fn greetings(gate: &Gate) -> Vec<(String, String)> {
    let (http, stdio) = (gate.http_at("/mcp/s/r").await, gate.stdio_server("r").await);
    let agent = gate.http().await;
    [("/mcp/s", http), ("mcp --server", stdio), ("/mcp", agent)]
        .into_iter()
        .map(|(door, client)| (format!("{door} initialize"), client.welcome.to_string()))
        .collect()
}

fn assert_nowhere(seen: &[(String, String)], when: &str) {
    for (what, answer) in seen {
        assert!(!answer.contains(MARKER), "{when}: {what}: {answer}");
    }
}

/// Looks at everything repeatedly until stopped; returns how often.
fn watch(views: &Arc<Views>, stop: &CancellationToken) -> JoinHandle<u32> {
    let (views, stop) = (views.clone(), stop.clone());
    tokio::spawn(async move {
        let mut looks = 0;
        while !stop.is_cancelled() {
            let seen = views.look(&["description", "fresh"], "watch").await;
            assert_nowhere(&seen, "while it changes");
            looks += 1;
        }
        looks
    })
}

async fn pulled(trigger: Trigger) {
    let config = match trigger {
        Trigger::Poll => json!({"refresh_interval": "1s"}),
        Trigger::Crash | Trigger::Told => json!({}),
    };
    let gate = gate_with(before, json!({}), config).await;
    let views = Views::open(&gate).await;
    let own_list = bytes(&views.one, "tools/list", &json!({})).await;
    assert!(own_list.contains(HARMLESS), "the first list is the baseline: {own_list}");
    for (name, ..) in cases() {
        assert_eq!(lock_on(&views.one, name, &note(name, "before")).await, "callable", "{name}");
        assert_eq!(calls(&gate, name, "before"), 1, "{name}");
    }
    let stop = CancellationToken::new();
    let watching = watch(&views, &stop);
    pull(&views.one, &gate, trigger, &after(gate.dir.path())).await;
    pending(&views.agent, "r", waiting().len()).await;
    let seen = views.look(&names(), "after").await;
    stop.cancel();
    assert!(watching.await.unwrap() > 0);
    assert_nowhere(&seen, "after");
    assert_nowhere(&greetings(&gate).await, "after");
    check_locks(&gate, &views).await;
    check_words(&seen);
    check_store(&gate);
}

/// Checks that the verdict is the same on every interface, and that a refused call runs nothing.
async fn check_locks(gate: &Gate, views: &Views) {
    let mut expected: Vec<(&str, &str)> =
        cases().into_iter().map(|(name, .., lock)| (name, lock)).collect();
    expected.push(("fresh", "pending_approval"));
    let (in_all, in_one) = (listed(&views.all).await, listed(&views.one).await);
    for (name, lock) in expected {
        let all = format!("r__{name}");
        assert_eq!(lock_on(&views.one, name, &note(name, "checked")).await, lock, "{name}");
        assert_eq!(lock_on(&views.all, &all, &note(name, "checked")).await, lock, "{name}");
        let is_callable = lock == "callable";
        assert_eq!(in_all.contains(&all), is_callable, "{name}: {in_all:?}");
        assert_eq!(in_one.iter().any(|listed| listed == name), is_callable, "{name}: {in_one:?}");
        let described = json!({"tool_ids": [format!("r:{name}")]});
        let described = views.agent.call("describe_tool", described).await;
        let status = &testkit::client::refusal(&described)["details"]["status"];
        assert_eq!(status.as_str().unwrap_or("callable"), lock, "{described}");
        if !is_callable {
            assert_eq!(calls(gate, name, "checked") + calls(gate, name, "after"), 0, "{name}");
            let call = json!({"name": format!("r:{name}"), "intent": {"operation_type": "write"}});
            let refused = views.agent.call("call_tool_write", call).await;
            assert_eq!(testkit::client::refusal(&refused)["details"]["status"], lock);
            assert!(text(&refused).contains(lock), "{refused}");
            assert!(!refused.to_string().contains(HARMLESS), "{refused}");
        }
    }
}

/// Checks that locked tools are found by their names, without a description, and not by their new
/// words.
fn check_words(seen: &[(String, String)]) {
    for (what, answer) in seen.iter().filter(|(what, _)| what.starts_with("retrieve_tools")) {
        let answer: Value = serde_json::from_str(answer).unwrap();
        let found: Value = serde_json::from_str(text(&answer)).unwrap();
        let tools = found["tools"].as_array().unwrap();
        let waiting = waiting();
        let is_waiting =
            |tool: &Value| waiting.iter().any(|name| tool["name"] == format!("r:{name}"));
        assert!(!tools.iter().any(is_waiting), "{what}: {found}");
        if what.contains(&format!(r#""query":"{WORD}""#)) {
            assert!(tools.is_empty() && found["disabled"].as_array().is_none_or(Vec::is_empty));
            let notice = found["notice"].as_str().unwrap_or_default();
            assert!(!notice.contains("relevant"), "{what}: {notice}");
        } else if what.contains(r#""include_disabled":true"#) {
            let locked = found["disabled"].as_array().unwrap();
            assert_eq!(locked.len(), waiting.len(), "{what}: {found}");
            for tool in locked {
                assert!(is_waiting(tool), "{tool}");
                let name = &tool["name"];
                let expected = json!({"name": name, "server": "r", "status": "pending_approval"});
                assert_eq!(*tool, expected);
            }
            let remediation = found["remediation"].as_object().unwrap();
            assert_eq!(remediation.keys().collect::<Vec<_>>(), ["pending_approval"]);
        } else {
            assert_eq!((found.get("disabled"), found.get("remediation")), (None, None));
        }
    }
}

/// Checks that the reviewer gets the old text and the new one.
fn check_store(gate: &Gate) {
    let items = decisions(gate).state().items("r").unwrap();
    let item = |name: &str| items.iter().find(|item| item.name == name).unwrap();
    let description = item("description");
    assert!(description.approved.as_ref().unwrap().text.contains(HARMLESS));
    assert!(description.pending.as_ref().unwrap().text.contains(MARKER));
    assert_eq!(item("fresh").approved, None);
    let stricter = item("stricter");
    assert_eq!(stricter.pending, None);
    assert!(stricter.approved.as_ref().unwrap().text.contains("destructiveHint"), "it is noted");
    assert_eq!(item("unseen").pending, None);
}

#[tokio::test]
async fn a_list_changed_by_a_restart_is_locked_before_it_is_shown() {
    pulled(Trigger::Crash).await;
}

#[tokio::test]
async fn smoke_an_announced_list_change_is_locked_before_it_is_shown() {
    pulled(Trigger::Told).await;
}

#[tokio::test]
async fn a_list_change_found_by_polling_is_locked_before_it_is_shown() {
    pulled(Trigger::Poll).await;
}

#[tokio::test]
async fn a_changed_list_on_a_clients_own_connection_is_locked_for_that_client() {
    let gate = gate_with(before, json!({}), json!({})).await;
    let own = gate.http_at_with("/mcp/s/r", able(), answers("me")).await;
    assert!(bytes(&own, "tools/list", &json!({})).await.contains(HARMLESS));
    let other = gate.http_at("/mcp/s/r").await;
    pull(&own, &gate, Trigger::Told, &after(gate.dir.path())).await;
    eventually(|| async {
        let names = listed(&own).await;
        (!names.iter().any(|name| name == "description")).then_some(())
    })
    .await;
    let list = bytes(&own, "tools/list", &json!({})).await;
    assert!(!list.contains(MARKER) && list.contains("steady"), "{list}");
    for name in waiting() {
        assert_eq!(lock_on(&own, name, &note(name, "own")).await, "pending_approval", "{name}");
        assert_eq!(calls(&gate, name, "own"), 0, "{name}");
    }
    assert_eq!(lock_on(&own, "steady", &json!({})).await, "callable");
    assert_eq!(lock_on(&other, "description", &json!({})).await, "callable", "as it was approved");
    // A new client of the same kind starts a process that lists the new text from the beginning.
    let late = gate.http_at_with("/mcp/s/r", able(), answers("late")).await;
    let list = bytes(&late, "tools/list", &json!({})).await;
    assert!(!list.contains(MARKER) && !list.contains(r#""fresh""#), "{list}");
    assert_eq!(lock_on(&late, "fresh", &json!({})).await, "pending_approval");
}

#[tokio::test]
async fn client_specific_tools_are_pending_and_cause_no_further_writes() {
    let tools = json!([{"name": "all"}, {"name": "some", "x-needs": "sampling"}]);
    let gate = gate_with(|_| tools, json!({}), json!({})).await;
    let own = gate.http_at_with("/mcp/s/r", able(), answers("me")).await;
    assert_eq!(listed(&own).await, ["all"]);
    assert_eq!(lock_on(&own, "some", &json!({})).await, "pending_approval");
    let store = decisions(&gate);
    // The gate's own writes must not make it look again: each time it takes in a decision, that
    // decision is the only write since the one before.
    let mut versions = Vec::new();
    for is_off in [true, false, true, false] {
        store.state().set_switch("r", "all", is_off).unwrap();
        let left = if is_off { vec![] } else { vec!["all"] };
        eventually(|| async { (listed(&own).await == left).then_some(()) }).await;
        versions.push(store.state().version().unwrap());
    }
    assert!(versions[1..].windows(2).all(|pair| pair[1] == pair[0] + 1), "{versions:?}");
    approve(&store, "r", &["some"]);
    eventually(|| async { (listed(&own).await == ["all", "some"]).then_some(()) }).await;
    assert_eq!(lock_on(&own, "some", &json!({})).await, "callable");
}

#[tokio::test]
async fn a_tool_that_returns_stays_approved_only_if_unchanged() {
    let gate = gate_with(before, json!({}), json!({})).await;
    let (agent, one) = (gate.http().await, gate.http_at("/mcp/s/r").await);
    let without = json!({"tools": levers()});
    let gone = async || {
        pull(&one, &gate, Trigger::Told, &without).await;
        eventually(|| async { (listed(&one).await == ["tell", "die"]).then_some(()) }).await;
        assert_eq!(lock_on(&one, "description", &json!({})).await, "unknown");
    };
    gone().await;
    pull(&one, &gate, Trigger::Told, &before(gate.dir.path())).await;
    eventually(|| async { (listed(&one).await.len() > 2).then_some(()) }).await;
    assert_eq!(lock_on(&one, "description", &json!({})).await, "callable");
    assert_eq!(entry(&agent, "r").await.get("tools"), None, "everything is as it was approved");
    gone().await;
    pull(&one, &gate, Trigger::Told, &after(gate.dir.path())).await;
    pending(&agent, "r", waiting().len()).await;
    assert_eq!(lock_on(&one, "description", &json!({})).await, "pending_approval");
    assert!(!bytes(&one, "tools/list", &json!({})).await.contains(MARKER));
}

#[tokio::test]
async fn approving_lifts_the_lock_of_what_was_reviewed_and_outlasts_a_restart() {
    let mut gate = gate_with(before, json!({}), json!({})).await;
    let views = Views::open(&gate).await;
    pull(&views.one, &gate, Trigger::Told, &after(gate.dir.path())).await;
    pending(&views.agent, "r", waiting().len()).await;
    let store = decisions(&gate);
    let wrong = format!("sha256:{}", "0".repeat(64));
    let reviewed = [ItemVersion { kind: "tool", name: "description", fingerprint: &wrong }];
    let answers = store.state().approve_items("r", &reviewed).unwrap();
    assert_eq!(answers, [store::state::ApprovalResult::Changed]);
    // The switch is seen, so an approval would have been seen as well.
    store.state().set_switch("r", "steady", true).unwrap();
    eventually(|| async {
        let lock = lock_on(&views.one, "steady", &json!({})).await;
        (lock == "disabled_by_user").then_some(())
    })
    .await;
    assert_eq!(lock_on(&views.one, "description", &json!({})).await, "pending_approval");
    store.state().set_switch("r", "steady", false).unwrap();

    approve(&store, "r", &["description", "fresh"]);
    pending(&views.agent, "r", waiting().len() - 2).await;
    check_approved(&views).await;

    drop(store);
    assert_eq!(gate.end().await, Some(0));
    gate.restart().await;
    gate.ready("r").await;
    let views = Views::open(&gate).await;
    pending(&views.agent, "r", waiting().len() - 2).await;
    check_approved(&views).await;
    assert_eq!(lock_on(&views.one, "title", &json!({})).await, "pending_approval");
    let waits = waiting().into_iter().filter(|name| !["description", "fresh"].contains(name));
    approve(&decisions(&gate), "r", &waits.collect::<Vec<_>>());
    pending(&views.agent, "r", 0).await;
    assert_eq!(entry(&views.agent, "r").await.get("tools"), None);
    // A later change of an approved tool is pending again.
    pull(&views.one, &gate, Trigger::Told, &before(gate.dir.path())).await;
    eventually(|| async {
        let lock = lock_on(&views.one, "description", &json!({})).await;
        (lock == "pending_approval").then_some(())
    })
    .await;
}

/// Checks that `description` and `fresh` can be found, read and called with their new text.
async fn check_approved(views: &Views) {
    for (what, answer) in views.look(&["description", "fresh"], "approved").await {
        let shows = what.starts_with("describe_tool")
            || what.ends_with(" list")
            || what.contains(WORD) && what.starts_with("retrieve_tools");
        if shows {
            assert!(answer.contains(MARKER), "{what}: {answer}");
        }
    }
    for name in ["description", "fresh"] {
        assert_eq!(lock_on(&views.one, name, &json!({})).await, "callable", "{name}");
        assert_eq!(lock_on(&views.all, &format!("r__{name}"), &json!({})).await, "callable");
    }
}

#[tokio::test]
async fn instructions_that_changed_are_kept_back_until_they_are_approved() {
    let mut gate = gate_with(before, json!({}), json!({})).await;
    let instructions = async |gate: &Gate| {
        let (http, stdio) = (gate.http_at("/mcp/s/r").await, gate.stdio_server("r").await);
        [http, stdio].map(|client| client.welcome["instructions"].clone())
    };
    let none = [Value::Null, Value::Null];
    assert_eq!(instructions(&gate).await, ["Handle with care"; 2]);
    let one = gate.http_at("/mcp/s/r").await;
    pull(&one, &gate, Trigger::Crash, &after(gate.dir.path())).await;
    pending(&gate.http().await, "r", waiting().len()).await;
    assert_eq!(instructions(&gate).await, none);
    assert_eq!(gate.end().await, Some(0));
    gate.restart().await;
    gate.ready("r").await;
    assert_eq!(instructions(&gate).await, none, "a new process forgets nothing");
    let store = decisions(&gate);
    let items = store.state().items("r").unwrap();
    let item = items.iter().find(|item| item.kind == "instructions").unwrap();
    assert_eq!(item.approved.as_ref().unwrap().text, "Handle with care");
    let fingerprint = &item.pending.as_ref().unwrap().fingerprint;
    let reviewed = [ItemVersion { kind: "instructions", name: &item.name, fingerprint }];
    store.state().approve_items("r", &reviewed).unwrap();
    let expected = format!("Always {MARKER}");
    eventually(|| async { (instructions(&gate).await == [&*expected; 2]).then_some(()) }).await;
}

#[tokio::test]
async fn instructions_outlast_a_decision_that_is_made_while_the_server_is_down() {
    // Starts only while the file exists.
    let script = json!({"tools": [{"name": "die", "x-do": "die"}], "instructions": "Mind the gap"});
    let servers = |dir: &Path| {
        let server = live(dir, "r", &script);
        std::fs::write(dir.join("up"), "").unwrap();
        let start = r#"[ -e "$0" ] || exit 3; exec "$@""#;
        let args =
            json!(["-c", start, dir.join("up"), server["command"], server["args"][0], "live"]);
        json!({"r": {"command": "sh", "args": args}})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("r").await;
    let one = gate.http_at("/mcp/s/r").await;
    assert_eq!(one.welcome["instructions"], "Mind the gap");
    std::fs::remove_file(gate.dir.path().join("up")).unwrap();
    one.call("die", json!({})).await;
    gate.server_when("r", |entry| entry["state"] == "error").await;
    let store = decisions(&gate);
    store.state().set_switch("r", "die", true).unwrap();
    let agent = gate.http().await;
    eventually(|| async {
        (entry(&agent, "r").await["tools"]["disabled_by_user"] == 1).then_some(())
    })
    .await;
    std::fs::write(gate.dir.path().join("up"), "").unwrap();
    gate.ready("r").await;
    assert_eq!(gate.http_at("/mcp/s/r").await.welcome["instructions"], "Mind the gap");
}

#[tokio::test]
async fn the_operator_may_have_new_or_all_changes_approved() {
    for (auto, fresh, changed) in
        [("new", "callable", "pending_approval"), ("all", "callable", "callable")]
    {
        let gate = gate_with(before, json!({"auto_approve": auto}), json!({})).await;
        let views = Views::open(&gate).await;
        pull(&views.one, &gate, Trigger::Told, &after(gate.dir.path())).await;
        eventually(|| async {
            (lock_on(&views.one, "fresh", &json!({})).await == fresh).then_some(())
        })
        .await;
        assert_eq!(lock_on(&views.one, "description", &json!({})).await, changed, "{auto}");
        assert_eq!(lock_on(&views.one, "destroys", &json!({})).await, changed, "{auto}");
        // A stricter rule revokes nothing, but later changes are pending.
        gate.rewrite(|config| config["mcpServers"]["r"]["auto_approve"] = "none".into());
        let (mut more, mut lates) = (after(gate.dir.path()), 0);
        eventually(|| {
            lates += 1;
            let late = format!("late_{lates}");
            more["tools"].as_array_mut().unwrap().push(json!({"name": late}));
            let (gate, one, more) = (&gate, &views.one, more.clone());
            async move {
                pull(one, gate, Trigger::Told, &more).await;
                let lock = eventually(|| async {
                    let lock = lock_on(one, &late, &json!({})).await;
                    (lock != "unknown").then_some(lock)
                });
                (lock.await == "pending_approval").then_some(())
            }
        })
        .await;
        assert_eq!(lock_on(&views.one, "fresh", &json!({})).await, fresh, "{auto}");
    }
}

#[tokio::test]
async fn an_empty_first_list_is_a_baseline_too() {
    let servers = |dir: &Path| json!({"r": live(dir, "r", &json!([]))});
    let mut gate = Gate::start(servers, json!({"refresh_interval": "1s"})).await;
    gate.ready("r").await;
    let one = gate.http_at("/mcp/s/r").await;
    replace_script(&gate, "r", &json!([{"name": "fresh", "description": MARKER}]));
    eventually(|| async {
        let lock = lock_on(&one, "fresh", &json!({})).await;
        assert_ne!(lock, "callable", "nobody has approved it");
        (lock == "pending_approval").then_some(())
    })
    .await;
    assert!(listed(&one).await.is_empty());
    // The next process also sees a list that has become empty.
    assert_eq!(gate.end().await, Some(0));
    replace_script(&gate, "r", &json!([]));
    gate.restart().await;
    gate.ready("r").await;
    eventually(|| async { decisions(&gate).state().items("r").unwrap().is_empty().then_some(()) })
        .await;
}

#[tokio::test]
async fn an_approved_server_is_quarantined_when_its_command_changes() {
    let gate = gate_with(before, json!({"quarantined": true}), json!({})).await;
    let views = Views::open(&gate).await;
    let config = || -> Value {
        serde_json::from_str(&std::fs::read_to_string(gate.config_file()).unwrap()).unwrap()
    };
    let lock = async || lock_on(&views.one, "steady", &note("steady", "locked")).await;
    assert_eq!(lock().await, "server_quarantined");
    let store = decisions(&gate);
    let names: Vec<&str> =
        names().into_iter().filter(|name| *name != "fresh").chain(["tell", "die"]).collect();
    approve(&store, "r", &names);
    store.state().record_items("r", &[], true).unwrap();
    assert_eq!(lock().await, "server_quarantined", "its tools alone are approved");
    approve_server(&store, "r", &identity(&config()["mcpServers"]["r"]));
    eventually(|| async { (lock().await == "callable").then_some(()) }).await;
    assert_eq!(calls(&gate, "steady", "locked"), 1);
    assert_eq!(entry(&views.agent, "r").await["state"], "ready");

    // The same program with one more argument is a different server.
    gate.rewrite(|config| {
        let server = &mut config["mcpServers"]["r"];
        server["args"] =
            json!(["-c", r#"exec "$@""#, "sh", server["command"], server["args"][0], "live"]);
        server["command"] = "sh".into();
    });
    eventually(|| async { (lock().await == "server_quarantined").then_some(()) }).await;
    assert_eq!(entry(&views.agent, "r").await["state"], "quarantined");
    let seen = views.look(&["steady"], "again").await;
    for (what, answer) in &seen {
        assert!(!answer.contains(HARMLESS), "{what}: {answer}");
    }
    assert!(listed(&views.one).await.is_empty());
    assert_eq!(gate.http_at("/mcp/s/r").await.welcome.get("instructions"), None);
    approve_server(&store, "r", &identity(&config()["mcpServers"]["r"]));
    eventually(|| async { (lock().await == "callable").then_some(()) }).await;
}

#[tokio::test]
async fn a_baseline_that_cannot_be_stored_still_holds() {
    let servers = |dir: &Path| {
        let mut entry = live(dir, "r", &json!([{"name": "steady"}]));
        entry["start"] = "lazy".into();
        json!({"r": entry})
    };
    let gate = Gate::start(servers, json!({"refresh_interval": "1s"})).await;
    let agent = gate.http().await;
    let holder = rusqlite::Connection::open(gate.home().join("ledger.db")).unwrap();
    holder.busy_timeout(testkit::client::PATIENCE).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let one = gate.http_at("/mcp/s/r").await;
    eventually(|| async { (listed(&one).await == ["steady"]).then_some(()) }).await;
    let fresh = json!([{"name": "steady"}, {"name": "fresh", "description": MARKER}]);
    replace_script(&gate, "r", &fresh);
    eventually(|| async {
        assert_eq!(listed(&one).await, ["steady"], "nobody has approved the other one");
        (entry(&agent, "r").await["tools"]["pending_approval"] == 1).then_some(())
    })
    .await;
    holder.execute_batch("COMMIT").unwrap();
    let store = decisions(&gate);
    // Changes that could not be stored before are stored with the next list.
    eventually(|| async {
        let items = store.state().items("r").unwrap();
        let is_pending = |item: &store::state::ServerItem| item.pending.is_some();
        (items.len() == 2 && items.iter().any(is_pending)).then_some(())
    })
    .await;
    approve(&store, "r", &["fresh"]);
    eventually(|| async { (listed(&one).await == ["steady", "fresh"]).then_some(()) }).await;
}

#[tokio::test]
async fn a_client_that_starts_its_own_gate_is_protected_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({"mcpServers": {"r": live(dir.path(), "r", &before(dir.path()))}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    for (view, steady) in [(&["--server", "r"][..], "steady"), (&[][..], "")] {
        let args: Vec<&str> =
            ["--config", "config.json"].into_iter().chain(view.to_vec()).collect();
        let client = async || stdio_client(dir.path(), &args, json!({}), vec![]).await;
        std::fs::write(dir.path().join("r.tools.json"), before(dir.path()).to_string()).unwrap();
        let first = client().await;
        first.request("tools/list", json!({})).await.unwrap();
        if !steady.is_empty() {
            assert_eq!(first.welcome["instructions"], "Handle with care");
            assert!(listed(&first).await.iter().any(|name| name == "description"));
        }
        first.peer.close("done");
        std::fs::write(dir.path().join("r.tools.json"), after(dir.path()).to_string()).unwrap();
        let second = client().await;
        assert!(!second.welcome.to_string().contains(MARKER), "{}", second.welcome);
        if steady.is_empty() {
            let asked = json!({"query": names().join(" "), "limit": 50, "include_disabled": true});
            let found = second.document("retrieve_tools", asked).await;
            assert!(!found.to_string().contains(MARKER), "{found}");
            assert_eq!(found["disabled"].as_array().unwrap().len(), waiting().len(), "{found}");
        } else {
            let list = bytes(&second, "tools/list", &json!({})).await;
            assert!(!list.contains(MARKER) && list.contains(steady), "{list}");
            assert_eq!(lock_on(&second, "fresh", &json!({})).await, "pending_approval");
        }
        second.peer.close("done");
    }
}

#[tokio::test]
async fn clients_are_told_when_a_tool_is_locked_and_when_it_is_free_again() {
    let gate = gate_with(before, json!({}), json!({})).await;
    let levers = gate.http_at("/mcp/s/r").await;
    let (one, all) = (gate.http_at("/mcp/s/r").await, gate.http_at("/mcp/all").await);
    for client in [&one, &all] {
        assert!(listed(client).await.iter().any(|name| name.ends_with("description")));
    }
    pull(&levers, &gate, Trigger::Told, &after(gate.dir.path())).await;
    for client in [&one, &all] {
        assert_eq!(heard(client).await, LIST_CHANGED);
        assert!(!listed(client).await.iter().any(|name| name.ends_with("description")));
    }
    approve(&decisions(&gate), "r", &["description"]);
    for client in [&one, &all] {
        assert_eq!(heard(client).await, LIST_CHANGED);
        assert!(listed(client).await.iter().any(|name| name.ends_with("description")));
    }
}

#[tokio::test]
async fn a_server_put_back_into_the_config_is_compared_with_its_baseline() {
    let gate = gate_with(before, json!({}), json!({})).await;
    let agent = gate.http().await;
    let mut taken = Value::Null;
    gate.rewrite(|config| {
        taken = config["mcpServers"]["r"].take();
        // Without any server the demo would take its place.
        config["mcpServers"] = json!({"other": {"command": "true", "enabled": false}});
    });
    let is_there = async || {
        let servers = agent.document("upstream_servers", json!({})).await;
        servers["servers"].as_array().unwrap().iter().any(|server| server["name"] == "r")
    };
    eventually(|| async { (!is_there().await).then_some(()) }).await;
    replace_script(&gate, "r", &after(gate.dir.path()));
    gate.rewrite(|config| config["mcpServers"]["r"] = taken);
    gate.ready("r").await;
    pending(&agent, "r", waiting().len()).await;
    let one = gate.http_at("/mcp/s/r").await;
    assert!(!bytes(&one, "tools/list", &json!({})).await.contains(MARKER));
    assert_eq!(one.welcome.get("instructions"), None);
}
