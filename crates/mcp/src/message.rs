//! The JSON-RPC envelope. Params, results and error data stay the text that was received; the
//! envelope itself is strict: duplicate keys, and keys that differ from a known key only in case,
//! are rejected, because two parsers could read them as different messages.

use std::fmt::{self, Write};

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::{ErrorObject, INVALID_REQUEST, PARSE_ERROR};
use crate::fault::explain;
use crate::id::Id;
use crate::limits::{ANSWER_FAULT_BYTES_MAX, ID_BYTES_MAX};
use crate::object::{Name, quote};
use crate::overlong;

pub use crate::raw::{Raw, raw, to_raw};

#[derive(Clone, Debug)]
pub enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

#[derive(Clone, Debug)]
pub struct Request {
    pub id: Id,
    pub method: String,
    pub params: Option<Raw>,
}

#[derive(Clone, Debug)]
pub struct Notification {
    pub method: String,
    pub params: Option<Raw>,
}

#[derive(Clone, Debug)]
pub struct Response {
    /// `None` if the other side could not read the id of the message it responds to.
    pub id: Option<Id>,
    pub outcome: Result<Raw, ErrorObject>,
}

/// A frame that is not a message: the error to respond with, and the id if it could be read.
#[derive(Debug)]
pub struct BadFrame {
    pub id: Option<Id>,
    pub error: ErrorObject,
    answered: Option<Id>,
}

impl BadFrame {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        BadFrame { id: None, error: ErrorObject::new(code, message), answered: None }
    }

    /// Adds the id to respond to.
    #[must_use]
    pub fn with_id(self, id: Option<Id>) -> Self {
        BadFrame { id, ..self }
    }

    /// Returns the request that it answers, if that is recognizable.
    pub fn answered(&self) -> Option<&Id> {
        self.answered.as_ref()
    }

    /// Returns why it is not used as an answer.
    pub fn fault(&self) -> String {
        let words = &self.error.message;
        let end = words.floor_char_boundary(ANSWER_FAULT_BYTES_MAX);
        format!("the answer is not a valid message: {}", &words[..end])
    }

    /// Adds the request that the text of the frame answers.
    fn of_text(self, text: &[u8]) -> Self {
        BadFrame { answered: overlong::answered(text), ..self }
    }

    pub fn into_response(self) -> Response {
        Response { id: self.id, outcome: Err(self.error) }
    }
}

/// Said of a batch in another version of the protocol.
pub const BATCH_FORBIDDEN: &str = "batches are only allowed in protocol 2025-03-26";

/// One frame: a message, or a batch of them (2025-03-26).
#[derive(Debug)]
pub enum Frame {
    Single(Message),
    Batch(Vec<Result<Message, BadFrame>>),
}

impl Frame {
    pub fn parse(bytes: &[u8]) -> Result<Self, BadFrame> {
        let text = std::str::from_utf8(bytes).map_err(|_| {
            BadFrame::new(PARSE_ERROR, "parse error: not valid UTF-8").of_text(bytes)
        })?;
        if !text.trim_start().starts_with('[') {
            return Message::parse(text).map(Frame::Single);
        }
        let parts: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| {
            BadFrame::new(PARSE_ERROR, format!("parse error: {}", explain(&error)))
        })?;
        match parts.len() {
            0 => Err(BadFrame::new(INVALID_REQUEST, "invalid request: empty batch")),
            n if n > crate::limits::BATCH_MESSAGES_MAX => Err(BadFrame::new(
                INVALID_REQUEST,
                format!("invalid request: batch of {n} is too large"),
            )),
            _ => Ok(Frame::Batch(parts.iter().map(|part| Message::parse(part.get())).collect())),
        }
    }
}

impl Message {
    pub fn parse(text: &str) -> Result<Self, BadFrame> {
        Message::read(text).map_err(|bad| bad.of_text(text.as_bytes()))
    }

    fn read(text: &str) -> Result<Self, BadFrame> {
        let envelope: MessageEnvelope<'_> = serde_json::from_str(text).map_err(|error| {
            let code = if error.is_data() { INVALID_REQUEST } else { PARSE_ERROR };
            let kind = if error.is_data() { "invalid request" } else { "parse error" };
            BadFrame::new(code, format!("{kind}: {}", explain(&error)))
        })?;
        envelope.check()
    }

    /// Formats the message as one line of JSON, without the newline.
    pub fn to_line(&self) -> Vec<u8> {
        let mut text = String::with_capacity(self.size_about());
        text.push_str(r#"{"jsonrpc":"2.0""#);
        match self {
            Message::Request(Request { id, method, params }) => {
                push_id(&mut text, Some(id));
                push_call(&mut text, method, params.as_deref());
            }
            Message::Notification(Notification { method, params }) => {
                push_call(&mut text, method, params.as_deref());
            }
            Message::Response(Response { id, outcome }) => {
                push_id(&mut text, id.as_ref());
                match outcome {
                    Ok(result) => push_member(&mut text, "result", result.get()),
                    Err(error) => push_member(&mut text, "error", error.text().get()),
                }
            }
        }
        text.push('}');
        one_line(text)
    }

    pub(crate) fn size_about(&self) -> usize {
        match self {
            Message::Request(Request { method, params, .. })
            | Message::Notification(Notification { method, params }) => {
                ENVELOPE_BYTES
                    + method.len()
                    + params.as_ref().map_or(0, |params| params.get().len())
            }
            Message::Response(response) => response.size_about(),
        }
    }
}

