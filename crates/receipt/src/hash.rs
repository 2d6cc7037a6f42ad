//! A SHA-256 hash as receipts write it: `sha256:` and 64 lowercase hex digits.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use aws_lc_rs::digest::{self, SHA256};
use serde::{Serialize, Serializer};
use text::hex;

const PREFIX: &str = "sha256:";
const BYTES: usize = 32;

/// The part of a file that is read at once.
const READ_BYTES: usize = 64 * 1024;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; BYTES]);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a hash: expected 'sha256:' and 64 lowercase hex digits")]
pub struct NotAHash;

impl Hash {
    pub fn of(bytes: &[u8]) -> Hash {
        let hash = digest::digest(&SHA256, bytes);
        Hash(hash.as_ref().try_into().expect("a SHA-256 hash has 32 bytes"))
    }

    /// Hashes everything that can be read from a file.
    pub fn of_all(mut content: impl Read) -> io::Result<Hash> {
        let mut context = digest::Context::new(&SHA256);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match content.read(&mut buffer)? {
                0 => break,
                count => context.update(&buffer[..count]),
            }
        }
        Ok(Hash(context.finish().as_ref().try_into().expect("a SHA-256 hash has 32 bytes")))
    }

    pub fn as_bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    pub(super) fn write(&self, out: &mut String) {
        out.push_str(PREFIX);
        hex::push(out, &self.0);
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(PREFIX.len() + 2 * BYTES);
        self.write(&mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Hash {
    type Err = NotAHash;

    /// Uppercase digits are rejected: two spellings of one hash would compare as different links.
    fn from_str(text: &str) -> Result<Hash, NotAHash> {
        let digits = text.strip_prefix(PREFIX).ok_or(NotAHash)?;
        let mut bytes = [0; BYTES];
        hex::decode(digits, &mut bytes).ok_or(NotAHash)?;
        if digits.bytes().any(|digit| digit.is_ascii_uppercase()) {
            return Err(NotAHash);
        }
        Ok(Hash(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_as_it_is_written_and_in_no_other_spelling() {
        let hash = Hash::of(b"abc");
        let text = hash.to_string();
        assert_eq!(text, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(text.parse(), Ok(hash));
        for other in [&text.to_uppercase(), &text[7..], &text[..70], &format!("{text}0"), ""] {
            assert_eq!(other.parse::<Hash>(), Err(NotAHash), "{other}");
        }
    }
}
