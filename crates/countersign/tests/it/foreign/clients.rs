//! The foreign clients: `client.py`, made with the Python SDK, and `rmcp`. Each uses the gate over
//! HTTP or starts `countersign mcp`; the Python one can also connect to a server without a gate.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ProgressNotificationParam,
};
use rmcp::service::{
    NotificationContext, PeerRequestOptions, RequestHandle, RoleClient, RunningService,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ServiceExt};
use serde_json::{Value, json};
use testkit::client::{PATIENCE, text};
use testkit::foreign;
use testkit::gate::{Gate, http_client};
use testkit::program;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

/// The first response waits for the interpreter and the SDK to be loaded.
const PYTHON_PATIENCE: Duration = Duration::from_secs(120);

pub(crate) enum Foreign {
    Python(Box<Python>),
    Rmcp(Rmcp),
}

impl Foreign {
    /// Each client over each transport. They are opened one by one, when their turn comes.
    pub(crate) const ALL: [&str; 4] = ["python_http", "python_stdio", "rmcp_http", "rmcp_stdio"];

    pub(crate) async fn open(which: &str, gate: &Gate) -> Foreign {
        match which {
            "python_http" => {
                Foreign::Python(Box::new(Python::through("http", gate, &["--handshake"])))
            }
            "python_stdio" => {
                Foreign::Python(Box::new(Python::through("stdio", gate, &["--handshake"])))
            }
            "rmcp_http" => Foreign::Rmcp(Rmcp::through("http", gate).await),
            "rmcp_stdio" => Foreign::Rmcp(Rmcp::through("stdio", gate).await),
            other => panic!("no client {other}"),
        }
    }

    pub(crate) async fn tool_names(&mut self) -> Vec<String> {
        match self {
            Foreign::Python(python) => names(&python.result(json!({"op": "list_tools"})).await),
            Foreign::Rmcp(rmcp) => {
                let tools = rmcp.service.list_all_tools().await.expect("tools are listed");
                tools.into_iter().map(|tool| tool.name.into_owned()).collect()
            }
        }
    }

    pub(crate) async fn call(&mut self, name: &str, arguments: Value) -> Value {
        match self {
            Foreign::Python(python) => python.call(name, arguments).await,
            Foreign::Rmcp(rmcp) => rmcp.call(name, arguments).await,
        }
    }

    /// Returns the JSON document in the first text block of a call's result.
    pub(crate) async fn document(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.call(name, arguments).await;
        serde_json::from_str(text(&result)).unwrap_or_else(|error| panic!("{error}: {result}"))
    }

    /// Calls a server's tool through `call_tool_<operation>`.
    pub(crate) async fn use_tool(&mut self, operation: &str, tool: &str, args: Value) -> Value {
        let arguments =
            json!({"name": tool, "args": args, "intent": {"operation_type": operation}});
        self.call(&format!("call_tool_{operation}"), arguments).await
    }

    /// Closes the session as the client's own library does.
    pub(crate) async fn end(self) {
        match self {
            Foreign::Python(python) => python.end().await,
            Foreign::Rmcp(rmcp) => drop(rmcp.service.cancel().await.expect("rmcp ends well")),
        }
    }
}

