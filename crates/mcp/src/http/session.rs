//! One session of the streamable HTTP server: its owner, its peer, and the responses to the POSTs
//! that carry its messages.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use tokio::time::Instant;

use super::EVENT_STREAM;
use super::event_log::ReplayRoom;
use super::refusal::{Refusal, json_bytes, json_response};
use super::server::SessionOwner;
use super::streams::{
    self, AnswerForm, Answers, NumberedReader, PostRejection, ResumeRejection, Streams,
};
use crate::id::Id;
use crate::limits;
use crate::lines::batch_line;
use crate::message::{self, BadFrame, Message, Request};
use crate::peer::{Peer, Service};
use crate::sse;
use crate::trace::Trace;
use crate::version::Version;

pub(super) struct HttpSession {
    owner: SessionOwner,
    pub(super) peer: Peer,
    streams: Arc<Streams>,
}

impl HttpSession {
    pub(super) fn new(
        owner: SessionOwner,
        service: Arc<dyn Service>,
        room: &Arc<ReplayRoom>,
    ) -> Self {
        let streams = Streams::new(room);
        HttpSession { owner, peer: Peer::new(streams.clone(), service), streams }
    }

    pub(super) fn belongs_to(&self, owner: &SessionOwner) -> bool {
        self.owner == *owner
    }

    pub(super) fn holder(&self) -> &str {
        &self.owner.holder
    }

    /// A session with a running request or an open stream is never idle.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        let since = self.streams.idle_since();
        since.is_some_and(|since| now.duration_since(since) >= limits::HTTP_SESSION_IDLE)
    }

    pub(super) fn touch(&self) {
        self.streams.touch();
    }

    pub(super) fn close(&self, reason: &str) {
        self.peer.close(reason);
        self.streams.end(reason);
    }

    /// Ends the standing stream; running requests may still respond.
    pub(super) fn end_standing(&self, reason: &str) {
        self.streams.standing.end(reason);
    }

    pub(super) fn listen(&self) -> Response {
        self.event_response(self.streams.listen())
    }

    /// Continues the stream of an event behind it.
    pub(super) fn resume(&self, event: &str) -> Result<Response, Refusal> {
        let reader = self.streams.resume(event).map_err(|rejected| match rejected {
            ResumeRejection::Foreign => Refusal::foreign_event(),
            ResumeRejection::Expired => Refusal::expired_event(),
        })?;
        Ok(self.event_response(reader))
    }

    /// Responds with JSON if the response is the first message, and with an event stream otherwise.
    /// Most responses are built right here, on the task of the connection.
    pub(super) async fn answer(
        &self,
        request: Request,
        takes: AnswerForm,
        trace: Option<Box<Trace>>,
    ) -> Result<Response, Refusal> {
        let id = request.id.clone();
        let mut answers = self.register(&id, takes)?;
        let mut running = self.peer.begin(request, trace);
        let first = tokio::select! {
            biased;
            answer = &mut running => {
                let answer = answer.unwrap_or_else(|| streams::cancelled(id.clone()));
                if !answers.has_messages() {
                    self.streams.answered(&id);
                    return Ok(json_response(StatusCode::OK, answer.into()));
                }
                self.streams.answer_last(answer);
                None
            }
            first = answers.first() => first,
            () = tokio::time::sleep(limits::HTTP_STREAM_AFTER), if takes == AnswerForm::Everything => None,
        };
        drop(running);
        Ok(match first {
            Some(answer) => json_response(StatusCode::OK, answer.into()),
            None => self.event_response(self.streams.stream(answers)),
        })
    }

    /// Returns the response alone, for callers that must inspect it first.
    pub(super) async fn ask(&self, request: Request) -> Result<message::Response, Refusal> {
        Ok(self.run(request, AnswerForm::AnswerOnly, None)?.last().await)
    }

    /// Runs the requests of a batch concurrently; their responses leave as one array.
    pub(super) async fn answer_batch(
        &self,
        batch: Vec<Result<Message, BadFrame>>,
        trace: Option<Box<Trace>>,
    ) -> Response {
        let mut running = Vec::new();
        let mut answers = Vec::new();
        for part in batch {
            match part {
                Ok(Message::Request(request)) => {
                    match self.run(request, AnswerForm::AnswerOnly, trace.clone()) {
                        Ok(answer) => running.push(answer.last()),
                        Err(refusal) => answers.push(refusal.into_message()),
                    }
                }
                Ok(other) => self.peer.receive(other),
                Err(bad) => answers.push(bad.into_response()),
            }
        }
        answers.extend(join_all(running).await);
        if answers.is_empty() {
            return StatusCode::ACCEPTED.into_response();
        }
        json_bytes(StatusCode::OK, batch_line(answers))
    }

    /// Starts the request. It continues when the client leaves: only a cancellation stops it.
    fn run(
        &self,
        request: Request,
        takes: AnswerForm,
        trace: Option<Box<Trace>>,
    ) -> Result<Answers, Refusal> {
        let answers = self.register(&request.id, takes)?;
        drop(self.peer.begin(request, trace));
        Ok(answers)
    }

    fn register(&self, id: &Id, takes: AnswerForm) -> Result<Answers, Refusal> {
        self.streams.register(id, takes).map_err(|rejected| refuse(rejected, id.clone()))
    }

    /// Builds an event stream. Its first event tells the client from where to resume it, if the
    /// client understands an event without data.
    fn event_response(&self, reader: NumberedReader) -> Response {
        let has_empty_events = self.peer.version().is_some_and(Version::has_empty_events);
        let retry_ms = limits::REPLAY_RETRY.as_millis();
        let first =
            has_empty_events.then(|| Bytes::from(sse::empty_event(&reader.position(), retry_ms)));
        let chunks = stream::unfold((first, reader), |(first, reader)| async move {
            if let Some(first) = first {
                return Some((Ok::<_, Infallible>(first), (None, reader)));
            }
            let chunk = match tokio::time::timeout(limits::HTTP_KEEP_ALIVE, reader.next()).await {
                Ok(Some((id, message))) => sse::message_event(&id, &message.to_line()),
                Ok(None) => return None,
                Err(_) => b": keep-alive\n\n".to_vec(),
            };
            Some((Ok(Bytes::from(chunk)), (None, reader)))
        });
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM)),
            (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            // Without this, nginx would buffer the events.
            (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
        ];
        (headers, Body::from_stream(chunks)).into_response()
    }
}

/// Answered here: the peer's own error for an id in use would reach the request that uses it.
fn refuse(rejected: PostRejection, id: Id) -> Refusal {
    match rejected {
        PostRejection::IdInUse => {
            Refusal::bad_request(format!("id {id} is already in use")).of(Some(id))
        }
        PostRejection::Ended => Refusal::unknown_session().of(Some(id)),
    }
}
