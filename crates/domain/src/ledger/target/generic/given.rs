//! The arguments of a call that may name something, with their values as text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::words::words;
use super::super::{FOUND_MAX, RESOURCE_BYTES_MAX, canonical, is_break, tidy};
use super::GenericPlan;
use super::role::{Role, Standing};

/// Objects of a list that are looked at; further ones could not be named anyway.
const ITEMS_MAX: usize = 2 * FOUND_MAX;

/// Members of an inner object that are looked at. A larger one is data.
const MEMBERS_MAX: usize = 32;

/// The longest name of a file in common file systems.
const SEGMENT_BYTES_MAX: usize = 255;

/// Numbers beyond it are not exact in every language.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// An argument whose key has a role.
#[derive(Debug)]
pub(super) struct Given<'a> {
    pub(super) key: &'a str,
    pub(super) parent: Option<Parent<'a>>,
    pub(super) role: Cow<'a, Role>,
    /// At least one.
    pub(super) values: Vec<Cow<'a, str>>,
}

/// The object in which an argument lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Parent<'a> {
    pub(super) key: &'a str,
    /// It is the thing that the tool is about.
    pub(super) is_own: bool,
    is_list: bool,
}

impl<'a> Given<'a> {
    /// The order of arguments: the outer ones first, then by name.
    pub(super) fn place(&self) -> (Option<Parent<'a>>, &'a str) {
        (self.parent, self.key)
    }

    pub(super) fn first(&self) -> &str {
        &self.values[0]
    }

    pub(super) fn is_own_part(&self) -> bool {
        self.parent.is_some_and(|parent| parent.is_own)
    }

    /// Reports whether it lies in an object of a list.
    pub(super) fn is_listed(&self) -> bool {
        self.parent.is_some_and(|parent| parent.is_list)
    }

    pub(super) fn basis(&self) -> String {
        match self.parent {
            Some(Parent { key, is_list: true, .. }) => format!("generic:{key}[].{}", self.key),
            Some(Parent { key, .. }) => format!("generic:{key}.{}", self.key),
            None => format!("generic:{}", self.key),
        }
    }
}

/// Returns the arguments that have a role, in no order.
pub(super) fn gather<'a>(
    plan: &'a GenericPlan,
    arguments: &'a Map<String, Value>,
) -> Vec<Given<'a>> {
    let mut given = Vec::with_capacity(arguments.len());
    for (key, value) in arguments {
        let Some(role) = role(plan, key) else {
            continue;
        };
        match (value, opened(plan, key, &role)) {
            (Value::Object(members), Some(is_own)) if members.len() <= MEMBERS_MAX => {
                let parent = Some(Parent { key, is_own, is_list: false });
                for (key, value) in members {
                    given.extend(outer(plan, key, value).map(|one| Given { parent, ..one }));
                }
            }
            (Value::Array(items), Some(is_own)) if is_list_of_objects(items) => {
                let parent = Parent { key, is_own, is_list: true };
                listed(plan, items, parent, &mut given);
            }
            _ => given.extend(one(key, value, role)),
        }
    }
    given
}

pub(super) fn role<'a>(plan: &'a GenericPlan, key: &str) -> Option<Cow<'a, Role>> {
    match plan.roles.get(key) {
        Some(known) => known.as_ref().map(Cow::Borrowed),
        None => Role::of(key, &plan.tool).map(Cow::Owned),
    }
}

fn outer<'a>(plan: &'a GenericPlan, key: &'a str, value: &'a Value) -> Option<Given<'a>> {
    one(key, value, role(plan, key)?)
}

/// Reports whether an object under this key holds arguments, and if so whether it is the thing that
/// the tool is about.
fn opened(plan: &GenericPlan, key: &str, role: &Role) -> Option<bool> {
    match role {
        Role::Envelope { is_own } => Some(*is_own),
        Role::MaybeId { .. } | Role::Id { standing: Standing::Own(_) | Standing::Place, .. } => {
            Some(true)
        }
        Role::Path { .. } | Role::Manifest => {
            let last = words(key).pop()?;
            Some(plan.tool.is_about(&canonical::singular(&last)))
        }
        _ => None,
    }
}

