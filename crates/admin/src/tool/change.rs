//! Decisions about tools: approval of the reviewed text, switching on and off.

use axum::Json;
use axum::extract::{Request, State};
use domain::tool::ToolName;
use gateway::operator::ReviewedItem;

use super::switched;
use crate::Admin;
use crate::answer::{Path, Refused};
use crate::body::{BodyMembers, required};
use crate::decision::{Decider, carry_out};
use crate::server::change::kind;
use crate::server::review::explained;
use crate::view::{ApprovedEntry, ApprovedTool, SwitchedTool};

/// Approves the pending text of one item, if it is the reviewed one.
pub(crate) async fn approve(
    State(admin): State<Admin>,
    Path((server, name)): Path<(String, String)>,
    Decider(by): Decider,
    request: Request,
) -> Result<Json<ApprovedTool>, Refused> {
    let mut body = BodyMembers::read_approval(request).await?;
    let kind = kind(body.text("kind")?.as_deref())?;
    let fingerprint = body.text("fingerprint")?;
    body.finish()?;
    let fingerprint = fingerprint.ok_or_else(|| required("fingerprint"))?;
    let reviewed = [ReviewedItem { kind, name, fingerprint }];
    let owned = server.clone();
    let approving = carry_out(async move {
        let approved = admin.gateway.approve_items(&by, &owned, &reviewed).await;
        explained(&admin, &owned, &reviewed, approved).await
    });
    let approved = approving.await?.into_iter().next().map(ApprovedEntry::from);
    Ok(Json(ApprovedTool::new(server, approved.unwrap_or_default())))
}

pub(crate) async fn enable(
    State(admin): State<Admin>,
    Path((server, tool)): Path<(String, String)>,
    Decider(by): Decider,
) -> Result<Json<SwitchedTool>, Refused> {
    let name = ToolName { server, tool };
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    carry_out(async move { gateway.enable_tool(&by, &owned).await }).await?;
    Ok(Json(switched(&admin, name)))
}

pub(crate) async fn disable(
    State(admin): State<Admin>,
    Path((server, tool)): Path<(String, String)>,
    Decider(by): Decider,
) -> Result<Json<SwitchedTool>, Refused> {
    let name = ToolName { server, tool };
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    carry_out(async move { gateway.disable_tool(&by, &owned).await }).await?;
    Ok(Json(switched(&admin, name)))
}
