//! The packed form of a receipt's text, a quarter of its size: names that all receipts have are one
//! byte, and hashes, ids, times and signatures their bytes. Unpacking returns exactly the text.
//!
//! zstd with a dictionary takes half as many instructions again at its fastest level, for twice the
//! bytes.

use std::ops::Range;
use std::sync::LazyLock;

use base64ct::{Base64UrlUnpadded, Encoding as _};
use text::hex;

/// The first byte of the form that this list of phrases belongs to.
const VERSION: u8 = 1;

/// Texts that many receipts have, each of which begins with punctuation or after another one.
const PHRASES: &[&str] = text::words!("packed/phrases.txt");

/// The code of the first phrase. Smaller ones are characters themselves.
const FIRST_PHRASE: u8 = 0x80;
const HASH: u8 = 0xf8;
const ID: u8 = 0xf9;
const SIGNATURE: u8 = 0xfa;
const TIME: u8 = 0xfb;
/// A word, with its length in the next byte.
const WORD: u8 = 0xfc;
/// A word that came before, with its number in the next byte.
const REPEATED: u8 = 0xfd;
/// A byte that is no ASCII character, itself in the next byte.
const BYTE: u8 = 0xfe;

const _: () = assert!(PHRASES.len() <= (HASH - FIRST_PHRASE) as usize, "each phrase has a code");

/// Shorter words are written as they are.
const WORD_MIN: usize = 16;

/// Words that can be repeated, so that a number is one byte.
const WORDS_MAX: usize = 256;

/// More than any receipt has, so that a damaged row fills no memory.
const UNPACKED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The lengths of a hash in hexadecimal digits, of an id, of a signature and of a time.
const HASH_LENGTH: usize = 64;
const ID_LENGTH: usize = 36;
const SIGNATURE_LENGTH: usize = 87;
const TIME_LENGTH: usize = 24;

const ID_DASHES: [usize; 4] = [8, 13, 18, 23];
/// The length of the beginning of a time, up to the hour.
const HOUR_LENGTH: usize = 13;

const TIME_FORM: &[u8; TIME_LENGTH] = b"0000-00-00T00:00:00.000Z";

/// The codes of phrases by their first characters, longest first.
static PHRASES_BY_KEY: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut codes = vec![Vec::new(); KEYS];
    for (code, phrase) in (FIRST_PHRASE..).zip(PHRASES) {
        codes[key(phrase.as_bytes()).expect("a phrase has at least as many characters")].push(code);
    }
    for codes in &mut codes {
        codes.sort_by_key(|code| std::cmp::Reverse(phrase(*code).map_or(0, str::len)));
    }
    codes
});

const KEYS: usize = 1 << 10;

/// Returns the place of a phrase in the table, from its first characters.
fn key(text: &[u8]) -> Option<usize> {
    let first = text.first_chunk::<4>()?;
    Some((u32::from_le_bytes(*first).wrapping_mul(0x9e37_79b1) >> 22) as usize)
}

fn phrase(code: u8) -> Option<&'static str> {
    PHRASES.get(usize::from(code.checked_sub(FIRST_PHRASE)?)).copied()
}

/// Packs the text of a receipt; any other text can be packed too.
pub fn pack(text: &str) -> Vec<u8> {
    let mut packing = Packing { rest: text.as_bytes(), words: Vec::new(), out: Vec::new() };
    packing.out.reserve(text.len() / 2);
    packing.out.push(VERSION);
    while !packing.rest.is_empty() {
        packing.step();
    }
    packing.out
}

/// A text that is being packed.
struct Packing<'a> {
    rest: &'a [u8],
    words: Vec<&'a [u8]>,
    out: Vec<u8>,
}

