//! An item of a server as a reviewer sees it: what was approved against what is listed now, hidden
//! characters visible, and what to look at twice.

use domain::Catalog;
use domain::trust::{
    Change, Fingerprint, ItemKind, KnownNames, Line, LineChange, difference, visible, warnings,
};
use serde_json::{Value, json};
use store::state::{Definition, Item};

/// The names of every server's tools, for texts that borrow one.
pub(crate) fn known_names(catalog: &Catalog) -> KnownNames {
    KnownNames::new(catalog.servers().flat_map(|server| {
        server.listing.tools().iter().map(|tool| (&*server.name, tool.name.as_str()))
    }))
}

/// One item: the text that waits, or else the one that is approved.
pub(crate) struct Review<'a> {
    pub(crate) text: &'a str,
    pub(crate) fingerprint: String,
    pub(crate) approved: Option<&'a Definition>,
    /// Why it waits, where it does.
    pub(crate) change: Option<Change>,
}

impl<'a> Review<'a> {
    /// Of an item that the store knows.
    pub(crate) fn of(item: &'a Item) -> Option<Review<'a>> {
        let approved = item.approved.as_ref();
        let shown = item.pending.as_ref().or(approved)?;
        let change = item.pending.as_ref().map(|_| match approved {
            Some(_) => Change::Changed,
            None => Change::New,
        });
        let fingerprint = shown.fingerprint.clone();
        Some(Review { text: &shown.text, fingerprint, approved, change })
    }

    /// Of a tool that it does not know.
    pub(crate) fn unknown(definition: &'a str) -> Review<'a> {
        let fingerprint = Fingerprint::of(definition).to_string();
        Review { text: definition, fingerprint, approved: None, change: None }
    }

    /// All of it on lines, hidden characters visible.
    pub(crate) fn visible(&self) -> String {
        let lines = difference(Some(self.text), self.text);
        lines.into_iter().map(|line| line.text).collect::<Vec<_>>().join("\n")
    }

    /// From what was approved to what waits.
    pub(crate) fn difference(&self) -> Option<Value> {
        self.change?;
        let old = self.approved.map(|approved| &*approved.text);
        Some(difference(old, self.text).iter().map(line).collect())
    }

    pub(crate) fn warnings(&self, server: &str, known: &KnownNames) -> Value {
        let found = warnings(self.text, server, known);
        let entry = |warning: &domain::trust::Warning| json!({"kind": warning.kind.as_str(), "text": warning.text});
        found.iter().map(entry).collect()
    }
}

fn line(line: &Line) -> Value {
    match line.mark {
        LineChange::Same | LineChange::Removed | LineChange::Added => {
            json!({"mark": line.mark.as_str(), "text": line.text})
        }
        LineChange::Skipped(lines) => {
            json!({"mark": line.mark.as_str(), "text": line.text, "lines": lines})
        }
    }
}

/// An item by itself; its name is what a person must not be misled by either.
pub(crate) fn entry(server: &str, item: &Item, known: &KnownNames) -> Option<Value> {
    let review = Review::of(item)?;
    let mut entry = json!({
        "kind": item.kind,
        "name": item.name,
        "status": if review.change.is_some() { "pending_approval" } else { "approved" },
        "fingerprint": review.fingerprint,
        "text": review.text,
        "visible": review.visible(),
        "warnings": review.warnings(server, known),
    });
    if ItemKind::parse(&item.kind) == Some(ItemKind::Instructions) {
        entry["visible"] = visible(review.text).into();
    }
    if let Some(approved) = review.approved {
        entry["approved_fingerprint"] = approved.fingerprint.as_str().into();
    }
    if let (Some(change), Some(difference)) = (review.change, review.difference()) {
        entry["change"] = change.as_str().into();
        entry["diff"] = difference;
    }
    Some(entry)
}
