//! Decisions stored with the records: each kind, and its visibility to other processes.

mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use domain::tool::Class;
use jiff::Timestamp;
use store::state::{
    ApprovalResult, ApprovedServer, ItemChange, ItemVersion, OperatorState, ServerItem,
    ServerState, TokenRecord,
};
use store::{Store, StoreError};

use super::faults::{SMALL_DISK, fill, foreign, on_a_small_disk};
use super::support::{Home, call, rules};

fn server(name: &str) -> ServerState {
    ServerState { name: name.to_owned(), ..ServerState::default() }
}

fn version(identity: &str) -> ApprovedServer<'_> {
    ApprovedServer { identity, text: "{}", program: None }
}

fn approved<'a>(name: &'a str, text: &'a str) -> ItemChange<'a> {
    ItemChange::Approved { kind: "tool", name, text, fingerprint: text }
}

fn pending<'a>(name: &'a str, text: &'a str) -> ItemChange<'a> {
    ItemChange::Pending { kind: "tool", name, text, fingerprint: text }
}

fn gone(name: &str) -> ItemChange<'_> {
    ItemChange::Gone { kind: "tool", name }
}

fn back(name: &str) -> ItemChange<'_> {
    ItemChange::Back { kind: "tool", name }
}

/// Name, approved text, pending text, and whether it is listed.
type Short = (String, Option<String>, Option<String>, bool);

fn short(item: ServerItem) -> Short {
    let text = |definition: store::state::Definition| {
        assert_eq!(definition.text, definition.fingerprint);
        definition.text
    };
    (item.name, item.approved.map(text), item.pending.map(text), item.listed)
}

fn items(state: &OperatorState, server: &str) -> Vec<Short> {
    state.items(server).unwrap().into_iter().map(short).collect()
}

fn tool(name: &str, approved: Option<&str>, pending: Option<&str>, listed: bool) -> Short {
    (name.to_owned(), approved.map(str::to_owned), pending.map(str::to_owned), listed)
}

/// Reports whether the work counted as a change, which it must do exactly once or not at all.
fn changes<T>(state: &OperatorState, work: impl FnOnce(&OperatorState) -> T) -> (bool, T) {
    let before = state.version().unwrap();
    let done = work(state);
    let grown = state.version().unwrap() - before;
    assert!(grown == 0 || grown == 1, "one decision made {grown} versions");
    (grown == 1, done)
}

#[test]
fn a_server_keeps_what_was_decided_about_it() {
    type Step = (fn(&OperatorState) -> Result<(), StoreError>, fn(&mut ServerState));
    let store = Store::nowhere();
    let state = store.state();
    assert_eq!((state.server("git").unwrap(), state.servers().unwrap()), (None, vec![]));
    let mut expected = server("git");
    let steps: [Step; 9] = [
        (
            |state| state.keep_program("git", "1 /git"),
            |git| git.program = Some("1 /git".to_owned()),
        ),
        (|state| state.set_server_disabled("git", true), |git| git.disabled = true),
        (|state| state.quarantine_server("git"), |git| git.quarantined = true),
        (
            |state| state.approve_server("git", version("sha256:1")),
            |git| {
                (git.approved, git.quarantined) = (Some("sha256:1".to_owned()), false);
                (git.approved_text, git.program) = (Some("{}".to_owned()), None);
            },
        ),
        (|state| state.set_server_disabled("git", false), |git| git.disabled = false),
        (
            |state| state.approve_server("git", version("sha256:2")),
            |git| {
                git.approved = Some("sha256:2".to_owned());
            },
        ),
        (
            |state| state.keep_program("git", "2 /git"),
            |git| git.program = Some("2 /git".to_owned()),
        ),
        (
            |state| {
                let program = Some("3 /git");
                state.approve_server("git", ApprovedServer { program, ..version("sha256:2") })
            },
            |git| git.program = Some("3 /git".to_owned()),
        ),
        (|state| state.quarantine_server("git"), |git| git.quarantined = true),
    ];
    for (number, (decide, expect)) in steps.into_iter().enumerate() {
        expect(&mut expected);
        assert!(changes(state, |state| decide(state).unwrap()).0, "step {number}");
        assert_eq!(state.server("git").unwrap().as_ref(), Some(&expected), "step {number}");
        assert!(!changes(state, |state| decide(state).unwrap()).0, "step {number} again");
    }
    // A server's list is not a decision.
    assert!(!changes(state, |state| state.record_items("git", &[], true).unwrap()).0);
    expected.has_baseline = true;
    assert_eq!(state.server("git").unwrap().as_ref(), Some(&expected));
    state.quarantine_server("a").unwrap();
    let names: Vec<_> = state.servers().unwrap().into_iter().map(|server| server.name).collect();
    assert_eq!(names, ["a", "git"]);
}

