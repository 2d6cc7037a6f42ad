//! Percent-encoding, as in addresses (RFC 3986).

use std::fmt::Write;

use super::hex;

/// Replaces every byte that is not plain with an escape. Bytes beyond ASCII cannot be plain.
pub fn encode(text: &str, is_plain: impl Fn(u8) -> bool) -> String {
    let mut written = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        if byte.is_ascii() && is_plain(byte) {
            written.push(char::from(byte));
        } else {
            push_escape(&mut written, byte);
        }
    }
    written
}

/// Appends the escape of a byte.
pub fn push_escape(text: &mut String, byte: u8) {
    write!(text, "%{byte:02X}").expect("a string can be written to");
}

/// Decodes a text; `None` if a `%` begins no escape, or if the bytes are not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    decoded(text, None)
}

/// Decodes a text as [`decode`] does, but keeps a `%` that begins no escape.
pub fn decode_leniently(text: &str) -> Option<String> {
    decoded(text, Some(b'%'))
}

fn decoded(text: &str, stray: Option<u8>) -> Option<String> {
    let mut parts = text.as_bytes().split(|byte| *byte == b'%');
    let mut bytes = Vec::with_capacity(text.len());
    bytes.extend_from_slice(parts.next()?);
    for part in parts {
        let escaped = escaped_byte(part);
        bytes.push(escaped.or(stray)?);
        bytes.extend_from_slice(if escaped.is_some() { &part[2..] } else { part });
    }
    String::from_utf8(bytes).ok()
}

/// Returns the byte whose digits follow a `%`, if the text begins with two.
pub fn escaped_byte(digits: &[u8]) -> Option<u8> {
    hex::first_byte(digits)
}

/// Reports whether a byte never needs an escape.
pub fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plain_is_escaped() {
        assert_eq!(encode("a b/é~", is_unreserved), "a%20b%2F%C3%A9~");
        assert_eq!(encode("é", |_| true), "%C3%A9");
    }

    #[test]
    fn escapes_are_decoded() {
        for (text, strict, lenient) in [
            ("a%20b%c3%A9", Some("a bé"), Some("a bé")),
            ("", Some(""), Some("")),
            ("50%", None, Some("50%")),
            ("%zz%+1%41", None, Some("%zz%+1A")),
            ("%%41", None, Some("%A")),
            ("%ff", None, None),
        ] {
            assert_eq!(decode(text).as_deref(), strict, "{text}");
            assert_eq!(decode_leniently(text).as_deref(), lenient, "{text}");
        }
    }
}
