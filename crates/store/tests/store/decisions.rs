//! The second copy of the operators' decisions: written after each change, restored if the database
//! is lost, never trusted with a wrong signature; without it, nothing counts as approved.

use std::fs;
use std::path::Path;
use std::time::Instant;

use domain::tool::Class;
use jiff::Timestamp;
use store::Store;
use store::state::{ApprovedServer, ItemChange, TokenRecord};

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
    let file = home.path().join("decisions.json");
    let text = fs::read_to_string(&file).unwrap();
    for forged in [text.replace("delete", "list"), String::new(), "{}".to_owned()] {
        let copy = home.copy();
        fs::write(copy.path().join("decisions.json"), &forged).unwrap();
        // The database has them; the copy is written anew.
        copy.open().close().await.unwrap();
        let again = fs::read_to_string(copy.path().join("decisions.json")).unwrap();
        assert!(again.contains("\"delete\""), "{again}");
        fs::write(copy.path().join("decisions.json"), &forged).unwrap();
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
    fs::remove_file(home.path().join("decisions.json")).unwrap();
    // An older database, which a key that it does not know shows.
    let old = fs::read(home.path().join("ledger.db")).unwrap();
    let store = home.open();
    store.state().set_switch("files", "delete", false).unwrap();
    store.rotate_key().await.unwrap();
    store.close().await.unwrap();
    lose_database(home.path());
    fs::write(home.path().join("ledger.db"), old).unwrap();
    fs::remove_file(home.path().join("decisions.json")).unwrap();
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
    let bytes = fs::metadata(home.path().join("decisions.json")).unwrap().len();
    eprintln!("{tools} approvals: {bytes} bytes, {each:?} a decision");
    lose_database(home.path());
    store::repair::repair(home.path(), None).unwrap();
    let store = home.open();
    assert_eq!(store.state().items("files").unwrap().len(), tools);
    assert_eq!(store.state().switched_off("files").unwrap().len(), 100);
}
