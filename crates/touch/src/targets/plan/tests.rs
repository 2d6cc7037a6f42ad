//! The precedence of rules, and what a plan says about itself.

use serde_json::json;

use super::*;
use crate::targets::{TargetTemplate, ToolPattern};

const PLACE: CallPlace<'_> =
    CallPlace { root: None, home: Some("/u/ada"), is_local: false, query_key: &[1; 32] };

fn rule(tools: &str, resource: &[&str]) -> TargetRule {
    let templates = resource.iter().map(|text| TargetTemplate::parse(text).unwrap()).collect();
    let resource = match resource {
        [] => RuleResource::Nothing,
        _ => RuleResource::Named(templates),
    };
    TargetRule { tools: ToolPattern::parse(tools).unwrap(), resource, reads: Vec::new() }
}

fn mapping(system: Option<&str>, rules: Vec<TargetRule>) -> TargetMapping {
    TargetMapping { system: system.map(str::to_owned), rules }
}

fn compile(tool: &str, properties: &Value, mapping: Option<&TargetMapping>) -> TargetPlan {
    let properties = properties.as_object().unwrap();
    let info = Some("github-mcp-server");
    TargetPlan::compile(&ToolShape { server: "gh", info, tool, properties }, mapping)
}

fn shown(planned: &PlannedTargets) -> (String, String) {
    let names = planned.found.iter().map(|(t, _)| format!("{} {}", t.system(), t.resource()));
    (names.collect::<Vec<_>>().join(", "), planned.basis.as_str().to_owned())
}

#[test]
fn the_mapping_precedes_the_table_and_the_keys_come_last() {
    let issue = json!({"owner": "O", "repo": "R", "issue_number": 7});
    let file = json!({"owner": "O", "repo": "R", "path": "p"});
    let search = json!({"query": "x", "owner": "O", "repo": "R"});
    let schema = |tool: &str| if tool == "search_issues" { &search } else { &issue };
    let own = mapping(Some("ghe.example"), vec![rule("issue_*", &["{repo}!{issue_number}"])]);
    let none = mapping(None, vec![rule("issue_read", &[]), rule("*", &["{repo}"])]);
    let system = mapping(Some("ghe.example"), Vec::new());
    for (tool, arguments, mapping, expected) in [
        ("issue_read", &issue, None, ("github.com o/r#7", "builtin:github")),
        ("issue_read", &issue, Some(&own), ("ghe.example R!7", "config")),
        // A rule whose fields are missing is passed over.
        ("issue_write", &file, Some(&own), ("ghe.example o/r", "builtin:github")),
        ("issue_read", &issue, Some(&none), ("", "config: names no resource")),
        ("issue_write", &issue, Some(&none), ("gh R", "config")),
        ("issue_read", &issue, Some(&system), ("ghe.example o/r#7", "builtin:github")),
        ("search_issues", &search, None, ("", "builtin:github: names no resource")),
    ] {
        let planned =
            compile(tool, schema(tool), mapping).find(arguments.as_object().unwrap(), &PLACE);
        let (found, basis) = shown(&planned);
        assert_eq!((found.as_str(), basis.as_str()), expected, "{tool} {arguments} {mapping:?}");
    }
}

#[test]
fn a_rule_of_the_table_needs_its_fields_in_the_schema() {
    let arguments = json!({"owner": "O", "repo": "R", "issue_number": 7});
    let plan = compile("issue_read", &json!({"owner": {}, "repo": {}}), None);
    let planned = plan.find(arguments.as_object().unwrap(), &PLACE);
    assert_eq!(shown(&planned).0, "github.com o/r");
}

#[test]
fn several_templates_give_several_resources_and_reads_are_reads() {
    let mut copy = rule("copy", &["{to}", "{log}", "{missing}"]);
    copy.reads = vec![TargetTemplate::parse("{from}").unwrap()];
    let mapping = mapping(None, vec![copy]);
    let arguments = json!({"from": "a", "to": "b", "log": "c"});
    let planned = compile("copy", &json!({}), Some(&mapping));
    let planned = planned.find(arguments.as_object().unwrap(), &PLACE);
    let found: Vec<(&str, Option<Access>)> =
        planned.found.iter().map(|(target, access)| (target.resource(), *access)).collect();
    assert_eq!(found, [("b", None), ("c", None), ("a", Some(Access::Read))]);
}