#[test]
fn a_decision_creates_the_row_of_an_unknown_server() {
    let store = Store::nowhere();
    let state = store.state();
    state.set_server_disabled("disabled", false).unwrap();
    state.quarantine_server("quarantined").unwrap();
    state.approve_server("approved", version("x")).unwrap();
    state.record_items("baseline", &[], true).unwrap();
    state.record_items("items", &[approved("a", "1")], false).unwrap();
    let names: Vec<_> = state.servers().unwrap().into_iter().map(|server| server.name).collect();
    assert_eq!(names, ["approved", "baseline", "disabled", "quarantined"]);
}

#[test]
fn adding_a_server_resets_it_and_removing_it_leaves_nothing() {
    let store = Store::nowhere();
    let state = store.state();
    let decide = || {
        state.approve_server("git", version("sha256:1")).unwrap();
        state.set_server_disabled("git", true).unwrap();
        state.record_items("git", &[approved("a", "1")], true).unwrap();
        state.set_switch("git", "a", true).unwrap();
    };
    decide();
    state.set_switch("other", "a", true).unwrap();
    state.record_items("other", &[approved("a", "1")], true).unwrap();

    assert!(changes(state, |state| state.add_server("git", "{\"command\":\"git\"}").unwrap()).0);
    let fresh = ServerState { added: Some("{\"command\":\"git\"}".to_owned()), ..server("git") };
    assert_eq!(state.server("git").unwrap(), Some(fresh));
    assert_eq!((items(state, "git"), state.switched_off("git").unwrap()), (vec![], [].into()));

    decide();
    assert_eq!(changes(state, |state| state.remove_server("git").unwrap()), (true, true));
    assert_eq!((state.server("git").unwrap(), items(state, "git")), (None, vec![]));
    assert_eq!(state.switched_off("git").unwrap(), [].into());
    assert_eq!(changes(state, |state| state.remove_server("git").unwrap()), (false, false));

    assert!(state.server("other").unwrap().unwrap().has_baseline);
    assert_eq!((items(state, "other").len(), state.switched_off("other").unwrap().len()), (1, 1));
}

