//! Attacks on the running gate, grouped by attacker. Each test shows that the attack fails and that
//! honest callers do not notice it.

mod agent;
mod client_settings;
mod endurance;
mod folder;
mod neighbour;
mod network;
mod server;
