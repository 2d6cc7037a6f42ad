//! Measures the warnings about a whole list: 10,000 tools with descriptions of 2 KB each, made of the
//! harmless ones in the test data.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use suspect::{KnownNames, warnings};

const TOOLS: usize = 10_000;
const DESCRIPTION_BYTES: usize = 2_000;

/// Returns descriptions of harmless tools, joined and cut to size; each starts elsewhere.
fn definitions() -> Vec<String> {
    let all: Vec<Value> =
        serde_json::from_str(include_str!("../testdata/poisoning.json")).expect("a list");
    let harmless = all.iter().filter(|item| item["label"] != "poisoned");
    let texts: Vec<&str> =
        harmless.filter_map(|item| item["definition"]["description"].as_str()).collect();
    let made = (0..TOOLS).map(|n| {
        let mut text = String::new();
        for piece in texts.iter().cycle().skip(n % texts.len()) {
            if text.len() >= DESCRIPTION_BYTES {
                break;
            }
            text.push_str(piece);
            text.push(' ');
        }
        text.truncate(text.floor_char_boundary(DESCRIPTION_BYTES));
        json!({"name": format!("tool_{n}"), "description": text}).to_string()
    });
    made.collect()
}

fn whole_list(criterion: &mut Criterion) {
    let definitions = definitions();
    let names: Vec<String> = (0..TOOLS).map(|n| format!("tool_{n}")).collect();
    let known = KnownNames::new(names.iter().map(|name| ("s", name.as_str())));
    let mut group = criterion.benchmark_group("warnings");
    group.sample_size(10);
    group.bench_function("10000_tools_of_2_kb", |b| {
        b.iter(|| {
            let found = definitions.iter().map(|text| warnings(black_box(text), "s", &known).len());
            found.sum::<usize>()
        });
    });
    group.finish();
}

criterion_group!(benches, whole_list);
criterion_main!(benches);
