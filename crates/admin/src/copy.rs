//! `GET /copies`: exports that were brought back, and whether they are as they were signed.

pub(crate) mod openapi;

use axum::Json;
use axum::extract::State;
use domain::ledger::PublicKey;
use domain::ledger::chain::{Chain, ChainCheck, Expected, ReceiptCheck};
use domain::ledger::verify::Signed;
use domain::{Code, Refusal};
use serde_json::{Value, json};
use store::{Copy, Store, StoreError};

use crate::Admin;
use crate::answer::{Path, Refused};
use crate::ledger::off_thread;
use crate::record::moment;

pub(crate) async fn list(State(admin): State<Admin>) -> Json<Value> {
    let store = admin.gateway.store().clone();
    let copies = off_thread(move || store.copies()).await;
    Json(json!({"copies": copies.iter().map(entry).collect::<Vec<_>>()}))
}

fn entry(copy: &Copy) -> Value {
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

/// One chain of a copy, under way.
struct Part {
    chain_id: String,
    check: Chain,
    receipts: Vec<ReceiptCheck>,
}

fn check(store: &Store, name: &str) -> Result<Option<Value>, StoreError> {
    let keys = store.public_keys()?;
    let Some(lines) = store.copy_lines(name)? else { return Ok(None) };
    let mut parts: Vec<Part> = Vec::new();
    for line in lines {
        let line = line?;
        if !line.is_empty() {
            let place = place(&mut parts, &line, &keys)?;
            let part = &mut parts[place];
            part.receipts.push(part.check.push(&line));
        }
    }
    let chains: Vec<Value> = parts.into_iter().map(finish).collect();
    let valid = !chains.is_empty() && chains.iter().all(|chain| chain["valid"] == true);
    Ok(Some(json!({"name": name, "valid": valid, "chains": chains})))
}

/// The chain that a line belongs to; one that cannot be read belongs to the chain before it.
fn place(parts: &mut Vec<Part>, line: &str, keys: &[PublicKey]) -> Result<usize, StoreError> {
    let signed = Signed::parse(line).ok();
    let known = match &signed {
        Some(signed) => parts.iter().position(|part| part.chain_id == signed.link.chain_id),
        None => parts.len().checked_sub(1),
    };
    if let Some(place) = known {
        return Ok(place);
    }
    // Where none of our keys signed it, any of them shows that.
    let key = signed.as_ref().and_then(|signed| signed.key_among(keys)).or(keys.first());
    let Some(key) = key else {
        return Err(StoreError::Key("there is no public key to check with".to_owned()));
    };
    let chain_id = signed.map(|signed| signed.link.chain_id).unwrap_or_default();
    parts.push(Part { chain_id, check: Chain::new(key.clone()), receipts: Vec::new() });
    Ok(parts.len() - 1)
}

fn finish(part: Part) -> Value {
    let check = ChainCheck { receipts: part.receipts, ..part.check.finish(Expected::default()) };
    let mut value = serde_json::to_value(check).unwrap_or_default();
    value["chain_id"] = part.chain_id.into();
    value
}
