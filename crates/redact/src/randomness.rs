//! Judges whether a value looks like a secret where its key leaves that open: `auth` may hold a
//! token or the word `none`.

/// The shortest value that can be told from a word.
const BYTES_MIN: usize = 12;

/// Data rather than a credential.
const BYTES_MAX: usize = 4096;

/// The share of neighbours that differ in kind (letter, digit, capital after a small letter). In a
/// random text it is about 45 %, in names and paths made of words below 20 %.
const CHANGES_PERCENT_MIN: usize = 25;

/// A random text of 16 letters and digits has about 3.7 bits a character; repetitions have less.
const BITS_MIN: f64 = 2.8;

/// Reports whether the value is a token rather than a word, a name, a path, a version or a UUID.
pub(super) fn looks_random(value: &str) -> bool {
    let value = value.trim_end_matches('=');
    if !(BYTES_MIN..=BYTES_MAX).contains(&value.len()) || is_uuid(value) {
        return false;
    }
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"+/_-.~%".contains(&byte);
    if !value.bytes().all(token) || !value.bytes().any(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let pairs = value.as_bytes().windows(2);
    let changes = pairs.filter(|pair| differ(pair[0], pair[1])).count();
    changes * 100 >= CHANGES_PERCENT_MIN * value.len() && bits(value) >= BITS_MIN
}

/// Reports whether the value looks like a password that a person chose: no word, number or path.
pub(super) fn looks_chosen(value: &str) -> bool {
    if !(6..=128).contains(&value.len()) || !value.is_ascii() || is_uuid(value) {
        return false;
    }
    let has = |what: fn(&u8) -> bool| value.as_bytes().iter().any(what);
    let letter = has(u8::is_ascii_alphabetic);
    let odd = |byte: &u8| b"!@#$%^&*+?".contains(byte);
    let foreign = |byte: &u8| byte.is_ascii_whitespace() || b"(){}[]<>|\"'`/\\:,;=".contains(byte);
    let named = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_name = value.contains('_') && value.bytes().all(named);
    let version = value.bytes().filter(|byte| *byte == b'.').count() > 1;
    letter && (has(u8::is_ascii_digit) || has(odd)) && !has(foreign) && !version && !is_name
}

/// Reports whether the value is `user:password`, plain or in base64, as in Docker's `auth`.
pub(super) fn looks_like_login(value: &str) -> bool {
    use base64::Engine;
    let is_login = |text: &str| {
        let (user, password) = text.split_once(':').unwrap_or_default();
        let name = |c: char| c.is_ascii_alphanumeric() || "_-.@+$<>".contains(c);
        !user.is_empty()
            && user.chars().all(name)
            && password.len() >= 2
            && !password.starts_with("//")
            && !password.contains(char::is_whitespace)
    };
    let decoded = base64::engine::general_purpose::STANDARD.decode(value).ok();
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    is_login(value) || decoded.is_some_and(|text| is_login(&text))
}

pub(super) fn is_uuid(value: &str) -> bool {
    let groups = value.split('-').map(str::len);
    value.len() == 36
        && groups.eq([8, 4, 4, 4, 12])
        && value.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn differ(one: u8, next: u8) -> bool {
    (one.is_ascii_lowercase() && next.is_ascii_uppercase())
        || (one.is_ascii_digit() && next.is_ascii_alphabetic())
        || (one.is_ascii_alphabetic() && next.is_ascii_digit())
}

/// Returns the entropy of a character, in bits.
fn bits(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = value.len() as f64;
    let share = |count: &u32| f64::from(*count) / length;
    counts.iter().filter(|count| **count > 0).map(share).map(|share| -share * share.log2()).sum()
}
