//! What was done: which resource a call touched, how risky it was, what must not be stored of it,
//! who else touched the same thing, and the events that come from outside.

pub mod contention;
pub mod frame;
pub mod hook;
pub mod redaction;
pub mod target;
pub mod taxonomy;
