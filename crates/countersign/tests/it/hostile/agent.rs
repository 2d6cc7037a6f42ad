//! Attacks by an agent that holds a valid token.
