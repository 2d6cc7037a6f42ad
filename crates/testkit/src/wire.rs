//! A conversation over a pair of byte streams, such as a program's stdin and stdout, as text: exactly
//! the lines in the test.

use std::process::{ExitStatus, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use crate::client::PATIENCE;

pub struct Wire {
    child: Option<Child>,
    input: Option<Box<dyn AsyncWrite + Unpin + Send>>,
    output: BufReader<Box<dyn AsyncRead + Unpin + Send>>,
}

impl Wire {
    pub fn open(mut command: Command) -> Wire {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        Wire { child: Some(child), ..Wire::over(stdout, stdin) }
    }

    /// Talks to whatever is at the other end of these streams.
    pub fn over(
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Wire {
        let output = BufReader::new(Box::new(reader) as Box<_>);
        Wire { child: None, input: Some(Box::new(writer)), output }
    }

    pub async fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the input is open");
        let line = format!("{line}\n");
        input.write_all(line.as_bytes()).await.expect("the other side reads its input");
        input.flush().await.expect("the other side reads its input");
    }

    /// Returns the next line without its end; empty when the other side has closed its output.
    pub async fn hear(&mut self) -> String {
        let mut line = String::new();
        let reading = self.output.read_line(&mut line);
        tokio::time::timeout(PATIENCE, reading)
            .await
            .expect("the other side answers in time")
            .expect("a line");
        line.trim_end_matches('\n').to_owned()
    }

    /// Returns the next line that matches, skipping those before it.
    pub async fn receive_until(&mut self, fits: impl Fn(&Value) -> bool) -> String {
        loop {
            let line = self.hear().await;
            assert_ne!(line, "", "it ended");
            if serde_json::from_str(&line).is_ok_and(|message| fits(&message)) {
                return line;
            }
        }
    }

    pub async fn answer(&mut self, id: impl Into<Value>) -> String {
        let id = id.into();
        self.receive_until(|message| message["id"] == id && message.get("method").is_none()).await
    }

    /// Sends a request and returns the response to it.
    pub async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        let id = id.into();
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(&request.to_string()).await;
        serde_json::from_str(&self.answer(id).await).expect("an answer is JSON")
    }

    /// Calls a tool and returns the response.
    pub async fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
        self.ask(id, "tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Initializes an MCP server and returns its response.
    pub async fn greet(&mut self) -> String {
        self.say(GREETING).await;
        let welcome = self.answer("hello").await;
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        welcome
    }

    pub fn close(&mut self) {
        self.input = None;
    }

    pub async fn ended(&mut self) -> ExitStatus {
        let child = self.child.as_mut().expect("a program");
        let ending = tokio::time::timeout(PATIENCE, child.wait());
        ending.await.expect("the program exits in time").expect("an exit status")
    }

    pub fn pid(&self) -> i32 {
        let child = self.child.as_ref().expect("a program");
        child.id().expect("the program is running").cast_signed()
    }
}

const GREETING: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"wire","version":"1"}}}"#;
