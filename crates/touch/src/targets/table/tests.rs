//! Calls to each server of the table, with the resources expected of them.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::mapping::RuleResource;
use super::super::{
    Access, CallPlace, PlannedTargets, TARGET_FILTERS, TargetPlan, ToolShape, system_fault,
};
use super::*;

static EXAMPLES: &str = include_str!("examples.json");

const SERVER: &str = "srv";
const PLACE: CallPlace<'_> =
    CallPlace { root: Some("/srv/app"), home: Some("/u/ada"), is_local: true, query_key: &[7; 32] };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExampleServer {
    key: String,
    calls: Vec<ExampleCall>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExampleCall {
    tool: String,
    arguments: Map<String, Value>,
    /// System, resource, and the access if the arguments show it.
    targets: Vec<Vec<String>>,
}

fn find(info: &str, call: &ExampleCall) -> PlannedTargets {
    let ExampleCall { tool, arguments, .. } = call;
    let kind = |value: &Value| match value {
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        _ => "number",
    };
    let schema =
        |(key, value): (&String, &Value)| (key.clone(), serde_json::json!({"type": kind(value)}));
    let properties = &arguments.iter().map(schema).collect();
    let shape = ToolShape { server: SERVER, info: Some(info), tool, properties };
    TargetPlan::compile(&shape, None).find(arguments, &PLACE)
}

fn examples() -> Vec<ExampleServer> {
    serde_json::from_str(EXAMPLES).expect("examples")
}

#[test]
fn every_server_names_the_resources_of_its_examples() {
    let examples = examples();
    let mut unknown: Vec<String> = Vec::new();
    for known in known_servers() {
        let calls = &examples.iter().find(|server| server.key == known.key).unwrap().calls;
        for (info, call) in known.info.iter().flat_map(|info| calls.iter().map(move |c| (info, c)))
        {
            let planned = find(info, call);
            let shown: Vec<Vec<String>> = planned
                .found
                .iter()
                .map(|(target, access)| {
                    let names = [target.system(), target.resource()].into_iter();
                    let access = access.map(Access::as_str);
                    names.chain(access).map(str::to_owned).collect()
                })
                .collect();
            let about = format!("{}:{} {:?}", known.key, call.tool, call.arguments);
            assert_eq!(shown, call.targets, "{about}");
            let origin = format!("builtin:{}", known.key);
            let names_nothing = known.rules.iter().any(|one| {
                one.rule.resource == RuleResource::Nothing && one.rule.tools.matches(&call.tool)
            });
            if !shown.is_empty() {
                assert_eq!(planned.basis.as_str(), origin, "{about}");
            } else if names_nothing && !call.arguments.is_empty() {
                let is_known = planned.basis.as_str() == format!("{origin}: names no resource");
                unknown.extend((!is_known).then_some(about));
            }
        }
    }
    assert_eq!(unknown, Vec::<String>::new(), "arguments that a rule does not know");
}

#[test]
fn every_server_has_examples_and_one_without_a_resource_where_it_searches() {
    let examples = examples();
    assert!(known_servers().len() >= 40, "{}", known_servers().len());
    assert_eq!(examples.len(), known_servers().len());
    for known in known_servers() {
        let calls = &examples.iter().find(|server| server.key == known.key).unwrap().calls;
        assert!(calls.len() >= 2, "{}", known.key);
        let has_null = known.rules.iter().any(|known| known.rule.resource == RuleResource::Nothing);
        if has_null {
            assert!(calls.iter().any(|call| call.targets.is_empty()), "{}", known.key);
        }
    }
}

#[test]
fn names_are_unique_and_systems_valid() {
    let (mut keys, mut infos) = (HashSet::new(), HashSet::new());
    for known in known_servers() {
        assert!(keys.insert(&known.key), "{}", known.key);
        assert!(!known.info.is_empty() && !known.rules.is_empty(), "{}", known.key);
        for info in &known.info {
            assert!(infos.insert(info), "{info}");
        }
        let systems = known.rules.iter().filter_map(|rule| rule.system.as_ref());
        for system in systems.chain(&known.system) {
            assert_eq!(system_fault(system), None, "{}", known.key);
        }
    }
}

#[test]
fn a_known_name_alone_decides_nothing() {
    let call = |tool: &str, arguments: Value| ExampleCall {
        tool: tool.to_owned(),
        arguments: arguments.as_object().unwrap().clone(),
        targets: Vec::new(),
    };
    let github = |call: &ExampleCall| find("GitHub-MCP-Server", call).basis.as_str().to_owned();
    let issue = call("issue_read", serde_json::json!({"owner": "o", "repo": "r"}));
    assert_eq!(github(&issue), "builtin:github");
    // The arguments of the table's rules are missing in the schema.
    let other = call("issue_read", serde_json::json!({"path": "p"}));
    assert!(!github(&other).starts_with("builtin:"), "{}", github(&other));
    // The same tool of a server with another name.
    assert!(!find("mine", &issue).basis.as_str().starts_with("builtin:"));
}

fn reference() -> String {
    let mut table = "| origin | server | names itself | system |\n|---|---|---|---|\n".to_owned();
    for known in known_servers() {
        let KnownServer { key, title, source, .. } = known;
        let info: Vec<String> = known.info.iter().map(|name| format!("`{name}`")).collect();
        let inner = known.rules.iter().filter_map(|rule| rule.system.as_deref());
        let mut systems: Vec<&str> = known.system.as_deref().into_iter().chain(inner).collect();
        systems.dedup();
        let systems: Vec<String> = systems.iter().map(|name| format!("`{name}`")).collect();
        let (info, systems) = (info.join(", "), systems.join(", "));
        let server = format!("[{title}](https://github.com/{source})");
        table += &format!("| `builtin:{key}` | {server} | {info} | {systems} |\n");
    }
    table
}

#[test]
fn the_servers_are_documented() {
    const START: &str = "<!-- servers: made from crates/touch/src/targets/table/servers.json -->\n";
    const END: &str = "<!-- end of servers -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/targets.md");
    let document = std::fs::read_to_string(path).expect("docs/targets.md is there");
    let (before, rest) = document.split_once(START).expect("the start of the table");
    let (table, after) = rest.split_once(END).expect("the end of the table");
    let reference = format!("\n{}\n", reference());
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        let document = [before, START, &reference, END, after].concat();
        std::fs::write(path, document).expect("docs/targets.md can be written");
        return;
    }
    assert!(table == reference, "docs/targets.md is not the table: run with UPDATE_DOCS=1");
}

