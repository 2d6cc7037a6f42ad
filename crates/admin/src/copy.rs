//! `GET /copies`: exports that were brought back, and whether they are as they were signed.

pub(crate) mod openapi;

use axum::Json;
use axum::extract::State;
use domain::{Code, Refusal};
use receipt::audit::Detail;
use receipt::chain::Expected;
use serde_json::{Value, json};
use store::{ChainCopy, Store, StoreError};

use crate::Admin;
use crate::answer::{Path, Refused};
use crate::ledger::off_thread;
use crate::receipt::audit;
use crate::record::moment;

pub(crate) async fn list(State(admin): State<Admin>) -> Json<Value> {
    let store = admin.gateway.store().clone();
    let copies = off_thread(move || store.copies()).await;
    Json(json!({"copies": copies.iter().map(entry).collect::<Vec<_>>()}))
}

fn entry(copy: &ChainCopy) -> Value {
    json!({"name": copy.name, "bytes": copy.bytes, "modified_at": copy.modified_at.map(moment)})
}

pub(crate) async fn verify(
    State(admin): State<Admin>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refused> {
    let (store, asked) = (admin.gateway.store().clone(), name.clone());
    match off_thread(move || check(&store, &asked)).await? {
        Some(checked) => Ok(Json(checked)),
        None => Err(Refusal::new(Code::NotFound, format!("there is no copy '{name}'")).into()),
    }
}

fn check(store: &Store, name: &str) -> Result<Option<Value>, StoreError> {
    let Some(lines) = store.copy_lines(name)? else { return Ok(None) };
    let mut audit = audit(store, None, Detail::Receipts)?;
    for line in lines {
        let line = line?;
        if !line.is_empty() && audit.push(&line).is_none() {
            // It does not even begin with a receipt.
            audit.push_to("", &line);
        }
    }
    let outcome = audit.finish_export(Expected::default());
    let valid = !outcome.reports.is_empty() && outcome.is_valid();
    let found = json!({
        "name": name, "valid": valid, "chains": outcome.reports, "notes": outcome.notes,
    });
    Ok(Some(found))
}
