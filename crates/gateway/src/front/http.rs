//! Clients over streamable HTTP. A token is always needed; a session answers only to the token
//! that opened it.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use domain::{Caller, Code, Refusal};
use mcp::http::guard::Guard;
use mcp::http::server::Sessions;

use crate::Gateway;
use crate::auth::Tokens;
use crate::front::discovery::Discovery;

/// The MCP endpoints of one listener.
#[derive(Clone)]
pub struct Front {
    gateway: Gateway,
    tokens: Arc<Tokens>,
    sessions: Sessions,
}

impl Front {
    pub fn new(gateway: Gateway, tokens: Arc<Tokens>) -> Front {
        Front { gateway, tokens, sessions: Sessions::new() }
    }

    pub fn routes(&self) -> Router {
        Router::new().route("/mcp", any(discovery)).with_state(self.clone())
    }

    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Ends every session; requests that run get to finish.
    pub async fn close(&self) {
        self.sessions.close_all("the gate is shutting down").await;
    }
}

async fn discovery(State(front): State<Front>, request: Request) -> Response {
    let Some(caller) = front.tokens.bearer(request.headers()) else {
        return unauthorized();
    };
    let owner = owner(&caller);
    let open = || Arc::new(Discovery::new(front.gateway.clone(), caller)) as Arc<dyn mcp::Service>;
    front.sessions.handle(request, &owner, open).await
}

/// Refuses requests whose `Host` or `Origin` is not ours: a page that reaches for a local port.
pub fn guarded(router: Router, guard: Guard) -> Router {
    let guard = Arc::new(guard);
    router.layer(middleware::from_fn(move |request: Request, next: Next| {
        let guard = guard.clone();
        async move {
            match guard.check(request.headers()) {
                Ok(()) => next.run(request).await,
                Err(forbidden) => {
                    let refusal = Refusal::new(Code::Forbidden, forbidden.to_string());
                    (StatusCode::FORBIDDEN, axum::Json(refusal.to_json())).into_response()
                }
            }
        }
    }))
}

/// Session ids are bound to the token that made them.
fn owner(caller: &Caller) -> String {
    format!("{:?} {}", caller.role, caller.token)
}

/// The answer to a missing or unknown token, the same on every route.
pub fn unauthorized() -> Response {
    let refusal = Refusal::new(
        Code::Unauthorized,
        "a token is needed: send 'Authorization: Bearer …' with the content of <home>/agent-token",
    );
    let body = axum::Json(refusal.to_json());
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], body).into_response()
}
