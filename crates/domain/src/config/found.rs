//! A `./countersign.json` that was merely found, laid over the person's own configuration. It can
//! only narrow: whoever opens a strange folder must not run its code or live by its rules.

use super::{Config, Faults, ParsedConfig, ToolRules, read};

#[cfg(test)]
mod tests;

/// Lays a found file over the person's own configuration: servers that are new (quarantined),
/// lists that narrow the tools of the person's own, profiles, redaction. A file with faults
/// changes nothing. The notes are on the found file.
pub fn overlay(own: Config, found: &str) -> Result<ParsedConfig, Faults> {
    let found = read::found(found, &own)?;
    let mut config = own;
    for (name, rules) in found.narrowed {
        narrow(&mut config, &name, rules);
    }
    config.servers.extend(found.servers);
    config.profiles.extend(found.profiles);
    config.redact.add(found.redact);
    Ok(ParsedConfig { config, notes: found.notes })
}

fn narrow(config: &mut Config, name: &str, rules: ToolRules) {
    for server in config.servers.iter_mut().filter(|server| server.name == name) {
        let tools = std::mem::take(&mut server.tools);
        server.tools = tools.narrowed(rules.clone());
    }
}
