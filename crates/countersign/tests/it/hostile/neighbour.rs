//! Attacks by another process or user on the same machine.
