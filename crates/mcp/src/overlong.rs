//! Finds the id of a message that is too long to keep, or that is not valid: the request that it
//! answers can then fail at once, instead of waiting for its timeout.

use crate::id::Id;
use crate::limits;

/// The bytes of a member's name that are kept; longer ones are none of ours.
const NAME_BYTES_MAX: usize = 16;

/// A message of which only the outermost members are noticed.
#[derive(Default)]
pub(crate) struct OverlongMessage {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The part that comes next within the outermost object.
    next: Expected,
    /// The name of the current outermost member, cut.
    name: Vec<u8>,
    /// The value of `id` as text.
    id: Vec<u8>,
    has_method: bool,
    has_outcome: bool,
    is_done: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Expected {
    #[default]
    Name,
    Value,
}

/// Returns the id of the request that a text answers, which need not be a valid message. Its end may
/// be missing, but a line that only quotes a message answers nothing.
pub(crate) fn answered(text: &[u8]) -> Option<Id> {
    if text.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let mut message = OverlongMessage::default();
    message.push(text);
    let is_answer = message.is_done || message.has_outcome;
    let has_whole_id = message.is_done || message.next == Expected::Name || message.name != b"id";
    if message.has_method || !is_answer || !has_whole_id {
        return None;
    }
    serde_json::from_slice(&message.id).ok()
}

impl OverlongMessage {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.take(*byte);
        }
    }

    /// Returns the id if the message was a response.
    pub(crate) fn answered(&self) -> Option<Id> {
        if self.has_method || !self.is_done {
            return None;
        }
        serde_json::from_slice(&self.id).ok()
    }

    fn take(&mut self, byte: u8) {
        if self.is_done {
            return;
        }
        if self.in_string {
            self.take_in_string(byte);
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.is_name() {
                    self.name.clear();
                } else {
                    self.keep(byte);
                }
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_done = self.depth == 0;
            }
            b':' if self.is_name() => self.begin_value(),
            b',' if self.depth == 1 => self.next = Expected::Name,
            _ => self.keep(byte),
        }
    }

    fn take_in_string(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => {
                self.in_string = false;
                if self.is_name() {
                    return;
                }
            }
            _ => {}
        }
        if self.is_name() {
            if self.name.len() < NAME_BYTES_MAX {
                self.name.push(byte);
            }
        } else {
            self.keep(byte);
        }
    }

    fn is_name(&self) -> bool {
        self.depth == 1 && self.next == Expected::Name
    }

    fn begin_value(&mut self) {
        self.next = Expected::Value;
        self.has_method |= self.name == b"method";
        self.has_outcome |= self.name == b"result" || self.name == b"error";
        if self.name == b"id" {
            self.id.clear();
        }
    }

    /// Keeps a byte of the id's value.
    fn keep(&mut self, byte: u8) {
        let is_id = self.depth == 1 && self.next == Expected::Value && self.name == b"id";
        if is_id && self.id.len() <= limits::ID_BYTES_MAX {
            self.id.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: &str) -> Option<Id> {
        let mut whole = OverlongMessage::default();
        whole.push(text.as_bytes());
        let mut pieces = OverlongMessage::default();
        for byte in text.as_bytes() {
            pieces.push(&[*byte]);
        }
        assert_eq!(whole.answered(), pieces.answered(), "{text}");
        whole.answered()
    }

    #[test]
    fn half_an_answer_names_its_request_and_half_an_id_names_none() {
        let whole = r#"{"result":{"id":8},"id":71}"#;
        for length in 0..whole.len() {
            assert_eq!(super::answered(&whole.as_bytes()[..length]), None, "{length}");
        }
        assert_eq!(super::answered(whole.as_bytes()), Some(Id::Number(71)));
        assert_eq!(super::answered(br#"{"id":71,"result":{"te"#), Some(Id::Number(71)));
    }

    #[test]
    fn only_the_id_of_the_outermost_object_counts() {
        let seven = Some(Id::Number(7));
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"id":8,"x":"}\",\"id\":9"}}"#,
            r#"{"result":{"content":[{"id":8},["id",9]]}, "id" : 7 }"#,
            r#"{"result":"\\","id":7}"#,
            r#"{"error":{"code":1,"message":"id"},"id":7}"#,
        ] {
            assert_eq!(answered(text), seven, "{text}");
        }
        assert_eq!(answered(r#"{"id":"a\"b","result":1}"#), Some(Id::Text("a\"b".into())));
        for text in [
            r#"{"id":7,"method":"ping"}"#,
            r#"{"method":"x","params":{"id":7}}"#,
            r#"{"id":7,"result":1"#,
            r#"{"id":null,"result":1}"#,
            r#"{"id":{"id":7},"result":1}"#,
            r#"["id",7]"#,
            "noise",
            "",
        ] {
            assert_eq!(answered(text), None, "{text}");
        }
    }
}
