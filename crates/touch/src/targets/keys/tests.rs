//! Keys that a tool has and does not have, with plans and alone.

use serde_json::json;

use super::super::{Access, CallPlace, PlannedTargets, TargetPlan, ToolShape};
use super::*;

fn plan(tool: &str, info: Option<&str>, properties: &Value) -> TargetPlan {
    let properties = properties.as_object().unwrap();
    TargetPlan::compile(&ToolShape { server: "srv", info, tool, properties }, None)
}

fn find(plan: &TargetPlan, arguments: &Value) -> PlannedTargets {
    let place =
        CallPlace { root: Some("/w"), home: Some("/u/ada"), is_local: true, query_key: &[7; 32] };
    plan.find(arguments.as_object().unwrap(), &place)
}

fn shown(planned: &PlannedTargets) -> Vec<String> {
    let one = |(target, access): &(super::super::Target, Option<Access>)| {
        let access = access.map_or("", Access::as_str);
        format!("{} {access}", target.resource()).trim_end().to_owned()
    };
    planned.found.iter().map(one).collect()
}

#[test]
fn keys_that_the_tool_does_not_have_name_nothing() {
    let sql = json!({"sql": {"type": "string"}});
    let both = json!({"sql": {}, "query": {}});
    let file = json!({"path": {}, "content": {}});
    let id = json!({"path": {}, "content": {}, "id": {}});
    let drop = json!({"sql": "drop table users", "query": "select * from notes"});
    let script = json!({"sql": "drop table users; select * from notes"});
    let write = json!({"path": "plan.md", "content": "c", "owner": "alice", "repo": "her-repo",
        "id": 5, "URL": "https://h/x", "PATH": "other.md"});
    let none = json!({});
    for (tool, info, properties, arguments, expected) in [
        ("run", None, &sql, &drop, vec!["users write"]),
        ("run", None, &both, &drop, vec!["users write", "notes read"]),
        ("run", None, &sql, &script, vec!["users write", "notes read"]),
        ("execute_query", Some("mysql_mcp_server"), &sql, &drop, vec!["users write"]),
        (
            "execute_query",
            Some("mysql_mcp_server"),
            &both,
            &drop,
            vec!["users write", "notes read"],
        ),
        ("write_file", None, &file, &write, vec!["/w/plan.md"]),
        // Where the tool has the key, it still makes no read of a write.
        ("write_file", None, &id, &write, vec!["file/5", "/w/plan.md"]),
        // Without known keys, all count.
        ("run", None, &none, &drop, vec!["users write", "notes read"]),
        // The keys that name a resource for any tool are held to the same.
        ("do", None, &json!({"note": {}}), &json!({"note": "n", "resource": "her"}), vec![]),
    ] {
        let plan = plan(tool, info, properties);
        assert_eq!(shown(&find(&plan, arguments)), expected, "{tool} {arguments}");
    }
}

#[test]
fn unknown_keys_are_listed_also_within_objects_and_lists() {
    let known = json!({
        "item": {"type": "object", "properties": {"path": {}}},
        "files": {"type": "array", "items": {"properties": {"path": {}}}},
        "any": {"type": "object"},
    });
    let arguments = json!({
        "item": {"path": "a", "owner": "o"},
        "files": [{"path": "b", "id": 1}, "c"],
        "any": {"x": 1},
        "query": "q",
    });
    let arguments = arguments.as_object().unwrap();
    let keys = KnownKeys::of(known.as_object().unwrap());
    let mut unknown = Vec::new();
    keys.each_unknown(arguments, "", &mut |key| unknown.push(key));
    unknown.sort();
    assert_eq!(unknown, ["files.id", "item.owner", "query"]);
    let expected = json!({"item": {"path": "a"}, "files": [{"path": "b"}, "c"], "any": {"x": 1}});
    assert_eq!(Value::Object(keys.kept(arguments).into_owned()), expected);
    let expected = expected.as_object().unwrap();
    assert!(matches!(keys.kept(expected), Cow::Borrowed(_)), "nothing is copied without need");
    assert!(matches!(KnownKeys::default().kept(arguments), Cow::Borrowed(_)));
}

#[test]
fn a_name_that_is_too_long_is_told_from_content() {
    let plan = plan("run", None, &json!({"sql": {}, "content": {}, "id": {}, "path": {}}));
    let has = |arguments: Value| plan.has_long_name(arguments.as_object().unwrap());
    let long = |bytes: usize| "x".repeat(bytes);
    assert!(has(json!({"id": long(4097)})) && !has(json!({"id": long(4096)})));
    assert!(has(json!({"sql": long(40_000)})) && !has(json!({"sql": long(30_000)})));
    assert!(!has(json!({"content": long(40_000)})), "content names nothing");
    assert!(!has(json!({"query": long(40_000)})), "the tool has no such key");
    assert!(!has(json!({"path": "./".repeat(3000)})), "a path is resolved first");
}
