//! The values of a template's fields: what counts as one, and the filters.

use std::borrow::Cow;

use serde_json::Value;

use super::super::{Access, RESOURCE_BYTES_MAX, canonical, is_break, is_json, manifest, sql};
use super::Filter;

/// Whole numbers up to here are the same as text and as a floating-point number.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A value that has passed its filters, and the access that a statement shows.
#[derive(Clone)]
pub(super) struct FilteredValue<'v> {
    pub(super) text: Cow<'v, str>,
    pub(super) access: Option<Access>,
}

impl<'v> FilteredValue<'v> {
    pub(super) fn plain(text: Cow<'v, str>) -> FilteredValue<'v> {
        FilteredValue { text, access: None }
    }
}

/// Returns the text of a string as it is.
pub(super) fn whole(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(Cow::Borrowed(text)),
        value => text(value),
    }
}

/// Returns the text of a string or a whole number; nothing else names a resource.
pub(super) fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text.trim())).filter(|text| !text.is_empty()),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64()?;
            let whole = float.fract() == 0.0 && float.abs() < EXACT_MAX;
            whole.then(|| Cow::Owned(format!("{float:.0}")))
        }
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Applies the filters in their order. Returns `None` if the value names nothing.
pub(super) fn filtered<'v>(raw: Cow<'v, str>, filters: &[Filter]) -> Option<FilteredValue<'v>> {
    let mut value = FilteredValue::plain(raw);
    for filter in filters {
        value = apply(filter, value)?;
    }
    let text = &value.text;
    // The whole name is examined once it is resolved.
    let is_path = filters.iter().any(|filter| matches!(filter, Filter::File | Filter::Url));
    let fits = !text.is_empty() && (is_path || text.len() <= RESOURCE_BYTES_MAX);
    (fits && (is_path || !text.contains(is_break)) && !is_json(text)).then_some(value)
}

/// Returns the tables of scripts, those that are changed first. Reports whether there may be others.
pub(super) fn tables<'v>(
    scripts: impl Iterator<Item = Cow<'v, str>>,
    filters: &[Filter],
) -> (Vec<FilteredValue<'v>>, bool) {
    let (mut found, mut leaves_doubt) = (Vec::new(), false);
    for script in scripts.map(|script| sql::read(&script)) {
        leaves_doubt |= script.leaves_doubt("sql");
        for (table, access) in script.tables {
            let named = filtered(Cow::Owned(table), filters);
            found.extend(named.map(|named| FilteredValue { access: access.known(), ..named }));
        }
    }
    found.sort_by_key(|table| table.access != Some(Access::Write));
    (found, leaves_doubt)
}

fn apply<'v>(filter: &Filter, value: FilteredValue<'v>) -> Option<FilteredValue<'v>> {
    let FilteredValue { text, access } = value;
    let text = match filter {
        Filter::Lower => changed(text, str::to_lowercase),
        Filter::Upper => changed(text, str::to_uppercase),
        Filter::Id => Cow::Owned(canonical::id(&text).into_owned()),
        Filter::Uuid => Cow::Owned(uuid(&text)?),
        Filter::Number => text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)?,
        Filter::Path => Cow::Owned(canonical::inner_path(&text)?),
        Filter::Kind => Cow::Owned(canonical::kind(&text)),
        Filter::Ident => Cow::Owned(text.replace(['"', '`', '[', ']'], "")),
        Filter::Manifest => {
            let object = manifest::read(&text).filter(|object| object.namespace.is_some())?;
            Cow::Owned(object.resource(None))
        }
        Filter::Object => {
            let object = manifest::read(&text)?;
            Cow::Owned(format!("{}/{}", object.kind, object.name))
        }
        Filter::Table(schema) => {
            // The statement has been read; this is one of its tables.
            match schema {
                Some(schema) if !text.contains('.') => Cow::Owned(format!("{schema}.{text}")),
                _ => text,
            }
        }
        // The form of the whole name.
        Filter::File | Filter::Url => text,
    };
    Some(FilteredValue { text, access })
}

fn changed<'v>(text: Cow<'v, str>, change: impl Fn(&str) -> String) -> Cow<'v, str> {
    let new = change(&text);
    if new == *text { text } else { Cow::Owned(new) }
}

/// Finds the UUID of a name that is one or ends with one, as in the addresses of pages, and
/// returns its 32 digits in lower case.
fn uuid(text: &str) -> Option<String> {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    // With dashes and without them.
    let ends = [36, 32]
        .map(|length| text.len().checked_sub(length).filter(|at| text.is_char_boundary(*at)));
    ends.into_iter().flatten().find_map(|start| {
        let (before, end) = text.split_at(start);
        canonical::uuid(end).filter(|_| !before.ends_with(|last: char| last.is_ascii_hexdigit()))
    })
}
