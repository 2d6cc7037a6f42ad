//! Request bodies: size-limited JSON objects without unknown members.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use domain::{Code, Refusal};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::{Map, Value, json};
use text::{json, near};

/// The time within which a complete body must arrive, as on the MCP endpoints.
const TIMEOUT: Duration = mcp::limits::HTTP_BODY_TIMEOUT;

/// The size limit for a decision. A decision takes a few lines, but a server's entry may hold a
/// long command.
const DECISION_BYTES_MAX: usize = 256 * 1024;

/// The size limit for an approval, which may name ten thousand items with their fingerprints.
const APPROVAL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The size limit for an export to verify; a larger one is put into the home.
const COPY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The number of suggestions for an unknown member.
const NEAR_MAX: usize = 1;

/// Reads a required body.
pub(crate) async fn read(request: Request, bytes_max: usize) -> Result<Bytes, Refusal> {
    check_kind(request.headers())?;
    whole(request, bytes_max).await
}

async fn whole(request: Request, bytes_max: usize) -> Result<Bytes, Refusal> {
    let whole = Limited::new(request.into_body(), bytes_max).collect();
    match tokio::time::timeout(TIMEOUT, whole).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Refusal::new(Code::PayloadTooLarge, format!("the body exceeds {bytes_max} bytes")))
        }
        Ok(Err(_)) => Err(invalid("the connection closed before the whole body arrived")),
        Err(_) => Err(Refusal::new(Code::RequestTimeout, "the body did not arrive in time")),
    }
}

fn check_kind(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| {
        kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
    });
    let message = match is_json {
        // A compressed body could expand without bound.
        true if !headers.contains_key(header::CONTENT_ENCODING) => return Ok(()),
        true => "the body must be sent without a Content-Encoding",
        false => "the body must be JSON: send 'Content-Type: application/json'",
    };
    Err(Refusal::new(Code::UnsupportedMediaType, message))
}

/// The members of a body, taken one by one.
pub(crate) struct BodyMembers {
    left: Map<String, Value>,
    /// The members that the handler has asked for.
    known: Vec<&'static str>,
}

impl BodyMembers {
    pub(crate) async fn read(request: Request) -> Result<BodyMembers, Refusal> {
        BodyMembers::parse(&read(request, DECISION_BYTES_MAX).await?)
    }

    /// Reads a body that holds an export.
    pub(crate) async fn read_copy(request: Request) -> Result<BodyMembers, Refusal> {
        BodyMembers::parse(&read(request, COPY_BYTES_MAX).await?)
    }

    /// Reads the body of an approval; an absent one has no members.
    pub(crate) async fn read_approval(request: Request) -> Result<BodyMembers, Refusal> {
        let kind = check_kind(request.headers());
        let body = whole(request, APPROVAL_BYTES_MAX).await?;
        if body.is_empty() {
            return Ok(BodyMembers::of(Map::new()));
        }
        kind.and_then(|()| BodyMembers::parse(&body))
    }

    /// Reads a nested object the same way; `place` names it in messages.
    pub(crate) fn nested(value: Value, place: &str) -> Result<BodyMembers, Refusal> {
        match value {
            Value::Object(members) => Ok(BodyMembers::of(members)),
            other => Err(wrong(place, "must be an object", &other)),
        }
    }

    fn of(left: Map<String, Value>) -> BodyMembers {
        BodyMembers { left, known: Vec::new() }
    }

    fn parse(body: &[u8]) -> Result<BodyMembers, Refusal> {
        let text = std::str::from_utf8(body).map_err(|_| invalid("the body is not UTF-8"))?;
        match json::parse(text) {
            Ok(Value::Object(members)) => Ok(BodyMembers::of(members)),
            Ok(_) => Err(invalid("the body must be a JSON object")),
            Err(error) => Err(invalid(not_json(&error))),
        }
    }

    /// Takes a member of any type; null counts as absent.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.left.remove(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, "must be a string", &other)),
        }
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(wrong(name, "must be true or false", &other)),
        }
    }

    pub(crate) fn words(&mut self, name: &'static str) -> Result<Option<Vec<String>>, Refusal> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let words = value.as_array().and_then(|words| {
            words.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        words.map(Some).ok_or_else(|| wrong(name, "must be a list of strings", &value))
    }

    pub(crate) fn list(&mut self, name: &'static str) -> Result<Option<Vec<Value>>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(other) => Err(wrong(name, "must be a list", &other)),
        }
    }

    /// Returns the members that were not taken.
    pub(crate) fn rest(self) -> Map<String, Value> {
        self.left
    }

    /// Refuses members that were not taken.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        let Some((name, _)) = self.left.iter().next() else { return Ok(()) };
        let near = near::names(name, self.known.iter().copied(), NEAR_MAX);
        let message = match near.as_slice() {
            [] => format!("unknown member '{name}': expected {}", self.known.join(", ")),
            near => format!("unknown member '{name}'{}", near::hint(near)),
        };
        Err(invalid(message).with(json!({"field": name, "valid_values": self.known})))
    }
}

/// Says why the body cannot be parsed.
pub(crate) fn not_json(error: &serde_json::Error) -> String {
    format!("the body is not valid JSON: {}", json::explain(error))
}

/// Reads a member as the arguments of a call.
pub(crate) fn object(name: &str, value: &Value) -> Result<json::Object, Refusal> {
    let parsed = json::Object::parse(&value.to_string()).ok().flatten();
    parsed.ok_or_else(|| wrong(name, "must be an object", value))
}

pub(crate) fn required(name: &'static str) -> Refusal {
    invalid(format!("{name} is required")).with(json!({"field": name}))
}

fn wrong(field: &str, rule: &str, given: &Value) -> Refusal {
    invalid(format!("{field} {rule}")).with(json!({"field": field, "provided": given}))
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::InvalidRequest, message)
}
