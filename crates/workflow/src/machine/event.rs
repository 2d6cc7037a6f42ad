//! What a driver tells the machine, and what it is to do.

use std::time::Duration;

use super::super::outcome::StepOutcome;
use domain::choice;
use domain::code::Code;

#[derive(Clone, Debug, PartialEq)]
pub enum MachineEvent {
    /// The first one.
    Begin,
    /// An attempt has ended, or was not made because it was cancelled before.
    Ended { state: String, outcome: StepOutcome },
    /// The person wants the run to stop.
    Cancel,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MachineAction {
    /// Make the attempt, counted from 1, after waiting this long.
    Start { state: String, attempt: u32, after: Duration },
    /// Stop it, or do not begin it; its end is still awaited.
    Cancel { state: String },
    /// The last one.
    Finish(Finish),
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    pub ending: Ending,
    /// The state that it ended in.
    pub state: String,
    pub message: Option<String>,
    pub exit_status: u8,
    /// Set where the workflow itself was at fault.
    pub code: Option<Code>,
}

choice! {
    /// The result of a run as a whole.
    Ending {
        Success = "success",
        Failure = "failure",
        Cancelled = "cancelled",
    }
}
