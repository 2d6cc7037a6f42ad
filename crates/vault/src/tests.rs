//! The vault against damage, wrong keys, other processes and a keychain that comes and goes.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::mpsc;

use serde_json::{Value, json};
use tempfile::TempDir;
use zeroize::Zeroizing;

use super::keychain::Keychain;
use super::program::Programs;
use super::*;

mod command;
#[cfg(not(target_os = "macos"))]
mod secret_tool;

/// A keychain in memory, which can be switched off.
#[derive(Default)]
struct FakeKeychain {
    keys: Mutex<HashMap<String, String>>,
    fault: Mutex<Option<String>>,
}

impl FakeKeychain {
    fn fail(&self, fault: Option<&str>) {
        *hold(&self.fault) = fault.map(str::to_owned);
    }

    fn usable(&self) -> Result<(), String> {
        hold(&self.fault).clone().map_or(Ok(()), Err)
    }
}

impl Keychain for FakeKeychain {
    fn get(&self, id: &str) -> Result<Zeroizing<String>, String> {
        self.usable()?;
        hold(&self.keys).get(id).cloned().map(Zeroizing::new).ok_or("no such key".to_owned())
    }

    fn set(&self, id: &str, key: &str) -> Result<(), String> {
        self.usable()?;
        hold(&self.keys).insert(id.to_owned(), key.to_owned());
        Ok(())
    }

    fn remove(&self, id: &str) -> Result<(), String> {
        self.usable()?;
        hold(&self.keys).remove(id).map(|_| ()).ok_or("no such key".to_owned())
    }
}

struct Rig {
    home: TempDir,
    keychain: Arc<FakeKeychain>,
    programs: Programs,
    prefers_keychain: bool,
}

impl Rig {
    /// Returns a home where `auto` means the keychain.
    fn new() -> Rig {
        Rig {
            home: tempfile::tempdir().unwrap(),
            keychain: Arc::default(),
            programs: Programs::of_system(),
            prefers_keychain: true,
        }
    }

    /// Returns a home where `auto` means a file.
    fn preferring_files() -> Rig {
        Rig { prefers_keychain: false, ..Rig::new() }
    }

    fn without_keychain() -> Rig {
        let rig = Rig::new();
        rig.keychain.fail(Some("none here"));
        rig
    }

    /// Returns the vault as a new process sees it.
    fn vault(&self) -> Vault {
        let home = self.home.path();
        let places = KeyPlaces {
            dir: home.join(KEYS_FOLDER),
            keychain: self.keychain.clone(),
            programs: self.programs.clone(),
            prefers_keychain: self.prefers_keychain,
        };
        Vault::with_keys(home, places)
    }

    /// Returns the vault as a new process with this choice sees it.
    fn choosing(&self, choice: SecretsKey) -> Vault {
        let vault = self.vault();
        vault.choose_key(choice);
        vault
    }

    fn file(&self) -> PathBuf {
        self.vault().file()
    }

    fn content(&self) -> Value {
        serde_json::from_slice(&fs::read(self.file()).unwrap()).unwrap()
    }

    fn put(&self, content: &Value) {
        fs::write(self.file(), content.to_string()).unwrap();
    }

    fn key_files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.home.path().join(KEYS_FOLDER)).into_iter().flatten();
        files.map(|file| file.unwrap().path()).collect()
    }

    fn get(&self, name: &str) -> Result<Option<String>, VaultError> {
        let secret = self.vault().get(Space::Secret, name)?;
        Ok(secret.map(|secret| secret.expose().to_owned()))
    }
}

