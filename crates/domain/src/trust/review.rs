//! Compares an item that a server lists now with its approved version: unchanged, accepted
//! automatically, or pending review.

use super::fingerprint::{Fingerprint, RawMembers, without};
use crate::config::AutoApprove;
use crate::tool::{Class, Hints};
use suspect::UNSEEN;

/// The kinds of items that are approved one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    Tool,
    Instructions,
    Prompt,
    Template,
}

impl ItemKind {
    pub const ALL: [ItemKind; 4] =
        [ItemKind::Tool, ItemKind::Instructions, ItemKind::Prompt, ItemKind::Template];

    pub const fn as_str(self) -> &'static str {
        match self {
            ItemKind::Tool => "tool",
            ItemKind::Instructions => "instructions",
            ItemKind::Prompt => "prompt",
            ItemKind::Template => "template",
        }
    }

    pub fn parse(text: &str) -> Option<ItemKind> {
        ItemKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns the fingerprint of an item. All of the instructions count as text: text for a model
    /// must not hide in a member that other items may change freely.
    pub fn fingerprint(self, listed: &str) -> Fingerprint {
        match self {
            ItemKind::Tool | ItemKind::Prompt | ItemKind::Template => Fingerprint::of(listed),
            ItemKind::Instructions => Fingerprint::of_text(listed),
        }
    }
}

/// The approved version of one item.
#[derive(Clone, Copy, Debug)]
pub struct ApprovedDefinition<'a> {
    pub fingerprint: Fingerprint,
    pub definition: &'a str,
}

/// The reason an item is pending review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewChange {
    New,
    Changed,
}

impl ReviewChange {
    pub const ALL: [ReviewChange; 2] = [ReviewChange::New, ReviewChange::Changed];

    pub fn as_str(self) -> &'static str {
        match self {
            ReviewChange::New => "new",
            ReviewChange::Changed => "changed",
        }
    }

    pub fn parse(text: &str) -> Option<ReviewChange> {
        ReviewChange::ALL.into_iter().find(|change| change.as_str() == text)
    }
}

/// The reason an item that differs from its approved version needs no review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptanceReason {
    /// Only hints changed, and none of them is less strict.
    Stricter,
    AutoNew,
    AutoChanged,
}

impl AcceptanceReason {
    pub fn as_str(self) -> &'static str {
        match self {
            AcceptanceReason::Stricter => "stricter",
            AcceptanceReason::AutoNew => "auto_new",
            AcceptanceReason::AutoChanged => "auto_changed",
        }
    }
}

/// The state of a listed item compared with its approved version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewState {
    Same,
    Accepted(AcceptanceReason),
    Pending(ReviewChange),
}

/// Compares an item that a server lists now with its approved version. Instructions are passed as
/// plain text, all other items as the JSON that was sent.
pub fn review_state(
    kind: ItemKind,
    listed: &str,
    approved: Option<&ApprovedDefinition<'_>>,
    auto: AutoApprove,
) -> ReviewState {
    let Some(approved) = approved else {
        return match auto {
            AutoApprove::None => ReviewState::Pending(ReviewChange::New),
            AutoApprove::New | AutoApprove::All => ReviewState::Accepted(AcceptanceReason::AutoNew),
        };
    };
    // Nearly all listed items are unchanged, so no hash is computed for them.
    if listed == approved.definition || kind.fingerprint(listed) == approved.fingerprint {
        return ReviewState::Same;
    }
    if kind == ItemKind::Tool && is_stricter(approved.definition, listed) {
        return ReviewState::Accepted(AcceptanceReason::Stricter);
    }
    match auto {
        AutoApprove::None | AutoApprove::New => ReviewState::Pending(ReviewChange::Changed),
        AutoApprove::All => ReviewState::Accepted(AcceptanceReason::AutoChanged),
    }
}

const ANNOTATIONS: &str = "annotations";
const READ_ONLY: &str = "readOnlyHint";
const DESTRUCTIVE: &str = "destructiveHint";
const IDEMPOTENT: &str = "idempotentHint";
const OPEN_WORLD: &str = "openWorldHint";

/// Reports whether two definitions of a tool differ only in hints, and no hint makes it look
/// milder. Returns false if either cannot be read reliably.
fn is_stricter(old: &str, new: &str) -> bool {
    let beside = [UNSEEN[0], UNSEEN[1], ANNOTATIONS];
    let same_beside = match (without(old, &beside), without(new, &beside)) {
        (Some(old), Some(new)) => old == new,
        (None, _) | (_, None) => false,
    };
    let (Some(old), Some(new)) = (Annotations::read(old), Annotations::read(new)) else {
        return false;
    };
    same_beside && old.text == new.text && !loosens(&old, &new)
}

/// The annotations of a tool: its hints, and the rest, which is text.
struct Annotations {
    hints: Hints,
    idempotent: Option<bool>,
    /// The canonical form of everything except the hints.
    text: String,
}

impl Annotations {
    /// Returns `None` if a more lenient parser than the gate's could read them differently.
    fn read(definition: &str) -> Option<Annotations> {
        let RawMembers(members) = RawMembers::read(definition)?;
        let annotations = only(&members, ANNOTATIONS)?.unwrap_or("{}");
        let RawMembers(members) = RawMembers::read(annotations)?;
        let hint = |name: &str| match only(&members, name)? {
            None => Some(None),
            Some("true") => Some(Some(true)),
            Some("false") => Some(Some(false)),
            Some(_) => None,
        };
        Some(Annotations {
            hints: Hints {
                read_only: hint(READ_ONLY)?,
                destructive: hint(DESTRUCTIVE)?,
                open_world: hint(OPEN_WORLD)?,
            },
            idempotent: hint(IDEMPOTENT)?,
            text: without(annotations, &[READ_ONLY, DESTRUCTIVE, OPEN_WORLD, IDEMPOTENT])?,
        })
    }
}

/// Returns the value of the member with that name; `None` if there are several.
fn only<'a>(
    members: &[(String, &'a serde_json::value::RawValue)],
    name: &str,
) -> Option<Option<&'a str>> {
    let mut found = members.iter().filter(|(member, _)| member == name);
    let value = found.next().map(|(_, value)| value.get());
    found.next().is_none().then_some(value)
}

/// Compares hint by hint, so that no hint can offset another. An absent hint has the protocol's
/// default (`readOnlyHint` and `idempotentHint` false, `openWorldHint` true); an absent
/// `destructiveHint` ranks in between, since the protocol treats it as true and the gate's class
/// does not.
fn loosens(old: &Annotations, new: &Annotations) -> bool {
    let gains = |old: Option<bool>, new: Option<bool>, mild| old != Some(mild) && new == Some(mild);
    let (was, is) = (old.hints, new.hints);
    // A token may allow reading with tools that have no hints.
    let falls_silent = was.class() == Class::Write && !was.unverified() && is.unverified();
    gains(was.read_only, is.read_only, true)
        || gains(was.destructive, is.destructive, false)
        || was.destructive == Some(true) && is.destructive != Some(true)
        || gains(was.open_world, is.open_world, false)
        || gains(old.idempotent, new.idempotent, true)
        || falls_silent
}

#[cfg(test)]
mod tests;
