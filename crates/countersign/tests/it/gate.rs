//! A running `countersign serve` in a home of its own, and the ways in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mcp::http::client::Endpoint;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::client::{Answers, Client, PATIENCE};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

pub(crate) struct Gate {
    pub(crate) dir: TempDir,
    pub(crate) address: String,
    child: Child,
}

/// The program, in a home of its own.
pub(crate) fn program(home: &Path) -> Command {
    command(Path::new(env!("CARGO_BIN_EXE_countersign")), home)
}

/// A command that writes nothing into the person's own folders and inherits no setting.
pub(crate) fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    let is_telemetry = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("OTEL_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_telemetry(name)) {
        command.env_remove(name);
    }
    command
        .env_remove("COUNTERSIGN_CONFIG")
        .env_remove("COUNTERSIGN_API_KEY")
        .env("COUNTERSIGN_HOME", home.join("home"))
        .env("XDG_CONFIG_HOME", home.join("xdg-config"))
        .env("HOME", home)
        .current_dir(home)
        .kill_on_drop(true);
    command
}

/// Runs the program to its end.
pub(crate) async fn run(dir: &Path, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    let running = program(dir).args(args).stdin(Stdio::null()).output();
    tokio::time::timeout(PATIENCE, running).await.expect("it ends").expect("it runs")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("stdout is UTF-8")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("stderr is UTF-8")
}

/// The scripted server's program.
pub(crate) fn scripted_upstream() -> PathBuf {
    example("scripted_upstream")
}

/// The path of an example. Cargo builds examples with `cargo test`, but not with `--test it`: then
/// they are built here.
pub(crate) fn example(name: &str) -> PathBuf {
    let deps = std::env::current_exe().expect("the test has a path");
    let target = deps.ancestors().nth(2).expect("target/<profile>/deps/it");
    let program = target.join("examples").join(name);
    if !program.exists() {
        build_examples(target);
    }
    program
}

fn build_examples(target: &Path) {
    static BUILT: std::sync::Once = std::sync::Once::new();
    let profile = match target.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    BUILT.call_once(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = std::process::Command::new(cargo)
            .args(["build", "--offline", "--examples", "--package", "countersign", "--profile"])
            .arg(profile)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.expect("cargo runs").success(), "the examples cannot be built");
    });
}

/// Where `./test --setup` puts the real servers and the foreign client's packages.
pub(crate) fn tools_dir() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    let tools = folder("COUNTERSIGN_TEST_TOOLS")
        .or_else(|| Some(cache()?.join("countersign-test")))
        .expect("HOME is set");
    assert!(tools.is_dir(), "{} is not there: run ./test --setup", tools.display());
    tools
}

/// The same server, which first adds its process id to the file `<name>.pids`.
pub(crate) fn counted(dir: &Path, name: &str, tools: &Value) -> Value {
    let server = scripted(dir, name, tools);
    let note = r#"echo $$ >> "$0"; exec "$@""#;
    let pids = dir.join(format!("{name}.pids"));
    json!({"command": "sh", "args": ["-c", note, pids, server["command"], server["args"][0]]})
}

/// The processes of a counted server, oldest first.
pub(crate) fn pids(dir: &Path, name: &str) -> Vec<i32> {
    let text = std::fs::read_to_string(dir.join(format!("{name}.pids"))).unwrap_or_default();
    text.lines().map(|pid| pid.parse().expect("a pid")).collect()
}

/// Waits until the process is gone.
pub(crate) async fn ended(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
    eventually(|| async { rustix::process::test_kill_process(pid).is_err().then_some(()) }).await;
}

/// A config entry for a scripted stdio server with these tools.
pub(crate) fn scripted(dir: &Path, name: &str, tools: &Value) -> Value {
    let file = dir.join(format!("{name}.tools.json"));
    std::fs::write(&file, tools.to_string()).expect("the tools can be written");
    json!({"command": scripted_upstream(), "args": [file]})
}

