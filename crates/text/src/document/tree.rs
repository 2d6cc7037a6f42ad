//! The tree of a document, independent of its syntax.

use std::rc::Rc;

use serde_json::{Map, Number, Value};

use super::Mark;

/// A value of a document.
#[derive(Debug)]
pub struct Tree {
    pub start: Mark,
    pub end: Mark,
    pub content: Content,
}

/// Values are shared, since a YAML alias is the value that it names.
#[derive(Debug)]
pub enum Content {
    Scalar(Scalar),
    List(Vec<Rc<Tree>>),
    /// In text order.
    Map(Vec<(MemberKey, Rc<Tree>)>),
}

#[derive(Debug)]
pub struct MemberKey {
    pub name: String,
    pub mark: Mark,
}

#[derive(Debug)]
pub struct Scalar {
    /// As written, without quotes.
    pub text: String,
    pub kind: ScalarKind,
}

#[derive(Debug, PartialEq)]
pub enum ScalarKind {
    Null,
    Flag(bool),
    /// `None` for a number that JSON cannot represent.
    Number(Option<Number>),
    Text,
}

impl Tree {
    pub fn scalar(&self) -> Option<&Scalar> {
        match &self.content {
            Content::Scalar(scalar) => Some(scalar),
            Content::List(_) | Content::Map(_) => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.scalar().is_some_and(|scalar| scalar.kind == ScalarKind::Null)
    }

    /// Returns the value as JSON; numbers and other scalars keep their type.
    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::List(list) => list.iter().map(|tree| tree.to_json()).collect(),
            Content::Map(entries) => {
                let members = entries.iter().map(|(key, tree)| (key.name.clone(), tree.to_json()));
                Value::Object(members.collect::<Map<_, _>>())
            }
            Content::Scalar(Scalar { text, kind }) => match kind {
                ScalarKind::Null | ScalarKind::Number(None) => Value::Null,
                ScalarKind::Flag(flag) => Value::Bool(*flag),
                ScalarKind::Number(Some(number)) => Value::Number(number.clone()),
                ScalarKind::Text => Value::from(text.as_str()),
            },
        }
    }
}
