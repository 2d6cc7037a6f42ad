//! The kinds of values that a key can have: how each is described, read and shown.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::declare::Section;
use super::keys::Table;
use super::members::Members;
use super::name::did_you_mean;
use super::report::Report;
use crate::choice::WordChoice;
use text::document::{Node, shown};
use text::duration::spell;

const DURATION: &str = "a duration such as \"30s\", \"2m\", \"500ms\" or a number of seconds";

/// Enough of a number to recognize it.
const NUMBER_CHARS_MAX: usize = 24;

/// A kind of value, held by a field of type `T`.
pub(super) trait Kind<T> {
    /// Describes the accepted values, for the reference.
    fn words(&self) -> String;

    fn read(&self, node: &Node<'_>, report: &mut Report) -> Option<T>;

    /// Returns the value as a file has it; `None` leaves the key out.
    fn show(&self, value: &T) -> Option<Value>;

    /// Sets a field to the value of a file; a value with a fault leaves it as it is.
    fn set(&self, field: &mut T, node: &Node<'_>, report: &mut Report) {
        if let Some(value) = self.read(node, report) {
            *field = value;
        }
    }

    /// Returns the keys of the objects that are its values.
    fn table(&self) -> Option<&'static Table> {
        None
    }

    /// Reports whether the key has no default.
    fn is_optional(&self) -> bool {
        false
    }
}

/// A kind as the reference describes it.
pub(super) struct Described {
    pub(super) words: String,
    pub(super) table: Option<&'static Table>,
    pub(super) is_optional: bool,
}

impl Described {
    pub(super) fn of<T>(kind: &impl Kind<T>) -> Described {
        let (words, table) = (kind.words(), kind.table());
        Described { words, table, is_optional: kind.is_optional() }
    }

    pub(super) fn optional(words: &str) -> Described {
        Described { is_optional: true, ..Described::from(words) }
    }

    /// A map of names to objects.
    pub(super) fn named(table: &'static Table) -> Described {
        let words = format!("names to objects, see `{}`", table.path);
        Described { table: Some(table), ..Described::from(words.as_str()) }
    }

    /// A list of objects.
    pub(super) fn listed(table: &'static Table) -> Described {
        let words = format!("list of objects, see `{}`", table.path);
        Described { table: Some(table), ..Described::from(words.as_str()) }
    }
}

impl From<&str> for Described {
    fn from(words: &str) -> Described {
        Described { words: words.to_owned(), table: None, is_optional: false }
    }
}

/// A kind with functions for its values.
pub(super) struct Shape<T> {
    pub(super) words: &'static str,
    pub(super) read: fn(&Node<'_>, &mut Report) -> Option<T>,
    pub(super) show: fn(&T) -> Option<Value>,
}

impl<T> Kind<T> for Shape<T> {
    fn words(&self) -> String {
        self.words.to_owned()
    }

    fn read(&self, node: &Node<'_>, report: &mut Report) -> Option<T> {
        (self.read)(node, report)
    }

    fn show(&self, value: &T) -> Option<Value> {
        (self.show)(value)
    }
}

pub(super) fn as_json<T: Serialize>(value: &T) -> Option<Value> {
    Some(json!(value))
}

pub(super) const FLAG: Shape<bool> =
    Shape { words: "true or false", read: |node, report| report.take(node.flag()), show: as_json };

/// A whole number.
pub(super) struct Count(pub(super) RangeInclusive<u32>);

impl Kind<u32> for Count {
    fn words(&self) -> String {
        format!("number, {} to {}", self.0.start(), self.0.end())
    }

    fn read(&self, node: &Node<'_>, report: &mut Report) -> Option<u32> {
        count(node, "", &self.0, report)
    }

    fn show(&self, value: &u32) -> Option<Value> {
        Some(json!(value))
    }
}

impl Kind<NonZeroU32> for Count {
    fn words(&self) -> String {
        Kind::<u32>::words(self)
    }

    fn read(&self, node: &Node<'_>, report: &mut Report) -> Option<NonZeroU32> {
        Kind::<u32>::read(self, node, report).and_then(NonZeroU32::new)
    }

    fn show(&self, value: &NonZeroU32) -> Option<Value> {
        Some(json!(value))
    }
}

/// A whole number; 0 disables the setting.
pub(super) struct CountOrZero(pub(super) RangeInclusive<u32>);

impl Kind<u32> for CountOrZero {
    fn words(&self) -> String {
        format!("number, 0 (off) or {} to {}", self.0.start(), self.0.end())
    }

    fn read(&self, node: &Node<'_>, report: &mut Report) -> Option<u32> {
        count(node, "0 or ", &self.0, report)
    }

    fn show(&self, value: &u32) -> Option<Value> {
        Some(json!(value))
    }
}

impl Kind<Option<NonZeroU32>> for CountOrZero {
    fn words(&self) -> String {
        Kind::<u32>::words(self)
    }

