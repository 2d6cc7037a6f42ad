//! Splits text into the tokens of the model: BERT's rules, then WordPiece. The vocabulary is ASCII,
//! so a word in any other script is one unknown token.

use icu_normalizer::DecomposingNormalizerBorrowed;
use unicode_general_category::{GeneralCategory as Category, get_general_category};

use crate::file::ModelFault;

/// Longer words are unknown.
const WORD_CHARS_MAX: usize = 100;

/// Characters read for each token that a text may have: tokens average four, and words longer than
/// this many per token are no words.
const CHARS_PER_TOKEN_MAX: usize = 64;

/// The mark of a token that continues a word.
const CONTINUED: &str = "##";

/// A slot of the table without a token.
const FREE: u16 = u16::MAX;

/// The tokens, found by their text.
pub(crate) struct Vocabulary {
    tokens: Vec<&'static str>,
    /// Token numbers, at the first free slot from their hash on.
    slots: Vec<u16>,
    longest: usize,
    start: u16,
    end: u16,
    unknown: u16,
}

impl Vocabulary {
    pub(crate) fn new(text: &'static str) -> Result<Vocabulary, ModelFault> {
        let tokens: Vec<&'static str> = text.split('\n').collect();
        let fault = || ModelFault::Tensor("vocab".to_owned());
        if tokens.len() >= usize::from(FREE) {
            return Err(fault());
        }
        let mut slots = vec![FREE; (2 * tokens.len()).next_power_of_two()];
        let mask = slots.len() - 1;
        for (number, token) in tokens.iter().enumerate() {
            let mut slot = hash(token.as_bytes()) & mask;
            while slots[slot] != FREE {
                slot = (slot + 1) & mask;
            }
            slots[slot] = number as u16;
        }
        let longest = tokens.iter().map(|token| token.len()).max().unwrap_or(0);
        let mut vocabulary = Vocabulary { tokens, slots, longest, start: 0, end: 0, unknown: 0 };
        let special = |token| vocabulary.find(token).ok_or_else(fault);
        let (start, end, unknown) = (special(b"[CLS]")?, special(b"[SEP]")?, special(b"[UNK]")?);
        (vocabulary.start, vocabulary.end, vocabulary.unknown) = (start, end, unknown);
        Ok(vocabulary)
    }

    /// Returns at most `most` tokens of a text, the marks at its ends included.
    pub(crate) fn tokens(&self, text: &str, most: usize) -> Vec<u16> {
        let text = &text[..text.floor_char_boundary(most * CHARS_PER_TOKEN_MAX)];
        let mut tokens = vec![self.start];
        let plain = plain(text);
        let mut rest = &*plain;
        while tokens.len() < most
            && let Some((word, after)) = next_word(rest)
        {
            self.add_word(word, &mut tokens);
            rest = after;
        }
        tokens.truncate(most - 1);
        tokens.push(self.end);
        tokens
    }

    /// Splits a word into its longest known beginning, the longest continuation, and so on.
    fn add_word(&self, word: &str, tokens: &mut Vec<u16>) {
        let before = tokens.len();
        let mut piece = String::with_capacity(self.longest);
        let mut at = 0;
        while at < word.len() && word.is_ascii() && word.len() <= WORD_CHARS_MAX {
            let mark = if at == 0 { "" } else { CONTINUED };
            let most = word.len().min(at + self.longest.saturating_sub(mark.len()));
            piece.clear();
            piece.push_str(mark);
            piece.push_str(&word[at..most]);
            let found = (1..=most - at).rev().find_map(|length| {
                Some((self.find(&piece.as_bytes()[..mark.len() + length])?, length))
            });
            let Some((token, length)) = found else { break };
            tokens.push(token);
            at += length;
        }
        if at < word.len() {
            tokens.truncate(before);
            tokens.push(self.unknown);
        }
    }

    fn find(&self, token: &[u8]) -> Option<u16> {
        let mask = self.slots.len() - 1;
        let mut slot = hash(token) & mask;
        while self.slots[slot] != FREE {
            if self.tokens[usize::from(self.slots[slot])].as_bytes() == token {
                return Some(self.slots[slot]);
            }
            slot = (slot + 1) & mask;
        }
        None
    }
}

/// FNV-1a, with its high bits mixed into the low ones.
fn hash(token: &[u8]) -> usize {
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let hash = token.iter().fold(0x811c_9dc5, mix);
    (hash ^ hash >> 15) as usize
}

/// Returns the text in lowercase, without accents and control characters.
fn plain(text: &str) -> String {
    if text.is_ascii() {
        let kept =
            text.chars().filter(|c| !c.is_ascii_control() || matches!(c, '\t' | '\n' | '\r'));
        return kept.map(|c| c.to_ascii_lowercase()).collect();
    }
    let kept: String = text.chars().filter(|&c| is_kept(c)).collect();
    let apart = DecomposingNormalizerBorrowed::new_nfd().normalize(&kept);
    let letters = apart.chars().filter(|&c| get_general_category(c) != Category::NonspacingMark);
    letters.flat_map(char::to_lowercase).collect()
}

fn is_kept(character: char) -> bool {
    let is_control = || {
        matches!(
            get_general_category(character),
            Category::Control
                | Category::Format
                | Category::Surrogate
                | Category::PrivateUse
                | Category::Unassigned
        )
    };
    matches!(character, '\t' | '\n' | '\r') || character != '\u{fffd}' && !is_control()
}

/// Splits off the next word; a mark of punctuation or a Chinese character is a separate word.
fn next_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let first = text.chars().next()?;
    if is_alone(first) {
        return Some(text.split_at(first.len_utf8()));
    }
    let end = text.find(|c: char| c.is_whitespace() || is_alone(c)).unwrap_or(text.len());
    Some(text.split_at(end))
}

fn is_alone(character: char) -> bool {
    match character {
        '\0'..='\u{7f}' => character.is_ascii_punctuation(),
        '\u{4e00}'..='\u{9fff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{2fa1f}' => true,
        _ => matches!(
            get_general_category(character),
            Category::ConnectorPunctuation
                | Category::DashPunctuation
                | Category::OpenPunctuation
                | Category::ClosePunctuation
                | Category::InitialPunctuation
                | Category::FinalPunctuation
                | Category::OtherPunctuation
        ),
    }
}
