//! The messages and services. `generated` holds the Rust of the files in `proto`; a test compares them.

#![allow(clippy::all, unreachable_pub, reason = "generated")]

include!("../generated/plugin.v1.rs");

/// The services that go-plugin adds to every plugin.
pub mod go_plugin {
    include!("../generated/plugin.rs");
}

/// gRPC's own health service.
pub mod health {
    include!("../generated/grpc.health.v1.rs");
}
