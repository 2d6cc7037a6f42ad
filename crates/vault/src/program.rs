//! Programs that hold the key: the command of the config, and `secret-tool`. A key passes through
//! stdin and stdout, never through an argument, which other users could see.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use domain::config::Environment;
use rustix::process::{Pid, Signal, kill_process_group};
use zeroize::Zeroizing;

/// The longest time for a program: a person may have to unlock a keychain or to touch a device.
const WAIT: Duration = Duration::from_secs(60);

/// The longest output: many times a key.
const OUTPUT_BYTES_MAX: usize = 4 * 1024;

/// The end of the error output that is kept for its last line.
const SAID_BYTES_MAX: usize = 1024;
/// The longest part of that line in an error.
const SAID_CHARS_MAX: usize = 300;

/// The wait for the last words of a program that has failed: a process that it left behind may hold
/// its error output open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The interval between two checks of whether a program has ended after its output.
const LOOK: Duration = Duration::from_millis(10);

#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramFault {
    #[error("there is no program '{0}' in PATH")]
    Missing(String),
    #[error("'{program}' cannot be run: {error}")]
    Io { program: String, error: io::Error },
    #[error("'{program}' did not end within {seconds} seconds and was killed")]
    Late { program: String, seconds: u64 },
    #[error("'{0}' printed more than {OUTPUT_BYTES_MAX} bytes and was killed")]
    TooLong(String),
    #[error("'{program}' ended with {status}{}", said.as_ref().map(|it| format!(": {it}")).unwrap_or_default())]
    Failed {
        program: String,
        status: ExitStatus,
        /// The last line of its error output.
        said: Option<String>,
    },
}

/// The environment in which programs run.
#[derive(Clone)]
pub(super) struct Programs {
    /// The folders in which a program is looked for, as in `PATH`.
    path: OsString,
    wait: Duration,
}

impl Programs {
    pub(super) fn of_system() -> Programs {
        Programs { path: env::var_os("PATH").unwrap_or_default(), wait: WAIT }
    }

    #[cfg(test)]
    pub(super) fn with(path: OsString, wait: Duration) -> Programs {
        Programs { path, wait }
    }

    /// Runs a program to its end, without a shell, and returns its output. It gets none of the
    /// gate's own variables, and stands in `/`, where no folder that somebody else made steers it.
    pub(super) fn run(
        &self,
        words: &[impl AsRef<str>],
        input: Option<&str>,
    ) -> Result<Zeroizing<Vec<u8>>, ProgramFault> {
        let mut words = words.iter().map(AsRef::as_ref);
        let program = words.next().unwrap_or_default();
        let path = self.find(program).ok_or_else(|| ProgramFault::Missing(program.to_owned()))?;
        let broken = |error| ProgramFault::Io { program: program.to_owned(), error };
        let mut child = Command::new(path)
            .args(words)
            .env_clear()
            .envs(Environment::whole(env::vars_os()).variables)
            .current_dir("/")
            .process_group(0)
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(broken)?;
        let output = self.output(program, &mut child, input);
        if output.is_err() {
            kill(&mut child);
        }
        output
    }

    /// Returns the path of a program. Relative folders of `PATH` are passed over, since the working
    /// folder may be somebody else's.
    fn find(&self, program: &str) -> Option<PathBuf> {
        if program.starts_with('/') {
            return Some(PathBuf::from(program));
        }
        let folders = env::split_paths(&self.path).filter(|folder| folder.is_absolute());
        folders.map(|folder| folder.join(program)).find(|path| is_executable(path))
    }

    fn output(
        &self,
        program: &str,
        child: &mut Child,
        input: Option<&str>,
    ) -> Result<Zeroizing<Vec<u8>>, ProgramFault> {
        let broken = |error| ProgramFault::Io { program: program.to_owned(), error };
        let late =
            || ProgramFault::Late { program: program.to_owned(), seconds: self.wait.as_secs() };
        let deadline = Instant::now() + self.wait;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let stdout = collect(move || start_of(stdout)).map_err(broken)?;
        let stderr = collect(move || end_of(stderr)).map_err(broken)?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            // A key fits into the pipe. A program that ends early does not read it.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = stdout.recv_timeout(left(deadline)).map_err(|_| late())?;
        if output.len() > OUTPUT_BYTES_MAX {
            return Err(ProgramFault::TooLong(program.to_owned()));
        }
        let status = ended(child, deadline).map_err(broken)?.ok_or_else(late)?;
        if status.success() {
            return Ok(output);
        }
        let said = stderr.recv_timeout(LAST_WORDS).ok().and_then(|said| last_line(&said));
        Err(ProgramFault::Failed { program: program.to_owned(), status, said })
    }
}

fn is_executable(path: &Path) -> bool {
    let about = std::fs::metadata(path);
    about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Reads on a separate thread, which ends with the other end of the pipe.
fn collect<T: Send + 'static>(
    read: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Receiver<T>> {
    let (done, result) = mpsc::sync_channel(1);
    thread::Builder::new().name("secrets-output".to_owned()).spawn(move || {
        // The caller may have stopped waiting.
        let _ = done.send(read());
    })?;
    Ok(result)
}

/// Reads up to one byte more than is allowed, into memory that does not move.
fn start_of(pipe: Option<impl Read>) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(vec![0; OUTPUT_BYTES_MAX + 1]);
    let mut length = 0;
    if let Some(mut pipe) = pipe {
        while length < bytes.len() {
            match pipe.read(&mut bytes[length..]) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    }
    bytes.truncate(length);
    bytes
}

/// Reads all, and returns the end of it.
fn end_of(pipe: Option<impl Read>) -> Vec<u8> {
    let (mut end, mut chunk) = (Vec::new(), [0; SAID_BYTES_MAX]);
    let Some(mut pipe) = pipe else { return end };
    loop {
        match pipe.read(&mut chunk) {
            Ok(0) => return end,
            Ok(count) => end.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return end,
        }
        end.drain(..end.len().saturating_sub(SAID_BYTES_MAX));
    }
}

/// Returns the last line that says something, without what could steer a terminal.
fn last_line(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().filter(|it| !it.is_control()).take(SAID_CHARS_MAX).collect())
}

/// Waits for the end of a program; `None` if that takes too long.
fn ended(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if left(deadline).is_zero() {
            return Ok(None);
        }
        thread::park_timeout(LOOK);
    }
}

/// Kills a program that is still running, with what it has started.
fn kill(child: &mut Child) {
    if let Ok(None) = child.try_wait() {
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
        let _ = child.wait();
    }
}
