//! Revision 2026-07-28 from the client's end. There is no handshake: every request says in its
//! `_meta` which revision it speaks and what the client can do. A server that needs an answer of the
//! client returns its questions as a result, and gets the request again with the answers.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{ErrorObject, HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION};
use crate::fault::explain;
use crate::handshake::Welcome;
use crate::limits::WELCOME_BYTES_MAX;
use crate::message::Raw;
use crate::meta::{ClientMeta, SERVER_INFO};
use crate::object::{ObjectMembers, quote};
use crate::peer::{Ask, Peer, RequestError};
use crate::version::Version;

/// The request that tells a server's revisions and capabilities.
pub const DISCOVER: &str = "server/discover";

/// The request whose answer is a stream of notifications.
pub const LISTEN: &str = "subscriptions/listen";

/// The first notification of that stream.
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The outcome of a probe.
#[derive(Debug)]
pub enum ProbeOutcome {
    /// The server speaks this revision, and the peer does from now on.
    Stateless(Welcome),
    /// The server knows nothing of it, or prefers a handshake.
    Handshake,
    /// The answer says nothing about the server's revisions; another probe may.
    Inconclusive(RequestError),
}

#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error("{DISCOVER}: {0}")]
    Request(RequestError),
    #[error("{DISCOVER}: the answer has {0} bytes, more than {WELCOME_BYTES_MAX}")]
    TooLarge(usize),
    #[error("{DISCOVER}: invalid response: {}", explain(.0))]
    Answer(serde_json::Error),
    #[error("{DISCOVER}: the server speaks only {}, which is not supported", .0.join(", "))]
    Versions(Vec<String>),
}

/// Asks a server for its revisions before anything else is sent to it. Agrees on this revision if
/// the server speaks it.
pub async fn probe(
    peer: &Peer,
    client: ClientMeta,
    timeout: Duration,
) -> Result<ProbeOutcome, ProbeError> {
    let ask = Ask::new(DISCOVER, client.within(None, None, None), timeout);
    let again = ask.again(ask.params.clone());
    let answer = match peer.request(ask).await {
        Err(RequestError::Refused(error)) if offers_ours(&error) => peer.request(again).await,
        answer => answer,
    };
    match answer {
        Ok(result) => judge_answer(peer, client, &result),
        Err(RequestError::Refused(error)) => judge_refusal(error),
        Err(error @ (RequestError::Unauthorized(_) | RequestError::Closed(_))) => {
            Err(ProbeError::Request(error))
        }
        Err(
            error @ (RequestError::Timeout(_)
            | RequestError::Lost(_)
            | RequestError::TooLarge
            | RequestError::Cancelled),
        ) => Ok(ProbeOutcome::Inconclusive(error)),
    }
}

fn judge_answer(peer: &Peer, client: ClientMeta, result: &Raw) -> Result<ProbeOutcome, ProbeError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovery {
        supported_versions: Vec<String>,
        #[serde(default)]
        instructions: Option<String>,
    }
    if result.get().len() > WELCOME_BYTES_MAX {
        return Err(ProbeError::TooLarge(result.get().len()));
    }
    // A server that answers any method with something knows no such request.
    let Ok(found) = serde_json::from_str::<Discovery>(result.get()) else {
        return Ok(ProbeOutcome::Handshake);
    };
    if !found.supported_versions.iter().any(|it| it == Version::V2026_07_28.as_str()) {
        return of_versions(found.supported_versions);
    }
    let welcome = welcome(result, found.instructions).map_err(ProbeError::Answer)?;
    peer.agree_on_stateless(client);
    Ok(ProbeOutcome::Stateless(welcome))
}

