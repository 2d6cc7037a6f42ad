//! Measures search with ten thousand tools: building segments and the index, and answering queries.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use search::{Document, Index, Segment};
use serde::Deserialize;
use serde_json::value::RawValue;

const TOOLS: usize = 10_000;

#[derive(Deserialize)]
struct DataSet {
    tools: Vec<Tool>,
    queries: Vec<Labelled>,
}

#[derive(Clone, Deserialize)]
struct Tool {
    name: String,
    description: String,
    #[serde(rename = "inputSchema")]
    input_schema: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Labelled {
    query: String,
}

struct Server {
    name: String,
    tools: Vec<Tool>,
}

/// Repeats the 527 tools of the scale set; each copy of a server or tool has its own name.
fn catalog() -> Vec<Server> {
    let set: DataSet =
        serde_json::from_str(include_str!("../testdata/retrieval/scale-livemcptool.json"))
            .expect("the scale set is in the repository");
    let mut servers: Vec<Server> = Vec::new();
    for (place, tool) in set.tools.iter().cycle().take(TOOLS).enumerate() {
        let copy = place / set.tools.len();
        let (server, name) = tool.name.split_once(':').unwrap_or(("server", &tool.name));
        let server = format!("{server}-{copy}");
        let tool = Tool { name: format!("{name}_{copy}"), ..tool.clone() };
        match servers.last_mut() {
            Some(last) if last.name == server => last.tools.push(tool),
            _ => servers.push(Server { name: server, tools: vec![tool] }),
        }
    }
    servers
}

/// Regroups the same tools into few servers with 100 tools each.
fn at_few_servers(servers: &[Server]) -> Vec<Server> {
    let tools: Vec<Tool> = servers.iter().flat_map(|server| server.tools.clone()).collect();
    let server = |(number, tools): (usize, &[Tool])| Server {
        name: format!("server-{number}"),
        tools: tools.to_vec(),
    };
    tools.chunks(100).enumerate().map(server).collect()
}

fn segments(servers: &[Server]) -> Vec<Arc<Segment>> {
    let segment = |server: &Server| {
        let documents: Vec<_> = server.tools.iter().map(document).collect();
        Arc::new(Segment::build(&documents))
    };
    servers.iter().map(segment).collect()
}

/// Builds as the gate does: each server's list is processed by its own task, and the tasks share
/// the cores; the index is built once all are done.
fn build_on_all_cores(servers: &[Server]) -> Index {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = servers.len().div_ceil(cores);
    let built: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> =
            servers.chunks(share).map(|part| scope.spawn(move || segments(part))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("it only splits")).collect()
    });
    index(servers, &built)
}

fn document(tool: &Tool) -> Document<'_> {
    Document {
        name: &tool.name,
        description: &tool.description,
        input_schema: tool.input_schema.as_deref().map(RawValue::get),
    }
}

fn index(servers: &[Server], segments: &[Arc<Segment>]) -> Index {
    let names = servers.iter().map(|server| server.name.as_str().into());
    Index::build(names.zip(segments.iter().cloned()).collect())
}

/// Measures the first build after a start, when no word is known yet, which happens only once per
/// process. Run it several times; `few` on the command line puts the tools in few servers.
#[expect(clippy::print_stdout, reason = "the figure is what it is for")]
fn first_build(servers: &[Server]) {
    let since = Instant::now();
    drop(black_box(build_on_all_cores(servers)));
    let (count, taken) = (servers.len(), since.elapsed().as_secs_f64() * 1e3);
    println!("first_build_10k_on_all_cores  {taken:.1} ms, {count} servers");
}

fn search(criterion: &mut Criterion) {
    let servers = catalog();
    let few = at_few_servers(&servers);
    let is_few = std::env::args().any(|argument| argument == "few");
    first_build(if is_few { &few } else { &servers });
    let built = segments(&servers);
    let index_of_all = index(&servers, &built);
    criterion.bench_function("segments_10k", |bencher| {
        bencher.iter_with_large_drop(|| segments(&servers))
    });
    criterion.bench_function("index_10k", |bencher| {
        bencher.iter_with_large_drop(|| index(&servers, &built))
    });
    criterion.bench_function("build_10k_on_all_cores", |bencher| {
        bencher.iter_with_large_drop(|| build_on_all_cores(&servers))
    });
    criterion.bench_function("build_10k_at_few_servers", |bencher| {
        bencher.iter_with_large_drop(|| index(&few, &segments(&few)))
    });
    for (name, text) in [
        ("queries_bfcl_10k", include_str!("../testdata/retrieval/dev-bfcl.json")),
        ("queries_metatool_10k", include_str!("../testdata/retrieval/dev-metatool.json")),
    ] {
        let set: DataSet = serde_json::from_str(text).expect("the data set is in the repository");
        let mut queries = set.queries.iter().cycle();
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                let query = queries.next().map_or("", |labelled| &labelled.query);
                black_box(index_of_all.search(query, 15, |_, _| true))
            });
        });
    }
}

criterion_group!(benches, search);
criterion_main!(benches);
