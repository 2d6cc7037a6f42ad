//! How an item that a server lists now stands to what a person approved of it: the same, accepted
//! without asking, or waiting for a review.

use super::fingerprint::{Fingerprint, RawMembers, UNSEEN, without};
use crate::config::AutoApprove;
use crate::tool::{Class, Hints};

/// What of a server is approved, piece by piece.
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

    pub fn as_str(self) -> &'static str {
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

    /// Instructions are text to the last character: what a model is told must not hide in a
    /// member that other items may change freely.
    pub fn fingerprint(self, listed: &str) -> Fingerprint {
        match self {
            ItemKind::Tool | ItemKind::Prompt | ItemKind::Template => Fingerprint::of(listed),
            ItemKind::Instructions => Fingerprint::of_text(listed),
        }
    }
}

/// What a person approved of one item.
#[derive(Clone, Copy, Debug)]
pub struct ApprovedDefinition<'a> {
    pub fingerprint: Fingerprint,
    pub definition: &'a str,
}

/// Why an item waits.
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

/// Why an item that differs from what was approved needs no person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptanceReason {
    /// Only hints changed, and none of them loosens.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Same,
    Accepted(AcceptanceReason),
    Pending(ReviewChange),
}

/// How an item that a server lists now stands to what was approved of it. Instructions come as
/// their plain text, all others as the JSON that was sent.
pub fn stand(
    kind: ItemKind,
    listed: &str,
    approved: Option<&ApprovedDefinition<'_>>,
    auto: AutoApprove,
) -> Standing {
    let Some(approved) = approved else {
        return match auto {
            AutoApprove::None => Standing::Pending(ReviewChange::New),
            AutoApprove::New | AutoApprove::All => Standing::Accepted(AcceptanceReason::AutoNew),
        };
    };
    // Nearly every item of nearly every list is equal: no hash is taken.
    if listed == approved.definition || kind.fingerprint(listed) == approved.fingerprint {
        return Standing::Same;
    }
    if kind == ItemKind::Tool && is_stricter(approved.definition, listed) {
        return Standing::Accepted(AcceptanceReason::Stricter);
    }
    match auto {
        AutoApprove::None | AutoApprove::New => Standing::Pending(ReviewChange::Changed),
        AutoApprove::All => Standing::Accepted(AcceptanceReason::AutoChanged),
    }
}

const ANNOTATIONS: &str = "annotations";
const READ_ONLY: &str = "readOnlyHint";
const DESTRUCTIVE: &str = "destructiveHint";
const IDEMPOTENT: &str = "idempotentHint";
const OPEN_WORLD: &str = "openWorldHint";

/// Whether two definitions of a tool differ in hints alone, and no hint makes it look milder.
/// Whatever cannot be read for certain is a no.
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

/// The annotations of a tool: what they say in hints, and the rest, which is text.
struct Annotations {
    hints: Hints,
    idempotent: Option<bool>,
    /// Canonical form of all but the hints.
    text: String,
}

impl Annotations {
    /// `None` where a reader more lenient than the gate could take them otherwise.
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

/// The value of the member of that name; `None` where there are several.
fn only<'a>(
    members: &[(String, &'a serde_json::value::RawValue)],
    name: &str,
) -> Option<Option<&'a str>> {
    let mut found = members.iter().filter(|(member, _)| member == name);
    let value = found.next().map(|(_, value)| value.get());
    found.next().is_none().then_some(value)
}

/// Hint by hint, so that no hint can pay for another. An absent one counts as the protocol has it
/// (`readOnlyHint` and `idempotentHint` false, `openWorldHint` true); an absent `destructiveHint`
/// lies between, since the protocol takes it as true and the gate's class does not.
fn loosens(old: &Annotations, new: &Annotations) -> bool {
    let gains = |old: Option<bool>, new: Option<bool>, mild| old != Some(mild) && new == Some(mild);
    let (was, is) = (old.hints, new.hints);
    // A token may be allowed to read with tools that say nothing of themselves.
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