#[test]
fn a_plan_shows_its_rules_and_the_one_that_decided() {
    let schema = json!({"owner": {}, "repo": {}, "issue_number": {}});
    let own = mapping(None, vec![rule("*", &["{missing}", "{repo}"])]);
    let plan = compile("issue_read", &schema, Some(&own));
    let steps = plan.steps();
    let origins: Vec<&str> = steps.iter().map(|step| step.origin.as_str()).collect();
    assert_eq!(origins[..2], ["config", "builtin:github"]);
    assert_eq!(steps[0].resource, ["{missing}", "{repo}"]);
    assert_eq!(steps[1].resource, ["{owner:lower}/{repo:lower}#{issue_number}"]);
    let arguments = json!({"owner": "o", "repo": "r", "issue_number": 7});
    let explained = plan.explain(arguments.as_object().unwrap(), &PLACE);
    assert_eq!(explained.rule.as_ref(), Some(&steps[1]));
    let nothing = plan.explain(&Map::new(), &PLACE);
    assert_eq!((nothing.rule, nothing.planned.basis), (None, TargetBasis::NO_RESOURCE));
    // A rule that always decides ends the plan.
    let ended = compile("search_code", &json!({"query": {}, "owner": {}}), None).steps();
    assert_eq!(ended.last().map(|step| step.resource.len()), Some(0));
}

#[test]
fn the_order_of_the_arguments_does_not_matter() {
    let schema = json!({"owner": {}, "repo": {}, "path": {}});
    let plan = compile("get_file_contents", &schema, None);
    let one: Value = serde_json::from_str(r#"{"owner":"o","repo":"r","path":"p"}"#).unwrap();
    let other: Value = serde_json::from_str(r#"{"path":"p","repo":"r","owner":"o"}"#).unwrap();
    let find = |value: &Value| plan.find(value.as_object().unwrap(), &PLACE);
    assert_eq!(find(&one), find(&other));
}

/// A name that a server gives itself must not hide what its tools touch.
#[test]
fn a_rule_without_a_resource_needs_the_tools_of_the_known_server() {
    let compile = |info: &str, tool: &str, schema: &Value| {
        let (info, properties) = (Some(info), schema.as_object().unwrap());
        TargetPlan::compile(&ToolShape { server: "s", info, tool, properties }, None)
    };
    let path = json!({"path": "/etc/x"});
    for (info, tool, schema, arguments, found) in [
        ("mcp-time", "convert_time", json!({"timezone": {}}), json!({"timezone": "UTC"}), ""),
        ("mcp-time", "convert_time", json!({"path": {}}), path.clone(), "s /etc/x"),
        ("mcp-time", "convert_time", json!({"timezone": {}, "path": {}}), path.clone(), "s /etc/x"),
        ("Playwright", "browser_steal", json!({"path": {}}), path.clone(), "s /etc/x"),
        // Every argument of a tool without properties counts.
        ("mcp-time", "convert_time", json!({}), path.clone(), "s /etc/x"),
        // What lies in an object is an argument too.
        (
            "mcp-time",
            "convert_time",
            json!({"params": {"properties": {"path": {}}}}),
            json!({"params": path}),
            "s /etc/x",
        ),
        ("mcp-time", "convert_time", json!({"params": {}}), json!({"params": path}), "s /etc/x"),
    ] {
        let planned = compile(info, tool, &schema).find(arguments.as_object().unwrap(), &PLACE);
        assert_eq!(shown(&planned).0, found, "{tool} {schema}");
    }
}

/// The keys that name a resource for any tool, as the plan of one applies them.
#[test]
fn every_key_of_the_last_row_names_a_resource_of_a_plain_tool() {
    for (arguments, expected) in [
        (json!({"url": "https://h/a"}), "web https://h/a"),
        (json!({"uri": "https://h/a"}), "web https://h/a"),
        (json!({"endpoint": "/v1/users"}), "s /v1/users"),
        (json!({"table": "events"}), "s events"),
        (json!({"collection": "events"}), "s events"),
        (json!({"table": "events", "database": "analytics"}), "s analytics.events"),
        (json!({"table": "t", "schema": "s"}), "s s.t"),
        (json!({"table": "t", "dataset": "d"}), "s d.t"),
        (json!({"collection": "c", "keyspace": "k"}), "s k.c"),
        (json!({"owner": "o", "repo": "r"}), "s o/r"),
        (json!({"path": "/a"}), "s /a"),
        (json!({"key": "k"}), "s k"),
        (json!({"bucket": "b"}), "s b"),
        (json!({"object": "o"}), "s o"),
        (json!({"resource": "r"}), "s r"),
        (json!({"resource": "r", "action": "close"}), "s r"),
        (json!({"resource_id": "i"}), "s resource/i"),
    ] {
        for tool in ["act", "get_resource", "update_object", "do_something"] {
            let properties = arguments.as_object().unwrap();
            let shape = ToolShape { server: "s", info: None, tool, properties };
            let planned = TargetPlan::compile(&shape, None).find(properties, &PLACE);
            assert_eq!(shown(&planned).0, expected, "{tool} {arguments}");
        }
    }
}
