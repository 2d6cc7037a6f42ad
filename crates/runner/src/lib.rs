//! Runs workflows and the coding agents in them. Reaches tools only through the gate that it is
//! handed; what a plan means is decided in `workflow`.

pub mod agent;
pub mod gate;
pub mod openai;
mod process;
pub mod run;
pub mod step;
pub mod surroundings;