/// The same server, whose new tools nobody has to approve: its list changes on purpose.
pub(crate) fn accepting_new(mut entry: Value) -> Value {
    entry["auto_approve"] = "new".into();
    entry
}

impl Gate {
    /// Starts with the servers that `servers` makes, and other keys of the config.
    pub(crate) async fn start(servers: impl FnOnce(&Path) -> Value, mut config: Value) -> Gate {
        let dir = tempfile::tempdir().expect("a temporary folder");
        config["mcpServers"] = servers(dir.path());
        let file = dir.path().join("config.json");
        std::fs::write(&file, config.to_string()).expect("the config can be written");
        Gate::open(dir).await
    }

    /// Starts with the `config.json` that lies in the folder.
    pub(crate) async fn open(dir: TempDir) -> Gate {
        let file = dir.path().join("config.json");
        let file = file.to_str().expect("the path is UTF-8").to_owned();
        let (child, ready) = serve(dir.path(), &["--config", &file]).await;
        let address = ready["listen"].as_str().expect("the ready line has an address").to_owned();
        Gate { dir, address, child }
    }

    /// Starts with one scripted server named `s`.
    pub(crate) async fn scripted(tools: Value) -> Gate {
        Gate::start(|dir| json!({"s": scripted(dir, "s", &tools)}), json!({})).await
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn secret(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.home().join(name)).expect("the secret is there");
        text.trim().to_owned()
    }

    /// A client over streamable HTTP.
    pub(crate) async fn http(&self) -> Client {
        self.http_with(json!({}), vec![]).await
    }

    pub(crate) async fn http_with(&self, capabilities: Value, answers: Answers) -> Client {
        self.http_at_with("/mcp", capabilities, answers).await
    }

    /// A client of another view, such as `/mcp/all`.
    pub(crate) async fn http_at(&self, path: &str) -> Client {
        self.http_at_with(path, json!({}), vec![]).await
    }

    pub(crate) async fn http_at_with(
        &self,
        path: &str,
        capabilities: Value,
        answers: Answers,
    ) -> Client {
        self.http_as(&self.secret("agent-token"), path, capabilities, answers).await
    }

    /// A client that shows this token.
    pub(crate) async fn http_as(
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

    /// A client of `countersign mcp`, which finds the running gate.
    pub(crate) async fn stdio(&self) -> Client {
        self.stdio_with(json!({}), vec![]).await
    }

    pub(crate) async fn stdio_with(&self, capabilities: Value, answers: Answers) -> Client {
        stdio_client(self.dir.path(), &[], capabilities, answers).await
    }

    /// A client of `countersign mcp --server`.
    pub(crate) async fn stdio_server(&self, server: &str) -> Client {
        stdio_client(self.dir.path(), &["--server", server], json!({}), vec![]).await
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.dir.path().join("config.json")
    }

    /// Rewrites the config file as an editor does: a new file takes the place of the old one.
    pub(crate) fn rewrite(&self, change: impl FnOnce(&mut Value)) {
        let text = std::fs::read_to_string(self.config_file()).expect("the config can be read");
        let mut config = serde_json::from_str(&text).expect("the config is JSON");
        change(&mut config);
        self.rewrite_text(&config.to_string());
    }

    pub(crate) fn rewrite_text(&self, text: &str) {
        let new = self.dir.path().join("config.json.new");
        std::fs::write(&new, text).expect("the config can be written");
        std::fs::rename(new, self.config_file()).expect("the config can be replaced");
    }

    /// A server's entry, as soon as it fits.
    pub(crate) async fn server_when(&self, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/api/v1/servers/{name}");
        eventually(|| async {
            let (_, entry) = self.rest(reqwest::Method::GET, &path, None).await;
            fits(&entry).then_some(entry)
        })
        .await
    }

    pub(crate) async fn ready(&self, name: &str) -> Value {
        self.server_when(name, |entry| entry["state"] == "ready").await
    }

    pub(crate) async fn rest(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let token = self.secret("api-key");
        rest(&self.address, &token, method, path, body).await
    }

    pub(crate) async fn cli(&self, args: &[&str]) -> Output {
        run(self.dir.path(), args).await
    }

    pub(crate) fn pid(&self) -> Pid {
        let pid = self.child.id().expect("it runs").cast_signed();
        Pid::from_raw(pid).expect("a pid")
    }

    /// Ends the process as a crash does.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.expect("it can be killed");
    }

