//! The server's end of streamable HTTP, handshake era: sessions, and the effect of each HTTP method
//! on them. The caller has already been authenticated and authorized.
//!
//! A revision without sessions branches off in [`Sessions::post`], before the session lookup.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::Request as HttpRequest;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::Instant;

use super::event_log::ReplayRoom;
use super::open_sessions::OpenSessions;
use super::refusal::{Refusal, json_response};
use super::session::HttpSession;
use super::streams::AnswerForm;
use super::{SESSION_ID, inbound};
use crate::id::Id;
use crate::limits;
use crate::message::{Frame, Message, Request};
use crate::peer::{Service, lock};
use crate::task;

/// The owner of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOwner {
    /// The caller, who may have half of all sessions.
    pub holder: String,
    /// The part of the server that the session is for.
    pub view: String,
}

/// The sessions of one listener. Clones are handles to the same sessions.
#[derive(Clone, Default)]
pub struct Sessions {
    shared: Arc<SessionTable>,
}

#[derive(Default)]
struct SessionTable {
    open: Mutex<OpenSessions>,
    room: Arc<ReplayRoom>,
    is_closing: AtomicBool,
}

impl Sessions {
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles one request to an MCP endpoint. A session responds only to the owner that opened it,
    /// and for anyone else it does not exist. `open` creates the service of a new session.
    pub async fn handle(
        &self,
        request: HttpRequest,
        owner: &SessionOwner,
        open: impl FnOnce() -> Arc<dyn Service> + Send,
    ) -> Response {
        let answer = match *request.method() {
            Method::POST => self.post(request, owner, open).await,
            Method::GET => self.get(request.headers(), owner),
            Method::DELETE => self.delete(request.headers(), owner),
            _ => Err(Refusal::method()),
        };
        answer.unwrap_or_else(Refusal::into_response)
    }

