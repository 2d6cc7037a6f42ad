//! Correct arguments for a tool, made from its input schema, for a caller who sent wrong ones.

use serde_json::{Map, Value};

/// A schema that requires more parameters gets no example.
const PARAMETERS_MAX: usize = 20;

/// The largest value, as JSON, that is taken from the schema.
const VALUE_BYTES_MAX: usize = 200;

/// Returns the required parameters with a value for each; nothing if none is required, or if one
/// is not described.
pub(super) fn arguments(schema: &Value) -> Option<Value> {
    let required = schema.get("required")?.as_array()?;
    if required.is_empty() || required.len() > PARAMETERS_MAX {
        return None;
    }
    let properties = schema.get("properties")?;
    let parameter = |name: &Value| {
        let name = name.as_str()?;
        Some((name.to_owned(), value(properties.get(name)?)?))
    };
    required.iter().map(parameter).collect::<Option<Map<_, _>>>().map(Value::Object)
}

fn value(schema: &Value) -> Option<Value> {
    let listed = |name: &str| schema.get(name)?.get(0);
    let given = [listed("examples"), schema.get("default"), schema.get("const"), listed("enum")];
    if let Some(value) = given.into_iter().flatten().find(|value| !value.is_null()) {
        return Some(value.clone()).filter(|value| value.to_string().len() <= VALUE_BYTES_MAX);
    }
    let kind = schema.get("type")?;
    match kind.as_str().or_else(|| kind.get(0)?.as_str())? {
        "string" => Some("text".into()),
        "integer" | "number" => Some(schema.get("minimum").cloned().unwrap_or_else(|| 1.into())),
        "boolean" => Some(true.into()),
        "array" => Some(Value::Array(Vec::new())),
        "object" => Some(arguments(schema).unwrap_or_else(|| Value::Object(Map::new()))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_described_and_required_parameters_are_shown() {
        let schema = json!({
            "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]},
                           "c": {"default": "x"}, "d": {"type": "object", "required": ["e"],
                           "properties": {"e": {"type": "boolean"}}}, "f": {"type": "string"}},
            "required": ["a", "b", "c", "d"],
        });
        assert_eq!(
            arguments(&schema),
            Some(json!({"a": "text", "b": 1, "c": "x", "d": {"e": true}}))
        );
        for schema in [
            json!({}),
            json!({"required": []}),
            json!({"required": ["a"]}),
            json!({"required": ["a"], "properties": {"a": {}}}),
            json!({"required": ["a"], "properties": {"a": {"default": "x".repeat(1000)}}}),
        ] {
            assert_eq!(arguments(&schema), None, "{schema}");
        }
    }
}
