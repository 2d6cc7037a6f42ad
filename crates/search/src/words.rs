//! Properties of single words: which carry no meaning, which only frame a request, and the stem of
//! each. Words are in lowercase, as the splitter emits them.

use rust_stemmers::{Algorithm, Stemmer};

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

#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and", "any",
    "anything", "are", "arent", "as", "at", "be", "because", "been", "before", "being", "below",
    "between", "both", "but", "by", "can", "cannot", "cant", "could", "couldnt", "did", "didnt",
    "do", "does", "doesnt", "doing", "dont", "down", "during", "each", "every", "few", "for",
    "from", "further", "had", "hadnt", "has", "hasnt", "have", "havent", "having", "he", "hed",
    "her", "here", "heres", "hers", "herself", "hes", "him", "himself", "his", "how", "hows", "i",
    "if", "im", "in", "into", "is", "isnt", "it", "its", "itself", "ive", "just", "let", "lets",
    "like", "may", "me", "might", "more", "most", "must", "mustnt", "my", "myself", "no", "nor",
    "not", "of", "off", "on", "once", "one", "only", "or", "other", "ought", "our", "ours",
    "ourselves", "out", "over", "own", "per", "please", "same", "shall", "she", "shes", "should",
    "shouldnt", "so", "some", "something", "such", "than", "that", "thats", "the", "their",
    "theirs", "them", "themselves", "then", "there", "theres", "these", "they", "theyd", "theyll",
    "theyre", "theyve", "this", "those", "through", "to", "too", "under", "until", "up", "upon",
    "us", "very", "via", "was", "wasnt", "we", "were", "werent", "weve", "what", "whats", "when",
    "whens", "where", "wheres", "which", "while", "who", "whom", "whos", "whose", "why", "whys",
    "will", "with", "within", "without", "wont", "would", "wouldnt", "you", "youd", "youll",
    "your", "youre", "yours", "yourself", "yourselves", "youve",
];

#[rustfmt::skip]
const REQUEST_WORDS: &[&str] = &[
    "able", "advice", "advise", "advising", "appreciate", "ask", "asking", "assist", "assistance",
    "assisting", "check", "checking", "find", "finding", "finds", "get", "getting", "give",
    "gives", "giving", "going", "good", "great", "guidance", "guide", "guiding", "hello", "help",
    "helpful", "helping", "helps", "hey", "hi", "hope", "idea", "ideas", "inform", "information",
    "interested", "know", "knowing", "look", "looking", "love", "make", "makes", "making", "need",
    "needed", "needing", "needs", "option", "options", "possible", "provide", "provided",
    "provides", "providing", "purpose", "recommend", "recommendation", "recommendations",
    "recommended", "recommending", "related", "show", "showing", "shows", "specific",
    "specifically", "suggest", "suggested", "suggesting", "suggestion", "suggestions", "support",
    "sure", "task", "tasks", "tell", "telling", "thank", "thanks", "thing", "things", "tool",
    "tools", "tried", "try", "trying", "understand", "understanding", "use", "used", "useful",
    "uses", "using", "want", "wanted", "wants", "way", "ways", "wondering", "work", "working",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_lists_are_sorted_and_apart() {
        assert!(STOP_WORDS.is_sorted() && REQUEST_WORDS.is_sorted());
        assert!(!REQUEST_WORDS.iter().any(|word| is_stop(word)));
    }
}
