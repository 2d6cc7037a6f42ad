//! Probes an installed program before its first isolated step: starts it once, isolated, with a
//! model on loopback, in a home full of bait, and looks at the tools of its first request. The
//! result is kept, by the hash of the program.

mod bait;
mod endpoint;
mod record;

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use mcp::server::Server;
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::endpoint::Endpoint;
use self::record::{Finding, Records};
use crate::agent::detect::{ProbeNotice, Search};
use crate::agent::error::AgentError;
use crate::agent::installed::InstalledAgent;
use crate::agent::isolation::Isolation;
use crate::agent::person::Person;
use crate::agent::program::Provider;
use crate::agent::reads::ReadTable;
use crate::agent::request::{AgentRequest, AgentServer, AgentTools};
use crate::agent::stream::LINE_BYTES_MAX;
use crate::agent::{Launch, offered, prepare};
use crate::process::{self, ProcessEnd, ProcessStart};

/// OpenCode takes 15 s on two quiet cores.
const PROBE_TIMEOUT: Duration = Duration::from_secs(180);

/// Tools that a reason names.
const TOOLS_SHOWN: usize = 3;

/// Mentions files as people do; none of them may be read.
const PROMPT: &str = "Say hello to bob@example.com, and mention @bait.txt and @../bait.txt.";

/// Returns the isolation of a program that has every flag that isolation needs. A version of the
/// table that turns out not to be isolated is not what it says it is, which is an error.
pub(super) async fn isolation(
    installed: &InstalledAgent,
    search: &Search<'_>,
) -> Result<Isolation, AgentError> {
    let is_known = ReadTable::of(installed.provider()).knows(installed.version());
    let (Some(gate), Some(folder)) = (search.supervisor, search.probes) else {
        let unknown = || unproven(installed, "it cannot be probed here");
        return Ok(if is_known { Isolation::Full } else { unknown() });
    };
    let finding = match find(installed, gate, folder, search.notice).await {
        Ok(finding) => finding,
        Err(reason) => return Ok(unproven(installed, &reason)),
    };
    match fault(installed, finding) {
        None => Ok(Isolation::Full),
        Some(reason) if is_known => {
            Err(AgentError::CannotIsolate { provider: installed.provider(), reason })
        }
        Some(reason) => Ok(Isolation::Coexistence { reason }),
    }
}

/// Returns the result of an earlier probe, or of one that is made now.
async fn find(
    installed: &InstalledAgent,
    gate: &Path,
    folder: &Path,
    notice: Option<ProbeNotice<'_>>,
) -> Result<Finding, String> {
    let records = Records::new(folder);
    let key =
        record::key(installed).await.map_err(|error| format!("it cannot be read: {error}"))?;
    if let Some(finding) = records.read(&key) {
        return Ok(finding);
    }
    match notice {
        Some(notice) => notice(installed),
        None => {
            let (program, version) = (installed.provider().as_str(), installed.version());
            tracing::info!("checking that {program} {version} is isolated");
        }
    }
    let finding = Probe::run(installed, gate, folder).await?;
    records.write(&key, &finding);
    Ok(finding)
}

