//! Callers built from tokens and profiles, and scopes as written and stored.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::scope::Words;
use super::*;
use crate::config;
use crate::refusal::Refusal;

fn profile(text: &str) -> Arc<Profile> {
    let text = format!("{{\"profiles\": {{\"p\": {text}}}}}");
    let parsed = config::parse(&text).unwrap_or_else(|faults| panic!("{faults}"));
    Arc::new(Profile::from(&parsed.config.profiles[0]))
}

fn scope(value: Value) -> Result<Scope, String> {
    serde_json::from_value(value).map_err(|fault| fault.to_string())
}

/// Lists the tools among `a:x a:y b:x b:y c:x` that the caller sees.
fn seen(caller: &Caller) -> String {
    let tools = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "x")];
    let seen = tools.iter().filter(|(server, tool)| caller.sees_tool(server, tool));
    seen.map(|(server, tool)| format!("{server}{tool}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_profile_narrows_servers_and_tools() {
    let agent = Caller::agent("t");
    assert_eq!(seen(&agent), "ax ay bx by cx");
    for (text, expected) in [
        (r#"{"servers": ["a", "b"]}"#, "ax ay bx by"),
        (r#"{"servers": ["a", "b"], "tools": ["a:x", "b:x", "c:x"]}"#, "ax bx"),
        (r#"{"servers": ["a", "b"], "exclude": ["a:x"]}"#, "ay bx by"),
        (r#"{"servers": ["a"], "tools": ["a:x", "a:y"], "exclude": ["a:y"]}"#, "ax"),
        (r#"{"servers": ["a"], "tools": []}"#, ""),
        (r#"{"servers": []}"#, ""),
    ] {
        let caller = agent.narrowed(profile(text));
        assert_eq!(seen(&caller), expected, "{text}");
        assert!(!caller.sees("c"));
        assert_ne!(caller.servers, Servers::All, "nobody takes it for a caller that sees all");
    }
}

#[test]
fn a_second_profile_narrows_further() {
    let first = profile(r#"{"servers": ["a", "b"], "exclude": ["a:x"]}"#);
    let second = profile(r#"{"servers": ["a", "c"], "tools": ["a:x", "a:y", "c:x"]}"#);
    let both = Caller::agent("t").narrowed(first.clone()).narrowed(second.clone());
    assert_eq!(seen(&both), "ay");
    assert!(both.sees("a") && !both.sees("b") && !both.sees("c"));
    let ProfileRule::In(merged) = &both.profile else { panic!("{both:?}") };
    assert_eq!(&*merged.name, "p+p");
    let once = Caller::agent("t").narrowed(first.clone());
    assert_eq!(once.narrowed(first), once);
}

#[test]
fn a_scope_becomes_a_caller() {
    let words = json!({"servers": ["a", "c"], "operations": ["read"], "profile": "p"});
    let scope = scope(words).unwrap();
    let within = profile(r#"{"servers": ["a", "b"], "exclude": ["a:y"]}"#);
    let caller = Caller::from_scope("ci", &scope, Some(within));
    assert_eq!((&*caller.token, caller.role), ("ci", Role::Agent));
    assert_eq!(seen(&caller), "ax");
    assert!(caller.operations.is_read_only());
    assert_eq!(caller.unannotated, UnannotatedRule::Deny);
    assert!(caller.uses(TokenSurface::Discovery) && !caller.uses(TokenSurface::Passthrough));
}

#[test]
fn a_scope_whose_profile_is_gone_sees_nothing() {
    let scope = scope(json!({"operations": ["read"], "profile": "gone"})).unwrap();
    let other = profile(r#"{"servers": ["a"]}"#);
    let foreign = Profile { name: "gone".into(), origin: ServerOrigin::Found, ..(*other).clone() };
    for profile in [None, Some(other.clone()), Some(Arc::new(foreign))] {
        let caller = Caller::from_scope("t", &scope, profile);
        assert_eq!(caller.profile, ProfileRule::Missing("gone".into()));
        for caller in [caller.narrowed(other.clone()), caller] {
            assert_eq!(seen(&caller), "");
            assert!(["a", "b", "c"].iter().all(|server| !caller.sees(server)));
        }
    }
}

#[test]
fn the_defaults_of_a_scope() {
    for (operations, unannotated) in [
        (json!(["read"]), "deny"),
        (json!(["read", "read"]), "deny"),
        (json!(["read", "write"]), "allow"),
        (json!(["destructive"]), "allow"),
    ] {
        let scope = scope(json!({"operations": operations})).unwrap();
        assert_eq!(scope.servers, None);
        assert_eq!(scope.surfaces, Surfaces::DISCOVERY);
        assert_eq!(scope.profile, None);
        assert_eq!(scope.unannotated.as_str(), unannotated, "{operations}");
    }
}

#[test]
fn a_scope_is_stored_in_one_spelling() {
    let written = json!({
        "surfaces": ["passthrough", "discovery"], "operations": ["write", "read"],
        "servers": ["b", "a"], "profile": "p", "unannotated_tools": "deny",
    });
    let stored = serde_json::to_string(&scope(written).unwrap()).unwrap();
    let expected = r#"{"servers":["a","b"],"operations":["read","write"],"surfaces":["discovery","passthrough"],"profile":"p","unannotated_tools":"deny"}"#;
    assert_eq!(stored, expected);
    let stored = serde_json::to_string(&scope(json!({"operations": ["read"]})).unwrap()).unwrap();
    let expected = r#"{"servers":null,"operations":["read"],"surfaces":["discovery"],"profile":null,"unannotated_tools":"deny"}"#;
    assert_eq!(stored, expected);
}

#[test]
fn an_invalid_scope_is_rejected_with_the_allowed_values() {
    let with = |field: &str, value: Value| {
        let mut words = json!({"operations": ["read"]});
        words[field] = value;
        words
    };
    let operations = "read, write, or destructive";
    for (words, expected) in [
        (json!({}), format!("'operations' must name at least one of {operations}")),
        (with("operations", json!([])), format!("'operations' must name at least one of {operations}")),
        (with("operations", json!(["delete"])), format!("invalid operations 'delete': must be {operations}")),
        (with("surfaces", json!([])), "'surfaces' must name at least one of discovery or passthrough".to_owned()),
        (with("surfaces", json!(["rest"])), "invalid surfaces 'rest': must be discovery or passthrough".to_owned()),
        (with("unannotated_tools", json!("ask")), "invalid unannotated_tools 'ask': must be allow or deny".to_owned()),
        (with("servers", json!([])), "'servers' must name at least one server; omit it to allow all".to_owned()),
        (with("servers", json!(["a b"])), "invalid name 'a b' in 'servers': a name may contain only letters, digits, '_', '.' and '-'".to_owned()),
        (with("profile", json!("")), "invalid name '' in 'profile': a name must not be empty".to_owned()),
        (with("expires", json!(1)), "unknown field `expires`, expected one of `servers`, `operations`, `surfaces`, `profile`, `unannotated_tools`".to_owned()),
    ] {
        assert_eq!(scope(words.clone()), Err(expected), "{words}");
    }
    let words = Words { operations: vec!["delete".to_owned()], ..Words::default() };
    let refusal = Refusal::from(Scope::try_from(words).unwrap_err());
    assert_eq!(refusal.code.as_str(), "INVALID_REQUEST");
    let details = json!({
        "field": "operations", "provided": "delete", "valid_values": ["read", "write", "destructive"],
    });
    assert_eq!(refusal.details, details);
}

proptest! {
    #[test]
    fn a_stored_scope_is_read_back_as_it_was(
        servers in prop::option::of(prop::collection::btree_set("[a-z]{1,3}", 1..3)),
        (read, write, destructive, passthrough) in any::<(bool, bool, bool, bool)>(),
        profile in prop::option::of("[a-z]{1,3}"),
        deny in any::<bool>(),
    ) {
        prop_assume!(read || write || destructive);
        let scope = Scope {
            servers,
            operations: Operations { read, write, destructive },
            surfaces: Surfaces { discovery: true, passthrough },
            profile,
            unannotated: if deny { UnannotatedRule::Deny } else { UnannotatedRule::Allow },
        };
        let text = serde_json::to_string(&scope).unwrap();
        prop_assert_eq!(serde_json::from_str::<Scope>(&text).unwrap(), scope);
    }

    #[test]
    fn narrowing_never_shows_more(
        sets in prop::collection::vec((
            prop::collection::vec("[a-c]", 0..3),
            prop::option::of(prop::collection::vec("[a-c]:[xy]", 0..4)),
            prop::collection::vec("[a-c]:[xy]", 0..3),
        ), 1..3),
    ) {
        let mut caller = Caller::agent("t");
        for (servers, tools, exclude) in sets {
            let mut text = json!({"servers": servers, "exclude": exclude});
            if let Some(tools) = tools {
                text["tools"] = json!(tools);
            }
            let profile = profile(&text.to_string());
            let narrowed = caller.narrowed(profile.clone());
            for server in ["a", "b", "c"] {
                prop_assert!(!narrowed.sees(server) || caller.sees(server));
                for tool in ["x", "y"] {
                    let expected = caller.sees_tool(server, tool) && profile.has_tool(server, tool);
                    prop_assert_eq!(narrowed.sees_tool(server, tool), expected);
                    prop_assert!(!narrowed.sees_tool(server, tool) || narrowed.sees(server));
                }
            }
            caller = narrowed;
        }
    }
}
