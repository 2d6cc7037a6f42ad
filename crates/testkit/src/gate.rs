//! A running `countersign serve` in its own home, and clients for it.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};

use mcp::http::client::Endpoint;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};

use crate::client::{Answers, Client, PATIENCE};
use crate::program::{program, run, stdio_client};
use crate::upstream::scripted;
use crate::wait::eventually;

pub struct Gate {
    pub dir: TempDir,
    pub address: String,
    serving: Serving,
}

/// A process of `serve` that has reported that it is ready.
pub struct Serving {
    pub child: Child,
    /// The ready line.
    pub ready: Value,
    log: Arc<Mutex<String>>,
}

impl Serving {
    /// Runs the product with `serve` on a free port; `command` may have arguments and variables.
    pub async fn start(mut command: Command) -> Serving {
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "-o", "json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let log = Arc::<Mutex<String>>::default();
        let errors = child.stderr.take().expect("stderr is piped");
        let reading_log = tokio::spawn(keep(errors, log.clone()));
        let mut line = String::new();
        let reading = stdout.read_line(&mut line);
        tokio::time::timeout(PATIENCE, reading)
            .await
            .expect("the gate becomes ready in time")
            .expect("a line");
        if line.is_empty() {
            let _ = reading_log.await;
            panic!("serve exited: {}", log.lock().unwrap());
        }
        let ready = serde_json::from_str(&line).expect("the ready line is JSON");
        Serving { child, ready, log }
    }

    fn address(&self) -> String {
        self.ready["listen"].as_str().expect("the ready line has an address").to_owned()
    }
}

/// Reads stderr to the end: a full pipe would block the program.
async fn keep(errors: ChildStderr, log: Arc<Mutex<String>>) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    while errors.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0) {
        log.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
}

impl Gate {
    /// Starts with the servers that `servers` makes, and other keys of the config.
    pub async fn start(servers: impl FnOnce(&Path) -> Value, mut config: Value) -> Gate {
        let dir = tempfile::tempdir().expect("a temporary folder");
        config["mcpServers"] = servers(dir.path());
        // Vectors are made in the background: with them, an answer depends on its time.
        if config.get("search").is_none() {
            config["search"] = json!({"learned": false});
        }
        let file = dir.path().join("config.json");
        std::fs::write(&file, config.to_string()).expect("the config can be written");
        Gate::open(dir).await
    }

    /// Starts with the `config.json` in the folder.
    pub async fn open(dir: TempDir) -> Gate {
        Gate::open_with(dir, |command| command).await
    }

