//! Attacks by clients without a token: malformed HTTP, guessed tokens and idle connections.
