//! Measures a tool's input schema: reading it when the tool is listed, and checking each call.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use domain::schema::{Outline, Schema};
use text::json::Object;

const PLAIN: &str = r#"{"type":"object","required":["owner","repo","title"],"properties":{
    "owner":{"type":"string"},"repo":{"type":"string"},"title":{"type":"string"},
    "body":{"type":"string"},"labels":{"type":"array","items":{"type":"string"}},
    "state":{"enum":["open","closed"]},"milestone":{"type":"integer"}}}"#;

const PATTERNED: &str = r#"{"type":"object","properties":{
    "id":{"type":"string","pattern":"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"}}}"#;

fn schema(criterion: &mut Criterion) {
    let object = |text: &str| Object::parse(text).expect("JSON").expect("an object");
    let fits = object(
        r#"{"owner":"o","repo":"r","title":"a title","body":"some words","labels":["a","b"]}"#,
    );
    let faulty = object(r#"{"owner":"o","repo":7,"labels":["a","b"]}"#);
    let id = object(r#"{"id":"0197aaaa-0000-7000-8000-000000000001"}"#);
    let mut group = criterion.benchmark_group("schema");
    group.bench_function("outline/plain", |b| b.iter(|| Outline::of(black_box(Some(PLAIN)))));
    group.bench_function("outline/pattern", |b| {
        b.iter(|| Outline::of(black_box(Some(PATTERNED))));
    });
    let plain = Schema::compile(Some(PLAIN));
    let patterned = Schema::compile(Some(PATTERNED));
    for (name, schema, arguments) in [
        ("check/fits", &plain, &fits),
        ("check/faulty", &plain, &faulty),
        ("check/pattern", &patterned, &id),
    ] {
        assert!(schema.check_at_once(arguments).is_some(), "{name} is no check at once");
        group.bench_function(name, |b| b.iter(|| schema.check_at_once(black_box(arguments))));
    }
    group.finish();
}

criterion_group!(benches, schema);
criterion_main!(benches);
