//! What people decide about servers. Adding one starts nothing.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use domain::trust::ItemKind;
use domain::{Caller, Code, Refusal};
use gateway::Gateway;
use gateway::front::discovery;
use gateway::operator::{ApprovedItem, DecisionSource, ReviewedItem};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{entry, listed};
use crate::Admin;
use crate::answer::{Path, Query, Refused};
use crate::body::{Members, required};
use crate::decision::{Decider, carry_out};

pub(crate) async fn add(
    State(admin): State<Admin>,
    Decider(by): Decider,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Refused> {
    let mut body = Members::read(request).await?;
    let name = body.text("name")?.ok_or_else(|| required("name"))?;
    // What an entry of a config may hold, the configuration knows.
    let definition = Value::Object(body.rest());
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    carry_out(async move { gateway.add_server(&by, &owned, &definition).await }).await?;
    Ok((StatusCode::CREATED, Json(entry(&admin, &name).await?)))
}

pub(crate) async fn remove(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
) -> Result<Json<Value>, Refused> {
    let owned = name.clone();
    carry_out(async move { admin.gateway.remove_server(&by, &owned).await }).await?;
    Ok(Json(json!({"name": name, "removed": true})))
}

pub(crate) async fn enable(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
) -> Result<Json<Value>, Refused> {
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    carry_out(async move { gateway.enable_server(&by, &owned).await }).await?;
    Ok(Json(entry(&admin, &name).await?))
}

pub(crate) async fn disable(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
) -> Result<Json<Value>, Refused> {
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    carry_out(async move { gateway.disable_server(&by, &owned).await }).await?;
    Ok(Json(entry(&admin, &name).await?))
}

pub(crate) async fn quarantine(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
) -> Result<Json<Value>, Refused> {
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    carry_out(async move { gateway.quarantine_server(&by, &owned).await }).await?;
    Ok(Json(entry(&admin, &name).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproveQuery {
    inspect: Option<bool>,
}

/// Approves a server; with `inspect`, in the query or in the body, starts it and tells what it
/// lists, and approves nothing.
pub(crate) async fn approve(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Query(query): Query<ApproveQuery>,
    Decider(by): Decider,
    request: Request,
) -> Result<Json<Value>, Refused> {
    let mut body = Members::read_optional(request).await?;
    let inspects = body.flag("inspect")?.or(query.inspect).unwrap_or(false);
    body.finish()?;
    if inspects {
        return Ok(Json(inspect(&admin, by, name).await?));
    }
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    let approved = carry_out(async move { gateway.approve_server(&by, &owned).await }).await?;
    let mut answer = entry(&admin, &name).await?;
    answer["approved"] = approved.iter().map(approved_entry).collect();
    Ok(Json(answer))
}

async fn inspect(admin: &Admin, by: DecisionSource, name: String) -> Result<Value, Refused> {
    let (gateway, owned) = (admin.gateway.clone(), name.clone());
    carry_out(async move { gateway.inspect_server(&by, &owned).await }).await?;
    let mut answer = entry(admin, &name).await?;
    let catalog = admin.gateway.catalog();
    if let Some(reason) = catalog.server(&name).and_then(|server| server.unavailable()) {
        answer["error"] = reason.into();
    }
    answer["items"] = listed(admin, &name, |_| true).await?.into();
    Ok(answer)
}

/// Approves the items that the body names, or everything of the server that waits.
pub(crate) async fn approve_items(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
    request: Request,
) -> Result<Json<Value>, Refused> {
    let mut body = Members::read_optional(request).await?;
    let named = body.list("items")?;
    body.finish()?;
    let named = named.map(|items| items.into_iter().map(reviewed).collect::<Result<Vec<_>, _>>());
    let named = named.transpose()?;
    let (gateway, owned) = (admin.gateway, name.clone());
    let approved = carry_out(async move {
        let reviewed = match named {
            Some(named) => named,
            None => waiting(&gateway, &owned).await?,
        };
        if reviewed.is_empty() {
            Err(nothing_waits(&owned))
        } else {
            gateway.approve_items(&by, &owned, &reviewed).await
        }
    });
    let approved: Vec<Value> = approved.await?.iter().map(approved_entry).collect();
    Ok(Json(json!({"name": name, "approved": approved})))
}

fn reviewed(item: Value) -> Result<ReviewedItem, Refusal> {
    let mut item = Members::nested(item, "items")?;
    let kind = kind(item.text("kind")?)?;
    let name = item.text("name")?;
    let fingerprint = item.text("fingerprint")?;
    item.finish()?;
    let name = match kind {
        // There is one text of them.
        ItemKind::Instructions => name.unwrap_or_default(),
        ItemKind::Tool | ItemKind::Prompt | ItemKind::Template => {
            name.ok_or_else(|| required("name"))?
        }
    };
    Ok(ReviewedItem { kind, name, fingerprint })
}

/// A kind of item; a tool unless it says otherwise.
pub(crate) fn kind(word: Option<String>) -> Result<ItemKind, Refusal> {
    let Some(word) = word else { return Ok(ItemKind::Tool) };
    ItemKind::parse(&word).ok_or_else(|| {
        let valid = ItemKind::ALL.map(ItemKind::as_str);
        let message = format!("kind must be one of {}, got '{word}'", valid.join(", "));
        Refusal::new(Code::InvalidRequest, message)
            .with(json!({"field": "kind", "provided": word, "valid_values": valid}))
    })
}

async fn waiting(gateway: &Gateway, server: &str) -> Result<Vec<ReviewedItem>, Refusal> {
    discovery::server_entry(&gateway.catalog(), &Caller::admin(), server)?;
    let items = gateway.items(server).await?;
    let waiting = items.into_iter().filter(|item| item.listed).filter_map(|item| {
        let fingerprint = Some(item.pending?.fingerprint);
        Some(ReviewedItem { kind: ItemKind::parse(&item.kind)?, name: item.name, fingerprint })
    });
    Ok(waiting.collect())
}

fn nothing_waits(server: &str) -> Refusal {
    Refusal::new(Code::Conflict, format!("nothing of server '{server}' waits for approval"))
}

pub(crate) fn approved_entry(item: &ApprovedItem) -> Value {
    json!({"kind": item.kind, "name": item.name, "fingerprint": item.fingerprint})
}
