//! A small linear model for texts that steer a model in their own words: a weight for each word and
//! pair of words, learned from labelled definitions by its tests.

use std::collections::HashSet;

use super::plain::Plain;

/// The scale of the weights, the bias, and a weight for each bucket.
static MODEL: &[u8] = include_bytes!("model.bin");

/// The number of buckets for features.
const BUCKETS: usize = 1 << 15;

/// The fewest features to judge a definition by.
const FEATURES_MIN: usize = 30;

/// Reports the texts of a definition as suspicious, with the sentence that says most, or `None`.
pub(super) fn suspicious<'a>(texts: &[&'a str]) -> Option<&'a str> {
    let features = all_features(texts);
    if features.len() < FEATURES_MIN || score(&features) <= 0.0 {
        return None;
    }
    let texts = texts.iter().filter(|text| text.contains(' ') || !text.is_ascii());
    let sentences = texts.flat_map(|text| sentences(text));
    let weight = |sentence: &&str| sum(&all_features(&[sentence]));
    sentences.max_by(|one, other| weight(one).total_cmp(&weight(other)))
}

fn score(features: &HashSet<usize>) -> f32 {
    bias() + sum(features) / (features.len().max(1) as f32).sqrt()
}

fn bias() -> f32 {
    f32::from_le_bytes([MODEL[4], MODEL[5], MODEL[6], MODEL[7]])
}

fn sum(features: &HashSet<usize>) -> f32 {
    let scale = f32::from_le_bytes([MODEL[0], MODEL[1], MODEL[2], MODEL[3]]);
    let weight = |feature: &usize| f32::from(MODEL[8 + feature].cast_signed());
    features.iter().map(weight).sum::<f32>() * scale
}

fn all_features(texts: &[&str]) -> HashSet<usize> {
    texts.iter().flat_map(|text| features(text)).collect()
}

/// Returns the buckets of a text's words and pairs of words.
fn features(text: &str) -> Vec<usize> {
    let words = words(&Plain::of(text).text);
    let pairs = words.windows(2).map(|pair| bucket(&format!("{} {}", pair[0], pair[1])));
    words.iter().map(|word| bucket(word)).chain(pairs).collect()
}

/// Splits a normalized text: runs of letters, runs of digits, single characters of Chinese and
/// Japanese; addresses and numbers count as one word each.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for part in text.split_whitespace() {
        if part.contains("http://") || part.contains("https://") {
            words.push("<url>".to_owned());
        } else if part.contains('@') {
            words.push("<mail>".to_owned());
        } else {
            split(part, &mut words);
        }
    }
    words
}

fn split(part: &str, words: &mut Vec<String>) {
    let mut word = String::new();
    let mut flush = |word: &mut String| {
        if word.starts_with(|c: char| c.is_numeric()) {
            words.push("<num>".to_owned());
        } else if !word.is_empty() {
            words.push(word.clone());
        }
        word.clear();
    };
    for character in part.chars() {
        let is_ideograph = character >= '\u{2e80}';
        let continues = character.is_alphanumeric()
            && !is_ideograph
            && word.chars().next().is_none_or(|first| first.is_numeric() == character.is_numeric());
        if !continues {
            flush(&mut word);
        }
        if character.is_alphanumeric() {
            word.push(character);
        }
        if is_ideograph {
            flush(&mut word);
        }
    }
    flush(&mut word);
}

/// Hashes a feature (FNV-1a).
fn bucket(feature: &str) -> usize {
    let hash = feature
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash as usize % BUCKETS
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['\n', '。']).flat_map(|line| line.split_inclusive(". "))
}

#[cfg(test)]
mod tests;
