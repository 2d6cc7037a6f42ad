//! Measures how well the search finds the right tool: prints recall at 1, 5 and 10 and the mean
//! reciprocal rank. A data set is
//! `{"tools": [{name, description, inputSchema}], "queries": [{query, gold: [name]}]}`.
//!
//! Run it with `cargo run -p domain --release --example search_quality [data set…]`.
#![allow(clippy::print_stdout, reason = "the table is this program's purpose")]

use std::error::Error;
use std::path::{Path, PathBuf};

use search::{Document, Index, Segment};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct DataSet {
    tools: Vec<Tool>,
    queries: Vec<Labelled>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(rename = "inputSchema")]
    input_schema: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Labelled {
    query: String,
    gold: Vec<String>,
}

const RANKS: [usize; 3] = [1, 5, 10];

/// Ranks beyond this one do not count for the reciprocal rank.
const RANK_MAX: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if paths.is_empty() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/retrieval");
        paths = ["dev-bfcl.json", "dev-metatool.json"].map(|name| here.join(name)).into();
    }
    println!("| data set | tools | queries | recall@1 | recall@5 | recall@10 | MRR |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for path in &paths {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let set: DataSet = serde_json::from_str(&text)
            .map_err(|error| format!("{} is no data set: {error}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let [at_1, at_5, at_10, mrr] = measure(&set);
        let (tools, queries) = (set.tools.len(), set.queries.len());
        println!(
            "| {name} | {tools} | {queries} | {at_1:.4} | {at_5:.4} | {at_10:.4} | {mrr:.4} |"
        );
    }
    Ok(())
}

/// Returns the recall at each of `RANKS`, then the mean reciprocal rank of the first correct tool.
fn measure(set: &DataSet) -> [f64; 4] {
    let segment = Segment::build(&set.tools.iter().map(document).collect::<Vec<_>>());
    let index = Index::build(vec![("".into(), segment.into())]);
    let mut sums = [0.0; 4];
    for labelled in &set.queries {
        let hits = index.search(&labelled.query, RANK_MAX, |_, _| true);
        let right: Vec<usize> = (1..)
            .zip(&hits)
            .filter(|(_, hit)| labelled.gold.contains(&set.tools[hit.tool as usize].name))
            .map(|(rank, _)| rank)
            .collect();
        for (sum, at) in sums.iter_mut().zip(RANKS) {
            let found = right.iter().filter(|&&rank| rank <= at).count();
            *sum += found as f64 / labelled.gold.len().max(1) as f64;
        }
        sums[3] += right.first().map_or(0.0, |&rank| 1.0 / rank as f64);
    }
    sums.map(|sum| sum / set.queries.len().max(1) as f64)
}

fn document(tool: &Tool) -> Document<'_> {
    Document {
        name: &tool.name,
        description: &tool.description,
        input_schema: tool.input_schema.as_deref().map(RawValue::get),
    }
}
