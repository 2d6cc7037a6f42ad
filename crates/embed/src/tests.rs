//! The model of the program against the reference implementation, and its own scores on every code
//! path.

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::*;

/// Texts, their tokens, and the cosines of queries and tools by the reference implementation, which
/// rounds nothing but the weights (`training/pipeline/reference.py`).
#[derive(Deserialize)]
struct Reference {
    queries: Vec<String>,
    tools: Vec<String>,
    cosines: Vec<Vec<f32>>,
    tokens: Vec<Tokenized>,
}

#[derive(Deserialize)]
struct Tokenized {
    text: String,
    ids: Vec<u16>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../testdata/reference.json")).expect("the file is JSON")
}

fn cosines(model: &SearchModel, reference: &Reference) -> Vec<Vec<f32>> {
    let tools: Vec<Vector> = reference.tools.iter().map(|text| model.tool(text)).collect();
    let of_query = |text: &String| {
        let mut cosines = Vec::new();
        model.query(text).append_cosines(&tools, &mut cosines);
        cosines
    };
    reference.queries.iter().map(of_query).collect()
}

#[test]
fn the_version_is_that_of_the_file() {
    let hash = Sha256::digest(FILE);
    let hex: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(VERSION, hex);
}

#[test]
fn texts_have_the_tokens_of_the_reference() {
    let model = SearchModel::shipped();
    for Tokenized { text, ids } in reference().tokens {
        assert_eq!(model.vocabulary.tokens(&text, QUERY_TOKENS_MAX), ids, "{text:?}");
    }
    assert_eq!(model.vocabulary.tokens(&"a ".repeat(1000), 64).len(), 64);
}

#[test]
fn cosines_are_those_of_the_reference() {
    let reference = reference();
    let found = cosines(SearchModel::shipped(), &reference);
    let pairs = found.iter().flatten().zip(reference.cosines.iter().flatten());
    let worst = pairs.map(|(found, expected)| (found - expected).abs()).fold(0.0, f32::max);
    assert!(worst < 4e-3, "{worst}");
}

#[test]
fn scores_are_the_same_everywhere_to_the_third_decimal() {
    let golden: Vec<Vec<f32>> =
        serde_json::from_str(include_str!("../testdata/golden.json")).expect("the file is JSON");
    let found = cosines(SearchModel::shipped(), &reference());
    let pairs = || found.iter().flatten().zip(golden.iter().flatten());
    let fits = pairs().count() == 600 && pairs().all(|(a, b)| (a - b).abs() < 5e-4);
    let rounded = |row: &Vec<f32>| row.iter().map(|v| format!("{v:.4}")).collect::<Vec<_>>();
    assert!(
        fits,
        "{}",
        found.iter().map(|row| rounded(row).join(",")).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn every_code_path_gives_the_same_bits() {
    let portable = SearchModel::read(FILE, Level::baseline()).expect("the file is a model");
    let reference = reference();
    for text in reference.tools.iter().take(8).chain(&reference.queries) {
        assert_eq!(portable.tool(text), SearchModel::shipped().tool(text), "{text}");
    }
}

#[test]
fn a_vector_survives_its_stored_form() {
    let vector = SearchModel::shipped().query("read a file");
    let bytes = vector.to_bytes();
    assert_eq!(Vector::from_bytes(&bytes), Some(vector));
    assert_eq!(Vector::from_bytes(&bytes[1..]), None);
    let mut damaged = bytes;
    damaged[256..].copy_from_slice(&f32::NAN.to_le_bytes());
    assert_eq!(Vector::from_bytes(&damaged), None);
}

#[test]
fn any_text_has_a_vector() {
    let huge = "x".repeat(1_000_000);
    let odd = ["", " ", "\0", "🦀🦀", "\u{202e}abc", "a\u{301}\u{301}", &huge];
    for text in odd {
        let (mut cosines, vector) = (Vec::new(), SearchModel::shipped().query(text));
        vector.append_cosines(std::slice::from_ref(&vector), &mut cosines);
        assert!((cosines[0] - 1.0).abs() < 0.02, "{text:.20}: {cosines:?}");
    }
}