fn set(vault: &Vault, name: &str, value: &str) -> KeyHolder {
    vault.set(Space::Secret, name, &Secret::from(value)).unwrap()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_secret_is_not_printed() {
    let secret = Secret::from("tuesday");
    assert_eq!(
        format!("{secret} {secret:?} {:?}", Some(&secret)),
        "[secret] [secret] Some([secret])"
    );
}

#[test]
fn values_come_back_by_space_and_name_and_are_nowhere_in_the_files() {
    for rig in [Rig::new(), Rig::without_keychain()] {
        let vault = rig.vault();
        assert_eq!(vault.get(Space::Secret, "a").unwrap(), None);
        assert!(!vault.remove(Space::Secret, "a").unwrap());
        assert!(!rig.home.path().join(VAULT_FOLDER).exists(), "reading makes nothing");
        set(&vault, "a", "monday-lunch");
        set(&vault, "b", "tuesday-lunch");
        vault.set(Space::Grant, "a", &Secret::from("wednesday-lunch")).unwrap();
        set(&vault, "b", "thursday-lunch");
        assert_eq!(rig.get("a").unwrap(), some("monday-lunch"));
        assert_eq!(rig.get("b").unwrap(), some("thursday-lunch"));
        let grant = rig.vault().get(Space::Grant, "a").unwrap().unwrap();
        assert_eq!(grant.expose(), "wednesday-lunch");
        let names = vault.names(Space::Secret).unwrap();
        assert_eq!(names.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(vault.names(Space::Grant).unwrap().len(), 1);
        let files = rig.key_files().into_iter().chain([rig.file()]);
        for file in files {
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600, "{}", file.display());
            assert!(!fs::read_to_string(&file).unwrap().contains("lunch"), "{}", file.display());
        }
        let folder = fs::metadata(rig.home.path().join(VAULT_FOLDER)).unwrap();
        assert_eq!(folder.mode() & 0o777, 0o700);
        assert!(vault.remove(Space::Secret, "a").unwrap());
        assert_eq!(rig.get("a").unwrap(), None);
        assert!(rig.vault().get(Space::Grant, "a").unwrap().is_some());
    }
}

#[test]
fn the_key_is_made_once_and_goes_with_the_last_entry() {
    let rig = Rig::without_keychain();
    let vault = rig.vault();
    assert_eq!(vault.key_holder().unwrap(), None);
    assert_eq!(set(&vault, "a", "1"), KeyHolder::File);
    let keys = rig.key_files();
    set(&rig.vault(), "b", "2");
    assert_eq!((keys.len(), &rig.key_files()), (1, &keys));
    assert!(vault.remove(Space::Secret, "a").unwrap() && vault.remove(Space::Secret, "b").unwrap());
    assert!(rig.key_files().is_empty() && !rig.file().exists());
    set(&vault, "a", "3");
    assert_eq!(rig.get("a").unwrap(), some("3"));
    assert_ne!(rig.key_files(), keys);
}

#[test]
fn every_change_to_an_entry_is_noticed() {
    let rig = Rig::new();
    set(&rig.vault(), "a", "one");
    set(&rig.vault(), "b", "two");
    rig.vault().set(Space::Grant, "c", &Secret::from("three")).unwrap();
    let sound = rig.content();
    let at = |name: &str| {
        let entries = sound["entries"].as_array().unwrap();
        entries.iter().position(|entry| entry["name"] == name).unwrap()
    };
    let swapped = |one: &str, other: &str, member: &str| {
        let mut changed = sound.clone();
        changed["entries"][at(one)][member] = sound["entries"][at(other)][member].clone();
        changed["entries"][at(other)][member] = sound["entries"][at(one)][member].clone();
        changed
    };
    let mut flipped = sound.clone();
    let sealed = flipped["entries"][at("a")]["sealed"].as_str().unwrap().to_owned();
    let other = if sealed.as_bytes()[20] == b'A' { "B" } else { "A" };
    flipped["entries"][at("a")]["sealed"] =
        json!(format!("{}{other}{}", &sealed[..20], &sealed[21..]));
    let mut cut = sound.clone();
    cut["entries"][at("a")]["sealed"] = json!(sealed[..12]);
    let mut empty = sound.clone();
    empty["entries"][at("a")]["sealed"] = json!("");
    let mut renamed = sound.clone();
    renamed["entries"][at("b")]["name"] = json!("z");
    renamed["entries"][at("a")]["name"] = json!("b");
    renamed["entries"][at("b")]["name"] = json!("a");
    let mut later = sound.clone();
    later["entries"][at("a")]["set_at"] = json!("2031-01-01T00:00:00Z");
    let mut moved = sound.clone();
    moved["entries"][at("c")]["space"] = json!("secret");
    moved["entries"][at("c")]["name"] = json!("c");
    for (changed, name) in [
        (swapped("a", "b", "sealed"), "a"),
        (swapped("a", "b", "sealed"), "b"),
        (flipped, "a"),
        (cut, "a"),
        (empty, "a"),
        (renamed, "b"),
        (later, "a"),
        (moved, "c"),
    ] {
        rig.put(&changed);
        let error = rig.get(name).unwrap_err();
        assert!(matches!(error, VaultError::Damaged { .. }), "{changed}: {error}");
        assert_eq!(error.code().as_str(), "SECRETS_UNAVAILABLE");
        assert_eq!(rig.content(), changed, "never replaced");
    }
}

#[test]
fn a_file_that_is_not_sound_is_an_error_and_stays() {
    let rig = Rig::new();
    set(&rig.vault(), "a", "one");
    let sound = fs::read_to_string(rig.file()).unwrap();
    let twice = {
        let mut content = rig.content();
        let entry = content["entries"][0].clone();
        content["entries"].as_array_mut().unwrap().push(entry);
        content.to_string()
    };
    let newer = sound.replace("\"version\": 1", "\"version\": 2, \"more\": true");
    let lost_key = sound.replace("\"id\": \"", "\"id\": \"../../");
    for (text, says) in [
        ("", "not the JSON"),
        (&sound[..sound.len() / 2], "not the JSON"),
        (&sound[..sound.len() - 2], "not the JSON"),
        ("{}", "not the JSON"),
        ("[]", "not the JSON"),
        ("\0\0\0\0", "not the JSON"),
        (&twice, "a name occurs twice"),
        (&newer, "newer version"),
        (&lost_key, "no valid id"),
    ] {
        fs::write(rig.file(), text).unwrap();
        let error = rig.get("a").unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
        assert!(!error.contains("one"), "{error}");
        let refused = rig.vault().set(Space::Secret, "b", &Secret::from("two"));
        assert!(refused.is_err(), "{text}");
        assert_eq!(fs::read_to_string(rig.file()).unwrap(), text, "never replaced");
    }
    fs::write(rig.file(), &sound).unwrap();
    assert_eq!(rig.get("a").unwrap(), some("one"));
}

#[test]
fn a_wrong_missing_or_open_key_is_an_error_and_stays() {
    let rig = Rig::without_keychain();
    set(&rig.vault(), "a", "one");
    let key = rig.key_files().remove(0);
    let sound = fs::read(&key).unwrap();
    let wrong = "00".repeat(32);
    for (text, says) in
        [(wrong.as_str(), "cannot be decrypted"), ("", "is damaged"), ("zz", "is damaged")]
    {
        fs::write(&key, text).unwrap();
        let error = rig.get("a").unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
        assert_eq!(fs::read_to_string(&key).unwrap(), text);
    }
    fs::write(&key, &sound).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o640)).unwrap();
    assert!(rig.get("a").unwrap_err().to_string().contains("chmod 600"));
    fs::remove_file(&key).unwrap();
    let error = rig.get("a").unwrap_err().to_string();
    assert!(error.contains("is missing") && error.contains("secret remove"), "{error}");
    assert!(rig.vault().set(Space::Secret, "b", &Secret::from("two")).is_err());
    assert!(rig.key_files().is_empty(), "no new key is made");
    assert_eq!(rig.vault().names(Space::Secret).unwrap().len(), 1, "names need no key");
    // The way out that the message names.
    assert!(rig.vault().remove(Space::Secret, "a").unwrap());
    set(&rig.vault(), "a", "again");
    assert_eq!(rig.get("a").unwrap(), some("again"));
}

