//! The key of the secrets in a real keychain: GNOME Keyring on its own session bus.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::client::PATIENCE;
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::{command, program, stderr, stdout};
use testkit::wait::eventually;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use super::{PLANTED, config, files, finished, list, talkative, told};

const BUS: &str = "DBUS_SESSION_BUS_ADDRESS";

/// A session bus, which ends when its stdin closes.
struct Session {
    address: String,
    _child: Child,
    _stdin: ChildStdin,
}

impl Session {
    async fn start(dir: &Path) -> Session {
        let mut bus = command(Path::new("dbus-run-session"), dir);
        bus.args(["--", "sh", "-c", "echo \"$DBUS_SESSION_BUS_ADDRESS\"; exec cat"])
            .env("XDG_RUNTIME_DIR", dir)
            .env("XDG_DATA_HOME", dir.join("share"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Killed, it would leave the bus behind; it ends with its stdin.
            .kill_on_drop(false);
        let mut child = bus.spawn().expect("dbus-run-session is installed: run ./test --setup");
        let stdin = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap();
        Session { address: first.unwrap().unwrap(), _child: child, _stdin: stdin }
    }

    fn within<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(BUS, &self.address)
    }

    /// Starts the keychain. With the password, it is unlocked; a first one makes the keyring.
    async fn keyring(&self, dir: &Path, password: Option<&str>) -> Child {
        let mut keyring = command(Path::new("gnome-keyring-daemon"), dir);
        self.within(&mut keyring)
            .args(["--foreground", "--components=secrets"])
            .args(password.map(|_| "--unlock"))
            .env("XDG_RUNTIME_DIR", dir)
            .env("XDG_DATA_HOME", dir.join("share"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = keyring.spawn().expect("GNOME Keyring is installed: run ./test --setup");
        let typed = password.unwrap_or_default().as_bytes();
        child.stdin.take().unwrap().write_all(typed).await.unwrap();
        eventually(|| async { self.is_offered(dir).await.then_some(()) }).await;
        child
    }

    /// Reports whether a program offers the Secret Service.
    async fn is_offered(&self, dir: &Path) -> bool {
        let mut asking = command(Path::new("dbus-send"), dir);
        self.within(&mut asking).args([
            "--session",
            "--print-reply",
            "--dest=org.freedesktop.DBus",
            "/",
            "org.freedesktop.DBus.NameHasOwner",
            "string:org.freedesktop.secrets",
        ]);
        stdout(&finished(&mut asking, "").await).contains("boolean true")
    }

    async fn set(&self, dir: &Path, name: &str, value: &str) -> std::process::Output {
        let mut command = program(dir);
        self.within(&mut command).arg("--config").arg(dir.join("config.json"));
        finished(command.args(["secret", "set", name]), value).await
    }
}

#[tokio::test]
async fn the_key_is_in_the_keychain_and_a_gate_without_it_says_so() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let session = Session::start(dir.path()).await;
    let mut keyring = session.keyring(dir.path(), Some("correct horse")).await;
    let servers = json!({"n": talkative(dir.path(), "n")});
    config(dir.path(), &json!({"secrets": {"key": "keychain"}, "mcpServers": servers}));
    let output = session.set(dir.path(), "TOKEN", PLANTED[0]).await;
    assert_eq!(
        stdout(&output),
        "secret 'TOKEN' is set; its key is in the OS keychain\n",
        "{}",
        stderr(&output)
    );
    session.set(dir.path(), "pin", PLANTED[1]).await;
    let listed = list(dir.path()).await;
    assert_eq!(listed["key"], "keychain", "a list needs no keychain");
    let home = files(&dir.path().join("home"));
    assert!(!home.iter().any(|file| file.to_string_lossy().ends_with(".key")), "{home:?}");

    // Within the session the server gets its secrets.
    let mut gate = Gate::open_with(dir, |command| command.env(BUS, &session.address)).await;
    assert_eq!(told(gate.dir.path()).await, "tuesday-lunch --pin=wednesday-lunch\n");
    gate.end().await;

    // Outside of it the gate starts, and says what is wrong with this server alone.
    gate.restart().await;
    let says =
        |words: &'static str| move |server: &Value| server["error"].to_string().contains(words);
    gate.server_when("n", says("cannot use the OS keychain, in which the key")).await;
    gate.end().await;

    // The same with a keychain that is locked.
    keyring.kill().await.unwrap();
    let mut locked = session.keyring(gate.dir.path(), None).await;
    let output = session.set(gate.dir.path(), "TOKEN", PLANTED[2]).await;
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("it is locked, or no longer has"), "{}", stderr(&output));
    locked.kill().await.unwrap();

    // By default the key stays where it is, and the way to move it is named.
    let _unlocked = session.keyring(gate.dir.path(), Some("correct horse")).await;
    gate.rewrite(|config| config["secrets"] = json!({}));
    let output = session.set(gate.dir.path(), "TOKEN", PLANTED[1]).await;
    assert!(stdout(&output).ends_with("in the OS keychain\n"), "{}", stderr(&output));
    assert!(stderr(&output).contains("or to \"file\" and then set"), "{}", stderr(&output));
    gate.rewrite(|config| config["secrets"] = json!({"key": "file"}));
    let output = session.set(gate.dir.path(), "TOKEN", PLANTED[2]).await;
    assert!(stdout(&output).ends_with("in a file of the home\n"), "{}", stderr(&output));
    gate.restart().await;
    assert_eq!(told(gate.dir.path()).await, "thursday-lunch --pin=wednesday-lunch\n");
}

#[tokio::test]
async fn by_default_the_key_is_in_a_file_and_a_locked_keychain_takes_none() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    config(dir, &json!({}));
    let session = Session::start(dir).await;
    let mut keyring = session.keyring(dir, Some("correct horse")).await;
    let output = session.set(dir, "TOKEN", PLANTED[0]).await;
    assert!(stdout(&output).ends_with("in a file of the home\n"), "{}", stderr(&output));
    keyring.kill().await.unwrap();
    let _locked = session.keyring(dir, None).await;
    config(dir, &json!({"secrets": {"key": "keychain"}}));
    let output = session.set(dir, "TOKEN", PLANTED[0]).await;
    assert!(stderr(&output).contains("in a locked collection"), "{}", stderr(&output));
    assert_eq!(list(dir).await["key"], "file", "nothing was changed");
}
