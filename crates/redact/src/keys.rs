//! Keys that name secrets. A key is split into words (`githubToken`, `github-token`,
//! `GITHUB_TOKEN`), and its ending decides: `github_token` holds a token, `token_type` does not.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::Value;

use super::clues::Clues;
use super::list::{Words, columns, rows};
use super::ordinary;
use super::randomness::{looks_chosen, looks_like_login, looks_random};

static GLUED: Words = LazyLock::new(|| rows(include_str!("keys/glued.txt")).collect());
static TRAILING: Words = LazyLock::new(|| rows(include_str!("keys/trailing.txt")).collect());
static HARMLESS_TOKENS: Words =
    LazyLock::new(|| rows(include_str!("keys/harmless-tokens.txt")).collect());

const CLUES: &str = include_str!("keys/clues.txt");
const HINTS: &str = include_str!("keys/hints.txt");

/// Services by name, each with its clue.
static SERVICES: LazyLock<Vec<[&str; 2]>> =
    LazyLock::new(|| rows(include_str!("keys/services.txt")).map(columns).collect());

/// Words that end in `pass` and name no password.
const PASS_WORDS: &[&str] = &["bypass", "compass", "overpass", "surpass", "trespass", "underpass"];

/// Endings of keys that name a service and hold no token.
const SERVICE_FACTS: &[&str] =
    &["commit", "digest", "hash", "host", "name", "sha", "uri", "url", "version"];

/// The shortest token of such a service.
const SERVICE_VALUE_BYTES_MIN: usize = 16;

/// The shortest value of an unspecified `key` that counts as secret.
const KEY_VALUE_BYTES_MIN: usize = 20;

/// The claim that a key makes about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// The value is secret, unless it only describes one.
    Secret,
    /// The value is secret if it has digits.
    Code,
    /// The value is secret if it looks like a password or a token.
    Chosen,
    /// The value is secret if it is `user:password` or looks random.
    Login,
    /// The value is secret if it looks random.
    Random,
    /// The value is secret if it looks random and is not short.
    Service,
    /// The value is secret if it is long and looks random, and not like a hash.
    Key,
}

const KEY_BYTES_MAX: usize = 128;

pub(super) struct Keys {
    configured: Vec<String>,
    hints: Clues,
    configured_clues: Vec<String>,
}

impl Keys {
    pub(super) fn new(configured: &[String]) -> Keys {
        let configured: Vec<String> = configured
            .iter()
            .map(|key| snake(key).into_owned())
            .filter(|key| !key.is_empty())
            .collect();
        let configured_clues: Vec<String> = configured.iter().flat_map(|key| ends(key)).collect();
        let hints = rows(HINTS)
            .chain(SERVICES.iter().map(|[name, _]| *name))
            .chain(configured_clues.iter().map(String::as_str));
        let hints = Clues::new(hints);
        Keys { configured, hints, configured_clues }
    }

    pub(super) fn clues(&self) -> impl Iterator<Item = &str> {
        rows(CLUES)
            .chain(SERVICES.iter().map(|[_, clue]| *clue))
            .chain(self.configured_clues.iter().map(String::as_str))
    }

    /// Returns the claim of the key about its value; `None` if it makes none.
    pub(super) fn kind(&self, key: &str) -> Option<KeyKind> {
        if self.dismissed(key) { None } else { self.kind_of_hint(key) }
    }

    /// Returns the same for a key that is known to have a hint in it.
    pub(super) fn kind_of_hint(&self, key: &str) -> Option<KeyKind> {
        // Meaningful keys are short; a long one is data.
        if key.len() > KEY_BYTES_MAX {
            return None;
        }
        let key = snake(key);
        let glued = |text: &str| text.replace('_', "");
        let configured = |it: &String| ends_in(&key, it) || glued(&key) == glued(it);
        if self.configured.iter().any(configured) {
            return Some(KeyKind::Secret);
        }
        builtin(&key)
    }

