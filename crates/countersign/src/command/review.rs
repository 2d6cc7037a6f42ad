//! What a reviewer reads: warnings first, then what changed. The gate has made hidden characters
//! visible; colours are for a terminal.

use std::io::IsTerminal;

use serde_json::Value;

use crate::output::{entries, plain, text};

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const FAINT: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// One line each, and a blank line after the last; nothing where there are none.
pub(super) fn warnings(item: &Value) -> String {
    let warnings = entries(item, "warnings");
    let line = |warning: &Value| {
        format!("warning: {}: {}\n", plain(&text(warning, "kind")), plain(&text(warning, "text")))
    };
    match warnings {
        [] => String::new(),
        warnings => warnings.iter().map(line).collect::<String>() + "\n",
    }
}

/// What waits against what was approved.
pub(super) fn changes(item: &Value) -> String {
    let head = match item["change"].as_str() {
        Some("new") => "it is new: nothing of it was approved before",
        Some(_) => "it has changed since it was approved",
        None => return format!("{}it is as it was approved", warnings(item)),
    };
    let is_coloured = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    format!("{}{head}\n\n{}", warnings(item), difference(item, is_coloured))
}

fn difference(item: &Value, is_coloured: bool) -> String {
    let line = |line: &Value| {
        let (sign, colour) = match line["mark"].as_str() {
            Some("removed") => ('-', RED),
            Some("added") => ('+', GREEN),
            Some("skipped") => (' ', FAINT),
            _ => (' ', ""),
        };
        let shown = format!("{sign} {}", plain(&text(line, "text")));
        if is_coloured && !colour.is_empty() { format!("{colour}{shown}{PLAIN}") } else { shown }
    };
    entries(item, "diff").iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A line for each item that was approved.
pub(super) fn approved(server: &str, answer: &Value) -> String {
    let line = |item: &Value| {
        let what = match (text(item, "kind").as_str(), text(item, "name").as_str()) {
            ("instructions", _) => format!("the instructions of '{server}'"),
            (kind, name) => format!("{kind} '{server}:{name}'"),
        };
        plain(&format!("approved {what} {}", text(item, "fingerprint")))
    };
    entries(answer, "approved").iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_has_signs_and_colours_only_where_they_are_wanted() {
        let item = json!({"diff": [{"mark": "removed", "text": "a"}, {"mark": "added", "text": "b\u{1b}"},
            {"mark": "same", "text": "c"}, {"mark": "skipped", "text": "… 3 lines unchanged"}]});
        assert_eq!(difference(&item, false), "- a\n+ b\u{fffd}\n  c\n  … 3 lines unchanged");
        assert!(difference(&item, true).starts_with("\u{1b}[31m- a\u{1b}[0m\n\u{1b}[32m+ b"));
    }
}
