//! The supervisor between the gate and a child, which ensures that nothing outlives the gate,
//! however it ends. It leads the process group, hands its own stdin, stdout and stderr to the
//! command and watches stdin without reading it: when the gate's end of that pipe is closed, by the
//! gate or by its death, the command gets time to end and then the whole group is killed. A command
//! whose input may end while the gate runs is tied to the gate's process instead. Processes that
//! left the group are ended too, where the system lets us find them.

mod lifeline;
mod orphans;

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use mcp::child::{SUPERVISED_ARGUMENTS, supervised_argument};
use rustix::process::{Pid, Signal, getpgrp, getppid, kill_process_group};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::Supervise;
use crate::exit::Failure;
use crate::stop_signal;
use crate::supervise::lifeline::Lifeline;

/// A shell's exit code for a command that cannot be started.
const CANNOT_START: u8 = 127;

/// The time that a dying process takes to exit after its pipes are closed.
const GATE_EXIT: Duration = Duration::from_millis(20);

pub(crate) fn run(order: &Supervise) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::system(format!("cannot start: {error}")))?;
    let result = runtime.block_on(supervise(order));
    // The watching thread must not keep the process alive.
    runtime.shutdown_background();
    result
}

async fn supervise(order: &Supervise) -> Result<(), Failure> {
    let _deaf = signal(SignalKind::interrupt()).ok();
    // The group gets SIGTERM when it should end; the supervisor stays to ensure that it does.
    let mut terminate = heard(SignalKind::terminate())?;
    let mut hangup = stop_signal::hangup()?;
    let mut child_ended = heard(SignalKind::child())?;
    orphans::adopt();
    let lifeline = match order.gate.and_then(Pid::from_raw) {
        Some(gate) => Lifeline::Process(gate),
        None => Lifeline::Stdin(getppid()),
    };
    let (program, args) = order.command.split_first().expect("clap requires a command");
    let mut command = Command::new(program);
    command.args(args);
    add_handed_over(&mut command, order.handed_over)?;
    let mut child = command.spawn().map_err(|error| {
        let is_missing =
            error.kind() == ErrorKind::NotFound && !program.as_encoded_bytes().contains(&b'/');
        let cause = if is_missing { "it is not on the PATH".to_owned() } else { error.to_string() };
        Failure::with_status(CANNOT_START, format!("cannot start '{}': {cause}", program.display()))
    })?;
    let_go_of_stdout();
    let grace = Duration::from_secs(order.grace);
    let mut cut = pin!(lifeline.cut());
    loop {
        tokio::select! {
            status = child.wait() => return leave(status, lifeline).await,
            () = &mut cut => return end(&mut child, lifeline, grace).await,
            _ = terminate.recv() => return end_terminated(&mut child, lifeline, grace).await,
            () = hung_up(&mut hangup) => {
                let _ = kill_process_group(getpgrp(), Signal::TERM);
                return end_terminated(&mut child, lifeline, grace).await;
            }
            _ = child_ended.recv() => orphans::reap(child.id()),
        }
    }
}

/// Adds the arguments that came in variables. The command inherits no such variable, of whomever.
fn add_handed_over(command: &mut Command, count: usize) -> Result<(), Failure> {
    for name in (0..count).map(supervised_argument) {
        let argument = std::env::var_os(&name)
            .ok_or_else(|| Failure::system(format!("the variable {name} is missing")))?;
        command.arg(argument);
    }
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.to_string_lossy().starts_with(SUPERVISED_ARGUMENTS)) {
        command.env_remove(name);
    }
    Ok(())
}

async fn hung_up(hangup: &mut Option<tokio::signal::unix::Signal>) {
    match hangup {
        Some(hangup) => drop(hangup.recv().await),
        None => std::future::pending().await,
    }
}

fn heard(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Failure> {
    signal(kind).map_err(|error| Failure::system(format!("cannot receive signals: {error}")))
}

/// Closes our stdout, which would keep the pipe open: a command that closes its own and lives on
/// must be noticed.
fn let_go_of_stdout() {
    if let Ok(nowhere) = std::fs::File::create("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(nowhere);
    }
}

/// Ends the command. If its stdin has been closed too, it first gets time; then SIGTERM, and time
/// again.
async fn end(child: &mut Child, lifeline: Lifeline, grace: Duration) -> Result<(), Failure> {
    if let Lifeline::Stdin(_) = lifeline
        && let Ok(status) = tokio::time::timeout(grace, child.wait()).await
    {
        return leave(status, lifeline).await;
    }
    let _ = kill_process_group(getpgrp(), Signal::TERM);
    end_terminated(child, lifeline, grace).await
}

/// Ends the group, and with the last signal the supervisor itself.
async fn end_terminated(
    child: &mut Child,
    lifeline: Lifeline,
    grace: Duration,
) -> Result<(), Failure> {
    match tokio::time::timeout(grace, child.wait()).await {
        Ok(status) => leave(status, lifeline).await,
        Err(_) => {
            orphans::kill_all().await;
            let _ = kill_process_group(getpgrp(), Signal::KILL);
            Ok(())
        }
    }
}

/// Ends what the exited command left behind. A living gate needs its status and ends the rest of
/// the group; without a gate, nothing else would.
async fn leave(status: std::io::Result<ExitStatus>, lifeline: Lifeline) -> Result<(), Failure> {
    orphans::kill_all().await;
    if lifeline.is_cut() {
        tokio::time::sleep(GATE_EXIT).await;
        if !lifeline.gate_lives() {
            let _ = kill_process_group(getpgrp(), Signal::KILL);
        }
    }
    ended(status)
}

/// Passes on the command's exit code; a signal is reported as shells do.
fn ended(status: std::io::Result<ExitStatus>) -> Result<(), Failure> {
    let status =
        status.map_err(|error| Failure::system(format!("cannot wait for the command: {error}")))?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    match u8::try_from(code).unwrap_or(u8::MAX) {
        0 => Ok(()),
        code => Err(Failure::with_status(code, "")),
    }
}
