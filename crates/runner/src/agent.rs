//! The agent programs: starts each with our server as its source of tools, and reads its output.
//! Runs nothing itself but the short queries of `InstalledAgent::detect`; processes, their groups
//! and their end belong to the driver.

mod claude;
mod codex;
mod detect;
mod error;
mod gemini;
mod ground;
mod guard;
mod installed;
mod isolation;
mod known;
mod launch;
mod offered;
mod opencode;
mod person;
mod prepare;
mod probe;
mod program;
mod reads;
mod report;
mod request;
mod stream;
mod toml;
mod version;

pub use detect::{ProbeNotice, Search};
pub use error::AgentError;
pub use installed::InstalledAgent;
pub use isolation::{COEXISTENCE_LINE, Isolation};
pub use launch::{Launch, Symlink};
pub use offered::ToolCheck;
pub use person::Person;
pub use prepare::prepare;
pub use program::{Provider, SERVER_NAME};
pub use reads::{FileRead, ReadEffect, ReadTable, VariableRead};
pub use report::{AgentEvent, AgentFailure, AgentReport, Cause, NativeCall, TokenUsage, WorkUsage};
pub use request::{AgentRequest, AgentServer, AgentTools};
pub use stream::{LINE_BYTES_MAX, Stream};