impl<'a> Packing<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn phrase(&mut self) -> bool {
        let Some(codes) = key(self.rest).map(|key| &PHRASES_BY_KEY[key]) else { return false };
        for code in codes {
            let phrase = phrase(*code).unwrap_or_default().as_bytes();
            if self.rest.starts_with(phrase) {
                self.take(phrase.len());
                self.out.push(*code);
                return true;
            }
        }
        false
    }

    /// Packs a phrase, a word or a character.
    fn step(&mut self) {
        if self.phrase() {
            return;
        }
        let length = self.rest.iter().position(|byte| !IS_OF_WORD[usize::from(*byte)]);
        let length = length.unwrap_or(self.rest.len());
        if let Some((time, digits)) = self.time(length) {
            self.take(TIME_LENGTH);
            if !self.repeated(time) {
                self.out.push(TIME);
                self.out.extend_from_slice(&digits.to_be_bytes());
            }
        } else if length == 0 {
            let byte = self.take(1)[0];
            if !byte.is_ascii() {
                self.out.push(BYTE);
            }
            self.out.push(byte);
        } else if length < WORD_MIN || length > usize::from(u8::MAX) {
            let word = self.take(length);
            self.out.extend_from_slice(word);
        } else {
            let word = self.take(length);
            if !self.repeated(word) && !self.formed(word) {
                self.out.extend_from_slice(&[WORD, length as u8]);
                self.out.extend_from_slice(word);
            }
        }
    }

    /// Returns the time that comes next, after whose day and hour a word of this length ends.
    fn time(&self, length: usize) -> Option<(&'a [u8], u64)> {
        let time = self.rest.first_chunk::<TIME_LENGTH>().filter(|_| length == HOUR_LENGTH)?;
        Some((time, time_digits(time)?))
    }

    /// Packs a word that came before; keeps any other.
    fn repeated(&mut self, word: &'a [u8]) -> bool {
        let known = self.words.iter().take(WORDS_MAX).position(|known| *known == word);
        match known {
            Some(number) => self.out.extend_from_slice(&[REPEATED, number as u8]),
            None => self.words.push(word),
        }
        known.is_some()
    }

    /// Packs a hash, an id or a signature as its bytes.
    fn formed(&mut self, word: &[u8]) -> bool {
        let (mut hash, mut id, mut signature) = ([0; 32], [0; 16], [0; 64]);
        let (code, bytes): (u8, &[u8]) = match word.len() {
            HASH_LENGTH if read_digits(word, &mut hash) => (HASH, &hash),
            ID_LENGTH if read_id(word, &mut id) => (ID, &id),
            SIGNATURE_LENGTH if read_signature(word, &mut signature) => (SIGNATURE, &signature),
            _ => return false,
        };
        self.out.push(code);
        self.out.extend_from_slice(bytes);
        true
    }
}

/// The characters of words.
const IS_OF_WORD: [bool; 256] = {
    let mut is_of_word = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let is = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'-' || byte as u8 == b'_';
        is_of_word[byte] = is;
        byte += 1;
    }
    is_of_word
};

/// The values of lowercase hexadecimal digits, and `NO_DIGIT`.
const DIGITS: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

const NO_DIGIT: u8 = 0x80;

/// Returns the digits of a time as a number, if it has the form that receipts use.
fn time_digits(time: &[u8; TIME_LENGTH]) -> Option<u64> {
    time.iter().zip(TIME_FORM).try_fold(0_u64, |digits, (byte, form)| match form {
        b'0' => byte.is_ascii_digit().then(|| digits * 10 + u64::from(byte - b'0')),
        mark => (byte == mark).then_some(digits),
    })
}

fn write_time(mut digits: u64) -> [u8; TIME_LENGTH] {
    let mut time = *TIME_FORM;
    for byte in time.iter_mut().rev().filter(|byte| **byte == b'0') {
        *byte += (digits % 10) as u8;
        digits /= 10;
    }
    time
}

/// Reads lowercase digits, twice as many as there are bytes.
fn read_digits(digits: &[u8], bytes: &mut [u8]) -> bool {
    let mut seen = 0;
    for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
        let [high, low] = pair.map(|digit| DIGITS[usize::from(digit)]);
        seen |= high | low;
        *byte = high << 4 | (low & 15);
    }
    seen & NO_DIGIT == 0
}

fn read_id(id: &[u8], bytes: &mut [u8; 16]) -> bool {
    let mut digits = [0; 32];
    let mut at = 0;
    for part in id.split(|byte| *byte == b'-') {
        let Some(place) = digits.get_mut(at..at + part.len()) else { return false };
        place.copy_from_slice(part);
        at += part.len();
    }
    let is_formed = ID_DASHES.iter().all(|at| id[*at] == b'-');
    is_formed && at == digits.len() && read_digits(&digits, bytes)
}

fn write_id(bytes: &[u8]) -> String {
    let mut id = hex::encode(bytes);
    for at in ID_DASHES {
        id.insert(at, '-');
    }
    id
}

/// Reads a signature in multibase; only the spelling that it is written in again.
fn read_signature(word: &[u8], bytes: &mut [u8; 64]) -> bool {
    let encoded = word.strip_prefix(b"u");
    encoded.is_some_and(|encoded| Base64UrlUnpadded::decode(encoded, bytes).is_ok())
}

/// Unpacks a text; `None` if these bytes are not a packed text.
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let (version, rest) = packed.split_first()?;
    let out = Vec::with_capacity(4 * packed.len());
    let mut unpacking = Unpacking { rest, words: Vec::new(), out };
    while (*version == VERSION) && !unpacking.rest.is_empty() {
        unpacking.step()?;
    }
    (*version == VERSION).then_some(unpacking.out)
}

/// A text that is being unpacked.
struct Unpacking<'a> {
    rest: &'a [u8],
    words: Vec<Range<usize>>,
    out: Vec<u8>,
}

