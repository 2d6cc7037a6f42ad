//! How a supervisor knows that the gate is gone, or wants its command to end.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, getppid};
use tokio::sync::oneshot;

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

    /// Blocks until a process that is our parent is gone.
    pub(super) fn until_gone(parent: Pid) {
        match pidfd_open(parent, PidfdFlags::empty()) {
            // Asked after the descriptor was had: the number may have gone to another process.
            Ok(process) if getppid() == Some(parent) => {
                let mut watched = [PollFd::new(&process, PollFlags::IN)];
                while !matches!(poll(&mut watched, None), Ok(1..)) {}
            }
            Ok(_) => {}
            Err(_) => super::look_until_gone(parent),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod watched {
    pub(super) use super::look_until_gone as until_gone;
}

/// Where a process cannot be waited for, we look from time to time.
fn look_until_gone(parent: Pid) {
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
    while getppid() == Some(parent) {
        std::thread::sleep(PAUSE);
    }
}
