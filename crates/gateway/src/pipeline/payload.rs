//! The stored form of arguments and results: always a hash, the text as configured by the operator.

use domain::config::Payloads;
use domain::json::Object;
use domain::ledger::redaction::Redactor;
use mcp::task;
use receipt::Hash;
use receipt::canonical::{CANONICAL_BYTES_MAX, Digest};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use store::Payload;

use crate::GateSettings;
use crate::limits::INLINE_BYTES_MAX;

/// Maximum stored bytes of one side of a call.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// A result in the form that is recorded.
pub(super) struct RecordedResult {
    pub(super) payload: Payload,
    /// The result is marked as an error.
    pub(super) is_error: bool,
}

/// The arguments of a call, with and without their secrets.
pub(super) struct CallArguments<'a> {
    sent: &'a Object,
    /// `None` if there were no secrets.
    redacted: Option<Value>,
}

impl<'a> CallArguments<'a> {
    pub(super) fn of(settings: &GateSettings, sent: &'a Object) -> CallArguments<'a> {
        let mut value = sent.value().clone();
        let redacted = settings.redactor.value(&mut value).then_some(value);
        CallArguments { sent, redacted }
    }

    /// The members without their secrets, if there were any.
    pub(super) fn redacted(&self) -> Option<&Map<String, Value>> {
        self.redacted.as_ref().and_then(Value::as_object)
    }

    /// Builds the payload; its hash is that of the arguments as sent.
    pub(super) fn payload(&self, settings: &GateSettings) -> Payload {
        let text = self.sent.text().get();
        let (kept, truncated) = match settings.payloads {
            Payloads::None => (None, false),
            Payloads::Full => cut(text),
            Payloads::Redacted => {
                let value = self.redacted.as_ref().unwrap_or_else(|| self.sent.value());
                cut(&value.to_string())
            }
        };
        let digest = Some(Digest::of_object(self.sent));
        Payload { bytes: text.len(), digest, kept, truncated }
    }
}

/// Builds the recorded result; its hash is that of the result without its secrets. Large results
/// are processed off the async threads.
pub(super) async fn response(settings: &GateSettings, result: &RawValue) -> RecordedResult {
    let (redactor, payloads) = (settings.redactor.clone(), settings.payloads);
    if result.get().len() <= INLINE_BYTES_MAX {
        return read(&redactor, payloads, result.get());
    }
    let text = result.get().to_owned();
    let reading = task::spawn_blocking(move || read(&redactor, payloads, &text));
    reading.await.expect("reading a result does not panic")
}

/// One side of an event from outside.
pub(crate) fn outside(settings: &GateSettings, text: Option<&RawValue>) -> Payload {
    let read = |text: &RawValue| read(&settings.redactor, settings.payloads, text.get()).payload;
    text.map(read).unwrap_or_default()
}

fn read(redactor: &Redactor, payloads: Payloads, text: &str) -> RecordedResult {
    let bytes = text.len();
    if bytes > CANONICAL_BYTES_MAX {
        return read_large(redactor, payloads, text);
    }
    let Ok(mut value) = serde_json::from_str::<Value>(text) else {
        // Nested too deeply, or a number too large, to parse here.
        return read_large(redactor, payloads, text);
    };
    let is_error = value["isError"] == true;
    redactor.value(&mut value);
    let digest = Some(Digest::of_value(&value));
    let (kept, truncated) = match payloads {
        Payloads::None => (None, false),
        Payloads::Full => cut(text),
        Payloads::Redacted => cut(&value.to_string()),
    };
    RecordedResult { payload: Payload { bytes, digest, kept, truncated }, is_error }
}

/// Stores the beginning of a result too large to parse; the hash is that of the bytes.
fn read_large(redactor: &Redactor, payloads: Payloads, text: &str) -> RecordedResult {
    let digest = Some(Digest::Exact(Hash::of(text.as_bytes())));
    let (kept, truncated) = match payloads {
        Payloads::None => (None, false),
        Payloads::Full => cut(text),
        Payloads::Redacted => {
            let (kept, truncated) = cut(text);
            (kept.map(|kept| redactor.text(&kept).into_owned()), truncated)
        }
    };
    let payload = Payload { bytes: text.len(), digest, kept, truncated };
    RecordedResult { payload, is_error: is_error(text) }
}

fn is_error(result: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Flag {
        #[serde(rename = "isError", default)]
        is_error: bool,
    }
    serde_json::from_str::<Flag>(result).is_ok_and(|flag| flag.is_error)
}

fn cut(text: &str) -> (Option<String>, bool) {
    if text.len() <= KEPT_BYTES_MAX {
        return (Some(text.to_owned()), false);
    }
    let end = (0..=KEPT_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    (Some(text[..end].to_owned()), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(payloads: Payloads, text: &str) -> RecordedResult {
        read(&Redactor::builtin(), payloads, text)
    }

    #[test]
    fn secrets_are_neither_kept_nor_hashed() {
        let text = |secret: &str| {
            format!(r#"{{"content":[{{"type":"text","text":"x"}}],"password":"{secret}"}}"#)
        };
        let one = kept(Payloads::Redacted, &text("hunter2"));
        let other = kept(Payloads::Redacted, &text("hunter3"));
        assert_eq!(one.payload.digest, other.payload.digest);
        assert!(!one.payload.kept.unwrap().contains("hunter2"));
        assert!(kept(Payloads::Full, &text("hunter2")).payload.kept.unwrap().contains("hunter2"));
        assert_eq!(kept(Payloads::None, &text("hunter2")).payload.kept, None);
    }

    #[test]
    fn a_large_result_is_cut_at_a_character_and_hashed_as_it_is() {
        let text = format!(r#"{{"isError":true,"t":"{}"}}"#, "ä".repeat(200 * 1024));
        let response = kept(Payloads::Redacted, &text);
        assert!(response.is_error && response.payload.truncated);
        assert!(response.payload.kept.unwrap().len() <= KEPT_BYTES_MAX);
        let exact = Digest::Exact(Hash::of(text.as_bytes()));
        assert_eq!(response.payload.digest, Some(exact));
    }

    #[test]
    fn an_error_is_seen_whatever_else_the_result_holds() {
        assert!(
            kept(Payloads::None, r#"{"isError":true,"n":123456789012345678901234567890}"#).is_error
        );
        assert!(!kept(Payloads::None, r#"{"isError":"yes"}"#).is_error);
    }
}
