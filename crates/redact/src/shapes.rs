//! Text that is recognizable as a secret by its shape, anywhere.

mod table;

use std::ops::{Range, RangeInclusive};

use super::randomness::looks_random;
use super::{REDACTED, Span, marker};
use crate::Credential;
pub(super) use table::CLUES;

/// The longest run searched for an authority; longer ones are not URLs in practice.
const AUTHORITY_BYTES_MAX: usize = 512;

/// The distance from an access key id within which its secret is searched for.
const BESIDE_BYTES: usize = 200;

/// The longest run before a clue that belongs to a token.
const AROUND_BYTES_MAX: usize = 64;

/// The longest run after a clue that belongs to a token with a run before it.
const AFTER_BYTES_MAX: usize = 512;

/// The shortest part of one of the gate's credentials from which the rest could be guessed is longer.
const CREDENTIAL_DIGITS_MIN: usize = 32;

/// The length of a token of Okta.
const OKTA_BYTES: usize = 42;

/// The shortest hash of a password, without its salt.
const HASH_BYTES_MIN: usize = 22;

/// The exact length of a secret access key.
const AWS_SECRET_BYTES: usize = 40;

/// The named markers.
pub(super) const NAMED: &[&str] = &[
    "[redacted:github]",
    "[redacted:gitlab]",
    AWS,
    "[redacted:slack]",
    "[redacted:openai]",
    "[redacted:anthropic]",
    "[redacted:google]",
    "[redacted:stripe]",
    "[redacted:npm]",
    "[redacted:pypi]",
    "[redacted:huggingface]",
    "[redacted:digitalocean]",
    "[redacted:shopify]",
    "[redacted:age]",
    JWT,
    PEM,
    "[redacted:sendgrid]",
    VAULT,
    "[redacted:atlassian]",
    "[redacted:notion]",
    "[redacted:linear]",
    "[redacted:doppler]",
    "[redacted:databricks]",
    DISCORD,
    TELEGRAM,
    TWILIO,
    "[redacted:mailgun]",
    AZURE,
    OWN,
];

const AWS: &str = "[redacted:aws]";
const JWT: &str = "[redacted:jwt]";
pub(super) const PEM: &str = "[redacted:pem]";
const VAULT: &str = "[redacted:vault]";
const DISCORD: &str = "[redacted:discord]";
const TELEGRAM: &str = "[redacted:telegram]";
const TWILIO: &str = "[redacted:twilio]";
const AZURE: &str = "[redacted:azure]";
const OWN: &str = "[redacted:countersign]";

/// The words in the first and in the last line of files with a private key.
pub(super) const KEY_FILES: &[(&str, &str)] = &[
    ("-----BEGIN ", "-----END "),
    ("---- BEGIN ", "---- END "),
    ("Private-Lines:", "Private-MAC:"),
];

pub(super) enum Shape {
    Prefix(Prefix),
    AwsKeyId,
    Jwt,
    Pem,
    /// `Bearer …`, `Basic …`
    Scheme,
    /// `scheme://user:password@`
    Authority,
    /// `?key=…`: a parameter that holds a credential if it is random.
    Query,
    /// `123456789:AA…`
    Telegram,
    /// `…:APA91b…`
    Firebase,
    /// 32 hex digits and `-us12`.
    Mailchimp,
    /// `….atlasv1.…`
    Terraform,
    /// `pat….…`
    Airtable,
    /// The private part of a key file of PuTTY.
    Putty,
    /// `$6$salt$hash`: the hash of a password.
    PasswordHash,
}

/// A fixed prefix followed by a run of characters.
pub(super) struct Prefix {
    replacement: &'static str,
    run: Run,
    length_min: usize,
    length_max: usize,
}

#[derive(Clone, Copy)]
enum Run {
    Hex,
    Alphanumeric,
    /// Letters, digits and `_`.
    Word,
    /// Letters, digits, `_` and `-`. Such a run may contain its own prefix again, or words joined
    /// by hyphens, so it needs a clean start and a digit.
    Hyphenated,
    /// The same with dots.
    Dotted,
    /// Both alphabets of base64.
    Base64,
    /// Letters, digits, `_`, `-`, `/`, `:` and `@`.
    Path,
    /// Hex digits after a prefix in either case.
    Blob,
}