    /// Only ASCII is compared case-insensitively, so other keys are always split.
    fn dismissed(&self, key: &str) -> bool {
        key.is_ascii() && !self.hints.any(key)
    }
}

impl KeyKind {
    /// Reports whether this value of such a key is secret.
    pub(super) fn hides(self, value: &str) -> bool {
        match self {
            KeyKind::Secret => !ordinary::describes(value),
            KeyKind::Code => {
                value.len() <= 16 && value.bytes().filter(u8::is_ascii_digit).count() >= 3
            }
            KeyKind::Chosen => looks_chosen(value) || looks_random(value),
            KeyKind::Login => looks_random(value) || looks_like_login(value),
            KeyKind::Random => looks_random(value),
            KeyKind::Service => value.len() >= SERVICE_VALUE_BYTES_MIN && looks_random(value),
            KeyKind::Key => {
                value.len() >= KEY_VALUE_BYTES_MIN
                    && value.bytes().any(|byte| byte.is_ascii_uppercase())
                    && value.bytes().any(|byte| byte.is_ascii_lowercase())
                    && looks_random(value)
            }
        }
    }

    /// Reports whether this value is secret, or may hold secrets. `"pass": 12` counts tests.
    pub(super) fn hides_value(self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.hides(text),
            Value::Number(_) => matches!(self, KeyKind::Secret | KeyKind::Code),
            Value::Array(_) | Value::Object(_) => self == KeyKind::Secret,
            Value::Null | Value::Bool(_) => false,
        }
    }
}

/// Returns the claim of a key by the built-in endings.
pub(super) fn builtin_kind(key: &str) -> Option<KeyKind> {
    if key.len() <= KEY_BYTES_MAX { builtin(&snake(key)) } else { None }
}

fn builtin(key: &str) -> Option<KeyKind> {
    let mut key = key;
    loop {
        if let Some(kind) = ending(key) {
            return Some(kind);
        }
        let (head, last) = key.rsplit_once('_')?;
        let number = last.trim_start_matches('v').bytes().all(|byte| byte.is_ascii_digit());
        if !(number || TRAILING.contains(&last)) {
            return None;
        }
        key = head;
    }
}

/// The first letters and lengths of some words. Most other words are dismissed by them.
struct Outlines([u32; 256]);

impl Outlines {
    fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Outlines {
        let mut lengths = [0; 256];
        for word in words {
            if let Some(first) = word.bytes().next() {
                lengths[usize::from(first)] |= 1 << (word.len() % 32);
            }
        }
        Outlines(lengths)
    }

    fn may_have(&self, word: &str) -> bool {
        let first = word.bytes().next();
        first.is_some_and(|first| self.0[usize::from(first)] >> (word.len() % 32) & 1 == 1)
    }
}

static LAST_WORDS: LazyLock<Outlines> =
    LazyLock::new(|| Outlines::of(ENDINGS.iter().map(|(last, _, _)| *last)));

static SERVICE_NAMES: LazyLock<Outlines> =
    LazyLock::new(|| Outlines::of(SERVICES.iter().map(|[name, _]| *name)));

/// The claims by their names in the file of endings.
const KINDS: [(&str, Option<KeyKind>); 7] = [
    ("secret", Some(KeyKind::Secret)),
    ("open", None),
    ("code", Some(KeyKind::Code)),
    ("chosen", Some(KeyKind::Chosen)),
    ("login", Some(KeyKind::Login)),
    ("random", Some(KeyKind::Random)),
    ("key", Some(KeyKind::Key)),
];

/// The endings, sorted by their last word; of those with the same one, the first that fits counts.
static ENDINGS: LazyLock<Vec<(&str, &str, Option<KeyKind>)>> = LazyLock::new(|| {
    let read = |row| {
        let [ending, kind]: [&str; 2] = columns(row);
        let kind = KINDS.iter().find(|(name, _)| *name == kind).expect("the tests read the file");
        (ending.rsplit('_').next().unwrap_or(ending), ending, kind.1)
    };
    let mut endings: Vec<_> = rows(include_str!("keys/endings.txt")).map(read).collect();
    endings.sort_by_key(|(last, _, _)| *last);
    endings
});