/// Describes the way in which a program is not isolated, if it is not.
fn fault(installed: &InstalledAgent, finding: Finding) -> Option<String> {
    let version = installed.version();
    match finding {
        Finding::Isolated => None,
        Finding::Offers(tools) => {
            let shown = tools[..tools.len().min(TOOLS_SHOWN)].join(", ");
            let more = match tools.len().saturating_sub(TOOLS_SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            Some(format!("version {version} still offers {shown}{more}"))
        }
        Finding::Reads(what) => Some(format!("version {version} still {what}")),
    }
}

fn unproven(installed: &InstalledAgent, reason: &str) -> Isolation {
    let version = installed.version();
    let reason = format!("version {version} could not be shown to be isolated: {reason}");
    Isolation::Coexistence { reason }
}

/// One run of a program, in a folder that is removed with it.
struct Probe {
    folder: PathBuf,
}

impl Drop for Probe {
    fn drop(&mut self) {
        // A next probe tries again.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Probe {
    /// Starts the program and returns what it offered, or why it offered nothing.
    async fn run(
        installed: &InstalledAgent,
        gate: &Path,
        folder: &Path,
    ) -> Result<Finding, String> {
        let failed = |error: std::io::Error| format!("the probe failed: {error}");
        let probe = Probe::prepare(folder).map_err(failed)?;
        bait::lay(installed.provider(), &probe.folder).map_err(failed)?;
        let mut endpoint = Endpoint::start().await.map_err(failed)?;
        let mut servers = probe.serve().map_err(failed)?;
        // A path that means the same in another process.
        let server = gate.canonicalize().map_err(failed)?;
        let request = probe.request(installed, &server, &endpoint.url());
        let inherited = probe.inherited();
        let person = Person::new(inherited.clone());
        let launch = prepare(installed, &request, &person)
            .map_err(|error| format!("the probe failed: {error}"))?;
        launch.write().map_err(failed)?;
        let cancel = CancellationToken::new();
        let start = start(&launch, inherited, gate);
        let running = process::run(start, PROBE_TIMEOUT, &cancel, |_| {});
        tokio::pin!(running);
        let (first, ended) = tokio::select! {
            first = endpoint.first() => {
                cancel.cancel();
                (first, running.await)
            }
            ended = &mut running => (None, ended),
        };
        servers.abort_all();
        let ended = ended.map_err(failed)?;
        probe.judge(installed, first, ended.end)
    }

    fn judge(
        &self,
        installed: &InstalledAgent,
        first: Option<endpoint::FirstRequest>,
        end: ProcessEnd,
    ) -> Result<Finding, String> {
        if let Some(taken) = bait::taken(&self.folder) {
            return Ok(Finding::Reads(format!("runs what {taken} names")));
        }
        let Some(first) = first else {
            return Err(match end {
                ProcessEnd::TimedOut => "the probe timed out".to_owned(),
                ProcessEnd::Exited(_) | ProcessEnd::Cancelled => {
                    "in a probe it ended before it asked a model".to_owned()
                }
            });
        };
        if first.body.contains(bait::WORDS) {
            return Ok(Finding::Reads("reads files that a prompt mentions".to_owned()));
        }
        let foreign = offered::foreign(installed.provider(), first.tools.into_iter());
        Ok(if foreign.is_empty() { Finding::Isolated } else { Finding::Offers(foreign) })
    }

    /// Creates the folder, which no other user can enter.
    fn prepare(parent: &Path) -> std::io::Result<Probe> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(parent)?;
        record::remove_stale(parent);
        let folder = parent.canonicalize()?.join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let probe = Probe { folder };
        for name in ["home", "work", "private"] {
            builder.create(probe.folder.join(name))?;
        }
        Ok(probe)
    }

    /// Serves one tool to the program, as a step's gate would.
    fn serve(&self) -> std::io::Result<JoinSet<()>> {
        let socket = self.folder.join("gate");
        let listener = UnixListener::bind(&socket)?;
        std::fs::write(self.file(), json!({"gate": socket}).to_string())?;
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (reader, writer) = stream.into_split();
                clients.spawn(server().serve(reader, writer).boxed());
            }
        });
        Ok(serving)
    }

    fn file(&self) -> PathBuf {
        self.folder.join("step.json")
    }

    /// The environment holds nothing of the person's but the path.
    fn inherited(&self) -> Vec<(OsString, OsString)> {
        let kept = ["PATH", "LANG", "TMPDIR"].into_iter();
        let kept = kept.filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        let mut env: Vec<(OsString, OsString)> = kept.collect();
        env.push(("HOME".into(), self.folder.join("home").into()));
        for name in [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_AUTOUPDATER",
            "DISABLE_TELEMETRY",
            "OPENCODE_DISABLE_AUTOUPDATE",
        ] {
            env.push((name.into(), "1".into()));
        }
        env
    }

    fn request(&self, installed: &InstalledAgent, gate: &Path, url: &str) -> AgentRequest {
        let model = ModelPlace::of(installed.provider(), url);
        AgentRequest {
            prompt: PROMPT.to_owned(),
            system_prompt: None,
            model: model.name.map(str::to_owned),
            args: Vec::new(),
            env: model.env,
            config: model.config,
            dir: self.folder.join("work"),
            private: self.folder.join("private"),
            server: AgentServer {
                program: gate.to_owned(),
                args: vec!["mcp-serve".to_owned(), format!("--config={}", self.file().display())],
            },
            tools: AgentTools::Only,
            max_cost_usd: None,
            call_timeout: PROBE_TIMEOUT,
        }
    }
}

