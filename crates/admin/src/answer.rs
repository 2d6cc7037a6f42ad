//! Responses and errors in one shape: `{"error": {"code", "message", "details"}, "request_id"}`.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::{Code, Refusal};
use gateway::front::answer::body;
use serde::de::DeserializeOwned;

/// The id of the current request.
#[derive(Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// A refusal as a response. The middleware that knows the request id writes the body.
#[derive(Debug)]
pub(crate) struct Refused(Box<Refusal>);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Refused(Box::new(refusal))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = status(self.0.code).into_response();
        if self.0.code == Code::Unauthorized {
            let scheme = header::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response.extensions_mut().insert(*self.0);
        response
    }
}

pub(crate) fn write_refusal(mut response: Response, request_id: &str) -> Response {
    let Some(refusal) = response.extensions_mut().remove::<Refusal>() else {
        return response;
    };
    let (mut parts, _) = response.into_parts();
    let (body_parts, body) = body(&refusal, request_id).into_response().into_parts();
    parts.headers.extend(body_parts.headers);
    Response::from_parts(parts, body)
}

/// Responds with text that is already JSON.
pub(crate) fn json(text: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text.into()).into_response()
}

pub(crate) fn status(code: Code) -> StatusCode {
    match code {
        Code::MissingIntent
        | Code::MissingOperationType
        | Code::InvalidOperationType
        | Code::IntentMismatch
        | Code::InvalidSensitivity
        | Code::ReasonTooLong
        | Code::ServerMismatch
        | Code::InvalidArguments
        | Code::InvalidRequest
        | Code::ProxyUnknownKey
        | Code::ProxyUnknownPlugin
        | Code::ProxyPluginNotApproved
        | Code::ProxyUnknownServer
        | Code::ProxyUnknownOperation
        | Code::ProxyNameCollision
        | Code::ProxyEmpty
        | Code::ProxyUnsupportedProvider
        | Code::WorkflowSyntax
        | Code::WorkflowUnknownKey
        | Code::WorkflowMissingKey
        | Code::WorkflowWrongType
        | Code::WorkflowBadValue
        | Code::WorkflowBadName
        | Code::WorkflowUnknownState
        | Code::WorkflowUnreachable
        | Code::WorkflowNoEffect
        | Code::WorkflowNoTerminal
        | Code::WorkflowBadParallel
        | Code::WorkflowBadExpression
        | Code::WorkflowBadTemplate
        | Code::WorkflowIsolation
        | Code::WorkflowNoAgent
        | Code::WorkflowBadFolder
        | Code::ProxyServerUnusable
        | Code::WorkflowBadInput
        | Code::WorkflowVisitLimit => StatusCode::BAD_REQUEST,
        Code::Unauthorized => StatusCode::UNAUTHORIZED,
        Code::ToolBlocked | Code::NotPermitted | Code::Forbidden => StatusCode::FORBIDDEN,
        Code::ToolNotFound | Code::NotFound | Code::CacheMiss => StatusCode::NOT_FOUND,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::Cancelled
        | Code::Conflict
        | Code::ReviewChanged
        | Code::RunNotResumable
        | Code::SignInFailed => StatusCode::CONFLICT,
        Code::TooManyRequests | Code::LedgerShareExceeded => StatusCode::TOO_MANY_REQUESTS,
        Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::UpstreamError
        | Code::OutcomeUnknown
        | Code::ResponseTooLarge
        | Code::AgentFailed
        | Code::AgentBypassed
        | Code::AgentLimit
        | Code::AgentNotIsolated
        | Code::CommandFailed
        | Code::OperationFailed
        | Code::ProxyLoopGuard => StatusCode::BAD_GATEWAY,
        Code::UpstreamUnavailable
        | Code::LedgerUnavailable
        | Code::LedgerIncomplete
        | Code::SecretsUnavailable
        | Code::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        Code::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        Code::Timeout => StatusCode::GATEWAY_TIMEOUT,
    }
}

/// Query parameters. A refusal names the parameter that is unknown or malformed.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        let query = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        query
            .map(|query| Query(query.0))
            .map_err(|rejection| crate::query::invalid(&parts.uri, &rejection.body_text()).into())
    }
}

/// Path parameters.
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|path| Path(path.0)).map_err(|_| {
            let message = "a name in the path is not UTF-8 in percent-encoding";
            Refusal::new(Code::InvalidRequest, message).into()
        })
    }
}
