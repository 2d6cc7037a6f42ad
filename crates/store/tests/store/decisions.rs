//! The signed log of decisions and its second copy: written with each decision, restored if the database
//! is lost, never trusted with a wrong signature; without it, nothing counts as approved.

use std::fs;
use std::path::Path;
use std::time::Instant;

use domain::config::Ledger;
use domain::tool::Class;
use jiff::Timestamp;
use rusqlite::Connection;
use store::state::{ApprovedServer, ItemChange, OperatorState, ServerState, TokenRecord};
use store::survey::Survey;
use store::{CHECKPOINT_FILE, Store};

use super::support::{Home, call};

const APPROVED: ItemChange<'static> = ItemChange::Approved {
    kind: "tool",
    name: "read",
    text: r#"{"name":"read"}"#,
    fingerprint: "sha256:1",
};

fn decide(store: &Store) {
    let state = store.state();
    state.add_server("added", r#"{"command":"tool"}"#).unwrap();
    let secret = r#"{"command":"tool","env":{"API":{"secret":0}}}"#;
    state.add_server("secret", secret).unwrap();
    state
        .approve_server("added", ApprovedServer { identity: "i", text: "t", program: None })
        .unwrap();
    state.set_server_disabled("off", true).unwrap();
    state.quarantine_server("held").unwrap();
    state.set_switch("files", "delete", true).unwrap();
    state.record_items("files", &[APPROVED], true).unwrap();
    state.trust_file("/a", "1").unwrap();
    let created_at = Timestamp::from_second(1).unwrap();
    let (expires_at, revoked_at) = (None, None);
    let scope = "{}".to_owned();
    let (name, hash) = ("agent".to_owned(), [7; 32]);
    let token = TokenRecord { name, hash, scope, created_at, expires_at, revoked_at };
    state.create_token(&token).unwrap();
    let (name, hash) = ("old".to_owned(), [8; 32]);
    state.create_token(&TokenRecord { name, hash, ..token }).unwrap();
    state.revoke_token("old", created_at).unwrap();
}

async fn used_home() -> Home {
    let home = Home::new();
    let store = home.open();
    decide(&store);
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    home
}

fn lose_database(home: &Path) {
    for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let _ = fs::remove_file(home.join(name));
    }
}

