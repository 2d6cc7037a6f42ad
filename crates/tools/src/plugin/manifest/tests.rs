//! Manifests and declarations as tables.

use serde_json::json;

use super::*;

const FULL: &str = "
name: slack
version: 1.2
awf_version: '>=0.4.0'
description: Says things
author: Jane
capabilities: [operations, events]
events: {subscribe: ['workflow.*']}
config:
  url: {type: string, required: true, description: where to}
  channel: {type: string, default: '#general', enum: ['#general', '#quiet']}
  tries: {type: integer, default: 3}
  loud: {type: boolean, default: false}
  plain: [1, two]
";

#[test]
fn a_manifest_says_who_it_is_and_what_it_wants() {
    let manifest = Manifest::parse(FULL).unwrap();
    assert_eq!((&*manifest.name, &*manifest.version), ("slack", "1.2"));
    assert_eq!(manifest.description, "Says things");
    let given = json!({"url": "http://x", "tries": 5, "more": null});
    let config = manifest.configured(given.as_object().unwrap().clone()).unwrap();
    let expected = json!({
        "url": "http://x", "channel": "#general", "tries": 5, "loud": false,
        "plain": [1, "two"], "more": null,
    });
    assert_eq!(Value::Object(config), expected);
}

#[test]
fn a_config_that_violates_the_manifest_is_rejected() {
    let manifest = Manifest::parse(FULL).unwrap();
    for (given, words) in [
        (json!({}), "config 'url' is required"),
        (json!({"url": 1}), "config 'url' must be a string"),
        (json!({"url": "x", "tries": "3"}), "config 'tries' must be a whole number"),
        (json!({"url": "x", "loud": "no"}), "config 'loud' must be true or false"),
        (json!({"url": "x", "channel": "#x"}), "must be one of \"#general\", \"#quiet\""),
    ] {
        let refused = manifest.configured(given.as_object().unwrap().clone()).unwrap_err();
        assert!(refused.contains(words), "{given}: {refused}");
    }
}

#[test]
fn an_invalid_manifest_is_rejected_with_a_reason() {
    for (text, words) in [
        ("", "empty"),
        ("name: [", "not valid YAML"),
        ("- a", "expected a mapping"),
        ("version: 1", "'name' is missing"),
        ("name: a", "'version' is missing"),
        ("name: [a]\nversion: 1", "'name' must be a string"),
        ("name: a b\nversion: 1", "invalid name 'a b'"),
        ("name: a.b\nversion: 1", "invalid name 'a.b'"),
        (&format!("name: {}\nversion: 1", "x".repeat(49)), "1 to 48"),
        ("name: a\nversion: 1\ncapabilities: [events]", "offers no tools"),
        ("name: a\nversion: 1\nconfig: [x]", "'config' must be a mapping"),
        ("name: a\nversion: 1\nconfig: {x: {type: float}}", "config 'x': unknown type 'float'"),
        (
            "name: a\nversion: 1\nconfig: {x: {type: integer, default: y}}",
            "default must be a whole",
        ),
    ] {
        let refused = Manifest::parse(text).unwrap_err();
        assert!(refused.contains(words), "{text}: {refused}");
    }
}

#[test]
fn a_project_may_declare_plugins() {
    let hex = "AB".repeat(32);
    let text = format!("plugins:\n  a: {{path: ./x, config: {{n: 1}}, sha256: {hex}}}\n  b:\n");
    let declared = declarations(&text).unwrap();
    assert_eq!(declared[0].path.as_deref(), Some("./x"));
    assert_eq!(declared[0].sha256, Some(hex.to_lowercase()));
    assert_eq!(declared[0].config["n"], 1);
    assert_eq!(declared[1], Declaration { name: "b".to_owned(), ..Declaration::default() });
    for (text, words) in [
        ("plugin: {}", "unknown key 'plugin'"),
        ("plugins: [a]", "must be a mapping from names to plugins"),
        ("plugins: {a: {pth: x}}", "unknown key 'pth'"),
        ("plugins: {a: {sha256: x}}", "64 hex digits"),
        ("plugins: {a: {config: 1}}", "'config' must be a mapping"),
    ] {
        let refused = declarations(text).unwrap_err();
        assert!(refused.contains(words), "{text}: {refused}");
    }
}
