//! Reads templates. A fault says where and what to write instead.

use thiserror::Error;

use super::{Field, FieldPath, Filter, Form, Piece, TARGET_FILTERS, TargetTemplate};
use text::near;

/// Longer templates are mistakes; the longest in the built-in table has some 100 characters.
const CHARS_MAX: usize = 500;

/// Each field is looked up at every call.
const FIELDS_MAX: usize = 16;

/// A template that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetTemplateFault {
    #[error("a template must not be empty; use null for calls that name no resource")]
    Empty,
    #[error("a template has at most {CHARS_MAX} characters")]
    Long,
    #[error("a template has at most {FIELDS_MAX} fields and alternatives")]
    Fields,
    #[error("a template must not contain control characters")]
    Control,
    #[error("'{{' at character {0} has no closing '}}'; write '{{{{' for a brace")]
    Unclosed(usize),
    #[error("'}}' at character {0} has no opening '{{'; write '}}}}' for a brace")]
    Unopened(usize),
    #[error("'{{{0}}}' names no argument; write a name such as '{{owner}}'")]
    NoName(String),
    #[error("'{0}' is not the name of an argument: write 'a', 'a.b' or 'a[].b'")]
    Name(String),
    #[error("unknown filter '{0}'{1}; the filters are {list}", list = TARGET_FILTERS.join(", "))]
    Filter(String, String),
    #[error("only 'table' takes a value in brackets, as in '{{sql:table(public)}}'")]
    FilterValue,
    #[error("'{{{0}}}' has an empty default; leave out the '='")]
    Default(String),
    #[error("'{0}' goes through more than one list; a template can follow one")]
    Lists(String),
    #[error("a template names a file or an address, not both")]
    Forms,
}

use TargetTemplateFault as Fault;

pub(super) fn template(text: &str) -> Result<TargetTemplate, Fault> {
    if text.trim().is_empty() {
        return Err(Fault::Empty);
    }
    if text.chars().count() > CHARS_MAX {
        return Err(Fault::Long);
    }
    if text.contains(|char: char| char.is_control() || super::super::is_break(char)) {
        return Err(Fault::Control);
    }
    let mut reading = Reading::default();
    reading.read(text)?;
    let Reading { pieces, list, .. } = reading;
    let form = form(&pieces)?;
    Ok(TargetTemplate { text: text.to_owned(), pieces, form, list })
}

#[derive(Default)]
struct Reading {
    pieces: Vec<Piece>,
    literal: String,
    list: Option<Vec<String>>,
    choices: usize,
}

impl Reading {
    fn read(&mut self, text: &str) -> Result<(), Fault> {
        let mut rest = text;
        let position = |rest: &str| text[..text.len() - rest.len()].chars().count() + 1;
        while let Some(at) = rest.find(['{', '}']) {
            self.literal.push_str(&rest[..at]);
            let brace = &rest[at..];
            let doubled = brace.starts_with("{{") || brace.starts_with("}}");
            if doubled {
                self.literal.push_str(&brace[..1]);
                rest = &brace[2..];
            } else if let Some(inside) = brace.strip_prefix('{') {
                let end = inside.find(['{', '}']).filter(|end| inside[*end..].starts_with('}'));
                let end = end.ok_or_else(|| Fault::Unclosed(position(brace)))?;
                self.end_literal();
                let field = self.field(&inside[..end])?;
                self.pieces.push(Piece::Field(field));
                rest = &inside[end + 1..];
            } else {
                return Err(Fault::Unopened(position(brace)));
            }
        }
        self.literal.push_str(rest);
        self.end_literal();
        Ok(())
    }

    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            self.pieces.push(Piece::Literal(std::mem::take(&mut self.literal)));
        }
    }

    fn field(&mut self, inside: &str) -> Result<Field, Fault> {
        let (inner, default) = match inside.split_once('=') {
            Some((_, "")) => return Err(Fault::Default(inside.to_owned())),
            Some((inner, default)) => (inner, Some(default.to_owned())),
            None => (inside, None),
        };
        let mut parts = inner.split(':');
        let names = parts.next().unwrap_or_default();
        if names.trim().is_empty() {
            return Err(Fault::NoName(inside.to_owned()));
        }
        let choices = names.split('|').map(|name| self.path(name)).collect::<Result<_, _>>()?;
        let filters = parts.map(filter).collect::<Result<_, _>>()?;
        Ok(Field { choices, filters, default })
    }

    fn path(&mut self, name: &str) -> Result<FieldPath, Fault> {
        self.choices += 1;
        if self.choices > FIELDS_MAX {
            return Err(Fault::Fields);
        }
        let (list, steps) = match name.split_once("[]") {
            Some((_, rest)) if rest.contains("[]") => return Err(Fault::Lists(name.to_owned())),
            Some((list, "")) => (Some(steps(list, name)?), Vec::new()),
            Some((list, rest)) => {
                let rest = rest.strip_prefix('.').ok_or_else(|| Fault::Name(name.to_owned()))?;
                (Some(steps(list, name)?), steps(rest, name)?)
            }
            None => (None, steps(name, name)?),
        };
        let first = list.as_ref().unwrap_or(&steps).first();
        let top = first.cloned().unwrap_or_default();
        let in_list = list.is_some();
        if let Some(list) = list
            && *self.list.get_or_insert_with(|| list.clone()) != list
        {
            return Err(Fault::Lists(name.to_owned()));
        }
        Ok(FieldPath { steps, in_list, top })
    }
}

fn steps(path: &str, name: &str) -> Result<Vec<String>, Fault> {
    let is_name = |step: &str| {
        let plain = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '$' | '@');
        !step.is_empty() && step.chars().all(plain)
    };
    let steps: Vec<String> = path.split('.').map(str::to_owned).collect();
    let all = steps.iter().all(|step| is_name(step));
    if all { Ok(steps) } else { Err(Fault::Name(name.to_owned())) }
}

fn filter(word: &str) -> Result<Filter, Fault> {
    let (name, value) = match word.strip_suffix(')').and_then(|word| word.split_once('(')) {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let filter = match name {
        "lower" => Filter::Lower,
        "upper" => Filter::Upper,
        "id" => Filter::Id,
        "uuid" => Filter::Uuid,
        "number" => Filter::Number,
        "path" => Filter::Path,
        "file" => Filter::File,
        "url" => Filter::Url,
        "kind" => Filter::Kind,
        "table" => Filter::Table(value.filter(|value| !value.is_empty()).map(str::to_owned)),
        "ident" => Filter::Ident,
        "manifest" => Filter::Manifest,
        "object" => Filter::Object,
        other => {
            let near = near::names(other, TARGET_FILTERS, 1);
            return Err(Fault::Filter(other.to_owned(), near::hint(&near)));
        }
    };
    match (&filter, value) {
        (Filter::Table(_), _) | (_, None) => Ok(filter),
        (_, Some(_)) => Err(Fault::FilterValue),
    }
}

fn form(pieces: &[Piece]) -> Result<Form, Fault> {
    let mut form = Form::Plain;
    let filters = pieces.iter().filter_map(|piece| match piece {
        Piece::Literal(_) => None,
        Piece::Field(field) => Some(&field.filters),
    });
    for filter in filters.flatten() {
        let next = match filter {
            Filter::File => Form::File,
            Filter::Url => Form::Address,
            _ => continue,
        };
        if form != Form::Plain && form != next {
            return Err(Fault::Forms);
        }
        form = next;
    }
    Ok(form)
}
