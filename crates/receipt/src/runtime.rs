//! `issuer.runtime`: the one open object of a receipt, for data that the format has no field for.
//! Members are kept in canonical order, and every item has a faithful canonical form.

use std::borrow::Cow;

use super::Hash;
use super::canonical::{order, write_integer, write_number, write_text};

/// Larger integers are not exact as doubles, so canonical JSON cannot represent them.
const INTEGER_MAX: u64 = 1 << 53;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runtime<'a>(Vec<(Cow<'a, str>, RuntimeItem<'a>)>);

/// An item built by `From`, which turns numbers that JSON cannot represent into text.
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeItem<'a>(ItemValue<'a>);

#[derive(Clone, Debug, PartialEq)]
enum ItemValue<'a> {
    Text(Cow<'a, str>),
    Integer(i64),
    Number(f64),
    Flag(bool),
    Texts(Vec<Cow<'a, str>>),
    Object(Runtime<'a>),
    Objects(Vec<Runtime<'a>>),
}

impl<'a> Runtime<'a> {
    pub fn new() -> Runtime<'a> {
        Runtime::default()
    }

    /// Inserts a member, replacing any of the same name.
    pub fn insert(&mut self, name: impl Into<Cow<'a, str>>, item: impl Into<RuntimeItem<'a>>) {
        let (name, item) = (name.into(), item.into());
        match self.0.binary_search_by(|(known, _)| order(known, &name)) {
            Ok(at) => self.0[at].1 = item,
            Err(at) => self.0.insert(at, (name, item)),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn write(&self, out: &mut String) {
        out.push('{');
        for (index, (name, item)) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write_text(out, name);
            out.push(':');
            item.write(out);
        }
        out.push('}');
    }
}

impl RuntimeItem<'_> {
    fn write(&self, out: &mut String) {
        match &self.0 {
            ItemValue::Text(text) => write_text(out, text),
            ItemValue::Integer(value) => write_integer(out, *value),
            ItemValue::Number(value) => write_number(out, *value),
            ItemValue::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
            ItemValue::Texts(texts) => write_texts(out, texts),
            ItemValue::Object(object) => object.write(out),
            ItemValue::Objects(objects) => write_objects(out, objects),
        }
    }
}

fn write_texts(out: &mut String, texts: &[Cow<'_, str>]) {
    out.push('[');
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_text(out, text);
    }
    out.push(']');
}

fn write_objects(out: &mut String, objects: &[Runtime<'_>]) {
    out.push('[');
    for (index, object) in objects.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        object.write(out);
    }
    out.push(']');
}

impl<'a> From<&'a str> for RuntimeItem<'a> {
    fn from(text: &'a str) -> RuntimeItem<'a> {
        RuntimeItem(ItemValue::Text(Cow::Borrowed(text)))
    }
}

impl<'a> From<Cow<'a, str>> for RuntimeItem<'a> {
    fn from(text: Cow<'a, str>) -> RuntimeItem<'a> {
        RuntimeItem(ItemValue::Text(text))
    }
}

impl From<String> for RuntimeItem<'_> {
    fn from(text: String) -> Self {
        RuntimeItem(ItemValue::Text(Cow::Owned(text)))
    }
}

impl From<Hash> for RuntimeItem<'_> {
    fn from(hash: Hash) -> Self {
        hash.to_string().into()
    }
}

impl From<bool> for RuntimeItem<'_> {
    fn from(flag: bool) -> Self {
        RuntimeItem(ItemValue::Flag(flag))
    }
}

impl From<i64> for RuntimeItem<'_> {
    fn from(value: i64) -> Self {
        if value.unsigned_abs() > INTEGER_MAX {
            return value.to_string().into();
        }
        RuntimeItem(ItemValue::Integer(value))
    }
}

impl From<u64> for RuntimeItem<'_> {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or_else(|_| value.to_string().into(), RuntimeItem::from)
    }
}

impl From<u32> for RuntimeItem<'_> {
    fn from(value: u32) -> Self {
        RuntimeItem(ItemValue::Integer(value.into()))
    }
}

impl From<f64> for RuntimeItem<'_> {
    fn from(value: f64) -> Self {
        if !value.is_finite() || value.abs() >= INTEGER_MAX as f64 {
            return value.to_string().into();
        }
        RuntimeItem(ItemValue::Number(value))
    }
}

impl<'a> From<Vec<Cow<'a, str>>> for RuntimeItem<'a> {
    fn from(texts: Vec<Cow<'a, str>>) -> RuntimeItem<'a> {
        RuntimeItem(ItemValue::Texts(texts))
    }
}

impl<'a> From<&[&'a str]> for RuntimeItem<'a> {
    fn from(texts: &[&'a str]) -> RuntimeItem<'a> {
        RuntimeItem(ItemValue::Texts(texts.iter().copied().map(Cow::Borrowed).collect()))
    }
}

impl<'a> From<Runtime<'a>> for RuntimeItem<'a> {
    fn from(object: Runtime<'a>) -> RuntimeItem<'a> {
        RuntimeItem(ItemValue::Object(object))
    }
}

impl<'a> From<Vec<Runtime<'a>>> for RuntimeItem<'a> {
    fn from(objects: Vec<Runtime<'a>>) -> RuntimeItem<'a> {
        RuntimeItem(ItemValue::Objects(objects))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical;

    #[test]
    fn members_come_in_order_and_no_number_is_rounded() {
        let mut inner = Runtime::new();
        inner.insert("z", false);
        inner.insert("a", ["x", "y\n"].as_slice());
        let mut runtime = Runtime::new();
        runtime.insert("\u{e000}", 1u32);
        runtime.insert("😀", 0.25);
        runtime.insert("tool", "first");
        runtime.insert("tool", "second");
        runtime.insert("big", u64::MAX);
        runtime.insert("low", i64::MIN);
        runtime.insert("nan", f64::NAN);
        runtime.insert("list", vec![Runtime::new(), inner.clone()]);
        runtime.insert("nested", inner);
        let mut text = String::new();
        runtime.write(&mut text);
        assert_eq!(
            text,
            r#"{"big":"18446744073709551615","list":[{},{"a":["x","y\n"],"z":false}],"low":"-9223372036854775808","nan":"NaN","nested":{"a":["x","y\n"],"z":false},"tool":"second","😀":0.25,"@":1}"#.replace("@", "\u{e000}")
        );
        assert_eq!(canonical::text(&text).unwrap(), text);
    }
}
