//! The signals that stop this program.

use std::sync::OnceLock;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::Failure;

/// A listener for stop signals, active from its creation.
pub(crate) struct StopSignal {
    terminate: Signal,
    interrupt: Signal,
    hangup: Option<Signal>,
}

impl StopSignal {
    pub(crate) fn new() -> Result<StopSignal, Failure> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::system(format!("cannot wait for signals: {error}")))
        };
        Ok(StopSignal {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: hangup()?,
        })
    }

    /// Runs until the work is done. A signal cancels `stop`, and the work then ends in its own
    /// time.
    pub(crate) async fn or_done(
        &mut self,
        serving: impl Future<Output = ()>,
        stop: CancellationToken,
    ) {
        tokio::pin!(serving);
        tokio::select! {
            () = &mut serving => {}
            () = self.received() => {
                stop.cancel();
                serving.await;
            }
        }
    }

    pub(crate) async fn received(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Listens for SIGHUP, which ends this process like SIGTERM. `None` if it was started to outlive
/// its terminal, as by `nohup`.
pub(crate) fn hangup() -> Result<Option<Signal>, Failure> {
    // Listening replaces the disposition that the process was started with.
    static IS_IGNORED: OnceLock<bool> = OnceLock::new();
    if *IS_IGNORED.get_or_init(ignores_hangup) {
        return Ok(None);
    }
    let listening = signal(SignalKind::hangup());
    listening
        .map(Some)
        .map_err(|error| Failure::system(format!("cannot wait for signals: {error}")))
}

/// Reports whether the process ignores SIGHUP. Only Linux can be asked.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 != 0)
}