impl<'a> Unpacking<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// Unpacks what the next code says.
    fn step(&mut self) -> Option<()> {
        match self.byte()? {
            HASH => {
                let digits = hex::encode(self.take(32)?);
                self.add_word(digits.as_bytes());
            }
            ID => {
                let id = write_id(self.take(16)?);
                self.add_word(id.as_bytes());
            }
            SIGNATURE => {
                let encoded = Base64UrlUnpadded::encode_string(self.take(64)?);
                self.add_word(format!("u{encoded}").as_bytes());
            }
            TIME => {
                let digits = u64::from_be_bytes(*self.take(8)?.first_chunk()?);
                self.add_word(&write_time(digits));
            }
            WORD => {
                let length = self.byte()?;
                let word = self.take(length.into())?;
                self.add_word(word);
            }
            REPEATED => {
                let number = self.byte()?;
                let word = self.words.get(usize::from(number))?.clone();
                self.out.extend_from_within(word);
            }
            BYTE => {
                let byte = self.byte()?;
                self.out.push(byte);
            }
            character if character.is_ascii() => self.out.push(character),
            code => self.out.extend(phrase(code)?.as_bytes()),
        }
        (self.out.len() <= UNPACKED_BYTES_MAX).then_some(())
    }

    fn add_word(&mut self, word: &[u8]) {
        self.words.push(self.out.len()..self.out.len() + word.len());
        self.out.extend(word);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str) -> usize {
        let packed = pack(text);
        let unpacked = unpack(&packed).map(|text| String::from_utf8(text).unwrap());
        assert_eq!(unpacked.as_deref(), Some(text));
        packed.len()
    }

    #[test]
    fn receipts_take_a_third_of_their_text() {
        let hash = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let (id, did) = ("019a9d11-2233-7abc-8def-0123456789ab", "z6MkhaXgBZDvotDkL5257faiztiGiC2");
        let at = "2026-11-19T19:54:29.123Z";
        let text = format!(
            r#"{{"@context":["https://www.w3.org/ns/credentials/v2","https://agentreceipts.ai/context/v2"],"credentialSubject":{{"action":{{"id":"act_{id}","parameters_hash":"{}","risk_level":"low","timestamp":"{at}","type":"filesystem.file.read"}},"chain":{{"chain_id":"{id}","previous_receipt_hash":"{}","sequence":7}},"outcome":{{"status":"success"}},"principal":{{"id":"token:default"}}}},"id":"urn:receipt:{id}","issuanceDate":"{at}","issuer":{{"id":"did:key:{did}","name":"täst"}},"proof":{{"created":"{at}","proofPurpose":"assertionMethod","proofValue":"u{}","type":"Ed25519Signature2020","verificationMethod":"did:key:{did}#{did}"}},"type":["VerifiableCredential","AgentReceipt"],"version":"0.5.0"}}"#,
            hash("a"),
            hash("0"),
            "A".repeat(86),
        );
        assert!(check(&text) * 3 < text.len());
    }

    #[test]
    fn words_that_only_resemble_others_come_back_as_they_were() {
        for text in [
            "",
            "é",
            "\"id\":\"ACT_",
            &"A".repeat(64),
            &"a".repeat(64),
            &"a".repeat(255),
            &"a".repeat(256),
            &format!("u{}_", "A".repeat(85)),
            &format!("u{}z", "A".repeat(85)),
            "019a9d11-2233-7abc-8def-0123456789AB",
            "019a9d11-2233-7abc-8def-012345678-ab",
            "2026-11-19T19:54:29.123Z 2026-11-19T19:54:29.123Z 2026-11-19T19:54:29.1234",
            "9999-99-99T99:99:99.999Z",
        ] {
            check(text);
            check(&format!("\"{text}\",\"{text}\""));
        }
    }

    #[test]
    fn bytes_that_are_no_packed_text_are_refused() {
        for bytes in [&b""[..], b"\x02a", b"\x01\xf8abc", b"\x01\xfd\x00", b"\x01\xfe", b"\x01\xff"]
        {
            assert_eq!(unpack(bytes), None, "{bytes:?}");
        }
    }

    /// The list is part of the stored form: one that differs needs another version.
    #[test]
    fn the_phrases_of_this_version_stay() {
        let all = crate::Hash::of(PHRASES.join("\n").as_bytes()).to_string();
        assert_eq!(
            (VERSION, &*all),
            (1, "sha256:dd7dbb8660abfde76d2670c67ab0c4b54a5dd46e857097849f97c7c767e830c3")
        );
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in "(\\PC|[a-f0-9]{60,66}|[A-Za-z0-9_-]{10,90}|\",\"server\":\"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}.[0-9]{3}Z){0,20}") {
            check(&text);
            check(&format!("{text}{text}"));
        }

        #[test]
        fn any_bytes_are_unpacked_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(&bytes);
            let _ = unpack(&[&[VERSION][..], &bytes].concat());
        }
    }
}
