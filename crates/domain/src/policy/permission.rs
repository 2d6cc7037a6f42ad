//! The rights of a caller's token to call a tool, and everything that can stand between the two.

use serde_json::json;

use super::addressee::Addressee;
use super::lock::{Lock, LockStatus};
use crate::caller::{Caller, TokenSurface, UnannotatedRule};
use crate::code::Code;
use crate::refusal::Refusal;
use crate::tool::{Class, Hints, ToolName};

const NOT_PERMITTED_REMEDIATION: &str = "Your token does not allow calls of this class, or of tools \
    without annotations: ask the operator for a token that does, made on the page or with \
    `countersign token create`.";

/// The reason that a caller cannot call a tool that it can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// It cannot be called.
    Locked(LockStatus),
    /// The caller's token never allows it.
    NotPermitted,
}

impl Obstacle {
    /// Returns the obstacle for a caller on a surface, if there is one.
    pub fn of(
        caller: &Caller,
        surface: TokenSurface,
        lock: Lock,
        hints: Hints,
    ) -> Option<Obstacle> {
        match lock {
            Lock::Locked(status) => Some(Obstacle::Locked(status)),
            Lock::Callable if permits(caller, surface, hints) => None,
            Lock::Callable => Some(Obstacle::NotPermitted),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Obstacle::Locked(status) => status.as_str(),
            Obstacle::NotPermitted => "not_permitted",
        }
    }

    /// Says who can remove the obstacle, and how.
    pub fn remediation(self, addressee: Addressee) -> &'static str {
        match self {
            Obstacle::Locked(status) => status.remediation(addressee),
            Obstacle::NotPermitted => NOT_PERMITTED_REMEDIATION,
        }
    }

    /// Reports whether the tool's text has not been approved, so that only its name is shown.
    pub fn distrusts_text(self) -> bool {
        match self {
            Obstacle::Locked(status) => status.distrusts_text(),
            Obstacle::NotPermitted => false,
        }
    }
}

/// Reports whether the caller's token allows some call of a tool with these hints.
pub fn permits(caller: &Caller, surface: TokenSurface, hints: Hints) -> bool {
    match surface {
        TokenSurface::Discovery => {
            Class::ALL.into_iter().any(|declared| is_covered(caller, Some(declared), hints))
        }
        TokenSurface::Passthrough => is_covered(caller, None, hints),
    }
}

pub(super) fn check_caller(
    caller: &Caller,
    tool: &ToolName,
    declared: Option<Class>,
    hints: Hints,
) -> Result<(), Refusal> {
    if is_covered(caller, declared, hints) {
        return Ok(());
    }
    let (token, effective) = (&caller.token, effective(declared, hints));
    let why = if is_barred_as_unannotated(caller, hints) {
        format!("token '{token}' may not call tools without annotations, and '{tool}' has none")
    } else {
        format!(
            "token '{token}' may not make {effective} calls, and '{tool}' counts as {effective}"
        )
    };
    let message = format!("{why}; ask the operator for a token that allows it");
    let details = json!({"effective_class": effective.as_str(), "unverified": hints.unverified()});
    Err(Refusal::new(Code::NotPermitted, message).with(details))
}

/// Returns the stricter of what the caller declares and what the tool says of itself.
pub(super) fn effective(declared: Option<Class>, hints: Hints) -> Class {
    declared.map_or(hints.class(), |declared| declared.max(hints.class()))
}

fn is_covered(caller: &Caller, declared: Option<Class>, hints: Hints) -> bool {
    let operations = caller.operations;
    // A caller with only `read` may still read with tools that have no hints, if the operator
    // allowed that on the token. A call declared as more than a read counts as such.
    let reads = declared.unwrap_or(Class::Read) == Class::Read;
    let covered = operations.allow(effective(declared, hints))
        || operations.is_read_only() && hints.unverified() && reads;
    covered && !is_barred_as_unannotated(caller, hints)
}

fn is_barred_as_unannotated(caller: &Caller, hints: Hints) -> bool {
    hints.unverified() && caller.unannotated == UnannotatedRule::Deny
}
