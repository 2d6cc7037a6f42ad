//! Domain values as the journal stores them: one text each.

use domain::ledger::target::Target;
use domain::tool::Class;
use receipt::RiskLevel;
use receipt::canonical::Digest;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Separates the two parts of a target; no server's name contains it.
const PARTS: char = '\u{1f}';

pub(super) trait JournalText: Sized {
    fn store(&self) -> String;
    fn restore(text: &str) -> Option<Self>;
}

pub(super) fn serialize<T: JournalText, S: Serializer>(
    value: &T,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.serialize_str(&value.store())
}

pub(super) fn deserialize<'de, T: JournalText, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    let text = String::deserialize(from)?;
    T::restore(&text).ok_or_else(|| D::Error::custom(format!("unknown value '{text}'")))
}

pub(super) mod optional {
    use super::{Deserialize, Deserializer, Error, JournalText, Serializer};

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(in crate::record) fn serialize<T: JournalText, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.serialize_some(&value.store()),
            None => to.serialize_none(),
        }
    }

    pub(in crate::record) fn deserialize<'de, T: JournalText, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else {
            return Ok(None);
        };
        match T::restore(&text) {
            Some(value) => Ok(Some(value)),
            None => Err(D::Error::custom(format!("unknown value '{text}'"))),
        }
    }
}

impl JournalText for Class {
    fn store(&self) -> String {
        self.as_str().to_owned()
    }

    fn restore(text: &str) -> Option<Class> {
        Class::parse(text)
    }
}

impl JournalText for RiskLevel {
    fn store(&self) -> String {
        self.as_str().to_owned()
    }

    fn restore(text: &str) -> Option<RiskLevel> {
        RiskLevel::parse(text)
    }
}

impl JournalText for Digest {
    fn store(&self) -> String {
        match self {
            Digest::Canonical(hash) => hash.to_string(),
            Digest::Exact(hash) => format!("exact:{hash}"),
        }
    }

    fn restore(text: &str) -> Option<Digest> {
        match text.strip_prefix("exact:") {
            Some(hash) => hash.parse().ok().map(Digest::Exact),
            None => text.parse().ok().map(Digest::Canonical),
        }
    }
}

impl JournalText for Target {
    fn store(&self) -> String {
        format!("{}{PARTS}{}", self.system(), self.resource())
    }

    fn restore(text: &str) -> Option<Target> {
        let (system, resource) = text.split_once(PARTS)?;
        Target::recorded(system, resource.to_owned())
    }
}
