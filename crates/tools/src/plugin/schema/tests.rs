//! The mapping as a table.

use plugin_sdk::protocol::OutputSchema;

use super::*;

fn input(name: &str, kind: &str) -> InputSchema {
    InputSchema { name: name.to_owned(), r#type: kind.to_owned(), ..InputSchema::default() }
}

fn with_default(kind: &str, default: &str) -> InputSchema {
    InputSchema { default: default.to_owned(), ..input("x", kind) }
}

fn validated(kind: &str, rule: &str) -> InputSchema {
    InputSchema { validation: rule.to_owned(), ..input("x", kind) }
}

fn operation(inputs: Vec<InputSchema>) -> OperationSchema {
    OperationSchema {
        name: "op".to_owned(),
        description: "Does it".to_owned(),
        inputs,
        outputs: Vec::new(),
    }
}

fn mapped(operation: &OperationSchema) -> Result<Value, String> {
    let tool = tool("plug", operation)?;
    Ok(serde_json::from_str(tool.definition.get()).expect("a definition is JSON"))
}

fn schema_of(input: InputSchema) -> Result<Value, String> {
    Ok(mapped(&operation(vec![input]))?["inputSchema"]["properties"]["x"].clone())
}

#[test]
fn every_type_has_its_schema_and_its_defaults() {
    for (input, expected) in [
        (input("x", "string"), json!({"type": "string"})),
        (input("x", "integer"), json!({"type": "integer"})),
        (input("x", "number"), json!({"type": "number"})),
        (input("x", "boolean"), json!({"type": "boolean"})),
        (input("x", "array"), json!({"type": "array", "items": {}})),
        (input("x", "object"), json!({"type": "object"})),
        (with_default("string", "7"), json!({"type": "string", "default": "7"})),
        (with_default("string", " "), json!({"type": "string", "default": " "})),
        (with_default("integer", "-7"), json!({"type": "integer", "default": -7})),
        (
            with_default("integer", "18446744073709551615"),
            json!({"type": "integer", "default": u64::MAX}),
        ),
        (with_default("number", "0.5"), json!({"type": "number", "default": 0.5})),
        (with_default("number", "2"), json!({"type": "number", "default": 2})),
        (with_default("boolean", "true"), json!({"type": "boolean", "default": true})),
        (with_default("boolean", "false"), json!({"type": "boolean", "default": false})),
        (
            with_default("array", r#"[1, {"a": ["b"]}]"#),
            json!({"type": "array", "items": {}, "default": [1, {"a": ["b"]}]}),
        ),
        (
            with_default("object", r#"{"a": {"b": []}}"#),
            json!({"type": "object", "default": {"a": {"b": []}}}),
        ),
        (validated("string", "url"), json!({"type": "string", "format": "uri"})),
        (validated("string", "email"), json!({"type": "string", "format": "email"})),
    ] {
        assert_eq!(schema_of(input.clone()), Ok(expected), "{input:?}");
    }
}

#[test]
fn mapping_errors_name_plugin_operation_and_input() {
    for (input, words) in [
        (input("x", "float"), "unknown type 'float'"),
        (input("x", "String"), "unknown type 'String'"),
        (input("x", ""), "its type is missing"),
        (input("", "string"), "a name must have 1 to 64"),
        (input("a b", "string"), "a name must have 1 to 64"),
        (with_default("integer", "1.5"), "the default '1.5' is not of type integer"),
        (with_default("integer", "many"), "the default 'many' is not of type integer"),
        (with_default("number", "NaN"), "the default 'NaN' is not of type number"),
        (with_default("boolean", "yes"), "the default 'yes' is not of type boolean"),
        (with_default("array", "{}"), "the default '{}' is not of type array"),
        (with_default("array", "a,b"), "the default 'a,b' is not of type array"),
        (with_default("object", "[]"), "the default '[]' is not of type object"),
        (with_default("object", r#"{"a":1,"a":2}"#), "is not of type object"),
        (validated("string", "ipv4"), "unknown validation 'ipv4'"),
        (validated("integer", "url"), "validation 'url' requires type 'string'"),
    ] {
        let refused = mapped(&operation(vec![input.clone()])).unwrap_err();
        let place = format!("plugin 'plug', operation 'op', input '{}'", input.name);
        assert!(refused.starts_with(&place) && refused.contains(words), "{refused}");
    }
    let twice = mapped(&operation(vec![input("x", "string"), input("x", "array")]));
    assert_eq!(twice.unwrap_err(), "plugin 'plug', operation 'op', input 'x' is declared twice");
}

#[test]
fn an_operation_maps_to_a_complete_definition() {
    let output = |name: &str| OutputSchema { name: name.to_owned(), ..OutputSchema::default() };
    let described = InputSchema { description: "Where".to_owned(), ..input("url", "string") };
    let schema = OperationSchema {
        outputs: vec![output("status"), output("body")],
        ..operation(vec![
            InputSchema { required: true, validation: "url".to_owned(), ..described },
            with_default("integer", "3"),
        ])
    };
    let expected = json!({
        "name": "plug_op",
        "description": "Does it. Returns a JSON object with: status, body.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "url": {"type": "string", "format": "uri", "description": "Where"},
                "x": {"type": "integer", "default": 3},
            },
            "required": ["url"],
            "additionalProperties": false,
        },
    });
    assert_eq!(mapped(&schema), Ok(expected));
}

#[test]
fn an_operation_without_a_schema_accepts_anything() {
    let bare = OperationSchema { name: "op".to_owned(), ..OperationSchema::default() };
    let definition = mapped(&bare).unwrap();
    assert_eq!(definition["inputSchema"], json!({"type": "object"}));
    assert_eq!(definition["description"], "Operation 'op' of the plugin 'plug'.");
    let without_inputs = mapped(&operation(Vec::new())).unwrap();
    assert_eq!(without_inputs["inputSchema"]["additionalProperties"], false);
}

#[test]
fn names_that_agents_do_not_accept_are_rejected() {
    for name in ["", "a.b", "größe", "a b", &"x".repeat(60)] {
        let odd = OperationSchema { name: name.to_owned(), ..operation(Vec::new()) };
        let refused = mapped(&odd).unwrap_err();
        assert!(refused.contains("invalid tool name"), "{name}: {refused}");
    }
}

#[test]
fn only_wanted_operations_are_mapped_and_missing_ones_get_suggestions() {
    let named = |name: &str| OperationSchema { name: name.to_owned(), ..operation(Vec::new()) };
    let bad = OperationSchema { name: "bad".to_owned(), ..operation(vec![input("x", "blob")]) };
    let all = [named("get"), named("apply"), bad];
    let wanted = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let names = |wanted: BTreeSet<String>| {
        let tools = tools("plug", &all, Some(&wanted), None)?;
        Ok::<_, String>(tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>())
    };
    assert_eq!(names(wanted(&["get", "apply"])).unwrap(), ["plug_get", "plug_apply"]);
    assert!(names(wanted(&["get", "bad"])).unwrap_err().contains("input 'x'"));
    let missing = names(wanted(&["aply"])).unwrap_err();
    assert!(missing.starts_with("plugin 'plug' has no operation 'aply'"), "{missing}");
    assert!(missing.contains("apply"), "{missing}");
    assert!(tools("plug", &all, None, None).is_err(), "all of them includes what cannot be");
    let twice = tools("plug", &[named("get"), named("get")], None, None).unwrap_err();
    assert_eq!(twice, "plugin 'plug' lists the operation 'get' twice");
}
