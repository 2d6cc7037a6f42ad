//! Clients over streamable HTTP. Every request needs a token; a session accepts only the token that
//! opened it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use domain::caller::Role;
use domain::{Caller, Code, Refusal};
use mcp::http::guard::{Forbidden, Guard};
use mcp::http::server::{SessionOwner, Sessions};
use serde_json::json;
use tower::ServiceExt;

use crate::Gateway;
use crate::front::View;
use crate::front::answer::{self, REQUEST_ID};
use crate::front::visitor::Visitor;

/// The MCP endpoints of one listener.
#[derive(Clone)]
pub struct Front {
    gateway: Gateway,
    sessions: Sessions,
}

impl Front {
    pub fn new(gateway: Gateway) -> Front {
        Front { gateway, sessions: Sessions::new() }
    }

    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Ends every session; requests in flight finish first.
    pub async fn close(&self) {
        self.sessions.close_all("the gate is shutting down").await;
    }
}

/// Answers a client without a token that tries to register itself, as OAuth clients do. Claude Code
/// shows its user this answer alone.
async fn no_registration(State(front): State<Front>) -> Response {
    let description = missing_token(&front.gateway);
    let body = json!({"error": "access_denied", "error_description": description});
    (StatusCode::FORBIDDEN, Json(body)).into_response()
}

impl Front {
    async fn serve(&self, view: View, request: Request, visitor: &Visitor) -> Response {
        let caller = match enter(&self.gateway, visitor, request.headers()).await {
            Ok(caller) => caller,
            Err(refused) => return refused,
        };
        if let Some(refused) = refused(&view, &self.gateway, &caller, request.headers()) {
            return refused;
        }
        if let Err(refusal) = self.gateway.check_rate(&caller) {
            return too_many(request.headers(), &refusal);
        }
        let given = request.headers().get(&REQUEST_ID).cloned();
        // A session accepts only the token that opened it, and only under the same view.
        let owner = SessionOwner { holder: holder(&caller), view: view.key() };
        let open = || view.open(&self.gateway, &caller);
        let response = self.sessions.handle(request, &owner, open).await;
        if response.status().is_success() {
            response
        } else {
            // The body is for MCP clients, which do not use request ids.
            answer::named(response, &answer::request_id(given.as_ref()))
        }
    }
}

/// Returns the caller of a request, or the response to a wrong token.
pub async fn enter(
    gateway: &Gateway,
    visitor: &Visitor,
    headers: &HeaderMap,
) -> Result<Arc<Caller>, Response> {
    match gateway.entering(visitor, headers).await {
        Ok(Some(caller)) => Ok(caller),
        Ok(None) => Err(unauthorized(gateway, headers)),
        Err(refusal) => Err(too_many(headers, &refusal)),
    }
}

/// Builds a text unique to each caller: the roles are fixed words.
fn holder(caller: &Caller) -> String {
    let role = match caller.role {
        Role::Admin => "admin ",
        Role::Agent => "agent ",
    };
    [role, &caller.token].concat()
}

/// Builds the response for a view that does not exist for the caller, or that its token is not
/// valid for. A server the caller may not see gets the same response as one that does not exist.
pub fn refused(
    view: &View,
    gateway: &Gateway,
    caller: &Caller,
    headers: &HeaderMap,
) -> Option<Response> {
    let (status, refusal) = if !caller.uses(view.surface()) {
        let surface = view.surface().as_str();
        let message = format!("token '{}' is not valid for surface '{surface}'", caller.token);
        (StatusCode::FORBIDDEN, Refusal::new(Code::NotPermitted, message))
    } else if !view.exists(gateway, caller) {
        let kind = match view {
            View::Profile(_) => "profile",
            View::Discovery | View::All | View::Server(_) => "server",
        };
        let message = format!("there is no such {kind}");
        (StatusCode::NOT_FOUND, Refusal::new(Code::NotFound, message))
    } else {
        return None;
    };
    Some(answer::refuse(headers, status, &refusal))
}

/// All that a listener serves. The MCP endpoints are found without the router, which would cost
/// each call more than they do.
#[derive(Clone)]
pub struct FrontDoor {
    front: Front,
    /// The routes that are no MCP endpoints.
    others: Router,
    /// May be replaced while it is in use.
    guard: Arc<ArcSwap<Guard>>,
}

impl FrontDoor {
    pub fn new(front: Front, others: Router, guard: Arc<ArcSwap<Guard>>) -> FrontDoor {
        let registration = Router::new().route("/register", post(no_registration));
        let others = others.merge(registration.with_state(front.clone()));
        FrontDoor { front, others, guard }
    }

    /// Returns a router that answers alike, for a listener that does not bound its connections.
    pub fn router(self) -> Router {
        let visitor = Visitor::of(&Extensions::new());
        Router::new().fallback(async move |request: Request| self.answer(request, &visitor).await)
    }

    /// Answers a request, unless its `Host` or `Origin` is not ours, such as that of a web page
    /// which tries to reach a local port.
    pub async fn answer(&self, mut request: Request, visitor: &Visitor) -> Response {
        if let Err(forbidden) = self.guard.load().check(request.uri(), request.headers()) {
            return keep_out(&forbidden, request.headers());
        }
        match View::at(request.uri().path()) {
            Some(view) => self.front.serve(view, request, visitor).await,
            None => {
                request.extensions_mut().insert(visitor.clone());
                let answered = self.others.clone().oneshot(request).await;
                answered.unwrap_or_else(|never| match never {})
            }
        }
    }
}

fn keep_out(forbidden: &Forbidden, headers: &HeaderMap) -> Response {
    let hint = match forbidden {
        Forbidden::Host(_) => {
            ": if this name leads to the gate, add it to 'allowed_hosts' in the config"
        }
        Forbidden::Origin(_) => {
            ": if this page is yours, add it to 'allowed_origins' in the config"
        }
        Forbidden::HostMissing
        | Forbidden::Repeated(_)
        | Forbidden::Malformed(_)
        | Forbidden::Target => "",
    };
    let refusal = Refusal::new(Code::Forbidden, format!("{forbidden}{hint}"));
    answer::refuse(headers, StatusCode::FORBIDDEN, &refusal)
}

/// Builds the response to a caller that uses more than its share.
fn too_many(headers: &HeaderMap, refusal: &Refusal) -> Response {
    let mut response = answer::refuse(headers, StatusCode::TOO_MANY_REQUESTS, refusal);
    if let Some(wait) = refusal.details["retry_after_s"].as_f64() {
        let wait = HeaderValue::from(wait as u64);
        response.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    response
}

/// Builds the response to a missing or unknown token, the same on every route.
fn unauthorized(gateway: &Gateway, headers: &HeaderMap) -> Response {
    let refusal = Refusal::new(Code::Unauthorized, missing_token(gateway));
    let mut response = answer::refuse(headers, StatusCode::UNAUTHORIZED, &refusal);
    let scheme = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    response
}

/// Says which header is missing, and which command needs none.
fn missing_token(gateway: &Gateway) -> &'static str {
    if gateway.settings().agent_token {
        "missing or invalid token: send the header 'Authorization: Bearer …' with the content of \
         <home>/agent-token, or connect with 'countersign mcp', which needs no header"
    } else {
        "missing or invalid token: the default token, which 'countersign mcp' uses, is switched off \
         ('agent_token' in the config); connect over HTTP and send the header 'Authorization: Bearer \
         …' with a token of 'countersign token create'"
    }
}
