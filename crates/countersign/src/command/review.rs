//! Review output: warnings first, then the changes. The gate has made hidden characters visible; a
//! terminal also gets colours.

use std::io::IsTerminal;

use admin::view::{ApprovedEntry, DiffLine, ServerItems, TextWarning, ToolEntry};
use serde::Serialize;

use crate::output::plain;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const FAINT: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// Formats warnings, given as kind and text, one line each with a blank line after the last; empty
/// if there are none.
pub(super) fn warnings<'a>(warnings: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let line = |(kind, text)| format!("warning: {}: {}\n", plain(kind), plain(text));
    match warnings.map(line).collect::<String>() {
        none if none.is_empty() => none,
        lines => lines + "\n",
    }
}

pub(super) fn text_warnings(found: &[TextWarning]) -> String {
    warnings(found.iter().map(|warning| (&*warning.kind, &*warning.text)))
}

/// The pending text of a tool against the approved one.
#[derive(Serialize)]
pub(super) struct ToolChange<'a> {
    name: &'a str,
    status: &'a str,
    change: Option<&'a str>,
    warnings: &'a [TextWarning],
    diff: Option<&'a [DiffLine]>,
    /// Other tools of the server with the same change.
    same_change: Vec<String>,
}

impl ToolChange<'_> {
    pub(super) fn of<'a>(tool: &'a ToolEntry, pending: &ServerItems) -> ToolChange<'a> {
        let hash = tool.change_hash.as_deref();
        let alike = pending.items.iter().filter(|item| {
            item.kind == "tool" && hash.is_some() && item.change_hash.as_deref() == hash
        });
        let names = alike.map(|item| format!("{}:{}", tool.server, item.name));
        ToolChange {
            same_change: names.filter(|name| *name != tool.name).collect(),
            name: &tool.name,
            status: &tool.status,
            change: tool.change.as_deref(),
            warnings: tool.warnings.as_deref().unwrap_or_default(),
            diff: tool.diff.as_deref(),
        }
    }

    pub(super) fn text(&self) -> String {
        let warnings = text_warnings(self.warnings);
        let head = match self.change {
            Some("new") => "it is new: nothing of it was approved before",
            Some(_) => "it has changed since it was approved",
            None => return format!("{warnings}it is as it was approved"),
        };
        let is_coloured = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let difference = difference(self.diff.unwrap_or_default(), is_coloured);
        format!("{warnings}{head}\n\n{difference}{}", self.alike())
    }

    /// Names the other tools with the same change, in the words that approve all of them.
    fn alike(&self) -> String {
        if self.same_change.is_empty() {
            return String::new();
        }
        let names = std::iter::once(self.name).chain(self.same_change.iter().map(|name| &**name));
        let names: Vec<String> = names.map(|name| plain(&workflow::quoted(name))).collect();
        let (count, names) = (self.same_change.len(), names.join(" "));
        format!(
            "\n\nthe same change waits in {count} more; approve all with\n\
             countersign tools approve {names}"
        )
    }
}

fn difference(lines: &[DiffLine], is_coloured: bool) -> String {
    let line = |line: &DiffLine| {
        let (sign, colour) = match line.mark.as_str() {
            "removed" => ('-', RED),
            "added" => ('+', GREEN),
            "skipped" => (' ', FAINT),
            _ => (' ', ""),
        };
        let shown = format!("{sign} {}", plain(&line.text));
        if is_coloured && !colour.is_empty() { format!("{colour}{shown}{PLAIN}") } else { shown }
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Formats a line for each approved item.
pub(super) fn approved(server: &str, items: &[ApprovedEntry]) -> String {
    let line = |item: &ApprovedEntry| {
        let what = match item.kind.as_str() {
            "instructions" => format!("the instructions of '{server}'"),
            kind => format!("{kind} '{server}:{}'", item.name),
        };
        plain(&format!("approved {what} {}", item.fingerprint))
    };
    items.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_signs_and_colours_only_where_they_are_wanted() {
        let lines = [
            ("removed", "a"),
            ("added", "b\u{1b}"),
            ("same", "c"),
            ("skipped", "… 3 lines unchanged"),
        ]
        .map(|(mark, text)| DiffLine {
            mark: mark.to_owned(),
            text: text.to_owned(),
            lines: None,
        });
        assert_eq!(difference(&lines, false), "- a\n+ b⟨U+001B⟩\n  c\n  … 3 lines unchanged");
        assert!(difference(&lines, true).starts_with("\u{1b}[31m- a\u{1b}[0m\n\u{1b}[32m+ b"));
    }
}