fn start<'a>(
    launch: &'a Launch,
    inherited: Vec<(OsString, OsString)>,
    gate: &Path,
) -> ProcessStart<'a> {
    let is_kept = |name: &OsString| !launch.env_remove.iter().any(|gone| name == gone.as_str());
    let mut env: Vec<_> = inherited.into_iter().filter(|(name, _)| is_kept(name)).collect();
    env.extend(launch.env.iter().map(|(name, value)| (name.into(), value.into())));
    ProcessStart {
        program: &launch.program,
        args: &launch.args,
        env,
        dir: &launch.dir,
        stdin: launch.stdin.as_deref(),
        supervisor: Some(gate.to_owned()),
        line_bytes_max: LINE_BYTES_MAX,
    }
}

fn server() -> Server {
    let mut server = Server::new("countersign", env!("CARGO_PKG_VERSION"));
    let path = json!({"type": "string", "description": "The file"});
    let definition = json!({
        "name": "Read", "description": "Reads a file",
        "inputSchema": {"type": "object", "properties": {"path": path}},
        "annotations": {"readOnlyHint": true},
    });
    server.register_tool(&definition, |_| {
        Box::pin(async { Err(mcp::ErrorObject::invalid_params("this is a probe")) })
    });
    server
}

/// The options that make a program ask the model on loopback.
struct ModelPlace {
    name: Option<&'static str>,
    env: Vec<(String, String)>,
    config: Option<Value>,
}

impl ModelPlace {
    fn of(provider: Provider, url: &str) -> ModelPlace {
        let vars = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        match provider {
            Provider::Claude => ModelPlace {
                name: None,
                env: vars(&[("ANTHROPIC_BASE_URL", url), ("ANTHROPIC_API_KEY", "probe")]),
                config: None,
            },
            Provider::Gemini => ModelPlace {
                name: Some("gemini-2.5-flash"),
                env: vars(&[("GOOGLE_GEMINI_BASE_URL", url), ("GEMINI_API_KEY", "probe")]),
                config: None,
            },
            Provider::Codex => ModelPlace {
                name: None,
                env: vars(&[("PROBE_KEY", "probe")]),
                config: Some(json!({
                    "model_provider": "probe",
                    "model_providers": {"probe": {
                        "name": "probe", "base_url": format!("{url}/v1"),
                        "wire_api": "responses", "env_key": "PROBE_KEY",
                    }},
                    "analytics": {"enabled": false},
                })),
            },
            Provider::OpenCode => ModelPlace {
                name: Some("probe/probe"),
                env: Vec::new(),
                config: Some(json!({"provider": {"probe": {
                    "npm": "@ai-sdk/openai-compatible", "name": "probe",
                    "options": {"baseURL": format!("{url}/v1"), "apiKey": "probe"},
                    "models": {"probe": {
                        "name": "probe", "tool_call": true,
                        "limit": {"context": 100_000, "output": 4096},
                    }},
                }}})),
            },
        }
    }
}