fn names(list: &Value) -> Vec<String> {
    let tools = list["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// A running `client.py`.
pub(crate) struct Python {
    child: Child,
    input: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Python {
    /// Connects through the gate; `door` is `http` or `stdio`.
    pub(crate) fn through(door: &str, gate: &Gate, options: &[&str]) -> Python {
        let mut client = Python::command(gate.dir.path(), options);
        match door {
            "http" => client
                .args(["http", &format!("http://{}/mcp", gate.address)])
                .arg(gate.secret("agent-token")),
            "stdio" => client.args(["stdio", "--", env!("CARGO_BIN_EXE_countersign"), "mcp"]),
            other => panic!("no door {other}"),
        };
        Python::spawn(&mut client)
    }

    /// Connects to the server of this config entry, without a gate.
    pub(crate) fn direct(dir: &Path, server: &Value) -> Python {
        let mut client = Python::command(dir, &["--handshake"]);
        // The server's own output goes there too.
        client.stderr(Stdio::null());
        if let Some(url) = server["url"].as_str() {
            return Python::spawn(client.args(["http", url]));
        }
        client.args(["stdio", "--", server["command"].as_str().unwrap()]);
        for arg in server["args"].as_array().into_iter().flatten() {
            client.arg(arg.as_str().unwrap());
        }
        for (name, value) in server["env"].as_object().into_iter().flatten() {
            client.env(name, value.as_str().unwrap());
        }
        Python::spawn(&mut client)
    }

    fn command(dir: &Path, options: &[&str]) -> Command {
        let mut client = program::command(&foreign::program("python-mcp2/bin/python"), dir);
        client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/peers/client.py"));
        // The test reads the trace afterwards.
        if options.contains(&"--trace") {
            let trace = std::fs::File::create(dir.join("trace")).unwrap();
            client.stderr(trace);
        }
        client.args(options);
        client
    }

    fn spawn(command: &mut Command) -> Python {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the Python client starts: run ./test --setup");
        let input = child.stdin.take().expect("stdin is piped");
        let output = child.stdout.take().expect("stdout is piped");
        Python { child, input, answers: BufReader::new(output).lines() }
    }

    /// Returns the whole response to an operation.
    pub(crate) async fn perform(&mut self, operation: Value) -> Value {
        let line = format!("{operation}\n");
        self.input.write_all(line.as_bytes()).await.expect("the client reads");
        let reading = tokio::time::timeout(PYTHON_PATIENCE, self.answers.next_line());
        let answer = reading.await.expect("the client answers in time").expect("a line");
        serde_json::from_str(&answer.expect("the client goes on")).expect("the line is JSON")
    }

    /// Returns the result of an operation that the SDK must accept too.
    pub(crate) async fn result(&mut self, operation: Value) -> Value {
        let mut answer = self.perform(operation.clone()).await;
        assert_eq!(answer.get("client_error"), None, "{operation}: {answer}");
        assert!(answer.get("result").is_some(), "{operation}: {answer}");
        answer["result"].take()
    }

    pub(crate) async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.result(json!({"op": "call", "name": name, "arguments": arguments})).await
    }

    /// Closes the session; the client must exit without a signal and with success.
    pub(crate) async fn end(mut self) {
        drop(self.input);
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        assert_eq!(status.expect("the client ends").unwrap().code(), Some(0));
    }
}

/// Returns the messages that `python --trace` logged in this gate's folder: `(sent or received,
/// message)`.
pub(crate) fn trace(gate: &Gate) -> Vec<(bool, Value)> {
    let text = std::fs::read_to_string(gate.dir.path().join("trace")).unwrap();
    text.lines()
        .filter_map(|line| {
            let message = serde_json::from_str(line.get(3..)?).ok()?;
            Some((line.starts_with("->"), message))
        })
        .collect()
}

pub(crate) struct Rmcp {
    pub(crate) service: RunningService<RoleClient, Listener>,
    pub(crate) progress: mpsc::UnboundedReceiver<ProgressNotificationParam>,
}

/// Passes on the progress that `rmcp` receives.
pub(crate) struct Listener {
    progress: mpsc::UnboundedSender<ProgressNotificationParam>,
}

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let _ = self.progress.send(params);
    }
}

impl Rmcp {
    /// Connects through the gate; `door` is `http` or `stdio`.
    pub(crate) async fn through(door: &str, gate: &Gate) -> Rmcp {
        let (sender, progress) = mpsc::unbounded_channel();
        let listener = Listener { progress: sender };
        let service = match door {
            "http" => listener.serve(Rmcp::http(gate)).await,
            "stdio" => listener.serve(Rmcp::stdio(gate)).await,
            other => panic!("no door {other}"),
        };
        Rmcp { service: service.expect("the gate greets rmcp"), progress }
    }

    fn http(gate: &Gate) -> StreamableHttpClientTransport<reqwest::Client> {
        let url = format!("http://{}/mcp", gate.address);
        let config = StreamableHttpClientTransportConfig::with_uri(url)
            .auth_header(gate.secret("agent-token"));
        StreamableHttpClientTransport::with_client(http_client(), config)
    }

    fn stdio(gate: &Gate) -> TokioChildProcess {
        let mut command = program::program(gate.dir.path());
        command.arg("mcp");
        TokioChildProcess::new(command).expect("the program starts")
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Value {
        let calling = self.service.call_tool(params(name, arguments));
        let result = tokio::time::timeout(PATIENCE, calling).await.expect("an answer in time");
        serde_json::to_value(result.expect("a result")).unwrap()
    }

    /// Starts a call that can be cancelled, and whose progress token is known.
    pub(crate) async fn begin(&self, name: &str, arguments: Value) -> RequestHandle<RoleClient> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params(name, arguments)));
        let options = PeerRequestOptions::with_timeout(PATIENCE + Duration::from_secs(30));
        self.service.send_cancellable_request(request, options).await.expect("it is sent")
    }
}

fn params(name: &str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    CallToolRequestParams::new(name.to_owned()).with_arguments(arguments)
}
