//! A server that runs as a child process: its pipes carry the messages, its stderr is kept, and its
//! whole process group ends with the connection.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::limits;
use crate::task;

#[derive(Clone, Debug)]
pub struct Spec {
    pub command: String,
    pub args: Vec<String>,
    /// The child's whole environment: it inherits nothing else.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: Option<PathBuf>,
    /// The command is a supervisor: on SIGTERM it ends every process it started, including those
    /// that left its group, so it must not be killed before that.
    pub supervisor: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot start '{command}': {source}")]
pub struct SpawnError {
    command: String,
    source: std::io::Error,
}

impl SpawnError {
    /// Reports whether another process has the program open for writing, a temporary condition.
    pub fn is_busy(&self) -> bool {
        self.source.kind() == std::io::ErrorKind::ExecutableFileBusy
    }
}

/// The last lines a child wrote to stderr.
#[derive(Clone, Default)]
pub struct StderrTail {
    lines: Arc<Mutex<VecDeque<String>>>,
    heard: Option<LineListener>,
    edit: Option<LineEditor>,
}

type LineListener = Arc<dyn Fn(&str) + Send + Sync>;
type LineEditor = Arc<dyn Fn(String) -> String + Send + Sync>;

impl StderrTail {
    /// Returns a handle to the same lines that also passes each new line to `heard`.
    #[must_use]
    pub fn telling(&self, heard: impl Fn(&str) + Send + Sync + 'static) -> StderrTail {
        let heard: Option<LineListener> = Some(Arc::new(heard));
        StderrTail { lines: self.lines.clone(), heard, edit: self.edit.clone() }
    }

    /// Returns a tail that keeps each line as `edit` returns it.
    #[must_use]
    pub fn edited(edit: impl Fn(String) -> String + Send + Sync + 'static) -> StderrTail {
        StderrTail { edit: Some(Arc::new(edit)), ..StderrTail::default() }
    }

    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Adds a line the child sent by another route than stderr.
    pub fn push(&self, line: String) {
        let line = match &self.edit {
            Some(edit) => edit(line),
            None => line,
        };
        if let Some(heard) = &self.heard {
            heard(&line);
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == limits::STDERR_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Adds each line of a stream until its end, which comes when the child and every process that
    /// inherited the stream are gone.
    pub async fn keep(&self, stream: impl AsyncRead + Unpin) {
        let mut reader = BufReader::new(stream);
        while let Some(line) = next_line(&mut reader).await {
            self.push(line);
        }
    }
}

/// Returns the next line without its line break, cut at the limit; `None` at the end of the stream.
pub async fn next_line(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    match read_bounded_line(reader, &mut line).await {
        Ok(true) => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
        Ok(false) | Err(_) => None,
    }
}

/// A running child. Dropping it kills its group; [`Process::end`] lets it exit first.
pub struct Process {
    child: Child,
    group: Group,
    /// Reads stderr until every process that inherited it is gone.
    reading: JoinHandle<()>,
}

pub fn spawn(
    spec: &Spec,
    stderr: &StderrTail,
) -> Result<(Process, ChildStdout, ChildStdin), SpawnError> {
    let mut command = Command::new(&spec.command);
    command
        .args(&spec.args)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(!spec.supervisor);
    match &spec.cwd {
        Some(cwd) => enter(&mut command, cwd),
        None => enter(&mut command, Path::new(".")),
    }
    let mut child =
        command.spawn().map_err(|source| SpawnError { command: spec.command.clone(), source })?;
    let stdout = child.stdout.take().expect("stdout is piped");
    let stdin = child.stdin.take().expect("stdin is piped");
    let errors = child.stderr.take().expect("stderr is piped");
    let tail = stderr.clone();
    let reading = task::spawn(async move { tail.keep(errors).await });
    let group = Group::led_by(&child, spec.supervisor);
    Ok((Process { child, group, reading }, stdout, stdin))
}

/// The beginning of the variables in which a supervisor gets arguments of its command.
pub const SUPERVISED_ARGUMENTS: &str = "COUNTERSIGN_ARGUMENT_";

/// Returns the variable in which a supervisor gets an argument of its command. Its own arguments
/// are visible to every user of the machine, and these may hold secrets.
pub fn supervised_argument(number: usize) -> String {
    format!("{SUPERVISED_ARGUMENTS}{number}")
}

/// Makes a folder a child's working directory, also for programs that read it from `PWD`. The
/// variables of the folder that we are in ourselves are not passed on.
pub fn enter(command: &mut Command, folder: &Path) {
    // A relative path, or one through links, would not be understood by every reader of `PWD`.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    command.env("PWD", &folder).env_remove("OLDPWD").current_dir(folder);
}

impl Process {
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    pub async fn ended(&mut self) {
        let _ = self.child.wait().await;
    }

    /// Waits for the child to exit, and for its last output to be read.
    pub async fn exited(&mut self) -> Option<ExitStatus> {
        let status = self.child.wait().await.ok();
        let _ = tokio::time::timeout(limits::LAST_WORDS, &mut self.reading).await;
        status
    }

    /// Waits for a child whose stdin was closed, then sends SIGTERM, then SIGKILL, to the whole
    /// group.
    pub async fn end(mut self) {
        if tokio::time::timeout(limits::CHILD_GRACE, self.child.wait()).await.is_err() {
            return self.terminate().await;
        }
        // Grandchildren may survive in the group after the child itself has exited.
        self.group.kill(&mut self.child).await;
    }

    /// Sends SIGTERM, then SIGKILL, to the whole group of a child that was not asked to exit.
    pub async fn terminate(mut self) {
        let patience = limits::CHILD_GRACE + limits::CHILD_LAST_STEP;
        self.group.end(&mut self.child, patience).await;
    }
}

/// The process group that a child leads. Dropping it kills the group at once, or makes its
/// supervisor do so.
pub struct Group {
    leader: Option<Pid>,
    /// The leader ends every process it started, including those that left the group, so it must
    /// not be killed before that.
    supervised: bool,
}

impl Group {
    /// The group of a child that was started as a group leader.
    pub fn led_by(child: &Child, supervised: bool) -> Group {
        Group { leader: child.id().and_then(|id| Pid::from_raw(id.cast_signed())), supervised }
    }

    /// Sends SIGTERM, waits for `patience`, then sends SIGKILL. On return, nothing of the group is
    /// left.
    pub async fn end(&mut self, child: &mut Child, patience: Duration) {
        self.signal(Signal::TERM);
        let _ = tokio::time::timeout(patience, child.wait()).await;
        self.kill(child).await;
    }

    async fn kill(&mut self, child: &mut Child) {
        self.signal(Signal::KILL);
        let _ = child.wait().await;
        self.leader = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // The group may already be gone, which is fine.
            let _ = kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(if self.supervised { Signal::TERM } else { Signal::KILL });
    }
}

/// Reads one line, keeping at most the limit; false at the end of the stream.
async fn read_bounded_line(
    reader: &mut (impl AsyncBufReadExt + Unpin),
    line: &mut Vec<u8>,
) -> std::io::Result<bool> {
    loop {
        let chunk = reader.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(!line.is_empty());
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(chunk.len(), |end| end + 1);
        let room = limits::STDERR_LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(&chunk[..taken.min(room)]);
        reader.consume(taken);
        if end.is_some() {
            return Ok(true);
        }
    }
}
