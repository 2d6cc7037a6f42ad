//! Tokens of agents.
