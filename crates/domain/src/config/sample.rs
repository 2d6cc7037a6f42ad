//! Values of plain keys for tests, made from the declarations, so that a new key needs no row in them.

use serde_json::{Value, json};

use super::keys::{Key, Table};
use super::reference;

/// Returns a valid value other than the default; `None` for a kind that only its own tests know. For
/// an object, the value has every plain key.
pub(super) fn value(table: &Table, key: &Key) -> Option<Value> {
    let kind = (key.kind)();
    match kind.table {
        Some(inner) if kind.words.starts_with("object") => Some(object(inner)),
        Some(_) => None,
        None => {
            let default = reference::default_value(table, key, &reference::sample()).clone();
            values(&kind.words).into_iter().find(|value| *value != default)
        }
    }
}

fn object(table: &Table) -> Value {
    table.keys().filter_map(|key| Some((key.name.to_owned(), value(table, key)?))).collect()
}

/// Returns some values of a kind that is described in these words.
fn values(words: &str) -> Vec<Value> {
    let bound = |word: &str| word.parse::<u32>().ok().map(Value::from);
    match words.split_once(' ').map_or(words, |(first, _)| first) {
        "true" => vec![json!(true), json!(false)],
        "string" if words == "string" => vec![json!("https://other.example")],
        "list" if words == "list of strings" => vec![json!(["other"])],
        "duration," => vec![json!("7s")],
        "number," => words.rsplit(' ').filter_map(bound).collect(),
        first if first.starts_with("`\"") => {
            words.split('"').skip(1).step_by(2).map(Value::from).collect()
        }
        _ => Vec::new(),
    }
}
