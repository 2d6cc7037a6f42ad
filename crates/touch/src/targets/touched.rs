//! The resources that one call touches, what it does to each, and how they were found.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Target;
use crate::Class;

/// The most resources of one call: the main one, and eight more.
pub const TOUCHED_MAX: usize = 9;

/// The most resources that are looked for: one more, so that it is known whether some are left out.
pub(super) const FOUND_MAX: usize = TOUCHED_MAX + 1;

/// The effect of a call on a resource, if it is known.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    Read,
    Write,
    #[default]
    Unknown,
}

impl Access {
    pub const ALL: [Access; 3] = [Access::Read, Access::Write, Access::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Unknown => "unknown",
        }
    }

    /// Returns the access that a call's class implies; without one it is unknown.
    pub fn of(class: Option<Class>) -> Access {
        match class {
            Some(Class::Read) => Access::Read,
            Some(Class::Write | Class::Destructive) => Access::Write,
            None => Access::Unknown,
        }
    }

    /// Returns the access unless it is unknown.
    pub(super) fn known(self) -> Option<Access> {
        (self != Access::Unknown).then_some(self)
    }

    pub fn parse(text: &str) -> Option<Access> {
        Access::ALL.into_iter().find(|access| access.as_str() == text)
    }
}

/// One resource that a call touches.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Touched {
    #[serde(flatten)]
    pub target: Target,
    pub access: Access,
}

/// The rule that named the resources of a call, or the reason that there are none: `config`,
/// `builtin:github`, `generic:issue_number`, `no resource in the arguments`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetBasis(Cow<'static, str>);

impl TargetBasis {
    pub const NO_RESOURCE: TargetBasis = TargetBasis::fixed("no resource in the arguments");
    /// The tool is not in any list, so nothing is known of its arguments.
    pub const UNKNOWN_TOOL: TargetBasis = TargetBasis::fixed("unknown tool");
    /// A file or folder of the gate's own tools.
    pub const WORKSPACE: TargetBasis = TargetBasis::fixed("builtin:workspace");
    /// The params of a request that the protocol defines.
    pub const PROTOCOL: TargetBasis = TargetBasis::fixed("protocol");
    pub const TOO_LONG: TargetBasis = TargetBasis::fixed("dropped: longer than 4096 bytes");
    /// The arguments name something that cannot be read.
    pub const UNREAD: TargetBasis = TargetBasis::fixed("dropped: not readable as a name");
    /// The sender of an event named the resource.
    pub const REPORTED: TargetBasis = TargetBasis::fixed("reported");

    pub const fn fixed(text: &'static str) -> TargetBasis {
        TargetBasis(Cow::Borrowed(text))
    }

    pub fn new(text: String) -> TargetBasis {
        TargetBasis(Cow::Owned(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The resources of one call, the main one first and none twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    touched: Vec<Touched>,
    basis: Option<TargetBasis>,
}

impl Touches {
    /// Keeps at most `TOUCHED_MAX` of them.
    pub fn new(all: impl IntoIterator<Item = Touched>, basis: TargetBasis) -> Touches {
        let mut touched: Vec<Touched> = Vec::new();
        for one in all {
            if touched.len() < TOUCHED_MAX && touched.iter().all(|had| had.target != one.target) {
                touched.push(one);
            }
        }
        Touches { touched, basis: Some(basis) }
    }

    /// Returns the one resource that somebody else named, if any.
    pub fn reported(target: Option<Target>, access: Access) -> Touches {
        match target {
            Some(target) => Touches::new([Touched { target, access }], TargetBasis::REPORTED),
            None => Touches::default(),
        }
    }

    /// Returns the same resources, some under the names that `rename` gives; two that have one name
    /// then are one.
    #[must_use]
    pub fn renamed(self, rename: impl Fn(&Target) -> Option<Target>) -> Touches {
        let Touches { touched, basis } = self;
        let renamed = touched.into_iter().map(|Touched { target, access }| Touched {
            target: rename(&target).unwrap_or(target),
            access,
        });
        match basis {
            Some(basis) => Touches::new(renamed, basis),
            None => Touches::default(),
        }
    }

    /// Returns the same resources and, after them, the other names of those that have one.
    #[must_use]
    pub fn with_other_names(self, other: impl Fn(&Target) -> Option<Target>) -> Touches {
        let named = |touched: &Touched| {
            Some(Touched { target: other(&touched.target)?, access: touched.access })
        };
        let others: Vec<Touched> = self.touched.iter().filter_map(named).collect();
        match self.basis {
            Some(basis) if !others.is_empty() => {
                Touches::new(self.touched.into_iter().chain(others), basis)
            }
            basis => Touches { touched: self.touched, basis },
        }
    }

    /// Reports whether they say no more than others: the same, or only their main resource.
    pub fn is_said_by(&self, whole: &Touches) -> bool {
        self == whole || matches!(&self.touched[..], [one] if whole.touched.first() == Some(one))
    }

    /// Returns touches as they were recorded.
    pub fn recorded(all: Vec<Touched>, basis: Option<TargetBasis>) -> Touches {
        Touches { touched: all, basis }
    }

    pub fn nothing(reason: TargetBasis) -> Touches {
        Touches { touched: Vec::new(), basis: Some(reason) }
    }

    pub fn main(&self) -> Option<&Target> {
        self.touched.first().map(|touched| &touched.target)
    }

    pub fn all(&self) -> &[Touched] {
        &self.touched
    }

    pub fn basis(&self) -> Option<&TargetBasis> {
        self.basis.as_ref()
    }
}
