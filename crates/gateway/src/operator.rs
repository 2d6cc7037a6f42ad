//! Changes a person may make while the gate runs. Each change is recorded first, then stored, then
//! put into effect; the response arrives once it holds.

pub(crate) mod decision;
mod file;
mod login;
mod plugin;
mod refusal;
mod review;
mod server;
mod token;
mod tool;

pub use decision::DecisionSource;
pub(crate) use login::Logins;
pub use login::{LoginInvitation, LoginProgress, LoginTarget};

pub use access::sign_in::TokenLogin;
pub use review::ServerReview;
pub use token::{IssuedToken, TokenRequest};
pub use tool::{ApprovedItem, ReviewedItem};