#[test]
fn items_follow_the_recorded_lists() {
    let (one, two, three) = (Some("1"), Some("2"), Some("3"));
    let cases: [(&str, &[ItemChange<'_>], Option<Short>); 12] = [
        ("a baseline", &[approved("a", "1")], Some(tool("a", one, None, true))),
        ("new", &[pending("a", "1")], Some(tool("a", None, one, true))),
        ("changed", &[approved("a", "1"), pending("a", "2")], Some(tool("a", one, two, true))),
        (
            "changed twice",
            &[approved("a", "1"), pending("a", "2"), pending("a", "3")],
            Some(tool("a", one, three, true)),
        ),
        (
            "accepted",
            &[approved("a", "1"), pending("a", "2"), approved("a", "3")],
            Some(tool("a", three, None, true)),
        ),
        (
            "changed back",
            &[approved("a", "1"), pending("a", "2"), back("a")],
            Some(tool("a", one, None, true)),
        ),
        ("gone", &[approved("a", "1"), gone("a")], Some(tool("a", one, None, false))),
        (
            "gone and back",
            &[approved("a", "1"), gone("a"), back("a")],
            Some(tool("a", one, None, true)),
        ),
        (
            "gone and back as another",
            &[approved("a", "1"), gone("a"), pending("a", "2")],
            Some(tool("a", one, two, true)),
        ),
        ("never approved and gone", &[pending("a", "1"), gone("a")], None),
        (
            "not approved is not back",
            &[pending("a", "1"), back("a")],
            Some(tool("a", None, one, true)),
        ),
        ("never there", &[gone("a"), back("a")], None),
    ];
    for (case, changes, expected) in cases {
        let store = Store::nowhere();
        let state = store.state();
        state.record_items("git", changes, false).unwrap();
        let together = items(state, "git");
        assert_eq!(together, Vec::from_iter(expected), "{case}");
        for change in changes {
            state.record_items("apart", &[*change], false).unwrap();
        }
        assert_eq!(items(state, "apart"), together, "{case}");
    }
}

#[test]
fn recording_an_identical_list_changes_nothing() {
    let store = Store::nowhere();
    let state = store.state();
    state.record_items("git", &[approved("a", "1"), approved("c", "1"), gone("c")], true).unwrap();
    state.record_items("git", &[pending("b", "1")], false).unwrap();
    let before = state.items("git").unwrap();
    let again = [approved("a", "1"), pending("b", "1"), gone("c"), back("a"), gone("d")];
    assert!(!changes(state, |state| state.record_items("git", &again, true).unwrap()).0);
    assert!(!changes(state, |state| state.record_items("git", &[], false).unwrap()).0);
    assert_eq!(state.items("git").unwrap(), before, "the times as well");
}

#[test]
fn kinds_and_servers_keep_items_of_one_name_apart() {
    let store = Store::nowhere();
    let state = store.state();
    for (server, kind, text) in
        [("x", "tool", "1"), ("x", "prompt", "2"), ("x", "instructions", "3"), ("y", "tool", "4")]
    {
        let change = ItemChange::Approved { kind, name: "", text, fingerprint: text };
        state.record_items(server, &[change], false).unwrap();
    }
    let found: Vec<_> = state.items("x").unwrap().into_iter().map(|item| item.kind).collect();
    assert_eq!(found, ["instructions", "prompt", "tool"]);
    assert_eq!(items(state, "y"), [tool("", Some("4"), None, true)]);
}

fn reviewed<'a>(kind: &'a str, name: &'a str, fingerprint: &'a str) -> ItemVersion<'a> {
    ItemVersion { kind, name, fingerprint }
}

#[test]
fn only_what_was_reviewed_is_approved() {
    let store = Store::nowhere();
    let state = store.state();
    let set = [approved("a", "1"), pending("a", "2"), pending("b", "1"), approved("c", "1")];
    state.record_items("git", &set, false).unwrap();
    let before = state.items("git").unwrap();
    type Refused<'a> = (&'a [ItemVersion<'a>], &'a [ApprovalResult]);
    let refused: [Refused<'_>; 6] = [
        (&[reviewed("tool", "a", "1")], &[ApprovalResult::Changed]),
        (&[reviewed("tool", "c", "1")], &[ApprovalResult::NotPending]),
        (&[reviewed("tool", "absent", "1")], &[ApprovalResult::NotPending]),
        (&[reviewed("prompt", "a", "2")], &[ApprovalResult::NotPending]),
        (
            &[reviewed("tool", "a", "2"), reviewed("tool", "b", "2")],
            &[ApprovalResult::Held, ApprovalResult::Changed],
        ),
        (
            &[reviewed("tool", "c", "1"), reviewed("tool", "b", "1"), reviewed("tool", "a", "")],
            &[ApprovalResult::NotPending, ApprovalResult::Held, ApprovalResult::Changed],
        ),
    ];
    for (items, expected) in refused {
        let (changed, answers) = changes(state, |state| state.approve_items("git", items).unwrap());
        assert_eq!((changed, &*answers), (false, expected), "{items:?}");
        assert_eq!(state.items("git").unwrap(), before);
    }
    // Between the look and the approval the server changed it once more.
    state.record_items("git", &[pending("b", "2")], false).unwrap();
    assert_eq!(
        state.approve_items("git", &[reviewed("tool", "b", "1")]).unwrap(),
        [ApprovalResult::Changed]
    );

    let chosen =
        [reviewed("tool", "a", "2"), reviewed("tool", "b", "2"), reviewed("tool", "a", "2")];
    let (changed, answers) = changes(state, |state| state.approve_items("git", &chosen).unwrap());
    assert_eq!((changed, answers), (true, vec![ApprovalResult::Approved; 3]));
    let expected = [("a", "2"), ("b", "2"), ("c", "1")];
    let expected = expected.map(|(name, text)| tool(name, Some(text), None, true));
    assert_eq!(items(state, "git"), expected);
    assert_eq!(state.approve_items("git", &[]).unwrap(), []);
}