/// The usual size of a message without its method, params, result or error.
const ENVELOPE_BYTES: usize = 96;

impl Response {
    pub(crate) fn size_about(&self) -> usize {
        let id = match &self.id {
            Some(Id::Text(id)) => id.len(),
            Some(Id::Number(_)) | None => 0,
        };
        let outcome = match &self.outcome {
            Ok(result) => result.get().len(),
            Err(error) => error.text().get().len(),
        };
        ENVELOPE_BYTES + id + outcome
    }
}

impl From<Request> for Message {
    fn from(request: Request) -> Self {
        Message::Request(request)
    }
}

impl From<Notification> for Message {
    fn from(notification: Notification) -> Self {
        Message::Notification(notification)
    }
}

impl From<Response> for Message {
    fn from(response: Response) -> Self {
        Message::Response(response)
    }
}

impl Request {
    /// Parses the request's params as a typed value; absent params count as an empty object.
    pub fn params<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ErrorObject> {
        let text = self.params.as_deref().map_or("{}", RawValue::get);
        serde_json::from_str(text).map_err(|error| {
            ErrorObject::invalid_params(format!("{}: {}", self.method, explain(&error)))
        })
    }
}

fn push_id(text: &mut String, id: Option<&Id>) {
    match id {
        Some(Id::Number(number)) => {
            text.push_str(",\"id\":");
            let _ = write!(text, "{number}");
        }
        Some(Id::Text(id)) => push_member(text, "id", &quote(id)),
        None => push_member(text, "id", "null"),
    }
}

fn push_call(text: &mut String, method: &str, params: Option<&RawValue>) {
    if method.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_')) {
        push_member(text, "method", "\"");
        text.push_str(method);
        text.push('"');
    } else {
        push_member(text, "method", &quote(method))
    }
    if let Some(params) = params {
        push_member(text, "params", params.get());
    }
}

fn push_member(text: &mut String, name: &str, json: &str) {
    text.push_str(",\"");
    text.push_str(name);
    text.push_str("\":");
    text.push_str(json);
}

/// Line breaks in JSON text can only be whitespace between tokens, so a space is equivalent.
fn one_line(text: String) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    // Most texts have none, and a search for one byte scans many at a time.
    for end in [b'\n', b'\r'] {
        if bytes.contains(&end) {
            bytes.iter_mut().filter(|byte| **byte == end).for_each(|byte| *byte = b' ');
        }
    }
    bytes
}

#[derive(Default)]
struct MessageEnvelope<'a> {
    jsonrpc: Option<Name<'a>>,
    id: Option<&'a RawValue>,
    method: Option<String>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

const KEYS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

