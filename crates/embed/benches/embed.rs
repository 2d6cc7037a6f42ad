//! The cost of vectors: of queries by their length, of tools, and of comparing one with many.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use embed::{SearchModel, Vector};

fn vectors(criterion: &mut Criterion) {
    let model = SearchModel::shipped();
    // Each word is one token; two more mark the ends.
    let words = "find all large files in my home folder and then send a short list of them to the \
                 whole team by mail before the end of the day so that we can talk about it next \
                 week at the table with the new people who came here";
    let text =
        |tokens: usize| words.split(' ').cycle().take(tokens - 2).collect::<Vec<_>>().join(" ");
    for tokens in [8, 16, 24, 32] {
        let query = text(tokens);
        let name = format!("query of {tokens} tokens");
        criterion.bench_function(&name, |bencher| bencher.iter(|| model.query(black_box(&query))));
    }
    for tokens in [64, 128] {
        let tool = text(tokens);
        let name = format!("tool of {tokens} tokens");
        criterion.bench_function(&name, |bencher| bencher.iter(|| model.tool(black_box(&tool))));
    }
    let query = model.query("find a file");
    let many: Vec<Vector> = vec![model.tool("files search. Finds files"); 10_000];
    let mut cosines = Vec::with_capacity(many.len());
    criterion.bench_function("cosines with 10,000 tools", |bencher| {
        bencher.iter(|| {
            cosines.clear();
            query.append_cosines(black_box(&many), &mut cosines);
            cosines.len()
        });
    });
}

criterion_group!(benches, vectors);
criterion_main!(benches);
