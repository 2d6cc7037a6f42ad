//! Keys that name secrets. A key is split into words (`githubToken`, `github-token`,
//! `GITHUB_TOKEN`), and its ending decides: `github_token` holds a token, `token_type` does not.

use aho_corasick::AhoCorasick;

/// Endings, as words.
const SECRET: &[&str] = &[
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "secrets",
    "token",
    "authorization",
    "cookie",
    "cookies",
    "dsn",
    "credential",
    "credentials",
    "api_key",
    "api_keys",
    "private_key",
    "access_key",
    "secret_key",
    "signing_key",
    "encryption_key",
    "auth_key",
    "account_key",
    "master_key",
    "ssh_key",
    "connection_string",
];

/// Endings within a single word, for keys that join words: `dbpassword`, `APIKEY`.
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

/// Words after a secret's name that do not change its meaning: `SecretString`, `password_2`.
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

/// Tokens that grant nothing: pagination tokens and the tokens that models count.
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

/// Search terms for text: each ending contains one of these.
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

/// Each ending contains one of these, so most keys are dismissed without being split.
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
    configured: Vec<String>,
    /// `None` if it could not be built; every key is then split.
    hints: Option<AhoCorasick>,
    configured_clues: Vec<String>,
}

impl Keys {
    pub(super) fn new(configured: &[String]) -> Keys {
        let configured: Vec<String> =
            configured.iter().map(|key| snake(key)).filter(|key| !key.is_empty()).collect();
        let configured_clues: Vec<String> = configured.iter().map(|key| end(key)).collect();
        let hints = HINTS.iter().copied().chain(configured_clues.iter().map(String::as_str));
        let hints = AhoCorasick::builder().ascii_case_insensitive(true).build(hints).ok();
        Keys { configured, hints, configured_clues }
    }

    pub(super) fn clues(&self) -> impl Iterator<Item = &str> {
        CLUES.iter().copied().chain(self.configured_clues.iter().map(String::as_str))
    }

    pub(super) fn secret(&self, key: &str) -> bool {
        // Meaningful keys are short; a long one is data.
        if key.len() > KEY_BYTES_MAX || self.dismissed(key) {
            return false;
        }
        let key = snake(key);
        let glued = |text: &str| text.replace('_', "");
        let configured = |it: &String| ends_in(&key, it) || glued(&key) == glued(it);
        self.configured.iter().any(configured) || builtin(&key)
    }

    /// Only ASCII is compared case-insensitively, so other keys are always split.
    fn dismissed(&self, key: &str) -> bool {
        let hinted = self.hints.as_ref().is_none_or(|hints| hints.is_match(key));
        !hinted && key.is_ascii()
    }
}

fn builtin(key: &str) -> bool {
    let mut key = key;
    loop {
        if ends_secretly(key) {
            return true;
        }
        let Some((head, last)) = key.rsplit_once('_') else { return false };
        let number = last.trim_start_matches('v').bytes().all(|byte| byte.is_ascii_digit());
        if !(number || TRAILING.contains(&last)) {
            return false;
        }
        key = head;
    }
}

fn ends_secretly(key: &str) -> bool {
    let before_token = key.strip_suffix("_token").and_then(|head| head.rsplit('_').next());
    if before_token.is_some_and(|before| HARMLESS_TOKEN.contains(&before)) {
        return false;
    }
    SECRET.iter().any(|ending| ends_in(key, ending))
        || GLUED.iter().any(|glued| key.ends_with(glued))
}

/// Reports whether the key ends in these words.
fn ends_in(key: &str, words: &str) -> bool {
    key.strip_suffix(words).is_some_and(|head| head.is_empty() || head.ends_with('_'))
}

/// Returns the last two letters of a configured key. Longer endings might be split in the text: a
/// configured `userid` also covers `user_id`.
fn end(word: &str) -> String {
    let start = word.char_indices().rev().nth(1).map_or(0, |(start, _)| start);
    word[start..].to_owned()
}

/// `pwd` may be a password or a folder; a path distinguishes them.
pub(super) fn spared(key: &str, value: &str) -> bool {
    let folder = key.len() <= 6 && key.to_ascii_lowercase().ends_with("pwd");
    folder && value.starts_with(['/', '~', '.'])
}

/// Converts a key to lowercase words joined by `_`, split at anything other than letters and digits
/// and where case starts a new word.
fn snake(key: &str) -> String {
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
    snake
}