    fn read(&self, node: &Node<'_>, report: &mut Report) -> Option<Option<NonZeroU32>> {
        Kind::<u32>::read(self, node, report).map(NonZeroU32::new)
    }

    fn show(&self, value: &Option<NonZeroU32>) -> Option<Value> {
        Some(json!(value.map_or(0, NonZeroU32::get)))
    }
}

fn count(
    node: &Node<'_>,
    or_zero: &str,
    range: &RangeInclusive<u32>,
    report: &mut Report,
) -> Option<u32> {
    let digits = report.take(node.digits())?;
    match digits.parse::<u32>() {
        Ok(0) if !or_zero.is_empty() => Some(0),
        Ok(count) if range.contains(&count) => Some(count),
        _ => {
            let found: String = digits.chars().take(NUMBER_CHARS_MAX).collect();
            let (min, max) = (range.start(), range.end());
            let expected = format!("expected {or_zero}a whole number from {min} to {max}");
            report.fault(&node.location, format!("{expected}, found {found}"));
            None
        }
    }
}

/// A duration.
pub(super) struct Span(pub(super) RangeInclusive<Duration>);

impl Kind<Duration> for Span {
    fn words(&self) -> String {
        format!("duration, {} to {}", spell(*self.0.start()), spell(*self.0.end()))
    }

    fn read(&self, node: &Node<'_>, report: &mut Report) -> Option<Duration> {
        let Some(span) = report.take(node.duration(DURATION))? else {
            report.fault(&node.location, format!("expected {DURATION}"));
            return None;
        };
        if !self.0.contains(&span) {
            let (min, max) = (spell(*self.0.start()), spell(*self.0.end()));
            let expected = format!("expected a duration from {min} to {max}");
            report.fault(&node.location, format!("{expected}, found {}", spell(span)));
            return None;
        }
        Some(span)
    }

    fn show(&self, value: &Duration) -> Option<Value> {
        Some(json!(spell(*value)))
    }
}

/// A word of a fixed set.
pub(super) struct Choice;

impl<T: WordChoice> Kind<T> for Choice {
    fn words(&self) -> String {
        let names: Vec<String> = T::WORDS.iter().map(|name| format!("`\"{name}\"`")).collect();
        names.join(", ")
    }

    fn read(&self, node: &Node<'_>, report: &mut Report) -> Option<T> {
        let word = report.take(node.text())?;
        T::of_word(word).or_else(|| no_choice(node, word, T::WORDS, report))
    }

    fn show(&self, value: &T) -> Option<Value> {
        Some(json!(value.word()))
    }
}

pub(super) fn no_choice<T>(
    node: &Node<'_>,
    word: &str,
    names: &[&str],
    report: &mut Report,
) -> Option<T> {
    let list: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let near = did_you_mean(word, names.iter().copied());
    let message = format!("expected {}, found {}{near}", list.join(" or "), shown(word));
    report.fault(&node.location, message);
    None
}

pub(super) const TEXT: Shape<String> = Shape {
    words: "string",
    read: |node, report| report.take(node.text()).map(str::to_owned),
    show: as_json,
};

pub(super) const TEXTS: Shape<Vec<String>> = Shape {
    words: "list of strings",
    read: |node, report| {
        let items = report.take(node.items("a list of strings"))?;
        Some(items.filter_map(|item| report.take(item.text())).map(str::to_owned).collect())
    },
    show: as_json,
};

/// An object with keys of its section; keys that a file does not set stay as they are.
pub(super) struct Nested;

impl<T: Section> Kind<T> for Nested {
    fn words(&self) -> String {
        format!("object, see `{}`", T::TABLE.path)
    }

    fn read(&self, node: &Node<'_>, report: &mut Report) -> Option<T> {
        let mut value = T::default();
        value.set(&Members::open(node, T::TABLE, report)?, report);
        Some(value)
    }

    fn set(&self, field: &mut T, node: &Node<'_>, report: &mut Report) {
        if let Some(members) = Members::open(node, T::TABLE, report) {
            field.set(&members, report);
        }
    }

    fn show(&self, value: &T) -> Option<Value> {
        Some(Value::Object(value.show()))
    }

    fn table(&self) -> Option<&'static Table> {
        Some(T::TABLE)
    }
}

/// A value without a default. A file's value replaces the whole of it.
pub(super) struct Optional<K>(pub(super) K);

impl<T, K: Kind<T>> Kind<Option<T>> for Optional<K> {
    fn words(&self) -> String {
        self.0.words()
    }

    fn read(&self, node: &Node<'_>, report: &mut Report) -> Option<Option<T>> {
        self.0.read(node, report).map(Some)
    }

    fn show(&self, value: &Option<T>) -> Option<Value> {
        value.as_ref().and_then(|value| self.0.show(value))
    }

    fn table(&self) -> Option<&'static Table> {
        self.0.table()
    }

    fn is_optional(&self) -> bool {
        true
    }
}
