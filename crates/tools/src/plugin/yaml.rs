//! As much YAML as manifests and declarations need: one document, no anchors, no tags of its own,
//! no key twice, and bounds on all of it.

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

use super::limits;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Scalar { text: String, is_plain: bool },
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// A list or mapping whose end has not come yet.
enum Open {
    List(Vec<Node>),
    Map { entries: Vec<(String, Node)>, key: Option<String> },
}

/// The document, or in one sentence why there is none.
pub(super) fn parse(text: &str) -> Result<Node, String> {
    let mut open: Vec<Open> = Vec::new();
    let (mut root, mut values) = (None, 0);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| format!("not YAML: {error}"))?;
        let at = |message: &str| format!("line {}: {message}", span.start.line().max(1));
        values += 1;
        if values > limits::YAML_VALUES_MAX || open.len() > limits::YAML_DEPTH_MAX {
            return Err(at("too many values, or too deep"));
        }
        let node = match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => continue,
            Event::DocumentStart(_) if root.is_some() => return Err(at("a second document")),
            Event::DocumentStart(_) => continue,
            Event::Alias(_) => return Err(at("anchors are not known here")),
            Event::SequenceStart(_, tag) => {
                is_text(tag.as_deref()).map_err(at)?;
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(_, tag) => {
                is_text(tag.as_deref()).map_err(at)?;
                open.push(Open::Map { entries: Vec::new(), key: None });
                continue;
            }
            Event::Scalar(text, style, _, tag) => {
                let is_text = is_text(tag.as_deref()).map_err(at)?;
                let is_plain = style == ScalarStyle::Plain && !is_text;
                Node::Scalar { text: text.into_owned(), is_plain }
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(list)) => Node::List(list),
                Some(Open::Map { entries, .. }) => Node::Map(entries),
                None => continue,
            },
        };
        match open.last_mut() {
            Some(within) => within.add(node).map_err(|message| at(&message))?,
            None => root = Some(node),
        }
    }
    root.ok_or_else(|| "empty".to_owned())
}

impl Open {
    fn add(&mut self, node: Node) -> Result<(), String> {
        match self {
            Open::List(list) => list.push(node),
            Open::Map { entries, key } => match (key.take(), node) {
                (Some(name), node) => entries.push((name, node)),
                (None, Node::Scalar { text, .. }) => {
                    if entries.iter().any(|(known, _)| *known == text) {
                        return Err(format!("'{text}' comes twice"));
                    }
                    *key = Some(text);
                }
                (None, Node::List(_) | Node::Map(_)) => {
                    return Err("a key must be a word".to_owned());
                }
            },
        }
        Ok(())
    }
}

/// Whether a tag says that a scalar is text; only YAML's own tags are known.
fn is_text(tag: Option<&Tag>) -> Result<bool, &'static str> {
    match tag {
        None => Ok(false),
        Some(tag) if tag.is_yaml_core_schema() => Ok(tag.suffix == "str"),
        Some(_) => Err("tags of its own are not known here"),
    }
}

impl Node {
    /// The entries of a mapping; an empty value is an empty mapping.
    pub(super) fn entries(&self) -> Option<&[(String, Node)]> {
        match self {
            Node::Map(entries) => Some(entries),
            Node::Scalar { .. } if self.is_null() => Some(&[]),
            Node::Scalar { .. } | Node::List(_) => None,
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        let found = self.entries()?.iter().find(|(key, _)| key == name);
        found.map(|(_, node)| node).filter(|node| !node.is_null())
    }

    /// A scalar as it is written: `1.0` is no number where a text is wanted.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Node::Scalar { text, .. } => Some(text),
            Node::List(_) | Node::Map(_) => None,
        }
    }

    fn is_null(&self) -> bool {
        let Node::Scalar { text, is_plain } = self else { return false };
        *is_plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Node::List(list) => list.iter().map(Node::to_json).collect(),
            Node::Map(entries) => {
                let members = entries.iter().map(|(name, node)| (name.clone(), node.to_json()));
                Value::Object(members.collect::<Map<_, _>>())
            }
            Node::Scalar { text, is_plain: false } => text.as_str().into(),
            Node::Scalar { is_plain: true, .. } if self.is_null() => Value::Null,
            Node::Scalar { text, is_plain: true } => plain(text),
        }
    }
}

/// What YAML's core schema makes of a word without quotes.
fn plain(text: &str) -> Value {
    match text {
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let looks_numeric =
        text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if let Ok(integer) = unsigned.parse::<i64>() {
        return integer.into();
    }
    match unsigned.parse::<f64>().ok().filter(|_| looks_numeric).and_then(Number::from_f64) {
        Some(number) => Value::Number(number),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_words_are_what_yaml_says_and_quoted_ones_are_texts() {
        let text = "a: 1\nb: '1'\nc: [true, \"true\", ~, 1.5, -3, 1.2.3, +x, .inf]\nd: {e: }\n";
        let value = parse(text).map(|node| node.to_json());
        let list = json!([true, "true", null, 1.5, -3, "1.2.3", "+x", ".inf"]);
        assert_eq!(value, Ok(json!({"a": 1, "b": "1", "c": list, "d": {"e": null}})));
    }

    #[test]
    fn what_nobody_needs_in_a_manifest_is_refused() {
        let deep = "[".repeat(100);
        let many = "- x\n".repeat(limits::YAML_VALUES_MAX + 1);
        for (text, words) in [
            ("", "empty"),
            ("a: 1\na: 2", "line 2: 'a' comes twice"),
            ("a: &x 1\nb: *x", "line 2: anchors"),
            ("a: !own 1", "tags"),
            ("a: 1\n---\nb: 2", "second document"),
            ("a: [", "not YAML"),
            ("? [a]\n: 1", "a key must be a word"),
            (&deep, "too deep"),
            (&many, "too many values"),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.contains(words), "{text:.20}: {refused}");
        }
    }
}
