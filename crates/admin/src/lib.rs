//! The operator's door: REST over HTTP and over `control.sock`. It shows what the gate knows and
//! makes calls through the same pipeline; what people decide it passes on, and holds no rule itself.

mod activity;
mod answer;
mod body;
mod call;
mod contention;
mod decision;
mod events;
mod ledger;
mod receipt;
mod record;
mod review;
mod server;
mod status;
mod token;
mod tool;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{delete, get, post};
use domain::caller::Role;
use domain::{Code, Refusal};
use gateway::Gateway;
use tokio::time::Instant;

use crate::answer::{Refused, RequestId};

/// Set by `countersign call`, so that the record says where the call came from.
pub const SOURCE_HEADER: HeaderName = HeaderName::from_static("x-countersign-source");

const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Request ids of callers are echoed up to this length.
const REQUEST_ID_BYTES_MAX: usize = 128;

#[derive(Clone)]
struct Admin {
    gateway: Gateway,
    started: Instant,
}

/// Every route of the API.
pub fn routes(gateway: Gateway) -> Router {
    let admin = Admin { gateway, started: Instant::now() };
    Router::new()
        .route("/api/v1/status", get(status::show))
        .route("/api/v1/servers", get(server::list).post(server::change::add))
        .route("/api/v1/servers/{name}", get(server::show).delete(server::change::remove))
        .route("/api/v1/servers/{name}/enable", post(server::change::enable))
        .route("/api/v1/servers/{name}/disable", post(server::change::disable))
        .route("/api/v1/servers/{name}/quarantine", post(server::change::quarantine))
        .route("/api/v1/servers/{name}/approve", post(server::change::approve))
        .route("/api/v1/servers/{name}/items", get(server::items))
        .route("/api/v1/servers/{name}/approve-items", post(server::change::approve_items))
        .route("/api/v1/servers/{name}/logs", get(server::logs))
        .route("/api/v1/servers/{name}/restart", post(server::restart))
        .route("/api/v1/tools", get(tool::list))
        .route("/api/v1/tools/call", post(call::make))
        .route("/api/v1/tools/{server}/{tool}", get(tool::show))
        .route("/api/v1/tools/{server}/{tool}/approve", post(tool::change::approve))
        .route("/api/v1/tools/{server}/{tool}/enable", post(tool::change::enable))
        .route("/api/v1/tools/{server}/{tool}/disable", post(tool::change::disable))
        .route("/api/v1/tokens", get(token::list).post(token::make))
        .route("/api/v1/tokens/{name}", delete(token::revoke))
        .route("/api/v1/activity", get(activity::list))
        .route("/api/v1/activity/export", get(activity::export))
        .route("/api/v1/activity/summary", get(activity::summary))
        .route("/api/v1/activity/{id}", get(activity::show))
        .route("/api/v1/receipts", get(receipt::list))
        .route("/api/v1/receipts/export", get(receipt::export))
        .route("/api/v1/receipts/{id}", get(receipt::show))
        .route("/api/v1/chains", get(receipt::chains))
        .route("/api/v1/chains/{id}/verify", get(receipt::verify))
        .route("/api/v1/keys", get(receipt::keys))
        .route("/api/v1/keys/rotate", post(receipt::rotate))
        .route("/api/v1/contention", get(contention::show))
        .route("/api/v1/events", get(events::stream))
        .route("/api/v1/{*rest}", axum::routing::any(unknown_route))
        .method_not_allowed_fallback(method_not_allowed)
        .route_layer(middleware::from_fn_with_state(admin.clone(), admit))
        .fallback(unknown_route)
        .layer(middleware::from_fn(with_request_id))
        .with_state(admin)
}

/// Only the admin key opens these routes, whatever an agent's token may do elsewhere.
async fn admit(
    State(admin): State<Admin>,
    request: Request,
    next: Next,
) -> Result<Response, Refused> {
    match admin.gateway.tokens().bearer(request.headers()).map(|caller| caller.role) {
        Some(Role::Admin) => Ok(next.run(request).await),
        Some(Role::Agent) => Err(Refusal::new(
            Code::Forbidden,
            "an agent's token does not open this route: use the admin key in <home>/api-key",
        )
        .into()),
        None => Err(Refusal::new(
            Code::Unauthorized,
            "the admin key is needed: send 'Authorization: Bearer …' with the content of \
             <home>/api-key",
        )
        .into()),
    }
}

/// Gives each request an id, which errors repeat and the answer carries.
async fn with_request_id(mut request: Request, next: Next) -> Response {
    let given = request.headers().get(&REQUEST_ID_HEADER).and_then(|id| id.to_str().ok());
    let id = match given {
        Some(id) if (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) => id.to_owned(),
        _ => uuid::Uuid::now_v7().to_string(),
    };
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut response = answer::write_refusal(next.run(request).await, &id);
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID_HEADER, id);
    }
    response
}

async fn unknown_route(request: Request) -> Refused {
    let message = format!("there is no route {}", request.uri().path());
    Refusal::new(Code::NotFound, message).into()
}

async fn method_not_allowed(request: Request) -> Refused {
    let message = format!("{} is not for {}", request.method(), request.uri().path());
    Refusal::new(Code::MethodNotAllowed, message).into()
}
