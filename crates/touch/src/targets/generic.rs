//! Names the resources of calls to tools without a description of targets: by the words of keys,
//! the name of the tool and the form of values. Where these leave a doubt, nothing is named.

mod given;
mod role;
mod scope;
mod things;
mod tool;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::keys::inner_properties;
use super::plan::{CallPlace, PlannedTargets, ToolShape};
use super::{Access, FOUND_MAX, Target, TargetBasis, sql};
use given::{Given, gather};
use role::Role;
use tool::ToolWords;

/// A call with more arguments is data; nothing of it is looked at.
const ARGUMENTS_MAX: usize = 256;

/// Properties of a schema whose roles are kept; those beyond are worked out at the call.
const PROPERTIES_MAX: usize = 512;

/// The roles of a tool's parameters, worked out once.
#[derive(Clone, Debug)]
pub(super) struct GenericPlan {
    system: String,
    tool: ToolWords,
    roles: HashMap<String, Option<Role>>,
}

/// A resource, the access that the arguments show, and the key that named it.
struct Finding<'a> {
    target: Target,
    access: Option<Access>,
    given: &'a Given<'a>,
}

impl GenericPlan {
    pub(super) fn compile(shape: &ToolShape<'_>) -> GenericPlan {
        let tool = ToolWords::new(shape.tool, shape.server, shape.info);
        let mut roles = HashMap::new();
        let inner = shape.properties.values().filter_map(inner_properties).flat_map(Map::keys);
        for key in shape.properties.keys().chain(inner).take(PROPERTIES_MAX) {
            if !roles.contains_key(key) {
                roles.insert(key.clone(), Role::of(key, &tool));
            }
        }
        GenericPlan { system: shape.server.to_owned(), tool, roles }
    }

    /// Returns what a call touches. `None` if no argument says anything about resources; none found
    /// if arguments do, and yet name nothing. `is_partial` tells whether one may be missing.
    pub(super) fn find(
        &self,
        arguments: &Map<String, Value>,
        place: &CallPlace<'_>,
        is_partial: &mut bool,
    ) -> Option<PlannedTargets> {
        if arguments.len() > ARGUMENTS_MAX {
            *is_partial = true;
            return Some(nothing());
        }
        let gathered = gather(self, arguments);
        *is_partial = gathered.is_partial && !self.tool.connects;
        let mut given = gathered.given;
        if given.is_empty() {
            return None;
        }
        // The order of arguments means nothing.
        given.sort_unstable_by(|one, other| one.place().cmp(&other.place()));
        let call = things::Call::new(self, place, &given);
        let found = if self.tool.connects { Vec::new() } else { call.find() };
        *is_partial |= call.is_partial();
        // A text under a key for manifests may be the name of something.
        if found.is_empty() && given.iter().all(|given| *given.role == Role::Manifest) {
            return None;
        }
        Some(planned(found))
    }

    /// Reports whether a long value under this key is a name or a statement that is too long. A text
    /// names nothing, and the name of a path may be shorter than the path.
    pub(super) fn names_briefly(&self, key: &str, value: &Value) -> bool {
        let role = given::role(self, key);
        match role.as_deref() {
            Some(Role::Statement) => {
                let bytes = value.as_str().map_or(0, str::len);
                !self.tool.searches && bytes > sql::STATEMENT_BYTES_MAX
            }
            Some(
                Role::Scope { .. }
                | Role::Id { .. }
                | Role::Bare
                | Role::Name
                | Role::Key { .. }
                | Role::Kind,
            ) => true,
            _ => false,
        }
    }

    /// Reports whether no parameter can name a resource but the known ones.
    pub(super) fn names_only(&self, properties: &Map<String, Value>, known: &[String]) -> bool {
        let is_plain = |(key, schema): (&String, &Value)| {
            let role = given::role(self, key);
            match role.as_deref() {
                _ if known.contains(key) => true,
                None | Some(Role::Value | Role::Method) => true,
                // What an object may hold is known only if its schema says it.
                Some(Role::Envelope { .. }) => match inner_properties(schema) {
                    Some(inner) => self.names_only(inner, known),
                    None => is_scalar(schema),
                },
                Some(_) => false,
            }
        };
        properties.iter().all(is_plain)
    }

    /// Returns the parameters that may name a resource, in the order of their names.
    pub(super) fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = self
            .roles
            .iter()
            .filter_map(|(key, role)| Some(&**key).filter(|_| role.is_some()))
            .collect();
        keys.sort_unstable();
        keys
    }

    pub(super) fn system(&self) -> &str {
        &self.system
    }
}

/// Reports whether no value of a schema holds an object.
fn is_scalar(schema: &Value) -> bool {
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => schema.get("items").is_some_and(is_scalar),
        Some(kind) => ["boolean", "integer", "number", "string"].contains(&kind),
        None => false,
    }
}

fn nothing() -> PlannedTargets {
    PlannedTargets::of(Vec::new(), TargetBasis::NO_RESOURCE)
}

/// Keeps each resource once.
fn planned(findings: Vec<Finding<'_>>) -> PlannedTargets {
    let Some(first) = findings.first() else {
        return nothing();
    };
    let basis = TargetBasis::new(first.given.basis());
    let mut found: Vec<(Target, Option<Access>)> = Vec::with_capacity(findings.len());
    for Finding { target, access, .. } in findings {
        if found.len() < FOUND_MAX && found.iter().all(|(had, _)| *had != target) {
            found.push((target, access));
        }
    }
    PlannedTargets::of(found, basis)
}
