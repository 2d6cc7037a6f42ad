//! Fifteen prompts on the seven official servers: the place of the right tool in the answer to a
//! search with the prompt's own words. `docs/search.md` shows the table.

use serde_json::{Value, json};
use testkit::client::Client;
use testkit::foreign;

use super::servers;
use crate::meaning::is_learned;

/// Each prompt with the tools that are right for it. They were written before the first
/// measurement; an engine is not improved by rewording them.
const PROMPTS: [(&str, &[&str]); 15] = [
    ("what time is it in Tokyo", &["time:get_current_time"]),
    ("if it is 9 am in Berlin, what time is it in New York", &["time:convert_time"]),
    ("show me the last commits", &["git:git_log"]),
    ("which files were changed but not committed", &["git:git_status"]),
    ("switch to another branch", &["git:git_checkout"]),
    ("remember that Anna works at Acme", &["memory:create_entities", "memory:create_relations"]),
    ("what do we know about Anna", &["memory:search_nodes", "memory:open_nodes"]),
    ("forget everything about Acme", &["memory:delete_entities"]),
    ("download a web page as markdown", &["fetch:fetch"]),
    ("think through a problem step by step", &["sequential-thinking:sequentialthinking"]),
    ("find all pdf files in my documents folder", &["filesystem:search_files"]),
    ("replace a word in a text file", &["filesystem:edit_file"]),
    ("rename a file", &["filesystem:move_file"]),
    ("how big is this file and when was it last modified", &["filesystem:get_file_info"]),
    ("add two numbers", &["everything:get-sum"]),
];

/// A need in other words, which no word of a tool helps to find.
const TEA: (&str, &[&str]) = (
    "remember that Anna likes tea",
    &["memory:create_entities", "memory:create_relations", "memory:add_observations"],
);

/// The floor: fewer in first place, or within the first five, is a worse search.
const FIRST_MIN: usize = 10;
const FIVE_MIN: usize = 13;

/// Returns the place of the first right tool, counted from 1, and the names found.
async fn place(client: &Client, prompt: &str, right: &[&str]) -> (Option<usize>, Vec<String>) {
    let found = client.document("retrieve_tools", json!({"query": prompt})).await;
    let tools = found["tools"].as_array().unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    let names: Vec<String> = tools.iter().map(name).collect();
    let place = names.iter().position(|name| right.contains(&name.as_str()));
    (place.map(|index| index + 1), names)
}

#[tokio::test]
async fn prompts_find_the_right_tool_of_official_servers() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let learned = json!({"search": {"learned": true}});
    let gate = servers::gate_with(servers::official, learned).await;
    if !is_learned(&gate, 51).await {
        return testkit::run::skipped("this processor computes no vectors");
    }
    let client = gate.http().await;
    let mut places = Vec::new();
    println!("| prompt | right tool | place | first result, if another |\n|---|---|---:|---|");
    for (prompt, right) in PROMPTS {
        let (place, names) = place(&client, prompt, right).await;
        let shown = place.map_or("–".to_owned(), |place| place.to_string());
        let other = names.first().filter(|_| place != Some(1));
        let other = other.map_or(String::new(), |name| format!("`{name}`"));
        println!("| {prompt} | `{}` | {shown} | {other} |", right.join("` or `"));
        places.extend(place);
    }
    let within = |last: usize| places.iter().filter(|place| **place <= last).count();
    let (first, five) = (within(1), within(5));
    println!("first: {first}, within five: {five}, found: {}", places.len());
    let (tea, names) = place(&client, TEA.0, TEA.1).await;
    println!("{}: {tea:?} of {names:?}", TEA.0);
    assert!(tea.is_some_and(|place| place <= 5), "{names:?}");
    assert!(first >= FIRST_MIN && five >= FIVE_MIN, "first: {first}, within five: {five}");
    assert_eq!(gate.stop().await, Some(0));
}