    /// Starts again in the same home, on another port.
    pub(crate) async fn restart(&mut self) {
        let file = self.config_file();
        let file = file.to_str().expect("the path is UTF-8");
        let (child, ready) = serve(self.dir.path(), &["--config", file]).await;
        self.address = ready["listen"].as_str().expect("it has an address").to_owned();
        self.child = child;
    }

    /// Asks the gate to stop, and waits until it has.
    pub(crate) async fn end(&mut self) -> Option<i32> {
        rustix::process::kill_process(self.pid(), Signal::TERM).expect("it can be told");
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends");
        status.expect("it has a status").code()
    }

    /// Asks the gate to stop, and gives its exit code.
    pub(crate) async fn stop(mut self) -> Option<i32> {
        self.end().await
    }
}

pub(crate) async fn rest(
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

pub(crate) fn http_client() -> reqwest::Client {
    // reqwest is built without a TLS provider of its own; none is needed on loopback.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

/// Starts `serve` on a free port and waits for its ready line.
pub(crate) async fn serve(dir: &Path, args: &[&str]) -> (Child, Value) {
    let mut child = program(dir)
        .args(["serve", "--listen", "127.0.0.1:0", "-o", "json"])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut errors = child.stderr.take().expect("stderr is piped");
    let mut line = String::new();
    let reading = stdout.read_line(&mut line);
    tokio::time::timeout(PATIENCE, reading).await.expect("it gets ready").expect("a line");
    if line.is_empty() {
        let mut words = String::new();
        let _ = errors.read_to_string(&mut words).await;
        panic!("serve ended: {words}");
    }
    // A full pipe would stop the program.
    tokio::spawn(async move {
        let _ = tokio::io::copy(&mut errors, &mut tokio::io::sink()).await;
    });
    (child, serde_json::from_str(&line).expect("the ready line is JSON"))
}

/// The beginning of what a child says.
pub(crate) async fn first_lines(child: &mut Child, count: usize) -> String {
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut told = String::new();
    for _ in 0..count {
        let reading = stdout.read_line(&mut told);
        tokio::time::timeout(PATIENCE, reading).await.expect("it speaks").expect("a line");
    }
    told
}

/// A client of `countersign mcp` in this folder.
pub(crate) async fn stdio_client(
    dir: &Path,
    args: &[&str],
    capabilities: Value,
    answers: Answers,
) -> Client {
    let child = program(dir)
        .arg("mcp")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the program starts");
    client_of(child, capabilities, answers).await
}

/// A client on a child's pipes; the child ends with it.
pub(crate) async fn client_of(mut child: Child, capabilities: Value, answers: Answers) -> Client {
    let stdout = child.stdout.take().expect("stdout is piped");
    let stdin = child.stdin.take().expect("stdin is piped");
    Client::greet(capabilities, answers, |service| {
        let peer = mcp::lines::connect(stdout, stdin, service);
        let ending = peer.clone();
        tokio::spawn(async move {
            ending.closed().await;
            drop(child);
        });
        peer
    })
    .await
}

/// Asks again until the answer fits; for things that happen soon, without a notification.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(look: impl FnMut() -> F) -> T {
    eventually_within(PATIENCE, look).await
}

pub(crate) async fn eventually_within<T, F: Future<Output = Option<T>>>(
    patience: Duration,
    mut look: impl FnMut() -> F,
) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(patience, looking).await.expect("it happens in time")
}

/// Both ways in, so that a behaviour is shown on each.
pub(crate) async fn both(gate: &Gate) -> [(&'static str, Arc<Client>); 2] {
    [("stdio", Arc::new(gate.stdio().await)), ("http", Arc::new(gate.http().await))]
}
