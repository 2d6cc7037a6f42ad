//! The stop condition of work off the async threads, checked between files and between reads.

use std::io::{self, Read};

use provider::CallContext;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fault::{Fault, Result};

#[derive(Clone)]
pub(super) struct Stop {
    cancel: CancellationToken,
    deadline: Instant,
}

impl Stop {
    pub(super) fn of(ctx: &CallContext) -> Stop {
        Stop { cancel: ctx.cancel.clone(), deadline: ctx.deadline }
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.cancel.is_cancelled() {
            return Err(Fault::Cancelled);
        }
        if Instant::now() >= self.deadline {
            return Err(Fault::OutOfTime);
        }
        Ok(())
    }
}

/// A reader that fails once the work has to stop.
pub(super) struct Stoppable<'a, R> {
    pub(super) inner: R,
    pub(super) stop: &'a Stop,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stop.check().map_err(|_| io::Error::other("stopped"))?;
        self.inner.read(buffer)
    }
}