#[tokio::test]
async fn decisions_survive_the_loss_of_the_database() {
    let home = used_home().await;
    lose_database(home.path());
    let done = store::repair::repair(home.path(), None).unwrap();
    let words = "operator decisions were restored";
    assert!(done.iter().any(|word| word.contains(words)), "{done:?}");
    let store = home.open();
    let state = store.state();
    let server = |name: &str| state.server(name).unwrap().unwrap();
    assert_eq!(server("added").added.as_deref(), Some(r#"{"command":"tool"}"#));
    assert_eq!(server("added").approved.as_deref(), Some("i"));
    assert!(server("off").disabled && server("held").quarantined && server("files").has_baseline);
    let references = r#"{"command":"tool","env":{"API":{"secret":0}}}"#;
    assert_eq!(server("secret").added.as_deref(), Some(references));
    assert!(state.switched_off("files").unwrap().contains("delete"));
    let item = &state.items("files").unwrap()[0];
    assert_eq!(item.approved.as_ref().unwrap().fingerprint, "sha256:1");
    assert_eq!(state.trusted_file("/a").unwrap().as_deref(), Some("1"));
    assert_eq!(state.tokens().unwrap()[0].hash, [7; 32]);
    assert_eq!(state.lost_at().unwrap(), None);
}

#[tokio::test]
async fn a_copy_with_a_wrong_signature_is_never_trusted() {
    let home = used_home().await;
    let file = home.path().join("decisions.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    for forged in [text.replace("delete", "list"), String::new(), "{}".to_owned()] {
        let copy = home.copy();
        fs::write(copy.path().join("decisions.jsonl"), &forged).unwrap();
        // The database has them; the copy is written anew.
        copy.open().close().await.unwrap();
        let again = fs::read_to_string(copy.path().join("decisions.jsonl")).unwrap();
        assert!(again.contains("\"delete\""), "{again}");
        let names = fs::read_dir(copy.path()).unwrap().map(|file| file.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        let kept: Vec<String> =
            names.filter(|name| name.starts_with("decisions.jsonl.aside-")).collect();
        assert_eq!(kept.len(), usize::from(forged.contains('\n')), "{kept:?}");
        for name in kept {
            assert_eq!(fs::read_to_string(copy.path().join(name)).unwrap(), forged);
        }
        fs::write(copy.path().join("decisions.jsonl"), &forged).unwrap();
        lose_database(copy.path());
        store::repair::repair(copy.path(), None).unwrap();
        let store = copy.open();
        assert!(store.state().lost_at().unwrap().is_some());
        assert!(store.state().tokens().unwrap().is_empty());
        assert!(store.state().servers().unwrap().is_empty());
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn lost_decisions_fail_closed_until_a_person_ends_the_notice() {
    let home = used_home().await;
    fs::remove_file(home.path().join("decisions.jsonl")).unwrap();
    // An older database, which a key that it does not know shows.
    let old = fs::read(home.path().join("ledger.db")).unwrap();
    let store = home.open();
    store.state().set_switch("files", "delete", false).unwrap();
    store.rotate_key().await.unwrap();
    store.close().await.unwrap();
    lose_database(home.path());
    fs::write(home.path().join("ledger.db"), old).unwrap();
    fs::remove_file(home.path().join("decisions.jsonl")).unwrap();
    store::repair::repair(home.path(), None).unwrap();
    let store = home.open();
    let state = store.state();
    assert!(state.lost_at().unwrap().is_some());
    assert!(store.ledger().notices.iter().any(|notice| notice.contains("decisions were lost")));
    assert!(state.tokens().unwrap().is_empty() && state.trusted_files().unwrap().is_empty());
    assert!(state.servers().unwrap().iter().all(|server| server.quarantined));
    let item = &state.items("files").unwrap()[0];
    assert!(item.approved.is_none() && item.pending.is_some());
    assert!(state.switched_off("files").unwrap().contains("delete"), "restrictions stay");
    state.await_review("new").unwrap();
    assert!(state.server("new").unwrap().unwrap().has_baseline);
    store.close().await.unwrap();
    let done = store::repair::repair(home.path(), None).unwrap();
    assert!(done[0].contains("ended the notice"), "{done:?}");
    assert_eq!(home.open().state().lost_at().unwrap(), None);
}

#[tokio::test]
async fn decisions_that_a_power_failure_took_from_the_database_come_back() {
    let home = used_home().await;
    let old = fs::read(home.path().join("ledger.db")).unwrap();
    let store = home.open();
    store.state().set_switch("files", "write", true).unwrap();
    store.close().await.unwrap();
    lose_database(home.path());
    fs::write(home.path().join("ledger.db"), old).unwrap();
    let store = home.open();
    assert!(store.ledger().notices[0].contains("were restored"), "{:?}", store.ledger().notices);
    assert!(store.state().switched_off("files").unwrap().contains("write"));
    let item = &store.state().items("files").unwrap()[0];
    assert_eq!(item.approved.as_ref().unwrap().text, r#"{"name":"read"}"#, "texts are kept");
    store.close().await.unwrap();
    assert_eq!(home.open().ledger().notices, Vec::<String>::new());
}

/// Edits of the tables that no decision made: the statement, a subject that must be named, and
/// whether the state is still as strict as it was decided.
type Edit = (&'static str, &'static str, fn(&OperatorState) -> bool);

const EDITS: [Edit; 14] = [
    ("UPDATE tokens SET scope = 'all'", "token 'agent'", |state| valid_tokens(state).is_empty()),
    ("UPDATE tokens SET expires_us = 9e15", "token 'agent'", |state| {
        valid_tokens(state).is_empty()
    }),
    (
        "UPDATE tokens SET revoked_us = NULL, name = 'back' WHERE revoked_us IS NOT NULL",
        "token 'back'",
        |state| valid_tokens(state) == ["agent"],
    ),
    (
        "INSERT INTO tokens (name, hash, scope, created_us) VALUES ('evil', zeroblob(32), '', 1)",
        "token 'evil'",
        |state| valid_tokens(state) == ["agent"],
    ),
    ("DELETE FROM switches", "the switch of 'files:delete'", |state| {
        state.switched_off("files").unwrap().contains("delete")
    }),
    ("INSERT INTO switches VALUES ('files', 'read')", "the switch of 'files:read'", |state| {
        state.switched_off("files").unwrap().len() == 2
    }),
    ("UPDATE servers SET disabled = 0, quarantined = 0", "server 'held', server 'off'", |state| {
        server(state, "held").quarantined && server(state, "off").disabled
    }),
    ("DELETE FROM servers", "server 'files', server 'held'", |state| {
        let kept = server(state, "held").quarantined && server(state, "off").disabled;
        kept && server(state, "files").has_baseline && server(state, "added").added.is_none()
    }),
    ("UPDATE servers SET added = '{}' WHERE name = 'added'", "server 'added'", |state| {
        server(state, "added").added.is_none()
    }),
    (
        "INSERT INTO servers (name, added, approved) VALUES ('evil', '{}', 'i')",
        "server 'evil'",
        |state| server(state, "evil").added.is_none() && server(state, "evil").quarantined,
    ),
    ("UPDATE servers SET approved = 'j', program = 'p' WHERE name = 'added'", "'added'", |state| {
        let added = server(state, "added");
        added.quarantined && added.approved.is_none() && added.program.is_none()
    }),
    ("UPDATE items SET approved_fingerprint = 'f', approved_text = 't'", "tool 'read'", |state| {
        let items = state.items("files").unwrap();
        items[0].approved.is_none() && items[0].pending.as_ref().unwrap().fingerprint == "f"
    }),
    (
        "INSERT INTO items (server, kind, name, approved_fingerprint, approved_us, approved_text)
         VALUES ('files', 'tool', 'evil', 'f', 1, 't')",
        "the approval of tool 'evil' of server 'files'",
        |state| state.items("files").unwrap()[0].approved.is_none(),
    ),
    ("UPDATE trusted_files SET sha256 = '2'", "trust in '/a'", |state| {
        state.trusted_file("/a").unwrap().is_none() && state.trusted_files().unwrap().is_empty()
    }),
];

fn valid_tokens(state: &OperatorState) -> Vec<String> {
    let tokens = state.tokens().unwrap().into_iter();
    tokens.filter(|token| token.revoked_at.is_none()).map(|token| token.name).collect()
}

fn server(state: &OperatorState, name: &str) -> ServerState {
    state.server(name).unwrap().unwrap()
}

fn edit(home: &Home, statement: &str) {
    let db = Connection::open(home.path().join("ledger.db")).unwrap();
    db.execute_batch(statement).unwrap();
}

/// Returns everything that was decided, in words.
fn decided(state: &OperatorState) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?}",
        state.servers().unwrap(),
        state.all_switched_off().unwrap(),
        state
            .items("files")
            .unwrap()
            .iter()
            .filter_map(|item| item.approved.as_ref())
            .collect::<Vec<_>>(),
        state.tokens().unwrap(),
        state.trusted_files().unwrap(),
        state.lost_at().unwrap(),
    )
}

#[tokio::test]
async fn edits_of_the_tables_loosen_nothing_are_told_and_are_never_signed() {
    let home = used_home().await;
    let before = decided(home.copy().open().state());
    for (statement, subject, is_strict) in EDITS {
        let home = home.copy();
        edit(&home, statement);
        let faults = Survey::of(home.path(), None).faults;
        let [fault] = &*faults else { panic!("{statement}: {faults:?}") };
        assert!(fault.contains("differs from the signed decisions on "), "{fault}");
        assert!(fault.contains(subject) && fault.contains("the stricter counts"), "{fault}");
        assert_eq!(store::anchored::check(home.path(), None).unwrap().faults, faults);
        let store = home.open();
        assert_eq!(store.ledger().notices, faults);
        assert!(is_strict(store.state()), "{statement}");
        // Decisions about the same kinds of things leave what was not decided unsigned.
        let state = store.state();
        state.set_switch("files", "other", true).unwrap();
        state.set_switch("files", "other", false).unwrap();
        state.set_server_disabled("added", true).unwrap();
        state.set_server_disabled("added", false).unwrap();
        state.trust_file("/b", "1").unwrap();
        state.forget_file("/b").unwrap();
        assert!(is_strict(state), "{statement}");
        store.close().await.unwrap();
        let done = store::repair::repair(home.path(), None).unwrap();
        assert!(done[0].contains("differed from what was decided"), "{done:?}");
        let store = home.open();
        assert_eq!(store.ledger().notices, Vec::<String>::new(), "{statement}");
        let restored = decided(store.state());
        let texts = ["approved_text: Some(\"t\")", r#"text: "{\"name\":\"read\"}""#, r#"text: """#];
        let without =
            |words: &str| texts.iter().fold(words.to_owned(), |it, text| it.replace(text, ""));
        let (restored, before) = (without(&restored), without(&before));
        assert_eq!(
            restored.replace("approved_text: None", ""),
            before.replace("approved_text: None", "")
        );
    }
}

#[tokio::test]
async fn a_decision_about_an_edited_row_is_made_on_what_was_decided() {
    let home = used_home().await;
    edit(&home, "UPDATE tokens SET scope = 'all'; UPDATE servers SET approved = 'j'");
    let store = home.open();
    assert!(store.state().revoke_token("agent", Timestamp::UNIX_EPOCH).unwrap());
    store.state().set_server_disabled("added", true).unwrap();
    store.close().await.unwrap();
    store::repair::repair(home.path(), None).unwrap();
    let store = home.open();
    let token = &store.state().tokens().unwrap()[0];
    assert_eq!((&*token.scope, token.revoked_at), ("{}", Some(Timestamp::UNIX_EPOCH)));
    let added = server(store.state(), "added");
    assert_eq!((added.approved.as_deref(), added.disabled), (Some("i"), true));
}

#[tokio::test]
async fn a_damaged_log_is_restored_from_its_copy_or_allows_nothing() {
    let home = used_home().await;
    let before = decided(home.copy().open().state());
    for statement in [
        "UPDATE decisions SET line = replace(line, 'delete', 'list')",
        "UPDATE decisions SET line = 'x' WHERE number = 3",
        "DELETE FROM decisions",
        "DELETE FROM decisions WHERE number = 2",
        "DELETE FROM decisions WHERE number = (SELECT MAX(number) FROM decisions)",
    ] {
        let restored = home.copy();
        edit(&restored, statement);
        let store = restored.open();
        assert!(store.ledger().notices[0].contains("were restored"), "{statement}");
        assert_eq!(store.ledger().notices.len(), 1, "{statement}: {:?}", store.ledger().notices);
        assert_eq!(decided(store.state()), before, "{statement}");
        let lost = home.copy();
        edit(&lost, statement);
        fs::remove_file(lost.path().join("decisions.jsonl")).unwrap();
        let refusal = Store::open(lost.path(), &Ledger::default()).err().unwrap().to_string();
        assert!(refusal.contains("11 decisions at the last checkpoint"), "{refusal}");
        fs::remove_file(lost.path().join(CHECKPOINT_FILE)).unwrap();
        let faults = Survey::of(lost.path(), None).faults;
        if statement.contains("MAX") {
            // Without any other trace, only the tables show that something is gone.
            assert!(faults[0].contains("differs from the signed decisions"), "{faults:?}");
            continue;
        }
        assert!(faults[0].contains("the signed log of decisions is damaged"), "{faults:?}");
        let store = lost.open();
        let state = store.state();
        assert!(store.ledger().notices.ends_with(&faults), "{:?}", store.ledger().notices);
        assert!(valid_tokens(state).is_empty() && state.trusted_files().unwrap().is_empty());
        assert!(state.items("files").unwrap()[0].approved.is_none());
        assert!(state.switched_off("files").unwrap().contains("delete"), "restrictions stay");
        let refusal = state.set_switch("files", "delete", false).unwrap_err().to_string();
        assert!(refusal.contains("countersign ledger repair"), "{refusal}");
        store.close().await.unwrap();
        let done = store::repair::repair(lost.path(), None).unwrap();
        assert!(done.iter().any(|words| words.contains("decisions are lost")), "{done:?}");
        let store = lost.open();
        assert!(store.state().lost_at().unwrap().is_some());
        store.state().set_switch("files", "delete", false).unwrap();
    }
}

#[tokio::test]
async fn a_log_that_loses_decisions_while_it_is_used_is_not_believed() {
    let home = used_home().await;
    let store = home.open();
    assert_eq!(valid_tokens(store.state()), ["agent"]);
    edit(&home, "DELETE FROM decisions WHERE number > 1");
    assert!(valid_tokens(store.state()).is_empty());
    let refusal = store.state().set_switch("files", "x", true).unwrap_err().to_string();
    assert!(refusal.contains("is gone from it"), "{refusal}");
}

#[tokio::test]
async fn the_log_stays_short_and_its_copy_equal_with_two_writers() {
    let home = used_home().await;
    let copy = home.path().join("decisions.jsonl");
    let (first, second) = (home.open(), home.open());
    for number in 0..100 {
        let store = if number % 2 == 0 { &first } else { &second };
        store.state().set_switch("files", &number.to_string(), true).unwrap();
        if number % 30 == 0 {
            // As a crash in the middle of a line leaves it.
            let mut text = fs::read_to_string(&copy).unwrap();
            text.truncate(text.len() - 10);
            fs::write(&copy, text).unwrap();
        }
    }
    first.close().await.unwrap();
    second.close().await.unwrap();
    let lines = fs::read_to_string(&copy).unwrap().lines().count();
    assert!(lines <= 33, "{lines}");
    lose_database(home.path());
    store::repair::repair(home.path(), None).unwrap();
    let store = home.open();
    assert_eq!(store.state().switched_off("files").unwrap().len(), 101);
    assert_eq!(valid_tokens(store.state()), ["agent"]);
}

#[tokio::test]
async fn long_ten_thousand_approvals_do_not_slow_decisions_down() {
    let tools = if testkit::run::is_long() { 10_000 } else { 1_000 };
    let home = Home::new();
    let store = home.open();
    let names: Vec<String> = (0..tools).map(|number| format!("tool-{number}")).collect();
    let text = "x".repeat(1_000);
    let fingerprint = format!("sha256:{}", "0".repeat(64));
    let approved: Vec<ItemChange<'_>> = names
        .iter()
        .map(|name| ItemChange::Approved {
            kind: "tool",
            name,
            text: &text,
            fingerprint: &fingerprint,
        })
        .collect();
    store.state().record_items("files", &approved, true).unwrap();
    let begun = Instant::now();
    for number in 0..100 {
        store.state().set_switch("files", &format!("tool-{number}"), true).unwrap();
    }
    let each = begun.elapsed() / 100;
    store.close().await.unwrap();
    let bytes = fs::metadata(home.path().join("decisions.jsonl")).unwrap().len();
    eprintln!("{tools} approvals: {bytes} bytes, {each:?} a decision");
    lose_database(home.path());
    store::repair::repair(home.path(), None).unwrap();
    let store = home.open();
    assert_eq!(store.state().items("files").unwrap().len(), tools);
    assert_eq!(store.state().switched_off("files").unwrap().len(), 100);
}