/// Returns the answer in the form of one to `initialize`.
fn welcome(result: &Raw, instructions: Option<String>) -> Result<Welcome, serde_json::Error> {
    let version = Version::V2026_07_28;
    let found = ObjectMembers::parse(result)?;
    let meta: ObjectMembers<'_> = serde_json::from_str(found.get("_meta").unwrap_or("{}"))?;
    let mut members = ObjectMembers::default();
    members.set("protocolVersion", quote(version.as_str()));
    members.set("capabilities", found.get("capabilities").unwrap_or("{}"));
    let named = meta.get(SERVER_INFO).or_else(|| found.get("serverInfo"));
    members.set("serverInfo", named.unwrap_or(r#"{"name":"","version":""}"#));
    if let Some(instructions) = &instructions {
        members.set("instructions", quote(instructions));
    }
    Ok(Welcome { version, result: members.write(), instructions })
}

/// Reports whether a server refuses this revision and names it as supported, as one does that was
/// just replaced.
fn offers_ours(error: &ErrorObject) -> bool {
    error.code == UNSUPPORTED_VERSION
        && supported(error).iter().any(|it| it == Version::V2026_07_28.as_str())
}

fn judge_refusal(error: ErrorObject) -> Result<ProbeOutcome, ProbeError> {
    match error.code {
        UNSUPPORTED_VERSION => of_versions(supported(&error)),
        HEADER_MISMATCH | MISSING_CAPABILITY => {
            Err(ProbeError::Request(RequestError::Refused(error)))
        }
        _ => Ok(match error.status().map(|refusal| refusal.status) {
            Some(401 | 403 | 408 | 429 | 500..) => {
                ProbeOutcome::Inconclusive(RequestError::Refused(error))
            }
            Some(_) | None => ProbeOutcome::Handshake,
        }),
    }
}

/// Judges a server by revisions that are not ours.
fn of_versions(versions: Vec<String>) -> Result<ProbeOutcome, ProbeError> {
    match versions.iter().any(|name| Version::parse(name).is_some()) {
        true => Ok(ProbeOutcome::Handshake),
        false => Err(ProbeError::Versions(versions)),
    }
}

/// Returns the revisions that an error names.
fn supported(error: &ErrorObject) -> Vec<String> {
    #[derive(Deserialize)]
    struct Told {
        data: Versions,
    }
    #[derive(Deserialize)]
    struct Versions {
        supported: Vec<String>,
    }
    let told: Option<Told> = serde_json::from_str(error.text().get()).ok();
    told.map(|told| told.data.supported).unwrap_or_default()
}

/// The kind of a result.
#[derive(Debug)]
pub enum ResultKind {
    Complete,
    /// Sent again with the answers, the request may be completed.
    InputRequired(InputRequired),
    /// A kind that the client did not declare.
    Unknown(String),
}

/// The questions of a server that cannot complete a request without their answers.
#[derive(Debug, Default)]
pub struct InputRequired {
    /// Each question by its name, in their order.
    pub questions: Vec<(String, InputRequest)>,
    /// Words of the server to itself, as JSON.
    state: Option<Raw>,
}

#[derive(Debug, Deserialize)]
pub struct InputRequest {
    pub method: String,
    #[serde(default)]
    pub params: Option<Raw>,
}

impl ResultKind {
    /// Reads the kind of a result that arrived on this peer.
    pub fn of(result: &RawValue, peer: &Peer) -> Result<ResultKind, String> {
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(rename = "resultType", borrow, default)]
            kind: Option<std::borrow::Cow<'a, str>>,
        }
        let read: Kind<'_> = serde_json::from_str(result.get()).map_err(|error| explain(&error))?;
        match read.kind.as_deref() {
            None | Some("complete") => Ok(ResultKind::Complete),
            Some("input_required") => InputRequired::parse(result).map(ResultKind::InputRequired),
            Some(_) if peer.meta().is_some_and(ClientMeta::has_extensions) => {
                Ok(ResultKind::Complete)
            }
            Some(other) => Ok(ResultKind::Unknown(other.chars().take(64).collect())),
        }
    }
}

