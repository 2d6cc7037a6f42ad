//! How a supervisor knows that the gate is gone, or wants its command to end.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, getppid};
use tokio::sync::oneshot;

/// A parent that is gone is noticed within this time.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
pub(super) enum Lifeline {
    /// Our stdin, whose other end the gate holds. With it comes the process that was our parent
    /// when we began.
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
        // Where a process cannot be waited for, we look from time to time.
        while matches!(self, Lifeline::Process(_)) && self.gate_lives() {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Whether it is cut now.
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

/// Whether nobody can write to our stdin any more. No event is asked for: a hang-up is always told,
/// and input stays for the command.
fn input_is_over(within: Option<&Timespec>) -> bool {
    let stdin = std::io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
    matches!(poll(&mut watched, within), Ok(1..))
}

#[cfg(target_os = "linux")]
mod watched {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

    /// Blocks until the process, our parent, is gone; not at all where it cannot be waited for.
    pub(super) fn until_gone(parent: Pid) {
        let Ok(process) = pidfd_open(parent, PidfdFlags::empty()) else { return };
        let mut watched = [PollFd::new(&process, PollFlags::IN)];
        // Asked when we have it: by now its number may belong to another process.
        while getppid() == Some(parent) && !matches!(poll(&mut watched, None), Ok(1..)) {}
    }
}

#[cfg(not(target_os = "linux"))]
mod watched {
    pub(super) fn until_gone(_process: rustix::process::Pid) {}
}
