//! The credentials of a gate: the tokens with which agents enter it, the secrets that it hands to
//! servers, and its sign-ins to them. The crate knows nothing of calls, catalogs and connections.

pub mod limits;
pub mod secrets;
pub mod sign_in;
pub mod tokens;
