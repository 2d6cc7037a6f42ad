//! The process: the cookie, the socket, the line on stdout, and the services until shutdown.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "how a plugin speaks to its host")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::net::UnixListener;
use tokio::sync::Notify;
use tonic::transport::Server;
use tonic::{Request, Response, Status, async_trait};

use crate::handshake::{
    CLIENT_CERT, COOKIE_KEY, COOKIE_VALUE, CORE_VERSION, HEALTH_SERVICE, PROTOCOL_VERSION,
    SOCKET_DIR,
};
use crate::plugin::{self, Answer, OfferedOperation, Plugin};
use crate::protocol::go_plugin::Empty;
use crate::protocol::go_plugin::grpc_controller_server::{GrpcController, GrpcControllerServer};
use crate::protocol::health::health_check_response::ServingStatus;
use crate::protocol::health::health_server::{Health, HealthServer};
use crate::protocol::health::{HealthCheckRequest, HealthCheckResponse};
use crate::protocol::operation_service_server::{OperationService, OperationServiceServer};
use crate::protocol::plugin_service_server::{PluginService, PluginServiceServer};
use crate::protocol::{
    ExecuteRequest, ExecuteResponse, GetInfoRequest, GetInfoResponse, GetOperationRequest,
    GetOperationResponse, InitRequest, InitResponse, ListOperationsRequest, ListOperationsResponse,
    ShutdownRequest, ShutdownResponse,
};

/// go-plugin's own message, which people know.
const NOT_BY_HAND: &str = "This binary is a plugin. These are not meant to be executed directly.
Please execute the program that consumes these plugins, which will
load any plugins automatically";

/// Time for running operations to finish after the host requests shutdown.
const LAST_CALLS: Duration = Duration::from_secs(1);

/// Maximum size of one message. Hosts have their own limits.
const MESSAGE_BYTES_MAX: usize = 256 * 1024 * 1024;

impl Plugin {
    /// Serves until the host requests shutdown. The only call `main` needs.
    pub fn run(self) -> ExitCode {
        match start(self) {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                eprintln!("{reason}");
                ExitCode::FAILURE
            }
        }
    }
}

