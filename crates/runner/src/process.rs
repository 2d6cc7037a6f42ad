//! An agent's process: its output line by line, its timeout, and its end with every process it
//! started.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use mcp::child::{Group, enter};
use mcp::task;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Time between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// The supervisor takes the same steps, and needs a moment more to kill the rest.
const LAST_STEP: Duration = Duration::from_secs(2);

/// Time for the pipes to close when all processes are dead.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Lines of stderr that are kept from its beginning, where programs name an error, and from its
/// end: enough for a stack trace.
const STDERR_FIRST_LINES: usize = 50;
const STDERR_LAST_LINES: usize = 50;
const STDERR_LINE_BYTES_MAX: usize = 2 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct ProcessStart<'a> {
    pub(crate) program: &'a Path,
    pub(crate) args: &'a [String],
    /// The whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) dir: &'a Path,
    /// The complete input of the process.
    pub(crate) stdin: Option<&'a [u8]>,
    /// Our own program, which runs in between so that nothing is left when either ends.
    pub(crate) supervisor: Option<PathBuf>,
    /// Longer lines of output are cut.
    pub(crate) line_bytes_max: usize,
}

/// The way a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
}

#[derive(Debug)]
pub(crate) struct ProcessExit {
    pub(crate) end: ProcessEnd,
    /// The first and the last lines on stderr.
    pub(crate) stderr: String,
}

/// Runs the process to its end, or ends it; on return, nothing of it is left.
pub(crate) async fn run(
    start: ProcessStart<'_>,
    within: Duration,
    cancel: &CancellationToken,
    mut line: impl FnMut(&str),
) -> std::io::Result<ProcessExit> {
    let mut running = RunningProcess::start(&start)?;
    let stdout = running.child.stdout.take().expect("stdout is piped");
    let feeding = feed(running.child.stdin.take(), start.stdin);
    let reading = async {
        let mut lines = OutputLines::new(stdout, start.line_bytes_max);
        while let Some(text) = lines.next().await {
            line(text);
        }
    };
    let mut work = std::pin::pin!(async { tokio::join!(reading, feeding) });
    let mut read_all = false;
    let mut time = std::pin::pin!(tokio::time::sleep(within));
    let how = loop {
        tokio::select! {
            _ = &mut work, if !read_all => read_all = true,
            status = running.child.wait() => break ProcessEnd::Exited(status?),
            () = &mut time => break ProcessEnd::TimedOut,
            () = cancel.cancelled() => break ProcessEnd::Cancelled,
        }
    };
    if !read_all && matches!(how, ProcessEnd::Exited(_)) {
        // The last lines may still be in the pipe.
        let _ = tokio::time::timeout(LAST_WORDS, work).await;
    }
    let stderr = running.end().await;
    Ok(ProcessExit { end: how, stderr })
}

async fn feed(stdin: Option<tokio::process::ChildStdin>, text: Option<&[u8]>) {
    if let (Some(mut stdin), Some(text)) = (stdin, text) {
        // A program that does not read all of its input is no failure of ours.
        let _ = stdin.write_all(text).await;
        let _ = stdin.shutdown().await;
    }
}

/// A process with its group. Dropping it ends the group.
struct RunningProcess {
    child: Child,
    group: Group,
    stderr: JoinHandle<String>,
}

impl RunningProcess {
    fn start(start: &ProcessStart<'_>) -> std::io::Result<RunningProcess> {
        let mut command = match &start.supervisor {
            Some(supervisor) => {
                let mut command = Command::new(supervisor);
                let (gate, grace) = (std::process::id().to_string(), GRACE.as_secs().to_string());
                command.args(["supervise", "--gate", &gate, "--grace", &grace, "--"]);
                command.arg(start.program);
                command
            }
            None => Command::new(start.program),
        };
        let supervised = start.supervisor.is_some();
        command
            .args(start.args)
            .env_clear()
            .envs(start.env.iter().map(|(name, value)| (name, value)))
            .stdin(if start.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(!supervised);
        enter(&mut command, start.dir);
        let mut child = command.spawn()?;
        let group = Group::led_by(&child, supervised);
        let stderr = child.stderr.take().expect("stderr is piped");
        let stderr = task::spawn(first_and_last_lines(stderr));
        Ok(RunningProcess { child, group, stderr })
    }

    /// Ends the rest of the group; returns what it wrote on stderr.
    async fn end(mut self) -> String {
        self.group.end(&mut self.child, GRACE + LAST_STEP).await;
        let lines = tokio::time::timeout(LAST_WORDS, &mut self.stderr).await;
        lines.ok().and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        self.stderr.abort();
    }
}

async fn first_and_last_lines(stderr: impl AsyncRead + Unpin) -> String {
    let mut lines = OutputLines::new(stderr, STDERR_LINE_BYTES_MAX);
    let (mut first, mut last, mut omitted) = (Vec::new(), VecDeque::new(), 0_u64);
    while let Some(line) = lines.next().await {
        if first.len() < STDERR_FIRST_LINES {
            first.push(line.to_owned());
            continue;
        }
        if last.len() == STDERR_LAST_LINES {
            last.pop_front();
            omitted += 1;
        }
        last.push_back(line.to_owned());
    }
    if omitted > 0 {
        first.push(format!("… {omitted} lines omitted …"));
    }
    first.extend(last);
    first.join("\n")
}

/// Lines of a stream, each cut at a limit.
struct OutputLines<R> {
    reader: BufReader<R>,
    bytes_max: usize,
    line: String,
}

impl<R: AsyncRead + Unpin> OutputLines<R> {
    fn new(reader: R, bytes_max: usize) -> OutputLines<R> {
        OutputLines {
            reader: BufReader::with_capacity(64 * 1024, reader),
            bytes_max,
            line: String::new(),
        }
    }

