//! What a person may change while the gate runs. Each change is recorded first, then kept in the
//! store, then put into effect; when the answer comes, it holds.

mod decision;
mod file;
mod plugin;
mod server;
mod token;
mod tool;

use std::sync::Arc;

use domain::catalog::Server;
use domain::{Caller, Code, Refusal};
use store::StoreError;

pub use decision::By;
pub use server::ApprovedItem;
pub use token::{MadeToken, Wanted};
pub use tool::Reviewed;

use crate::Gateway;
use crate::front::discovery;

impl Gateway {
    /// A server that is there, by its name.
    fn known_server(&self, name: &str) -> Result<Arc<Server>, Refusal> {
        match self.catalog().server(name) {
            Some(server) => Ok(server.clone()),
            None => Err(discovery::no_such_server(&self.catalog(), &Caller::admin(), name)),
        }
    }
}

fn conflict(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::Conflict, message)
}

fn unavailable(error: &StoreError) -> Refusal {
    Refusal::new(error.code(), error.to_string())
}
