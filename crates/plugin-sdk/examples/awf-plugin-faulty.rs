//! A plugin that does everything wrong, for tests of hosts. It implements the protocol without this
//! crate's server, which would not allow that.

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "for tests")]
#![allow(clippy::disallowed_methods, reason = "a shutdown request ends the process")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use plugin_sdk::handshake::SOCKET_DIR;
use plugin_sdk::protocol::go_plugin::Empty;
use plugin_sdk::protocol::go_plugin::grpc_controller_server::{
    GrpcController, GrpcControllerServer,
};
use plugin_sdk::protocol::health::health_server::{Health, HealthServer};
use plugin_sdk::protocol::health::{HealthCheckRequest, HealthCheckResponse};
use plugin_sdk::protocol::operation_service_server::{OperationService, OperationServiceServer};
use plugin_sdk::protocol::plugin_service_server::{PluginService, PluginServiceServer};
use plugin_sdk::protocol::{
    ExecuteRequest, ExecuteResponse, GetInfoRequest, GetInfoResponse, GetOperationRequest,
    GetOperationResponse, InitRequest, InitResponse, InputSchema, ListOperationsRequest,
    ListOperationsResponse, OperationSchema, ShutdownRequest, ShutdownResponse,
};
use tokio::signal::unix::{SignalKind, signal};
use tonic::transport::Server;
use tonic::{Request, Response, Status, async_trait};

const OPERATIONS: [&str; 10] =
    ["ok", "mirror", "die", "hang", "freeze", "huge", "garbage", "refuse", "print", "fork"];

/// Set by `fork`: from then on, the plugin ignores requests to shut down.
static CLINGS: AtomicBool = AtomicBool::new(false);

#[derive(Clone)]
struct Faulty;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // It ignores SIGTERM.
    let _deaf = signal(SignalKind::terminate()).unwrap();
    let folder = std::env::var_os(SOCKET_DIR).unwrap();
    let path = Path::new(&folder).join("faulty");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    println!("noise before the line");
    println!("1|1|unix|{}|grpc|", path.display());
    println!("noise behind the line");
    let incoming = futures_util::stream::unfold(listener, |listener| async {
        Some((listener.accept().await.map(|(stream, _)| stream), listener))
    });
    Server::builder()
        .add_service(HealthServer::new(Faulty))
        .add_service(GrpcControllerServer::new(Faulty))
        .add_service(PluginServiceServer::new(Faulty))
        .add_service(OperationServiceServer::new(Faulty).max_encoding_message_size(usize::MAX))
        .serve_with_incoming(incoming)
        .await
        .unwrap();
}

#[async_trait]
impl OperationService for Faulty {
    async fn list_operations(
        &self,
        _: Request<ListOperationsRequest>,
    ) -> Result<Response<ListOperationsResponse>, Status> {
        let named = |name: &str| OperationSchema { name: name.to_owned(), ..Default::default() };
        let odd =
            InputSchema { name: "at".to_owned(), r#type: "date".to_owned(), ..Default::default() };
        let odd = OperationSchema { inputs: vec![odd], ..named("odd") };
        let operations = OPERATIONS.map(named).into_iter().chain([odd]).collect();
        Ok(Response::new(ListOperationsResponse { operations }))
    }

    async fn get_operation(
        &self,
        _: Request<GetOperationRequest>,
    ) -> Result<Response<GetOperationResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn execute(
        &self,
        request: Request<ExecuteRequest>,
    ) -> Result<Response<ExecuteResponse>, Status> {
        let mut answer = ExecuteResponse { success: true, ..Default::default() };
        match request.get_ref().operation.as_str() {
            "ok" => answer.output = "fine".to_owned(),
            "mirror" => answer.data.clone_from(&request.get_ref().inputs),
            "die" => {
                eprintln!("it is all over");
                std::process::abort();
            }
            "hang" => std::future::pending().await,
            "freeze" => loop {
                std::thread::park();
            },
            "huge" => answer.output = "x".repeat(100 * 1024 * 1024),
            "garbage" => drop(answer.data.insert("bad".to_owned(), b"\xff{".to_vec())),
            "refuse" => return Err(Status::invalid_argument("not like this")),
            "print" => {
                println!("printed while it works");
                eprintln!("complained while it works");
            }
            "fork" => {
                CLINGS.store(true, Ordering::Relaxed);
                #[expect(clippy::zombie_processes, reason = "the host has to end it")]
                let child = Command::new("sleep").arg("300").stdout(Stdio::null()).spawn().unwrap();
                answer.output = format!("{} {}", std::process::id(), child.id());
            }
            other => return Err(Status::not_found(other.to_owned())),
        }
        Ok(Response::new(answer))
    }
}

#[async_trait]
impl PluginService for Faulty {
    async fn get_info(
        &self,
        _: Request<GetInfoRequest>,
    ) -> Result<Response<GetInfoResponse>, Status> {
        Ok(Response::new(GetInfoResponse { name: "other".to_owned(), ..Default::default() }))
    }

    async fn init(&self, request: Request<InitRequest>) -> Result<Response<InitResponse>, Status> {
        if request.get_ref().config.contains_key("refuse") {
            Err(Status::failed_precondition("not with this config"))
        } else {
            Ok(Response::new(InitResponse {}))
        }
    }

    async fn shutdown(
        &self,
        _: Request<ShutdownRequest>,
    ) -> Result<Response<ShutdownResponse>, Status> {
        if CLINGS.load(Ordering::Relaxed) {
            std::future::pending().await
        }
        Ok(Response::new(ShutdownResponse {}))
    }
}

#[async_trait]
impl GrpcController for Faulty {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        if !CLINGS.load(Ordering::Relaxed) {
            std::process::exit(0);
        }
        Ok(Response::new(Empty {}))
    }
}

#[async_trait]
impl Health for Faulty {
    async fn check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(HealthCheckResponse { status: 1 }))
    }
}