impl InputRequired {
    fn parse(result: &RawValue) -> Result<InputRequired, String> {
        let explained = |error: serde_json::Error| explain(&error);
        let members = ObjectMembers::parse(result).map_err(explained)?;
        let asked: ObjectMembers<'_> =
            serde_json::from_str(members.get("inputRequests").unwrap_or("{}"))
                .map_err(explained)?;
        let question = |(name, json): (&str, &str)| {
            Ok((name.to_owned(), serde_json::from_str::<InputRequest>(json).map_err(explained)?))
        };
        let questions: Vec<(String, InputRequest)> =
            asked.iter().map(question).collect::<Result<_, String>>()?;
        let state = members.get("requestState").map(serde_json::from_str).transpose();
        let state: Option<Raw> = state.map_err(explained)?;
        if questions.is_empty() && state.is_none() {
            return Err("neither 'inputRequests' nor 'requestState' is there".to_owned());
        }
        Ok(InputRequired { questions, state })
    }

    /// Returns the params of the request that is to be sent again, with the answers to the questions
    /// in their order.
    pub fn answered(&self, params: Option<&Raw>, answers: &[Raw]) -> Option<Raw> {
        let mut members = params.map(|params| ObjectMembers::parse(params)).transpose().ok()?;
        let members = members.get_or_insert_default();
        members.remove("inputResponses");
        members.remove("requestState");
        if !self.questions.is_empty() {
            let mut responses = ObjectMembers::default();
            for ((name, _), answer) in self.questions.iter().zip(answers) {
                responses.set(name, answer.get());
            }
            members.set("inputResponses", responses.write_text());
        }
        if let Some(state) = &self.state {
            members.set("requestState", state.get());
        }
        Some(members.write())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{raw, to_raw};

    #[test]
    fn a_refusal_of_the_probe_tells_the_era() {
        let judged = |error: ErrorObject| match judge_refusal(error) {
            Ok(ProbeOutcome::Handshake) => "handshake".to_owned(),
            Ok(ProbeOutcome::Inconclusive(_)) => "inconclusive".to_owned(),
            Ok(ProbeOutcome::Stateless(_)) => panic!("a refusal is no welcome"),
            Err(error) => error.to_string(),
        };
        let refused = |code| ErrorObject::new(code, "no");
        let with = |status| {
            let status = crate::error::HttpRefusal { status, retry_after: None };
            judged(refused(-32000).with_status(status))
        };
        for code in [-32601, -32602, -32600, -32000, 0] {
            assert_eq!(judged(refused(code)), "handshake");
        }
        for status in [400, 404, 405, 406, 415, 422] {
            assert_eq!(with(status), "handshake", "{status}");
        }
        for status in [401, 403, 408, 429, 500, 503] {
            assert_eq!(with(status), "inconclusive", "{status}");
        }
        let versions = |supported: serde_json::Value| {
            judged(refused(UNSUPPORTED_VERSION).with_data(&json!({"supported": supported})))
        };
        assert_eq!(versions(json!(["2027-01-01", "2025-11-25"])), "handshake");
        let only = "server/discover: the server speaks only 2027-01-01, which is not supported";
        assert_eq!(versions(json!(["2027-01-01"])), only);
        assert_eq!(judged(refused(HEADER_MISMATCH)), "server/discover: no (-32020)");
    }

    #[test]
    fn a_request_is_sent_again_with_the_answers_and_the_state_as_it_was() {
        let result = raw(
            r#"{"resultType":"input_required","inputRequests":{"b":{"method":"roots/list"},"a":{"method":"m","params":{"n":1E2}}},"requestState":"\u0041="}"#
                .to_owned(),
        );
        let asked = InputRequired::parse(&result).unwrap();
        let names: Vec<&str> = asked.questions.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(asked.questions[1].1.params.as_ref().unwrap().get(), r#"{"n":1E2}"#);
        let params = raw(r#"{"name":"t","n":1.0,"requestState":"old"}"#.to_owned());
        let again = asked.answered(Some(&params), &[raw("1.0".into()), raw("2E1".into())]);
        assert_eq!(
            again.unwrap().get(),
            r#"{"name":"t","n":1.0,"inputResponses":{"b":1.0,"a":2E1},"requestState":"\u0041="}"#
        );
        for bad in [json!({}), json!({"inputRequests": {}}), json!({"inputRequests": {"a": 1}})] {
            assert!(InputRequired::parse(&to_raw(&bad)).is_err(), "{bad}");
        }
    }
}
