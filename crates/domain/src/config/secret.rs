//! Detects likely secrets in a config, so that `config show` and logs can hide them. When in doubt,
//! a value is hidden; `${env:NAME}` is not a secret and stays readable.

use std::borrow::Cow;

use serde_json::Value as Json;

use super::template::ConfigTemplate;
use redact::BUILTIN;

const HIDDEN: &str = "…";

/// Warns of a secret among the arguments of a server.
pub const VISIBLE_SECRET: &str = "a secret in an argument is visible to every user of this machine \
                                  while the server runs ('ps'): hand it over in 'env' or in a file, \
                                  if the server can read it there";

/// Parts of names that mark values as secret.
const SECRET_NAMES: &[&str] = &[
    "auth",
    "bearer",
    "cookie",
    "credential",
    "dsn",
    "key",
    "pass",
    "private",
    "pwd",
    "secret",
    "session",
    "signature",
    "token",
];

/// Words that may precede a token.
const SCHEMES: &[&str] = &["", "basic", "bearer", "token"];

/// Returns the value of an environment variable or header, safe to display.
pub(crate) fn named(name: &str, value: &str) -> String {
    if looks_secret(name) && !value.is_empty() && is_literal(value) {
        return HIDDEN.to_owned();
    }
    text(value)
}

/// Reports whether the value of a variable, header or flag appears to be a secret, literally.
pub fn is_secret(name: &str, value: &str) -> bool {
    named(name, value) != value
}

/// Returns a program's arguments, safe to display: `--token x`, `--token=x` and `Authorization: x`
/// lose the `x`.
pub fn args(args: &[ConfigTemplate]) -> Vec<String> {
    words(args.iter().map(ConfigTemplate::text))
}

/// Reports whether an argument holds a secret, literally or by a reference to the store.
pub fn is_in_args(args: &[ConfigTemplate]) -> bool {
    let is_secret = |(arg, shown): (&ConfigTemplate, &String)| {
        arg.secrets().next().is_some() || arg.text() != shown
    };
    args.iter().zip(&self::args(args)).any(is_secret)
}

/// Returns the words of a command, safe to display in the same way.
pub(crate) fn words<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut flag = None;
    let mut shown = Vec::new();
    for arg in words {
        let is_flag = arg.starts_with('-');
        shown.push(match flag.take() {
            Some(flag) if !is_flag && looks_secret(flag) => named(flag, arg),
            _ => assigned(arg).unwrap_or_else(|| text(arg)),
        });
        flag = (is_flag && !arg.contains('=')).then_some(arg);
    }
    shown
}

/// Returns a URL without the secrets in its user part and query.
pub fn url(url: &str) -> String {
    let (before_query, query) = match url.split_once('?') {
        Some((before, query)) => (before, Some(query)),
        None => (url, None),
    };
    let without_user = without_user(before_query);
    let mut shown = BUILTIN.text(&without_user).into_owned();
    for (index, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        let sign = if index == 0 { '?' } else { '&' };
        shown.push(sign);
        shown.push_str(&assigned(pair).unwrap_or_else(|| parameter(sign, pair)));
    }
    shown
}

/// Hides secrets in JSON of unknown meaning, judged by member names.
pub(super) fn json(value: &Json) -> Json {
    match value {
        Json::Object(members) => members.iter().map(|(name, value)| member(name, value)).collect(),
        Json::Array(items) => items.iter().map(json).collect(),
        Json::String(value) => Json::from(text(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => value.clone(),
    }
}

fn member(name: &str, value: &Json) -> (String, Json) {
    let shown = match value {
        Json::String(value) => Json::from(named(name, value)),
        Json::Number(_) if looks_secret(name) => Json::from(HIDDEN),
        other => json(other),
    };
    (name.to_owned(), shown)
}

fn text(value: &str) -> String {
    if value.contains("://") { url(value) } else { plain(value) }
}

/// Hides the value in `name=value` or `name: value`; returns `None` if the name is not secret.
fn assigned(pair: &str) -> Option<String> {
    let at = pair.find(['=', ':'])?;
    let (name, value) = pair.split_at(at + 1);
    let space = if value.starts_with(' ') { " " } else { "" };
    looks_secret(name).then(|| format!("{name}{space}{}", named(name, value.trim_start())))
}

/// Hides a parameter of an address that holds a credential: `sig=…`, `code=…`.
fn parameter(sign: char, pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, _)) if plain(&format!("{sign}{pair}")) == HIDDEN => format!("{name}={HIDDEN}"),
        Some(_) | None => plain(pair),
    }
}

