//! `/tokens`: the credentials of agents. Only the response that creates a token contains its
//! secret.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use domain::caller::Scope;
use domain::caller::scope::Words;
use domain::{Code, Refusal};
use gateway::operator::TokenRequest;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use text::duration;

use crate::Admin;
use crate::answer::{Path, Refused};
use crate::body::{BodyMembers, required};
use crate::decision::{Decider, carry_out};
use crate::view::words::EVERY_SERVER;
use crate::view::{RevokedToken, TokenEntry, TokenList};

pub(crate) async fn list(State(admin): State<Admin>) -> Result<Json<TokenList>, Refused> {
    let records = admin.gateway.token_records().await?;
    let now = Timestamp::now();
    let tokens = records.iter().map(|record| TokenEntry::new(record, now)).collect();
    Ok(Json(TokenList { tokens }))
}

pub(crate) async fn make(
    State(admin): State<Admin>,
    Decider(by): Decider,
    request: Request,
) -> Result<(StatusCode, Json<TokenEntry>), Refused> {
    let wanted = wanted(BodyMembers::read(request).await?)?;
    let made = carry_out(async move { admin.gateway.make_token(&by, wanted).await }).await?;
    let entry = TokenEntry::new(&made.record, Timestamp::now());
    let entry = TokenEntry { token: Some(made.secret), ..entry };
    Ok((StatusCode::CREATED, Json(entry)))
}

pub(crate) async fn revoke(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
) -> Result<Json<RevokedToken>, Refused> {
    let owned = name.clone();
    carry_out(async move { admin.gateway.revoke_token(&by, &owned).await }).await?;
    Ok(Json(RevokedToken { name, revoked: true }))
}

fn wanted(mut body: BodyMembers) -> Result<TokenRequest, Refusal> {
    let name = body.text("name")?;
    let servers = body.words("servers")?;
    let words = Words {
        servers: servers.filter(|names| *names != [EVERY_SERVER]),
        operations: body.words("operations")?.unwrap_or_default(),
        surfaces: body.words("surfaces")?,
        profile: body.text("profile")?,
        unannotated_tools: body.text("unannotated_tools")?,
    };
    let expires_in = body.text("expires_in")?.map(|text| lifetime(&text)).transpose()?;
    body.finish()?;
    let name = name.ok_or_else(|| required("name"))?;
    Ok(TokenRequest { name, scope: Scope::try_from(words)?, expires_in })
}

fn lifetime(text: &str) -> Result<SignedDuration, Refusal> {
    let duration = duration::parse(text).filter(|duration| !duration.is_zero());
    let lifetime = duration.and_then(|duration| SignedDuration::try_from(duration).ok());
    lifetime.ok_or_else(|| {
        let message =
            format!("expires_in must be a duration such as 30d, 12h or 90m, got '{text}'");
        Refusal::new(Code::InvalidRequest, message)
            .with(json!({"field": "expires_in", "provided": text}))
    })
}
