//! What a record says of a call: which resource it touched, how risky it was, what must not be
//! stored of it, and who else touched the same thing. Receipts are a crate of their own.

pub mod contention;
pub mod frame;
pub mod hook;
pub mod redaction;
pub mod target;
pub mod taxonomy;
