//! The stored form of arguments and results: always a hash, the text as configured by the operator.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use domain::config::Payloads;
use mcp::task;
use receipt::Hash;
use receipt::canonical::{CANONICAL_BYTES_MAX, Digest};
use redact::Redactor;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use store::Payload;
use text::json::{self, Object};

use crate::GateSettings;
use crate::limits::INLINE_BYTES_MAX;

/// Maximum stored bytes of one side of a call.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// The longest secret that is still recognised where a text is cut.
const SECRET_BYTES_MAX: usize = 8 * 1024;

/// A result in the form that is recorded.
pub(crate) struct RecordedResult {
    pub(crate) payload: Payload,
    /// The result is marked as an error.
    pub(crate) is_error: bool,
    /// A name occurs twice in one object: another program may read another value than the gate.
    pub(crate) has_duplicates: bool,
}

/// The arguments of a call, with and without their secrets.
pub(crate) struct CallArguments<'a> {
    sent: &'a Object,
    /// `None` if there were no secrets.
    redacted: Option<Value>,
}

impl<'a> CallArguments<'a> {
    pub(crate) fn of(settings: &GateSettings, sent: &'a Object) -> CallArguments<'a> {
        let mut value = sent.value().clone();
        let redacted = settings.redactor.value(&mut value).then_some(value);
        CallArguments { sent, redacted }
    }

    /// The members without their secrets, if there were any.
    pub(crate) fn redacted(&self) -> Option<&Map<String, Value>> {
        self.redacted.as_ref().and_then(Value::as_object)
    }

    /// Builds the payload; its hash is that of the arguments as sent.
    pub(crate) fn payload(&self, settings: &GateSettings) -> Payload {
        let text = self.sent.text().get();
        let (kept, truncated) = match settings.payloads {
            Payloads::None => (None, false),
            Payloads::Full => cut(settings.redactor.without_own(text)),
            Payloads::Redacted => {
                let value = self.redacted.as_ref().unwrap_or_else(|| self.sent.value());
                cut(written(value).into())
            }
        };
        let digest = Digest::of_object(self.sent);
        let is_covered = self.redacted.is_none() && matches!(digest, Digest::Canonical(_));
        let kept_digest = kept_digest(kept.as_deref(), is_covered && !truncated);
        Payload { bytes: text.len(), digest: Some(digest), kept, truncated, kept_digest }
    }
}

/// Builds the recorded result; its hash is that of the result without its secrets. Large results
/// are processed off the async threads.
pub(crate) async fn response(settings: &GateSettings, result: &RawValue) -> RecordedResult {
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
    let (mut value, has_duplicates) = match json::parse(text) {
        Ok(value) => (value, false),
        Err(_) => match serde_json::from_str::<Value>(text) {
            Ok(value) => (value, true),
            // Nested too deeply, or a number too large, to parse here.
            Err(_) => return read_large(redactor, payloads, text),
        },
    };
    let is_error =
        if has_duplicates { Outline::of(text).is_error } else { value["isError"] == true };
    let is_redacted = redactor.value(&mut value);
    let digest = Digest::of_value(&value);
    let (kept, truncated) = match payloads {
        Payloads::None => (None, false),
        Payloads::Full => cut(redactor.without_own(text)),
        Payloads::Redacted => cut(written(&value).into()),
    };
    // As it was sent, it may differ from what the hash is of.
    let is_other = is_redacted || has_duplicates || matches!(digest, Digest::Exact(_));
    let is_covered = !truncated && (payloads == Payloads::Redacted || !is_other);
    let kept_digest = kept_digest(kept.as_deref(), is_covered);
    let payload = Payload { bytes, digest: Some(digest), kept, truncated, kept_digest };
    RecordedResult { payload, is_error, has_duplicates }
}

/// Stores the beginning of a result too large to parse; the hash is that of the bytes.
fn read_large(redactor: &Redactor, payloads: Payloads, text: &str) -> RecordedResult {
    let digest = Some(Digest::Exact(Hash::of(text.as_bytes())));
    let (kept, truncated) = match payloads {
        Payloads::None => (None, false),
        Payloads::Full => cut(redactor.without_own(text)),
        Payloads::Redacted => {
            // A secret is recognised only as a whole, so some of the rest stays until it is removed.
            let (begun, _) = cut_at(text, KEPT_BYTES_MAX + SECRET_BYTES_MAX);
            let (kept, _) = cut(redactor.text(begun));
            (kept, text.len() > KEPT_BYTES_MAX)
        }
    };
    let kept_digest = kept_digest(kept.as_deref(), false);
    let payload = Payload { bytes: text.len(), digest, kept, truncated, kept_digest };
    let Outline { is_error, has_duplicates } = Outline::of(text);
    RecordedResult { payload, is_error, has_duplicates }
}

/// Returns the hash of a kept text, unless the hash of the whole covers it.
fn kept_digest(kept: Option<&str>, is_covered: bool) -> Option<Digest> {
    let kept = kept.filter(|_| !is_covered)?;
    Some(Digest::Exact(Hash::of(kept.as_bytes())))
}

/// The status of a result, by its outermost members.
#[derive(Default)]
struct Outline {
    /// One of its `isError` is true.
    is_error: bool,
    has_duplicates: bool,
}

impl Outline {
    fn of(result: &str) -> Outline {
        let mut deserializer = serde_json::Deserializer::from_str(result);
        deserializer.deserialize_map(OutlineVisitor).unwrap_or_default()
    }
}

struct OutlineVisitor;

impl<'de> Visitor<'de> for OutlineVisitor {
    type Value = Outline;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a result object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Outline, A::Error> {
        let (mut outline, mut names) = (Outline::default(), HashSet::new());
        while let Some((name, value)) = members.next_entry::<String, &RawValue>()? {
            outline.is_error |= name == "isError" && value.get() == "true";
            outline.has_duplicates |= !names.insert(name);
        }
        Ok(outline)
    }
}

/// Writes a value, which takes half of what its `Display` does.
fn written(value: &Value) -> String {
    serde_json::to_string(value).expect("a parsed value can be written")
}

fn cut(text: Cow<'_, str>) -> (Option<String>, bool) {
    let (kept, is_cut) = cut_at(&text, KEPT_BYTES_MAX);
    let kept = if is_cut { kept.to_owned() } else { text.into_owned() };
    (Some(kept), is_cut)
}

fn cut_at(text: &str, bytes_max: usize) -> (&str, bool) {
    (&text[..text.floor_char_boundary(bytes_max)], text.len() > bytes_max)
}

#[cfg(test)]
mod tests {
    use redact::Credential;

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
        let all = |secret| kept(Payloads::Full, &text(secret)).payload.kept.unwrap();
        assert!(all("hunter2").contains("hunter2"));
        let own = Credential::AdminKey.text(&[0xa7; 32]);
        assert!(all(&own).contains(r#""password":"[redacted:countersign]""#), "{}", all(&own));
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
    fn a_secret_at_the_cut_of_a_large_result_is_removed() {
        let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        for place in [KEPT_BYTES_MAX - 30, KEPT_BYTES_MAX - 10] {
            let text = format!(r#""{} {secret} {}""#, "x".repeat(place), "y".repeat(300 * 1024));
            let payload = kept(Payloads::Redacted, &text).payload;
            let kept = payload.kept.unwrap();
            assert!(payload.truncated && !kept.contains("ghp_"), "{}", &kept[place - 10..]);
        }
    }

    #[test]
    fn an_error_is_seen_whatever_else_the_result_holds() {
        assert!(
            kept(Payloads::None, r#"{"isError":true,"n":123456789012345678901234567890}"#).is_error
        );
        assert!(!kept(Payloads::None, r#"{"isError":"yes"}"#).is_error);
    }

    #[test]
    fn a_name_that_occurs_twice_is_noticed_and_hides_no_error() {
        let long = "x".repeat(CANONICAL_BYTES_MAX);
        for (text, is_error, has_duplicates) in [
            (r#"{"content":[],"isError":false}"#.to_owned(), false, false),
            (r#"{"isError":true,"isError":false}"#.to_owned(), true, true),
            (r#"{"content":[{"text":"a","t\u0065xt":"b"}]}"#.to_owned(), false, true),
            (r#"{"content":[{"text":"a"},{"text":"b"}]}"#.to_owned(), false, false),
            (format!(r#"{{"isError":true,"t":"{long}","isError":false}}"#), true, true),
            (format!(r#"{{"isError":true,"t":"{long}"}}"#), true, false),
        ] {
            let result = kept(Payloads::Full, &text);
            let found = (result.is_error, result.has_duplicates);
            assert_eq!(found, (is_error, has_duplicates), "{}", &text[..text.len().min(60)]);
        }
    }
}
