//! Reviews and approvals: warnings first, then the changes; an approval names the fingerprints of
//! what was read. The gate has made hidden characters visible; a terminal also gets colours.

use admin::view::{
    ApprovalRequest, ApprovedEntry, ApprovedItems, DiffLine, ErrorAnswer, ItemChoice, ReviewItem,
    ServerItems, ServerReviewEntry, TextWarning, ToolEntry,
};
use axum::http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::control::{Control, encode, successful, words};
use crate::exit::Failure;
use crate::output::terminal::Terminal;
use crate::output::{self, plain, plain_lines};

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
        changed(self.change, self.warnings, self.diff) + &self.alike()
    }

    /// Names the other tools with the same change, with the command that approves all of them.
    fn alike(&self) -> String {
        if self.same_change.is_empty() {
            return String::new();
        }
        let names = std::iter::once(self.name).chain(self.same_change.iter().map(|name| &**name));
        let names: Vec<String> = names.map(|name| plain(&workflow::quoted(name))).collect();
        let (count, names) = (self.same_change.len(), names.join(" "));
        format!(
            "\n\n{count} more tools have the same change; to approve all, run\n\
             countersign tools approve {names}"
        )
    }
}

fn changed(change: Option<&str>, warnings: &[TextWarning], diff: Option<&[DiffLine]>) -> String {
    let warnings = text_warnings(warnings);
    let head = match change {
        Some("new") => "new: never approved before",
        Some(_) => "changed since approval",
        None => return format!("{warnings}unchanged since approval"),
    };
    format!(
        "{warnings}{head}\n\n{}",
        difference(diff.unwrap_or_default(), Terminal::stdout().has_colour)
    )
}

/// Formats a pending item for its reviewer.
pub(super) fn item(server: &str, item: &ReviewItem) -> String {
    let diff = changed(item.change.as_deref(), &item.warnings, item.diff.as_deref());
    format!("{}\n{diff}\n", plain(&item_name(server, &item.kind, &item.name)))
}

/// Groups pending items by their change: the same change is read once and decided once.
pub(super) fn groups(items: &[ReviewItem]) -> Vec<Vec<&ReviewItem>> {
    let mut groups: Vec<Vec<&ReviewItem>> = Vec::new();
    for item in items {
        let is_alike = |group: &&mut Vec<&ReviewItem>| {
            item.change_hash.is_some() && group[0].change_hash == item.change_hash
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// Formats pending items with the same change for their reviewer.
pub(super) fn group(server: &str, items: &[&ReviewItem]) -> String {
    let others = items[1..].iter().map(|item| plain(&item_name(server, &item.kind, &item.name)));
    let others: Vec<String> = others.collect();
    let first = item(server, items[0]);
    match others.as_slice() {
        [] => first,
        others => format!("{first}\nthe same change in {}\n", others.join(", ")),
    }
}

/// Formats a server for its reviewer, without its items.
pub(super) fn server(review: &ServerReviewEntry) -> String {
    let mut text = format!("server '{}'", plain(&review.name));
    if let Some(reason) = &review.reason {
        text += &format!(": {reason}");
    }
    let definition = match &review.diff {
        Some(diff) => difference(diff, Terminal::stdout().has_colour),
        None => plain_lines(&review.visible),
    };
    text += &format!("\n\n{definition}\n");
    if !review.listed {
        text += "\nit has listed nothing yet: its first list after approval counts as approved\n";
    }
    text
}

/// Formats a server and its pending items for their reviewer.
pub(super) fn whole(review: &ServerReviewEntry) -> String {
    let own = review.quarantined.then(|| server(review));
    let items = review.items.iter().map(|pending| item(&review.name, pending));
    own.into_iter().chain(items).collect::<Vec<_>>().join("\n")
}

/// Reads what of a server waits.
pub(super) async fn read(control: &Control, server: &str) -> Result<ServerReviewEntry, Failure> {
    output::read(&control.get(&format!("/api/v1/servers/{}/review", encode(server))).await?)
}

/// Sends an approval. If it names something else than what is there now, the failure shows that.
pub(super) async fn send(
    control: &Control,
    path: &str,
    body: &impl Serialize,
) -> Result<Value, Failure> {
    let body = serde_json::to_string(body)
        .map_err(|error| Failure::system(format!("cannot ask the gate: {error}")))?;
    let answer = control.request(Method::POST, path, Some(body)).await?;
    let refusal: Option<ErrorAnswer> = serde_json::from_str(&answer.text).ok();
    let now = refusal
        .and_then(|refusal| ServerReviewEntry::deserialize(&refusal.error.details["review"]).ok());
    match now {
        Some(now) => Err(Failure::input(format!("{}\n\n{}", words(&answer), whole(&now)))),
        None => successful(&answer),
    }
}

/// Approves these items as they were read, and lists them.
pub(super) async fn approve_items(
    control: &Control,
    server: &str,
    items: Vec<ItemChoice>,
) -> Result<(), Failure> {
    let path = format!("/api/v1/servers/{}/approve-items", encode(server));
    let answer = send(control, &path, &ApprovalRequest { items }).await?;
    let answer: ApprovedItems = output::read(&answer)?;
    output::line(&approved(server, &answer.approved))
}

/// Asks whether to approve what was shown.
pub(super) async fn confirm(what: &str) -> Result<(), Failure> {
    let answer = output::ask(&format!("approve {what} as shown? [y/N]")).await?;
    match answer.as_deref() {
        Some("y" | "Y" | "yes") => Ok(()),
        Some(_) => Err(Failure::input("nothing was approved")),
        None => Err(Failure::input("nothing was approved: answer y, or pass --yes")),
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
        let name = item_name(server, &item.kind, &item.name);
        plain(&format!("approved {name} {}", item.fingerprint))
    };
    items.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn item_name(server: &str, kind: &str, name: &str) -> String {
    match kind {
        "instructions" => format!("the instructions of '{server}'"),
        kind => format!("{kind} '{server}:{name}'"),
    }
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
