//! The key from a command: one that works, fails, hangs, prints too much or something else, and one
//! that prints another key later.

use std::io::Read;
use std::process;
use std::time::Duration;

use super::*;

const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const SAME_KEY: &str = "ABEiM0RVZneImaq7zN3u/wARIjNEVWZ3iJmqu8zd7v8=";
const OTHER_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

fn shell(script: &str) -> SecretsKey {
    SecretsKey::Command(["sh", "-c", script].map(str::to_owned).to_vec())
}

impl Rig {
    /// Returns a command that prints what the file `printed` of the home has, and counts its runs.
    fn command(&self) -> SecretsKey {
        let home = self.home.path().display();
        shell(&format!("echo run >> '{home}/runs'; cat '{home}/printed'"))
    }

    fn print(&self, text: &str) {
        fs::write(self.home.path().join("printed"), text).unwrap();
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.home.path().join("runs")).unwrap_or_default().lines().count()
    }
}

fn set_fails(vault: &Vault) -> VaultError {
    vault.set(Space::Secret, "b", &Secret::from("two")).unwrap_err()
}

#[test]
fn the_key_of_a_command_is_used_and_asked_for_once() {
    let rig = Rig::preferring_files();
    rig.print(&format!("{SAME_KEY}\n"));
    let vault = rig.choosing(rig.command());
    assert_eq!(set(&vault, "a", "one"), KeyHolder::Command);
    assert_eq!(set(&vault, "b", "two"), KeyHolder::Command);
    assert!(vault.get(Space::Secret, "a").unwrap().is_some());
    assert_eq!(rig.runs(), 1);
    assert!(rig.key_files().is_empty());
    for text in [KEY, &KEY.to_uppercase(), &format!("{KEY}\r\n"), SAME_KEY] {
        rig.print(text);
        let value = rig.choosing(rig.command()).get(Space::Secret, "b").unwrap().unwrap();
        assert_eq!(value.expose(), "two", "{text}");
    }
    assert!(vault.remove(Space::Secret, "a").unwrap() && vault.remove(Space::Secret, "b").unwrap());
    assert_eq!(vault.key_holder().unwrap(), None);
}

fn assert_refused(rig: &Rig, command: &SecretsKey, says: &str) {
    let vault = rig.choosing(command.clone());
    let error = vault.get(Space::Secret, "a").unwrap_err().to_string();
    assert!(error.contains(says), "{command:?}: {error}");
    assert!(error.contains("nothing was changed") && !error.contains("lunch"), "{error}");
    assert!(matches!(set_fails(&rig.choosing(command.clone())), VaultError::Command(_)));
    assert!(rig.key_files().is_empty(), "no new key is made");
}

#[test]
fn a_command_that_hangs_is_killed() {
    let mut rig = Rig::preferring_files();
    rig.print(SAME_KEY);
    set(&rig.choosing(rig.command()), "a", "one");
    rig.programs = Programs::with(std::env::var_os("PATH").unwrap(), Duration::from_millis(200));
    for script in ["exec sleep 1000", "exec >&- 2>&-; exec sleep 1000"] {
        assert_refused(&rig, &shell(script), "did not end within 0 seconds and was killed");
    }
}

#[test]
fn a_command_that_gives_no_key_is_an_error_that_changes_nothing() {
    let rig = Rig::preferring_files();
    rig.print(SAME_KEY);
    set(&rig.choosing(rig.command()), "a", "one");
    let before = fs::read_to_string(rig.file()).unwrap();
    let absent = SecretsKey::Command(vec!["no-such-program".to_owned()]);
    for (command, says) in [
        (
            shell("echo first >&2; printf 'no \\033[31mcard\\n\\n' >&2; exit 3"),
            "exit status: 3: no [31mcard;",
        ),
        (shell("exit 1"), "'sh' ended with exit status: 1;"),
        (shell("kill -9 $$"), "signal: 9"),
        (shell("exec yes"), "printed more than 4096 bytes"),
        (shell("true"), "it did not print a key"),
        (shell("echo; echo tuesday-lunch"), "it did not print a key"),
        (shell("echo tuesday-lunch"), "it did not print a key"),
        (shell(&format!("echo {}", &KEY[2..])), "it did not print a key"),
        (shell(&format!("echo {KEY}; echo {KEY}")), "it did not print a key"),
        (shell(&format!("echo +{}", &KEY[1..])), "it did not print a key"),
        (shell(r"printf '\377\376'"), "it did not print a key"),
        (absent, "there is no program 'no-such-program' in PATH"),
        (SecretsKey::Command(vec!["/dev/null".to_owned()]), "'/dev/null' cannot be run"),
        (shell(&format!("echo {OTHER_KEY}")), "it printed another key than the one"),
    ] {
        assert_refused(&rig, &command, says);
        assert_eq!(fs::read_to_string(rig.file()).unwrap(), before);
    }
    let value = rig.choosing(rig.command()).get(Space::Secret, "a").unwrap();
    assert_eq!(value.unwrap().expose(), "one");
}

