//! `countersign status`: what runs, and what needs a person, on one screen.

use std::time::Duration;

use admin::view::{AgentList, GateStatus, SearchState, ServerEntry, ServerList};
use jiff::Timestamp;
use serde::Serialize;

use super::connect;
use crate::cli::Format;
use crate::control::Control;
use crate::exit::Failure;
use crate::output;
use crate::site::Site;

/// Agents on the screen; the rest are counted.
const AGENTS_SHOWN: usize = 5;

/// Everything that the screen shows, as `-o json` prints it.
#[derive(Serialize)]
struct StatusReport {
    running: bool,
    home: String,
    /// Clients whose settings name the gate.
    connected: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    gate: Option<RunningGate>,
}

#[derive(Serialize)]
struct RunningGate {
    status: GateStatus,
    servers: ServerList,
    agents: AgentList,
}

pub(crate) async fn run(site: &Site, format: Format) -> Result<(), Failure> {
    let home = site.home()?;
    home.must_exist()?;
    let connected = connect::connected(home.path())?;
    let shown_home = home.path().display().to_string();
    let gate = match Control::running(site).await? {
        Some(control) => Some(RunningGate {
            status: output::read(&control.get("/api/v1/status").await?)?,
            servers: output::read(&control.get("/api/v1/servers").await?)?,
            agents: output::read(&control.get("/api/v1/agents").await?)?,
        }),
        None => None,
    };
    let report = StatusReport { running: gate.is_some(), home: shown_home, connected, gate };
    output::print(format, &report, |report| screen(report, Timestamp::now()))?;
    if report.running { Ok(()) } else { Err(Failure::call("")) }
}

fn screen(report: &StatusReport, now: Timestamp) -> String {
    let mut rows = Vec::new();
    match &report.gate {
        None => rows.push(("gate", "not running: start it with 'countersign serve'".to_owned())),
        Some(RunningGate { status, servers, agents }) => {
            let uptime = span(Duration::from_secs(status.uptime_seconds));
            let about =
                format!("running for {uptime}, pid {}, version {}", status.pid, status.version);
            rows.push(("gate", about));
            let config = status.config.error.as_deref();
            let config = config.map(|error| format!("not in effect: {error}"));
            rows.push(("config", config.unwrap_or_else(|| "in effect".to_owned())));
            rows.extend(server_rows(&servers.servers));
            rows.extend(agent_rows(agents, now));
            rows.push(("search", search(&status.search)));
            let ledger = &status.ledger;
            let length = ledger.length;
            rows.push((
                "ledger",
                format!("{}, {length} receipts in the current chain", ledger.state),
            ));
            rows.extend(ledger.notices.iter().map(|notice| ("", notice.clone())));
        }
    }
    let connected = match &report.connected[..] {
        [] => "none: 'countersign connect' finds and connects them".to_owned(),
        clients => clients.join(", "),
    };
    rows.push(("clients", connected));
    rows.push(("home", report.home.clone()));
    output::fields(&rows)
}

fn search(search: &SearchState) -> String {
    match search {
        SearchState { learned: false, .. } => "by words".to_owned(),
        SearchState { tools, vectors, .. } if vectors < tools => {
            format!("by words and meaning, {vectors} of {tools} tools read so far")
        }
        SearchState { .. } => "by words and meaning".to_owned(),
    }
}

/// Counts the servers that work, and names each other one with what mends it.
fn server_rows(servers: &[ServerEntry]) -> Vec<(&'static str, String)> {
    let (ready, others): (Vec<_>, Vec<_>) =
        servers.iter().partition(|server| server.state == "ready");
    let names: Vec<&str> = ready.iter().map(|server| server.name.as_str()).collect();
    let working = match &names[..] {
        [] => "none ready".to_owned(),
        names => format!("{} ready: {}", names.len(), names.join(", ")),
    };
    let mut rows = vec![("servers", working)];
    for server in others {
        let ServerEntry { name, state, error, .. } = server;
        let reason = error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        let cure = cure(name, state).map(|cure| format!(": {cure}")).unwrap_or_default();
        rows.push(("", format!("{name}: {state}{reason}{cure}")));
    }
    for ServerEntry { name, pending, .. } in servers {
        if let Some(count) = pending.filter(|count| *count > 0) {
            rows.push((
                "",
                format!("{name}: {count} to review: countersign upstream review {name}"),
            ));
        }
    }
    rows
}

/// Returns the command that helps with a server in this state. For a missing sign-in, the server's
/// error names it.
pub(super) fn cure(name: &str, state: &str) -> Option<String> {
    match state {
        "quarantined" => Some(format!("countersign upstream review {name}")),
        "disabled" => Some(format!("countersign upstream enable {name}")),
        "error" => Some(format!("countersign upstream logs {name}")),
        _ => None,
    }
}

fn agent_rows(agents: &AgentList, now: Timestamp) -> Vec<(&'static str, String)> {
    let seen = |timestamp: &str| {
        let ago = timestamp.parse::<Timestamp>().map(|time| now.duration_since(time));
        let ago = ago.ok().and_then(|ago| Duration::try_from(ago).ok()).unwrap_or_default();
        span(ago)
    };
    let mut rows: Vec<(&str, String)> = Vec::new();
    for (index, agent) in agents.agents.iter().take(AGENTS_SHOWN).enumerate() {
        let name = if index == 0 { "agents" } else { "" };
        let client = if agent.client.is_empty() { &agent.name } else { &agent.client };
        rows.push((name, format!("{client}, last seen {} ago", seen(&agent.last_call))));
    }
    let more = agents.agents.len().saturating_sub(AGENTS_SHOWN);
    if more > 0 {
        rows.push(("", format!("and {more} more")));
    }
    if rows.is_empty() {
        rows.push(("agents", "none seen yet".to_owned()));
    }
    rows
}

/// Formats a span with one unit.
fn span(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}
