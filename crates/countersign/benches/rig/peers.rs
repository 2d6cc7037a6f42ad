//! The other gateways and proxies that are installed in one folder: how each is started in
//! front of the echoing upstream. docs/performance.md says how they are installed.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::load::{LoadClient, Target, ToolCall};

/// Enough for a start with migrations of a database.
const START_WAIT: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
const END_WAIT: Duration = Duration::from_secs(5);

/// Lines of a peer's output that are kept as evidence.
const EVIDENCE_LINES: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    McpProxy,
    FastMcp,
    ContextForge,
    Supergateway,
}

const PROGRAMS: [(Program, &str, &str); 4] = [
    (Program::McpProxy, "mcp-proxy", "bin/mcp-proxy"),
    (Program::FastMcp, "fastmcp", "fastmcp/bin/fastmcp"),
    (Program::ContextForge, "mcp-contextforge-gateway", "contextforge/bin/mcpgateway"),
    (Program::Supergateway, "supergateway", "node_modules/.bin/supergateway"),
];

/// A peer that was looked for.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) outcome: Result<ServingPeer, Evidence>,
}

/// The reason why a peer cannot be measured, and the end of its output.
pub(crate) struct Evidence {
    pub(crate) reason: String,
    pub(crate) output: Vec<String>,
}

pub(crate) struct ServingPeer {
    pub(crate) target: Target,
    pub(crate) process: PeerProcess,
    _dir: TempDir,
}

/// A process with its children, which end with it.
pub(crate) struct PeerProcess {
    child: Child,
    output: PathBuf,
}

/// Starts each peer of a folder in front of the upstream, until a call has come through.
pub(crate) async fn start_all(folder: &Path, upstream: &str) -> Vec<Peer> {
    let mut peers = Vec::new();
    for (program, name, place) in PROGRAMS {
        let file = folder.join(place);
        let outcome = match file.exists() {
            true => start(program, &file, upstream).await,
            false => {
                let reason = format!("{place} is not in the folder of peers");
                Err(Evidence { reason, output: Vec::new() })
            }
        };
        peers.push(Peer { name, outcome });
    }
    peers
}

async fn start(program: Program, file: &Path, upstream: &str) -> Result<ServingPeer, Evidence> {
    let address = free_address();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let secret = random_secret();
    let launch = Launch { file, dir: &dir, address: &address, upstream, secret: &secret };
    let mut command = command(program, &launch);
    let log = File::create(dir.path().join("output")).expect("a file");
    command
        .current_dir(dir.path())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a file"))
        .stderr(log);
    let evidence = |reason: String, output| Err(Evidence { reason, output });
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return evidence(error.to_string(), Vec::new()),
    };
    let started = Instant::now();
    let mut entry = Entry::default();
    let mut process = PeerProcess { child, output: dir.path().join("output") };
    loop {
        let served = match program {
            Program::ContextForge if !entry.is_registered => register(&launch, &mut entry).await,
            _ => find_tool(&address, &entry.token).await.map(Some),
        };
        match served {
            Ok(None) => {}
            Ok(Some(target)) => return Ok(ServingPeer { target, process, _dir: dir }),
            Err(_) if process.has_ended() => {
                return evidence("it ended".to_owned(), process.output());
            }
            Err(fault) if started.elapsed() > START_WAIT => {
                return evidence(fault, process.output());
            }
            Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}

/// The circumstances of a start.
struct Launch<'a> {
    file: &'a Path,
    dir: &'a TempDir,
    address: &'a str,
    upstream: &'a str,
    /// Signs the tokens of a gateway that needs them.
    secret: &'a str,
}

fn command(program: Program, launch: &Launch<'_>) -> Command {
    let Launch { file, dir, address, upstream, secret } = *launch;
    let port = address.rsplit(':').next().expect("an address has a port");
    let url = format!("http://{upstream}/echo");
    let own = std::env::current_exe().expect("a program has a path");
    // A peer ends with the measurement, however that ends.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).arg(file);
    match program {
        Program::McpProxy => {
            let config = dir.path().join("proxy.toml");
            let text = format!(
                "[proxy]\nname = \"bench\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n\
                 [[backends]]\nname = \"echo\"\ntransport = \"http\"\nurl = \"{url}\"\n"
            );
            fs::write(&config, text).expect("the config can be written");
            command.arg("--config").arg(config).env("RUST_LOG", "error");
        }
        Program::FastMcp => {
            command.args(["run", &url, "--transport", "http", "--port", port]);
            command.args(["--no-banner", "--log-level", "ERROR"]);
        }
        Program::ContextForge => {
            command.args(["--host", "127.0.0.1", "--port", port, "--no-access-log"]);
            command.envs(context_forge_settings(dir, secret));
        }
        Program::Supergateway => {
            let server = format!("{} stdio", own.display());
            command.args(["--stdio", &server, "--outputTransport", "streamableHttp"]);
            command.args(["--stateful", "--port", port, "--logLevel", "none"]);
        }
    }
    command
}

