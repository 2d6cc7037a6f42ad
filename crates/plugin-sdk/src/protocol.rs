//! The messages and services, generated from the files in `proto`.

#![allow(clippy::all, unreachable_pub, reason = "generated")]

tonic::include_proto!("plugin.v1");

/// The services that go-plugin adds to every plugin.
pub mod go_plugin {
    tonic::include_proto!("plugin");
}

/// gRPC's own health service.
pub mod health {
    tonic::include_proto!("grpc.health.v1");
}