fn is_list_of_objects(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().take(ITEMS_MAX).all(Value::is_object)
}

/// Gathers the values of each key over the objects of a list.
fn listed<'a>(
    plan: &'a GenericPlan,
    items: &'a [Value],
    parent: Parent<'a>,
    given: &mut Vec<Given<'a>>,
) {
    let mut keys: BTreeMap<&str, Given<'a>> = BTreeMap::new();
    let objects = items.iter().take(ITEMS_MAX).filter_map(Value::as_object);
    for members in objects.filter(|members| members.len() <= MEMBERS_MAX) {
        for (key, value) in members {
            let Some(mut one) = outer(plan, key, value) else {
                continue;
            };
            match keys.get_mut(key.as_str()) {
                Some(had) if had.values.len() < FOUND_MAX => had.values.append(&mut one.values),
                Some(_) => {}
                None => drop(keys.insert(key, Given { parent: Some(parent), ..one })),
            }
        }
    }
    given.extend(keys.into_values());
}

fn one<'a>(key: &'a str, value: &'a Value, role: Cow<'a, Role>) -> Option<Given<'a>> {
    let text = match *role {
        Role::Path { .. } | Role::End(_) => path,
        Role::Address | Role::Content => address,
        _ => text,
    };
    let is_long = matches!(*role, Role::Statement | Role::Manifest);
    let values = match value {
        Value::String(text) if is_long => vec![Cow::Borrowed(text.as_str())],
        Value::String(text) if is_plural(key) && text.contains(',') => parted(text)?,
        Value::Array(items) => items.iter().take(ITEMS_MAX).map(text).collect::<Option<_>>()?,
        value => vec![text(value)?],
    };
    let values = values.into_iter().take(FOUND_MAX).collect::<Vec<_>>();
    (!values.is_empty()).then_some(Given { key, parent: None, role, values })
}

/// Returns a path, as short as its words allow. Every character of a path counts, also the blanks
/// around it.
fn path(value: &Value) -> Option<Cow<'_, str>> {
    let Value::String(text) = value else {
        return text(value);
    };
    let path = tidy(text);
    // A text of several lines is a path only if it can be one.
    let is_name = |segment: &str| segment.len() <= SEGMENT_BYTES_MAX;
    let is_path = !path.contains(is_break) || path.split('/').all(is_name);
    (is_path && !path.trim().is_empty()).then_some(path)
}

/// Returns an address, which is shortened later.
fn address(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) if text.contains("://") => Some(Cow::Borrowed(text.trim())),
        value => text(value),
    }
}

/// Returns a value that can be a name, without the blanks around it.
fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => {
            let text = if text.len() <= 2 * RESOURCE_BYTES_MAX { text.trim() } else { "" };
            let fits = !text.is_empty() && text.len() <= RESOURCE_BYTES_MAX;
            (fits && !text.contains(is_break)).then_some(Cow::Borrowed(text))
        }
        Value::Number(number) => match number.as_f64() {
            // 12.0 is 12, and both are "12".
            Some(float) if number.is_f64() => {
                let is_exact = float.fract() == 0.0 && float.abs() < EXACT_MAX;
                is_exact.then(|| Cow::Owned(format!("{float:.0}")))
            }
            _ => Some(Cow::Owned(number.to_string())),
        },
        _ => None,
    }
}

fn is_plural(key: &str) -> bool {
    ["ids", "Ids", "IDs", "keys", "Keys", "uids", "names", "slugs"]
        .iter()
        .any(|end| key.ends_with(end))
}

/// Splits ids that are written in one text: `SHOP-1,SHOP-2`.
fn parted(text: &str) -> Option<Vec<Cow<'_, str>>> {
    if text.len() > RESOURCE_BYTES_MAX || text.contains(is_break) {
        return None;
    }
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    Some(parts.take(FOUND_MAX).map(Cow::Borrowed).collect())
}
