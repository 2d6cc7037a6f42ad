//! One session of the streamable HTTP server: its owner, its peer, and the responses to the POSTs
//! that carry its messages.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::{self, Stream, StreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use tokio::time::Instant;

use super::EVENT_STREAM;
use super::refusal::{Refusal, json_bytes, json_response};
use super::server::SessionOwner;
use super::streams::{self, AnswerForm, Answers, PostRejection, Streams};
use crate::id::Id;
use crate::limits;
use crate::lines::batch_line;
use crate::message::{self, BadFrame, Message, Request};
use crate::peer::{Peer, Service, Trace};
use crate::sse;

pub(super) struct HttpSession {
    owner: SessionOwner,
    pub(super) peer: Peer,
    streams: Arc<Streams>,
}

impl HttpSession {
    pub(super) fn new(owner: SessionOwner, service: Arc<dyn Service>) -> Self {
        let streams = Arc::new(Streams::new());
        HttpSession { owner, peer: Peer::new(streams.clone(), service), streams }
    }

    pub(super) fn belongs_to(&self, owner: &SessionOwner) -> bool {
        self.owner == *owner
    }

    pub(super) fn is_held_by(&self, holder: &str) -> bool {
        self.owner.holder == holder
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
        event_response(self.streams.standing.clone().open())
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
                self.streams.answered(&id);
                let answer = answer.unwrap_or_else(|| streams::cancelled(id));
                return Ok(whole_response(answers.waiting(), answer));
            }
            message = answers.next() => Some(message),
            () = tokio::time::sleep(limits::HTTP_STREAM_AFTER), if takes == AnswerForm::Everything => None,
        };
        drop(running);
        Ok(match first {
            Some(answer @ Message::Response(_)) => json_response(StatusCode::OK, answer),
            first => event_response(stream::iter(first).chain(answers.into_stream())),
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

/// Builds the whole response: the messages before it, then the response itself.
fn whole_response(before: Vec<Message>, answer: message::Response) -> Response {
    if before.is_empty() {
        json_response(StatusCode::OK, answer.into())
    } else {
        event_response(stream::iter(before.into_iter().chain([answer.into()])))
    }
}

fn event_response(messages: impl Stream<Item = Message> + Send + 'static) -> Response {
    let chunks = stream::unfold(Box::pin(messages), |mut messages| async move {
        let chunk = match tokio::time::timeout(limits::HTTP_KEEP_ALIVE, messages.next()).await {
            Ok(Some(message)) => sse::message_event(&message.to_line()),
            Ok(None) => return None,
            Err(_) => b": keep-alive\n\n".to_vec(),
        };
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), messages))
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM)),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Without this, nginx would buffer the events.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(chunks)).into_response()
}
