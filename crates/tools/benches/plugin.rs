//! A call of a plugin's operation compared with a bare gRPC call to the same process over the same
//! socket. Both in turn, so that other load on the machine affects both.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Caller;
use domain::method::Method;
use domain::tool::ToolName;
use mcp::child::StderrTail;
use plugin_sdk::protocol::ExecuteRequest;
use plugin_sdk::protocol::operation_service_client::OperationServiceClient;
use provider::{Call, CallContext, Connector, Declared, ProviderConnection, Surface};
use serde_json::json;
use text::json::Object;
use tonic::transport::{Channel, Endpoint};
use tools::plugin::{Places, Plugin, SecretSource, StartOptions, Variables, find};

const WARM_UP: usize = 200;
const ROUNDS: usize = 2_000;

/// Typical argument texts: a word, a page, as much as an agent sees by default, a file.
const SIZES: [(&str, usize); 4] =
    [("20 bytes", 20), ("4 KiB", 4 * 1024), ("20 KiB", 20 * 1024), ("256 KiB", 256 * 1024)];

fn call(arguments: &str) -> Call {
    Call {
        id: String::new(),
        caller: Arc::new(Caller::admin()),
        client: None,
        session: None,
        request_id: None,
        surface: Surface::Cli,
        method: Method::ToolCall,
        tool: ToolName { server: "echo".to_owned(), tool: "echo_echo".to_owned() },
        arguments: Object::parse(arguments).unwrap().unwrap(),
        declared: Declared::Nothing,
        other: Vec::new(),
    }
}

async fn ours(connected: &dyn ProviderConnection, call: &Call) -> Duration {
    let start = Instant::now();
    let reply = connected.call(call, &CallContext::within(Duration::from_secs(60))).await;
    let took = start.elapsed();
    assert!(reply.unwrap().result.get().contains("\"isError\":false"));
    took
}

async fn bare(client: &mut OperationServiceClient<Channel>, text: &str) -> Duration {
    let start = Instant::now();
    let inputs = [("text".to_owned(), text.as_bytes().to_vec())].into();
    let request = ExecuteRequest { operation: "echo".to_owned(), inputs };
    let answer = client.execute(request).await;
    let took = start.elapsed();
    assert!(answer.unwrap().into_inner().success);
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The example program, which `./bench` builds.
fn program() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    deps.ancestors().nth(2).unwrap().join("examples/awf-plugin-echo")
}

/// Finds the one socket below a folder.
fn socket(folder: &Path) -> PathBuf {
    let private = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let entries = std::fs::read_dir(private).unwrap().map(|entry| entry.unwrap());
    let mut sockets = entries.filter(|entry| entry.file_type().unwrap().is_socket());
    sockets.next().unwrap().path()
}

async fn measure(root: &Path) {
    let folder = root.join("awf/plugins/echo");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(program(), folder.join("awf-plugin-echo")).unwrap();
    std::fs::write(folder.join("plugin.yaml"), "name: echo\nversion: 1.0.0\n").unwrap();
    let data = root.to_str().unwrap().to_owned();
    let variables = Variables { xdg_data_home: Some(data), ..Variables::default() };
    let found = find(&Places::new(&variables, &root.join("x")), &[]).plugins.remove(0);
    let start = StartOptions {
        supervisor: None,
        folder: root.join("s"),
        cwd: None,
        expose: None,
        needed: None,
        timeout: Duration::from_secs(60),
        secrets: SecretSource::none(),
    };
    let said = StderrTail::default();
    let connected = Plugin::new(found, start).connect(&said).await.unwrap();
    let socket = socket(&root.join("s"));
    let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display())).unwrap();
    let mut client = OperationServiceClient::new(endpoint.connect().await.unwrap());
    println!("medians of {ROUNDS} calls, in turn");
    for (name, size) in SIZES {
        let text = json!("x".repeat(size)).to_string();
        let call = call(&format!("{{\"text\":{text}}}"));
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for round in 0..WARM_UP + ROUNDS {
            let took = (ours(&*connected, &call).await, bare(&mut client, &text).await);
            if round >= WARM_UP {
                own.push(took.0);
                other.push(took.1);
            }
        }
        let (own, other) = (median(own), median(other));
        println!(
            "{name:<10} ours {:>7.1} µs  bare {:>7.1} µs  {:.2} x",
            own.as_secs_f64() * 1e6,
            other.as_secs_f64() * 1e6,
            own.as_secs_f64() / other.as_secs_f64()
        );
    }
    connected.close().await;
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(measure(dir.path()));
}