#[test]
fn without_a_key_nothing_is_begun() {
    let rig = Rig::preferring_files();
    let error = set_fails(&rig.choosing(shell("echo locked >&2; exit 1")));
    assert!(error.to_string().contains("'sh' ended with exit status: 1: locked;"), "{error}");
    assert!(!rig.file().exists() && rig.key_files().is_empty());
}

#[test]
fn a_failure_of_a_moment_ago_is_not_repeated_until_the_command_changes() {
    let rig = Rig::preferring_files();
    rig.print(SAME_KEY);
    set(&rig.choosing(rig.command()), "a", "one");
    let vault = rig.choosing(rig.command());
    rig.print("");
    assert!(vault.get(Space::Secret, "a").is_err());
    rig.print(SAME_KEY);
    assert!(vault.get(Space::Secret, "a").is_err());
    assert_eq!(rig.runs(), 2);
    vault.choose_key(shell(&format!("echo {KEY}")));
    assert!(vault.get(Space::Secret, "a").unwrap().is_some());
}

#[test]
fn the_key_of_a_command_is_moved_into_a_file_once_it_is_written_there() {
    let rig = Rig::preferring_files();
    assert_eq!(set(&rig.vault(), "a", "one"), KeyHolder::File);
    rig.print(SAME_KEY);
    assert_eq!(set(&rig.choosing(rig.command()), "b", "two"), KeyHolder::Command);
    assert!(rig.key_files().is_empty(), "the old key is removed");
    for choice in [SecretsKey::Auto, SecretsKey::File] {
        let error = set_fails(&rig.choosing(choice)).to_string();
        assert!(error.contains("comes from a command, which"), "{error}");
        assert!(rig.key_files().is_empty(), "no new key is made");
    }
    let error = rig.get("a").unwrap_err().to_string();
    let path = error.split('\'').nth(1).unwrap();
    let _ = fs::create_dir(rig.home.path().join(KEYS_FOLDER));
    fs::write(path, OTHER_KEY).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    let error = set_fails(&rig.vault()).to_string();
    assert!(error.contains("is not the one in"), "{error}");
    fs::write(path, format!("{SAME_KEY}\n")).unwrap();
    assert_eq!(set(&rig.vault(), "b", "three"), KeyHolder::File);
    assert_eq!(rig.key_files().len(), 1);
    assert!(!Path::new(path).exists(), "the old key is removed");
    assert_eq!((rig.get("a").unwrap(), rig.get("b").unwrap()), (some("one"), some("three")));
}

#[test]
fn what_a_command_started_is_killed_with_it() {
    let mut rig = Rig::preferring_files();
    rig.programs = Programs::with(std::env::var_os("PATH").unwrap(), Duration::from_secs(2));
    let fifo = rig.home.path().join("fifo");
    assert!(process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let (ended, end) = mpsc::channel();
    let path = fifo.clone();
    std::thread::spawn(move || {
        // It ends when nothing holds the other end any more.
        fs::File::open(path).unwrap().read_to_end(&mut Vec::new()).unwrap();
        ended.send(()).unwrap();
    });
    let script = format!("exec 9> '{}'; sleep 1000 & wait", fifo.display());
    let error = set_fails(&rig.choosing(shell(&script)));
    assert!(error.to_string().contains("was killed"), "{error}");
    end.recv_timeout(testkit::client::PATIENCE).unwrap();
}
