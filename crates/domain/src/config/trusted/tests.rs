//! Trusted files applied to a user's own configuration. The tests cover all declared keys.

use serde_json::{Map, Value, json};

use super::super::{ServerOrigin, ToolRules, overlay, parse, render, sample, transport};
use super::*;

const OWN: &str = r#"{
  "listen": "127.0.0.1:1", "allowed_hosts": ["own"], "allowed_origins": ["http://own:1"],
  "mcpServers": {
    "one": {"command": "/own/one", "args": ["a"], "disabled_tools": ["x"], "start": "lazy",
            "call_timeout": "1s", "max_concurrent": 2, "oauth": {"client_id": "own"}},
    "two": {"url": "https://own/mcp"},
  },
  "profiles": {"p": {"servers": ["one"]}},
  "plugins": {"g": {"path": "/own/g"}, "h": {"path": "/own/h"}},
  "workspace": {"root": "/own"},
  "ledger": {"max_records": 2000},
  "redact": {"keys": ["k"], "patterns": ["p+"]},
  "rate_limit": 5, "tools_limit": 7,
}"#;

fn own() -> Config {
    parse(OWN).unwrap_or_else(|faults| panic!("{faults}")).config
}

fn laid(trusted: &Value) -> Config {
    let laid = lay_over(own(), &trusted.to_string());
    laid.unwrap_or_else(|faults| panic!("{faults}\nin {trusted}")).config
}

fn one(config: &Config) -> ServerConfig {
    config.server("one").unwrap().clone()
}

#[test]
fn settings_missing_from_a_trusted_file_are_kept() {
    assert_eq!(laid(&json!({})), own());
    assert_eq!(laid(&json!({"mcpServers": {"one": {}}, "workspace": {}, "plugins": {}})), own());
}

#[test]
fn each_key_of_a_trusted_file_overrides_only_its_own_setting() {
    for key in Config::TABLE.keys() {
        let value = match key.name {
            // Tested below.
            "mcpServers" | "profiles" | "plugins" | "redact" => continue,
            "listen" => json!("0.0.0.0:9"),
            "allowed_hosts" => json!(["h"]),
            "allowed_origins" => json!(["http://h:2"]),
            _ => sample::value(Config::TABLE, key).expect("give a value of the key here"),
        };
        let mut expected = render(&own());
        let setting = &mut expected[key.name];
        match (&value, setting.as_object_mut()) {
            (Value::Object(members), Some(own)) => own.extend(members.clone()),
            _ => *setting = value.clone(),
        }
        let trusted = Value::Object(Map::from_iter([(key.name.to_owned(), value)]));
        let mut config = render(&laid(&trusted));
        if key.name == "$schema" {
            config[key.name] = expected[key.name].clone();
        }
        assert_eq!(config, expected, "{trusted}");
    }
}

#[test]
fn a_new_server_of_a_trusted_file_counts_as_the_users_own() {
    let text = json!({"mcpServers": {"new": {"command": "./run", "auto_approve": "all"}}});
    let config = laid(&text);
    let alone = parse(&text.to_string()).unwrap().config;
    assert_eq!(config.server("new"), alone.server("new"));
    assert_eq!(config.server("new").unwrap().origin, ServerOrigin::Own);
    assert_eq!(config.servers.len(), 3);
}

