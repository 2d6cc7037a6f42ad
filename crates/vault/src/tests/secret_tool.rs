//! The keychain by way of a scripted `secret-tool`: the real one is tested with the program.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::super::keychain::SystemKeychain;
use super::*;

/// Keeps items in files next to it, and notes its arguments.
const TOOL: &str = r#"#!/bin/sh
dir=${0%/*}
echo "$@" >> "$dir/arguments"
for id; do :; done
case $1 in
    store) cat > "$dir/item-$id" ;;
    lookup) cat "$dir/item-$id" 2> /dev/null ;;
    clear) rm "$dir/item-$id" ;;
esac
"#;

/// A folder of programs, with `secret-tool` if there is a script.
fn folder(script: Option<&str>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    if let Some(script) = script {
        let path = folder.path().join("secret-tool");
        // By another process, so that no child of a parallel test holds the file open for writing.
        let write = ["-c", "cat > \"$0\"; chmod 755 \"$0\"", path.to_str().unwrap()];
        let mut child = Command::new("sh").args(write).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }
    folder
}

fn vault(rig: &Rig, folder: &TempDir) -> Vault {
    let path = std::env::join_paths([PathBuf::from("."), folder.path().to_owned()]).unwrap();
    with_path(rig, path, Duration::from_secs(60))
}

fn with_path(rig: &Rig, path: OsString, wait: Duration) -> Vault {
    let home = rig.home.path();
    let programs = Programs::with(path, wait);
    let keychain = Arc::new(SystemKeychain::new(&programs));
    let places =
        KeyPlaces { dir: home.join(KEYS_FOLDER), keychain, programs, prefers_keychain: false };
    let vault = Vault::with_keys(home, places);
    vault.choose_key(SecretsKey::Keychain);
    vault
}

#[test]
fn the_key_passes_through_pipes_and_is_in_no_argument() {
    let (rig, folder) = (Rig::preferring_files(), folder(Some(TOOL)));
    assert_eq!(set(&vault(&rig, &folder), "a", "one"), KeyHolder::Keychain);
    let value = vault(&rig, &folder).get(Space::Secret, "a").unwrap().unwrap();
    assert_eq!(value.expose(), "one");
    let id = rig.content()["key"]["id"].as_str().unwrap().to_owned();
    let item = folder.path().join(format!("item-{id}"));
    assert_eq!(fs::read_to_string(&item).unwrap().len(), 64);
    assert!(vault(&rig, &folder).remove(Space::Secret, "a").unwrap());
    assert!(!item.exists());
    let attributes = format!("application countersign vault {id}");
    let arguments = fs::read_to_string(folder.path().join("arguments")).unwrap();
    let expected = [
        format!("store --label=Countersign: key of the secrets {id} {attributes}"),
        format!("lookup {attributes}"),
        format!("lookup {attributes}"),
        format!("clear {attributes}"),
    ];
    assert_eq!(arguments.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_tool_that_is_missing_or_gives_nothing_is_an_error_with_a_way_out() {
    let rig = Rig::preferring_files();
    let sound = folder(Some(TOOL));
    let begun = |vault: &Vault| vault.set(Space::Secret, "a", &Secret::from("one"));
    assert!(begun(&vault(&rig, &folder(None))).unwrap_err().to_string().contains("not installed"));
    assert!(!rig.file().exists() && rig.key_files().is_empty());
    begun(&vault(&rig, &sound)).unwrap();
    let content = rig.content();
    for (script, says) in [
        (None, "'secret-tool' is not installed; install the package 'libsecret-tools'"),
        (Some("#!/bin/sh\nexit 1\n"), "it is locked, or no longer has the key"),
        (Some("#!/bin/sh\necho 'no bus' >&2\nexit 1\n"), "belongs: no bus;"),
    ] {
        let folder = folder(script);
        for choice in [SecretsKey::Auto, SecretsKey::File, SecretsKey::Keychain] {
            let vault = vault(&rig, &folder);
            vault.choose_key(choice);
            let error = vault.get(Space::Secret, "a").unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("\"key\": \"file\""), "{error}");
            assert!(begun(&vault).is_err());
            assert_eq!(rig.content(), content);
            assert!(rig.key_files().is_empty(), "no new key is made");
        }
    }
    assert!(vault(&rig, &sound).get(Space::Secret, "a").unwrap().is_some());
}

#[test]
fn a_tool_that_hangs_is_killed() {
    let rig = Rig::preferring_files();
    let folder = folder(Some("#!/bin/sh\nexec sleep 1000\n"));
    let vault = with_path(&rig, folder.path().into(), Duration::from_millis(200));
    let error = vault.set(Space::Secret, "a", &Secret::from("one")).unwrap_err().to_string();
    assert!(error.contains("'secret-tool' did not end within"), "{error}");
}

#[test]
fn a_tool_in_a_relative_folder_is_not_run() {
    let (rig, folder) = (Rig::preferring_files(), folder(Some(TOOL)));
    let here = std::env::current_dir().unwrap();
    let up = "../".repeat(here.components().count());
    let relative = PathBuf::from(format!("{up}{}", folder.path().display()));
    assert!(relative.join("secret-tool").exists());
    let vault = with_path(&rig, relative.into(), Duration::from_secs(60));
    let refused = vault.set(Space::Secret, "a", &Secret::from("one"));
    assert!(refused.unwrap_err().to_string().contains("not installed"));
    assert!(!folder.path().join("arguments").exists());
}