fn context_forge_settings(dir: &TempDir, secret: &str) -> [(&'static str, String); 14] {
    let database = format!("sqlite:///{}/gateway.db", dir.path().display());
    [
        ("DATABASE_URL", database),
        ("AUTH_REQUIRED", "false".to_owned()),
        ("MCP_REQUIRE_AUTH", "false".to_owned()),
        ("ALLOW_UNAUTHENTICATED_ADMIN", "true".to_owned()),
        ("MCPGATEWAY_UI_ENABLED", "false".to_owned()),
        ("LOG_LEVEL", "ERROR".to_owned()),
        ("RATE_LIMITING_ENABLED", "false".to_owned()),
        ("TOOL_RATE_LIMIT", "1000000000".to_owned()),
        ("SSRF_ALLOW_LOCALHOST", "true".to_owned()),
        ("SSRF_ALLOW_PRIVATE_NETWORKS", "true".to_owned()),
        ("JWT_SECRET_KEY", secret.to_owned()),
        ("AUTH_ENCRYPTION_SECRET", random_secret()),
        ("PLATFORM_ADMIN_PASSWORD", random_secret()),
        ("BASIC_AUTH_PASSWORD", random_secret()),
    ]
}

/// The way into a gateway that gets its servers only while it runs.
#[derive(Default)]
struct Entry {
    token: String,
    is_registered: bool,
}

/// Makes a gateway that has no config file know the upstream.
async fn register(launch: &Launch<'_>, entry: &mut Entry) -> Result<Option<Target>, String> {
    TcpStream::connect(launch.address).await.map_err(|error| error.to_string())?;
    if entry.token.is_empty() {
        let made = Command::new(launch.file.with_file_name("python"))
            .args(["-m", "mcpgateway.utils.create_jwt_token", "--admin", "--exp", "600"])
            .args(["--username", "admin@example.com", "--secret", launch.secret])
            .current_dir(launch.dir.path())
            .output()
            .map_err(|error| error.to_string())?;
        let made = String::from_utf8_lossy(&made.stdout).into_owned();
        entry.token = made.lines().last().unwrap_or_default().to_owned();
    }
    let url = format!("http://{}/echo", launch.upstream);
    let server = json!({"name": "echo", "url": url, "transport": "STREAMABLEHTTP"});
    let servers = target(launch.address, "/gateways", &entry.token, "");
    match LoadClient::post_document(&servers, server.to_string()).await {
        // An attempt whose answer was lost may have succeeded.
        Err(fault) if !fault.starts_with("409 ") => Err(fault),
        _ => {
            entry.is_registered = true;
            Ok(None)
        }
    }
}

fn random_secret() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes.map(|byte| format!("{byte:02x}")).concat()
}

/// Finds the reading tool under whatever name the peer gives it, and calls it once.
async fn find_tool(address: &str, token: &str) -> Result<Target, String> {
    let mut fault = String::new();
    for path in ["/mcp", "/"] {
        match try_path(address, path, token).await {
            Ok(target) => return Ok(target),
            Err(error) => fault = format!("{path}: {error}"),
        }
    }
    Err(fault)
}

async fn try_path(address: &str, path: &str, token: &str) -> Result<Target, String> {
    let mut client = LoadClient::greet(&target(address, path, token, "")).await?;
    let tools = client.tools().await?;
    let tool = tools.iter().find(|name| name.replace('-', "_").ends_with("echo_read"));
    let tool = tool.ok_or_else(|| format!("no tool echo_read among {tools:?}"))?;
    let target = target(address, path, token, tool);
    client.call(&target.tool, 100).await?;
    Ok(target)
}

fn target(address: &str, path: &str, token: &str, tool: &str) -> Target {
    Target {
        address: address.to_owned(),
        path: path.to_owned(),
        token: token.to_owned(),
        tool: ToolCall::Named(tool.to_owned()),
    }
}

/// Returns an address that nothing listens on.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").to_string()
}

impl PeerProcess {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Returns the last lines that it wrote.
    pub(crate) fn output(&self) -> Vec<String> {
        let text = fs::read(&self.output).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.len().saturating_sub(EVIDENCE_LINES);
        lines[last..].iter().map(|line| line.chars().take(300).collect()).collect()
    }
}

impl Drop for PeerProcess {
    #[allow(clippy::disallowed_methods, reason = "a process that ignores its end has no event")]
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::TERM);
        let asked = Instant::now();
        while !self.has_ended() && asked.elapsed() < END_WAIT {
            std::thread::sleep(LOOK_AGAIN);
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}
