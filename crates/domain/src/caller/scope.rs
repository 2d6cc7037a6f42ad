//! The scope of a token, as it is specified and stored. The JSON is a published format: it appears
//! in the store and in responses about tokens.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::json;
use thiserror::Error;

use super::rights::{Operations, Surfaces, TokenSurface, UnannotatedRule};
use crate::code::Code;
use crate::config::name_fault;
use crate::refusal::Refusal;
use crate::tool::Class;

/// A checked scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Words", into = "Words")]
pub struct Scope {
    /// `None` allows all servers.
    pub servers: Option<BTreeSet<String>>,
    pub operations: Operations,
    pub surfaces: Surfaces,
    pub profile: Option<String>,
    pub unannotated: UnannotatedRule,
}

/// A scope as written; omitted members get their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    #[serde(default)]
    pub servers: Option<Vec<String>>,
    #[serde(default)]
    pub operations: Vec<String>,
    #[serde(default)]
    pub surfaces: Option<Vec<String>>,
    #[serde(default)]
    pub profile: Option<String>,
    #[serde(default)]
    pub unannotated_tools: Option<String>,
}

/// A fault in a scope as written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScopeFault {
    #[error("invalid {field} '{word}': must be {}", listed(valid))]
    Word { field: &'static str, word: String, valid: Vec<&'static str> },
    #[error("'{field}' must name at least one of {}", listed(valid))]
    Empty { field: &'static str, valid: Vec<&'static str> },
    #[error("'servers' must name at least one server; omit it to allow all")]
    NoServers,
    #[error("invalid name '{word}' in '{field}': {fault}")]
    Name { field: &'static str, word: String, fault: String },
}

impl TryFrom<Words> for Scope {
    type Error = ScopeFault;

    fn try_from(words: Words) -> Result<Scope, ScopeFault> {
        let operations = operations(&words.operations)?;
        let unannotated = match words.unannotated_tools {
            Some(word) => {
                one("unannotated_tools", &word, &UnannotatedRule::ALL, UnannotatedRule::as_str)?
            }
            None if operations.is_read_only() => UnannotatedRule::Deny,
            None => UnannotatedRule::Allow,
        };
        let profile = words.profile.map(|name| checked_name("profile", name)).transpose()?;
        Ok(Scope {
            servers: words.servers.map(servers).transpose()?,
            operations,
            surfaces: words.surfaces.map_or(Ok(Surfaces::DISCOVERY), |words| surfaces(&words))?,
            profile,
            unannotated,
        })
    }
}

impl From<Scope> for Words {
    fn from(scope: Scope) -> Words {
        let operations = Class::ALL.into_iter().filter(|class| scope.operations.allow(*class));
        let surfaces =
            TokenSurface::ALL.into_iter().filter(|surface| scope.surfaces.include(*surface));
        Words {
            servers: scope.servers.map(|names| names.into_iter().collect()),
            operations: operations.map(|class| class.as_str().to_owned()).collect(),
            surfaces: Some(surfaces.map(|surface| surface.as_str().to_owned()).collect()),
            profile: scope.profile,
            unannotated_tools: Some(scope.unannotated.as_str().to_owned()),
        }
    }
}

impl From<ScopeFault> for Refusal {
    fn from(fault: ScopeFault) -> Refusal {
        let message = fault.to_string();
        let details = match fault {
            ScopeFault::Word { field, word, valid } => {
                json!({"field": field, "provided": word, "valid_values": valid})
            }
            ScopeFault::Empty { field, valid } => json!({"field": field, "valid_values": valid}),
            ScopeFault::NoServers => json!({"field": "servers"}),
            ScopeFault::Name { field, word, .. } => json!({"field": field, "provided": word}),
        };
        Refusal::new(Code::InvalidRequest, message).with(details)
    }
}

fn operations(words: &[String]) -> Result<Operations, ScopeFault> {
    let mut operations = Operations::NONE;
    for class in some("operations", words, &Class::ALL, Class::as_str)? {
        match class {
            Class::Read => operations.read = true,
            Class::Write => operations.write = true,
            Class::Destructive => operations.destructive = true,
        }
    }
    Ok(operations)
}

fn surfaces(words: &[String]) -> Result<Surfaces, ScopeFault> {
    let mut surfaces = Surfaces { discovery: false, passthrough: false };
    for surface in some("surfaces", words, &TokenSurface::ALL, TokenSurface::as_str)? {
        match surface {
            TokenSurface::Discovery => surfaces.discovery = true,
            TokenSurface::Passthrough => surfaces.passthrough = true,
        }
    }
    Ok(surfaces)
}

fn servers(names: Vec<String>) -> Result<BTreeSet<String>, ScopeFault> {
    if names.is_empty() {
        return Err(ScopeFault::NoServers);
    }
    names.into_iter().map(|name| checked_name("servers", name)).collect()
}

fn checked_name(field: &'static str, word: String) -> Result<String, ScopeFault> {
    match name_fault(&word) {
        Some(fault) => Err(ScopeFault::Name { field, word, fault }),
        None => Ok(word),
    }
}

/// Parses a list of at least one word, each from a fixed set.
fn some<T: Copy>(
    field: &'static str,
    words: &[String],
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<Vec<T>, ScopeFault> {
    if words.is_empty() {
        return Err(ScopeFault::Empty { field, valid: all.iter().map(|it| name(*it)).collect() });
    }
    words.iter().map(|word| one(field, word, all, name)).collect()
}

fn one<T: Copy>(
    field: &'static str,
    word: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, ScopeFault> {
    all.iter().copied().find(|it| name(*it) == word).ok_or_else(|| {
        let valid = all.iter().map(|it| name(*it)).collect();
        ScopeFault::Word { field, word: word.to_owned(), valid }
    })
}

/// Formats words as `a, b, or c`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, other] => format!("{one} or {other}"),
        [first @ .., last] => format!("{}, or {last}", first.join(", ")),
    }
}