#[test]
fn an_entry_with_a_connection_replaces_all_but_the_tool_lists() {
    let config = laid(&json!({"mcpServers": {"one": {"command": "/other"}}}));
    let alone = parse(r#"{"mcpServers": {"one": {"command": "/other"}}}"#).unwrap().config;
    let expected = ServerConfig { tools: one(&own()).tools, ..one(&alone) };
    assert_eq!(one(&config), expected);
    assert_eq!(config.servers[0], expected, "in the place of the other");
    let other = ServerConfig { tools: ToolRules::All, ..expected };
    let narrowed =
        json!({"mcpServers": {"one": {"command": "/other", "enabled_tools": ["x", "y"]}}});
    let only = |name: &str| ToolRules::Only([name.to_owned()].into());
    assert_eq!(one(&laid(&narrowed)), ServerConfig { tools: only("y"), ..other });
}

#[test]
fn an_entry_without_a_connection_changes_only_its_own_keys() {
    for key in ServerConfig::TABLE.keys() {
        let value = match key.name {
            // The connection; tested above.
            key if key == "name" || transport::is_part(key) => continue,
            "enabled_tools" => json!(["x", "y"]),
            "disabled_tools" => json!(["y"]),
            "start" => json!("eager"),
            "login" => json!("shared"),
            "oauth" => json!({"client_id": "other"}),
            "targets" => json!({"system": "other"}),
            _ => sample::value(ServerConfig::TABLE, key).expect("give a value of the key here"),
        };
        let key = key.name;
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        // The complete own entry with this one member.
        let mut entry = json!({"command": "/own/one", "args": ["a"], "disabled_tools": ["x"],
            "start": "lazy", "call_timeout": "1s", "max_concurrent": 2,
            "oauth": {"client_id": "own"}});
        let lists = matches!(key, "enabled_tools" | "disabled_tools");
        if !lists {
            entry[key] = value.clone();
        }
        let whole = json!({"mcpServers": {"one": entry}}).to_string();
        let mut expected = one(&parse(&whole).unwrap().config);
        match key {
            "enabled_tools" => expected.tools = ToolRules::Only(names(&["y"])),
            "disabled_tools" => expected.tools = ToolRules::Except(names(&["x", "y"])),
            _ => {}
        }
        let trusted = json!({"mcpServers": {"one": {key: value}}});
        assert_eq!(one(&laid(&trusted)), expected, "{trusted}");
    }
}

#[test]
fn profiles_and_plugins_are_merged_by_name() {
    let config = laid(&json!({
        "profiles": {"p": {"servers": ["two"]}, "q": {"servers": ["one"]}},
        "plugins": {"h": {"path": "/other"}, "i": {}},
    }));
    let profiles: Vec<_> = config.profiles.iter().map(|it| (&*it.name, &*it.servers[0])).collect();
    assert_eq!(profiles, [("p", "two"), ("q", "one")]);
    assert!(config.profiles.iter().all(|profile| profile.origin == ServerOrigin::Own));
    let plugins: Vec<_> = config.plugins.iter().map(|it| (&*it.name, it.path.as_deref())).collect();
    assert_eq!(plugins, [("g", Some("/own/g")), ("h", Some("/other")), ("i", None)]);
}

#[test]
fn redaction_rules_are_added_and_not_replaced() {
    let config = laid(&json!({"redact": {"keys": ["k", "more"], "patterns": []}}));
    assert_eq!(config.redact.keys, ["k", "more"]);
    assert_eq!(config.redact.patterns, ["p+"]);
}

#[test]
fn servers_disable_built_in_tools_unless_explicitly_enabled() {
    let server = json!({"mcpServers": {"s": {"command": "x"}}}).to_string();
    let enabled = |own: &str, trusted: &str| {
        let own = parse(own).unwrap().config;
        lay_over(own, trusted).unwrap().config.workspace.enabled
    };
    assert!(enabled("{}", "{}"));
    assert!(!enabled("{}", &server));
    assert!(enabled(
        "{}",
        r#"{"mcpServers": {"s": {"command": "x"}}, "workspace": {"enabled": true}}"#
    ));
    assert!(!enabled(r#"{"workspace": {"enabled": false}}"#, "{}"));
    let with = r#"{"workspace": {"enabled": true}, "mcpServers": {"t": {"command": "x"}}}"#;
    assert!(enabled(with, &server));
}

#[test]
fn faults_have_their_places_and_change_nothing() {
    for (text, words) in [
        ("{", "line 1"),
        ("[]", "expected an object"),
        ("{\n\"tools_limt\": 1}", "line 2, column 1: tools_limt"),
        (r#"{"mcpServers": {"new": {}}}"#, "mcpServers.new"),
        (r#"{"mcpServers": {"one": {"args": ["b"]}}}"#, "mcpServers.one"),
        (r#"{"redact": {"patterns": ["("]}}"#, "redact.patterns"),
    ] {
        let faults = lay_over(own(), text).expect_err(text).to_string();
        assert!(faults.contains(words), "{faults}");
    }
}

/// Restrictions in effect before a file is trusted remain in effect afterwards.
#[test]
fn trusting_a_file_lifts_none_of_its_restrictions() {
    let text = json!({
        "mcpServers": {"one": {"disabled_tools": ["y"]}, "two": {"enabled_tools": ["z"]}},
        "redact": {"keys": ["more"]},
    });
    let found = overlay(own(), &text.to_string()).unwrap().config;
    assert_eq!(laid(&text), found);
}
