//! The arguments of a call that may name something, with their values as text.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::super::words::words;
use super::super::{FOUND_MAX, RESOURCE_BYTES_MAX, canonical, is_break, tidy};
use super::GenericPlan;
use super::role::{IdRelation, Role};

/// Items of a list that are looked at; further ones could not be named anyway.
const ITEMS_MAX: usize = 2 * FOUND_MAX;

/// Members of an inner object that are looked at. A larger one is data.
const MEMBERS_MAX: usize = 32;

/// Different keys of the further objects of a list that are looked up. More may name something.
const KEYS_MAX: usize = 512;

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

/// The arguments that have a role, in no order.
pub(super) struct Gathered<'a> {
    pub(super) given: Vec<Given<'a>>,
    /// A value that may name a resource cannot be read, or is not looked at.
    pub(super) is_partial: bool,
}

pub(super) fn gather<'a>(plan: &'a GenericPlan, arguments: &'a Map<String, Value>) -> Gathered<'a> {
    let mut gathered = Gathered { given: Vec::with_capacity(arguments.len()), is_partial: false };
    for (key, value) in arguments {
        let Some(role) = role(plan, key) else {
            continue;
        };
        match (value, opened(plan, key, &role)) {
            (Value::Object(members), Some(is_own)) if members.len() <= MEMBERS_MAX => {
                let parent = Some(Parent { key, is_own, is_list: false });
                let before = gathered.given.len();
                for (key, value) in members {
                    let inner = outer(plan, key, value, &mut gathered.is_partial);
                    gathered.given.extend(inner.map(|one| Given { parent, ..one }));
                }
                gathered.is_partial |= before == gathered.given.len() && names(&role);
            }
            (Value::Array(items), Some(is_own)) if has_objects(items) => {
                let parent = Parent { key, is_own, is_list: true };
                gathered.listed(plan, items, parent, names(&role));
                let others = items.iter().filter(|item| !item.is_object());
                let values = many(others, &role, &mut gathered.is_partial);
                if !values.is_empty() {
                    gathered.given.push(Given { key, parent: None, role, values });
                }
            }
            _ => gathered.given.extend(one(key, value, role, &mut gathered.is_partial)),
        }
    }
    gathered
}

pub(super) fn role<'a>(plan: &'a GenericPlan, key: &str) -> Option<Cow<'a, Role>> {
    match plan.roles.get(key) {
        Some(known) => known.as_ref().map(Cow::Borrowed),
        None => Role::of(key, &plan.tool).map(Cow::Owned),
    }
}

fn outer<'a>(
    plan: &'a GenericPlan,
    key: &'a str,
    value: &'a Value,
    is_partial: &mut bool,
) -> Option<Given<'a>> {
    one(key, value, role(plan, key)?, is_partial)
}

/// Reports whether an object under this key holds arguments, and if so whether it is the thing that
/// the tool is about.
fn opened(plan: &GenericPlan, key: &str, role: &Role) -> Option<bool> {
    match role {
        Role::Envelope { is_own } => Some(*is_own),
        Role::MaybeId { noun } => plan.tool.is_about(noun).then_some(true),
        Role::Id { relation: IdRelation::Own(_) | IdRelation::Place, .. } => Some(true),
        Role::Path { .. } | Role::Manifest | Role::Thing => {
            let last = words(key).pop()?;
            let is_own = plan.tool.is_about(&canonical::singular(&last));
            (is_own || *role != Role::Thing).then_some(is_own)
        }
        _ => None,
    }
}

fn has_objects(items: &[Value]) -> bool {
    items.iter().take(ITEMS_MAX).any(Value::is_object)
}

impl<'a> Gathered<'a> {
    /// Gathers the values of each key over the objects of a list, each of which may have to name
    /// something.
    fn listed(
        &mut self,
        plan: &'a GenericPlan,
        items: &'a [Value],
        parent: Parent<'a>,
        must_name: bool,
    ) {
        let mut keys: BTreeMap<&str, Given<'a>> = BTreeMap::new();
        let (first, rest) = items.split_at(items.len().min(ITEMS_MAX));
        for members in first.iter().filter_map(Value::as_object) {
            if members.len() > MEMBERS_MAX {
                self.is_partial = true;
                continue;
            }
            let mut is_read = false;
            for (key, value) in members {
                let Some(mut one) = outer(plan, key, value, &mut self.is_partial) else {
                    continue;
                };
                is_read = true;
                match keys.get_mut(key.as_str()) {
                    Some(had) if had.values.len() < FOUND_MAX => had.values.append(&mut one.values),
                    Some(had) => self.is_partial |= names(&had.role),
                    None => drop(keys.insert(key, Given { parent: Some(parent), ..one })),
                }
            }
            self.is_partial |= must_name && !is_read;
        }
        self.is_partial = self.is_partial || may_name(plan, rest);
        self.given.extend(keys.into_values());
    }
}