#[test]
fn a_keychain_that_is_gone_later_is_an_error_and_never_a_new_key() {
    let mut rig = Rig::new();
    assert_eq!(set(&rig.vault(), "a", "one"), KeyHolder::Keychain);
    assert!(rig.key_files().is_empty());
    let content = rig.content();
    let refused = |rig: &Rig, words: &str| {
        for choice in [SecretsKey::Auto, SecretsKey::File, SecretsKey::Keychain] {
            let vault = rig.choosing(choice.clone());
            let error = vault.get(Space::Secret, "a").unwrap_err();
            assert_eq!(error, VaultError::Keychain(words.to_owned()));
            assert!(error.to_string().contains("\"key\": \"file\""), "{error}");
            let vault = rig.choosing(choice);
            assert!(vault.set(Space::Secret, "b", &Secret::from("two")).is_err());
            assert!(rig.key_files().is_empty(), "no new key is made");
            assert_eq!(rig.content(), content);
        }
    };
    for prefers_keychain in [true, false] {
        rig.prefers_keychain = prefers_keychain;
        rig.keychain.fail(Some("it is locked"));
        refused(&rig, "it is locked");
        rig.keychain.fail(None);
        assert_eq!(rig.get("a").unwrap(), some("one"));
    }
    hold(&rig.keychain.keys).clear();
    refused(&rig, "no such key");
}

