//! The rules: sequences of roles within one sentence, in one table from which the documentation is
//! generated.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use aho_corasick::AhoCorasick;
use serde::Deserialize;

use super::kind::WarningKind;
use super::vocabulary::{Language, Role, vocabulary};

/// The distance in characters within which all words of a rule must stand in a language other than
/// English, where they come in any order.
const OTHER_SPAN: usize = 24;

/// The distance in bytes within which a word forbids what follows it.
const FORBIDS: usize = 40;

const ENGLISH: &[&str] = text::words!("rules/english.txt");

/// Applies if words of all these roles follow each other in one sentence, each within `within`
/// bytes of the one before.
pub(super) struct Rule {
    pub(super) kind: WarningKind,
    /// The effect of the matching text, as worded in a warning.
    pub(super) what: Arc<str>,
    /// A typical text, for the documentation.
    pub(super) example: String,
    roles: Vec<Role>,
    within: usize,
}

/// The rules, in the order of the file. A rule with several roles within no distance holds only in
/// languages other than English.
pub(super) static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let groups: Vec<RuleGroup> =
        serde_json::from_str(include_str!("rules/rules.json")).expect("the tests read the data");
    groups.into_iter().flat_map(RuleGroup::rules).collect()
});

/// Rules that find the same.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleGroup {
    kind: String,
    what: Arc<str>,
    /// Of each rule: the example, the roles, and the distance.
    rules: Vec<(String, Vec<Role>, usize)>,
}

impl RuleGroup {
    fn rules(self) -> impl Iterator<Item = Rule> {
        let kind = WarningKind::parse(&self.kind).expect("the tests read the data");
        self.rules.into_iter().map(move |(example, roles, within)| Rule {
            kind,
            what: self.what.clone(),
            example,
            roles,
            within,
        })
    }
}

/// The words of all roles.
struct Patterns {
    all: AhoCorasick,
    words: Vec<Pattern>,
}

#[derive(Clone, Copy)]
struct Pattern {
    role: Role,
    language: Language,
    /// The word may go on.
    is_stem: bool,
}

/// A word in a text.
#[derive(Clone, Copy)]
struct Occurrence {
    role: Role,
    language: Language,
    start: usize,
    end: usize,
    sentence: usize,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let mut words = Vec::new();
    let mut texts = Vec::new();
    for (language, group) in vocabulary() {
        for word in group.words {
            let stem = word.strip_suffix('*');
            words.push(Pattern { role: group.role, language, is_stem: stem.is_some() });
            texts.push(stem.unwrap_or(&word).to_owned());
        }
    }
    Patterns { all: AhoCorasick::new(texts).expect("some short words"), words }
});

/// Returns the rules that apply to a normalized text, each with the first span.
pub(super) fn rules_in(text: &str) -> Vec<(usize, Range<usize>)> {
    let occurrences = occurrences(text);
    let applies = |(at, rule): (usize, &Rule)| {
        let starts = occurrences.iter().enumerate().filter(|(_, word)| word.role == rule.roles[0]);
        let mut spans = starts.filter_map(|(first, word)| {
            in_order(&occurrences, first, rule)
                .or_else(|| in_any_order(text, &occurrences, *word, rule))
        });
        Some((at, spans.next()?))
    };
    RULES.iter().enumerate().filter_map(applies).collect()
}

fn occurrences(text: &str) -> Vec<Occurrence> {
    let mut found: Vec<Occurrence> = Vec::new();
    for hit in PATTERNS.all.find_overlapping_iter(text) {
        let Pattern { role, language, is_stem } = PATTERNS.words[hit.pattern().as_usize()];
        if stands_alone(text, hit.range(), is_stem) {
            let (start, end) = (hit.start(), hit.end());
            found.push(Occurrence { role, language, start, end, sentence: 0 });
        }
    }
    found.sort_by_key(|word| (word.start, word.end));
    let mut stops = stops(text).peekable();
    let mut sentence = 0;
    for word in &mut found {
        while stops.next_if(|stop| *stop < word.start).is_some() {
            sentence += 1;
        }
        word.sentence = sentence;
    }
    found
}

/// Returns the ends of sentences.
fn stops(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().filter_map(move |(at, character)| {
        let ends = match character {
            '\n' | '。' => true,
            '.' | '!' | '?' => text[at + 1..].starts_with([' ', '\n']),
            _ => false,
        };
        ends.then_some(at)
    })
}

