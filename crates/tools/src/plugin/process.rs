//! A plugin's process: its executable and environment, the line with its address, and its end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::config::{ConfigTemplate, Environment, Withheld};
use domain::upstream::UpstreamFailure;
use mcp::child::{self, Process, Spec, StderrTail, next_line};
use mcp::task;
use plugin_sdk::handshake::{
    COOKIE_KEY, COOKIE_VALUE, CORE_VERSION, HandshakeLine, PROTOCOL_VERSION, PROTOCOL_VERSIONS,
    SOCKET_DIR,
};
use tokio::io::BufReader;
use tokio::process::{ChildStdin, ChildStdout};

use super::find::FoundPlugin;
use super::private::Private;
use super::start::{SecretSource, StartOptions};
use super::{file, limits};

/// Lines of output reported for a plugin that failed.
const LAST_LINES: usize = 3;

pub(super) struct PluginProcess {
    pub(super) process: Process,
    /// The rest of its output.
    pub(super) stdout: BufReader<ChildStdout>,
    /// Watched by a supervisor: it closes when we exit.
    pub(super) stdin: ChildStdin,
    pub(super) folder: Private,
    pub(super) heard: StderrTail,
    withheld: Withheld,
    /// The plugin's name, for the log.
    name: String,
}

impl PluginProcess {
    /// Starts the executable. If approval was needed, it runs a copy that no other user can reach
    /// and whose bytes are the approved ones: files in the project may change at any moment, even
    /// between the check and the start.
    pub(super) async fn start(
        found: &FoundPlugin,
        start: &StartOptions,
        heard: StderrTail,
    ) -> Result<PluginProcess, String> {
        let (copied, options) = (found.clone(), start.clone());
        let prepared = task::spawn_blocking(move || prepare(&copied, &options)).await;
        let Prepared { folder, program, environment } =
            prepared.map_err(|error| error.to_string())??;
        let Environment { variables, withheld } = environment;
        let spec = spec(&program, variables, start);
        let mut attempts = 0;
        loop {
            attempts += 1;
            match child::spawn(&spec, &heard) {
                Ok((process, stdout, stdin)) => {
                    let (stdout, name) = (BufReader::new(stdout), found.name.clone());
                    return Ok(PluginProcess {
                        process,
                        stdout,
                        stdin,
                        folder,
                        heard,
                        withheld,
                        name,
                    });
                }
                // A child that another thread was just starting still has the new copy open.
                Err(error) if error.is_busy() && attempts < limits::BUSY_ATTEMPTS_MAX => {
                    tokio::time::sleep(limits::BUSY_WAIT).await;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Reads until the plugin reports its address.
    pub(super) async fn address(&mut self) -> Result<PathBuf, String> {
        for _ in 0..limits::LINES_BEFORE_HANDSHAKE_MAX {
            let Some(text) = next_line(&mut self.stdout).await else {
                return Err("it closed its output without announcing its address".to_owned());
            };
            match HandshakeLine::parse(&text) {
                Some(line) => return self.checked(&line),
                None => self.heard.push(text),
            }
        }
        Err("it printed other output and did not announce its address".to_owned())
    }

    fn checked(&self, line: &HandshakeLine<'_>) -> Result<PathBuf, String> {
        if line.core_version != CORE_VERSION {
            let theirs = line.core_version;
            return Err(format!("it uses version {theirs} of go-plugin, expected {CORE_VERSION}"));
        }
        if line.protocol_version != PROTOCOL_VERSION {
            let theirs = line.protocol_version;
            return Err(format!("it uses protocol version {theirs}, expected {PROTOCOL_VERSION}"));
        }
        if line.protocol != "grpc" {
            return Err(format!("it uses the protocol '{}', expected grpc", line.protocol));
        }
        if line.network != "unix" {
            return Err(format!("it listens on '{}', expected a unix socket", line.network));
        }
        if !line.certificate.is_empty() {
            return Err("it requires TLS, which is not supported on its private socket".to_owned());
        }
        let path = Path::new(line.address);
        let is_inside = path.parent().and_then(|parent| parent.canonicalize().ok());
        if is_inside.as_deref() != Some(self.folder.path()) {
            return Err(format!("its socket '{}' is outside its private folder", line.address));
        }
        match path.symlink_metadata() {
            Ok(about) if about.file_type().is_socket() => Ok(path.to_owned()),
            Ok(_) | Err(_) => Err(format!("'{}' is not a socket", line.address)),
        }
    }

    /// Returns the exit status if the process has exited, or else the reason, with its last output
    /// and the variables in it that the plugin did not inherit. The log names all of those.
    pub(super) async fn explained(&mut self, reason: String) -> UpstreamFailure {
        let failure = explained(&mut self.process, &self.heard, reason).await;
        if !self.withheld.is_empty() {
            let (plugin, withheld, reason) = (&self.name, &self.withheld, &failure.reason);
            tracing::warn!(plugin, %withheld, reason, "a plugin did not start; it inherited none of these");
        }
        failure.with_hint(&self.withheld.hint(&self.heard.lines()))
    }

    /// Ends it and every process it started. It is not connected, so it is not asked to shut down.
    pub(super) async fn terminate(self) {
        drop(self.stdin);
        self.process.terminate().await;
    }
}

/// Explains the failure of a process alone.
pub(super) async fn explained(
    process: &mut Process,
    heard: &StderrTail,
    reason: String,
) -> UpstreamFailure {
    let exited = tokio::time::timeout(limits::EXIT_STATUS_WAIT, process.exited()).await;
    let lines = heard.lines();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" / ");
    let reason = match exited {
        Ok(Some(status)) => format!("the process exited ({status})"),
        Ok(None) | Err(_) => reason,
    };
    UpstreamFailure::new(&reason, (!last.is_empty()).then_some(&last))
}

/// The folder of a plugin, the program to start, and its environment.
struct Prepared {
    folder: Private,
    program: PathBuf,
    environment: Environment,
}

/// Creates its folder, reads its secrets and copies a program that is bound to its approval. Blocks.
fn prepare(found: &FoundPlugin, start: &StartOptions) -> Result<Prepared, String> {
    let folder = Private::make(&start.folder)?;
    let environment = environment(folder.path(), &found.env, &start.secrets)?;
    let program = program(found, &folder)?;
    Ok(Prepared { folder, program, environment })
}

/// Returns the program to start.
fn program(found: &FoundPlugin, folder: &Private) -> Result<PathBuf, String> {
    if !found.is_bound() {
        return Ok(found.executable.clone());
    }
    let name = found.executable.file_name().ok_or("the executable has no name")?;
    let copy = folder.path().join(name);
    if file::copy(&found.executable, &copy)? != found.executable_sha256 {
        let path = found.executable.display();
        return Err(format!(
            "'{path}' has changed since it was approved; run `countersign plugin approve`"
        ));
    }
    Ok(copy)
}

fn spec(program: &Path, env: Vec<(OsString, OsString)>, start: &StartOptions) -> Spec {
    let program = program.to_string_lossy().into_owned();
    let (command, args) = match &start.supervisor {
        Some(supervisor) => {
            let args = ["supervise".to_owned(), "--".to_owned(), program];
            (supervisor.to_string_lossy().into_owned(), args.to_vec())
        }
        None => (program, Vec::new()),
    };
    let supervisor = start.supervisor.is_some();
    Spec { command, args, env, cwd: start.cwd.clone(), supervisor }
}

/// The environment every child inherits, the variables of its `env`, and those that make it a plugin
/// of this host.
fn environment(
    folder: &Path,
    own: &[(String, ConfigTemplate)],
    secrets: &SecretSource,
) -> Result<Environment, String> {
    let mut known = BTreeMap::new();
    for name in own.iter().flat_map(|(_, value)| value.secrets()) {
        known.extend(secrets.read(name)?.map(|value| (name, value)));
    }
    let secret = |name: &str| known.get(name).cloned();
    let mut env = Environment::usual(std::env::vars_os());
    for (name, value) in own {
        let value = value.expand(&|name| std::env::var(name).ok(), &secret);
        env.set(name, value.map_err(|error| error.to_string())?);
    }
    env.set(COOKIE_KEY, COOKIE_VALUE);
    env.set(PROTOCOL_VERSIONS, PROTOCOL_VERSION.to_string());
    env.set(SOCKET_DIR, folder);
    Ok(env)
}

/// Formats a duration for people.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.0} s", time.as_secs_f32().max(1.0))
}
