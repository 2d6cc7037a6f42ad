//! Measures the search for secrets: in a short message, in a large result, in a whole value.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use redact::Redactor;

const PROSE: &str = "The upstream answered in 312 ms with 42 rows; the second page starts at row 43. \
    See https://example.com/docs/paging for how a token counts against the basic limit. ";

fn short(criterion: &mut Criterion) {
    let redactor = Redactor::builtin();
    let clean: String = "The upstream answered in 312 ms with 42 rows of the table. ".repeat(4);
    let words: String = PROSE.repeat(2);
    let secret = format!("{}password=hunter2", &clean[..184]);
    let mut group = criterion.benchmark_group("redact 200 bytes");
    group.bench_function("clean", |b| b.iter(|| redactor.text(black_box(&clean[..200])).len()));
    group
        .bench_function("near words", |b| b.iter(|| redactor.text(black_box(&words[..200])).len()));
    group.bench_function("secret", |b| b.iter(|| redactor.text(black_box(&secret)).len()));
    group.finish();
}

fn large(criterion: &mut Criterion) {
    let redactor = Redactor::builtin();
    let prose = PROSE.repeat((64 << 10) / PROSE.len() + 1);
    let rows = r#"{"id":1234,"title":"a row","url":"https://h.example/x/1234","tokens_used":5},"#;
    let rows = rows.repeat((64 << 10) / rows.len() + 1);
    let mut value: serde_json::Value =
        serde_json::from_str(&format!("[{}1]", &rows)).expect("rows are JSON");
    let code = include_str!("../src/lib.rs");
    let code = code.repeat((64 << 10) / code.len() + 1);
    let image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA";
    let image = image.repeat((64 << 10) / image.len() + 1);
    let mut group = criterion.benchmark_group("redact 64 KiB");
    group.bench_function("code", |b| b.iter(|| redactor.text(black_box(&code[..64 << 10])).len()));
    group.bench_function("base64", |b| b.iter(|| redactor.text(black_box(&image)).len()));
    group.bench_function("prose", |b| b.iter(|| redactor.text(black_box(&prose)).len()));
    group.bench_function("json text", |b| b.iter(|| redactor.text(black_box(&rows)).len()));
    group.bench_function("json value", |b| b.iter(|| redactor.value(black_box(&mut value))));
    group.finish();
}

fn building(criterion: &mut Criterion) {
    criterion.bench_function("build a redactor", |b| b.iter(Redactor::builtin));
}

criterion_group!(benches, short, large, building);
criterion_main!(benches);