#[test]
fn a_key_in_the_keychain_stays_until_the_config_says_otherwise_and_the_way_is_named() {
    let rig = Rig::preferring_files();
    assert_eq!(set(&rig.choosing(SecretsKey::Keychain), "a", "one"), KeyHolder::Keychain);
    let vault = rig.vault();
    assert_eq!(set(&vault, "b", "two"), KeyHolder::Keychain, "'auto' moves nothing");
    let advice = vault.key_advice().unwrap().unwrap();
    assert!(advice.contains("or to \"file\" and then set any secret again"), "{advice}");
    vault.choose_key(SecretsKey::Keychain);
    assert_eq!(vault.key_advice().unwrap(), None);
    vault.choose_key(SecretsKey::File);
    let advice = vault.key_advice().unwrap().unwrap();
    assert!(advice.contains("in the OS keychain, and not where"), "{advice}");
    assert_eq!(set(&vault, "b", "three"), KeyHolder::File);
    assert_eq!(vault.key_advice().unwrap(), None);
    assert!(hold(&rig.keychain.keys).is_empty());
    assert_eq!(rig.get("a").unwrap(), some("one"));
}

#[test]
fn by_default_the_key_is_in_a_file_unless_the_system_has_a_keychain_of_its_own() {
    assert_eq!(set(&Rig::preferring_files().vault(), "a", "one"), KeyHolder::File);
    assert_eq!(set(&Rig::new().vault(), "a", "one"), KeyHolder::Keychain);
    assert_eq!(set(&Rig::without_keychain().vault(), "a", "one"), KeyHolder::File);
}

#[test]
fn a_loaded_key_needs_no_keychain_and_a_failure_is_not_repeated_at_once() {
    let rig = Rig::new();
    let (loaded, other) = (rig.vault(), rig.vault());
    set(&loaded, "a", "one");
    rig.keychain.fail(Some("it is locked"));
    assert!(loaded.get(Space::Secret, "a").unwrap().is_some());
    assert!(other.get(Space::Secret, "a").is_err());
    rig.keychain.fail(None);
    assert!(other.get(Space::Secret, "a").is_err(), "the failure of a moment ago");
    assert_eq!(rig.get("a").unwrap(), some("one"));
}

