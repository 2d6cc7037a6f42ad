//! Judges whether a resource is the labelled one. The words around the identifying values are free.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Values of arguments that are longer are content and cannot be in a name.
const VALUE_CHARS_MAX: usize = 200;

static UUID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap()
});

#[derive(Deserialize)]
pub(super) struct Gold {
    #[serde(default)]
    pub(super) targets: Vec<GoldTarget>,
    #[serde(default)]
    secrets: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct GoldTarget {
    resource: String,
    parts: Vec<String>,
    #[serde(default)]
    also: Vec<Wanted>,
    #[serde(default)]
    coarse: Vec<Wanted>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Wanted {
    Whole(String),
    Parts(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is this one of the labelled targets.
    Exact(usize),
    Container,
    Wrong,
}

impl Gold {
    pub(super) fn leaks_into(&self, resource: &str) -> bool {
        self.secrets.iter().any(|secret| resource.contains(secret))
    }

    pub(super) fn judge(&self, resource: &str, arguments: &Map<String, Value>) -> Verdict {
        let is_exact = |gold: &GoldTarget| {
            tidy(resource).to_lowercase() == tidy(&gold.resource).to_lowercase()
                || has_parts(resource, &gold.parts, arguments)
                || gold.also.iter().any(|wanted| wanted.fits(resource, arguments))
        };
        let is_coarse =
            |gold: &GoldTarget| gold.coarse.iter().any(|wanted| wanted.fits(resource, arguments));
        match self.targets.iter().position(is_exact) {
            Some(at) => Verdict::Exact(at),
            None if self.targets.iter().any(is_coarse) => Verdict::Container,
            None => Verdict::Wrong,
        }
    }
}

impl Wanted {
    fn fits(&self, resource: &str, arguments: &Map<String, Value>) -> bool {
        match self {
            Wanted::Whole(whole) => tidy(resource).to_lowercase() == tidy(whole).to_lowercase(),
            Wanted::Parts(parts) => has_parts(resource, parts, arguments),
        }
    }
}

/// Reports whether the resource has every part, and no other value of the arguments.
fn has_parts(resource: &str, parts: &[String], arguments: &Map<String, Value>) -> bool {
    let whole = tidy(resource).to_lowercase();
    let mut wanted: Vec<String> = parts.iter().map(|part| tidy(part).to_lowercase()).collect();
    let all = wanted.join(" ");
    wanted.sort_by_key(|part| std::cmp::Reverse(part.chars().count()));
    let mut rest = whole.clone();
    for part in &wanted {
        let bare = part.trim_matches('/');
        let found = find(&rest, part).or_else(|| find(&rest, bare));
        match found {
            Some((start, end)) => rest.replace_range(start..end, "\0"),
            // It may lie inside another part.
            None if find(&whole, bare).is_some() => {}
            None => return false,
        }
    }
    let mut values = Vec::new();
    scalars(&Value::Object(arguments.clone()), &mut values);
    !parts.is_empty()
        && !values.iter().any(|value| {
            let value = tidy(value).to_lowercase();
            value.contains(char::is_alphanumeric)
                && value.chars().count() <= VALUE_CHARS_MAX
                && !all.contains(&value)
                && find_word(&rest, &value).is_some()
        })
}

fn scalars(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.values().for_each(|value| scalars(value, into)),
        Value::Array(items) => items.iter().for_each(|value| scalars(value, into)),
        Value::String(text) => into.push(text.clone()),
        Value::Number(number) => into.push(number.to_string()),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Finds a value as a whole word, in the singular or the plural.
fn find(text: &str, value: &str) -> Option<(usize, usize)> {
    find_word(text, value).or_else(|| match value.strip_suffix('s') {
        Some(singular) if value.chars().count() > 3 => find_word(text, singular),
        _ => find_word(text, &format!("{value}s")),
    })
}

fn find_word(text: &str, value: &str) -> Option<(usize, usize)> {
    let (first, last) = (value.chars().next()?, value.chars().next_back()?);
    let parts = |one: Option<char>, other: char| {
        !(one.is_some_and(char::is_alphanumeric) && other.is_alphanumeric())
    };
    text.match_indices(value).map(|(start, found)| (start, start + found.len())).find(
        |(start, end)| {
            parts(text[..*start].chars().next_back(), first)
                && parts(text[*end..].chars().next(), last)
        },
    )
}

/// Removes what is free: the dashes of a UUID, `.` and `..` in paths, outer slashes at the end.
fn tidy(text: &str) -> String {
    let mut text = UUID
        .replace_all(text.trim(), |found: &regex::Captures<'_>| found[0].replace('-', ""))
        .into_owned();
    if !text.contains("://") && text.trim_matches('/').contains('/') {
        let root = if text.starts_with('/') { "/" } else { "" };
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
            match parts.last() {
                Some(last) if part == ".." && *last != ".." => drop(parts.pop()),
                _ => parts.push(part),
            }
        }
        text = format!("{root}{}", parts.join("/"));
    }
    let trimmed = text.trim_end_matches('/');
    if trimmed.is_empty() { text } else { trimmed.to_owned() }
}
