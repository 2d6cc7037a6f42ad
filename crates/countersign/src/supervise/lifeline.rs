//! Detects that the gate is gone, or wants its command to end.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, getppid};
use tokio::sync::oneshot;

/// The interval at which a vanished parent is noticed.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
pub(super) enum Lifeline {
    /// Our stdin, whose other end the gate holds, and the process that was our parent at the start.
    Stdin(Option<Pid>),
    /// The gate's process, which must be our parent.
    Process(Pid),
}

impl Lifeline {
    /// Returns when the line is cut.
    pub(super) async fn cut(self) {
        let (sender, receiver) = oneshot::channel();
        std::thread::spawn(move || {
            match self {
                Lifeline::Stdin(_) => while !input_is_over(None) {},
                Lifeline::Process(gate) => watched::until_gone(gate),
            }
            let _ = sender.send(());
        });
        let _ = receiver.await;
        // If the process cannot be waited for, poll.
        while matches!(self, Lifeline::Process(_)) && self.gate_lives() {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Reports whether the line is cut now.
    pub(super) fn is_cut(self) -> bool {
        match self {
            Lifeline::Stdin(_) => input_is_over(Some(&Timespec { tv_sec: 0, tv_nsec: 0 })),
            Lifeline::Process(_) => !self.gate_lives(),
        }
    }

    pub(super) fn gate_lives(self) -> bool {
        match self {
            Lifeline::Stdin(parent) => getppid() == parent,
            Lifeline::Process(gate) => getppid() == Some(gate),
        }
    }
}

/// Reports whether our stdin has no writer left. No event is requested: a hang-up is always
/// reported, and input is left for the command.
fn input_is_over(within: Option<&Timespec>) -> bool {
    let stdin = std::io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
    matches!(poll(&mut watched, within), Ok(1..))
}

#[cfg(target_os = "linux")]
mod watched {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

    /// Blocks until the process, our parent, is gone; returns at once if it cannot be waited for.
    pub(super) fn until_gone(parent: Pid) {
        let Ok(process) = pidfd_open(parent, PidfdFlags::empty()) else { return };
        let mut watched = [PollFd::new(&process, PollFlags::IN)];
        // Checked after opening it: its number may by now belong to another process.
        while getppid() == Some(parent) && !matches!(poll(&mut watched, None), Ok(1..)) {}
    }
}

#[cfg(not(target_os = "linux"))]
mod watched {
    pub(super) fn until_gone(_process: rustix::process::Pid) {}
}