#[test]
fn the_choice_of_the_key_is_obeyed_and_can_be_changed() {
    let rig = Rig::new();
    let vault = rig.vault();
    vault.choose_key(SecretsKey::File);
    assert_eq!(set(&vault, "a", "one"), KeyHolder::File);
    vault.choose_key(SecretsKey::Auto);
    assert_eq!(set(&vault, "b", "two"), KeyHolder::File, "it stays where it is");
    let before = rig.content();
    vault.choose_key(SecretsKey::Keychain);
    assert_eq!(rig.get("a").unwrap(), some("one"), "read where it is");
    assert_eq!(set(&vault, "c", "three"), KeyHolder::Keychain);
    assert!(rig.key_files().is_empty(), "the old key is removed");
    assert_ne!(before["entries"][0]["sealed"], rig.content()["entries"][0]["sealed"]);
    for (name, value) in [("a", "one"), ("b", "two"), ("c", "three")] {
        assert_eq!(rig.get(name).unwrap(), some(value));
    }
    vault.choose_key(SecretsKey::File);
    assert_eq!(set(&vault, "a", "four"), KeyHolder::File);
    assert_eq!(hold(&rig.keychain.keys).len(), 0);
    assert_eq!(rig.get("c").unwrap(), some("three"));
    rig.keychain.fail(Some("it is locked"));
    vault.choose_key(SecretsKey::Keychain);
    let refused = vault.set(Space::Secret, "a", &Secret::from("five"));
    assert!(matches!(refused, Err(VaultError::Keychain(_))), "{refused:?}");
    assert_eq!(rig.get("a").unwrap(), some("four"));
}

#[test]
fn names_and_values_are_bounded() {
    let rig = Rig::new();
    let vault = rig.vault();
    let long = "x".repeat(SECRET_NAME_BYTES_MAX + 1);
    let large = "x".repeat(SECRET_BYTES_MAX + 1);
    for (name, value) in [("", "v"), ("a\nb", "v"), (&*long, "v"), ("a", ""), ("a", &large)] {
        let refused = vault.set(Space::Secret, name, &Secret::from(value)).unwrap_err();
        assert_eq!(refused.code().as_str(), "INVALID_REQUEST");
    }
    assert!(!rig.file().exists());
    set(&vault, &long[1..], &large[1..]);
    let mut content = rig.content();
    let entry = content["entries"][0].clone();
    let entries = (0..SECRETS_MAX).map(|at| {
        let mut entry = entry.clone();
        entry["name"] = json!(format!("n{at}"));
        entry["sealed"] = json!("");
        entry
    });
    content["entries"] = entries.collect();
    rig.put(&content);
    let refused = vault.set(Space::Secret, "one-more", &Secret::from("v")).unwrap_err();
    assert!(refused.to_string().contains("remove some"), "{refused}");
    set(&vault, "n7", "in place of another");
}

#[test]
fn a_name_has_one_holder_at_a_time_and_other_names_are_free() {
    let rig = Rig::new();
    let held = rig.vault().lock(Space::Grant, "a").unwrap();
    assert!(rig.vault().try_lock(Space::Grant, "a").unwrap().is_none());
    drop(rig.vault().lock(Space::Grant, "b").unwrap());
    drop(rig.vault().lock(Space::Secret, "a").unwrap());
    rig.vault().set(Space::Grant, "a", &Secret::from("v")).unwrap();
    let (vault, (taken, order)) = (rig.vault(), mpsc::channel());
    let waiting = std::thread::spawn(move || {
        let lock = vault.lock(Space::Grant, "a").unwrap();
        taken.send("second").unwrap();
        drop(lock);
    });
    assert!(order.try_recv().is_err(), "still held");
    drop(held);
    assert_eq!(order.recv().unwrap(), "second");
    waiting.join().unwrap();
    assert!(rig.vault().try_lock(Space::Grant, "a").unwrap().is_some());
}

#[test]
fn a_half_written_file_beside_it_is_of_no_consequence() {
    let rig = Rig::without_keychain();
    set(&rig.vault(), "a", "one");
    let beside = rig.file().with_added_extension("new");
    fs::write(&beside, "{\"version\": 1, \"key").unwrap();
    assert_eq!(rig.get("a").unwrap(), some("one"));
    set(&rig.vault(), "b", "two");
    assert!(!beside.exists());
    assert_eq!((rig.get("a").unwrap(), rig.get("b").unwrap()), (some("one"), some("two")));
}
