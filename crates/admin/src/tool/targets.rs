//! `POST /tools/{server}/{tool}/targets`: the resources that a call would touch. Nothing is called
//! and nothing recorded.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::{Extension, Json};
use domain::Caller;
use domain::method::Method;
use domain::tool::ToolName;
use domain::trust::ItemKind;
use gateway::ExplainedTouches;
use provider::{Call, CallContext, Declared, Surface};
use text::json::Object;
use touch::targets::TargetBasis;

use super::not_found;
use crate::Admin;
use crate::answer::{Path, Refused, RequestId};
use crate::body::{BodyMembers, object, required};
use crate::view::{TargetPlanRule, TriedTarget, TriedTargets};

pub(crate) async fn find(
    State(admin): State<Admin>,
    Path((server, tool)): Path<(String, String)>,
    Extension(request_id): Extension<RequestId>,
    request: Request,
) -> Result<Json<TriedTargets>, Refused> {
    admin.gateway.first_settled(&Caller::admin()).await;
    let tool = ToolName { server, tool };
    let catalog = admin.gateway.catalog();
    if catalog.tool(&tool).is_none() {
        let near = catalog.near(&Caller::admin(), &tool);
        return Err(not_found(ItemKind::Tool, &tool, &near).into());
    }
    let mut body = BodyMembers::read(request).await?;
    let arguments = body.take("arguments");
    body.finish()?;
    let arguments = arguments.ok_or_else(|| required("arguments"))?;
    let arguments = object("arguments", &arguments)?;
    let call = call(tool, arguments, request_id.0);
    let ctx = CallContext::within(admin.gateway.call_timeout(&call.tool.server));
    let ExplainedTouches { touches, rule } = admin.gateway.explain_touches(&call, &ctx).await;
    Ok(Json(TriedTargets {
        name: call.tool.to_string(),
        targets: touches.all().iter().map(TriedTarget::from).collect(),
        basis: touches.basis().unwrap_or(&TargetBasis::NO_RESOURCE).as_str().to_owned(),
        rule: rule.map(TargetPlanRule::from),
    }))
}

/// Returns the call as the pipeline would see it, without a declared intent.
fn call(tool: ToolName, arguments: Object, request_id: String) -> Call {
    Call {
        id: uuid::Uuid::now_v7().to_string(),
        caller: Arc::new(Caller::admin()),
        client: None,
        session: None,
        request_id: Some(request_id),
        surface: Surface::Rest,
        method: Method::ToolCall,
        tool,
        arguments,
        declared: Declared::Nothing,
        other: Vec::new(),
    }
}
