//! `countersign plugin list|show|approve|revoke`. Unapproved plugins are never started.

use std::collections::BTreeSet;
use std::path::PathBuf;

use domain::config::Config;
use gateway::Gateway;
use serde::Serialize;
use store::state::OperatorState;
use text::visible;
use tools::plugin::{FoundPlugin, PluginOrigin};

use super::decision::{by, refused, with_gate};
use crate::cli::Plugin;
use crate::exit::Failure;
use crate::output::{self, fields, or_dash, table};
use crate::plugins::{Plugins, files};
use crate::site::Site;

pub(crate) async fn run(site: &Site, verb: Plugin) -> Result<(), Failure> {
    let source = site.source()?;
    source.log_notes();
    let config = &source.config;
    let plugins = Plugins::find(site.home()?.path(), config);
    match verb {
        Plugin::List { output } => {
            let approvals = Approvals::read(site)?;
            let entries = plugins.found().iter().map(|found| approvals.entry(found));
            let plugins = entries.collect::<Result<Vec<PluginEntry>, Failure>>()?;
            output::print(output, &PluginList { plugins }, list)
        }
        Plugin::Show { name, output } => {
            let found = known(&plugins, &name)?;
            let approvals = Approvals::read(site)?;
            let mut entry = approvals.entry(found)?;
            if approvals.may_start(found)? {
                offered(&mut entry, &plugins, found).await;
            }
            output::print(output, &entry, show)
        }
        Plugin::Approve { name } => approve(site, config, known(&plugins, &name)?).await,
        Plugin::Revoke { name } => revoke(site, config, known(&plugins, &name)?).await,
    }
}

fn known<'a>(plugins: &'a Plugins, name: &str) -> Result<&'a FoundPlugin, Failure> {
    plugins.get(name).ok_or_else(|| {
        let names = plugins.found().iter().map(|found| found.name.as_str());
        let near = text::near::names(name, names, 1);
        let hint = text::near::hint(&near);
        Failure::input(format!("plugin '{name}' not found{hint}: see 'countersign plugin list'"))
    })
}

#[derive(Serialize)]
struct PluginList {
    plugins: Vec<PluginEntry>,
}

/// A plugin as people and programs see it.
#[derive(Serialize)]
struct PluginEntry {
    name: String,
    version: String,
    description: String,
    origin: &'static str,
    status: &'static str,
    fault: Option<String>,
    shadowed_by: Option<PathBuf>,
    program: PathBuf,
    sha256: String,
    manifest_sha256: String,
    /// The plugin's operations, if it may be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    operations: Option<BTreeSet<String>>,
}

/// The recorded decisions about plugins.
struct Approvals(Option<OperatorState>);

impl Approvals {
    fn read(site: &Site) -> Result<Approvals, Failure> {
        let home = site.home()?;
        Ok(Approvals(OperatorState::of_home(home.path()).map_err(Failure::store)?))
    }

    fn entry(&self, found: &FoundPlugin) -> Result<PluginEntry, Failure> {
        let status = match (&found.fault, &found.shadowed_by) {
            (Some(_), _) => "unusable",
            (None, Some(_)) => "shadowed",
            (None, None) if !found.needs_approval() => "ready",
            (None, None) if self.may_start(found)? => "approved",
            (None, None) => "not approved",
        };
        Ok(PluginEntry {
            name: found.name.clone(),
            version: found.version.clone(),
            description: found.description.clone(),
            origin: match found.origin {
                PluginOrigin::Own => "own",
                PluginOrigin::Project => "project",
            },
            status,
            fault: found.fault.clone(),
            shadowed_by: found.shadowed_by.clone(),
            program: found.executable.clone(),
            sha256: found.executable_sha256.clone(),
            manifest_sha256: found.manifest_sha256.clone(),
            operations: None,
        })
    }

    fn may_start(&self, found: &FoundPlugin) -> Result<bool, Failure> {
        Plugins::may_start(found, self.0.as_ref()).map_err(Failure::store)
    }
}

/// Fills in what the plugin reports about itself once it runs.
async fn offered(entry: &mut PluginEntry, plugins: &Plugins, found: &FoundPlugin) {
    match plugins.operations(found).await {
        Ok(operations) => entry.operations = Some(operations.into_keys().collect()),
        Err(reason) => entry.fault = Some(reason),
    }
}

async fn approve(site: &Site, config: &Config, found: &FoundPlugin) -> Result<(), Failure> {
    refuse_own(found)?;
    if let Some(fault) = &found.fault {
        return Err(Failure::input(format!("plugin '{}' cannot be used: {fault}", found.name)));
    }
    let files = files(found);
    let trusting = async |gateway: &Gateway| {
        gateway.approve_plugin(&by(), &found.name, &files).await.map_err(refused)
    };
    with_gate(site, config, trusting).await?;
    for file in &files {
        output::line(&format!("{}  {}", visible(&file.path), file.sha256))?;
    }
    output::line(&format!(
        "approved plugin '{}' in its current form: it can now be started",
        found.name
    ))
}

async fn revoke(site: &Site, config: &Config, found: &FoundPlugin) -> Result<(), Failure> {
    refuse_own(found)?;
    let files = files(found);
    let revoking = async |gateway: &Gateway| {
        gateway.revoke_plugin(&by(), &found.name, &files).await.map_err(refused)
    };
    if !with_gate(site, config, revoking).await? {
        return Err(Failure::input(format!("plugin '{}' was not approved", found.name)));
    }
    output::line(&format!("revoked plugin '{}': it is no longer started", found.name))
}

fn refuse_own(found: &FoundPlugin) -> Result<(), Failure> {
    if found.needs_approval() {
        Ok(())
    } else {
        Err(Failure::input(format!(
            "plugin '{}' at {} is your own or is pinned in your config: it needs no approval",
            found.name,
            found.executable.display()
        )))
    }
}

fn list(PluginList { plugins }: &PluginList) -> String {
    if plugins.is_empty() {
        return "no plugins found: put one in $XDG_DATA_HOME/countersign/plugins or \
                ./.countersign/plugins"
            .to_owned();
    }
    let row = |plugin: &PluginEntry| {
        vec![
            plugin.name.clone(),
            or_dash(Some(&plugin.version)),
            plugin.origin.to_owned(),
            plugin.status.to_owned(),
            plugin.fault.clone().unwrap_or_else(|| plugin.program.display().to_string()),
        ]
    };
    let rows: Vec<Vec<String>> = plugins.iter().map(row).collect();
    table(&["NAME", "VERSION", "ORIGIN", "STATUS", "PROGRAM"], &rows)
}

fn show(plugin: &PluginEntry) -> String {
    let operations = plugin.operations.as_ref().map(|names| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        output::plain(&names.join(", "))
    });
    fields(&[
        ("name", plugin.name.clone()),
        ("version", or_dash(Some(&plugin.version))),
        ("description", or_dash(Some(&plugin.description))),
        ("origin", plugin.origin.to_owned()),
        ("status", plugin.status.to_owned()),
        ("fault", or_dash(plugin.fault.as_deref())),
        ("program", plugin.program.display().to_string()),
        ("sha256", or_dash(Some(&plugin.sha256))),
        ("operations", operations.unwrap_or_else(|| "- (not started)".to_owned())),
    ])
}
