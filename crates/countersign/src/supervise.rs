//! Stands between the gate and a child so that nothing outlives the gate, however it ends. The
//! supervisor leads the process group, hands its own stdin, stdout and stderr to the command and
//! watches stdin without reading it: when the gate's end of that pipe is closed, by the gate or by
//! its death, the command gets time to end and then the whole group is killed. What has left the
//! group ends with it, where the system lets us find it.

mod orphans;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use mcp::limits::CHILD_GRACE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpgrp, getppid, kill_process_group};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::Failure;

/// What a shell answers for a command that cannot be started.
const CANNOT_START: u8 = 127;

/// A process that dies closes its pipes a moment before it is gone.
const GATE_EXIT: Duration = Duration::from_millis(20);

pub(crate) fn run(command: &[OsString]) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::system(format!("cannot start: {error}")))?;
    let result = runtime.block_on(supervise(command));
    // The thread that watches stdin must not keep the process.
    runtime.shutdown_background();
    result
}

async fn supervise(command: &[OsString]) -> Result<(), Failure> {
    let _deaf = [SignalKind::interrupt(), SignalKind::hangup()].map(|kind| signal(kind).ok());
    // The group gets SIGTERM when it is to end: the supervisor stays to see that it does.
    let mut terminate = heard(SignalKind::terminate())?;
    let mut child_ended = heard(SignalKind::child())?;
    orphans::adopt();
    let gate = getppid();
    let (program, args) = command.split_first().expect("clap requires a command");
    let mut child = Command::new(program).args(args).spawn().map_err(|error| {
        let message = format!("cannot start '{}': {error}", program.display());
        Failure::with_status(CANNOT_START, message)
    })?;
    let_go_of_stdout();
    let mut hung_up = pin!(hung_up());
    loop {
        tokio::select! {
            status = child.wait() => return leave(status, gate).await,
            () = &mut hung_up => return end(&mut child, gate).await,
            _ = terminate.recv() => return end_terminated(&mut child, gate).await,
            _ = child_ended.recv() => orphans::reap(child.id()),
        }
    }
}

fn heard(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Failure> {
    signal(kind).map_err(|error| Failure::system(format!("cannot hear signals: {error}")))
}

/// A command that closes its stdout and lives on must be noticed: ours would keep the pipe open.
fn let_go_of_stdout() {
    if let Ok(nowhere) = std::fs::File::create("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(nowhere);
    }
}

/// Returns when nobody can write to our stdin any more.
async fn hung_up() {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let stdin = std::io::stdin();
        // No event is asked for: a hang-up is always told, and input stays for the command.
        let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
        while !matches!(poll(&mut watched, None), Ok(1..)) {}
        let _ = sender.send(());
    });
    let _ = receiver.await;
}

fn is_hung_up() -> bool {
    let stdin = std::io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
    matches!(poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1..))
}

/// The command has seen the end of its stdin as well: first it gets time, then SIGTERM and time.
async fn end(child: &mut Child, gate: Option<Pid>) -> Result<(), Failure> {
    if let Ok(status) = tokio::time::timeout(CHILD_GRACE, child.wait()).await {
        return leave(status, gate).await;
    }
    let _ = kill_process_group(getpgrp(), Signal::TERM);
    end_terminated(child, gate).await
}

/// The last signal ends the group and the supervisor with it.
async fn end_terminated(child: &mut Child, gate: Option<Pid>) -> Result<(), Failure> {
    match tokio::time::timeout(CHILD_GRACE, child.wait()).await {
        Ok(status) => leave(status, gate).await,
        Err(_) => {
            orphans::kill_all().await;
            let _ = kill_process_group(getpgrp(), Signal::KILL);
            Ok(())
        }
    }
}

/// The command has ended, and what it left behind ends with it. A gate that lives wants its status
/// and ends what is left of the group; where there is no gate any more, nobody else would.
async fn leave(status: std::io::Result<ExitStatus>, gate: Option<Pid>) -> Result<(), Failure> {
    orphans::kill_all().await;
    if is_hung_up() {
        tokio::time::sleep(GATE_EXIT).await;
        if getppid() != gate {
            let _ = kill_process_group(getpgrp(), Signal::KILL);
        }
    }
    ended(status)
}

/// The command's exit code becomes ours; a signal is told as shells do.
fn ended(status: std::io::Result<ExitStatus>) -> Result<(), Failure> {
    let status = status.map_err(|error| Failure::system(format!("cannot wait: {error}")))?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    match u8::try_from(code).unwrap_or(u8::MAX) {
        0 => Ok(()),
        code => Err(Failure::with_status(code, "")),
    }
}