fn start(plugin: Plugin) -> Result<(), String> {
    if std::env::var(COOKIE_KEY).as_deref() != Ok(COOKIE_VALUE) {
        return Err(NOT_BY_HAND.to_owned());
    }
    if std::env::var_os(CLIENT_CERT).is_some_and(|cert| !cert.is_empty()) {
        return Err("the host requires mutual TLS, which this plugin does not support".to_owned());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start: {error}"))?;
    let result = runtime.block_on(serve(plugin));
    // An operation still running must not keep the process alive.
    runtime.shutdown_background();
    result
}

async fn serve(plugin: Plugin) -> Result<(), String> {
    let folder = std::env::var_os(SOCKET_DIR).filter(|folder| !folder.is_empty());
    let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
    let path = folder.join(format!("plugin{}", std::process::id()));
    let listener = UnixListener::bind(&path)
        .map_err(|error| format!("cannot listen on {}: {error}", path.display()))?;
    let stop = Arc::new(Notify::new());
    let services =
        Services { plugin: Arc::new(plugin), config: Arc::default(), stop: stop.clone() };
    let serving = Server::builder()
        .add_service(HealthServer::new(services.clone()))
        .add_service(GrpcControllerServer::new(services.clone()))
        .add_service(PluginServiceServer::new(services.clone()))
        .add_service(
            OperationServiceServer::new(services).max_decoding_message_size(MESSAGE_BYTES_MAX),
        )
        .serve_with_incoming_shutdown(incoming(listener), {
            let stop = stop.clone();
            async move { stop.notified().await }
        });
    let address = path.display();
    println!("{CORE_VERSION}|{PROTOCOL_VERSION}|unix|{address}|grpc|");
    let _ = std::io::stdout().flush();
    let stopped = async {
        stop.notified().await;
        tokio::time::sleep(LAST_CALLS).await;
    };
    let result = tokio::select! {
        served = serving => served.map_err(|error| format!("cannot serve: {error}")),
        () = stopped => Ok(()),
    };
    let _ = std::fs::remove_file(&path);
    result
}

/// Yields connections as they arrive.
fn incoming(
    listener: UnixListener,
) -> impl futures_util::Stream<Item = std::io::Result<tokio::net::UnixStream>> {
    futures_util::stream::unfold(listener, |listener| async {
        let accepted = listener.accept().await.map(|(stream, _)| stream);
        Some((accepted, listener))
    })
}

#[derive(Clone)]
struct Services {
    plugin: Arc<Plugin>,
    config: Arc<Mutex<Arc<Map<String, Value>>>>,
    stop: Arc<Notify>,
}

#[async_trait]
impl PluginService for Services {
    async fn get_info(
        &self,
        _: Request<GetInfoRequest>,
    ) -> Result<Response<GetInfoResponse>, Status> {
        Ok(Response::new(GetInfoResponse {
            name: self.plugin.name.clone(),
            version: self.plugin.version.clone(),
            description: self.plugin.description.clone(),
            capabilities: vec!["operations".to_owned()],
        }))
    }

    async fn init(&self, request: Request<InitRequest>) -> Result<Response<InitResponse>, Status> {
        let config = values(request.into_inner().config);
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        Ok(Response::new(InitResponse {}))
    }

    async fn shutdown(
        &self,
        _: Request<ShutdownRequest>,
    ) -> Result<Response<ShutdownResponse>, Status> {
        Ok(Response::new(ShutdownResponse {}))
    }
}

#[async_trait]
impl OperationService for Services {
    async fn list_operations(
        &self,
        _: Request<ListOperationsRequest>,
    ) -> Result<Response<ListOperationsResponse>, Status> {
        let operations =
            self.plugin.operations.iter().map(|offered| offered.schema.clone()).collect();
        Ok(Response::new(ListOperationsResponse { operations }))
    }

    async fn get_operation(
        &self,
        request: Request<GetOperationRequest>,
    ) -> Result<Response<GetOperationResponse>, Status> {
        let schema = self.find(&request.get_ref().name)?.schema.clone();
        Ok(Response::new(GetOperationResponse { operation: Some(schema) }))
    }

    async fn execute(
        &self,
        request: Request<ExecuteRequest>,
    ) -> Result<Response<ExecuteResponse>, Status> {
        let request = request.into_inner();
        let handler = &self.find(&request.operation)?.handler;
        let config = self.config.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let done = handler(plugin::Request { inputs: values(request.inputs), config }).await;
        Ok(Response::new(match done {
            Ok(Answer { output, data }) => {
                let data = data.into_iter().map(|(name, value)| (name, value.to_string().into()));
                ExecuteResponse {
                    success: true,
                    output,
                    data: data.collect(),
                    ..Default::default()
                }
            }
            Err(error) => ExecuteResponse { success: false, error, ..Default::default() },
        }))
    }
}

impl Services {
    fn find(&self, name: &str) -> Result<&OfferedOperation, Status> {
        let mut offered = self.plugin.operations.iter();
        let found = offered.find(|offered| offered.schema.name == name);
        found.ok_or_else(|| Status::not_found(format!("unknown operation '{name}'")))
    }
}

/// Parses each value; text that is not JSON becomes a string, as in plugins written in Go.
fn values(map: BTreeMap<String, Vec<u8>>) -> Map<String, Value> {
    let value = |bytes: Vec<u8>| {
        serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()))
    };
    map.into_iter().map(|(name, bytes)| (name, value(bytes))).collect()
}

#[async_trait]
impl GrpcController for Services {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        // Wakes both tasks that wait for it.
        self.stop.notify_waiters();
        Ok(Response::new(Empty {}))
    }
}

#[async_trait]
impl Health for Services {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        match request.get_ref().service.as_str() {
            "" | HEALTH_SERVICE => {
                let status = ServingStatus::Serving.into();
                Ok(Response::new(HealthCheckResponse { status }))
            }
            other => Err(Status::not_found(format!("unknown service '{other}'"))),
        }
    }
}