impl MessageEnvelope<'_> {
    fn check(self) -> Result<Message, BadFrame> {
        let id = match self.id.map(RawValue::get) {
            None => None,
            Some("null") if self.error.is_some() => None,
            Some(text) if text.len() > ID_BYTES_MAX => {
                let message = format!("invalid request: id over {ID_BYTES_MAX} bytes");
                return Err(BadFrame::new(INVALID_REQUEST, message));
            }
            Some(text) => Some(serde_json::from_str::<Id>(text).map_err(|_| {
                BadFrame::new(INVALID_REQUEST, "invalid request: id must be a string or an integer")
            })?),
        };
        let refuse = |id: &Option<Id>, why: &str| {
            BadFrame::new(INVALID_REQUEST, format!("invalid request: {why}")).with_id(id.clone())
        };
        if self.jsonrpc.is_none_or(|version| version.0 != "2.0") {
            return Err(refuse(&id, "jsonrpc must be \"2.0\""));
        }
        let params = self.params.map(ToOwned::to_owned);
        if params.as_ref().is_some_and(|params| !params.get().starts_with(['{', '['])) {
            return Err(refuse(&id, "params must be an object"));
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => Ok(match id {
                Some(id) => Request { id, method, params }.into(),
                None => Notification { method, params }.into(),
            }),
            (None, Some(result), None) => match id {
                Some(id) => Ok(Response { id: Some(id), outcome: Ok(result.to_owned()) }.into()),
                None => Err(refuse(&None, "a result without an id")),
            },
            (None, None, Some(error)) => match ErrorObject::parse(error) {
                Ok(error) => Ok(Response { id, outcome: Err(error) }.into()),
                Err(fault) => Err(refuse(&id, &format!("error: {}", explain(&fault)))),
            },
            _ => Err(refuse(&id, "exactly one of method, result and error is required")),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MessageEnvelope<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = MessageEnvelope<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON-RPC message object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut envelope = MessageEnvelope::default();
                let mut seen = [false; KEYS.len()];
                while let Some(Name(key)) = map.next_key::<Name<'de>>()? {
                    let Some(index) = KEYS.iter().position(|known| *known == key) else {
                        refuse_lookalike::<A::Error>(&key)?;
                        map.next_value::<serde::de::IgnoredAny>()?;
                        continue;
                    };
                    if std::mem::replace(&mut seen[index], true) {
                        return Err(A::Error::custom(format!("duplicate key '{key}'")));
                    }
                    match index {
                        0 => envelope.jsonrpc = Some(map.next_value()?),
                        1 => envelope.id = Some(map.next_value()?),
                        2 => envelope.method = Some(map.next_value()?),
                        3 => envelope.params = Some(map.next_value()?),
                        4 => envelope.result = Some(map.next_value()?),
                        _ => envelope.error = Some(map.next_value()?),
                    }
                }
                Ok(envelope)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// `Method`, `METHOD` or `re\u017fult` (long s) would be read as a known key by lax parsers.
fn refuse_lookalike<E: serde::de::Error>(key: &str) -> Result<(), E> {
    let folded: String = key
        .chars()
        .flat_map(char::to_lowercase)
        .map(|c| match c {
            'ſ' => 's',
            'ı' => 'i',
            other => other,
        })
        .collect();
    match KEYS.iter().find(|known| **known == folded) {
        Some(known) => Err(E::custom(format!("key '{key}' looks like '{known}'"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(text: &str) -> String {
        String::from_utf8(Message::parse(text).unwrap().to_line()).unwrap()
    }

    #[test]
    fn messages_are_written_exactly_as_they_were_read() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n":1E2,"x":0.10}}"#,
            r#"{"jsonrpc":"2.0","id":"1","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"big":12345678901234567890123}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m","data":[1.0],"x":2}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
        ] {
            assert_eq!(line(text), text);
        }
    }

    #[test]
    fn line_breaks_between_tokens_become_blanks() {
        let text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\n  \"a\": \"x\\ny\"\r\n}}";
        let expected = r#"{"jsonrpc":"2.0","id":1,"result":{   "a": "x\ny"  }}"#;
        assert_eq!(line(text), expected);
    }

    #[test]
    fn invalid_messages_are_rejected_with_the_right_code() {
        for (text, code, words) in [
            ("{", PARSE_ERROR, "parse error"),
            ("\u{feff}{}", PARSE_ERROR, "parse error"),
            ("{} {}", PARSE_ERROR, "parse error: not valid JSON"),
            ("3", INVALID_REQUEST, "message object"),
            (r#"{"id":1,"method":"m"}"#, INVALID_REQUEST, "jsonrpc"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, INVALID_REQUEST, "jsonrpc"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, INVALID_REQUEST, "id must be"),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, INVALID_REQUEST, "id must be"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, INVALID_REQUEST, "id must be"),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, INVALID_REQUEST, "duplicate key"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"m","Method":"n"}"#,
                INVALID_REQUEST,
                "looks like",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"re\u017fult":{}}"#, INVALID_REQUEST, "looks like"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, INVALID_REQUEST, "exactly"),
            (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST, "exactly one"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":3}"#, INVALID_REQUEST, "params"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, PARSE_ERROR, "parse error"),
        ] {
            let bad = Message::parse(text).unwrap_err();
            assert_eq!(bad.error.code, code, "{text}: {}", bad.error.message);
            assert!(bad.error.message.contains(words), "{text}: {}", bad.error.message);
        }
        assert_eq!(Frame::parse(b"\xff{}").unwrap_err().error.code, PARSE_ERROR);
        assert_eq!(Frame::parse(b"[]").unwrap_err().error.code, INVALID_REQUEST);
    }

    #[test]
    fn a_bad_request_keeps_its_id_where_it_can_be_read() {
        let bad = Message::parse(r#"{"jsonrpc":"2.0","id":"a","method":"m","params":1}"#);
        assert_eq!(bad.unwrap_err().id, Some(Id::from("a")));
    }

    #[test]
    fn an_invalid_message_names_the_request_that_it_answers() {
        for (text, answered) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{},"result":{}}"#, true),
            (r#"{"jsonrpc":"2.0","id":7,"result":{"content":["#, true),
            (r#" {"id":7,"result":{}}"#, true),
            (r#"{"jsonrpc":"2.0","id":7,"error":"broken"}"#, true),
            (r#"{"jsonrpc":"2.0","id":7}"#, true),
            (r#"{"jsonrpc":"2.0","id":7,"method":"m","params":3}"#, false),
            (r#"{"jsonrpc":"2.0","id":7,"meth"#, false),
            (r#"DEBUG {"jsonrpc":"2.0","id":7,"result":{}}"#, false),
        ] {
            let bad = Message::parse(text).unwrap_err();
            assert_eq!(bad.answered, answered.then_some(Id::Number(7)), "{text}");
        }
        let latin = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"\xff\"}}";
        assert_eq!(Frame::parse(latin).unwrap_err().answered, Some(Id::Number(7)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Frame::parse(&bytes);
        }

        #[test]
        fn deep_params_pass_unread(depth in 1usize..20_000) {
            let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{deep}}}"#);
            prop_assert_eq!(line(&text), text);
        }
    }
}