fn plain(value: &str) -> String {
    match BUILTIN.text(value) {
        Cow::Owned(_) => HIDDEN.to_owned(),
        Cow::Borrowed(_) => value.to_owned(),
    }
}

fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) if is_literal(&rest[..at]) => {
            format!("{scheme}://{HIDDEN}{}", &rest[at..])
        }
        _ => url.to_owned(),
    }
}

fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Reports whether the value has more than variables in it.
pub(crate) fn is_literal(value: &str) -> bool {
    let Ok(template) = ConfigTemplate::parse(value) else { return true };
    let rest: String = template.literals().collect();
    !SCHEMES.contains(&rest.trim_matches([' ', ':']).to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_secret_names_are_hidden_unless_they_are_variables() {
        for (name, value, expect) in [
            ("GITHUB_TOKEN", "abc", "…"),
            ("GITHUB_TOKEN", "", ""),
            ("GITHUB_TOKEN", "${env:TOKEN}", "${env:TOKEN}"),
            ("Authorization", "Bearer ${env:TOKEN}", "Bearer ${env:TOKEN}"),
            ("Authorization", "Bearer abc${env:TOKEN}", "…"),
            ("LOG_LEVEL", "debug", "debug"),
            ("NOTE", "use ghp_0123456789abcdef0123", "…"),
            ("DATABASE_URL", "postgres://me:pw@db/x", "postgres://…@db/x"),
            ("DATABASE_URL", "postgres://${env:U}:${env:P}@db", "postgres://${env:U}:${env:P}@db"),
        ] {
            assert_eq!(named(name, value), expect, "{name}={value}");
        }
    }

    #[test]
    fn arguments_lose_the_value_and_keep_the_flag() {
        for (given, expect) in [
            (vec!["-y", "--token", "abc", "x"], vec!["-y", "--token", "…", "x"]),
            (vec!["--api-key=abc", "dir"], vec!["--api-key=…", "dir"]),
            (vec!["--api-key=${env:K}"], vec!["--api-key=${env:K}"]),
            (vec!["--header", "Authorization: Bearer x"], vec!["--header", "Authorization: …"]),
            (vec!["--token", "--verbose"], vec!["--token", "--verbose"]),
            (vec!["postgres://me:pw@db/x"], vec!["postgres://…@db/x"]),
        ] {
            let templates: Vec<_> =
                given.iter().map(|arg| ConfigTemplate::parse(arg).unwrap()).collect();
            assert_eq!(args(&templates), expect);
        }
    }

    #[test]
    fn a_secret_among_arguments_is_noticed() {
        for (given, expect) in [
            (vec!["-y", "--mode", "fast"], false),
            (vec!["--token", "${env:TOKEN}"], false),
            (vec!["--token", "${secret:TOKEN}"], true),
            (vec!["--token=abc"], true),
            (vec!["postgres://me:pw@db/x"], true),
        ] {
            let templates: Vec<_> =
                given.iter().map(|arg| ConfigTemplate::parse(arg).unwrap()).collect();
            assert_eq!(is_in_args(&templates), expect, "{given:?}");
        }
    }

    #[test]
    fn urls_lose_user_and_secret_query_values() {
        for (given, expect) in [
            ("https://host/mcp", "https://host/mcp"),
            ("https://me:pw@host/mcp?a=1&apiKey=k#f", "https://…@host/mcp?a=1&apiKey=…"),
            ("https://host/?token=${env:T}", "https://host/?token=${env:T}"),
            (
                "https://host/a?sv=2022-11-02&sig=AbC1dEf2GhI3jKl4MnO5pQr6StU7vWx8%3D&se=1",
                "https://host/a?sv=2022-11-02&sig=…&se=1",
            ),
            ("https://host/a?code=AbC1dEf2GhI3jKl4MnO5pQr6StU7vWx8==", "https://host/a?code=…"),
            ("https://host/a?sig=short&code=200", "https://host/a?sig=short&code=200"),
            ("https://host/a@b", "https://host/a@b"),
        ] {
            assert_eq!(url(given), expect);
        }
    }
}