impl Shape {
    /// Finds the secret that the clue points at; `word` is the clue as listed.
    pub(super) fn find(&self, text: &str, word: &str, clue: Range<usize>) -> Option<Span> {
        match self {
            Shape::Prefix(prefix) => prefix.find(text, word, clue),
            Shape::AwsKeyId => aws_key_id(text, clue),
            Shape::Jwt => jwt(text, clue),
            Shape::Pem => pem(text, word, clue),
            Shape::Scheme => scheme(text, clue),
            Shape::Authority => authority(text, clue),
            Shape::Query => query(text, clue),
            Shape::Telegram => {
                let around = around(text, word, clue, |byte| byte.is_ascii_digit())?;
                around.long((8..=12, 32..=40), TELEGRAM)
            }
            Shape::Firebase => {
                let around = around(text, word, clue, |byte| Run::Hyphenated.holds(byte))?;
                around.long((8..=30, 80..=400), REDACTED)
            }
            Shape::Mailchimp => {
                let around = around(text, word, clue, |byte| byte.is_ascii_hexdigit())?;
                let number = text[around.clue_end..around.end].bytes();
                let number = number.filter(|byte| !byte.is_ascii_digit()).count() == 0;
                number.then(|| around.long((32..=32, 1..=2), REDACTED))?
            }
            Shape::Terraform => {
                let around = around(text, word, clue, |byte| byte.is_ascii_alphanumeric())?;
                around.long((14..=14, 60..=80), REDACTED)
            }
            Shape::Airtable => airtable(text, word, clue),
            Shape::Putty => putty(text, clue),
            Shape::PasswordHash => password_hash(text, word, clue),
        }
    }
}

impl Run {
    fn holds(self, byte: u8) -> bool {
        match self {
            Run::Hex | Run::Blob => byte.is_ascii_hexdigit(),
            Run::Alphanumeric => byte.is_ascii_alphanumeric(),
            Run::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Run::Hyphenated => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Run::Dotted => dotted(byte),
            Run::Base64 => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=')
            }
            Run::Path => byte.is_ascii_alphanumeric() || b"_-/:@".contains(&byte),
        }
    }

    /// Reports whether words, joined, could make up such a run.
    fn needs_digit(self) -> bool {
        match self {
            Run::Hex | Run::Blob | Run::Alphanumeric | Run::Word => false,
            Run::Hyphenated | Run::Dotted | Run::Base64 | Run::Path => true,
        }
    }

    /// Reports whether a shape may begin after this byte.
    fn begins_after(self, byte: u8) -> bool {
        match self {
            Run::Hex | Run::Blob | Run::Alphanumeric | Run::Word => !byte.is_ascii_alphanumeric(),
            Run::Hyphenated | Run::Dotted => !self.holds(byte),
            // `=` and `/` stand before a value more often than within one.
            Run::Base64 => !Run::Hyphenated.holds(byte) && byte != b'+',
            Run::Path => true,
        }
    }
}

