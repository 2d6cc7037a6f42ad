//! What a person may change while the gate runs. Each change is recorded first, then kept in the
//! store, then put into effect; when the answer comes, it holds.

mod decision;
mod file;
mod plugin;
mod refusal;
mod server;
mod token;
mod tool;

pub use decision::DecisionSource;
pub use token::{IssuedToken, TokenRequest};
pub use tool::{ApprovedItem, ReviewedItem};
