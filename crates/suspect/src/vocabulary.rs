//! The words that rules are made of, by their role in a sentence. Words are lowercase and without
//! accents; a star at the end matches any ending.

mod english;
mod other;

/// The role of a word in a sentence that steers a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

pub(super) struct Words {
    pub(super) role: Role,
    pub(super) language: Language,
    /// The words, separated by `;`.
    pub(super) words: &'static str,
}

const fn en(role: Role, words: &'static str) -> Words {
    Words { role, language: Language::English, words }
}

const fn other(role: Role, words: &'static str) -> Words {
    Words { role, language: Language::Other, words }
}

const fn any(role: Role, words: &'static str) -> Words {
    Words { role, language: Language::Any, words }
}

/// Returns the words of all roles and languages.
pub(super) fn vocabulary() -> impl Iterator<Item = &'static Words> {
    english::WORDS.iter().chain(other::WORDS)
}

#[cfg(test)]
mod tests {
    use super::super::plain::Plain;
    use super::*;

    #[test]
    fn the_words_are_in_the_form_that_texts_are_made_to() {
        for words in vocabulary() {
            for word in words.words.split(';') {
                let word = word.strip_suffix('*').unwrap_or(word);
                assert_eq!(Plain::of(word).text, word, "{:?}", words.role);
            }
        }
    }
}
