//! Our end of the gRPC connection to a plugin.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use mcp::child::StderrTail;
use mcp::limits::STDERR_LINE_BYTES_MAX;
use plugin_sdk::handshake::HEALTH_SERVICE;
use plugin_sdk::protocol::go_plugin::Empty;
use plugin_sdk::protocol::go_plugin::grpc_controller_client::GrpcControllerClient;
use plugin_sdk::protocol::go_plugin::grpc_stdio_client::GrpcStdioClient;
use plugin_sdk::protocol::go_plugin::stdio_data::Channel as Stream;
use plugin_sdk::protocol::health::HealthCheckRequest;
use plugin_sdk::protocol::health::health_check_response::ServingStatus;
use plugin_sdk::protocol::health::health_client::HealthClient;
use plugin_sdk::protocol::operation_service_client::OperationServiceClient;
use plugin_sdk::protocol::plugin_service_client::PluginServiceClient;
use plugin_sdk::protocol::{
    ExecuteRequest, ExecuteResponse, GetInfoRequest, GetInfoResponse, InitRequest,
    ListOperationsRequest, OperationSchema, ShutdownRequest,
};
use serde_json::{Map, Value};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use super::limits;

/// The plugin also gets a call's deadline; ours comes first.
const DEADLINE_MARGIN: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Host {
    channel: Channel,
    operations: OperationServiceClient<Channel>,
}

impl Host {
    pub(super) async fn connect(socket: &Path) -> Result<Host, String> {
        let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display()))
            .map_err(|error| format!("cannot connect to '{}': {error}", socket.display()))?;
        let channel = endpoint
            .connect()
            .await
            .map_err(|error| format!("cannot connect to '{}': {error}", socket.display()))?;
        let operations = OperationServiceClient::new(channel.clone())
            .max_decoding_message_size(limits::MESSAGE_BYTES_MAX);
        Ok(Host { channel, operations })
    }

    /// Checks that the plugin reports itself as serving.
    pub(super) async fn check(&self) -> Result<(), String> {
        let request = HealthCheckRequest { service: HEALTH_SERVICE.to_owned() };
        let answer = HealthClient::new(self.channel.clone()).check(request).await;
        let answer = answer.map_err(|status| failed("the health check", &status))?.into_inner();
        match answer.status() {
            ServingStatus::Serving => Ok(()),
            ServingStatus::Unknown | ServingStatus::NotServing | ServingStatus::ServiceUnknown => {
                Err("it reports that it is not serving".to_owned())
            }
        }
    }

    pub(super) async fn about(&self) -> Result<GetInfoResponse, String> {
        let answer = self.plugin().get_info(GetInfoRequest {}).await;
        Ok(answer.map_err(|status| failed("GetInfo", &status))?.into_inner())
    }

    pub(super) async fn init(&self, config: &Map<String, Value>) -> Result<(), String> {
        let config = config.iter().map(|(name, value)| (name.clone(), value.to_string().into()));
        let config: BTreeMap<String, Vec<u8>> = config.collect();
        let answer = self.plugin().init(InitRequest { config }).await;
        answer.map_err(|status| failed("Init", &status))?;
        Ok(())
    }

    pub(super) async fn operations(&self) -> Result<Vec<OperationSchema>, String> {
        let answer = self.operations.clone().list_operations(ListOperationsRequest {}).await;
        let answer = answer.map_err(|status| failed("ListOperations", &status))?;
        Ok(answer.into_inner().operations)
    }

    pub(super) async fn execute(
        &self,
        request: ExecuteRequest,
        within: Duration,
    ) -> Result<ExecuteResponse, Status> {
        let mut request = Request::new(request);
        request.set_timeout(within.saturating_add(DEADLINE_MARGIN));
        Ok(self.operations.clone().execute(request).await?.into_inner())
    }

    /// Receives the output that plugins in Go print once they serve; without a receiver, they would
    /// block.
    pub(super) async fn listen(self, heard: StderrTail) {
        let Ok(answer) = GrpcStdioClient::new(self.channel).stream_stdio(Empty {}).await else {
            return;
        };
        let mut stream = answer.into_inner();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        while let Ok(Some(piece)) = stream.message().await {
            let line = match piece.channel() {
                Stream::Stderr => &mut stderr,
                Stream::Stdout | Stream::Invalid => &mut stdout,
            };
            for byte in piece.data {
                match byte {
                    b'\n' => {
                        heard.push(String::from_utf8_lossy(line).trim_end().to_owned());
                        line.clear();
                    }
                    _ if line.len() < STDERR_LINE_BYTES_MAX => line.push(byte),
                    _ => {}
                }
            }
        }
        for line in [stdout, stderr].into_iter().filter(|line| !line.is_empty()) {
            heard.push(String::from_utf8_lossy(&line).into_owned());
        }
    }

    /// Lets the plugin clean up, and asks it to exit.
    pub(super) async fn goodbye(&self) {
        let saying = async {
            let _ = self.plugin().shutdown(ShutdownRequest {}).await;
            let _ = GrpcControllerClient::new(self.channel.clone()).shutdown(Empty {}).await;
        };
        let _ = tokio::time::timeout(limits::GOODBYE, saying).await;
    }

    fn plugin(&self) -> PluginServiceClient<Channel> {
        PluginServiceClient::new(self.channel.clone())
    }
}

fn failed(what: &str, status: &Status) -> String {
    match status.message() {
        "" => format!("{what} failed: {:?}", status.code()),
        message => format!("{what} failed: {message}"),
    }
}
