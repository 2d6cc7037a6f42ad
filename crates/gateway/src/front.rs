//! How agents speak with the gate: [`stdio`] and [`http`] carry [`discovery`], the tools that the
//! gate itself offers.

pub mod discovery;
pub mod http;
pub mod stdio;
