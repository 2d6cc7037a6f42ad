//! The guarantees of the search to its callers, and the minimum it must find in the data sets.

use std::sync::Arc;

use embed::SearchModel;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Document, Index, Match, SearchQuery, Segment, ToolText};

fn document<'a>(name: &'a str, description: &'a str) -> Document<'a> {
    Document { name, description, input_schema: None }
}

fn index_of(server: &str, tools: &[Document<'_>]) -> Index {
    build(&[(server, &Arc::new(Segment::build(tools)))])
}

fn build(servers: &[(&str, &Arc<Segment>)]) -> Index {
    Index::build(servers.iter().map(|&(name, segment)| (name.into(), segment.clone())).collect())
}

fn tools(hits: &[Match]) -> Vec<u32> {
    hits.iter().map(|hit| hit.tool).collect()
}

fn everything(_: u32, _: u32) -> bool {
    true
}

fn office() -> Index {
    index_of(
        "office",
        &[
            document("createPullRequest", "Opens a pull request"),
            document("get_weather", "Forecast for a city"),
            document("list_HTTPServers", "Lists running servers"),
            document("calculator", "Adds and multiplies"),
            document("票务查询", "查询余票信息"),
            document("who", ""),
        ],
    )
}

#[test]
fn a_query_finds_the_tool_however_its_name_is_written() {
    let index = office();
    for (query, first) in [
        ("create pull request", 0),
        ("create_pull_request", 0),
        ("creating pull-requests", 0),
        ("getweather", 1),
        ("weather", 1),
        ("http server", 2),
        ("calc", 3),
        ("calculation", 3),
        ("余票", 4),
        ("票", 4),
        ("who", 5),
        ("Who is?", 5),
    ] {
        let hits = index.search(query, 3, everything);
        assert_eq!(hits.first().map(|hit| hit.tool), Some(first), "{query}: {hits:?}");
    }
}

#[test]
fn parameters_and_their_values_are_searched() {
    let schema =
        r#"{"properties":{"currency":{"enum":["EUR","USD"],"description":"of the invoice"}}}"#;
    let tool = Document { input_schema: Some(schema), ..document("pay", "") };
    let index = index_of("bank", &[document("open", ""), tool]);
    for query in ["currency", "eur", "invoices"] {
        assert_eq!(tools(&index.search(query, 5, everything)), [1], "{query}");
    }
}

#[test]
fn the_name_of_a_server_finds_its_tools_and_decides_between_equals() {
    let segment = Arc::new(Segment::build(&[document("list_issues", "Lists issues")]));
    let index = build(&[("gitlab", &segment), ("github", &segment)]);
    let hits = index.search("github issues", 5, everything);
    assert_eq!(hits.iter().map(|hit| hit.segment).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(index.search("gitlab", 5, everything)[0].segment, 0);
}

#[test]
fn a_hidden_tool_takes_no_place() {
    let many: Vec<_> = (0..200).map(|_| document("read_file", "Reads a file")).collect();
    let index = index_of("files", &many);
    assert_eq!(tools(&index.search("read file", 3, everything)), [0, 1, 2]);
    assert_eq!(tools(&index.search("read file", 3, |_, tool| tool >= 197)), [197, 198, 199]);
    assert!(index.search("read file", 3, |_, _| false).is_empty());
}

#[test]
fn a_search_inside_the_keep_callback_is_safe() {
    let index = office();
    let keep = |_, tool| index.search("weather", 1, everything)[0].tool == tool;
    assert_eq!(tools(&index.search("get weather", 3, keep)), [1]);
}

#[test]
fn only_a_good_match_scores_near_one() {
    let index = office();
    let score = |query| index.search(query, 1, everything)[0].score;
    assert!(score("create pull request") > 0.9, "{}", score("create pull request"));
    assert!(score("weather on kepler exoplanet zarmina") < 0.5);
}

#[test]
fn a_query_without_known_words_finds_nothing() {
    let index = office();
    for query in ["", " \n\t", "\0\u{1}\u{7f}\u{fffd}", "?!…", "'", "zzzz"] {
        assert!(index.search(query, 5, everything).is_empty(), "{query:?}");
    }
    assert!(index.search("weather", 0, everything).is_empty());
    assert!(build(&[]).search("weather", 5, everything).is_empty());
    assert!(index_of("empty", &[]).search("empty", 5, everything).is_empty());
}

#[test]
fn huge_texts_and_queries_are_read_up_to_their_bounds() {
    let description = "lorem ipsum 混合 ".repeat(100_000);
    let name = "x".repeat(1_000_000);
    let index = index_of("big", &[document(&name, &description), document("", "")]);
    assert_eq!(tools(&index.search(&description, usize::MAX, everything)), [0]);
    assert_eq!(tools(&index.search(&name, 5, everything)), [0]);
}

#[test]
fn adding_a_server_leaves_the_places_of_others() {
    let [first, none, second] = ["alpha", "", "beta"].map(|name| {
        let tool = document(name, "");
        Arc::new(Segment::build(if name.is_empty() { &[] } else { std::slice::from_ref(&tool) }))
    });
    let index = build(&[("one", &first), ("none", &none), ("two", &second)]);
    let hit = index.search("beta", 1, everything)[0];
    assert_eq!((hit.segment, hit.tool), (2, 0));
}

#[test]
fn a_misspelt_word_is_found_only_if_no_word_is_known() {
    let index = office();
    for query in ["wether", "waether", "weathr", "calculater"] {
        assert_eq!(index.search(query, 1, everything).len(), 1, "{query}");
    }
    assert_eq!(tools(&index.search("wether pull", 3, everything)), [0]);
    assert!(index.search("wheathr", 3, everything).is_empty(), "two letters are wrong");
}

#[test]
fn addresses_and_paths_count_as_their_kind() {
    let index = index_of(
        "web",
        &[
            document("fetch", "Downloads a url"),
            document("open", "Opens a file"),
            document("rank", "Ranks an example"),
        ],
    );
    assert_eq!(index.search("look at https://a.example/b", 1, everything)[0].tool, 0);
    assert_eq!(index.search("look at /srv/notes", 1, everything)[0].tool, 1);
}

#[test]
fn the_name_of_a_server_weighs_less_than_that_of_a_tool() {
    let segment = |name| Arc::new(Segment::build(&[document(name, "Does it")]));
    let index = build(&[("issues", &segment("list")), ("tracker", &segment("issues"))]);
    let hits = index.search("issues", 5, everything);
    assert_eq!(hits.iter().map(|hit| hit.segment).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn matched_words_explain_a_hit() {
    let index = office();
    let words = index.matched_words("pull a weather calc", 0, 1);
    let words: Vec<(&str, &str)> = words.iter().map(|it| (&*it.word, &*it.term)).collect();
    assert_eq!(words, [("weather", "weather")]);
    let words = index.matched_words("pull a weather calc", 0, 3);
    assert_eq!((&*words[0].word, &*words[0].term), ("calc", "calcul"));
}

/// Gives the tools of a segment the vectors that the product gives them.
fn read(segment: &Segment, server: &str, tools: &[Document<'_>]) {
    let vector =
        |tool: &Document<'_>| SearchModel::shipped().tool(&ToolText::new(server, tool).text);
    segment.set_vectors(tools.iter().map(vector).collect());
}

fn meant(index: &Index, text: &str, limit: usize) -> Vec<Match> {
    let vector = SearchModel::shipped().query(text);
    index.search(SearchQuery { text, vector: Some(&vector) }, limit, everything)
}

#[test]
fn a_need_in_other_words_is_found_by_meaning() {
    let documents = [
        document("send_invoice", "Bills a customer"),
        document("store_fact", "Saves a piece of knowledge about a person or thing"),
        document("start_oven", "Heats the oven"),
    ];
    let segment = Arc::new(Segment::build(&documents));
    let unread = Arc::new(Segment::build(&[document("oven_manual", "")]));
    let index = build(&[("home", &segment), ("more", &unread)]);
    assert!(meant(&index, "remember that Anna likes tea", 3).is_empty(), "nobody has a vector");
    read(&segment, "home", &documents);
    let hits = meant(&index, "remember that Anna likes tea", 3);
    assert_eq!(hits[0].tool, 1, "{hits:?}");
    assert!(hits[0].similarity.is_some_and(|similarity| similarity > 0.15));
    let hits = meant(&index, "I want to bake a cake", 3);
    assert_eq!((hits[0].segment, hits[0].tool), (0, 2), "{hits:?}");
    // A tool without a vector is found by its words.
    let hits = meant(&index, "manual", 3);
    assert!(hits.iter().any(|hit| (hit.segment, hit.similarity) == (1, None)), "{hits:?}");
}

proptest! {
    #[test]
    fn any_text_is_indexed_and_any_query_answered_in_order(
        texts in prop::collection::vec((".{0,40}", ".{0,80}"), 0..8),
        query in ".{0,60}",
        limit in 0_usize..6,
    ) {
        let documents: Vec<_> = texts.iter().map(|(n, d)| document(n, d)).collect();
        let index = index_of("server", &documents);
        let hits = index.search(&query, limit, everything);
        prop_assert!(hits.len() <= limit);
        prop_assert!(hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
        prop_assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
        prop_assert_eq!(&hits, &index.search(&query, limit, everything));
        for (name, _) in texts.iter().filter(|(name, _)| name.chars().any(|c| c.is_ascii_digit())) {
            prop_assert!(!index.search(name, 1, everything).is_empty());
        }
    }
}

#[derive(Deserialize)]
struct DataSet {
    tools: Vec<Tool>,
    queries: Vec<Labelled>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    description: String,
    #[serde(rename = "inputSchema")]
    input_schema: Box<RawValue>,
}

#[derive(Deserialize)]
struct Labelled {
    query: String,
    gold: Vec<String>,
}

/// Returns the share of queries whose correct tool is first, and the share whose correct tool is
/// among the first five.
fn recall(text: &str) -> (f64, f64) {
    let set: DataSet = serde_json::from_str(text).expect("the data set is in the repository");
    let documents: Vec<_> = set
        .tools
        .iter()
        .map(|tool| Document {
            name: &tool.name,
            description: &tool.description,
            input_schema: Some(tool.input_schema.get()),
        })
        .collect();
    let index = index_of("", &documents);
    let (mut first, mut first_five) = (0, 0);
    for Labelled { query, gold } in &set.queries {
        let hits = index.search(query, 5, everything);
        let place = hits.iter().position(|hit| gold.contains(&set.tools[hit.tool as usize].name));
        first += usize::from(place == Some(0));
        first_five += usize::from(place.is_some());
    }
    let queries = set.queries.len() as f64;
    (first as f64 / queries, first_five as f64 / queries)
}

#[test]
fn recall_stays_above_its_floor() {
    let (at_1, at_5) = recall(include_str!("../testdata/retrieval/dev-bfcl.json"));
    assert!(at_1 >= 0.775 && at_5 >= 0.945, "dev-bfcl: {at_1:.4} {at_5:.4}");
    let (at_1, at_5) = recall(include_str!("../testdata/retrieval/dev-metatool.json"));
    assert!(at_1 >= 0.54 && at_5 >= 0.725, "dev-metatool: {at_1:.4} {at_5:.4}");
}

/// A sample of what the long test measures on whole sets, through the gate.
#[test]
fn meaning_finds_what_words_do_not() {
    let text = include_str!("../testdata/retrieval/dev-metatool.json");
    let set: DataSet = serde_json::from_str(text).expect("the data set is in the repository");
    let documents: Vec<_> = set
        .tools
        .iter()
        .map(|tool| Document {
            name: &tool.name,
            description: &tool.description,
            input_schema: Some(tool.input_schema.get()),
        })
        .collect();
    let segment = Arc::new(Segment::build(&documents));
    let index = build(&[("", &segment)]);
    let sample: Vec<&Labelled> = set.queries.iter().step_by(8).collect();
    let in_five = |search: &dyn Fn(&str) -> Vec<Match>| {
        let is_found = |labelled: &&&Labelled| {
            let names = search(&labelled.query);
            names.iter().any(|hit| labelled.gold.contains(&set.tools[hit.tool as usize].name))
        };
        sample.iter().filter(is_found).count() as f64 / sample.len() as f64
    };
    let words = in_five(&|query| index.search(query, 5, everything));
    read(&segment, "", &documents);
    let both = in_five(&|query| meant(&index, query, 5));
    assert!(both >= 0.80 && both > words + 0.05, "words {words:.4}, with meaning {both:.4}");
}
