//! Decisions about servers. Adding one starts nothing.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use domain::Refusal;
use domain::trust::ItemKind;
use gateway::operator::{DecisionSource, ReviewedItem};
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;

use super::review::explained;
use super::{entry, listed};
use crate::Admin;
use crate::answer::{Path, Query, Refused};
use crate::body::{BodyMembers, required};
use crate::decision::{Decider, carry_out};
use crate::ledger::one_of;
use crate::view::{ApprovedEntry, ApprovedItems, RemovedServer, ServerEntry};

pub(crate) async fn add(
    State(admin): State<Admin>,
    Decider(by): Decider,
    request: Request,
) -> Result<(StatusCode, Json<ServerEntry>), Refused> {
    let mut body = BodyMembers::read(request).await?;
    let name = body.text("name")?.ok_or_else(|| required("name"))?;
    // The configuration knows the valid members of an entry.
    let definition = Value::Object(body.rest());
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    carry_out(async move { gateway.add_server(&by, &owned, &definition).await }).await?;
    Ok((StatusCode::CREATED, Json(entry(&admin, &name).await?)))
}

pub(crate) async fn remove(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
) -> Result<Json<RemovedServer>, Refused> {
    let owned = name.clone();
    carry_out(async move { admin.gateway.remove_server(&by, &owned).await }).await?;
    Ok(Json(RemovedServer { name, removed: true }))
}

pub(crate) async fn enable(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
) -> Result<Json<ServerEntry>, Refused> {
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    carry_out(async move { gateway.enable_server(&by, &owned).await }).await?;
    Ok(Json(entry(&admin, &name).await?))
}

pub(crate) async fn disable(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
) -> Result<Json<ServerEntry>, Refused> {
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    carry_out(async move { gateway.disable_server(&by, &owned).await }).await?;
    Ok(Json(entry(&admin, &name).await?))
}

pub(crate) async fn quarantine(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
) -> Result<Json<ServerEntry>, Refused> {
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    carry_out(async move { gateway.quarantine_server(&by, &owned).await }).await?;
    Ok(Json(entry(&admin, &name).await?))
}

#[derive(Deserialize, IntoParams)]
pub(crate) struct ApproveQuery {
    /// Only starts the server and reports what it lists.
    inspect: Option<bool>,
}

/// Approves a server as it was reviewed. With `inspect`, in the query or in the body, starts it and
/// reports what it lists, but approves nothing.
pub(crate) async fn approve(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Query(query): Query<ApproveQuery>,
    Decider(by): Decider,
    request: Request,
) -> Result<Json<ServerEntry>, Refused> {
    let mut body = BodyMembers::read_approval(request).await?;
    let inspects = body.flag("inspect")?.or(query.inspect).unwrap_or(false);
    let fingerprint = body.text("fingerprint")?;
    let items = body.list("items")?.unwrap_or_default();
    body.finish()?;
    let items = items.into_iter().map(reviewed).collect::<Result<Vec<_>, _>>()?;
    if inspects {
        return Ok(Json(inspect(&admin, by, name).await?));
    }
    let fingerprint = fingerprint.ok_or_else(|| required("fingerprint"))?;
    let (deciding, owned) = (admin.clone(), name.clone());
    let approved = carry_out(async move {
        let gateway = &deciding.gateway;
        let approved = gateway.approve_server(&by, &owned, &fingerprint, &items).await;
        explained(&deciding, &owned, &items, approved).await
    });
    let approved = Some(approved.await?.into_iter().map(ApprovedEntry::from).collect());
    Ok(Json(ServerEntry { approved, ..entry(&admin, &name).await? }))
}

async fn inspect(admin: &Admin, by: DecisionSource, name: String) -> Result<ServerEntry, Refused> {
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    carry_out(async move { gateway.inspect_server(&by, &owned).await }).await?;
    let catalog = admin.gateway.catalog();
    let entry = entry(admin, &name).await?;
    let reason = catalog.server(&name).and_then(|server| server.unavailable_in_full());
    let items = Some(listed(admin, &name, |_| true).await?);
    Ok(ServerEntry { error: reason.or(entry.error), items, ..entry })
}

/// Approves the items that the body names, as they were reviewed.
pub(crate) async fn approve_items(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
    request: Request,
) -> Result<Json<ApprovedItems>, Refused> {
    let mut body = BodyMembers::read_approval(request).await?;
    let items = body.list("items")?;
    body.finish()?;
    let items = items.ok_or_else(|| required("items"))?;
    let items = items.into_iter().map(reviewed).collect::<Result<Vec<_>, _>>()?;
    let owned = name.clone();
    let approved = carry_out(async move {
        let approved = admin.gateway.approve_items(&by, &owned, &items).await;
        explained(&admin, &owned, &items, approved).await
    });
    let approved = approved.await?.into_iter().map(ApprovedEntry::from).collect();
    Ok(Json(ApprovedItems { name, approved }))
}

fn reviewed(item: Value) -> Result<ReviewedItem, Refusal> {
    let mut item = BodyMembers::nested(item, "items")?;
    let kind = kind(item.text("kind")?.as_deref())?;
    let name = item.text("name")?;
    let fingerprint = item.text("fingerprint")?;
    item.finish()?;
    let name = match kind {
        // A server has only one text of instructions.
        ItemKind::Instructions => name.unwrap_or_default(),
        ItemKind::Tool | ItemKind::Prompt | ItemKind::Template => {
            name.ok_or_else(|| required("name"))?
        }
    };
    let fingerprint = fingerprint.ok_or_else(|| required("fingerprint"))?;
    Ok(ReviewedItem { kind, name, fingerprint })
}

/// Parses a kind of item; the default is a tool.
pub(crate) fn kind(word: Option<&str>) -> Result<ItemKind, Refusal> {
    Ok(one_of("kind", word, &ItemKind::ALL, ItemKind::as_str)?.unwrap_or(ItemKind::Tool))
}
