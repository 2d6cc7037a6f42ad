//! Bytes as hexadecimal digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The bytes whose digits are written at once: those of a hash.
const AT_ONCE: usize = 32;

/// Returns the lowercase digits of some bytes.
pub fn encode(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    push(&mut digits, bytes);
    digits
}

/// Appends the lowercase digits of some bytes to a text. A call writes nine hashes, so they are not
/// pushed one by one.
pub fn push(text: &mut String, bytes: &[u8]) {
    for part in bytes.chunks(AT_ONCE) {
        let mut digits = [0; 2 * AT_ONCE];
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(part) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        text.push_str(str::from_utf8(&digits[..2 * part.len()]).expect("digits are ASCII"));
    }
}

/// Fills `bytes` from exactly as many digits, of either case; `None` if the text is anything else.
pub fn decode(digits: &str, bytes: &mut [u8]) -> Option<()> {
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = first_byte(pair)?;
    }
    Some(())
}

/// Reads the byte whose digits a text begins with.
pub(crate) fn first_byte(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_and_read() {
        let mut bytes = [0; 3];
        assert_eq!(encode(&[0, 0xaf, 9]), "00af09");
        let long: Vec<u8> = (0..=u8::MAX).cycle().take(1_000).collect();
        let expected: String = long.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(encode(&long), expected);
        assert_eq!(decode("00aF09", &mut bytes), Some(()));
        assert_eq!(bytes, [0, 0xaf, 9]);
        for digits in ["00af", "00af0900", "00af0", "00af+9", "00af0 ", "é0af9"] {
            assert_eq!(decode(digits, &mut bytes), None, "{digits}");
        }
    }
}
