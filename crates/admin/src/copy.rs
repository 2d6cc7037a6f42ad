//! `/copies`: exports placed back in the home or sent, and whether they are unchanged since signing.

use axum::Json;
use axum::extract::{Request, State};
use domain::{Code, Refusal};
use receipt::audit::AuditDetail;
use receipt::chain::ChainExpectation;
use store::{Store, StoreError};

use crate::Admin;
use crate::answer::{Path, Refused};
use crate::body::{BodyMembers, required};
use crate::ledger::off_thread;
use crate::receipt::audit;
use crate::view::{CopyEntry, CopyList, CopyReport};

pub(crate) async fn list(State(admin): State<Admin>) -> Json<CopyList> {
    let store = admin.gateway.store().clone();
    let copies = off_thread(move || store.copies()).await;
    Json(CopyList { copies: copies.into_iter().map(CopyEntry::from).collect() })
}

pub(crate) async fn verify(
    State(admin): State<Admin>,
    Path(name): Path<String>,
) -> Result<Json<CopyReport>, Refused> {
    let (store, asked) = (admin.gateway.store().clone(), name.clone());
    match off_thread(move || check(&store, &asked)).await? {
        Some(checked) => Ok(Json(checked)),
        None => Err(Refusal::new(Code::NotFound, format!("copy '{name}' not found")).into()),
    }
}

/// Verifies an export that the request holds. Nothing of it is kept.
pub(crate) async fn verify_sent(
    State(admin): State<Admin>,
    request: Request,
) -> Result<Json<CopyReport>, Refused> {
    let mut body = BodyMembers::read_copy(request).await?;
    let (name, text) = (body.text("name")?, body.text("text")?);
    body.finish()?;
    let name = name.ok_or_else(|| required("name"))?;
    let text = text.ok_or_else(|| required("text"))?;
    let store = admin.gateway.store().clone();
    let check = move || report(&store, name, text.lines().map(|line| Ok(line.to_owned())));
    Ok(Json(off_thread(check).await?))
}

fn check(store: &Store, name: &str) -> Result<Option<CopyReport>, StoreError> {
    let Some(lines) = store.copy_lines(name)? else { return Ok(None) };
    report(store, name.to_owned(), lines).map(Some)
}

fn report(
    store: &Store,
    name: String,
    lines: impl IntoIterator<Item = Result<String, StoreError>>,
) -> Result<CopyReport, StoreError> {
    let mut audit = audit(store, None, AuditDetail::Receipts)?;
    for line in lines {
        let line = line?;
        if !line.is_empty() && audit.push(&line).is_none() {
            // The file does not begin with a receipt.
            audit.push_to("", &line);
        }
    }
    let outcome = audit.finish_export(ChainExpectation::default());
    Ok(CopyReport::new(name, outcome))
}
