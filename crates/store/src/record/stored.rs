//! Domain values as the journal stores them: one text each.

use domain::tool::Class;
use receipt::RiskLevel;
use receipt::canonical::Digest;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

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

/// The resources of a call: one list of texts with the rule that found them, and for each an access
/// with a system, and a resource.
pub(super) mod touches {
    use touch::targets::{Access, Target, TargetBasis, Touched, Touches};

    use super::{Deserialize, Deserializer, Error, Serializer};

    pub(in crate::record) fn serialize<S: Serializer>(
        touches: &Touches,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let Some(basis) = touches.basis() else {
            return to.serialize_none();
        };
        let texts = touches.all().iter().flat_map(|Touched { target, access }| {
            let system = format!("{}{}", letter(*access), target.system());
            [system, target.resource().to_owned()]
        });
        to.collect_seq(std::iter::once(basis.as_str().to_owned()).chain(texts))
    }

    pub(in crate::record) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Touches, D::Error> {
        match Option::<Vec<String>>::deserialize(from)? {
            None => Ok(Touches::default()),
            Some(texts) => {
                restore(texts).ok_or_else(|| D::Error::custom("unknown form of targets"))
            }
        }
    }

    fn restore(texts: Vec<String>) -> Option<Touches> {
        let mut texts = texts.into_iter();
        let basis = TargetBasis::new(texts.next()?);
        let mut touched = Vec::new();
        while let Some(system) = texts.next() {
            let resource = texts.next()?;
            let first = system.chars().next()?;
            let access = Access::ALL.into_iter().find(|access| letter(*access) == first)?;
            let target = Target::recorded(&system[first.len_utf8()..], resource)?;
            touched.push(Touched { target, access });
        }
        Some(Touches::recorded(touched, Some(basis)))
    }

    fn letter(access: Access) -> char {
        match access {
            Access::Read => 'r',
            Access::Write => 'w',
            Access::Unknown => 'u',
        }
    }
}
