//! Text that is recognizable as a secret by its shape, anywhere.

use std::ops::Range;

use super::{REDACTED, Span, marker};

/// The longest run searched for an authority; longer ones are not URLs in practice.
const AUTHORITY_BYTES_MAX: usize = 512;

/// The distance from an access key id within which its secret is searched for.
const BESIDE_BYTES: usize = 200;

/// The exact length of a secret access key.
const AWS_SECRET_BYTES: usize = 40;

/// The named markers.
pub(super) const NAMED: &[&str] = &[
    GITHUB,
    GITLAB,
    AWS,
    SLACK,
    OPENAI,
    ANTHROPIC,
    GOOGLE,
    STRIPE,
    NPM,
    PYPI,
    HUGGINGFACE,
    DIGITALOCEAN,
    SHOPIFY,
    AGE,
    JWT,
    PEM,
];

const GITHUB: &str = "[redacted:github]";
const GITLAB: &str = "[redacted:gitlab]";
const AWS: &str = "[redacted:aws]";
const SLACK: &str = "[redacted:slack]";
const OPENAI: &str = "[redacted:openai]";
const ANTHROPIC: &str = "[redacted:anthropic]";
const GOOGLE: &str = "[redacted:google]";
const STRIPE: &str = "[redacted:stripe]";
const NPM: &str = "[redacted:npm]";
const PYPI: &str = "[redacted:pypi]";
const HUGGINGFACE: &str = "[redacted:huggingface]";
const DIGITALOCEAN: &str = "[redacted:digitalocean]";
const SHOPIFY: &str = "[redacted:shopify]";
const AGE: &str = "[redacted:age]";
const JWT: &str = "[redacted:jwt]";
const PEM: &str = "[redacted:pem]";

pub(super) enum Shape {
    Prefix(Prefix),
    AwsKeyId,
    Jwt,
    Pem,
    /// `Bearer …`, `Basic …`
    Scheme,
    /// `scheme://user:password@`
    Authority,
}

/// A fixed prefix followed by a run of characters.
pub(super) struct Prefix {
    replacement: &'static str,
    run: Run,
    length_min: usize,
}

#[derive(Clone, Copy)]
enum Run {
    Alphanumeric,
    /// Letters, digits and `_`.
    Word,
    /// Letters, digits, `_` and `-`. Such a run may contain its own prefix again, or words joined
    /// by hyphens, so it needs a clean start and a digit.
    Hyphenated,
    /// Letters, digits, `_`, `-`, `/` and `:`.
    Path,
}

const fn prefix(replacement: &'static str, run: Run, length_min: usize) -> Shape {
    Shape::Prefix(Prefix { replacement, run, length_min })
}

/// The clues to look for, each with its shape. Clues match in any case; shapes check their own.
pub(super) const CLUES: &[(&str, Shape)] = &[
    ("ghp_", prefix(GITHUB, Run::Alphanumeric, 20)),
    ("gho_", prefix(GITHUB, Run::Alphanumeric, 20)),
    ("ghu_", prefix(GITHUB, Run::Alphanumeric, 20)),
    ("ghs_", prefix(GITHUB, Run::Alphanumeric, 20)),
    ("ghr_", prefix(GITHUB, Run::Alphanumeric, 20)),
    ("github_pat_", prefix(GITHUB, Run::Word, 20)),
    ("glpat-", prefix(GITLAB, Run::Hyphenated, 16)),
    ("gldt-", prefix(GITLAB, Run::Hyphenated, 16)),
    ("glrt-", prefix(GITLAB, Run::Hyphenated, 16)),
    ("glptt-", prefix(GITLAB, Run::Hyphenated, 16)),
    ("glcbt-", prefix(GITLAB, Run::Hyphenated, 16)),
    ("AKIA", Shape::AwsKeyId),
    ("ASIA", Shape::AwsKeyId),
    ("xoxa-", prefix(SLACK, Run::Hyphenated, 10)),
    ("xoxb-", prefix(SLACK, Run::Hyphenated, 10)),
    ("xoxc-", prefix(SLACK, Run::Hyphenated, 10)),
    ("xoxd-", prefix(SLACK, Run::Hyphenated, 10)),
    ("xoxe-", prefix(SLACK, Run::Hyphenated, 10)),
    ("xoxo-", prefix(SLACK, Run::Hyphenated, 10)),
    ("xoxp-", prefix(SLACK, Run::Hyphenated, 10)),
    ("xoxr-", prefix(SLACK, Run::Hyphenated, 10)),
    ("xoxs-", prefix(SLACK, Run::Hyphenated, 10)),
    ("xapp-", prefix(SLACK, Run::Hyphenated, 10)),
    ("hooks.slack.com/services/", prefix(SLACK, Run::Path, 20)),
    ("discord.com/api/webhooks/", prefix(REDACTED, Run::Path, 20)),
    ("discordapp.com/api/webhooks/", prefix(REDACTED, Run::Path, 20)),
    ("webhook.office.com/webhookb2/", prefix(REDACTED, Run::Path, 20)),
    ("api.telegram.org/bot", prefix(REDACTED, Run::Path, 20)),
    ("sk-ant-", prefix(ANTHROPIC, Run::Hyphenated, 12)),
    ("sk-", prefix(OPENAI, Run::Hyphenated, 20)),
    ("AIza", prefix(GOOGLE, Run::Hyphenated, 30)),
    ("GOCSPX-", prefix(GOOGLE, Run::Hyphenated, 20)),
    ("ya29.", prefix(GOOGLE, Run::Hyphenated, 20)),
    ("sk_live_", prefix(STRIPE, Run::Alphanumeric, 10)),
    ("sk_test_", prefix(STRIPE, Run::Alphanumeric, 10)),
    ("rk_live_", prefix(STRIPE, Run::Alphanumeric, 10)),
    ("rk_test_", prefix(STRIPE, Run::Alphanumeric, 10)),
    ("whsec_", prefix(STRIPE, Run::Alphanumeric, 10)),
    ("npm_", prefix(NPM, Run::Alphanumeric, 30)),
    ("pypi-", prefix(PYPI, Run::Hyphenated, 50)),
    ("hf_", prefix(HUGGINGFACE, Run::Alphanumeric, 30)),
    ("dop_v1_", prefix(DIGITALOCEAN, Run::Alphanumeric, 40)),
    ("shpat_", prefix(SHOPIFY, Run::Alphanumeric, 30)),
    ("AGE-SECRET-KEY-", prefix(AGE, Run::Alphanumeric, 20)),
    ("eyJ", Shape::Jwt),
    ("-----BEGIN ", Shape::Pem),
    ("bearer ", Shape::Scheme),
    ("basic ", Shape::Scheme),
    ("://", Shape::Authority),
];

