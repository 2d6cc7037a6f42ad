//! JSON as the TOML that Codex takes on its command line (`-c path=value`).

use serde_json::Value;

/// Returns one `path=value` for each leaf, so that Codex merges tables instead of replacing them.
/// TOML has no null: a null member is omitted.
pub(super) fn overrides(config: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in config.as_object().into_iter().flatten() {
        collect(&key(name), value, &mut found);
    }
    found
}

fn collect(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        // Codex splits paths at dots, quoted or not, so a table with other names is passed as a
        // whole.
        Value::Object(members) if !members.is_empty() && members.keys().all(|key| is_bare(key)) => {
            for (name, value) in members {
                collect(&format!("{path}.{name}"), value, found);
            }
        }
        Value::Null => {}
        Value::Object(_)
        | Value::Array(_)
        | Value::String(_)
        | Value::Number(_)
        | Value::Bool(_) => {
            found.push(format!("{path}={}", text(value)));
        }
    }
}

/// Formats a value on one line.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "\"\"".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => string(text),
        Value::Array(items) => {
            let items = items.iter().filter(|item| !item.is_null()).map(text);
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let set = members.iter().filter(|(_, value)| !value.is_null());
            let members = set.map(|(name, value)| format!("{} = {}", key(name), text(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

fn key(name: &str) -> String {
    if is_bare(name) { name.to_owned() } else { string(name) }
}

fn is_bare(name: &str) -> bool {
    let bare = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    !name.is_empty() && name.chars().all(bare)
}

fn string(text: &str) -> String {
    // JSON's escapes are TOML's, except for DEL, which TOML requires to be escaped.
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_leaf_is_an_override_of_its_own() {
        let config = json!({
            "model_provider": "fake",
            "model_providers": {"fake": {"name": "f\"\n\u{7f}", "retries": 3, "on": true}},
            "headers": {"x.y": {"a b": [1, 2.5, null, "z"]}},
            "empty": {},
            "nothing": null,
        });
        assert_eq!(
            overrides(&config),
            [
                r#"model_provider="fake""#,
                r#"model_providers.fake.name="f\"\n\u007F""#,
                "model_providers.fake.retries=3",
                "model_providers.fake.on=true",
                r#"headers={"x.y" = {"a b" = [1, 2.5, "z"]}}"#,
                "empty={}",
            ]
        );
    }
}
