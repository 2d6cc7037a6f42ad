//! `GET /receipts`, `/chains` and `/keys`: signed evidence.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use domain::{Code, Refusal};
use receipt::audit::{Audit, AuditDetail, AuditOutcome, AuditScope, Report};
use receipt::chain::ChainExpectation;
use serde::Deserialize;
use store::read::{IdKind, LedgerPlace, Reader, ReceiptFilter, SIGNING_TIME_MAX, StoredChain};
use store::{Store, StoreError};
use utoipa::IntoParams;

use crate::Admin;
use crate::answer::{self, Path, Query, Refused};
use crate::form;
use crate::ledger::{PageQuery, SpanQuery, off_thread, one_of, piece, streamed};
use crate::view::words::RECEIPT_STATUSES;
use crate::view::{
    ChainEntry, ChainList, ChainReport, KeyEntry, KeyList, LedgerHead, LedgerReport, ReceiptPage,
};

#[derive(Deserialize, IntoParams)]
pub(crate) struct FilterQuery {
    /// Receipts of this chain.
    chain: Option<String>,
    /// Receipts of this action type.
    action_type: Option<String>,
    /// Receipts with this outcome.
    #[param(inline, value_type = Option<form::ReceiptStatus>)]
    status: Option<String>,
    /// Receipts of calls to this server.
    server: Option<String>,
    /// Receipts of calls by this agent: its name with or without the session, or the name of its
    /// token.
    agent: Option<String>,
    /// Receipts of calls that touched this system.
    target_system: Option<String>,
    /// Receipts of calls that touched this resource.
    target_resource: Option<String>,
}

pub(crate) async fn list(
    State(admin): State<Admin>,
    Query(query): Query<FilterQuery>,
    Query(span): Query<SpanQuery>,
    Query(page): Query<PageQuery>,
) -> Result<Json<ReceiptPage>, Refused> {
    let status = one_of("status", query.status.as_deref(), &RECEIPT_STATUSES, |word| word)?;
    let filter = ReceiptFilter {
        chain_id: query.chain,
        action_type: query.action_type,
        status: status.map(str::to_owned),
        server: query.server,
        agent: query.agent,
        target_system: query.target_system,
        target_resource: query.target_resource,
        start: span.start()?,
        end: span.end()?,
    };
    let page = page.page()?;
    let found = admin.ask(move |reader| reader.receipts(&filter, &page)).await?;
    Ok(Json(found.into()))
}

/// Returns the receipt as it was signed, byte for byte.
pub(crate) async fn show(
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    let not_found = || Refusal::new(Code::NotFound, format!("receipt '{id}' not found"));
    let full = admin.id(IdKind::Receipt, ("id", &id)).await?.ok_or_else(not_found)?;
    let found = admin.ask(move |reader| reader.receipt(&full)).await?;
    Ok(answer::json(found.ok_or_else(not_found)?.text))
}

#[derive(Deserialize, IntoParams)]
pub(crate) struct ExportQuery {
    /// The receipts of this chain only.
    chain: Option<String>,
}

/// Exports one receipt a line, chain after chain.
pub(crate) async fn export(
    State(admin): State<Admin>,
    Query(query): Query<ExportQuery>,
) -> Result<Response, Refused> {
    let chains = match query.chain {
        Some(id) => vec![known(&admin, id).await?.id],
        None => {
            let chains = admin.ask(Reader::chains).await?;
            // Oldest first, so that a reader meets a key's rotation before its successor.
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

pub(crate) async fn chains(State(admin): State<Admin>) -> Result<Json<ChainList>, Refused> {
    let chains = admin.ask(Reader::chains).await?;
    Ok(Json(ChainList { chains: chains.into_iter().map(ChainEntry::from).collect() }))
}

async fn known(admin: &Admin, id: String) -> Result<StoredChain, Refused> {
    let asked = id.clone();
    let found = admin.ask(move |reader| reader.chain(&asked)).await?;
    found.ok_or_else(|| Refusal::new(Code::NotFound, format!("chain '{id}' not found")).into())
}

/// Verifies one chain, receipt by receipt. A missing chain that another one names is broken.
pub(crate) async fn verify(
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Json<ChainReport>, Refused> {
    let found = audited(&admin, Some(id.clone()), AuditDetail::Receipts).await?.reports.pop();
    let Some(mut report) = found else {
        return Ok(Json(Report::empty(known(&admin, id).await?.id).into()));
    };
    report.receipts.get_or_insert_default();
    Ok(Json(report.into()))
}

/// Verifies every chain, with the verdict of `countersign receipt verify`.
pub(crate) async fn verify_all(State(admin): State<Admin>) -> Result<Json<LedgerReport>, Refused> {
    let outcome = audited(&admin, None, AuditDetail::Chains).await?;
    Ok(Json(LedgerReport::new(outcome)))
}

/// Audits once more if a broken chain may only be waiting for its signatures.
async fn audited(
    admin: &Admin,
    only: Option<String>,
    detail: AuditDetail,
) -> Result<AuditOutcome, Refused> {
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
    let is_open =
        |chain: &StoredChain| chain.opening.as_ref().is_some_and(|it| it.status == "open");
    Ok(store.read().chains()?.iter().filter(|chain| is_open(chain)).count() > 1)
}

fn check(
    store: &Store,
    only: Option<String>,
    detail: AuditDetail,
) -> Result<AuditOutcome, StoreError> {
    let mut audit = audit(store, only.clone(), detail)?;
    let anchored = store.check_anchor()?;
    store.read().audit(&mut audit, LedgerPlace::Home(store.home()), || ())?;
    anchored.faults.into_iter().for_each(|fault| audit.fault_of_ledger(fault));
    anchored.notes.into_iter().for_each(|words| audit.note(format!("note: {words}")));
    if let Some(id) = only.filter(|id| audit.is_empty() && audit.is_named(id)) {
        // The chain is missing. A receipt in another chain may say that it expired.
        let mut outcome = check(store, None, AuditDetail::Chains)?;
        outcome.reports.retain(|report| report.chain_id == id);
        return Ok(outcome);
    }
    Ok(audit.finish(AuditScope::All, ChainExpectation::default()))
}

/// Starts an audit that trusts the keys of the home.
pub(crate) fn audit(
    store: &Store,
    only: Option<String>,
    detail: AuditDetail,
) -> Result<Audit, StoreError> {
    let no_key = || StoreError::Key("there is no public key to verify with".to_owned());
    Audit::new(store.public_keys()?, only, detail).ok_or_else(no_key)
}

/// Issues a checkpoint, and returns the line that identifies it.
pub(crate) async fn checkpoint(State(admin): State<Admin>) -> Result<Json<LedgerHead>, Refused> {
    let text = admin.gateway.store().checkpoint().await?;
    let head = LedgerHead::of(&text);
    Ok(Json(head.ok_or_else(|| StoreError::Read("the checkpoint cannot be read".to_owned()))?))
}

pub(crate) async fn keys(State(admin): State<Admin>) -> Result<Json<KeyList>, Refused> {
    let store = admin.gateway.store().clone();
    let current = store.key().public();
    let keys = off_thread(move || store.public_keys()).await?;
    let keys = keys.iter().map(|key| KeyEntry::new(key, *key == current)).collect();
    Ok(Json(KeyList { keys }))
}

pub(crate) async fn rotate(State(admin): State<Admin>) -> Result<Json<KeyEntry>, Refused> {
    let key = admin.gateway.store().rotate_key().await?;
    Ok(Json(KeyEntry::new(&key.public(), true)))
}
