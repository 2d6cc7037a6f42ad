//! Text to words: where words begin and end, which of them carry no meaning, and their stems.
//! Names and prose pass through the same splitter, so a query finds `createPullRequest`,
//! `create_pull_request` and "create a pull request" alike.

use rust_stemmers::{Algorithm, Stemmer};

/// Longer words are cut here: identifiers end well before, what is longer is encoded data.
const WORD_BYTES_MAX: usize = 64;

/// How a word stood in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A word, or one part of an identifier.
    Part,
    /// The parts of one identifier or compound, run together: `get_weather` as `getweather`.
    Joined,
}

/// Splits texts; its buffers are used again from one text to the next.
#[derive(Default)]
pub(super) struct Splitter {
    plain: String,
    joined: String,
    parts: usize,
}

impl Splitter {
    /// Calls `emit` with each word of `text` in lower case.
    ///
    /// `_`, `-`, `.`, a change of case and a change between letters and digits divide the parts of
    /// a compound; any other character that is no letter or digit ends it. Runs of Chinese,
    /// Japanese and Korean script become overlapping pairs of characters.
    pub(super) fn split(&mut self, text: &str, mut emit: impl FnMut(&str, Form)) {
        let mut before = Class::Break;
        let (mut start, mut at) = (0, 0);
        // Whether the part at hand is small ASCII letters only, and so can be given as it stands.
        let mut small = true;
        while at < text.len() {
            let (class, size) = Class::at(text, at);
            if class == Class::Lower && before == Class::Lower && size == 1 {
                let letters = text.as_bytes()[at..].iter();
                at += letters.take_while(|byte| byte.is_ascii_lowercase()).count();
                continue;
            }
            let end = at + size;
            if !before.goes_on(class) || (class == Class::Upper && begins_word(text, end)) {
                self.end_part(&text[start..at], small, &mut emit);
                (start, small) = (at, true);
            }
            match class {
                Class::Upper | Class::Lower | Class::Digit | Class::Apostrophe => {
                    small &= class == Class::Lower && size == 1;
                }
                Class::Connector => (start, small) = (end, true),
                Class::Break | Class::Cjk => {
                    self.end_compound(&mut emit);
                    (start, small) = (end, true);
                }
            }
            if class == Class::Cjk {
                match Class::at(text, end) {
                    (Class::Cjk, next) => emit(&text[at..end + next], Form::Part),
                    _ if before != Class::Cjk => emit(&text[at..end], Form::Part),
                    _ => {}
                }
            }
            if class != Class::Apostrophe {
                before = class;
            }
            at = end;
        }
        self.end_part(&text[start..], small, &mut emit);
        self.end_compound(&mut emit);
    }

    fn end_part(&mut self, part: &str, small: bool, emit: &mut impl FnMut(&str, Form)) {
        if part.is_empty() {
            return;
        }
        let mut word = &part[..part.floor_char_boundary(WORD_BYTES_MAX)];
        if !small {
            self.plain.clear();
            lower(word, &mut self.plain);
            word = &self.plain;
        }
        if !word.is_empty() {
            emit(word, Form::Part);
            self.joined.push_str(word);
            self.parts += 1;
        }
    }

    #[inline(always)]
    fn end_compound(&mut self, emit: &mut impl FnMut(&str, Form)) {
        let has_letter = || self.joined.chars().any(char::is_alphabetic);
        if self.parts > 1 && self.joined.len() <= WORD_BYTES_MAX && has_letter() {
            emit(&self.joined, Form::Joined);
        }
        self.joined.clear();
        self.parts = 0;
    }
}

/// The classes of the ASCII characters, which most text is made of.
const ASCII: [Class; 128] = {
    let mut classes = [Class::Break; 128];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = Class::of_ascii(byte as u8);
        byte += 1;
    }
    classes
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Upper,
    Lower,
    Digit,
    Cjk,
    Connector,
    Apostrophe,
    Break,
}

