//! Templates that compose the name of a resource from the arguments of a call, such as
//! `{owner:lower}/{repo:lower}#{issue_number}`.

mod parse;
#[cfg(test)]
mod tests;
mod value;

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use super::{Access, CallPlace, FOUND_MAX, RESOURCE_BYTES_MAX, Target, canonical, uri};
pub use parse::TargetTemplateFault;
use value::FilteredValue;

/// The names of the filters, as the documentation and the messages list them.
pub const TARGET_FILTERS: [&str; 13] = [
    "lower", "upper", "id", "uuid", "number", "path", "file", "url", "kind", "table", "ident",
    "manifest", "object",
];

/// Text with fields; the text itself is kept to be shown.
#[derive(Clone)]
pub struct TargetTemplate {
    text: String,
    pieces: Vec<Piece>,
    form: Form,
    /// The path of the list, if the template names one resource for each of its elements.
    list: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Field(Field),
}

/// The kind of name that a template composes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A name in the system of the rule.
    Plain,
    /// A file of this machine.
    File,
    /// An address.
    Address,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    /// The first one with a usable value counts.
    choices: Vec<FieldPath>,
    filters: Vec<Filter>,
    default: Option<String>,
}

/// Members to follow, from the arguments or, for a path in a list, from one of its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldPath {
    steps: Vec<String>,
    in_list: bool,
    /// The member of the arguments that the path starts with.
    top: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Filter {
    Lower,
    Upper,
    Id,
    Uuid,
    Number,
    Path,
    File,
    Url,
    Kind,
    /// The schema of tables that the statement does not qualify.
    Table(Option<String>),
    Ident,
    /// The namespace, kind and name of a manifest that has all three.
    Manifest,
    /// The kind and name of a manifest.
    Object,
}

/// The resources found so far, with the access that the arguments show.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) targets: Vec<(Target, Option<Access>)>,
    /// A value that may name a resource cannot be read.
    pub(super) is_partial: bool,
}

impl TargetTemplate {
    pub fn parse(text: &str) -> Result<TargetTemplate, TargetTemplateFault> {
        parse::template(text)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the members of the arguments that the template reads, for each field its choices.
    pub fn members(&self) -> impl Iterator<Item = impl Iterator<Item = &str>> {
        self.fields().map(|field| field.choices.iter().map(|path| path.top.as_str()))
    }

    /// Keeps the choices that the schema has. Returns `None` if a field without a default has none
    /// left.
    pub(super) fn fitted(&self, properties: &Map<String, Value>) -> Option<TargetTemplate> {
        let mut fitted = self.clone();
        for piece in &mut fitted.pieces {
            if let Piece::Field(field) = piece {
                field.choices.retain(|path| properties.contains_key(&path.top));
                if field.choices.is_empty() && field.default.is_none() {
                    return None;
                }
            }
        }
        Some(fitted)
    }

    /// Adds the resources that the arguments name. Reports whether there are any; there are none
    /// unless every field has a value.
    pub(super) fn apply(
        &self,
        arguments: &Map<String, Value>,
        system: &str,
        place: &CallPlace<'_>,
        found: &mut Found,
    ) -> bool {
        let before = found.targets.len();
        let statement = self.fields().find(|field| field.is_statement());
        let mut add = |element| {
            let named = |table| {
                let composed = self.compose(arguments, element, table);
                let is_composed = composed.is_some();
                let target = composed
                    .and_then(|(name, access)| Some((self.target(&name, system, place)?, access)));
                // Outside a list, a field without a value is one that the call does not have.
                let is_missed = target.is_none() && (is_composed || element.is_some());
                (target, is_missed)
            };
            let mut keep = |(target, is_missed): (Option<_>, bool)| {
                found.targets.extend(target);
                found.is_partial |= is_missed;
            };
            match statement {
                None => keep(named(None)),
                Some(field) => {
                    let (tables, leaves_doubt) = field.tables(arguments, element);
                    tables.iter().take(FOUND_MAX).for_each(|table| keep(named(Some(table))));
                    found.is_partial |= leaves_doubt;
                }
            }
        };
        match &self.list {
            None => add(None),
            Some(path) => match follow(arguments, path) {
                Some(Value::Array(elements)) => {
                    elements.iter().take(FOUND_MAX).for_each(|element| add(Some(element)));
                    found.is_partial |= elements.len() > FOUND_MAX;
                }
                Some(one) => add(Some(one)),
                None => {}
            },
        }
        found.targets.len() > before
    }

    /// Composes a name, with one of the tables of a statement.
    fn compose(
        &self,
        arguments: &Map<String, Value>,
        element: Option<&Value>,
        table: Option<&FilteredValue<'_>>,
    ) -> Option<(String, Option<Access>)> {
        let (mut name, mut access) = (String::new(), None);
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => name.push_str(text),
                Piece::Field(field) => {
                    let value = match table.filter(|_| field.is_statement()) {
                        Some(table) => table.clone(),
                        None => field.value(arguments, element)?,
                    };
                    let FilteredValue { text, access: shown } = value;
                    // Like a path that is joined to a folder.
                    if self.form == Form::File && field.is_file() && is_absolute(&text) {
                        name.clear();
                    }
                    name.push_str(&self.clean(text)?);
                    access = access.or(shown);
                }
            }
            if name.len() > RESOURCE_BYTES_MAX && self.form == Form::Plain {
                return None;
            }
        }
        Some((name, access))
    }

    /// Removes credentials from an address within a name.
    fn clean<'v>(&self, text: Cow<'v, str>) -> Option<Cow<'v, str>> {
        match self.form {
            Form::Plain if text.contains("//") => uri::without_credentials(&text).map(Cow::Owned),
            Form::Plain | Form::File | Form::Address => Some(text),
        }
    }

    fn target(&self, name: &str, system: &str, place: &CallPlace<'_>) -> Option<Target> {
        match self.form {
            Form::Plain => Target::new(system, name.to_owned()),
            Form::File => canonical::file(name, place),
            Form::Address => canonical::web(name, place),
        }
    }

    fn fields(&self) -> impl Iterator<Item = &Field> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(_) => None,
            Piece::Field(field) => Some(field),
        })
    }
}

