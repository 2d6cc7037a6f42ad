//! Applies an untrusted `./countersign.json` found in the folder to the user's own configuration.
//! It can only narrow: opening an unknown folder must not run its code or apply its rules.

use super::{Config, Faults, ParsedConfig, ToolRules, read};

#[cfg(test)]
mod tests;

/// Applies a found file to the user's own configuration: new servers (quarantined), lists that
/// narrow the tools of the user's servers, profiles, redaction. A file with faults changes nothing.
/// The notes refer to the found file.
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