/// Reports whether objects of a list that are not looked at have a key that names something.
fn may_name(plan: &GenericPlan, items: &[Value]) -> bool {
    let mut plain: HashSet<&str> = HashSet::new();
    let mut is_plain = |key| {
        plain.contains(key)
            || plain.len() < KEYS_MAX
                && !role(plan, key).is_some_and(|role| names(&role))
                && plain.insert(key)
    };
    let objects = items.iter().filter_map(Value::as_object);
    !objects.flat_map(Map::keys).all(|key| is_plain(key))
}

/// Reports whether a key of this role names a resource by a short text.
pub(super) fn names(role: &Role) -> bool {
    match role {
        Role::Path { .. }
        | Role::End(_)
        | Role::Address
        | Role::Scope { .. }
        | Role::Id { .. }
        | Role::Bare
        | Role::Name
        | Role::Key { .. }
        | Role::Kind
        | Role::Statement => true,
        Role::Content
        | Role::MaybeId { .. }
        | Role::Title
        | Role::Manifest
        | Role::Thing
        | Role::Value
        | Role::Method
        | Role::Envelope { .. } => false,
    }
}

/// Reports whether a value from which no text was taken may name something all the same. What spans
/// several lines is no path, and most texts are no addresses.
fn is_unread(value: &Value, role: &Role) -> bool {
    match (value, role) {
        (Value::String(text), Role::Path { .. } | Role::End(_)) => {
            !text.is_empty() && !text.contains(is_break)
        }
        (Value::String(text), Role::Address | Role::Content) => {
            canonical::is_address(text) || text.starts_with('/')
        }
        (Value::String(text), role) => names(role) && !text.trim().is_empty(),
        (Value::Object(members), Role::Path { .. } | Role::Scope { .. } | Role::Id { .. }) => {
            !members.is_empty()
        }
        (Value::Object(members), Role::Envelope { .. } | Role::MaybeId { .. }) => {
            members.len() > MEMBERS_MAX
        }
        _ => false,
    }
}

fn one<'a>(
    key: &'a str,
    value: &'a Value,
    role: Cow<'a, Role>,
    is_partial: &mut bool,
) -> Option<Given<'a>> {
    let values = match value {
        Value::String(text) if is_plural(key) && text.contains(',') && !is_long(&role) => {
            parted(text, is_partial)
        }
        Value::Array(items) => many(items.iter(), &role, is_partial),
        value => {
            let read = read(value, &role);
            *is_partial |= read.is_none() && is_unread(value, &role);
            read.into_iter().collect()
        }
    };
    (!values.is_empty()).then_some(Given { key, parent: None, role, values })
}

/// Returns the values of a list that can be read.
fn many<'a>(
    items: impl Iterator<Item = &'a Value>,
    role: &Role,
    is_partial: &mut bool,
) -> Vec<Cow<'a, str>> {
    let mut values = Vec::new();
    for (at, item) in items.enumerate() {
        if at == ITEMS_MAX || values.len() == FOUND_MAX {
            *is_partial |= names(role);
            break;
        }
        match read(item, role) {
            Some(value) => values.push(value),
            None if matches!(role, Role::Address) => *is_partial |= is_unread(item, role),
            None => *is_partial |= names(role),
        }
    }
    values
}

fn is_long(role: &Role) -> bool {
    matches!(role, Role::Statement | Role::Manifest | Role::Thing)
}

fn read<'a>(value: &'a Value, role: &Role) -> Option<Cow<'a, str>> {
    match (value, role) {
        (Value::String(text), role) if is_long(role) => Some(Cow::Borrowed(text)),
        // A number alone is no name.
        (_, Role::Thing) => None,
        (value, Role::Path { .. } | Role::End(_)) => path(value),
        (value, Role::Address | Role::Content) => address(value),
        (value, _) => text(value),
    }
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
        Value::String(text) if text.contains("://") || canonical::is_address(text) => {
            // Blanks beyond ASCII are a part of an address.
            Some(Cow::Borrowed(text.trim_matches(|char: char| char <= ' ')))
        }
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
fn parted<'t>(text: &'t str, is_partial: &mut bool) -> Vec<Cow<'t, str>> {
    if text.len() > RESOURCE_BYTES_MAX || text.contains(is_break) {
        *is_partial = true;
        return Vec::new();
    }
    let mut parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let values = parts.by_ref().take(FOUND_MAX).map(Cow::Borrowed).collect();
    *is_partial |= parts.next().is_some();
    values
}