#[test]
fn items_keep_the_times_they_were_seen_and_approved() {
    let store = Store::nowhere();
    let state = store.state();
    let only = || state.items("git").unwrap().remove(0);
    let before = Timestamp::now() - jiff::SignedDuration::from_micros(1);
    state.record_items("git", &[pending("a", "1")], false).unwrap();
    let seen = only().pending.unwrap().at;
    assert!(seen >= before && seen <= Timestamp::now());
    // Equal by fingerprint, but printed differently.
    let printed = ItemChange::Pending { kind: "tool", name: "a", text: "1 ", fingerprint: "1" };
    state.record_items("git", &[printed], false).unwrap();
    let pending = only().pending.unwrap();
    assert_eq!((&*pending.text, pending.at), ("1 ", seen));
    while Timestamp::now().as_microsecond() <= seen.as_microsecond() {}
    state.approve_items("git", &[reviewed("tool", "a", "1")]).unwrap();
    assert!(only().approved.unwrap().at > seen);
}

#[test]
fn setting_a_switch_reports_whether_it_changed() {
    let store = Store::nowhere();
    let state = store.state();
    for (server, name, off, moved) in [
        ("git", "push", false, false),
        ("git", "push", true, true),
        ("git", "push", true, false),
        ("git", "Push", true, true),
        ("files", "push", true, true),
        ("git", "Push", false, true),
        ("git", "Push", false, false),
    ] {
        let set = |state: &OperatorState| state.set_switch(server, name, off).unwrap();
        assert_eq!(changes(state, set), (moved, moved), "{server} {name} {off}");
    }
    let off = BTreeSet::from(["push".to_owned()]);
    assert_eq!(state.switched_off("git").unwrap(), off);
    assert_eq!(state.switched_off("nobody").unwrap(), [].into());
    let all = BTreeMap::from([("files".to_owned(), off.clone()), ("git".to_owned(), off)]);
    assert_eq!(state.all_switched_off().unwrap(), all);
}

fn token(name: &str, hash: u8) -> TokenRecord {
    TokenRecord {
        name: name.to_owned(),
        hash: [hash; 32],
        scope: "{\"servers\":[\"*\"]}".to_owned(),
        created_at: Timestamp::from_microsecond(1_700_000_000_123_456).unwrap(),
        expires_at: None,
        revoked_at: None,
    }
}

#[test]
fn a_tokens_name_can_be_used_again_once_it_is_revoked() {
    let store = Store::nowhere();
    let state = store.state();
    let mut first = token("ci", 1);
    first.expires_at = Some(Timestamp::from_second(253_402_200_000).unwrap());
    let create = |token: &TokenRecord| changes(state, |state| state.create_token(token).unwrap());
    assert_eq!(create(&first), (true, true));
    assert_eq!(create(&token("ci", 2)), (false, false), "the name is taken");
    assert_eq!(create(&token("CI", 3)), (true, true), "case counts");

    let at = Timestamp::from_second(1_800_000_000).unwrap();
    let revoke = |name: &str| changes(state, |state| state.revoke_token(name, at).unwrap());
    assert_eq!(revoke("absent"), (false, false));
    assert_eq!(revoke("ci"), (true, true));
    assert_eq!(revoke("ci"), (false, false));
    assert_eq!(create(&token("ci", 2)), (true, true));
    first.revoked_at = Some(at);
    assert_eq!(state.tokens().unwrap(), [first, token("CI", 3), token("ci", 2)]);
    assert_eq!(revoke("ci"), (true, true), "the newer one");
    assert_eq!(create(&token("ci", 4)), (true, true));
    assert_eq!(state.tokens().unwrap().len(), 4);
}

