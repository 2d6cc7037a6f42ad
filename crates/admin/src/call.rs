//! `POST /tools/call`: a call by a person or a script, through the same pipeline as any other.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::{Extension, Json};
use domain::method::Method;
use domain::tool::Class;
use domain::{Caller, Code, Refusal};
use gateway::intake;
use gateway::span::RequestOrigin;
use mcp::message::Raw;
use mcp::object::ObjectMembers;
use mcp::task;
use provider::{
    Call, CallContext, CallOutcome, Declared, Gate, RecordState, Surface, TraceContext,
};
use serde_json::{Value, json};
use text::json::Object;

use crate::answer::{Refused, RequestId};
use crate::view::CallAnswer;
use crate::{Admin, SOURCE_HEADER, body};

/// The size limit of a request body. Larger arguments belong in a file or a resource.
const BODY_BYTES_MAX: usize = mcp::limits::FRAME_BYTES_MAX;

pub(crate) async fn make(
    State(admin): State<Admin>,
    Extension(request_id): Extension<RequestId>,
    request: Request,
) -> Result<Json<CallAnswer>, Refused> {
    let surface = match request.headers().get(&SOURCE_HEADER) {
        Some(source) if source == "cli" => Surface::Cli,
        _ => Surface::Rest,
    };
    let requested = RequestOrigin { surface, session: None, id: &request_id.0 };
    let mut span = admin.gateway.request_span(&requested, trace(request.headers()));
    let body = body::read(request, BODY_BYTES_MAX).await?;
    let read = || {
        let (class, parameters) = variant(&body)?;
        let parsed = intake::two_key_call(class, &parameters);
        Ok((class, parsed.map_err(|refusal| with_variant(refusal, class))?))
    };
    let (class, parsed) = read().inspect_err(|refusal| span.refused(refusal))?;
    let call = Call {
        id: uuid::Uuid::now_v7().to_string(),
        caller: Arc::new(Caller::admin()),
        client: None,
        session: None,
        request_id: Some(request_id.0),
        surface,
        method: Method::ToolCall,
        tool: parsed.tool,
        arguments: parsed.arguments,
        declared: Declared::Variant(class, Box::new(parsed.declaration)),
        other: Vec::new(),
    };
    let id = call.id.clone();
    let timeout = admin.gateway.call_timeout(&call.tool.server);
    let ctx = CallContext { trace: span.trace().clone(), ..CallContext::within(timeout) };
    // The call continues if the client disconnects: it may have taken effect, and is recorded.
    let gateway = admin.gateway.clone();
    let running = task::spawn(async move {
        let outcome = gateway.call(call, &ctx).await;
        drop(span);
        outcome
    });
    let outcome = running.await.map_err(|_| {
        Refusal::new(Code::Cancelled, "the call ended because the gate is shutting down")
    })?;
    answer(id, outcome).map_err(|refusal| with_variant(refusal, class).into())
}

/// Returns the trace that the request belongs to. An invalid trace header is ignored.
fn trace(headers: &HeaderMap) -> TraceContext {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let trace = TraceContext { traceparent: text("traceparent"), tracestate: text("tracestate") };
    if trace.ids().is_some() { trace } else { TraceContext::default() }
}

/// Takes `tool_variant` out of the body. The remaining members are the parameters of a two-key
/// call.
fn variant(body: &[u8]) -> Result<(Class, Raw), Refusal> {
    let invalid = |words: String| Refusal::new(Code::InvalidRequest, words);
    let text =
        std::str::from_utf8(body).map_err(|_| invalid("the body is not UTF-8".to_owned()))?;
    let object = Object::parse(text)
        .map_err(|error| invalid(body::not_json(&error)))?
        .ok_or_else(|| invalid("the body must be a JSON object".to_owned()))?;
    let mut members =
        ObjectMembers::parse(object.text()).map_err(|error| invalid(body::not_json(&error)))?;
    let given = object.value().get("tool_variant").cloned().unwrap_or_default();
    let class = given.as_str().and_then(Class::from_variant).ok_or_else(|| {
        let valid = Class::ALL.map(Class::variant);
        invalid(format!("tool_variant must be one of {}", valid.join(", ")))
            .with(json!({"field": "tool_variant", "provided": given, "valid_values": valid}))
    })?;
    members.remove("tool_variant");
    Ok((class, members.write()))
}

/// Completes the example of a correct call with the member that only this route has.
fn with_variant(mut refusal: Refusal, class: Class) -> Refusal {
    if let Some(Value::Object(example)) = refusal.details.get_mut("example") {
        example.insert("tool_variant".to_owned(), class.variant().into());
    }
    refusal
}

fn answer(id: String, outcome: CallOutcome) -> Result<Json<CallAnswer>, Refusal> {
    match outcome {
        CallOutcome::Replied { reply, warnings, kept } => Ok(Json(CallAnswer {
            id,
            result: reply.result.into(),
            warnings,
            ledger: (kept == RecordState::Queued).then(|| "queued".to_owned()),
        })),
        CallOutcome::Refused(refusal) | CallOutcome::Failed { refusal, .. } => Err(refusal),
    }
}
