//! The words that rules are made of, by their role in a sentence. Words are lowercase and without
//! accents; a star at the end matches any ending.

use serde::Deserialize;

const ENGLISH: &str = include_str!("vocabulary/english.json");
const OTHER: &str = include_str!("vocabulary/other.json");
const ANY: &str = include_str!("vocabulary/any.json");

/// The role of a word in a sentence that steers a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    /// A verb that sets something aside.
    Dismiss,
    /// A verb that puts something in the place of another.
    Replace,
    /// A word that points to earlier or given orders.
    Prior,
    /// A word that includes everything of a kind.
    Every,
    /// A noun for the orders of a model.
    Orders,
    /// A noun for orders that others have as well.
    Rules,
    /// All that was said before.
    AllBefore,
    Not,
    Without,
    Tell,
    This,
    User,
    UserMustNot,
    Know,
    Keep,
    Secret,
    FromUser,
    Secretly,
    Silently,
    Consult,
    Consent,
    /// A mark or an opening that pretends to come from somebody else.
    Mark,
    NewSelf,
    Lie,
    Threat,
    Claim,
    Repeat,
    SystemPrompt,
    Send,
    Carry,
    Everything,
    Loot,
    Outside,
    Address,
    Destination,
    Read,
    Harvest,
    Theirs,
    Credential,
    SecretFile,
    EnvFile,
    Contents,
    Use,
    Before,
    Ahead,
    OtherTools,
    EveryTurn,
    InsteadOf,
    AlwaysThis,
    Regardless,
    Unqualified,
    Worse,
    Recipient,
    CopyTo,
    Run,
    Payload,
    Write,
    StartFile,
    Evade,
    /// A mention of other servers, which no tool has business with.
    OtherServer,
    When,
    /// Effects that a tool claims to have without being called.
    Effect,
    /// Credentials that the model or its user holds for something else.
    OwnToken,
    Ask,
    Mention,
    Disobey,
    Other,
    Tools,
    Fetch,
    ModelMust,
    Act,
    Safeguard,
}

/// The language of a word: rules hold for English in the order of its words, and for other
/// languages in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    English,
    /// German, French, Spanish, Russian, Chinese or Japanese.
    Other,
    /// Paths, addresses and marks.
    Any,
}

/// The words of one role.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    pub(super) role: Role,
    pub(super) words: Vec<String>,
}

/// Reads the words of all roles and languages.
pub(super) fn vocabulary() -> impl Iterator<Item = (Language, Words)> {
    let files = [(Language::English, ENGLISH), (Language::Any, ANY), (Language::Other, OTHER)];
    files.into_iter().flat_map(|(language, file)| {
        let words: Vec<Words> = serde_json::from_str(file).expect("the tests read the data");
        words.into_iter().map(move |words| (language, words))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::plain::Plain;
    use super::*;

    #[test]
    fn the_words_are_in_the_form_that_texts_are_made_to() {
        for (_, words) in vocabulary() {
            for word in &words.words {
                let word = word.strip_suffix('*').unwrap_or(word);
                assert_eq!(Plain::of(word).text, word, "{:?}", words.role);
            }
        }
    }

    #[test]
    fn a_word_has_a_role_once() {
        let mut seen = HashSet::new();
        for (language, words) in vocabulary() {
            for word in words.words {
                let role = (words.role, language == Language::Other);
                assert!(seen.insert((role, word.clone())), "{role:?} {word}");
            }
        }
    }
}
