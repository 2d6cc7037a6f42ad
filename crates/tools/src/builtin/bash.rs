//! Bash: a command in its own process group, which ends as a whole, including any process the
//! command left running in it. Under a supervisor, processes that left the group end with it, and
//! none outlives the gate. The root is only the starting folder, not a sandbox.

use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::config::is_withheld;
use mcp::child::{Group, enter};
use mcp::limits::{CHILD_GRACE, CHILD_LAST_STEP};
use mcp::task;
use provider::CallContext;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{self, Child};
use tokio::task::JoinHandle;

use super::answer::ToolAnswer;
use super::arguments::Arguments;
use super::fault::{Fault, Result};
use super::limits;
use super::root::Folder;

/// The command to run.
pub(super) struct BashRequest {
    command: String,
    timeout: Duration,
}

impl BashRequest {
    pub(super) fn of(arguments: &Arguments<'_>, seconds_max: u64) -> Result<BashRequest> {
        let command = arguments.text(&["command"])?;
        if command.contains('\0') {
            return Err(Fault::said("'command' must not contain a NUL character"));
        }
        let timeout = match arguments.seconds("timeout_seconds")? {
            None => limits::BASH_TIMEOUT,
            Some(time) if !time.is_zero() && time <= Duration::from_secs(seconds_max) => time,
            Some(_) => {
                let words =
                    format!("'timeout_seconds' must be more than 0 and at most {seconds_max}");
                return Err(Fault::said(words));
            }
        };
        Ok(BashRequest { command: command.to_owned(), timeout })
    }
}

/// The `_meta` key under which a Bash result tells programs how its command ended.
pub const COMMAND_META: &str = "countersign/command";

/// The outcome of a command. Both texts are byte ranges of the result's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandResult {
    /// `None` if the command did not exit on its own.
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    pub stdout: Range<usize>,
    pub stderr: Range<usize>,
}

/// The way a command ended.
enum CommandEnd {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
}

/// The circumstances of every command of a workspace.
pub(super) struct Shell<'a> {
    /// The program that runs the shell.
    pub(super) supervisor: Option<&'a Path>,
    /// Variables withheld from commands.
    pub(super) withheld: &'a [String],
    /// Bytes of a command's stdout that are kept.
    pub(super) stdout_bytes_max: usize,
}

pub(super) async fn run(
    request: BashRequest,
    cwd: &Folder,
    shell: Shell<'_>,
    ctx: &CallContext,
) -> Result<ToolAnswer> {
    let within = request.timeout.min(ctx.remaining().saturating_sub(limits::BASH_MARGIN));
    let mut running = RunningCommand::start(&request.command, cwd, &shell)?;
    let end = tokio::select! {
        status = running.child.wait() => match status {
            Ok(status) => CommandEnd::Exited(status),
            Err(error) => return Err(Fault::said(format!("cannot wait for the command: {error}"))),
        },
        () = tokio::time::sleep(within) => CommandEnd::TimedOut,
        () = ctx.cancel.cancelled() => CommandEnd::Cancelled,
    };
    let CommandText { stdout, stderr } = running.end().await;
    let (word, exit_code) = match end {
        CommandEnd::Cancelled => return Err(Fault::Cancelled),
        CommandEnd::TimedOut => (format!("killed: timed out after {}", spell(within)), None),
        CommandEnd::Exited(status) => (words(status), status.code()),
    };
    let mut text = stdout;
    let stdout = 0..text.len();
    let stderr = append(&mut text, "[stderr]\n", &stderr);
    append(&mut text, "", &format!("[{word}]"));
    let timed_out = matches!(end, CommandEnd::TimedOut);
    let command = CommandResult { exit_code, timed_out, stdout, stderr };
    let meta = Some(json!({COMMAND_META: command}));
    Ok(ToolAnswer { is_error: exit_code != Some(0), meta, ..ToolAnswer::text(text) })
}

/// Appends a part under its title, unless it is empty; returns its range.
fn append(text: &mut String, title: &str, part: &str) -> Range<usize> {
    if !part.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(title);
        text.push_str(part);
    }
    text.len() - part.len()..text.len()
}

fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Builds the process that runs a command line. A command that is too long for an argument is read
/// from stdin, as a whole and before any of it runs, so that it finds an empty stdin in either case.
fn process_of(command: &str, supervisor: Option<&Path>) -> process::Command {
    let mut shell = match supervisor {
        Some(program) => {
            let mut shell = process::Command::new(program);
            let gate = std::process::id().to_string();
            shell.args(["supervise", "--gate", &gate, "--", "sh"]);
            shell
        }
        None => process::Command::new("sh"),
    };
    shell.arg("-c").arg(if is_long(command) { FROM_STDIN } else { command });
    shell
}

/// A command that reads the actual one.
const FROM_STDIN: &str = "eval \"$(cat)\" </dev/null";

fn is_long(command: &str) -> bool {
    command.len() > limits::BASH_ARGUMENT_BYTES_MAX
}

/// Formats a timeout: whole seconds unless it is shorter than ten.
fn spell(time: Duration) -> String {
    match time.as_secs_f32() {
        seconds @ 0.0..10.0 if time.subsec_millis() > 0 => format!("{seconds:.1} s"),
        seconds => format!("{seconds:.0} s"),
    }
}