/// Matches English: the roles follow each other, the first at `at`. What a text forbids is no
/// order.
fn in_order(words: &[Occurrence], at: usize, rule: &Rule) -> Option<Range<usize>> {
    let (first, rest) = words[at..].split_first()?;
    if first.language == Language::Other || rule.within == 0 && rule.roles.len() > 1 {
        return None;
    }
    let mut before = words[..at].iter().rev().take_while(|word| word.start + FORBIDS > first.start);
    let forbids = |word: &Occurrence| {
        word.role == Role::Not && word.sentence == first.sentence && word.end <= first.start
    };
    if before.any(forbids) {
        return None;
    }
    let mut last = *first;
    for role in &rule.roles[1..] {
        let reach = rest.iter().take_while(|word| word.start <= last.end + rule.within);
        let mut fitting = reach.filter(|word| {
            word.role == *role
                && word.language != Language::Other
                && word.sentence == first.sentence
                // A path may begin with the last character of a verb's phrase: "read ~".
                && word.start + 1 >= last.end
        });
        last = *fitting.next()?;
    }
    Some(first.start..last.end)
}

/// Matches other languages: words of all roles stand close to each other.
fn in_any_order(
    text: &str,
    words: &[Occurrence],
    first: Occurrence,
    rule: &Rule,
) -> Option<Range<usize>> {
    if first.language != Language::Other {
        return None;
    }
    let before = text[..first.start].char_indices().rev().take(OTHER_SPAN);
    let after = text[first.end..].char_indices().take(OTHER_SPAN);
    let earliest = before.last().map_or(first.start, |(at, _)| at);
    let latest = first.end + after.last().map_or(0, |(at, _)| at);
    let from = words.partition_point(|word| word.start < earliest);
    let near = || {
        let near = words[from..].iter().take_while(|word| word.start <= latest);
        near.filter(|word| word.sentence == first.sentence && word.language != Language::English)
    };
    // "Never send passwords" is no order to send them.
    let is_forbidden = || near().any(|word| word.role == Role::Not);
    if rule.roles.contains(&Role::Credential) && is_forbidden() {
        return None;
    }
    let mut span = first.start..first.end;
    for role in &rule.roles[1..] {
        let apart = |word: &&Occurrence| word.end <= first.start || word.start >= first.end;
        let word = near().filter(apart).find(|word| word.role == *role)?;
        span = span.start.min(word.start)..span.end.max(word.end);
    }
    let is_foreign = !text[span.clone()].is_ascii() || english_words(&text[span.clone()]) == 0;
    is_foreign.then_some(span)
}

fn english_words(text: &str) -> usize {
    text.split(' ').filter(|word| ENGLISH.contains(word)).count()
}

/// Reports whether no word extends past an end of the span. Brackets may begin anywhere, and
/// Chinese and Japanese are written without spaces.
fn stands_alone(text: &str, span: Range<usize>, is_stem: bool) -> bool {
    let is_word = |c: char| (c.is_alphanumeric() || c == '_') && c < '\u{2e80}';
    let begins_word = text[span.clone()].starts_with(|c| is_word(c) || c == '.');
    let ends_word = text[span.clone()].ends_with(is_word);
    let goes_on_before = begins_word && text[..span.start].ends_with(is_word);
    let goes_on_after = ends_word && !is_stem && text[span.end..].starts_with(is_word);
    !goes_on_before && !goes_on_after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hold_for_whole_words_of_one_sentence() {
        for (text, found) in [
            ("do not tell the user", true),
            ("please do not, whatever happens, tell the user about it", true),
            ("do not retry. tell the user", false),
            ("undo not tell the user", false),
            ("do not use it with other units", false),
            ("read process.env", false),
            ("read the file .env", true),
            ("text<important>x", true),
            ("ümlaut do not ü tell the user ü", true),
            ("no information about the client", false),
            ("dem benutzer nichts davon sagen", true),
        ] {
            assert_eq!(!rules_in(text).is_empty(), found, "{text}");
        }
    }

    #[test]
    fn the_examples_of_the_documentation_match() {
        for rule in RULES.iter() {
            let plain = super::super::plain::Plain::of(&rule.example).text;
            let found = rules_in(&plain);
            let found = found.iter().any(|(at, _)| RULES[*at].what == rule.what);
            assert!(found, "{}", rule.example);
        }
    }
}
