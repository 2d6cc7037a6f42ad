//! Measures how calls are named: compiling a plan when a tool is first called, and finding the
//! resources of a call, ordinary and hostile.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Map, Value, json};
use touch::targets::{CallPlace, TargetPlan, ToolShape};

const PLACE: CallPlace<'_> = CallPlace {
    root: Some("/srv/dev/shop"),
    home: Some("/u/ada"),
    is_local: true,
    query_key: &[7; 32],
};

/// A tool with the arguments of an ordinary call.
fn ordinary() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("file", "write_file", json!({"path": "src/cart.ts", "content": "x".repeat(2000)})),
        ("move", "move_file", json!({"source": "/srv/dev/a", "destination": "/srv/dev/b"})),
        (
            "issue",
            "update_issue",
            json!({"owner": "octo", "repo": "shop", "issue_number": 12, "state": "closed"}),
        ),
        ("id", "get_incident", json!({"id": "59833787-2cf9-4fdf-8782-e53db20768a5"})),
        ("address", "fetch", json!({"url": "https://example.com/item?id=7&utm_source=x"})),
        (
            "sql",
            "execute_sql",
            json!({"sql": "UPDATE public.orders SET state = 'paid' WHERE id = 7"}),
        ),
        ("none", "search_issues", json!({"query": "is:open label:bug cart", "sort": "updated"})),
    ]
}

/// Calls that are made to cost time.
fn hostile() -> Vec<(&'static str, Value)> {
    let long = "x/".repeat(1 << 19);
    let ids: Map<String, Value> = (0..10_000).map(|at| (format!("a{at}_id"), json!(at))).collect();
    let unknown: Map<String, Value> = (0..256).map(|at| (format!("a{at}_id"), json!(at))).collect();
    let joins = format!("select * from t {}", "join t on (1 = 1) ".repeat(1700));
    let rows: Vec<Value> = (0..10_000).map(|at| json!({"id": at, "name": "n"})).collect();
    vec![
        ("10,000 arguments", Value::Object(ids)),
        ("256 unknown arguments", Value::Object(unknown)),
        ("a path of 1 MB", json!({ "path": long })),
        ("an address of 1 MB", json!({"url": format!("https://h/{long}")})),
        ("a statement of 1 MB", json!({"sql": format!("select * from t where a = '{long}'")})),
        ("a statement of 30 KB", json!({ "sql": joins })),
        ("a list of 10,000 objects", json!({ "records": rows })),
    ]
}

fn compiled(tool: &str, arguments: &Map<String, Value>) -> TargetPlan {
    let properties = arguments.keys().map(|key| (key.clone(), json!({}))).collect();
    TargetPlan::compile(
        &ToolShape { server: "srv", info: None, tool, properties: &properties },
        None,
    )
}

fn targets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("targets");
    for (name, tool, arguments) in ordinary() {
        let arguments = arguments.as_object().expect("an object");
        let plan = compiled(tool, arguments);
        assert_eq!(plan.find(arguments, &PLACE).found.is_empty(), name == "none", "{name}");
        group.bench_function(format!("find/{name}"), |b| {
            b.iter(|| plan.find(black_box(arguments), &PLACE));
        });
    }
    let (_, tool, arguments) = &ordinary()[2];
    let arguments = arguments.as_object().expect("an object");
    group.bench_function("compile", |b| b.iter(|| compiled(tool, black_box(arguments))));
    for (name, arguments) in hostile() {
        let arguments = arguments.as_object().expect("an object");
        let plan = compiled("update_records", &Map::new());
        group.bench_function(format!("hostile/{name}"), |b| {
            b.iter(|| plan.find(black_box(arguments), &PLACE));
        });
    }
    group.finish();
}

criterion_group!(benches, targets);
criterion_main!(benches);
