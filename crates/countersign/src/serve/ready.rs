//! The message that `countersign serve` prints once it serves.

use std::io::Write;
use std::net::SocketAddr;
use std::path::absolute;

use admin::page::PageSessions;
use domain::Code;
use domain::config::{Config, ServerOrigin};
use jiff::Timestamp;
use serde_json::json;

use crate::app::Purpose;
use crate::cli::{Locations, ServeFormat};
use crate::exit::Failure;
use crate::home::Home;
use crate::{demo, page_link, workspace};

/// The message printed once the gate serves.
pub(super) struct Ready<'a> {
    pub(super) place: &'a Locations,
    pub(super) home: &'a Home,
    pub(super) address: SocketAddr,
    pub(super) config: &'a Config,
    pub(super) purpose: Purpose,
    pub(super) sessions: &'a PageSessions,
}

impl Ready<'_> {
    pub(super) fn announce(&self, format: &ServeFormat) -> Result<(), Failure> {
        let text = match format {
            ServeFormat::Json => json!({
                "event": "ready",
                "listen": self.address.to_string(),
                "home": self.home.path(),
                "api_key_file": self.home.api_key_file(),
                "agent_token_file": self.home.agent_token_file(),
            })
            .to_string(),
            ServeFormat::Text => {
                let link = self.link()?;
                match self.purpose {
                    Purpose::Demo => self.tour(&link),
                    Purpose::Work => self.welcome(&link),
                }
            }
        };
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{text}")
            .and_then(|()| stdout.flush())
            .map_err(|error| Failure::system(format!("cannot write to stdout: {error}")))
    }

    /// Returns a link to the page with what is to be said about it, or why there is none.
    fn link(&self) -> Result<String, Failure> {
        match self.sessions.link(Timestamp::now()) {
            Ok(link) => match page_link::note_for(&link.url) {
                Some(note) => Ok(format!("{}\n  {note}", link.url)),
                None => Ok(link.url),
            },
            Err(refusal) if refusal.code == Code::Conflict => {
                Ok(format!("none: {}", refusal.message))
            }
            Err(refusal) => Err(super::refused_start(refusal)),
        }
    }

    fn welcome(&self, page: &str) -> String {
        let (servers, example) = servers(self.config);
        let mut program = this_program();
        if self.place.home.is_some() {
            program.push_str(&format!(" --home {}", self.home.path().display()));
        }
        if let Some(config) = self.place.config.as_ref().and_then(|file| absolute(file).ok()) {
            program.push_str(&format!(" --config {}", config.display()));
        }
        // Not the address that it listens on: clients cannot connect to 0.0.0.0.
        let origin = self.sessions.address().clients();
        format!(
            "Countersign {version} is ready on {origin}\n\n\
             \x20 servers  {servers}\n\
             \x20 home     {home}\n\n\
             Watch your agents (this link works once and expires after ten minutes; \
             'countersign page' prints another):\n\
             \x20 {page}\n\n\
             Connect Claude Code, Cursor and other clients:\n\
             \x20 {program} connect\n\
             or any MCP client over streamable HTTP:\n\
             \x20 url      {origin}/mcp\n\
             \x20 header   Authorization: Bearer {token}\n\n\
             Try it:    {program} {example}\n\
             Stop it:   Ctrl+C",
            version = env!("CARGO_PKG_VERSION"),
            home = self.home.path().display(),
            token = self.token(),
        )
    }

    /// Returns the text of the demo, with three things to try.
    fn tour(&self, page: &str) -> String {
        let program = format!("{} --home {}", this_program(), self.home.path().display());
        let mail = demo::MAIL;
        format!(
            "The demo of Countersign {version} is ready on {origin}. Nothing is left of it when it \
             ends.\n\n\
             Watch its agents (this link works once and expires after ten minutes):\n\
             \x20 {page}\n\n\
             Three things to try, in another terminal:\n\n\
             \x20 1. See who changed what another agent had read:\n\
             \x20    {program} contention\n\n\
             \x20 2. A server changed a tool after its approval, so the tool is locked. Look at the \
             change and decide:\n\
             \x20    {program} upstream review {mail}\n\n\
             \x20 3. Check the signed receipt of every call:\n\
             \x20    {program} receipt verify\n\n\
             Another link: {program} page\n\
             Stop it:      Ctrl+C",
            version = env!("CARGO_PKG_VERSION"),
            origin = self.sessions.address().clients(),
        )
    }

    /// Returns the token for an agent, in the words of a shell.
    fn token(&self) -> String {
        if self.config.agent_token {
            format!("$(cat {})", self.home.agent_token_file().display())
        } else {
            "… (a token of 'countersign token create')".to_owned()
        }
    }
}

/// Returns the command that starts this program.
fn this_program() -> String {
    std::env::current_exe()
        .map_or_else(|_| "countersign".to_owned(), |path| path.display().to_string())
}

/// Describes the servers, with a command to try them.
fn servers(config: &Config) -> (String, &'static str) {
    let (own, found): (Vec<_>, Vec<_>) =
        config.servers.iter().partition(|server| server.origin == ServerOrigin::Own);
    let mut names: Vec<String> = own.iter().map(|server| server.name.clone()).collect();
    let mut example = "tools list";
    if config.workspace.enabled {
        let shown = match workspace::words(&config.workspace) {
            Ok(root) => {
                example =
                    "call tool-read --tool-name=workspace:Glob --json_args '{\"pattern\": \"*\"}'";
                format!("{} (built-in tools in {root})", workspace::NAME)
            }
            Err(reason) => format!("no {}: {reason}", workspace::NAME),
        };
        names.push(shown);
    }
    let mut servers = names.join(", ");
    if !found.is_empty() {
        let found: Vec<&str> = found.iter().map(|server| server.name.as_str()).collect();
        servers.push_str(&format!("; found in this folder, not started: {}", found.join(", ")));
    }
    (servers, example)
}