#[test]
fn a_secret_cannot_be_used_for_a_second_token() {
    let store = Store::nowhere();
    let state = store.state();
    assert!(state.create_token(&token("a", 1)).unwrap());
    state.revoke_token("a", Timestamp::now()).unwrap();
    let error = state.create_token(&token("b", 1)).unwrap_err();
    assert!(matches!(error, StoreError::Write(_)), "{error}");
    assert_eq!(state.tokens().unwrap().len(), 1);
}

#[test]
fn a_file_is_trusted_by_path_and_hash() {
    let store = Store::nowhere();
    let state = store.state();
    let trust = |hash: &str| changes(state, |state| state.trust_file("/a/b.json", hash).unwrap()).0;
    assert_eq!(state.trusted_file("/a/b.json").unwrap(), None);
    assert!(trust("1") && trust("2") && !trust("2"));
    assert_eq!(state.trusted_file("/a/b.json").unwrap().as_deref(), Some("2"));
    assert_eq!(state.trusted_file("/a/B.json").unwrap(), None);
    for forgotten in [true, false] {
        let forget = |state: &OperatorState| state.forget_file("/a/b.json").unwrap();
        assert_eq!(changes(state, forget), (forgotten, forgotten));
    }
    assert_eq!(state.trusted_file("/a/b.json").unwrap(), None);
}

#[test]
fn names_may_hold_anything() {
    let long = "x".repeat(100_000);
    let odd = [
        "",
        " ",
        "a",
        "A",
        "a ",
        "'",
        "\"",
        "'; DROP TABLE servers; --",
        "a\0b",
        "a\0",
        "%",
        "_",
        "\n",
        "\u{202e}",
        "é",
        "e\u{301}",
        "🦀",
        "NULL",
        "1",
        "01",
        &long,
    ];
    let home = Home::new();
    let store = home.open();
    let state = store.state();
    for name in odd {
        state.add_server(name, name).unwrap();
        state.approve_server(name, version(name)).unwrap();
        state.record_items(name, &odd.map(|tool| pending(tool, name)), true).unwrap();
        assert_eq!(
            state.approve_items(name, &[reviewed("tool", name, name)]).unwrap(),
            [ApprovalResult::Approved]
        );
        odd.iter().for_each(|tool| assert!(state.set_switch(name, tool, true).unwrap()));
        state.trust_file(name, name).unwrap();
    }
    drop(store);
    let store = home.open();
    let state = store.state();
    let expected: BTreeSet<String> = odd.iter().map(|&name| name.to_owned()).collect();
    let found: Vec<_> = state.servers().unwrap().into_iter().map(|server| server.name).collect();
    assert!(found.iter().eq(&expected), "in the order of their bytes");
    for name in odd {
        let server = state.server(name).unwrap().unwrap();
        assert_eq!((server.added.as_deref(), server.approved.as_deref()), (Some(name), Some(name)));
        assert_eq!(state.switched_off(name).unwrap(), expected);
        assert_eq!(state.trusted_file(name).unwrap().as_deref(), Some(name));
        for (tool, approved, pending, _) in items(state, name) {
            let (here, none) = (Some(name.to_owned()), None);
            assert_eq!((approved, pending), if tool == name { (here, none) } else { (none, here) });
        }
    }
}

/// Returns the whole state, to compare.
fn everything(state: &OperatorState) -> String {
    let servers = state.servers().unwrap();
    let names: BTreeSet<_> = servers.iter().map(|server| server.name.as_str()).collect();
    let items: Vec<_> = names.into_iter().map(|name| state.items(name).unwrap()).collect();
    format!(
        "{servers:?} {items:?} {:?} {:?} {:?} {}",
        state.all_switched_off().unwrap(),
        state.tokens().unwrap(),
        state.trusted_file("/x").unwrap(),
        state.version().unwrap()
    )
}

