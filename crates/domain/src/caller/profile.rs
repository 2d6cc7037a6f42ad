//! A profile resolved for lookups: the servers and tools that it contains.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config::{self, ServerOrigin};
use crate::tool::ToolName;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub name: Arc<str>,
    pub origin: ServerOrigin,
    pub servers: BTreeSet<String>,
    /// `None` allows all tools of the servers.
    pub tools: Option<ProfileTools>,
    pub exclude: ProfileTools,
}

/// Tools by server, so that a lookup does not allocate a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileTools(BTreeMap<String, BTreeSet<String>>);

impl ProfileTools {
    pub fn contains(&self, server: &str, tool: &str) -> bool {
        self.0.get(server).is_some_and(|tools| tools.contains(tool))
    }

    fn intersection(&self, other: &ProfileTools) -> ProfileTools {
        self.names().filter(|name| other.contains(&name.server, &name.tool)).collect()
    }

    fn union(&self, other: &ProfileTools) -> ProfileTools {
        self.names().chain(other.names()).collect()
    }

    fn names(&self) -> impl Iterator<Item = ToolName> {
        self.0.iter().flat_map(|(server, tools)| {
            let name = |tool: &String| ToolName { server: server.clone(), tool: tool.clone() };
            tools.iter().map(name)
        })
    }
}

impl FromIterator<ToolName> for ProfileTools {
    fn from_iter<I: IntoIterator<Item = ToolName>>(names: I) -> ProfileTools {
        let mut tools = ProfileTools::default();
        for ToolName { server, tool } in names {
            tools.0.entry(server).or_default().insert(tool);
        }
        tools
    }
}

impl From<&config::ProfileConfig> for Profile {
    fn from(profile: &config::ProfileConfig) -> Profile {
        Profile {
            name: profile.name.as_str().into(),
            origin: profile.origin,
            servers: profile.servers.iter().cloned().collect(),
            tools: profile.tools.as_ref().map(|tools| tools.iter().cloned().collect()),
            exclude: profile.exclude.iter().cloned().collect(),
        }
    }
}

impl Profile {
    pub fn has_tool(&self, server: &str, tool: &str) -> bool {
        self.servers.contains(server)
            && self.tools.as_ref().is_none_or(|tools| tools.contains(server, tool))
            && !self.exclude.contains(server, tool)
    }

    /// Returns the tools in both profiles, under both names.
    pub fn intersection(&self, other: &Profile) -> Profile {
        let tools = match (&self.tools, &other.tools) {
            (Some(tools), Some(others)) => Some(tools.intersection(others)),
            (Some(tools), None) | (None, Some(tools)) => Some(tools.clone()),
            (None, None) => None,
        };
        let both_own = self.origin == ServerOrigin::Own && other.origin == ServerOrigin::Own;
        Profile {
            name: format!("{}+{}", self.name, other.name).into(),
            origin: if both_own { ServerOrigin::Own } else { ServerOrigin::Found },
            servers: self.servers.intersection(&other.servers).cloned().collect(),
            tools,
            exclude: self.exclude.union(&other.exclude),
        }
    }
}
