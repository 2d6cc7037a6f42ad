//! `GET /receipts`, `/chains` and `/keys`: what can be proved.

pub(crate) mod openapi;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use domain::{Code, Refusal};
use receipt::PublicKey;
use receipt::audit::{Audit, Detail, Outcome, Report, Scope};
use receipt::chain::Expected;
use serde::Deserialize;
use serde_json::{Value, json};
use store::read::{Age, Chain, Reader, Receipt, ReceiptFilter, SIGNING_TIME_MAX};
use store::{Store, StoreError};

use crate::Admin;
use crate::answer::{self, Path, Query, Refused};
use crate::ledger::{off_thread, one_of, page, piece, streamed, time, total};

const STATUSES: [&str; 3] = ["success", "failure", "pending"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    chain: Option<String>,
    action_type: Option<String>,
    status: Option<String>,
    start_time: Option<String>,
    end_time: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

pub(crate) async fn list(
    State(admin): State<Admin>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Value>, Refused> {
    let status = one_of("status", query.status.as_deref(), &STATUSES, |word| word)?;
    let filter = ReceiptFilter {
        chain_id: query.chain,
        action_type: query.action_type,
        status: status.map(str::to_owned),
        start: time("start_time", query.start_time.as_deref())?,
        end: time("end_time", query.end_time.as_deref())?,
    };
    let page = page(query.limit, query.cursor)?;
    let found = admin.ask(move |reader| reader.receipts(&filter, &page)).await?;
    let (total, total_is_exact) = total(found.total);
    Ok(Json(json!({
        "receipts": found.receipts.iter().map(entry).collect::<Vec<_>>(),
        "next_cursor": found.next_cursor,
        "total": total,
        "total_is_exact": total_is_exact,
    })))
}

fn entry(receipt: &Receipt) -> Value {
    json!({
        "id": receipt.id,
        "chain_id": receipt.chain_id,
        "sequence": receipt.sequence,
        "action_type": receipt.action_type,
        "tool_name": receipt.tool_name,
        "risk_level": receipt.risk_level,
        "status": receipt.status,
        "timestamp": receipt.timestamp,
        "hash": receipt.hash,
        "previous_hash": receipt.previous_hash,
    })
}

/// The receipt as it was signed, byte for byte.
pub(crate) async fn show(
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    let full = if id.starts_with("urn:") { id.clone() } else { format!("urn:receipt:{id}") };
    match admin.ask(move |reader| reader.receipt(&full)).await? {
        Some(receipt) => Ok(answer::json(receipt.text)),
        None => Err(Refusal::new(Code::NotFound, format!("there is no receipt '{id}'")).into()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportQuery {
    chain: Option<String>,
}

/// One receipt a line, chain after chain.
pub(crate) async fn export(
    State(admin): State<Admin>,
    Query(query): Query<ExportQuery>,
) -> Result<Response, Refused> {
    let chains = match query.chain {
        Some(id) => vec![known(&admin, id).await?.id],
        None => {
            let chains = admin.ask(Reader::chains).await?;
            // The oldest first, so that a reader meets a key's rotation before its successor.
            chains.into_iter().rev().map(|chain| chain.id).collect()
        }
    };
    let reader = admin.gateway.store().read().clone();
    let texts = chains.into_iter().flat_map(move |chain| reader.receipt_texts(&chain));
    let body = streamed(texts, |texts| {
        piece(texts, |out, text: String| {
            out.push_str(&text);
            out.push('\n');
        })
    });
    Ok(([(header::CONTENT_TYPE, "application/jsonl")], body).into_response())
}

pub(crate) async fn chains(State(admin): State<Admin>) -> Result<Json<Value>, Refused> {
    let chains = admin.ask(Reader::chains).await?;
    let entries: Vec<Value> = chains.iter().map(chain_entry).collect();
    Ok(Json(json!({"chains": entries})))
}

fn chain_entry(chain: &Chain) -> Value {
    let opening = chain.opening.as_ref();
    json!({
        "id": chain.id,
        "status": opening.map(|opening| &opening.status),
        "opened_at": opening.map(|opening| &opening.opened_at),
        "pid": opening.map(|opening| opening.pid),
        "key": opening.map(|opening| &opening.key),
        "length": chain.length,
        "last_hash": chain.last_hash,
        "first": chain.first_timestamp,
        "last": chain.last_timestamp,
        "preceding": opening.and_then(|opening| opening.preceding.as_ref()),
    })
}

async fn known(admin: &Admin, id: String) -> Result<Chain, Refused> {
    let asked = id.clone();
    let found = admin.ask(move |reader| reader.chain(&asked)).await?;
    found.ok_or_else(|| Refusal::new(Code::NotFound, format!("there is no chain '{id}'")).into())
}

/// Verifies one chain, receipt by receipt. A chain that another one names and that is gone is broken.
pub(crate) async fn verify(
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Json<Report>, Refused> {
    let found = audited(&admin, Some(id.clone()), Detail::Receipts).await?.reports.pop();
    let Some(mut report) = found else {
        return Ok(Json(Report::empty(known(&admin, id).await?.id)));
    };
    report.receipts.get_or_insert_default();
    Ok(Json(report))
}

/// Verifies every chain, with the verdict of `countersign receipt verify`.
pub(crate) async fn verify_all(State(admin): State<Admin>) -> Result<Json<Value>, Refused> {
    let outcome = audited(&admin, None, Detail::Chains).await?;
    Ok(Json(json!({
        "valid": outcome.is_valid(),
        "receipts": outcome.reports.iter().map(|report| report.length).sum::<u64>(),
        "chains": outcome.reports,
    })))
}

/// Audits once more if a broken chain may only be waiting for its signatures.
async fn audited(admin: &Admin, only: Option<String>, detail: Detail) -> Result<Outcome, Refused> {
    let mut patience = Some(SIGNING_TIME_MAX);
    loop {
        let (store, only) = (admin.gateway.store().clone(), only.clone());
        store.settled().await;
        let checking = move || {
            let outcome = check(&store, only, detail)?;
            let may_change = !outcome.is_valid() && others_write(&store)?;
            Ok::<_, StoreError>((outcome, may_change))
        };
        let (outcome, may_change) = off_thread(checking).await?;
        let Some(pause) = patience.take().filter(|_| may_change) else {
            return Ok(outcome);
        };
        tokio::time::sleep(pause).await;
    }
}

/// Reports whether another process may still have receipts to sign.
fn others_write(store: &Store) -> Result<bool, StoreError> {
    let is_open = |chain: &Chain| chain.opening.as_ref().is_some_and(|it| it.status == "open");
    Ok(store.read().chains()?.iter().filter(|chain| is_open(chain)).count() > 1)
}

fn check(store: &Store, only: Option<String>, detail: Detail) -> Result<Outcome, StoreError> {
    let mut audit = audit(store, only.clone(), detail)?;
    store.read().audit(&mut audit, Age::Settled, || ())?;
    if let Some(id) = only.filter(|id| audit.is_empty() && audit.is_named(id)) {
        // It is gone. A receipt in any other chain may say that it expired.
        let mut outcome = check(store, None, Detail::Chains)?;
        outcome.reports.retain(|report| report.chain_id == id);
        return Ok(outcome);
    }
    Ok(audit.finish(Scope::All, Expected::default()))
}

/// An audit that trusts the keys of the home.
pub(crate) fn audit(
    store: &Store,
    only: Option<String>,
    detail: Detail,
) -> Result<Audit, StoreError> {
    let no_key = || StoreError::Key("there is no public key to check with".to_owned());
    Audit::new(store.public_keys()?, only, detail).ok_or_else(no_key)
}

pub(crate) async fn keys(State(admin): State<Admin>) -> Result<Json<Value>, Refused> {
    let store = admin.gateway.store().clone();
    let current = store.key().public();
    let keys = off_thread(move || store.public_keys()).await?;
    let entries: Vec<Value> = keys.iter().map(|key| key_entry(key, *key == current)).collect();
    Ok(Json(json!({"keys": entries})))
}

pub(crate) async fn rotate(State(admin): State<Admin>) -> Result<Json<Value>, Refused> {
    let key = admin.gateway.store().rotate_key().await?;
    Ok(Json(key_entry(&key.public(), true)))
}

fn key_entry(key: &PublicKey, current: bool) -> Value {
    json!({
        "fingerprint": key.fingerprint(),
        "did": key.did(),
        "pem": key.to_pem(),
        "current": current,
    })
}
