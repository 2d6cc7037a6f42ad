//! The signing keys: created, missing, unsafe, replaced, rotated.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use domain::tool::Class;
use receipt::SigningKey;
use receipt::chain::ChainStatus;
use store::{Entry, Store, StoreError};

use super::support::{Home, call, rules, started};

fn secret(home: &Home) -> PathBuf {
    let mut files =
        fs::read_dir(home.path().join("keys")).unwrap().map(|file| file.unwrap().path());
    files.find(|path| path.to_string_lossy().ends_with(".secret.pem")).unwrap()
}

async fn used_home() -> Home {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    home
}

fn fault(home: &Home) -> String {
    match Store::open(home.path(), &rules()) {
        Err(StoreError::Key(words)) => words,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("opened"),
    }
}

#[tokio::test]
async fn a_key_that_is_missing_open_to_others_replaced_or_empty_is_not_used() {
    let home = used_home().await;
    let path = secret(&home);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();

    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(fault(&home).contains("chmod 600"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, SigningKey::from_seed(&[7; 32]).to_pem().as_str()).unwrap();
    assert!(fault(&home).contains("replaced"));
    fs::write(&path, "").unwrap();
    assert!(fault(&home).contains("cannot use"));
    fs::remove_file(&path).unwrap();
    assert!(fault(&home).contains("missing"));

    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    home.open().close().await.unwrap();
}

#[tokio::test]
async fn receipts_before_and_after_a_rotation_are_one_chain() {
    let home = Home::new();
    let store = home.open();
    let old = store.key().public();
    call(&store, Class::Write).await.unwrap();
    let new = store.rotate_key().await.unwrap().public();
    assert_ne!(old, new);
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    let look = home.look();
    let receipts = &look.chains[0].receipts;
    assert_eq!(receipts.len(), 4);
    assert_eq!(receipts[0]["issuer"]["id"], old.did());
    assert_eq!(receipts[1]["credentialSubject"]["action"]["type"], "agent.key.rotate");
    assert_eq!(receipts[1]["issuer"]["id"], old.did());
    assert_eq!(receipts[2]["issuer"]["id"], new.did());
    let next = home.open();
    assert_eq!(next.key().public(), new);
    assert!(rotated_under_load(&next).await);
}

/// Calls continue while the key changes.
async fn rotated_under_load(store: &Store) -> bool {
    let other = store.clone();
    let flood = tokio::spawn(async move {
        loop {
            let _ = call(&other, Class::Read).await;
        }
    });
    let rotated = store.rotate_key().await.is_ok();
    flood.abort();
    rotated
}

#[tokio::test]
async fn a_rotation_comes_through_under_load_and_the_chain_holds() {
    let home = Home::new();
    let store = home.open();
    for _ in 0..5 {
        assert!(rotated_under_load(&store).await);
    }
    store.close().await.unwrap();
    assert_eq!(home.look().chains[0].status, ChainStatus::Complete);
}

#[tokio::test]
async fn chains_of_dead_processes_are_closed_with_the_key_they_were_written_with() {
    let home = Home::new();
    let (rotating, other, late) = (home.open(), home.open(), home.open());
    let old = rotating.key().public();
    call(&other, Class::Write).await.unwrap();
    call(&rotating, Class::Write).await.unwrap();
    let new = rotating.rotate_key().await.unwrap().public();
    for store in [&rotating, &other, &late] {
        store.append(Entry::Started(Box::new(started(Class::Write)))).await.unwrap();
        store.settled().await;
    }
    let copy = home.copy();
    let store = copy.open();
    assert_eq!(store.key().public(), new);
    let look = copy.look();
    let signers: Vec<_> = look
        .chains
        .iter()
        .map(|chain| {
            assert_eq!(chain.status, ChainStatus::Interrupted);
            chain.receipts.last().unwrap()["issuer"]["id"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(signers, [old.did(), new.did(), new.did()], "a chain begun later has the new key");
    assert!(look.calls.values().all(|status| status == "success" || status == "interrupted"));
    let first = &look.chains[2].receipts[0];
    assert_eq!(first["issuer"]["runtime"]["preceding_chain"]["chain_id"], look.chains[1].id);
}
