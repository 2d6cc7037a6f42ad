//! Anchors outside the home: a home that was replaced by an earlier copy is found by what they keep,
//! before anything is written.

use std::fs;
use std::path::{Path, PathBuf};

use domain::Code;
use domain::config::{AnchorConfig, Ledger, SecretsKey};
use domain::tool::Class;
use jiff::Timestamp;
use store::anchored::{self, AnchorCheck};
use store::state::TokenRecord;
use store::survey::Survey;
use store::{CHECKPOINT_FILE, FILE, Store, StoreError};
use vault::{Secret, Space, Vault};

use super::support::{Home, call, rules};

/// A home and its anchor, which lies outside.
struct Anchored {
    home: Home,
    outside: tempfile::TempDir,
}

impl Anchored {
    fn new() -> Anchored {
        Anchored { home: Home::new(), outside: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.outside.path().join("heads.jsonl")
    }

    fn anchor(&self) -> AnchorConfig {
        AnchorConfig::File(self.file().to_str().unwrap().to_owned())
    }

    fn rules(&self) -> Ledger {
        Ledger { anchor: Some(self.anchor()), ..rules() }
    }

    /// Opens the home, makes a call after this, and closes it: the end of its chain is anchored.
    async fn use_after(&self, work: impl FnOnce(&Store)) {
        let store = Store::open(self.home.path(), &self.rules()).unwrap();
        work(&store);
        call(&store, Class::Write).await.unwrap();
        store.close().await.unwrap();
    }

    fn refusal(&self, home: &Path) -> String {
        match Store::open(home, &self.rules()) {
            Ok(_) => panic!("the home was opened"),
            Err(error @ StoreError::Incomplete(_)) => {
                assert_eq!(error.code(), Code::LedgerIncomplete);
                error.to_string()
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn check(&self, home: &Path) -> AnchorCheck {
        anchored::check(home, Some(&self.anchor())).unwrap()
    }
}

fn create_token(store: &Store) {
    let created_at = Timestamp::from_second(1).unwrap();
    let (name, hash, scope) = ("agent".to_owned(), [7; 32], "{}".to_owned());
    let (expires_at, revoked_at) = (None, None);
    let token = TokenRecord { name, hash, scope, created_at, expires_at, revoked_at };
    assert!(store.state().create_token(&token).unwrap());
}

fn revoke_token(store: &Store) {
    assert!(store.state().revoke_token("agent", Timestamp::now()).unwrap());
}

/// Returns the tokens that are in force.
fn tokens(home: &Path) -> usize {
    let store = Store::open_to_read(&home.join(FILE), home).unwrap();
    let tokens = store.state().tokens().unwrap();
    tokens.iter().filter(|token| token.revoked_at.is_none()).count()
}

#[tokio::test]
async fn an_earlier_copy_of_the_whole_home_is_not_used() {
    let anchored = Anchored::new();
    anchored.use_after(create_token).await;
    let earlier = anchored.home.copy();
    anchored.use_after(revoke_token).await;
    // The home itself is sound, and so is the copy, judged by its content.
    let check = anchored.check(anchored.home.path());
    assert_eq!((check.faults.len(), check.notes.len(), check.compared), (0, 0, 2), "{check:?}");
    assert_eq!(Survey::of(earlier.path(), None).faults, Vec::<String>::new());
    assert_eq!((tokens(anchored.home.path()), tokens(earlier.path())), (0, 1));
    // Without the anchor it would start.
    earlier.copy().open().close().await.unwrap();
    let refusal = anchored.refusal(earlier.path());
    assert!(refusal.contains("is older than its anchor"), "{refusal}");
    assert!(refusal.contains("2 decisions"), "{refusal}");
    assert!(refusal.contains("countersign ledger repair"), "{refusal}");
    let check = anchored.check(earlier.path());
    assert!(
        check.faults.iter().any(|fault| fault.contains("has 0 receipts, but 2 at")),
        "{check:?}"
    );
    let survey = Survey::of(earlier.path(), Some(&anchored.anchor()));
    assert_eq!(survey.faults, check.faults);
    // A repair accepts the loss, signs what it was, and lets no old token in.
    let token_files = ["api-key", "agent-token"].map(|name| earlier.path().join(name));
    token_files.iter().for_each(|file| fs::write(file, "old").unwrap());
    let vault = Vault::of_home(earlier.path());
    vault.choose_key(SecretsKey::File);
    vault.set(Space::Secret, "GITHUB_TOKEN", &Secret::new("old".to_owned())).unwrap();
    let done = store::repair::repair(earlier.path(), Some(&anchored.anchor())).unwrap();
    assert!(done.iter().any(|words| words.contains("older than its anchor")), "{done:?}");
    assert_eq!(tokens(earlier.path()), 0);
    assert!(!token_files.iter().any(|file| file.exists()), "{done:?}");
    assert!(done.iter().any(|words| words.ends_with("since: GITHUB_TOKEN")), "{done:?}");
    for _ in 0..2 {
        let store = Store::open(earlier.path(), &anchored.rules()).unwrap();
        call(&store, Class::Write).await.unwrap();
        store.close().await.unwrap();
    }
    assert_eq!(anchored.check(earlier.path()).faults, Vec::<String>::new());
    assert!(!anchored.check(anchored.home.path()).faults.is_empty(), "the other one is older now");
}

#[tokio::test]
async fn decisions_that_are_older_than_the_anchor_are_not_used() {
    let anchored = Anchored::new();
    let copy = anchored.home.path().join("decisions.jsonl");
    anchored.use_after(create_token).await;
    let earlier = fs::read(&copy).unwrap();
    anchored.use_after(revoke_token).await;
    anchored.use_after(|_| ()).await;
    // The ledger stays as it is; only the decisions go back, in both places.
    let db = testkit::ledger::edit(anchored.home.path());
    let back = "UPDATE tokens SET revoked_us = NULL; DELETE FROM decisions WHERE number = 2";
    db.execute_batch(back).unwrap();
    drop(db);
    fs::write(&copy, earlier).unwrap();
    fs::remove_file(anchored.home.path().join(CHECKPOINT_FILE)).unwrap();
    assert_eq!(tokens(anchored.home.path()), 1);
    let refusal = anchored.refusal(anchored.home.path());
    assert!(refusal.contains("2 decisions at a checkpoint in the anchor"), "{refusal}");
    assert!(refusal.contains("the home has 1 of them"), "{refusal}");
    store::repair::repair(anchored.home.path(), Some(&anchored.anchor())).unwrap();
    anchored.use_after(|_| ()).await;
    assert_eq!(tokens(anchored.home.path()), 0);
}

#[tokio::test]
async fn decisions_of_the_copy_alone_count_as_known() {
    let anchored = Anchored::new();
    anchored.use_after(create_token).await;
    let db = testkit::ledger::edit(anchored.home.path());
    db.execute_batch("DELETE FROM tokens; DELETE FROM decisions").unwrap();
    drop(db);
    anchored.use_after(|_| ()).await;
    assert_eq!(tokens(anchored.home.path()), 1, "restored from the copy");
}

#[tokio::test]
async fn lines_that_are_no_checkpoints_are_noted_and_foreign_ones_refused() {
    let anchored = Anchored::new();
    anchored.use_after(|_| ()).await;
    let sound = fs::read_to_string(anchored.file()).unwrap();
    // As a crash leaves it; the next checkpoint begins a new line.
    fs::write(anchored.file(), format!("{sound}{}", &sound[..100])).unwrap();
    anchored.use_after(|_| ()).await;
    let check = anchored.check(anchored.home.path());
    assert_eq!((check.faults.len(), check.compared), (0, 2), "{check:?}");
    assert!(check.notes[0].contains("1 lines near its end that are no checkpoints"), "{check:?}");
    // A name that was changed after it was signed is not of this home's key.
    let forged = sound.replacen("\"length\":1", "\"length\":9", 1);
    assert_ne!(forged, sound);
    let other = Anchored::new();
    other.use_after(|_| ()).await;
    let foreign = fs::read_to_string(other.file()).unwrap();
    for line in [forged, foreign] {
        fs::write(anchored.file(), format!("{sound}{line}")).unwrap();
        let refusal = anchored.refusal(anchored.home.path());
        assert!(refusal.contains("that no key of this home signed"), "{refusal}");
    }
    fs::write(anchored.file(), &sound).unwrap();
    anchored.use_after(|_| ()).await;
}

#[tokio::test]
async fn an_anchor_that_is_absent_is_noted_and_stops_nothing() {
    let anchored = Anchored::new();
    let first = Store::open(anchored.home.path(), &anchored.rules()).unwrap();
    assert_eq!(first.ledger().notices, Vec::<String>::new(), "there is nothing to compare yet");
    call(&first, Class::Write).await.unwrap();
    first.close().await.unwrap();
    fs::remove_file(anchored.file()).unwrap();
    let second = Store::open(anchored.home.path(), &anchored.rules()).unwrap();
    let notices = second.ledger().notices;
    assert!(notices[0].contains("cannot be read"), "{notices:?}");
    second.close().await.unwrap();
    // One that could not show a rollback is no sound one.
    let checked = |anchor| anchored::check(anchored.home.path(), Some(&anchor)).unwrap();
    fs::write(anchored.file(), "").unwrap();
    let check = checked(anchored.anchor());
    assert!(check.notes[0].contains("has no checkpoint of this home"), "{check:?}");
    let inside = AnchorConfig::File("anchored.jsonl".to_owned());
    fs::write(anchored.home.path().join("anchored.jsonl"), "").unwrap();
    let check = checked(inside);
    assert!(check.notes[0].contains("lies in the home"), "{check:?}");
    let command = AnchorConfig::Command(vec!["cat".to_owned()]);
    let check = anchored::check(anchored.home.path(), Some(&command)).unwrap();
    assert!(check.notes[0].contains("receipt verify --head"), "{check:?}");
    assert_eq!(anchored::check(anchored.home.path(), None).unwrap(), AnchorCheck::default());
}

#[tokio::test]
async fn checkpoints_of_earlier_keys_count_and_an_expiry_that_nobody_signed_does_not() {
    let anchored = Anchored::new();
    anchored.use_after(|_| ()).await;
    let store = Store::open(anchored.home.path(), &anchored.rules()).unwrap();
    call(&store, Class::Write).await.unwrap();
    store.rotate_key().await.unwrap();
    store.checkpoint().await.unwrap();
    store.close().await.unwrap();
    anchored.use_after(|_| ()).await;
    let check = anchored.check(anchored.home.path());
    assert!(check.compared >= 3 && check.faults.is_empty(), "{check:?}");
    let db = testkit::ledger::edit(anchored.home.path());
    db.execute_batch(
        "DELETE FROM receipts WHERE chain_id = (SELECT chain_id FROM chains ORDER BY chain LIMIT 1);
         UPDATE chains SET status = 'expired' WHERE chain = (SELECT MIN(chain) FROM chains);",
    )
    .unwrap();
    drop(db);
    let check = anchored.check(anchored.home.path());
    assert!(check.faults[0].contains("has 0 receipts, but 2 at a checkpoint"), "{check:?}");
}
