//! A query as weighted stems. Any text is a valid query; one without words finds nothing.

use super::mention;
use super::splitter::{Form, Splitter};
use super::word::Room;
use super::words;

/// The length read of a query: more than anyone types, less than a pasted file.
const QUERY_BYTES_MAX: usize = 4096;

/// Distinct words that are looked up; each requires scanning its postings.
const QUERY_WORDS_MAX: usize = 48;

/// The weight of a word that frames the request, and of the joined form of a compound whose parts
/// are looked up as well.
const REQUEST_WEIGHT: f32 = 0.6;
const JOINED_WEIGHT: f32 = 0.5;

#[derive(Debug, Default)]
pub(super) struct Query {
    pub(super) words: Vec<Word>,
}

#[derive(Debug)]
pub(super) struct Word {
    pub(super) stem: String,
    pub(super) weight: f32,
    pub(super) form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StopWords {
    Skip,
    Keep,
}

impl Query {
    pub(super) fn parse(text: &str) -> Query {
        let text = &text[..text.floor_char_boundary(QUERY_BYTES_MAX)];
        let query = Query::read(text, StopWords::Skip);
        // "who is" may be the whole query, and a tool's name.
        if query.words.is_empty() { Query::read(text, StopWords::Keep) } else { query }
    }

    fn read(text: &str, stop_words: StopWords) -> Query {
        let mut query = Query::default();
        for kind in mention::kinds(text) {
            query.add(kind, 1.0, Form::Part);
        }
        Splitter::default().split(text, |word, form| {
            let mut room = Room::default();
            let word = word.text(&mut room);
            if !words::is_stop(word) {
                query.add(&words::stem(word), weight(word, form), form);
            } else if stop_words == StopWords::Keep {
                query.add(word, 1.0, form);
            }
        });
        query
    }

    fn add(&mut self, stem: &str, weight: f32, form: Form) {
        let known = self.words.iter().any(|word| word.stem == stem);
        if !known && self.words.len() < QUERY_WORDS_MAX {
            self.words.push(Word { stem: stem.to_owned(), weight, form });
        }
    }
}

fn weight(word: &str, form: Form) -> f32 {
    match form {
        Form::Joined => JOINED_WEIGHT,
        Form::Part if words::is_request(word) => REQUEST_WEIGHT,
        Form::Part => 1.0,
    }
}
