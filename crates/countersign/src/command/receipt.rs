//! `countersign receipt list|show|verify|export`.

mod verify;

use std::path::{Path, PathBuf};

use jiff::Zoned;
use serde_json::Value;

use crate::cli::{Place, Receipt, ReceiptFilters};
use crate::command::export::{self, Output, with_ending};
use crate::control::{Control, encode, get, with_query};
use crate::exit::Failure;
use crate::output::{self, entries, local_time, or_dash, table, text};
use gateway::plan::Reach;

/// The public keys of an export lie beside it, under its name and this.
const KEYS_ENDING: &str = ".pub.pem";

pub(crate) async fn run(place: &Place, verb: Receipt) -> Result<(), Failure> {
    match verb {
        Receipt::List { filters, span, rows, output } => {
            let values = [filters.values(), span.values(), rows.values()].concat();
            let path = with_query("/api/v1/receipts", &values);
            let answer = get(place, Reach::Nothing, &path).await?;
            output::print(output, &answer, |answer| list(answer, &Zoned::now()))?;
            output::tell_next(output, &answer, entries(&answer, "receipts").len());
            Ok(())
        }
        Receipt::Show { id, raw } => {
            let path = format!("/api/v1/receipts/{}", encode(&id));
            let receipt =
                Control::with(place, Reach::Nothing, async |control| control.text(&path).await);
            show(&receipt.await?, raw)
        }
        Receipt::Verify(args) => verify::run(place, args).await,
        Receipt::Export { chain, output } => {
            let path = with_query("/api/v1/receipts/export", &[("chain", chain.clone())]);
            let file = output.map(|output| file_of(&output, chain.as_deref()));
            Control::with(place, Reach::Nothing, async |control| {
                export::to(control, &path, file.as_deref()).await?;
                // Last, so that a key that came meanwhile is among them.
                match file.as_deref().filter(|file| !export::is_special(file)) {
                    Some(file) => write_keys(control, file).await,
                    None => Ok(()),
                }
            })
            .await
        }
    }
}

impl ReceiptFilters {
    fn values(&self) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("chain", self.chain.clone()),
            ("action_type", self.action_type.clone()),
            ("status", self.status.clone()),
        ]
    }
}

fn list(answer: &Value, now: &Zoned) -> String {
    let row = |receipt: &Value| {
        vec![
            local_time(&text(receipt, "timestamp"), now),
            text(receipt, "action_type"),
            or_dash(&receipt["tool_name"]),
            text(receipt, "risk_level"),
            text(receipt, "status"),
            text(receipt, "chain_id"),
            receipt["sequence"].to_string(),
            text(receipt, "id"),
        ]
    };
    let rows: Vec<Vec<String>> = entries(answer, "receipts").iter().map(row).collect();
    if rows.is_empty() {
        return "no receipt fits".to_owned();
    }
    table(&["time", "action", "tool", "risk", "status", "chain", "number", "id"], &rows)
}

fn show(receipt: &str, raw: bool) -> Result<(), Failure> {
    if raw {
        return output::write(receipt.as_bytes()).map(|_| ());
    }
    let value: Value = serde_json::from_str(receipt)
        .map_err(|error| Failure::system(format!("the receipt is no JSON: {error}")))?;
    output::line(&output::pretty(&value))
}

/// A folder gets a file that is named after what it holds.
fn file_of(output: &Path, chain: Option<&str>) -> PathBuf {
    match chain {
        _ if !output.is_dir() => output.to_owned(),
        Some(chain) => output.join(format!("{chain}.jsonl")),
        None => output.join("receipts.jsonl"),
    }
}

/// Every key that ever signed here: an old receipt needs an old key.
async fn write_keys(control: &Control, file: &Path) -> Result<(), Failure> {
    let answer = control.get("/api/v1/keys").await?;
    let pems: String = entries(&answer, "keys").iter().map(|key| text(key, "pem")).collect();
    let mut output = Output::create(&with_ending(file, KEYS_ENDING))?;
    output.write(pems.as_bytes())?;
    output.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_receipt_is_a_line() {
        let now: Zoned = "2026-02-03T12:00:00+00:00[UTC]".parse().unwrap();
        let answer = json!({"receipts": [{"id": "urn:receipt:1", "chain_id": "c", "sequence": 4,
            "action_type": "data.api.read", "tool_name": "", "risk_level": "low",
            "status": "success", "timestamp": "2026-02-03T09:08:07.123Z"}]});
        assert_eq!(
            list(&answer, &now),
            "TIME      ACTION         TOOL  RISK  STATUS   CHAIN  NUMBER  ID\n\
             09:08:07  data.api.read  -     low   success  c      4       urn:receipt:1"
        );
    }

    #[test]
    fn a_folder_gets_a_file_of_the_chains_name() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(file_of(dir.path(), None), dir.path().join("receipts.jsonl"));
        assert_eq!(file_of(dir.path(), Some("c")), dir.path().join("c.jsonl"));
        assert_eq!(file_of(Path::new("a.jsonl"), Some("c")), Path::new("a.jsonl"));
    }
}