fn decide_all(state: &OperatorState) {
    state.add_server("git", "{}").unwrap();
    state.approve_server("git", version("sha256:1")).unwrap();
    state.record_items("git", &[approved("a", "1"), pending("b", "2")], true).unwrap();
    state.quarantine_server("files").unwrap();
    state.set_server_disabled("files", true).unwrap();
    state.set_switch("files", "write", true).unwrap();
    state.create_token(&token("ci", 1)).unwrap();
    state.revoke_token("ci", Timestamp::UNIX_EPOCH).unwrap();
    state.trust_file("/x", "sha256:2").unwrap();
}

#[tokio::test]
async fn decisions_outlive_the_process() {
    let home = Home::new();
    let store = home.open();
    decide_all(store.state());
    let decided = everything(store.state());
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(everything(store.state()), decided, "a closed ledger still knows them");
    drop(store);
    let store = home.open();
    assert_eq!(everything(store.state()), decided);
    assert_eq!(store.state().version().unwrap(), 8);
    assert_eq!(home.look().chains.len(), 1, "they are no records");
}

#[tokio::test]
async fn a_closed_ledger_is_one_file() {
    let home = Home::new();
    let store = home.open();
    decide_all(store.state());
    store.close().await.unwrap();
    let names: BTreeSet<_> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected = ["decisions.jsonl", "keys", "ledger.db", "writers"];
    assert_eq!(names, expected.map(str::to_owned).into());
}

#[test]
fn handles_on_one_home_see_each_other() {
    let home = Home::new();
    let (one, other) = (home.open(), home.open());
    for turn in 0..20 {
        let (from, to) = if turn % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let before = to.state().version().unwrap();
        assert!(from.state().set_switch("git", &turn.to_string(), true).unwrap());
        assert_eq!(to.state().version().unwrap(), before + 1);
        assert_eq!(to.state().switched_off("git").unwrap().len(), turn + 1);
    }
}

/// The variable that gives a child the home whose state it changes.
const CHILD_HOME: &str = "COUNTERSIGN_TEST_STATE_HOME";
const DECISIONS: usize = 100;

/// The body of a child, which the next test runs; not a separate test.
#[test]
fn child_that_decides() {
    let Some(home) = std::env::var_os(CHILD_HOME) else {
        return testkit::run::skipped("it is what the next test starts, no test of its own");
    };
    let store = Store::open(Path::new(&home), &rules()).unwrap();
    decide_often(store.state(), &std::process::id().to_string());
}

fn decide_often(state: &OperatorState, server: &str) {
    for number in 0..DECISIONS {
        assert!(state.set_switch(server, &number.to_string(), true).unwrap());
    }
}

#[test]
fn processes_that_decide_at_once_lose_nothing() {
    let home = Home::new();
    let store = home.open();
    let children: Vec<_> = (0..3)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "store::state::child_that_decides"])
                .env(CHILD_HOME, home.path())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    decide_often(store.state(), "here");
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let off = store.state().all_switched_off().unwrap();
    assert_eq!((off.len(), off.values().map(BTreeSet::len).sum()), (4, 4 * DECISIONS));
    assert_eq!(store.state().version().unwrap(), 4 * 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn decisions_and_calls_are_made_at_the_same_time() {
    const CALLERS: usize = 8;
    let home = Home::new();
    let store = home.open();
    let (done, decided) = tokio::sync::watch::channel(false);
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (store, decided) = (store.clone(), decided.clone());
            tokio::spawn(async move {
                let mut ids = Vec::new();
                while !*decided.borrow() {
                    ids.push(call(&store, Class::Write).await.unwrap().0);
                }
                ids
            })
        })
        .collect();
    let deciding = store.clone();
    let work = tokio::task::spawn_blocking(move || {
        let tools: Vec<String> = (0..200).map(|number| number.to_string()).collect();
        for turn in 0..20 {
            let text = turn.to_string();
            let changes: Vec<_> = tools.iter().map(|tool| pending(tool, &text)).collect();
            deciding.state().record_items("git", &changes, false).unwrap();
            deciding.state().set_switch("git", &text, true).unwrap();
        }
    });
    work.await.unwrap();
    done.send(true).unwrap();
    let mut ids = Vec::new();
    for caller in callers {
        ids.append(&mut caller.await.unwrap());
    }
    assert_eq!(store.state().version().unwrap(), 20);
    assert!(store.ledger().fault.is_none());
    store.close().await.unwrap();
    let look = home.look();
    assert!(ids.len() >= CALLERS);
    ids.iter().for_each(|id| look.assert_recorded(id));
}

