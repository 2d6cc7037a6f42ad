//! The conditions on the resources that a record touched. All of them must hold for one touch.

use domain::tool::Class;
use rusqlite::types::Value;
use touch::container::possible_containers;
use touch::targets::{Access, FILESYSTEM, WEB};

use super::{Criterion, Lead, RecordFilter};
use crate::read::search::Conditions;

/// The effect on a resource that a filter asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchAccess {
    Read,
    /// Includes deletions.
    Write,
    /// A write by a destructive call.
    Delete,
    Unknown,
}

impl TouchAccess {
    pub const ALL: [TouchAccess; 4] =
        [TouchAccess::Read, TouchAccess::Write, TouchAccess::Delete, TouchAccess::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            TouchAccess::Read => "read",
            TouchAccess::Write => "write",
            TouchAccess::Delete => "delete",
            TouchAccess::Unknown => "unknown",
        }
    }

    /// Returns the access of such a touch.
    pub fn of_touch(self) -> Access {
        match self {
            TouchAccess::Read => Access::Read,
            TouchAccess::Write | TouchAccess::Delete => Access::Write,
            TouchAccess::Unknown => Access::Unknown,
        }
    }

    /// Returns the class that the call must have.
    pub fn class(self) -> Option<Class> {
        (self == TouchAccess::Delete).then_some(Class::Destructive)
    }
}

/// Reports whether the name of a resource is a pattern.
pub(in crate::read) fn is_pattern(resource: &str) -> bool {
    resource.contains('*')
}

impl RecordFilter {
    /// Returns the condition that a record touches what the filter names, if it names something.
    pub(super) fn touches(&self) -> Option<Criterion> {
        let (targets, mut touches) = (self.targets(), Conditions::default());
        if let Some(access) = self.access {
            // The encoding of `touches::who`.
            touches.add("who & 3 = ?", [(access.of_touch() as i64).into()]);
        }
        let each = targets.clone().and(&touches);
        if each.is_empty() {
            return None;
        }
        // A cross join is read in this order: the few touches of the record, and their targets.
        let from = match targets.is_empty() {
            true => "touches",
            false => "touches CROSS JOIN targets USING (target)",
        };
        let sql = each.select("1", from, "AND touches.number = activity.number");
        let plain = Criterion::plain(&format!("EXISTS ({sql})"), each.values().to_vec());
        if targets.is_empty() {
            return Some(plain);
        }
        let mut lead = Conditions::default();
        let sql = format!("target IN ({})", targets.select("target", "targets", ""));
        lead.add(&sql, targets.values().iter().cloned());
        // A touch has the time of its record.
        let lead = lead.and(&touches).and(&self.period());
        Some(Criterion { lead: Some(Lead::Touches(lead)), ..plain })
    }

    /// Returns the conditions on the table of targets.
    pub(in crate::read) fn targets(&self) -> Conditions {
        let mut targets = Conditions::default();
        // Where SQLite must use the index of names twice, that of systems would keep it from doing so.
        let system = if self.containers { "+system = ?" } else { "system = ?" };
        targets.add_if(system, self.target_system.clone());
        let containers = |of: &str| self.containers.then(|| containers(of));
        match (&self.target_resource, &self.under) {
            (None, None) => {}
            (Some(resource), None) => {
                add_either(&mut targets, named(resource), containers(resource))
            }
            (None, Some(folder)) => add_either(&mut targets, within(folder), containers(folder)),
            (Some(resource), Some(folder)) => {
                add_either(&mut targets, named(resource), containers(resource));
                targets = targets.and(&within(folder));
            }
        }
        targets
    }
}

fn add_either(targets: &mut Conditions, one: Conditions, other: Option<Conditions>) {
    let both = match other {
        Some(other) => one.or(&other),
        None => one,
    };
    *targets = std::mem::take(targets).and(&both);
}

/// Returns the condition on a name, or on the names that fit a pattern.
fn named(resource: &str) -> Conditions {
    let mut names = Conditions::default();
    let Some((start, _)) = resource.split_once('*') else {
        names.add("resource = ?", [text(resource)]);
        return names;
    };
    add_range(&mut names, start);
    // SQLite knows more signs than `*`, which are letters here.
    let pattern = resource.replace('[', "[[]").replace('?', "[?]");
    names.add("resource GLOB ?", [pattern.into()]);
    names
}

/// Returns the condition on a container and everything in it.
fn within(container: &str) -> Conditions {
    let mut names = Conditions::default();
    add_range(&mut names, container);
    let sql = format!("(resource = ? OR {})", lies_in("?", "resource"));
    names.add(&sql, repeated(container, &sql));
    names
}

/// Returns the condition on the containers of a resource.
fn containers(content: &str) -> Conditions {
    let possible: Vec<&str> = possible_containers(content).collect();
    let possible = serde_json::to_string(&possible).unwrap_or_default();
    let mut names = Conditions::default();
    names.add("resource IN (SELECT value FROM json_each(?))", [possible.into()]);
    let sql = lies_in("resource", "?");
    names.add(&sql, repeated(content, &sql));
    names
}

/// Restricts names to those with this beginning, by the index of names.
fn add_range(names: &mut Conditions, beginning: &str) {
    if !beginning.is_empty() {
        names.add("resource >= ?", [text(beginning)]);
    }
    if let Some(end) = after(beginning) {
        names.add("resource < ?", [end.into()]);
    }
}

/// Returns the SQL of `touch::container::contains`, for two names of which one begins with the other.
fn lies_in(container: &str, content: &str) -> String {
    format!(
        "(CASE WHEN substr({container}, -1) = '/' THEN {content} <> {container}
          ELSE CASE substr({content}, length({container}) + 1, 1)
            WHEN '/' THEN 1
            -- A question mark, which would count as a value.
            WHEN char(63) THEN system = '{WEB}'
            WHEN '#' THEN system <> '{FILESYSTEM}'
            WHEN ':' THEN system <> '{FILESYSTEM}'
            WHEN '@' THEN system <> '{FILESYSTEM}'
            WHEN '.' THEN system <> '{FILESYSTEM}' AND instr({content}, '/') = 0
            ELSE 0 END END)"
    )
}

/// Returns the same value for each question mark.
fn repeated(value: &str, sql: &str) -> Vec<Value> {
    vec![text(value); sql.matches('?').count()]
}

/// Returns the first text that follows all with this beginning; none if no text does.
pub(in crate::read) fn after(beginning: &str) -> Option<String> {
    let mut rest = beginning.to_owned();
    while let Some(last) = rest.pop() {
        // A range of characters leaves out those that are none.
        if let Some(next) = (last..=char::MAX).nth(1) {
            rest.push(next);
            return Some(rest);
        }
    }
    None
}

fn text(value: &str) -> Value {
    value.to_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_after_every_name_with_the_beginning() {
        for (beginning, end) in [
            ("/a", Some("/b")),
            ("/", Some("0")),
            ("a\u{d7ff}", Some("a\u{e000}")),
            ("a\u{10ffff}", Some("b")),
            ("\u{10ffff}", None),
            ("", None),
        ] {
            assert_eq!(after(beginning).as_deref(), end, "{beginning:?}");
        }
    }
}
