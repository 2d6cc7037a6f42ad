//! `countersign plugin list|show|approve|revoke`. Nothing that nobody has approved is started.

use domain::config::Config;
use domain::trust::visible;
use gateway::Gateway;
use serde_json::{Value, json};
use store::state::State;
use tools::plugin::{FoundPlugin, Origin};

use super::decision::{by, refused, with_gate};
use crate::cli::{Place, Plugin};
use crate::exit::Failure;
use crate::home::Home;
use crate::output::{self, entries, fields, or_dash, table, text};
use crate::plugins::{Plugins, files};
use crate::source;

pub(crate) async fn run(place: &Place, verb: Plugin) -> Result<(), Failure> {
    let source = source::load(place)?;
    source.tell_notes();
    let config = source.config;
    let plugins = Plugins::find(Home::of(place)?.path(), &config);
    match verb {
        Plugin::List { output } => {
            let approvals = Approvals::read(place)?;
            let told = plugins.found().iter().map(|found| approvals.entry(found));
            let told = told.collect::<Result<Vec<Value>, Failure>>()?;
            output::print(output, &json!({"plugins": told}), list)
        }
        Plugin::Show { name, output } => {
            let found = known(&plugins, &name)?;
            let approvals = Approvals::read(place)?;
            let mut entry = approvals.entry(found)?;
            if approvals.may_start(found)? {
                offered(&mut entry, &plugins, found).await;
            }
            output::print(output, &entry, show)
        }
        Plugin::Approve { name } => approve(place, &config, known(&plugins, &name)?).await,
        Plugin::Revoke { name } => revoke(place, &config, known(&plugins, &name)?).await,
    }
}

fn known<'a>(plugins: &'a Plugins, name: &str) -> Result<&'a FoundPlugin, Failure> {
    plugins.get(name).ok_or_else(|| {
        let names = plugins.found().iter().map(|found| found.name.as_str());
        let near = domain::near::names(name, names, 1);
        let hint = domain::near::hint(&near);
        Failure::input(format!("no plugin '{name}' was found{hint}: see countersign plugin list"))
    })
}

/// What was decided about plugins.
struct Approvals(Option<State>);

impl Approvals {
    fn read(place: &Place) -> Result<Approvals, Failure> {
        let home = Home::of(place)?;
        Ok(Approvals(State::of_home(home.path()).map_err(Failure::store)?))
    }

    fn entry(&self, found: &FoundPlugin) -> Result<Value, Failure> {
        let status = match (&found.fault, &found.shadowed_by) {
            (Some(_), _) => "unusable",
            (None, Some(_)) => "shadowed",
            (None, None) if !found.needs_approval() => "ready",
            (None, None) if self.may_start(found)? => "approved",
            (None, None) => "not approved",
        };
        Ok(json!({
            "name": found.name,
            "version": found.version,
            "description": found.description,
            "origin": match found.origin {
                Origin::Own => "own",
                Origin::Project => "project",
            },
            "status": status,
            "fault": found.fault,
            "shadowed_by": found.shadowed_by,
            "program": found.executable,
            "sha256": found.executable_sha256,
            "manifest_sha256": found.manifest_sha256,
        }))
    }

    fn may_start(&self, found: &FoundPlugin) -> Result<bool, Failure> {
        Plugins::may_start(found, self.0.as_ref()).map_err(Failure::store)
    }
}

/// What the plugin says of itself once it runs.
async fn offered(entry: &mut Value, plugins: &Plugins, found: &FoundPlugin) {
    match plugins.operations(found).await {
        Ok(operations) => entry["operations"] = json!(operations),
        Err(reason) => entry["fault"] = json!(reason),
    }
}

async fn approve(place: &Place, config: &Config, found: &FoundPlugin) -> Result<(), Failure> {
    refuse_own(found)?;
    if let Some(fault) = &found.fault {
        return Err(Failure::input(format!("the plugin '{}' is unusable: {fault}", found.name)));
    }
    let files = files(found);
    let trusting = async |gateway: &Gateway| {
        gateway.approve_plugin(&by(), &found.name, &files).await.map_err(refused)
    };
    with_gate(place, config, trusting).await?;
    for file in &files {
        output::line(&format!("{}  {}", visible(&file.path), file.sha256))?;
    }
    output::line(&format!("approved plugin '{}': it may be started as it is now", found.name))
}

async fn revoke(place: &Place, config: &Config, found: &FoundPlugin) -> Result<(), Failure> {
    refuse_own(found)?;
    let files = files(found);
    let revoking = async |gateway: &Gateway| {
        gateway.revoke_plugin(&by(), &found.name, &files).await.map_err(refused)
    };
    if !with_gate(place, config, revoking).await? {
        return Err(Failure::input(format!("plugin '{}' was not approved", found.name)));
    }
    output::line(&format!("revoked plugin '{}': it is not started any more", found.name))
}

fn refuse_own(found: &FoundPlugin) -> Result<(), Failure> {
    if found.needs_approval() {
        Ok(())
    } else {
        Err(Failure::input(format!(
            "plugin '{}' at {} is your own, or pinned in your config: nobody has to approve it",
            found.name,
            found.executable.display()
        )))
    }
}

fn list(answer: &Value) -> String {
    let plugins = entries(answer, "plugins");
    if plugins.is_empty() {
        return "no plugins: put one into $XDG_DATA_HOME/countersign/plugins or \
                ./.countersign/plugins"
            .to_owned();
    }
    let row = |plugin: &Value| {
        vec![
            text(plugin, "name"),
            or_dash(&plugin["version"]),
            text(plugin, "origin"),
            text(plugin, "status"),
            if plugin["fault"].is_null() { text(plugin, "program") } else { text(plugin, "fault") },
        ]
    };
    let rows: Vec<Vec<String>> = plugins.iter().map(row).collect();
    table(&["NAME", "VERSION", "ORIGIN", "STATUS", "PROGRAM"], &rows)
}

fn show(plugin: &Value) -> String {
    let operations = plugin["operations"].as_array().map(|operations| {
        let names = operations.iter().filter_map(Value::as_str);
        output::plain(&names.collect::<Vec<_>>().join(", "))
    });
    fields(&[
        ("name", text(plugin, "name")),
        ("version", or_dash(&plugin["version"])),
        ("description", or_dash(&plugin["description"])),
        ("origin", text(plugin, "origin")),
        ("status", text(plugin, "status")),
        ("fault", or_dash(&plugin["fault"])),
        ("program", text(plugin, "program")),
        ("sha256", or_dash(&plugin["sha256"])),
        ("operations", operations.unwrap_or_else(|| "- (it is not started)".to_owned())),
    ])
}
