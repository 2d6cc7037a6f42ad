//! The operator's interface: REST over HTTP and over `control.sock`. It shows the state of the
//! gate, makes calls through the same pipeline, and passes on people's decisions. It holds no
//! rules.

mod access;
mod activity;
mod agent;
mod answer;
mod body;
mod call;
mod contention;
mod copy;
mod coverage;
mod csv;
mod decision;
mod document;
mod events;
mod form;
mod ledger;
mod metrics;
mod openapi;
mod operation;
pub mod page;
mod probe;
mod query;
mod receipt;
mod review;
pub mod routes;
mod run;
pub mod server;
mod status;
mod token;
mod tool;
pub mod view;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderName;
use axum::middleware::{self, Next};
use axum::response::Response;
use domain::caller::Role;
use domain::{Caller, Code, Refusal};
use gateway::Gateway;
use gateway::front::answer::{REQUEST_ID, named, request_id};
use gateway::front::visitor::Visitor;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::answer::{Refused, RequestId};
use crate::page::{PageSessions, door};
use crate::server::warned::WarnedItems;

/// Set by `countersign call`, so that the record shows the source of the call.
pub const SOURCE_HEADER: HeaderName = HeaderName::from_static("x-countersign-source");

#[derive(Clone)]
struct Admin {
    gateway: Gateway,
    started: Instant,
    started_at: Timestamp,
    /// The browsers signed in to the page.
    sessions: Arc<PageSessions>,
    warned: Arc<WarnedItems>,
    /// The OpenAPI document, written on first use.
    document: &'static LazyLock<String>,
}

static DOCUMENT: LazyLock<String> = LazyLock::new(document::text);

/// Returns the router for the API and the page.
pub fn router(gateway: Gateway, sessions: Arc<PageSessions>) -> Router {
    let started_at = Timestamp::now();
    let started = Instant::now();
    let (warned, document) = (Arc::default(), &DOCUMENT);
    let admin = Admin { gateway, started, started_at, sessions, warned, document };
    let closed = routes::closed()
        .route("/api/v1/{*rest}", axum::routing::any(unknown_route))
        .method_not_allowed_fallback(method_not_allowed)
        .route_layer(middleware::from_fn_with_state(admin.clone(), admit));
    routes::open()
        .merge(routes::entry())
        .method_not_allowed_fallback(method_not_allowed)
        .merge(closed)
        .fallback(unknown_route)
        .layer(middleware::from_fn(with_request_id))
        .layer(middleware::from_fn_with_state(admin.clone(), page::drop_leftovers))
        .with_state(admin)
}

/// Admits a request with the admin key, or from a page signed in through a link that the key's
/// holder made; an agent's token never suffices. Refuses undocumented parameters.
async fn admit(
    State(admin): State<Admin>,
    request: Request,
    next: Next,
) -> Result<Response, Refused> {
    let visitor = Visitor::of(request.extensions());
    let caller = admin.gateway.entering(&visitor, request.headers()).await?;
    match caller.map(|caller| caller.role) {
        Some(Role::Admin) => {
            query::check(&request, routes::query_parameters)?;
            Ok(next.run(request).await)
        }
        Some(Role::Agent) => Err(Refusal::new(
            Code::Forbidden,
            "this route does not accept agent tokens: use the admin key in <home>/api-key",
        )
        .into()),
        None => match door::admit(&admin.sessions, &request)? {
            Some(opened) => {
                visitor.admit(&Caller::admin().token)?;
                query::check(&request, routes::query_parameters)?;
                Ok(opened.bound(next.run(request).await))
            }
            None => Err(Refusal::new(
                Code::Unauthorized,
                "missing or invalid admin key: send 'Authorization: Bearer …' with the content of \
                 <home>/api-key",
            )
            .into()),
        },
    }
}

/// Gives each request an id, which its response and errors carry.
async fn with_request_id(mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers().get(&REQUEST_ID));
    request.extensions_mut().insert(RequestId(id.clone()));
    named(answer::write_refusal(next.run(request).await, &id), &id)
}

async fn unknown_route(request: Request) -> Refused {
    let message = format!("route {} not found", request.uri().path());
    Refusal::new(Code::NotFound, message).into()
}

async fn method_not_allowed(request: Request) -> Refused {
    let message = format!("{} is not allowed on {}", request.method(), request.uri().path());
    Refusal::new(Code::MethodNotAllowed, message).into()
}
