//! The subset of YAML that manifests and declarations need, and error messages for the rest.

use std::rc::Rc;

use text::document::yaml::{self, Features, Flaw, FlawKind, Rules};
use text::document::{Content, MemberKey, Tree};

use super::limits;

/// Parses the document; the error is one sentence.
pub(super) fn parse(text: &str) -> Result<Rc<Tree>, String> {
    let rules = Rules {
        features: Features::Plain,
        depth_max: limits::YAML_DEPTH_MAX,
        values_max: limits::YAML_VALUES_MAX,
    };
    yaml::parse(text, rules).map(|yaml| yaml.root).map_err(explained)
}

fn explained(Flaw { mark, kind }: Flaw) -> String {
    let words = match kind {
        FlawKind::NotYaml(error) => return format!("not valid YAML: {error}"),
        FlawKind::Empty => return "empty".to_owned(),
        FlawKind::SecondDocument => "only one YAML document is allowed",
        FlawKind::Alias | FlawKind::AliasInItself => "anchors and aliases are not supported",
        FlawKind::ForeignTag => "custom tags are not supported",
        // This error is detected only at the end of the key.
        FlawKind::KeyIsNoScalar { end } => {
            return format!("line {}: a key must be a plain string", end.line);
        }
        FlawKind::MergeKey => "a key must be a plain string",
        FlawKind::RepeatedKey(name) => &format!("duplicate key '{name}'"),
        FlawKind::TooDeep | FlawKind::TooManyValues => "too many values, or nested too deeply",
    };
    format!("line {}: {words}", mark.line)
}

/// Returns the entries of a mapping; an empty value is an empty mapping.
pub(super) fn entries(tree: &Tree) -> Option<&[(MemberKey, Rc<Tree>)]> {
    match &tree.content {
        Content::Map(entries) => Some(entries),
        Content::Scalar(_) if tree.is_null() => Some(&[]),
        Content::Scalar(_) | Content::List(_) => None,
    }
}

/// Returns a member that exists and is not empty.
pub(super) fn get<'t>(tree: &'t Tree, name: &str) -> Option<&'t Tree> {
    let entry = entries(tree)?.iter().find(|(key, _)| key.name == name);
    entry.map(|(_, tree)| tree.as_ref()).filter(|tree| !tree.is_null())
}

/// Returns a scalar as written: `1.0` is not a number where a text is expected.
pub(super) fn text(tree: &Tree) -> Option<&str> {
    tree.scalar().map(|scalar| scalar.text.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_scalars_are_typed_and_quoted_ones_are_strings() {
        let text = "a: 1\nb: '1'\nc: [true, \"true\", ~, 1.5, -3, 1.2.3, +x, .inf]\nd: {e: }\n";
        let value = parse(text).map(|tree| tree.to_json());
        let list = json!([true, "true", null, 1.5, -3, "1.2.3", "+x", ".inf"]);
        assert_eq!(value, Ok(json!({"a": 1, "b": "1", "c": list, "d": {"e": null}})));
    }

    #[test]
    fn invalid_and_exotic_yaml_is_rejected() {
        let deep = "[".repeat(100);
        let many = "- x\n".repeat(limits::YAML_VALUES_MAX + 1);
        for (text, words) in [
            ("", "empty"),
            ("a: 1\na: 2", "line 2: duplicate key 'a'"),
            ("a: &x 1\nb: *x", "line 2: anchors"),
            ("a: !own 1", "tags"),
            ("a: 1\n---\nb: 2", "only one YAML document"),
            ("a: [", "not valid YAML"),
            ("? [a]\n: 1", "a key must be a plain string"),
            (&deep, "too deeply"),
            (&many, "too many values"),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.contains(words), "{text:.20}: {refused}");
        }
    }
}