    /// Stops accepting sessions and requests, ends the standing streams, and gives running requests
    /// [`limits::DRAIN`] to finish. Responses of clients are still accepted meanwhile.
    pub async fn close_all(&self, reason: &str) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        let sessions = lock(&self.shared.open).all();
        for session in &sessions {
            session.end_standing(reason);
        }
        let idle = join_all(sessions.iter().map(|session| session.peer.idle()));
        let _ = tokio::time::timeout(limits::DRAIN, idle).await;
        let sessions = lock(&self.shared.open).remove_all();
        for session in sessions {
            session.close(reason);
        }
    }

    pub fn len(&self) -> usize {
        lock(&self.shared.open).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    async fn post(
        &self,
        request: HttpRequest,
        owner: &SessionOwner,
        open: impl FnOnce() -> Arc<dyn Service> + Send,
    ) -> Result<Response, Refusal> {
        let (parts, body) = request.into_parts();
        let headers = parts.headers;
        let frame = inbound::read_frame(&headers, body).await?;
        let id = request_id(&frame);
        if !is_initialize(&frame) {
            inbound::check_version(&headers).map_err(|refusal| refusal.of(id.clone()))?;
        }
        match inbound::session_id(&headers)? {
            Some(session) => {
                let session = self.find(session, owner).map_err(|refusal| refusal.of(id))?;
                self.post_to(&session, frame, &headers).await
            }
            None => self.post_without_session(frame, owner, open).await,
        }
    }

    async fn post_to(
        &self,
        session: &HttpSession,
        frame: Frame,
        headers: &HeaderMap,
    ) -> Result<Response, Refusal> {
        match frame {
            Frame::Single(Message::Request(request)) => {
                self.refuse_while_closing().map_err(|r| r.of(Some(request.id.clone())))?;
                let takes = if inbound::takes_events(headers) {
                    AnswerForm::Everything
                } else {
                    AnswerForm::AnswerOnly
                };
                session.answer(request, takes, inbound::trace(headers)).await
            }
            Frame::Single(message @ (Message::Notification(_) | Message::Response(_))) => {
                session.peer.receive(message);
                Ok(StatusCode::ACCEPTED.into_response())
            }
            Frame::Batch(batch) if session.peer.version().is_some_and(|v| v.allows_batches()) => {
                self.refuse_while_closing()?;
                Ok(session.answer_batch(batch, inbound::trace(headers)).await)
            }
            Frame::Batch(_) => {
                Err(Refusal::bad_request("batches are only allowed in protocol 2025-03-26"))
            }
        }
    }

    async fn post_without_session(
        &self,
        frame: Frame,
        owner: &SessionOwner,
        open: impl FnOnce() -> Arc<dyn Service> + Send,
    ) -> Result<Response, Refusal> {
        match frame {
            Frame::Single(Message::Request(request)) if request.method == "initialize" => {
                self.initialize(request, owner, open).await
            }
            Frame::Single(Message::Request(request)) if !needs_session(&request.method) => {
                Err(Refusal::unknown_method(&request.method).of(Some(request.id)))
            }
            other => Err(Refusal::no_session().of(request_id(&other))),
        }
    }

    async fn initialize(
        &self,
        request: Request,
        owner: &SessionOwner,
        open: impl FnOnce() -> Arc<dyn Service> + Send,
    ) -> Result<Response, Refusal> {
        let id = request.id.clone();
        let mut opening = self.open(owner, open).map_err(|refusal| refusal.of(Some(id)))?;
        let answer = opening.session.ask(request).await?;
        opening.is_kept = answer.outcome.is_ok();
        if opening.is_kept {
            self.forget_when_closed(&opening);
        }
        let mut response = json_response(StatusCode::OK, answer.into());
        if opening.is_kept {
            let id = HeaderValue::from_str(&opening.id).expect("hex digits fit a header");
            response.headers_mut().insert(SESSION_ID, id);
        }
        Ok(response)
    }

    fn open(
        &self,
        owner: &SessionOwner,
        open: impl FnOnce() -> Arc<dyn Service>,
    ) -> Result<SessionOpening<'_>, Refusal> {
        let id = random_id().map_err(|_| Refusal::overloaded("cannot generate a session id"))?;
        self.sweep();
        // Rejected before a service is created if possible; checked again when it counts.
        self.refuse_more(&lock(&self.shared.open), owner)?;
        let session = Arc::new(HttpSession::new(owner.clone(), open(), &self.shared.room));
        let mut sessions = lock(&self.shared.open);
        self.refuse_more(&sessions, owner)?;
        sessions.insert(id.clone(), session.clone());
        Ok(SessionOpening { sessions: self, id, session, is_kept: false })
    }

    /// Removes the session when its peer is closed, which the service may do too.
    fn forget_when_closed(&self, opening: &SessionOpening<'_>) {
        let (shared, id) = (Arc::downgrade(&self.shared), opening.id.clone());
        let closing = opening.session.peer.closing();
        task::spawn(async move {
            closing.cancelled().await;
            if let Some(shared) = shared.upgrade() {
                Sessions { shared }.remove(&id, "the session has ended");
            }
        });
    }

    fn get(&self, headers: &HeaderMap, owner: &SessionOwner) -> Result<Response, Refusal> {
        let session = self.of_headers(headers, owner)?;
        if !inbound::wants_events(headers) {
            return Err(Refusal::not_acceptable());
        }
        match inbound::last_event_id(headers)? {
            Some(event) => session.resume(event),
            None => Ok(session.listen()),
        }
    }

    fn delete(&self, headers: &HeaderMap, owner: &SessionOwner) -> Result<Response, Refusal> {
        self.of_headers(headers, owner)?;
        if let Some(id) = inbound::session_id(headers)? {
            self.remove(id, "the client ended the session");
        }
        Ok(StatusCode::NO_CONTENT.into_response())
    }

    fn of_headers(
        &self,
        headers: &HeaderMap,
        owner: &SessionOwner,
    ) -> Result<Arc<HttpSession>, Refusal> {
        inbound::check_version(headers)?;
        let id = inbound::session_id(headers)?.ok_or_else(Refusal::no_session)?;
        self.find(id, owner)
    }

    fn find(&self, id: &str, owner: &SessionOwner) -> Result<Arc<HttpSession>, Refusal> {
        let found = lock(&self.shared.open).get(id);
        let session = found
            .filter(|session| session.belongs_to(owner))
            .ok_or_else(Refusal::unknown_session)?;
        if session.is_idle(Instant::now()) {
            self.remove(id, IDLE);
            return Err(Refusal::unknown_session());
        }
        session.touch();
        Ok(session)
    }

    fn remove(&self, id: &str, reason: &str) {
        let removed = lock(&self.shared.open).remove(id);
        if let Some(session) = removed {
            session.close(reason);
        }
    }

    /// Runs on each new session, so that no task has to watch the old ones.
    fn sweep(&self) {
        let idle = lock(&self.shared.open).sweep(Instant::now());
        for session in idle {
            session.close(IDLE);
        }
    }

    fn refuse_more(&self, sessions: &OpenSessions, owner: &SessionOwner) -> Result<(), Refusal> {
        self.refuse_while_closing()?;
        if sessions.len() >= limits::HTTP_SESSIONS_MAX {
            return Err(Refusal::overloaded("too many sessions, try again later"));
        }
        if sessions.held_by(&owner.holder) >= limits::HTTP_SESSIONS_PER_HOLDER_MAX {
            let message = "you have too many sessions: end some with DELETE";
            return Err(Refusal::overloaded(message));
        }
        Ok(())
    }

    fn refuse_while_closing(&self) -> Result<(), Refusal> {
        if self.shared.is_closing.load(Ordering::SeqCst) {
            Err(Refusal::overloaded("the server is shutting down"))
        } else {
            Ok(())
        }
    }
}

const IDLE: &str = "the session was idle for too long";

/// A session whose `initialize` is running: removed if that fails or the client stops waiting.
struct SessionOpening<'a> {
    sessions: &'a Sessions,
    id: String,
    session: Arc<HttpSession>,
    is_kept: bool,
}

impl Drop for SessionOpening<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.sessions.remove(&self.id, "initialize failed");
        }
    }
}

/// 128 unguessable bits.
fn random_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

fn is_initialize(frame: &Frame) -> bool {
    matches!(frame, Frame::Single(Message::Request(request)) if request.method == "initialize")
}

fn request_id(frame: &Frame) -> Option<Id> {
    match frame {
        Frame::Single(Message::Request(request)) => Some(request.id.clone()),
        Frame::Single(Message::Notification(_) | Message::Response(_)) | Frame::Batch(_) => None,
    }
}

/// Methods of the handshake era; any other is unknown with or without a session.
fn needs_session(method: &str) -> bool {
    ["tools/", "resources/", "prompts/"].iter().any(|family| method.starts_with(family))
        || ["completion/complete", "logging/setLevel", "ping"].contains(&method)
}
