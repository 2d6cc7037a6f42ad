//! Properties of single words: which carry no meaning, which only frame a request, and the stem of
//! each. Words are in lowercase, as the splitter emits them.

use rust_stemmers::{Algorithm, Stemmer};

const STOP_WORDS: &[&str] = text::words!("words/stop.txt");
const REQUEST_WORDS: &[&str] = text::words!("words/request.txt");

/// Returns the stem under which a word is indexed and looked up. Only English words are stemmed.
pub(super) fn stem(word: &str) -> std::borrow::Cow<'_, str> {
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        Stemmer::create(Algorithm::English).stem(word)
    } else {
        word.into()
    }
}

/// Reports whether a word only connects a sentence; such words are listed without apostrophes.
pub(super) fn is_stop(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Reports whether people use a word to frame a request ("help me find…"). Tools are named with
/// such words too, so they count less instead of not at all.
pub(super) fn is_request(word: &str) -> bool {
    REQUEST_WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_lists_are_apart() {
        assert!(!REQUEST_WORDS.iter().any(|word| is_stop(word)));
    }
}
