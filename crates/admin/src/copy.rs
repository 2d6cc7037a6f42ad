//! `GET /copies`: exports placed back in the home, and whether they are unchanged since signing.

use axum::Json;
use axum::extract::State;
use domain::{Code, Refusal};
use receipt::audit::AuditDetail;
use receipt::chain::ChainExpectation;
use store::{Store, StoreError};

use crate::Admin;
use crate::answer::{Path, Refused};
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

fn check(store: &Store, name: &str) -> Result<Option<CopyReport>, StoreError> {
    let Some(lines) = store.copy_lines(name)? else { return Ok(None) };
    let mut audit = audit(store, None, AuditDetail::Receipts)?;
    for line in lines {
        let line = line?;
        if !line.is_empty() && audit.push(&line).is_none() {
            // The file does not begin with a receipt.
            audit.push_to("", &line);
        }
    }
    let outcome = audit.finish_export(ChainExpectation::default());
    Ok(Some(CopyReport::new(name.to_owned(), outcome)))
}
