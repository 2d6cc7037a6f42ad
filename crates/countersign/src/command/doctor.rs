//! `countersign doctor`: checks everything that the gate needs, and names what mends each fault.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use admin::view::{AgentLosses, CoverageList, ServerEntry, ServerList};
use domain::config::{AnchorConfig, Config, StdioTransport, Transport};
use jiff::{SignedDuration, Timestamp};
use mcp::task;
use runner::agent::{AgentError, InstalledAgent, Isolation, Provider, Search};
use serde::Serialize;
use tokio::process::Command;

use super::targets::lost;
use super::{connect, ledger, status};
use crate::cli::Format;
use crate::control::{self, Control, with_query};
use crate::exit::Failure;
use crate::home::{Home, swappable};
use crate::output::progress::while_waiting;
use crate::site::Site;
use crate::{folders, output};

/// Less free space than this is a warning: the ledger must be able to grow.
const FREE_BYTES_MIN: u64 = 500 * 1024 * 1024;

/// The period in which targets that records lack are a warning.
const RECENT: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The time for a launcher such as `npx` to tell its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Programs that start servers written in other languages; asking them for a version is safe.
const LAUNCHERS: &[&str] =
    &["node", "npx", "uvx", "uv", "python", "python3", "docker", "deno", "bunx"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Ok,
    Warning,
    Fault,
}

/// One thing that was checked.
#[derive(Serialize)]
struct Finding {
    check: &'static str,
    health: Health,
    text: String,
    /// The command that mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cure: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, text: impl Into<String>) -> Finding {
        Finding { check, health: Health::Ok, text: text.into(), cure: None }
    }

    fn warning(check: &'static str, text: impl Into<String>, cure: impl Into<String>) -> Finding {
        let cure = Some(cure.into());
        Finding { check, health: Health::Warning, text: text.into(), cure }
    }

    fn fault(check: &'static str, text: impl Into<String>, cure: impl Into<String>) -> Finding {
        let cure = Some(cure.into());
        Finding { check, health: Health::Fault, text: text.into(), cure }
    }
}

pub(crate) async fn run(site: &Site, format: Format) -> Result<(), Failure> {
    let home = site.home()?;
    let mut findings = Vec::new();
    let config = check_config(site, &mut findings);
    findings.extend(check_home(home.path()));
    let control = Control::running(site).await?;
    if let Some(config) = &config {
        findings.push(check_port(config, control.is_some()));
        findings.extend(check_servers(config).await);
    }
    if let Some(control) = &control {
        findings.extend(check_states(control).await?);
    }
    findings.extend(check_clients(home.path())?);
    findings.extend(while_waiting("trying out the agent programs", check_agents(home)).await);
    let anchor = config.as_ref().and_then(|config| config.ledger.anchor.as_ref());
    findings.extend(check_anchor(home.path(), anchor));
    let has_ledger = home.ledger().is_ok();
    findings.extend(while_waiting("checking the ledger", check_ledger(home.clone())).await?);
    if has_ledger {
        findings.extend(check_targets(site).await?);
    }
    output::print(format, &findings, |findings| screen(findings))?;
    let faults = findings.iter().filter(|finding| finding.health == Health::Fault).count();
    match faults {
        0 => Ok(()),
        1 => Err(Failure::call("one fault")),
        count => Err(Failure::call(format!("{count} faults"))),
    }
}

