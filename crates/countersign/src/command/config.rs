//! `countersign config show|check|trust`.

use std::path::{Path, PathBuf};

use domain::config::{self, render};
use gateway::Gateway;
use serde_json::Value;

use super::decision::{by, refused, with_gate};
use crate::cli::{Config, Format};
use crate::exit::Failure;
use crate::output;
use crate::site::Site;
use crate::source::found::{self, FolderConfig, SHOWN};
use crate::source::{self, FolderStatus, OwnConfig, Source};

/// Keys whose members have user-chosen names; each member is reported as a whole.
const NAMED: [&str; 3] = ["mcpServers", "profiles", "plugins"];

pub(crate) async fn run(site: &Site, verb: Config) -> Result<(), Failure> {
    match verb {
        Config::Show { output } => {
            let source = site.source()?;
            source.log_notes();
            if let Some(folder) = &source.folder {
                tracing::warn!("found {SHOWN}: {}", folder.status.words());
            }
            let format = if output == Format::Table { Format::Json } else { output };
            output::print(format, &render(&source.config), |_| String::new())
        }
        Config::Check => check(site.source()?),
        Config::Trust { file, revoke: false } => trust_file(site, &source::to_trust(file)?).await,
        Config::Trust { file, revoke: true } => forget_file(site, file).await,
    }
}

fn check(source: &Source) -> Result<(), Failure> {
    let folder = source.folder.as_ref().map(|folder| &folder.status);
    if let Some(FolderStatus::Wrong(faults)) = folder {
        return Err(Failure::config(format!("{SHOWN} is not valid:\n{faults}")));
    }
    for note in &source.notes {
        output::line(&format!("note: {}", output::plain(&note.to_string())))?;
    }
    let servers = source.config.servers.len();
    let file = match &source.file {
        Some(file) => file.display().to_string(),
        None => "no config file (using defaults)".to_owned(),
    };
    let folder = folder.map(|status| format!(" and {SHOWN} ({})", status.words()));
    let folder = folder.unwrap_or_default();
    output::line(&format!("ok: {file}{folder}, {servers} servers"))
}

async fn trust_file(site: &Site, file: &Path) -> Result<(), Failure> {
    let own = site.own()?;
    if own.file.as_deref().is_some_and(|own| found::is_same(own, file)) {
        return Err(Failure::input(format!(
            "'{}' is your own config: all of it is already in effect",
            file.display()
        )));
    }
    let found = source::read_to_trust(file)?;
    let path = written(&found.place)?;
    let changes = changes(own, &found)?;
    output::line(&format!("{path}\n{}\n", found.sha256))?;
    if changes.is_empty() {
        output::line("All its settings are already in effect.")?;
    } else {
        output::line(&format!(
            "Settings that trusting it puts into effect:\n  {}",
            changes.join("\n  ")
        ))?;
    }
    let trusting = async |gateway: &Gateway| {
        gateway.trust_file(&by(), path, &found.sha256).await.map_err(refused)
    };
    with_gate(site, &own.config, trusting).await?;
    output::line(
        "\nThe file is trusted until it changes. A `serve` running in its folder applies it now; \
         settings that need a restart apply at the next start.",
    )
}

async fn forget_file(site: &Site, file: Option<PathBuf>) -> Result<(), Failure> {
    let file = source::to_trust(file)?;
    let stands = found::place(&file);
    let stands =
        stands.ok_or_else(|| Failure::input(format!("file '{}' not found", file.display())))?;
    let path = written(&stands)?;
    let forgetting =
        async |gateway: &Gateway| gateway.forget_file(&by(), path).await.map_err(refused);
    if !with_gate(site, &site.own()?.config, forgetting).await? {
        return Err(Failure::input(format!("'{path}' was not trusted")));
    }
    output::line(&format!("{path} is no longer trusted: it can only restrict."))
}

/// Lists the changes that trusting the file makes, one per line.
fn changes(own: &OwnConfig, found: &FolderConfig) -> Result<Vec<String>, Failure> {
    let mut after = config::lay_over(own.config.clone(), &found.text).map_err(|faults| {
        Failure::config(format!(
            "'{}' is not valid and cannot be trusted:\n{faults}",
            found.place.display()
        ))
    })?;
    // An untrusted file that has no effect leaves the user's own configuration unchanged.
    let before = config::overlay(own.config.clone(), &found.text);
    let before = before.map_or_else(|_| own.config.clone(), |laid| laid.config);
    found::settle(&mut after.config, &own.config, &found.place);
    let mut lines = Vec::new();
    compare("", &render(&before), &render(&after.config), &mut lines);
    Ok(lines)
}

fn compare(path: &str, before: &Value, after: &Value, lines: &mut Vec<String>) {
    if before == after {
        return;
    }
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else {
        let was =
            if before.is_null() { String::new() } else { format!(" (was {})", shown(before)) };
        return lines.push(format!("{path}: {}{was}", shown(after)));
    };
    for (name, value) in new {
        let old = old.get(name).unwrap_or(&Value::Null);
        if NAMED.contains(&path) {
            // A user who trusts a server wants to see what it runs, even the parts that were known
            // before.
            if old != value {
                lines.push(format!("{path}.{}: {}", text::visible(name), shown(value)));
            }
            continue;
        }
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        compare(&path, old, value, lines);
    }
}

/// Formats foreign text without characters that control a terminal or are invisible.
fn shown(value: &Value) -> String {
    text::visible(&crate::json::compact(value)).into_owned()
}

/// Returns the path in the form that the store keeps.
fn written(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| {
        Failure::input(format!("'{}' cannot be trusted: its path is not UTF-8", path.display()))
    })
}