fn assert_write<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Write(_))), "{result:?}");
}

#[test]
fn a_locked_file_takes_no_decisions_and_can_still_be_read() {
    let home = Home::new();
    let store = home.open();
    let state = store.state();
    decide_all(state);
    let before = everything(state);
    let holder = foreign(&home);
    assert_write(state.record_items("git", &[pending("c", "1")], true));
    assert_eq!(everything(state), before);
    holder.execute_batch("COMMIT").unwrap();
    state.record_items("git", &[pending("c", "1")], true).unwrap();
    assert_eq!(items(state, "git").len(), 3);
}

#[test]
fn a_file_that_is_gone_is_not_made_anew() {
    let home = Home::new();
    let store = home.open();
    std::fs::remove_file(home.path().join(store::FILE)).unwrap();
    assert!(matches!(store.state().version(), Err(StoreError::Read(_))));
    assert_write(store.state().quarantine_server("git"));
    assert!(!home.path().join(store::FILE).exists());
}

#[tokio::test]
async fn database_corruption_is_reported() {
    let home = Home::new();
    let store = home.open();
    let tools: Vec<String> = (0..500).map(|number| format!("{number:0900}")).collect();
    let changes: Vec<_> = tools.iter().map(|tool| pending(tool, tool)).collect();
    store.state().record_items("git", &changes, true).unwrap();
    store.close().await.unwrap();
    let file = home.path().join(store::FILE);
    let mut bytes = std::fs::read(&file).unwrap();
    // Whole pages: bytes within one have no checksum.
    let half = bytes.len() / 8192 / 2 * 8192;
    bytes[half..].fill(0x5a);
    std::fs::write(&file, bytes).unwrap();
    let error = store.state().items("git").map(|items| items.len()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
    let error = store.state().remove_server("git").unwrap_err();
    assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
}

#[test]
fn a_full_disk_takes_no_half_decision() {
    let Some(folder) = std::env::var_os(SMALL_DISK) else {
        on_a_small_disk("store::state::a_full_disk_takes_no_half_decision");
        return;
    };
    let home = Path::new(&folder);
    let store = Store::open(home, &rules()).unwrap();
    let state = store.state();
    decide_all(state);
    let before = everything(state);
    let filler = fill(home);
    let text = "x".repeat(700);
    let names: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    let changes: Vec<_> = names.iter().map(|name| approved(name, &text)).collect();
    assert_write(state.record_items("git", &changes, true));
    assert_eq!(everything(state), before);
    std::fs::remove_file(filler).unwrap();
    state.record_items("git", &changes[..100], true).unwrap();
    assert_eq!(items(state, "git").len(), 102);
}

#[tokio::test]
async fn decisions_can_be_read_without_opening_the_home() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    assert!(OperatorState::of_home(home).unwrap().is_none(), "there is no ledger");
    let store = Store::open(home, &domain::config::Ledger::default()).unwrap();
    store.state().trust_file("/a", "1").unwrap();
    let look = || OperatorState::of_home(home).unwrap().unwrap();
    let live = look();
    assert_eq!(live.trusted_file("/a").unwrap().as_deref(), Some("1"));
    store.state().trust_file("/a", "2").unwrap();
    assert_eq!(live.trusted_file("/a").unwrap().as_deref(), Some("2"), "it is written meanwhile");
    assert!(live.trust_file("/a", "3").is_err(), "it is for reading");
    store.close().await.unwrap();
    drop((live, store));
    let names = || std::fs::read_dir(home).unwrap().map(|file| file.unwrap().file_name());
    let before: Vec<_> = names().collect();
    assert_eq!(look().trusted_file("/a").unwrap().as_deref(), Some("2"), "and when nobody runs");
    assert_eq!(names().collect::<Vec<_>>(), before);
    std::fs::write(home.join(store::FILE), "no ledger").unwrap();
    assert!(OperatorState::of_home(home).is_err());
}
