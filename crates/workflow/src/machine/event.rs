//! The events that a driver sends to the machine, and the actions that it returns.

use std::time::Duration;

use super::super::outcome::StepOutcome;
use domain::choice;
use domain::code::Code;

#[derive(Clone, Debug, PartialEq)]
pub enum MachineEvent {
    /// The first event.
    Begin,
    /// An attempt ended, or was cancelled before it began.
    Ended { state: String, outcome: StepOutcome },
    /// The user wants the run to stop.
    Cancel,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MachineAction {
    /// Start this attempt, counted from 1, after this delay.
    Start { state: String, attempt: u32, after: Duration },
    /// Stop the attempt, or do not start it; the machine still expects its `Ended` event.
    Cancel { state: String },
    /// The last action.
    Finish(Finish),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    pub ending: Ending,
    /// The state in which the run ended.
    pub state: String,
    pub message: Option<String>,
    pub exit_status: u8,
    /// Set if the workflow itself was at fault.
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
