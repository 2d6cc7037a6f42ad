//! `GET /servers/{name}/review`: what of a server waits for approval, with the fingerprints that an
//! approval must name.

use axum::Json;
use axum::extract::State;
use domain::trust::{ServerChange, difference};
use domain::{Code, Refusal};
use gateway::operator::ReviewedItem;
use serde_json::json;
use store::state::ServerItem;

use super::listed;
use crate::Admin;
use crate::answer::{Path, Refused};
use crate::review::laid_out;
use crate::view::{DiffLine, ServerReviewEntry};

pub(crate) async fn show(
    State(admin): State<Admin>,
    Path(name): Path<String>,
) -> Result<Json<ServerReviewEntry>, Refused> {
    Ok(Json(entry(&admin, &name, |_| true).await?))
}

/// Adds to a refused approval what is there now, if that is not what was reviewed.
pub(crate) async fn explained<T>(
    admin: &Admin,
    server: &str,
    reviewed: &[ReviewedItem],
    outcome: Result<T, Refusal>,
) -> Result<T, Refusal> {
    let refusal = match outcome {
        Err(refusal) if refusal.code == Code::ReviewChanged => refusal,
        other => return other,
    };
    let is_named = |item: &ServerItem| {
        reviewed.iter().any(|named| named.kind.as_str() == item.kind && named.name == item.name)
    };
    let now = entry(admin, server, is_named).await?;
    Err(refusal.with(json!({"review": now})))
}

async fn entry(
    admin: &Admin,
    name: &str,
    fits: impl Fn(&ServerItem) -> bool,
) -> Result<ServerReviewEntry, Refusal> {
    let review = admin.gateway.review_server(name).await?;
    let shown = review.text().shown();
    let change = review.change();
    let approved = review.approved_text().filter(|_| change.is_some());
    let diff = approved.map(|approved| difference(Some(&approved), &shown));
    Ok(ServerReviewEntry {
        name: name.to_owned(),
        quarantined: review.is_quarantined,
        fingerprint: review.fingerprint(),
        visible: laid_out(&shown),
        change: change.map(|change| change.as_str().to_owned()),
        reason: change.map(ServerChange::meaning).map(str::to_owned),
        diff: diff.map(|lines| lines.into_iter().map(DiffLine::from).collect()),
        listed: review.has_listed,
        items: listed(admin, name, |item| item.pending.is_some() && fits(item)).await?,
    })
}