/// A command with its process group. Dropping it ends the group.
struct RunningCommand {
    child: Child,
    group: Group,
    /// Time a supervisor gets to end the whole group; without one, the group is killed at once.
    patience: Duration,
    stdout: CollectedOutput,
    stderr: CollectedOutput,
    /// Writes a command that is read from stdin.
    feeding: Option<JoinHandle<()>>,
}

/// The output of a command.
struct CommandText {
    stdout: String,
    stderr: String,
}

struct CollectedOutput {
    output: Arc<Mutex<CommandOutput>>,
    reading: JoinHandle<()>,
}

impl RunningCommand {
    fn start(command: &str, cwd: &Folder, shell: &Shell<'_>) -> Result<RunningCommand> {
        let supervised = shell.supervisor.is_some();
        let mut process = process_of(command, shell.supervisor);
        enter(&mut process, &cwd.path);
        for name in shell.withheld {
            process.env_remove(name);
        }
        // The gate's own variables may hold its keys.
        for (name, _) in std::env::vars_os() {
            if is_withheld(&name.to_string_lossy()) {
                process.env_remove(name);
            }
        }
        process.stdin(if is_long(command) { Stdio::piped() } else { Stdio::null() });
        process.stdout(Stdio::piped()).stderr(Stdio::piped());
        process.process_group(0).kill_on_drop(!supervised);
        let spawned = process.spawn();
        let mut child =
            spawned.map_err(|error| Fault::said(format!("cannot start sh: {error}")))?;
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = child.stderr.take().expect("stderr is piped");
        let group = Group::led_by(&child, supervised);
        let patience = if supervised { CHILD_GRACE + CHILD_LAST_STEP } else { Duration::ZERO };
        let feeding = child.stdin.take().map(|mut stdin| {
            let command = command.to_owned();
            // A shell that ends early does not read all of it.
            task::spawn(async move { drop(stdin.write_all(command.as_bytes()).await) })
        });
        Ok(RunningCommand {
            child,
            group,
            patience,
            stdout: CollectedOutput::start(stdout, shell.stdout_bytes_max),
            stderr: CollectedOutput::start(stderr, limits::BASH_STDERR_BYTES_MAX),
            feeding,
        })
    }

    /// Kills the rest of the group, and returns the output.
    async fn end(mut self) -> CommandText {
        self.group.end(&mut self.child, self.patience).await;
        let until = tokio::time::Instant::now() + limits::BASH_LAST_WORDS;
        let stdout = self.stdout.text(until).await;
        CommandText { stdout, stderr: self.stderr.text(until).await }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.stdout.reading.abort();
        self.stderr.reading.abort();
        self.feeding.iter().for_each(JoinHandle::abort);
    }
}

impl CollectedOutput {
    fn start(pipe: impl AsyncRead + Unpin + Send + 'static, bytes_max: usize) -> CollectedOutput {
        let output = Arc::new(Mutex::new(CommandOutput::new(bytes_max)));
        let reading = task::spawn(collect(pipe, output.clone()));
        CollectedOutput { output, reading }
    }

    async fn text(&mut self, until: tokio::time::Instant) -> String {
        let _ = tokio::time::timeout_at(until, &mut self.reading).await;
        self.output.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

async fn collect(mut pipe: impl AsyncRead + Unpin, output: Arc<Mutex<CommandOutput>>) {
    let mut chunk = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
        output.lock().unwrap_or_else(PoisonError::into_inner).add(&chunk[..read]);
    }
}

/// The beginning and the end of a command's output.
struct CommandOutput {
    head: Vec<u8>,
    tail: std::collections::VecDeque<u8>,
    half: usize,
    left_out: u64,
}

impl CommandOutput {
    fn new(bytes_max: usize) -> CommandOutput {
        CommandOutput {
            head: Vec::new(),
            tail: Default::default(),
            half: bytes_max / 2,
            left_out: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(self.half - self.head.len());
        self.head.extend_from_slice(&bytes[..taken]);
        self.tail.extend(&bytes[taken..]);
        let excess = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..excess);
        self.left_out += excess as u64;
    }

    fn text(&mut self) -> String {
        let tail = self.tail.make_contiguous();
        if self.left_out == 0 {
            return String::from_utf8_lossy(&[&self.head, &*tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(tail));
        format!("{head}\n[… {} bytes omitted …]\n{tail}", self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::CommandOutput;

    #[test]
    fn output_keeps_its_beginning_and_its_end() {
        for (parts, expected) in [
            (vec!["ab", "cd"], "abcd"),
            (vec!["abcd", "efgh"], "abcdefgh"),
            (vec!["abcd", "efgh", "i"], "abcd\n[… 1 bytes omitted …]\nfghi"),
            (vec!["abcdefghijkl"], "abcd\n[… 4 bytes omitted …]\nijkl"),
        ] {
            let mut output = CommandOutput::new(8);
            parts.iter().for_each(|part| output.add(part.as_bytes()));
            assert_eq!(output.text(), expected, "{parts:?}");
        }
    }
}
