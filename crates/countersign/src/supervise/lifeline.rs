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
        match self {
            Lifeline::Stdin(_) => {
                let (sender, receiver) = oneshot::channel();
                std::thread::spawn(move || {
                    while !input_is_over(None) {}
                    let _ = sender.send(());
                });
                let _ = receiver.await;
            }
            Lifeline::Process(gate) => {
                watched::until_gone(gate).await;
                // Where a process cannot be waited for, we look from time to time.
                while self.gate_lives() {
                    tokio::time::sleep(LOOK_INTERVAL).await;
                }
            }
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
    use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
    use tokio::io::unix::AsyncFd;

    /// Returns when the process, our parent, is gone, or at once where it cannot be waited for.
    pub(super) async fn until_gone(parent: Pid) {
        if let Ok(process) = pidfd_open(parent, PidfdFlags::empty())
            // Asked when we have it: by now its number may belong to another process.
            && getppid() == Some(parent)
            && let Ok(process) = AsyncFd::register(process)
        {
            let _ = process.readable().await;
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod watched {
    pub(super) async fn until_gone(_process: rustix::process::Pid) {}
}