fn ending(key: &str) -> Option<KeyKind> {
    if key.starts_with("is_") || key.starts_with("has_") {
        return None;
    }
    let before_token = key.strip_suffix("_token").and_then(|head| head.rsplit('_').next());
    if before_token.is_some_and(|before| HARMLESS_TOKENS.contains(&before)) {
        return None;
    }
    let end = key.as_bytes().last();
    if GLUED.iter().any(|glued| glued.as_bytes().last() == end && key.ends_with(glued)) {
        return Some(KeyKind::Secret);
    }
    let last = key.rsplit('_').next().unwrap_or(key);
    if LAST_WORDS.may_have(last) {
        let first = ENDINGS.partition_point(|(word, _, _)| *word < last);
        let mut endings = ENDINGS[first..].iter().take_while(|(word, _, _)| *word == last);
        if let Some((_, _, kind)) = endings.find(|(_, ending, _)| ends_in(key, ending)) {
            return *kind;
        }
    }
    if key.ends_with("pass") && !PASS_WORDS.contains(&last) {
        return Some(KeyKind::Chosen);
    }
    let is_service = |word: &str| {
        SERVICE_NAMES.may_have(word)
            && SERVICES.binary_search_by_key(&word, |[name, _]| *name).is_ok()
    };
    let is_of_service = key.split('_').any(is_service);
    (is_of_service && !SERVICE_FACTS.contains(&last)).then_some(KeyKind::Service)
}

/// Reports whether the key ends in these words.
fn ends_in(key: &str, words: &str) -> bool {
    key.strip_suffix(words).is_some_and(|head| head.is_empty() || head.ends_with('_'))
}

/// Returns the last three letters of a configured key, also with a sign between them: a configured
/// `userid` covers `user_id`, `user-id` and `userId` too.
fn ends(key: &str) -> Vec<String> {
    let letters: Vec<char> = key.chars().filter(|c| c.is_alphanumeric()).collect();
    let last = &letters[letters.len().saturating_sub(3)..];
    let mut ends = vec![String::from_iter(last)];
    for split in 1..last.len() {
        let (head, tail) = last.split_at(split);
        let joined =
            |sign: &str| format!("{}{sign}{}", String::from_iter(head), String::from_iter(tail));
        ends.extend(["_", "-", ".", " "].map(joined));
    }
    ends
}

/// `pwd` may be a password or a folder; a path distinguishes them.
pub(super) fn spared(key: &str, value: &str) -> bool {
    let folder = key.len() <= 6 && key.to_ascii_lowercase().ends_with("pwd");
    folder && value.starts_with(['/', '~', '.'])
}

/// Converts a key to lowercase words joined by `_`, split at anything other than letters and digits
/// and where case starts a new word.
fn snake(key: &str) -> Cow<'_, str> {
    let mut after_joint = true;
    let is_snake = key.bytes().all(|byte| {
        let is_joint = byte == b'_';
        let fits = if is_joint { !after_joint } else { matches!(byte, b'a'..=b'z' | b'0'..=b'9') };
        after_joint = is_joint;
        fits
    });
    if is_snake && !after_joint {
        return Cow::Borrowed(key);
    }
    let mut snake = String::with_capacity(key.len() + 8);
    let mut characters = key.chars().peekable();
    let mut before = None;
    while let Some(character) = characters.next() {
        let lower_before = before.is_some_and(|c: char| c.is_lowercase() || c.is_ascii_digit());
        let last_capital = before.is_some_and(char::is_uppercase)
            && characters.peek().is_some_and(|next| next.is_lowercase());
        let begins = character.is_uppercase() && (lower_before || last_capital);
        let joint = begins || !character.is_alphanumeric();
        if joint && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        if character.is_alphanumeric() {
            snake.extend(character.to_lowercase());
        }
        before = Some(character);
    }
    snake.truncate(snake.trim_end_matches('_').len());
    Cow::Owned(snake)
}