#[test]
fn every_filter_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/targets.md");
    let document = std::fs::read_to_string(path).expect("docs/targets.md is there");
    for filter in TARGET_FILTERS {
        assert!(document.contains(&format!("`{filter}`")), "{filter}");
    }
}

#[test]
fn a_page_of_a_service_shows_its_resource() {
    for (address, expected) in [
        ("https://github.com/Octo/shop/issues/12", Some("github.com octo/shop#12")),
        ("https://www.github.com/octo/shop/pull/12/files", Some("github.com octo/shop#12")),
        ("https://github.com/octo/shop/issues", None),
        ("https://github.com/octo/shop/issues/new", None),
        ("https://www.notion.so/pricing", None),
        ("https://github.com/octo/shop/issues/12/x", None),
        ("https://github.com/octo/shop/issues/12?~0a", None),
        ("https://github.example.com/octo/shop/issues/12", None),
        ("http://github.com/octo/shop/issues/12", None),
        (
            "https://www.notion.so/acme/Plan-598337872cf94fdf8782e53db20768a5",
            Some("notion.so 598337872cf94fdf8782e53db20768a5"),
        ),
        ("https://docs.google.com/document/d/1AbC/edit", Some("google.com drive/1AbC")),
        ("https://linear.app/acme/issue/shop-7/title", Some("linear.app SHOP-7")),
    ] {
        let page = Target::recorded("web", address.to_owned()).unwrap();
        let shown = shown_at(&page);
        let shown = shown.map(|target| format!("{} {}", target.system(), target.resource()));
        assert_eq!(shown.as_deref(), expected, "{address}");
    }
    let call = ExampleCall {
        tool: "fetch".to_owned(),
        arguments: serde_json::json!({"url": "https://github.com/octo/shop/issues/12"})
            .as_object()
            .unwrap()
            .clone(),
        targets: Vec::new(),
    };
    let systems: Vec<String> = find("mcp-fetch", &call)
        .found
        .into_iter()
        .map(|(target, _)| target.system().to_owned())
        .collect();
    assert_eq!(systems, ["web", "github.com"]);
}
