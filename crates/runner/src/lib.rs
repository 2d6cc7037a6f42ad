//! Runs workflows and the coding agents in them. Reaches tools only through the gate it is given;
//! the meaning of a plan is defined in `workflow`.

pub mod agent;
pub mod environment;
pub mod gate;
pub mod openai;
mod process;
pub mod run;
pub mod step;
