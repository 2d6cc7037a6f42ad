//! Credentials in base64, as manifests, environment files and headers hold them. Only the first
//! characters of what was encoded are searched for: an encoded secret has no others that are known.

use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::shapes::run_end;
use crate::Credential;

/// Text that begins with one of these is a credential, or begins with one.
const BEGINNINGS: &[&str] = &[
    "token ",
    "Token ",
    "bearer ",
    "Bearer ",
    "Basic ",
    "basic ",
    "Authorization",
    "authorization",
    "password",
    "Password",
    "machine ",
    "{\"auths\"",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "sk-ant-",
    "sk-proj-",
    "sk_live_",
    "AKIA",
    "AIza",
    "-----BEGIN ",
];

/// Words that stand before a credential in a header.
const SCHEMES: &[&str] = &["token ", "bearer ", "basic "];

/// The shortest credential after such a word.
const CREDENTIAL_BYTES_MIN: usize = 8;

/// The characters that are decoded, a multiple of four: the beginning tells what it is.
const DECODED_CHARS_MAX: usize = 512;

/// The lengths of lines in which programs write base64.
const LINE_CHARS: [usize; 2] = [64, 76];

static ENGINE: LazyLock<GeneralPurpose> = LazyLock::new(|| {
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(&STANDARD, config)
});

/// A run of base64 that begins as a credential would.
pub(super) struct Encoding {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The beginning of what was encoded.
    pub(super) decoded: String,
}

/// Returns the part of the beginnings in base64 that the next byte does not change.
pub(super) fn clues() -> impl Iterator<Item = String> {
    let own = Credential::ALL.iter().map(|kind| kind.prefix());
    BEGINNINGS.iter().copied().chain(own).map(|text| {
        let mut encoded = ENGINE.encode(text);
        encoded.truncate(text.len() * 8 / 6);
        encoded
    })
}

pub(super) fn find(text: &str, clue: Range<usize>) -> Option<Encoding> {
    let bytes = text.as_bytes();
    // A run has one beginning, so that none is decoded twice. In a path each segment is one.
    let before = clue.start.checked_sub(1).map(|before| bytes[before]);
    let in_path = before == Some(b'/');
    let is_digit = |byte: u8| is_digit(byte) && !(in_path && byte == b'/');
    if before.is_some_and(is_digit) {
        return None;
    }
    let mut line = clue.start;
    let mut end = run_end(text, line, is_digit);
    while LINE_CHARS.contains(&(end - line)) {
        let next = match &bytes[end..] {
            [b'\r', b'\n', ..] => end + 2,
            [b'\n', ..] => end + 1,
            [b'\\', b'n', ..] => end + 2,
            _ => break,
        };
        line = run_end(text, next, |byte| byte == b' ');
        end = run_end(text, line, is_digit).max(end);
    }
    let first = run_end(text, clue.start, is_digit).min(clue.start + DECODED_CHARS_MAX);
    let standard = text[clue.start..first].replace('-', "+").replace('_', "/");
    // A single character is left over where text follows without a gap.
    let whole = standard.len() - usize::from(standard.len() % 4 == 1);
    let decoded = ENGINE.decode(&standard[..whole]).ok()?;
    let end = end + text[end..].bytes().take(2).take_while(|byte| *byte == b'=').count();
    Some(Encoding { start: clue.start, end, decoded: String::from_utf8_lossy(&decoded).into() })
}

/// Reports whether the text is a scheme and its credential. In prose `token` is a word.
pub(super) fn is_credential(decoded: &str) -> bool {
    SCHEMES.iter().any(|scheme| {
        let start = decoded.get(..scheme.len());
        let rest = start.filter(|start| start.eq_ignore_ascii_case(scheme));
        let word = rest.and_then(|_| decoded[scheme.len()..].split_whitespace().next());
        word.is_some_and(|word| {
            let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
            word.len() >= CREDENTIAL_BYTES_MIN && has_digit
        })
    })
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}
