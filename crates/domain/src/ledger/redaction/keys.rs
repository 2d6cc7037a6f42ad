//! Keys that name secrets. A key is read as words (`githubToken`, `github-token`, `GITHUB_TOKEN`),
//! and what counts is how it ends: `github_token` holds a token, `token_type` does not.

use aho_corasick::AhoCorasick;

/// Endings, as words.
const SECRET: &[&[&str]] = &[
    &["password"],
    &["passwords"],
    &["passwd"],
    &["passphrase"],
    &["passcode"],
    &["pwd"],
    &["secret"],
    &["secrets"],
    &["token"],
    &["authorization"],
    &["cookie"],
    &["cookies"],
    &["dsn"],
    &["credential"],
    &["credentials"],
    &["api", "key"],
    &["api", "keys"],
    &["private", "key"],
    &["access", "key"],
    &["secret", "key"],
    &["signing", "key"],
    &["encryption", "key"],
    &["auth", "key"],
    &["account", "key"],
    &["master", "key"],
    &["ssh", "key"],
    &["connection", "string"],
];

/// Endings of a single word, for keys that run words together: `dbpassword`, `APIKEY`.
const GLUED: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "privatekey",
    "accesskey",
    "secretkey",
    "connectionstring",
    "credentials",
];

/// Words after the secret's name that do not change what it is: `SecretString`, `password_2`.
const TRAILING: &[&str] = &[
    "value",
    "string",
    "text",
    "raw",
    "plain",
    "plaintext",
    "binary",
    "base64",
    "hash",
    "confirmation",
    "confirm",
    "new",
    "old",
];

/// Tokens that open nothing: those that page through a list, and those that models count.
const HARMLESS_TOKEN: &[&str] = &[
    "page",
    "next",
    "continuation",
    "progress",
    "sync",
    "cancellation",
    "pad",
    "eos",
    "bos",
    "unk",
    "sep",
    "cls",
    "mask",
    "stop",
    "start",
    "end",
    "first",
    "last",
    "per",
    "max",
    "min",
    "special",
    "unexpected",
];

/// What to look for in text: each ending contains one of these.
const CLUES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "authorization",
    "cookie",
    "dsn",
    "credential",
    "api_key",
    "api-key",
    "apikey",
    "api key",
    "private_key",
    "private-key",
    "privatekey",
    "access_key",
    "access-key",
    "accesskey",
    "signing_key",
    "signingkey",
    "encryption_key",
    "encryptionkey",
    "auth_key",
    "authkey",
    "account_key",
    "accountkey",
    "master_key",
    "masterkey",
    "ssh_key",
    "sshkey",
    "connection_string",
    "connection-string",
    "connectionstring",
];

/// Every ending has one of these in it, so most keys are dismissed without being split.
const HINTS: &[&str] = &[
    "pass",
    "pwd",
    "secret",
    "token",
    "authorization",
    "cookie",
    "dsn",
    "credential",
    "key",
    "string",
];

const KEY_BYTES_MAX: usize = 128;

pub(super) struct Keys {
    configured: Vec<Vec<String>>,
    /// `None` where it could not be built; then every key is split.
    hints: Option<AhoCorasick>,
    configured_clues: Vec<String>,
}

impl Keys {
    pub(super) fn new(configured: &[String]) -> Keys {
        let configured: Vec<Vec<String>> =
            configured.iter().map(|key| words(key)).filter(|words| !words.is_empty()).collect();
        let configured_clues: Vec<String> =
            configured.iter().filter_map(|words| words.last()).map(end).collect();
        let hints = HINTS.iter().copied().chain(configured_clues.iter().map(String::as_str));
        let hints = AhoCorasick::builder().ascii_case_insensitive(true).build(hints).ok();
        Keys { configured, hints, configured_clues }
    }

    pub(super) fn clues(&self) -> impl Iterator<Item = &str> {
        CLUES.iter().copied().chain(self.configured_clues.iter().map(String::as_str))
    }

    pub(super) fn secret(&self, key: &str) -> bool {
        // Keys that carry meaning are short; a long one is data.
        if key.len() > KEY_BYTES_MAX || self.dismissed(key) {
            return false;
        }
        let words = words(key);
        let ends =
            |ending: &Vec<String>| words.ends_with(ending) || words.concat() == ending.concat();
        self.configured.iter().any(ends) || builtin(&words)
    }

    /// Only ASCII is compared in any case, so other keys are always split.
    fn dismissed(&self, key: &str) -> bool {
        let hinted = self.hints.as_ref().is_none_or(|hints| hints.is_match(key));
        !hinted && key.is_ascii()
    }
}

fn builtin(words: &[String]) -> bool {
    let mut words = words;
    while let [head @ .., last] = words {
        let number = last.trim_start_matches('v').bytes().all(|byte| byte.is_ascii_digit());
        if head.is_empty() || !(number || TRAILING.contains(&last.as_str())) {
            break;
        }
        // `connection_string` ends in a word that may otherwise trail.
        if ends_secretly(words) {
            return true;
        }
        words = head;
    }
    ends_secretly(words)
}

fn ends_secretly(words: &[String]) -> bool {
    if let [.., before, last] = words
        && last == "token"
        && HARMLESS_TOKEN.contains(&before.as_str())
    {
        return false;
    }
    let ends = |ending: &&[&str]| {
        words.len() >= ending.len()
            && words[words.len() - ending.len()..].iter().zip(*ending).all(|(a, b)| a == b)
    };
    SECRET.iter().any(ends)
        || words.last().is_some_and(|last| GLUED.iter().any(|glued| last.ends_with(glued)))
}

/// The last two letters of a configured key. More might be split in the text: who configures
/// `userid` means `user_id` too.
fn end(word: &String) -> String {
    let start = word.char_indices().rev().nth(1).map_or(0, |(start, _)| start);
    word[start..].to_owned()
}

/// `pwd` may be a password or a folder; a path tells them apart.
pub(super) fn spared(key: &str, value: &str) -> bool {
    let folder = key.len() <= 6 && key.to_ascii_lowercase().ends_with("pwd");
    folder && value.starts_with(['/', '~', '.'])
}

/// Lower-case words, split at anything that is no letter or digit, and where case shows a new one.
fn words(key: &str) -> Vec<String> {
    let characters: Vec<char> = key.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (place, character) in characters.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| characters[before]);
        let lower_before = before.is_some_and(|c| c.is_lowercase() || c.is_ascii_digit());
        let last_capital = before.is_some_and(char::is_uppercase)
            && characters.get(place + 1).is_some_and(|next| next.is_lowercase());
        let begins = character.is_uppercase() && (lower_before || last_capital);
        if (begins || !character.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}