impl Shape {
    pub(super) fn find(&self, text: &str, clue: Range<usize>) -> Option<Span> {
        match self {
            Shape::Prefix(prefix) => prefix.find(text, clue),
            Shape::AwsKeyId => aws_key_id(text, clue),
            Shape::Jwt => jwt(text, clue),
            Shape::Pem => pem(text, clue),
            Shape::Scheme => scheme(text, clue),
            Shape::Authority => authority(text, clue),
        }
    }
}

impl Run {
    fn holds(self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric()
            || match self {
                Run::Alphanumeric => false,
                Run::Word => byte == b'_',
                Run::Hyphenated => byte == b'_' || byte == b'-',
                Run::Path => matches!(byte, b'_' | b'-' | b'/' | b':'),
            }
    }

    fn needs_digit(self) -> bool {
        match self {
            Run::Alphanumeric | Run::Word => false,
            Run::Hyphenated | Run::Path => true,
        }
    }

    /// Reports whether a shape may begin after this byte.
    fn begins_after(self, byte: u8) -> bool {
        match self {
            Run::Alphanumeric | Run::Word => !byte.is_ascii_alphanumeric(),
            Run::Hyphenated => !self.holds(byte),
            Run::Path => true,
        }
    }
}

impl Prefix {
    fn find(&self, text: &str, clue: Range<usize>) -> Option<Span> {
        let begins = clue.start == 0 || self.run.begins_after(text.as_bytes()[clue.start - 1]);
        if !begins {
            return None;
        }
        let end = run_end(text, clue.end, |byte| self.run.holds(byte));
        let run = &text[clue.end..end];
        let digit = !self.run.needs_digit() || run.bytes().any(|byte| byte.is_ascii_digit());
        let found = run.len() >= self.length_min && digit;
        found.then_some(Span { start: clue.start, end, replacement: self.replacement })
    }
}

fn aws_key_id(text: &str, clue: Range<usize>) -> Option<Span> {
    let upper = text[clue.clone()].bytes().all(|byte| byte.is_ascii_uppercase());
    let end = run_end(text, clue.end, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let whole = upper && alone(text, clue.start, end) && end - clue.start == 20;
    whole.then_some(Span { start: clue.start, end, replacement: AWS })
}

/// Finds runs of forty characters near a key id. Only the key id identifies them.
pub(super) fn beside_aws_keys(text: &str, spans: &mut Vec<Span>) {
    let ids: Vec<Span> = spans.iter().filter(|span| span.replacement == AWS).cloned().collect();
    let mut looked_until = 0;
    for id in ids {
        let from = floor(text, id.start.saturating_sub(BESIDE_BYTES)).max(looked_until);
        let until = floor(text, (id.end + BESIDE_BYTES + AWS_SECRET_BYTES).min(text.len()));
        let mut at = from;
        while at < until {
            let end = run_end(text, at, aws_secret);
            if end - at == AWS_SECRET_BYTES && (at == 0 || !aws_secret(text.as_bytes()[at - 1])) {
                spans.push(Span { start: at, end, replacement: AWS });
            }
            at = end + 1;
        }
        looked_until = floor(text, at.min(text.len())).max(looked_until);
    }
}

fn aws_secret(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'+')
}

