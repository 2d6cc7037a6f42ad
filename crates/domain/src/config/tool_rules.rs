//! The tools of a server that the configuration allows.

use std::collections::BTreeSet;

/// The tools of a server that the configuration allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolRules {
    #[default]
    All,
    Only(BTreeSet<String>),
    Except(BTreeSet<String>),
}

impl ToolRules {
    pub fn allow(&self, tool: &str) -> bool {
        match self {
            ToolRules::All => true,
            ToolRules::Only(names) => names.contains(tool),
            ToolRules::Except(names) => !names.contains(tool),
        }
    }

    /// Returns the tools that both allow; no third variant is needed for them.
    #[must_use]
    pub fn narrowed(self, other: ToolRules) -> ToolRules {
        match (self, other) {
            (ToolRules::All, rules) | (rules, ToolRules::All) => rules,
            (ToolRules::Except(mut names), ToolRules::Except(more)) => {
                names.extend(more);
                ToolRules::Except(names)
            }
            (ToolRules::Only(mut names), rules) | (rules, ToolRules::Only(mut names)) => {
                names.retain(|name| rules.allow(name));
                ToolRules::Only(names)
            }
        }
    }

    /// Returns every name in the rules.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            ToolRules::All => None,
            ToolRules::Only(names) | ToolRules::Except(names) => Some(names),
        };
        names.into_iter().flatten().map(String::as_str)
    }
}