impl Field {
    fn is_file(&self) -> bool {
        self.filters.contains(&Filter::File)
    }

    fn is_statement(&self) -> bool {
        self.filters.iter().any(|filter| matches!(filter, Filter::Table(_)))
    }

    fn value<'v>(
        &'v self,
        arguments: &'v Map<String, Value>,
        element: Option<&'v Value>,
    ) -> Option<FilteredValue<'v>> {
        let raw = |path: &'v FieldPath| {
            let value = path.find(arguments, element)?;
            // Every character of a path counts.
            if self.is_file() { value::whole(value) } else { value::text(value) }
        };
        let given = self.choices.iter().find_map(|path| value::filtered(raw(path)?, &self.filters));
        let default = || Some(FilteredValue::plain(Cow::Borrowed(self.default.as_deref()?)));
        given.or_else(default)
    }

    /// Returns the tables of the statements under all choices, or the default. Reports whether there
    /// may be others.
    fn tables<'v>(
        &'v self,
        arguments: &'v Map<String, Value>,
        element: Option<&'v Value>,
    ) -> (Vec<FilteredValue<'v>>, bool) {
        let scripts =
            self.choices.iter().filter_map(|path| value::text(path.find(arguments, element)?));
        let (tables, leaves_doubt) = value::tables(scripts, &self.filters);
        let default = self.default.as_deref().filter(|_| tables.is_empty());
        let default = default.map(|default| FilteredValue::plain(Cow::Borrowed(default)));
        (tables.into_iter().chain(default).collect(), leaves_doubt)
    }
}

impl FieldPath {
    fn find<'v>(
        &self,
        arguments: &'v Map<String, Value>,
        element: Option<&'v Value>,
    ) -> Option<&'v Value> {
        match (self.in_list, element) {
            (false, _) => follow(arguments, &self.steps),
            (true, Some(element)) => descend(element, &self.steps),
            (true, None) => None,
        }
    }
}

fn follow<'v>(arguments: &'v Map<String, Value>, steps: &[String]) -> Option<&'v Value> {
    let (first, rest) = steps.split_first()?;
    descend(arguments.get(first)?, rest)
}

fn descend<'v>(value: &'v Value, steps: &[String]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| value.as_object()?.get(step))
}

/// Reports whether a path does not depend on a folder.
fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '~', '\\']) || path.contains("://") || path.get(1..3) == Some(":\\")
}

impl PartialEq for TargetTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for TargetTemplate {}

impl fmt::Debug for TargetTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}