fn dotted(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

impl Prefix {
    fn find(&self, text: &str, word: &str, clue: Range<usize>) -> Option<Span> {
        // Addresses are the same in any case; tokens are not.
        let same = matches!(self.run, Run::Path | Run::Blob) || text[clue.clone()] == *word;
        let begins = clue.start == 0 || self.run.begins_after(text.as_bytes()[clue.start - 1]);
        if !same || !begins {
            return None;
        }
        let end = run_end(text, clue.end, |byte| self.run.holds(byte));
        let run = text[clue.end..end].trim_end_matches(['.', '-']);
        let found = (self.length_min..=self.length_max).contains(&run.len())
            && (!self.run.needs_digit() || run.bytes().any(|byte| byte.is_ascii_digit()));
        let end = clue.end + run.len();
        found.then_some(Span { start: clue.start, end, replacement: self.replacement })
    }
}

/// A run of characters on both sides of a clue.
struct Around {
    start: usize,
    clue_start: usize,
    clue_end: usize,
    end: usize,
}

/// Finds the runs next to a clue; the one after it may also have `_` and `-`.
fn around(
    text: &str,
    word: &str,
    clue: Range<usize>,
    before: impl Fn(u8) -> bool,
) -> Option<Around> {
    if text[clue.clone()] != *word {
        return None;
    }
    let head = text.as_bytes()[..clue.start].iter().rev().take(AROUND_BYTES_MAX);
    let start = clue.start - head.take_while(|byte| before(**byte)).count();
    // The bound keeps text that repeats the clue from being searched again and again.
    let tail = text.as_bytes()[clue.end..].iter().take(AFTER_BYTES_MAX);
    let tail = tail.take_while(|byte| Run::Hyphenated.holds(**byte));
    let end = clue.end + tail.count();
    alone(text, start, end).then_some(Around {
        start,
        clue_start: clue.start,
        clue_end: clue.end,
        end,
    })
}

impl Around {
    /// Returns the whole if both runs have such lengths.
    fn long(
        &self,
        (before, after): (RangeInclusive<usize>, RangeInclusive<usize>),
        replacement: &'static str,
    ) -> Option<Span> {
        let found = before.contains(&(self.clue_start - self.start))
            && after.contains(&(self.end - self.clue_end));
        found.then_some(Span { start: self.start, end: self.end, replacement })
    }
}

fn airtable(text: &str, word: &str, clue: Range<usize>) -> Option<Span> {
    let before = clue.start.checked_sub(1).map(|before| text.as_bytes()[before]);
    if before.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let dot = run_end(text, clue.end, |byte| byte.is_ascii_alphanumeric());
    if dot - clue.end != 14 || text.as_bytes().get(dot) != Some(&b'.') {
        return None;
    }
    let end = run_end(text, dot + 1, |byte| byte.is_ascii_hexdigit());
    let whole = end - dot == 65 && text[clue.clone()] == *word && alone(text, clue.start, end);
    whole.then_some(Span { start: clue.start, end, replacement: REDACTED })
}

/// Matches the value of a parameter of an address.
fn query(text: &str, clue: Range<usize>) -> Option<Span> {
    let value = |byte: u8| Run::Base64.holds(byte) || b"%.~".contains(&byte);
    let end = run_end(text, clue.end, value);
    let found = looks_random(&text[clue.end..end]);
    found.then_some(Span { start: clue.end, end, replacement: REDACTED })
}

/// Finds tokens that have no prefix but a dot, of Discord's bots and of Vault's first versions.
pub(super) fn dotted_tokens(text: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    for dot in memchr::memchr_iter(b'.', bytes) {
        if bytes.get(dot + 7) == Some(&b'.') {
            spans.extend(discord(text, dot));
        }
        if dot > 0 && bytes[dot - 1] == b's' && bytes.len() > dot + 24 {
            spans.extend(old_vault(text, dot));
        }
    }
}

/// The number of clues to keys of Twilio, which begin with `SK` and two hex digits.
const TWILIO_CLUES: usize = 256;

pub(super) fn twilio_clues() -> impl Iterator<Item = String> {
    (0..TWILIO_CLUES).map(|digits| format!("sk{digits:02x}"))
}

/// Matches `SK` and 32 hex digits.
pub(super) fn twilio(text: &str, clue: Range<usize>) -> Option<Span> {
    let digits = clue.start + 2;
    let end = run_end(text, digits, |byte| byte.is_ascii_hexdigit());
    let found =
        end - digits == 32 && text[clue.start..].starts_with("SK") && alone(text, clue.start, end);
    found.then_some(Span { start: clue.start, end, replacement: TWILIO })
}

/// Matches a credential that the gate made.
pub(super) fn credential(text: &str, kind: Credential, clue: Range<usize>) -> Option<Span> {
    let end = run_end(text, clue.end, |byte| byte.is_ascii_hexdigit());
    let before = clue.start.checked_sub(1).map(|before| text.as_bytes()[before]);
    let found = text[clue.clone()] == *kind.prefix()
        && before.is_none_or(|byte| !byte.is_ascii_alphanumeric())
        && end - clue.end >= CREDENTIAL_DIGITS_MIN;
    found.then_some(Span { start: clue.start, end, replacement: OWN })
}

/// Finds all credentials of a kind that the gate made.
pub(super) fn own(text: &str, kind: Credential) -> impl Iterator<Item = Span> {
    let clues = text.match_indices(kind.prefix());
    clues.filter_map(move |(at, prefix)| credential(text, kind, at..at + prefix.len()))
}

/// The clues to tokens of Okta, which begin with `00` and one character more. A third zero is left
/// out: numbers are padded with zeros, and each place of such a text would be a clue.
pub(super) fn okta_clues() -> impl Iterator<Item = String> {
    ('a'..='z').chain('1'..='9').chain(['_', '-']).map(|third| format!("00{third}"))
}

/// Matches `00` and forty characters that look random. A number or a hash is not in both cases.
pub(super) fn okta(text: &str, clue: Range<usize>) -> Option<Span> {
    let token = |byte: u8| Run::Hyphenated.holds(byte);
    if clue.start > 0 && token(text.as_bytes()[clue.start - 1]) {
        return None;
    }
    let end = run_end(text, clue.start, token);
    let run = &text[clue.start..end];
    let found = run.len() == OKTA_BYTES
        && run.bytes().any(|byte| byte.is_ascii_uppercase())
        && run.bytes().any(|byte| byte.is_ascii_lowercase())
        && looks_random(run);
    found.then_some(Span { start: clue.start, end, replacement: REDACTED })
}

/// Matches the lines of a private key of PuTTY, to its checksum or the end of the text.
fn putty(text: &str, clue: Range<usize>) -> Option<Span> {
    let rest = &text[clue.end..];
    let number = rest.trim_start_matches(' ');
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let end = rest.find("Private-MAC:").map_or(text.len(), |mac| {
        let mac = clue.end + mac + "Private-MAC:".len();
        run_end(text, run_end(text, mac, |byte| byte == b' '), |byte| byte.is_ascii_hexdigit())
    });
    Some(Span { start: clue.start, end, replacement: PEM })
}

/// Matches the hash of a password as `htpasswd` and `/etc/shadow` hold it, after its user's name.
fn password_hash(text: &str, word: &str, clue: Range<usize>) -> Option<Span> {
    if text[clue.clone()] != *word {
        return None;
    }
    let part = |byte: u8| byte.is_ascii_alphanumeric() || b"./+=$,_-".contains(&byte);
    let end =
        run_end(&text[..floor(text, text.len().min(clue.end + AFTER_BYTES_MAX))], clue.end, part);
    let run = text[clue.end..end].trim_end_matches(['.', ',', '-']);
    let hash = run.rsplit('$').next().unwrap_or(run);
    let found = hash.len() >= HASH_BYTES_MIN && hash.bytes().any(|byte| byte.is_ascii_digit());
    let end = clue.end + run.len();
    found.then_some(Span { start: clue.start, end, replacement: REDACTED })
}

/// Finds client secrets of Azure, which have `Q~` after four characters.
pub(super) fn azure_secrets(text: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let token = |byte: u8| byte == b'~' || dotted(byte);
    let mut from = 0;
    while let Some(found) = memchr::memchr(b'~', &bytes[from..]) {
        let tilde = from + found;
        from = tilde + 1;
        let start = tilde.saturating_sub(5);
        let head = &bytes[start..tilde];
        let end = run_end(text, tilde + 1, token);
        let end = tilde + 1 + text[tilde + 1..end].trim_end_matches('.').len();
        let is_head = head.len() == 5
            && head[4] == b'Q'
            && head[3].is_ascii_digit()
            && head.iter().all(|byte| token(*byte));
        if is_head && (31..=34).contains(&(end - tilde - 1)) && alone(text, start, end) {
            spans.push(Span { start, end, replacement: AZURE });
            from = end;
        }
    }
}

/// Matches an id in base64, six characters and a signature, with dots between them.
fn discord(text: &str, dot: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    let base64 = |byte: u8| Run::Hyphenated.holds(byte);
    let id = bytes[..dot].iter().rev().take(32).take_while(|byte| base64(**byte)).count();
    let (start, end) = (dot - id, run_end(text, dot + 8, base64));
    let found = (23..=28).contains(&id)
        && (27..=42).contains(&(end - dot - 8))
        && bytes[dot + 1..dot + 7].iter().all(|byte| base64(*byte))
        && text[start..].starts_with(['M', 'N', 'O'])
        && looks_random(&text[start..dot]);
    found.then_some(Span { start, end, replacement: DISCORD })
}

/// Matches `s.` and exactly 24 letters and digits.
fn old_vault(text: &str, dot: usize) -> Option<Span> {
    let start = dot - 1;
    let end = run_end(text, dot + 1, |byte| byte.is_ascii_alphanumeric());
    let token = &text[dot + 1..end];
    let found = token.len() == 24 && alone(text, start, end) && looks_random(token);
    found.then_some(Span { start, end, replacement: VAULT })
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
fn pem(text: &str, word: &str, clue: Range<usize>) -> Option<Span> {
    let fence = word.trim_end_matches("BEGIN ");
    let rest = &text[clue.end..];
    let label_end = rest.find(fence.trim_end()).filter(|end| *end <= 64)?;
    if !rest[..label_end].contains("PRIVATE KEY") {
        return None;
    }
    let body = clue.end + label_end + fence.trim_end().len();
    let footer = format!("{fence}END ");
    let end = text[body..].find(&footer).map_or(text.len(), |found| {
        let label = body + found + footer.len();
        let dashes = text[label..].find(fence.trim_end());
        dashes.map_or(text.len(), |dashes| label + dashes + fence.trim_end().len())
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
    let blank = |byte: u8| {
        byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\')
    };
    let rest = &text.as_bytes()[clue.end..];
    let rest = &rest[..rest.len().min(AUTHORITY_BYTES_MAX)];
    // Most addresses have neither a user nor a port.
    let ends = |byte: u8| blank(byte) || matches!(byte, b'/' | b'?' | b'#' | b'@' | b':');
    let host = rest.iter().position(|byte| ends(*byte))?;
    if !matches!(rest[host], b'@' | b':') {
        return None;
    }
    let end = rest.iter().position(|byte| blank(*byte)).unwrap_or(rest.len());
    let word = &text[clue.end..floor(text, clue.end + end)];
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
pub(super) fn run_end(text: &str, from: usize, holds: impl Fn(u8) -> bool) -> usize {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| !holds(*byte)).unwrap_or(rest.len())
}

pub(super) fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
