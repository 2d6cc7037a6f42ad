//! The tools of LiveMCPTool, called with generated arguments: the share that yields a resource, and
//! a sample that was read.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::super::{CallPlace, TargetPlan, ToolShape};

const SEED: u64 = 26;
const SAMPLE: usize = 100;
const SAMPLE_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/targets/generated.json");

#[derive(Deserialize)]
struct Catalog {
    tools: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    #[serde(rename = "inputSchema")]
    schema: Value,
}

/// A generated call with the resources that were found, and the verdict of a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Read {
    tool: String,
    args: Map<String, Value>,
    found: Vec<String>,
    verdict: String,
}

/// A sequence of numbers that is the same on every machine (splitmix64).
struct Numbers(u64);

impl Numbers {
    /// Returns the numbers of a tool.
    fn of(name: &str) -> Numbers {
        let mix = |seed: u64, byte: u8| (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        Numbers(name.bytes().fold(SEED, mix))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const WORDS: [&str; 8] = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor"];

/// Returns arguments that fit a schema: all that are required, and half of the others.
fn arguments(schema: &Value, numbers: &mut Numbers) -> Map<String, Value> {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut arguments = Map::new();
    for (key, schema) in &properties {
        if required.contains(&key.as_str()) || numbers.below(2) == 0 {
            arguments.insert(key.clone(), value(key, schema, numbers, 0));
        }
    }
    arguments
}

fn value(key: &str, schema: &Value, numbers: &mut Numbers, depth: usize) -> Value {
    if let Some(choices) = schema["enum"].as_array().filter(|choices| !choices.is_empty()) {
        return choices[numbers.below(choices.len())].clone();
    }
    if let Some(choices) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let chosen = choices.iter().find(|choice| choice["type"] != "null");
        return chosen.map_or(Value::Null, |chosen| value(key, chosen, numbers, depth));
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1 + numbers.below(900)),
        Some("boolean") => json!(numbers.below(2) == 0),
        Some("array") if depth < 3 => {
            let count = 1 + numbers.below(2);
            (0..count).map(|_| value(key, &schema["items"], numbers, depth + 1)).collect()
        }
        Some("object") if depth < 3 => Value::Object(arguments(schema, numbers)),
        Some("array" | "object") => Value::Null,
        _ => Value::String(text(&key.to_ascii_lowercase(), numbers)),
    }
}

/// Returns a text as people would write it under such a key.
fn text(key: &str, numbers: &mut Numbers) -> String {
    let word = numbers.one(&WORDS);
    let number = 1000 + numbers.below(9000);
    let has = |parts: &[&str]| parts.iter().any(|part| key.contains(part));
    if has(&["url", "uri"]) {
        format!("https://example.com/{word}/{number}")
    } else if has(&["dir", "folder"]) {
        format!("/srv/dev/{word}")
    } else if has(&["path", "file"]) {
        format!("/srv/dev/{word}/{number}.txt")
    } else if has(&["date", "time"]) && !has(&["timezone", "timeout", "timeframe"]) {
        format!("2026-05-{:02}", 1 + number % 28)
    } else if key.ends_with("id") || key.ends_with("ids") || key.ends_with("slug") {
        format!("{word}-{number}x")
    } else if has(&["query", "text", "content", "prompt", "description", "thought", "message"]) {
        format!("tell me about {word} and {}", numbers.one(&WORDS))
    } else {
        word.to_owned()
    }
}

/// Calls each tool once and returns those for which a resource is found.
fn calls() -> (usize, Vec<Read>) {
    let catalog = include_str!("../../../../../search/testdata/retrieval/scale-livemcptool.json");
    let catalog: Catalog = serde_json::from_str(catalog).unwrap();
    let mut found = Vec::new();
    for Listed { name, schema } in &catalog.tools {
        let (server, tool) = name.split_once(':').unwrap();
        let args = arguments(schema, &mut Numbers::of(name));
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        let shape = ToolShape { server, info: None, tool, properties: &properties };
        let place =
            CallPlace { root: None, home: Some("/u/ada"), is_local: true, query_key: &[7; 32] };
        let targets = TargetPlan::compile(&shape, None).find(&args, &place).found;
        if !targets.is_empty() {
            let shown = |target: &super::super::super::Target| {
                format!("{} {}", target.system(), target.resource())
            };
            let found_here = targets.iter().map(|(target, _)| shown(target)).collect();
            let verdict = "unread".to_owned();
            found.push(Read { tool: name.clone(), args, found: found_here, verdict });
        }
    }
    (catalog.tools.len(), found)
}

#[test]
fn a_third_of_public_tools_yield_a_resource_and_nine_in_ten_are_right() {
    let (total, all) = calls();
    let share = all.len() as f64 / total as f64;
    println!("{share:.3} of {total} tools yield a resource");
    assert!(share >= 0.35, "{share:.3} of {total}");
    let read: Vec<Read> =
        serde_json::from_str(&std::fs::read_to_string(SAMPLE_FILE).unwrap_or("[]".into())).unwrap();
    let mut sample = sample(&all);
    for call in &mut sample {
        let had = read.iter().find(|had| had.tool == call.tool && had.found == call.found);
        call.verdict = had.map_or("unread".to_owned(), |had| had.verdict.clone());
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        let rows: Vec<String> =
            sample.iter().map(|call| serde_json::to_string(call).unwrap()).collect();
        std::fs::write(SAMPLE_FILE, format!("[\n{}\n]\n", rows.join(",\n"))).unwrap();
        return;
    }
    for (call, had) in sample.iter().zip(&read) {
        assert_eq!(call, had, "read it, then run with UPDATE_GOLDEN=1 and give the verdict");
    }
    assert_eq!(sample.len(), read.len());
    let with = |verdict: &str| read.iter().filter(|call| call.verdict == verdict).count();
    assert_eq!(with("right") + with("wrong"), SAMPLE, "some were not read");
    assert!(with("right") >= SAMPLE * 9 / 10, "{} are right", with("right"));
}

/// Draws calls by a number that depends on the tool's name alone, so that a change of the rules
/// changes few of them.
fn sample(all: &[Read]) -> Vec<Read> {
    let mut drawn = all.to_vec();
    drawn.sort_by_key(|call| Numbers::of(&call.tool).next());
    drawn.truncate(SAMPLE);
    drawn.sort_by(|one, other| one.tool.cmp(&other.tool));
    drawn
}
