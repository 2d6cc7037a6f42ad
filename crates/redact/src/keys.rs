//! Keys that name secrets. A key is split into words (`githubToken`, `github-token`,
//! `GITHUB_TOKEN`), and its ending decides: `github_token` holds a token, `token_type` does not.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::Value;

use super::clues::Clues;
use super::ordinary;
use super::randomness::{looks_chosen, looks_like_login, looks_random};

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
    "shared_access_key",
    "shared_access_signature",
    "amz_signature",
    "goog_signature",
    "connection_string",
    "passwort",
    "kennwort",
    "db_pass",
    "user_pass",
    "root_pass",
    "admin_pass",
    "login_pass",
    "smtp_pass",
    "mail_pass",
    "ftp_pass",
    "ssh_pass",
    "mysql_pass",
    "postgres_pass",
    "redis_pass",
    "proxy_pass",
    "phpsessid",
    "jsessionid",
    "seed_phrase",
    "recovery_phrase",
    "client_key_data",
    "private_key_data",
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

/// Endings that name short codes: a value needs a few digits.
const CODES: &[&str] = &[
    "otp",
    "totp",
    "cvv",
    "cvv2",
    "cvc",
    "cvc2",
    "mfa_code",
    "otp_code",
    "verification_code",
    "security_code",
];

/// Endings that often name a password, but also the passes of a test or a compiler.
const CHOSEN: &[&str] = &["pass", "bearer", "jwt"];

/// Words that end in `pass` and name no password.
const PASS_WORDS: &[&str] = &["bypass", "compass", "overpass", "surpass", "trespass", "underpass"];

/// Endings that may hold a login, or only say how one logs in.
const LOGINS: &[&str] = &["auth", "authentication"];

/// Endings that may hold a credential; only a random value is one.
const RANDOM: &[&str] = &[
    "session",
    "session_id",
    "sessionid",
    "session_key",
    "sid",
    "sig",
    "signature",
    "hmac",
    "refresh",
    "webhook_url",
    "creds",
];

/// Keys that are not secret, however random they are.
const OPEN_KEYS: &[&str] = &[
    "public_key",
    "publishable_key",
    "site_key",
    "host_key",
    "cache_key",
    "primary_key",
    "foreign_key",
    "partition_key",
    "sort_key",
    "object_key",
    "idempotency_key",
];

/// Services whose tokens have no distinctive form. A key that names one may hold a token.
const SERVICES: &[&str] = &[
    "adafruit",
    "adobe",
    "airtable",
    "algolia",
    "alibaba",
    "artifactory",
    "asana",
    "atlassian",
    "beamer",
    "bitbucket",
    "bittrex",
    "cloudflare",
    "codecov",
    "cohere",
    "coinbase",
    "confluence",
    "confluent",
    "contentful",
    "datadog",
    "discord",
    "droneci",
    "dropbox",
    "etsy",
    "facebook",
    "fastly",
    "finicity",
    "finnhub",
    "flickr",
    "freshbooks",
    "gitter",
    "gocardless",
    "heroku",
    "hubspot",
    "intercom",
    "jfrog",
    "jira",
    "kraken",
    "kucoin",
    "launchdarkly",
    "linkedin",
    "looker",
    "mailchimp",
    "mailgun",
    "mapbox",
    "mattermost",
    "meraki",
    "messagebird",
    "netlify",
    "newrelic",
    "nytimes",
    "okta",
    "plaid",
    "rapidapi",
    "sendbird",
    "sentry",
    "snyk",
    "squarespace",
    "sumologic",
    "telegram",
    "travis",
    "twilio",
    "twitch",
    "twitter",
    "yandex",
    "zendesk",
];

/// Endings of keys that name a service and hold no token.
const SERVICE_FACTS: &[&str] =
    &["commit", "digest", "hash", "host", "name", "sha", "uri", "url", "version"];

/// The shortest token of such a service.
const SERVICE_VALUE_BYTES_MIN: usize = 16;

/// The shortest value of an unspecified `key` that counts as secret.
const KEY_VALUE_BYTES_MIN: usize = 20;