impl Class {
    /// The class of the character at a byte, and its length; the end of a text is a break.
    #[inline(always)]
    fn at(text: &str, at: usize) -> (Class, usize) {
        match text.as_bytes().get(at) {
            Some(&byte) if byte.is_ascii() => (ASCII[byte as usize], 1),
            Some(_) => Class::at_wide(&text[at..]),
            None => (Class::Break, 0),
        }
    }

    #[inline(never)]
    fn at_wide(text: &str) -> (Class, usize) {
        let first = text.chars().next();
        first.map_or((Class::Break, 0), |character| (Class::of(character), character.len_utf8()))
    }

    const fn of_ascii(byte: u8) -> Class {
        match byte {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b'_' | b'-' | b'.' => Class::Connector,
            b'\'' => Class::Apostrophe,
            _ => Class::Break,
        }
    }

    fn of(character: char) -> Class {
        match character {
            _ if is_apostrophe(character) => Class::Apostrophe,
            // Kana, unified ideographs (with extensions), Hangul syllables.
            '\u{3005}'
            | '\u{3041}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}' => Class::Cjk,
            _ if character.is_numeric() => Class::Digit,
            _ if character.is_uppercase() => Class::Upper,
            _ if character.is_alphabetic() => Class::Lower,
            _ => Class::Break,
        }
    }

    fn is_word(self) -> bool {
        matches!(self, Class::Upper | Class::Lower | Class::Digit)
    }

    /// Whether a part goes on from a character of this class to the next: not in `getUser` before
    /// the `U`, nor in `base64` before the `6`.
    fn goes_on(self, next: Class) -> bool {
        match (self, next) {
            (Class::Lower | Class::Upper, Class::Lower) => true,
            (Class::Upper, Class::Upper) | (Class::Digit, Class::Digit) => true,
            (_, Class::Apostrophe) => true,
            _ => !self.is_word(),
        }
    }
}

/// Writes a part in lower case without its apostrophes.
fn lower(part: &str, out: &mut String) {
    if part.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        out.push_str(part);
        out.make_ascii_lowercase();
    } else {
        let letters = part.chars().filter(|&character| !is_apostrophe(character));
        out.extend(letters.flat_map(char::to_lowercase));
    }
}

/// Whether a capital that ends at `end` is the first letter of a word, as the `S` in `HTTPServer`.
fn begins_word(text: &str, end: usize) -> bool {
    Class::at(text, end).0 == Class::Lower
}

fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '\u{2019}')
}

/// The stem under which a word is indexed and looked up. Only English has one here.
pub(super) fn stem(word: &str) -> std::borrow::Cow<'_, str> {
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        Stemmer::create(Algorithm::English).stem(word)
    } else {
        word.into()
    }
}

/// Words that only hold a sentence together; `word` is in lower case without apostrophes.
pub(super) fn is_stop(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Words with which people frame a request ("help me find…"). Tools are named by them too, so
/// they count less instead of not at all.
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

    fn split(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Splitter::default().split(text, |word, form| {
            let mark = if form == Form::Joined { "=" } else { "" };
            found.push(format!("{mark}{word}"));
        });
        found
    }

    #[test]
    fn words_end_where_people_and_programmers_end_them() {
        for (text, words) in [
            ("get_user-name.v2", "get user name v 2 =getusernamev2"),
            ("getHTTPServer", "get http server =gethttpserver"),
            ("github:issues/list", "github issues list"),
            ("Don't panic. It’s base64!", "dont panic its base 64 =base64"),
            ("2024-01-31", "2024 01 31"),
            ("查询票 票", "查询 询票 票"),
            ("pdf文件2", "pdf 文件 2"),
            ("Äpfel ÉCOLE", "äpfel école"),
            ("'' __ .-", ""),
            ("a\0b\u{202e}c", "a b c"),
        ] {
            assert_eq!(split(text).join(" "), words, "{text}");
        }
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(split(&"x".repeat(1000)), ["x".repeat(WORD_BYTES_MAX)]);
    }

    #[test]
    fn the_word_lists_are_sorted_and_apart() {
        assert!(STOP_WORDS.is_sorted() && REQUEST_WORDS.is_sorted());
        assert!(!REQUEST_WORDS.iter().any(|word| is_stop(word)));
    }
}