    /// Returns the next line; `None` at the end, or when the stream can no longer be read.
    async fn next(&mut self) -> Option<&str> {
        let mut bytes = Vec::new();
        loop {
            let chunk = self.reader.fill_buf().await.ok()?;
            if chunk.is_empty() && bytes.is_empty() {
                return None;
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(chunk.len());
            let room = self.bytes_max.saturating_sub(bytes.len());
            bytes.extend_from_slice(&chunk[..taken.min(room)]);
            let is_over = end.is_some() || chunk.is_empty();
            self.reader.consume(end.map_or(taken, |end| end + 1));
            if is_over {
                break;
            }
        }
        self.line = String::from_utf8_lossy(&bytes).into_owned();
        Some(self.line.trim_end_matches('\r'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell<'a>(args: &'a [String], stdin: Option<&'a [u8]>) -> ProcessStart<'a> {
        ProcessStart {
            program: Path::new("/bin/sh"),
            args,
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            dir: Path::new("/"),
            stdin,
            supervisor: None,
            line_bytes_max: 8,
        }
    }

    async fn lines(
        script: &str,
        stdin: Option<&[u8]>,
        within: Duration,
    ) -> (Vec<String>, ProcessExit) {
        let args = ["-c".to_owned(), script.to_owned()];
        let mut lines = Vec::new();
        let cancel = CancellationToken::new();
        let ended = run(shell(&args, stdin), within, &cancel, |line| lines.push(line.to_owned()));
        let ended = ended.await.expect("it starts");
        (lines, ended)
    }

    #[tokio::test]
    async fn lines_are_truncated_and_the_last_needs_no_newline() {
        let long = Duration::from_secs(60);
        let (found, ended) =
            lines("printf 'a\\r\\n\\n0123456789\\nend'; echo oh >&2", None, long).await;
        assert_eq!(found, ["a", "", "01234567", "end"]);
        assert_eq!(ended.stderr, "oh");
        assert!(matches!(ended.end, ProcessEnd::Exited(status) if status.success()));
    }

    #[tokio::test]
    async fn stderr_is_kept_from_both_ends() {
        let (_, ended) = lines("seq 1 1000 >&2", None, Duration::from_secs(60)).await;
        let kept: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!((kept[0], kept[49], kept[50]), ("1", "50", "… 900 lines omitted …"));
        assert_eq!((kept[51], kept[100], kept.len()), ("951", "1000", 101));
    }

    #[tokio::test]
    async fn input_is_sent_and_closed_even_if_the_program_ignores_it() {
        let long = Duration::from_secs(60);
        let (found, _) = lines("wc -c", Some(&[b'x'; 1000]), long).await;
        assert_eq!(found[0].trim(), "1000");
        let (_, ended) = lines("exit 3", Some(&vec![b'x'; 10_000_000]), long).await;
        assert!(matches!(ended.end, ProcessEnd::Exited(status) if status.code() == Some(3)));
    }

    #[tokio::test]
    async fn a_timeout_ends_the_process_and_its_children() {
        let script = "sleep 1000 & echo $!; exec sleep 1000";
        let (found, ended) = lines(script, None, Duration::from_millis(300)).await;
        assert_eq!(ended.end, ProcessEnd::TimedOut);
        let pid = found[0].parse().ok().and_then(rustix::process::Pid::from_raw).expect("a pid");
        let lives = || rustix::process::test_kill_process(pid).is_ok();
        for _ in 0..100 {
            if !lives() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the child lives");
    }
}