/// Search terms for text: each ending contains one of these. They are parts that ordinary words
/// seldom have.
const CLUES: &[&str] = &[
    "pass",
    "pwd",
    "kennwort",
    "secret",
    "token",
    "auth",
    "cook",
    "dsn",
    "credent",
    "creds",
    "key",
    "on_string",
    "on-string",
    "onstring",
    "bearer",
    "jwt",
    "otp",
    "cvv",
    "cvc",
    "_code",
    "sess",
    "gnature",
    "phrase",
    "ebhook",
];

/// Search terms for the names of services, in the order of `SERVICES`.
const SERVICE_CLUES: &[&str] = &[
    "afruit", "adobe", "rtable", "algoli", "alibab", "ifactory", "asana", "atlass", "beamer",
    "bitbuck", "bittrex", "dflare", "decov", "cohere", "oinbase", "nfluen", "nfluen", "ntful",
    "tadog", "discord", "droneci", "opbox", "etsy", "ebook", "fastly", "nicity", "nnhub", "flickr",
    "shbooks", "gitter", "gocardl", "heroku", "hubspo", "tercom", "jfrog", "jira", "kraken",
    "kucoin", "hdarkly", "kedin", "looker", "ilchimp", "ilgun", "apbox", "ttermost", "meraki",
    "ebird", "netlif", "ewrelic", "nytime", "okta", "plaid", "pidapi", "endbird", "sentry", "snyk",
    "respace", "umologic", "legram", "travis", "twilio", "twitch", "twitter", "yandex", "zendesk",
];

/// Each ending contains one of these, so most keys are dismissed without being split.
const HINTS: &[&str] = &[
    "pass",
    "pwd",
    "kennwort",
    "secret",
    "token",
    "auth",
    "cookie",
    "dsn",
    "credential",
    "key",
    "string",
    "bearer",
    "jwt",
    "otp",
    "cvv",
    "cvc",
    "code",
    "sess",
    "sid",
    "sig",
    "hmac",
    "refresh",
    "phrase",
    "webhook",
    "creds",
];

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
        let hints = HINTS
            .iter()
            .chain(SERVICES)
            .copied()
            .chain(configured_clues.iter().map(String::as_str));
        let hints = Clues::new(hints);
        Keys { configured, hints, configured_clues }
    }

    pub(super) fn clues(&self) -> impl Iterator<Item = &str> {
        CLUES
            .iter()
            .chain(SERVICE_CLUES)
            .copied()
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

static SERVICE_NAMES: LazyLock<Outlines> = LazyLock::new(|| Outlines::of(SERVICES.iter().copied()));

/// The endings, sorted by their last word; of those with the same one, the first that fits counts.
static ENDINGS: LazyLock<Vec<(&str, &str, Option<KeyKind>)>> = LazyLock::new(|| {
    let lists: [(&[&str], Option<KeyKind>); 7] = [
        (SECRET, Some(KeyKind::Secret)),
        (OPEN_KEYS, None),
        (CODES, Some(KeyKind::Code)),
        (CHOSEN, Some(KeyKind::Chosen)),
        (LOGINS, Some(KeyKind::Login)),
        (RANDOM, Some(KeyKind::Random)),
        (&["key"], Some(KeyKind::Key)),
    ];
    let mut endings = Vec::new();
    for (list, kind) in lists {
        for ending in list {
            endings.push((ending.rsplit('_').next().unwrap_or(ending), *ending, kind));
        }
    }
    endings.sort_by_key(|(last, _, _)| *last);
    endings
});

fn ending(key: &str) -> Option<KeyKind> {
    if key.starts_with("is_") || key.starts_with("has_") {
        return None;
    }
    let before_token = key.strip_suffix("_token").and_then(|head| head.rsplit('_').next());
    if before_token.is_some_and(|before| HARMLESS_TOKEN.contains(&before)) {
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
    let is_service =
        |word: &str| SERVICE_NAMES.may_have(word) && SERVICES.binary_search(&word).is_ok();
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
