//! `/tokens`: what agents may show at the door. A secret is in the answer that makes it, and in no
//! other.

pub(crate) mod openapi;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use domain::caller::Scope;
use domain::caller::scope::Words;
use domain::{Code, Refusal, duration};
use gateway::operator::Wanted;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use store::state::TokenRecord;

use crate::Admin;
use crate::answer::{Path, Refused};
use crate::body::{Members, required};
use crate::decision::{Decider, carry_out};
use crate::record::moment;

/// The word for all servers; no server can have it as its name.
const EVERY: &str = "*";

pub(crate) async fn list(State(admin): State<Admin>) -> Result<Json<Value>, Refused> {
    let records = admin.gateway.token_records().await?;
    let now = Timestamp::now();
    let tokens: Vec<Value> = records.iter().map(|record| entry(record, now)).collect();
    Ok(Json(json!({"tokens": tokens})))
}

pub(crate) async fn make(
    State(admin): State<Admin>,
    Decider(by): Decider,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Refused> {
    let wanted = wanted(Members::read(request).await?)?;
    let made = carry_out(async move { admin.gateway.make_token(&by, wanted).await }).await?;
    let mut answer = entry(&made.record, Timestamp::now());
    answer["token"] = made.secret.into();
    Ok((StatusCode::CREATED, Json(answer)))
}

pub(crate) async fn revoke(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
) -> Result<Json<Value>, Refused> {
    let owned = name.clone();
    carry_out(async move { admin.gateway.revoke_token(&by, &owned).await }).await?;
    Ok(Json(json!({"name": name, "revoked": true})))
}

fn wanted(mut body: Members) -> Result<Wanted, Refusal> {
    let name = body.text("name")?;
    let servers = body.words("servers")?;
    let words = Words {
        servers: servers.filter(|names| *names != [EVERY]),
        operations: body.words("operations")?.unwrap_or_default(),
        surfaces: body.words("surfaces")?,
        profile: body.text("profile")?,
        unannotated_tools: body.text("unannotated_tools")?,
    };
    let expires_in = body.text("expires_in")?.map(|text| lifetime(&text)).transpose()?;
    body.finish()?;
    let name = name.ok_or_else(|| required("name"))?;
    Ok(Wanted { name, scope: Scope::try_from(words)?, expires_in })
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

/// A token as it is shown: its name, what it is good for, and whether it still is.
fn entry(record: &TokenRecord, now: Timestamp) -> Value {
    let state = match record {
        TokenRecord { revoked_at: Some(_), .. } => "revoked",
        TokenRecord { expires_at: Some(at), .. } if *at <= now => "expired",
        TokenRecord { .. } => "valid",
    };
    let mut entry = json!({
        "name": record.name,
        "state": state,
        "created_at": moment(record.created_at),
        "expires_at": record.expires_at.map(moment),
        "revoked_at": record.revoked_at.map(moment),
    });
    // A scope that cannot be read opens nothing, and has no members to show.
    if let Ok(scope) = serde_json::from_str::<Scope>(&record.scope) {
        let words = Words::from(scope);
        entry["servers"] = json!(words.servers.unwrap_or_else(|| vec![EVERY.to_owned()]));
        entry["operations"] = json!(words.operations);
        entry["surfaces"] = json!(words.surfaces);
        entry["profile"] = json!(words.profile);
        entry["unannotated_tools"] = json!(words.unannotated_tools);
    }
    entry
}