    /// Starts the same way, with the arguments and variables that `change` adds.
    pub async fn open_with(
        dir: TempDir,
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Gate {
        let mut command = configured(dir.path());
        change(&mut command);
        let serving = Serving::start(command).await;
        Gate { dir, address: serving.address(), serving }
    }

    /// Starts with one scripted server named `s`.
    pub async fn scripted(tools: Value) -> Gate {
        Gate::start(|dir| json!({"s": scripted(dir, "s", &tools)}), json!({})).await
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn secret(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.home().join(name)).expect("the secret can be read");
        text.trim().to_owned()
    }

    /// Returns everything logged so far.
    pub fn log(&self) -> String {
        self.serving.log.lock().unwrap().clone()
    }

    /// Waits for the first line of the log with these words.
    pub async fn log_line(&self, words: &str) -> String {
        eventually(|| async {
            self.log().lines().find(|line| line.contains(words)).map(str::to_owned)
        })
        .await
    }

    /// Connects a client over streamable HTTP.
    pub async fn http(&self) -> Client {
        self.http_with(json!({}), vec![]).await
    }

    pub async fn http_with(&self, capabilities: Value, answers: Answers) -> Client {
        self.http_at_with("/mcp", capabilities, answers).await
    }

    /// Connects a client to another view, such as `/mcp/all`.
    pub async fn http_at(&self, path: &str) -> Client {
        self.http_at_with(path, json!({}), vec![]).await
    }

    pub async fn http_at_with(&self, path: &str, capabilities: Value, answers: Answers) -> Client {
        self.http_as(&self.secret("agent-token"), path, capabilities, answers).await
    }

    /// Connects a client that sends this token.
    pub async fn http_as(
        &self,
        token: &str,
        path: &str,
        capabilities: Value,
        answers: Answers,
    ) -> Client {
        let mut endpoint = Endpoint::new(format!("http://{}{path}", self.address));
        let bearer = format!("Bearer {token}");
        let value = reqwest::header::HeaderValue::from_str(&bearer).expect("a plain header");
        endpoint.headers.push((reqwest::header::AUTHORIZATION, value));
        Client::greet(capabilities, answers, |service| {
            mcp::http::client::connect(endpoint, service).expect("a plain url")
        })
        .await
    }

    /// Connects a client through `countersign mcp`, which finds the running gate.
    pub async fn stdio(&self) -> Client {
        self.stdio_with(json!({}), vec![]).await
    }

    pub async fn stdio_with(&self, capabilities: Value, answers: Answers) -> Client {
        stdio_client(self.dir.path(), &[], capabilities, answers).await
    }

    /// Connects a client through `countersign mcp --server`.
    pub async fn stdio_server(&self, server: &str) -> Client {
        stdio_client(self.dir.path(), &["--server", server], json!({}), vec![]).await
    }

    pub fn config_file(&self) -> PathBuf {
        self.dir.path().join("config.json")
    }

    /// Rewrites the config file as an editor does: a new file replaces the old one.
    pub fn rewrite(&self, change: impl FnOnce(&mut Value)) {
        let text = std::fs::read_to_string(self.config_file()).expect("the config can be read");
        let mut config = serde_json::from_str(&text).expect("the config is JSON");
        change(&mut config);
        self.rewrite_text(&config.to_string());
    }

    pub fn rewrite_text(&self, text: &str) {
        let new = self.dir.path().join("config.json.new");
        std::fs::write(&new, text).expect("the config can be written");
        std::fs::rename(new, self.config_file()).expect("the config can be replaced");
    }

    /// Waits until a server's entry matches, and returns it.
    pub async fn server_when(&self, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/api/v1/servers/{name}");
        eventually(|| async {
            let (_, entry) = self.rest(reqwest::Method::GET, &path, None).await;
            fits(&entry).then_some(entry)
        })
        .await
    }

    pub async fn ready(&self, name: &str) -> Value {
        self.server_when(name, |entry| entry["state"] == "ready").await
    }

    pub async fn rest(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let token = self.secret("api-key");
        rest(&self.address, &token, method, path, body).await
    }

    pub async fn cli(&self, args: &[&str]) -> Output {
        run(self.dir.path(), args).await
    }

    pub fn pid(&self) -> Pid {
        let pid = self.serving.child.id().expect("the gate is running").cast_signed();
        Pid::from_raw(pid).expect("a pid")
    }

    /// Kills the process, as in a crash.
    pub async fn kill(&mut self) {
        self.serving.child.kill().await.expect("the gate can be killed");
    }

    /// Starts again in the same home, on another port.
    pub async fn restart(&mut self) {
        self.serving = Serving::start(configured(self.dir.path())).await;
        self.address = self.serving.address();
    }

    /// Asks the gate to stop, waits for it, and returns its exit code.
    pub async fn end(&mut self) -> Option<i32> {
        rustix::process::kill_process(self.pid(), Signal::TERM).expect("the gate can be signalled");
        let ending = tokio::time::timeout(PATIENCE, self.serving.child.wait());
        ending.await.expect("the gate exits in time").expect("an exit status").code()
    }

    /// Stops the gate the same way, and removes its folder.
    pub async fn stop(mut self) -> Option<i32> {
        self.end().await
    }
}

/// Returns the product's command with the `config.json` in the folder.
fn configured(dir: &Path) -> Command {
    let mut command = program(dir);
    command.arg("--config").arg(dir.join("config.json"));
    command
}

/// Makes a request of the REST API and returns the status and the body.
pub async fn rest(
    address: &str,
    token: &str,
    method: reqwest::Method,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let mut request = http_client().request(method, format!("http://{address}{path}"));
    request = request.bearer_auth(token);
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let response = request.send().await.expect("the gate answers");
    let status = response.status().as_u16();
    let text = response.text().await.expect("the answer is text");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

pub fn http_client() -> reqwest::Client {
    // Nothing on loopback needs TLS, and reading the machine's certificates takes longer than a
    // request.
    client_builder().tls_certs_only([]).build().expect("a client")
}

/// Returns a builder of clients that go to loopback.
pub fn client_builder() -> reqwest::ClientBuilder {
    // reqwest is built without a TLS provider.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    reqwest::Client::builder().no_proxy()
}

/// Connects over both transports, so that a behaviour is shown on each.
pub async fn both(gate: &Gate) -> [(&'static str, Arc<Client>); 2] {
    [("stdio", Arc::new(gate.stdio().await)), ("http", Arc::new(gate.http().await))]
}