fn screen(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let mark = match finding.health {
            Health::Ok => "ok     ",
            Health::Warning => "warning",
            Health::Fault => "FAULT  ",
        };
        let line = format!("{mark}  {:<8}  {}", finding.check, output::plain(&finding.text));
        match &finding.cure {
            Some(cure) => format!("{line}\n                   → {}", output::plain(cure)),
            None => line,
        }
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn check_config(site: &Site, findings: &mut Vec<Finding>) -> Option<Config> {
    match site.source() {
        Ok(source) => {
            let file = source.file.as_ref().map(|file| file.display().to_string());
            let servers = source.config.servers.len();
            let file = file.unwrap_or_else(|| "no file; the defaults apply".to_owned());
            findings.push(Finding::ok("config", format!("{file}, {servers} servers")));
            let note = |note: &String| Finding::warning("config", note, "countersign config check");
            findings.extend(source.notes.iter().map(note));
            Some(source.config.clone())
        }
        Err(failure) => {
            findings.push(Finding::fault("config", failure.message(), "countersign config check"));
            None
        }
    }
}

fn check_home(home: &Path) -> Vec<Finding> {
    let shown = home.display();
    if !home.exists() {
        return vec![Finding::warning(
            "home",
            format!("{shown} does not exist yet"),
            "countersign serve",
        )];
    }
    let mut findings = Vec::new();
    let open = [home.to_owned(), home.join("api-key"), home.join("agent-token"), home.join("keys")]
        .into_iter()
        .filter(|path| std::fs::metadata(path).is_ok_and(|about| about.mode() & 0o077 != 0));
    for path in open {
        let words = format!("{} is open to other users", path.display());
        findings.push(Finding::fault("home", words, format!("chmod go= '{}'", path.display())));
    }
    if let Some((folder, who)) = swappable(home) {
        let folder = folder.display();
        let words = format!("{who} can put another home in the place of {shown}, in {folder}");
        let cure = format!("chmod go-w '{folder}', or move the home to a folder of your own");
        findings.push(Finding::warning("home", words, cure));
    }
    match rustix::fs::statvfs(home) {
        Ok(space) if space.f_bavail * space.f_frsize < FREE_BYTES_MIN => {
            let left = space.f_bavail * space.f_frsize / (1024 * 1024);
            let words = format!("only {left} MB are free for the ledger");
            findings.push(Finding::warning(
                "disk",
                words,
                "free space, or lower ledger.max_size_mb",
            ));
        }
        Ok(space) => {
            let left = space.f_bavail * space.f_frsize / (1024 * 1024 * 1024);
            findings.push(Finding::ok("disk", format!("{left} GB free")));
        }
        Err(error) => findings.push(Finding::warning("disk", error.to_string(), "check the disk")),
    }
    if findings.iter().all(|finding| finding.check != "home") {
        findings.insert(0, Finding::ok("home", shown.to_string()));
    }
    findings
}

fn check_port(config: &Config, is_running: bool) -> Finding {
    let listen = config.listen;
    if is_running {
        return Finding::ok("gate", "running");
    }
    match TcpListener::bind(listen) {
        Ok(_) => Finding::warning("gate", "not running", "countersign serve"),
        Err(error) => Finding::fault(
            "gate",
            format!("not running, and it could not listen on {listen}: {error}"),
            "end the program that uses the port, or set another 'listen' in the config",
        ),
    }
}

async fn check_servers(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for server in config.servers.iter().filter(|server| server.enabled) {
        let name = &server.name;
        let Transport::Stdio(StdioTransport { command, .. }) = &server.transport else {
            continue;
        };
        match folders::program(command) {
            Some(file) => {
                let version = version(command, &file).await;
                let version = version.map(|version| format!(", {version}")).unwrap_or_default();
                findings
                    .push(Finding::ok("server", format!("{name}: {}{version}", file.display())));
            }
            None => findings.push(Finding::fault(
                "server",
                format!("{name}: the program '{command}' is not on the PATH"),
                format!("install {command}, or write its full path in the config"),
            )),
        }
    }
    findings
}

/// Reports the servers of the running gate that cannot be used.
async fn check_states(control: &Control) -> Result<Vec<Finding>, Failure> {
    let list: ServerList = output::read(&control.get("/api/v1/servers").await?)?;
    let finding = |server: &ServerEntry| {
        let ServerEntry { name, state, error, .. } = server;
        let reason = error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        let words = format!("{name}: {state}{reason}");
        match state.as_str() {
            "error" => Some(Finding::fault("server", words, status::cure(name, state)?)),
            "quarantined" => Some(Finding::warning("server", words, status::cure(name, state)?)),
            "needs_login" => {
                let cure = format!("countersign upstream login {name}");
                Some(Finding::warning("server", words, cure))
            }
            _ => None,
        }
    };
    Ok(list.servers.iter().filter_map(finding).collect())
}

/// Finds the agents whose recent records do not tell all that they touched.
async fn check_targets(site: &Site) -> Result<Vec<Finding>, Failure> {
    let since = Timestamp::now().checked_sub(RECENT).map(|since| since.to_string()).ok();
    let path = with_query("/api/v1/targets/coverage", &[("start_time", since)]);
    let list: CoverageList = output::read(&control::read(site, None, &path).await?)?;
    let finding = |losses: &AgentLosses| {
        Finding::warning("targets", lost(losses), "countersign targets coverage --since 7d")
    };
    Ok(list.losses.iter().map(finding).collect())
}

/// Asks a launcher for its version. Other programs are not started: they may do anything.
async fn version(command: &str, file: &Path) -> Option<String> {
    let name = Path::new(command).file_name()?.to_str()?;
    if !LAUNCHERS.contains(&name) {
        return None;
    }
    let asking = Command::new(file).arg("--version").kill_on_drop(true).output();
    let output = tokio::time::timeout(VERSION_TIMEOUT, asking).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(output::cut(text.lines().next()?.trim(), 40))
}

fn check_clients(home: &Path) -> Result<Vec<Finding>, Failure> {
    let clients = connect::connected(home)?;
    if clients.is_empty() {
        let words = "no client was connected with 'connect'";
        return Ok(vec![Finding::warning("clients", words, "countersign connect")]);
    }
    Ok(vec![Finding::ok("clients", clients.join(", "))])
}

/// Finds the agent programs, and tries out whether their own tools can be shut off.
async fn check_agents(home: &Home) -> Vec<Finding> {
    let path = std::env::var_os("PATH");
    let (supervisor, probes) = (folders::own_program(), folders::probes(home.path()));
    let mut findings = Vec::new();
    for provider in Provider::ALL {
        let search = Search {
            path: path.as_deref(),
            supervisor: supervisor.as_deref(),
            probes: Some(&probes),
            ..Search::default()
        };
        let name = provider.as_str();
        findings.push(match InstalledAgent::detect(provider, &search).await {
            Ok(agent) => {
                let version = agent.version();
                match agent.isolation() {
                    Isolation::Full => Finding::ok("agent", format!("{name} {version}, isolated")),
                    Isolation::Coexistence { reason } => Finding::warning(
                        "agent",
                        format!("{name} {version} keeps its own tools: {reason}"),
                        format!("install a version of {name} that docs/isolation.md lists"),
                    ),
                }
            }
            Err(AgentError::Missing { .. }) => continue,
            Err(error) => Finding::warning(
                "agent",
                error.to_string(),
                format!("install a version of {name} that docs/isolation.md lists"),
            ),
        });
    }
    findings
}

/// Compares the home with what its anchor keeps.
fn check_anchor(home: &Path, anchor: Option<&AnchorConfig>) -> Vec<Finding> {
    if anchor.is_none() || !home.join(store::FILE).exists() {
        return Vec::new();
    }
    let check = match store::anchored::check(home, anchor) {
        Ok(check) => check,
        Err(error) => {
            return vec![Finding::fault("anchor", error.to_string(), "countersign ledger check")];
        }
    };
    let fault = |words: String| {
        let cure = "restore the newest backup of the home, or countersign ledger repair";
        Finding::fault("anchor", words, cure)
    };
    let warning =
        |words: String| Finding::warning("anchor", words, "see 'ledger.anchor' in the config");
    let mut findings: Vec<Finding> = check.faults.into_iter().map(fault).collect();
    findings.extend(check.notes.into_iter().map(warning));
    if findings.is_empty() {
        let words = match check.compared {
            0 => "no checkpoint of this home is to be compared yet".to_owned(),
            count => format!("the ledger has what its last {count} checkpoints name"),
        };
        findings.push(Finding::ok("anchor", words));
    }
    findings
}

async fn check_ledger(home: Home) -> Result<Vec<Finding>, Failure> {
    if home.ledger().is_err() {
        return Ok(vec![Finding::ok("ledger", "nothing has been recorded yet")]);
    }
    let checking = task::spawn_blocking(move || ledger::check(&home));
    let checked = checking
        .await
        .map_err(|error| Failure::system(format!("the check stopped early: {error}")))?;
    let fault = |fault: String| Finding::fault("ledger", fault, "countersign ledger check");
    Ok(match checked {
        Ok(receipts) => vec![Finding::ok("ledger", format!("{receipts} receipts, all verified"))],
        Err(faults) => faults.into_iter().map(fault).collect(),
    })
}