/// Matches three or more dotted runs of base64url, of which the first decodes to `{"…`.
fn jwt(text: &str, clue: Range<usize>) -> Option<Span> {
    let base64 = |byte| Run::Hyphenated.holds(byte);
    if &text[clue.clone()] != "eyJ" || clue.start > 0 && base64(text.as_bytes()[clue.start - 1]) {
        return None;
    }
    let mut end = run_end(text, clue.end, base64);
    let mut lengths = vec![end - clue.start];
    while text.as_bytes().get(end) == Some(&b'.') && lengths.len() < 5 {
        let part_end = run_end(text, end + 1, base64);
        lengths.push(part_end - end - 1);
        end = part_end;
    }
    let found = lengths.len() >= 3 && lengths[0] >= 10 && lengths[1] >= 8;
    found.then_some(Span { start: clue.start, end, replacement: JWT })
}

/// Matches a private key to the end of its block, or of the text if it is cut off.
fn pem(text: &str, clue: Range<usize>) -> Option<Span> {
    let rest = &text[clue.end..];
    let label_end = rest.find("-----").filter(|end| *end <= 64)?;
    if !rest[..label_end].contains("PRIVATE KEY") {
        return None;
    }
    let body = clue.end + label_end + 5;
    let end = text[body..].find("-----END ").map_or(text.len(), |footer| {
        let label = body + footer + "-----END ".len();
        text[label..].find("-----").map_or(text.len(), |dashes| label + dashes + 5)
    });
    Some(Span { start: clue.start, end, replacement: PEM })
}

/// Matches a scheme and its credential. Prose contains "bearer" and "basic" too, so the next word
/// must look like a credential.
fn scheme(text: &str, clue: Range<usize>) -> Option<Span> {
    if clue.start > 0 && text.as_bytes()[clue.start - 1].is_ascii_alphanumeric() {
        return None;
    }
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte);
    let end = run_end(text, clue.end, token);
    let credential = &text[clue.end..end];
    let odd = credential.bytes().skip(1).any(|byte| byte.is_ascii_digit() || byte == b'=')
        || credential.bytes().skip(1).any(|byte| byte.is_ascii_uppercase())
            && credential.bytes().any(|byte| byte.is_ascii_lowercase());
    let found = credential.len() >= 8 && odd;
    found.then_some(Span { start: clue.end, end, replacement: REDACTED })
}

/// Matches the password of `user:password@`, or the whole userinfo if it is one long token.
fn authority(text: &str, clue: Range<usize>) -> Option<Span> {
    let limit = floor(text, (clue.end + AUTHORITY_BYTES_MAX).min(text.len()));
    let blank = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | '\\');
    let rest = &text[clue.end..limit];
    let word = &rest[..rest.find(blank).unwrap_or(rest.len())];
    let authority = &word[..word.find(['/', '?', '#']).unwrap_or(word.len())];
    let (user, password) = match authority.rfind('@') {
        Some(at) => authority[..at].split_once(':').unwrap_or((&authority[..at], "")),
        // `u:p/w@h`: a port that is not a number may be a password with a slash in it.
        None => {
            let (user, port) = authority.split_once(':')?;
            let suspicious = !port.bytes().all(|byte| byte.is_ascii_digit());
            let at = word.rfind('@').filter(|_| suspicious)?;
            (user, &word[user.len() + 1..at])
        }
    };
    let start = clue.end;
    if password.is_empty() {
        let token = user.len() >= 20 && user.bytes().any(|byte| byte.is_ascii_digit());
        return token.then_some(Span { start, end: start + user.len(), replacement: REDACTED });
    }
    let start = start + user.len() + 1;
    let end = start + password.len();
    (!marker(password)).then_some(Span { start, end, replacement: REDACTED })
}

fn alone(text: &str, start: usize, end: usize) -> bool {
    let bytes = text.as_bytes();
    let free = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
    free(start.checked_sub(1).and_then(|before| bytes.get(before))) && free(bytes.get(end))
}

/// Returns the end of the run of such bytes that begins at `from`; the bytes are ASCII, so it is a
/// boundary.
fn run_end(text: &str, from: usize, holds: impl Fn(u8) -> bool) -> usize {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| !holds(*byte)).unwrap_or(rest.len())
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
