//! `countersign receipt list|show|verify|export`.

mod overview;
mod proof;
mod verify;

use std::path::{Path, PathBuf};

use admin::view::{KeyList, ReceiptEntry, ReceiptPage};
use jiff::Zoned;
use serde_json::Value;
use text::json;

use crate::cli::{Format, Receipt, ReceiptFilters};
use crate::command::export::{self, Output, with_ending};
use crate::control::{Control, encode, read, with_query};
use crate::exit::Failure;
use crate::output::status::spoken;
use crate::output::{self, Rest, local_times, or_dash, short_id, table};
use crate::site::Site;

/// The suffix of the file next to an export that holds its public keys.
const KEYS_ENDING: &str = ".pub.pem";

pub(crate) async fn run(site: &Site, verb: Receipt) -> Result<(), Failure> {
    match verb {
        Receipt::List { filters, span, rows, ledger, output } => {
            let values = [filters.values(), span.values(), rows.values()].concat();
            let path = with_query("/api/v1/receipts", &values);
            let answer = read(site, ledger.db.as_deref(), &path).await?;
            let list = |page: &ReceiptPage| list(&page.receipts, &Zoned::now());
            if let Some(page) = output::answer(output, &answer, list)? {
                Rest {
                    shown: page.receipts.len(),
                    total: page.total,
                    is_exact: page.total_is_exact,
                    next_cursor: page.next_cursor.as_deref(),
                }
                .tell();
            }
            Ok(())
        }
        Receipt::Show { id, raw, output, ledger } => {
            let path = format!("/api/v1/receipts/{}", encode(&id));
            let control = Control::to_read(site, ledger.db.as_deref()).await?;
            let text = control.text(&path).await?;
            if raw {
                return output::write(text.as_bytes()).map(|_| ());
            }
            show(&text, output.into())
        }
        Receipt::Verify(args) => verify::run(site, args).await,
        Receipt::Export { chain, output, ledger } => {
            let path = with_query("/api/v1/receipts/export", &[("chain", chain.clone())]);
            let file = output.map(|output| file_of(&output, chain.as_deref()));
            let keys = file.as_ref().map(|file| with_ending(file, KEYS_ENDING));
            keys.as_deref().map_or(Ok(()), export::refuse_existing)?;
            let control = Control::to_read(site, ledger.db.as_deref()).await?;
            export::to(&control, &path, file.as_deref()).await?;
            // Written last, so that a key created meanwhile is included.
            match file.as_deref().filter(|file| !export::is_special(file)) {
                Some(file) => write_keys(&control, file).await,
                None => Ok(()),
            }
        }
    }
}

impl ReceiptFilters {
    fn values(&self) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("chain", self.chain.clone()),
            ("action_type", self.action_type.clone()),
            ("status", self.status.clone()),
            ("server", self.server.clone()),
            ("agent", self.agent.clone()),
            ("target_system", self.target_system.clone()),
            ("target_resource", self.target_resource.clone()),
        ]
    }
}

fn list(receipts: &[ReceiptEntry], now: &Zoned) -> String {
    if receipts.is_empty() {
        return "no matching receipts".to_owned();
    }
    let times = local_times(receipts.iter().map(|receipt| &*receipt.timestamp), now);
    let row = |(receipt, time): (&ReceiptEntry, String)| {
        vec![
            time,
            receipt.action_type.clone(),
            or_dash(Some(&receipt.tool_name)),
            receipt.risk_level.clone(),
            spoken(&receipt.status).to_owned(),
            receipt.chain_id.clone(),
            receipt.sequence.to_string(),
            short_id(&receipt.id),
        ]
    };
    let rows: Vec<Vec<String>> = receipts.iter().zip(times).map(row).collect();
    table(&["time", "action", "tool", "risk", "status", "chain", "number", "id"], &rows)
}

fn show(receipt: &str, format: Format) -> Result<(), Failure> {
    let value: Value = serde_json::from_str(receipt).map_err(|error| {
        Failure::system(format!("receipt is not valid JSON: {}", json::explain(&error)))
    })?;
    output::print(format, &value, crate::json::pretty)
}

/// Returns the file to write; in a folder, it is named after its content.
fn file_of(output: &Path, chain: Option<&str>) -> PathBuf {
    match chain {
        _ if !output.is_dir() => output.to_owned(),
        Some(chain) => output.join(format!("{chain}.jsonl")),
        None => output.join("receipts.jsonl"),
    }
}

/// Writes every key that ever signed here: an old receipt needs an old key.
async fn write_keys(control: &Control, file: &Path) -> Result<(), Failure> {
    let answer: KeyList = output::read(&control.get("/api/v1/keys").await?)?;
    let pems: String = answer.keys.into_iter().map(|key| key.pem).collect();
    if pems.is_empty() {
        output::note(
            "note: no public key of this ledger is known here, so none was written: \
             'countersign keys show --pem' prints it in the home of the ledger",
        );
        return Ok(());
    }
    let mut output = Output::create(&with_ending(file, KEYS_ENDING))?;
    output.write(pems.as_bytes())?;
    output.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_receipt_is_listed_on_one_line() {
        let now: Zoned = "2026-02-03T12:00:00+00:00[UTC]".parse().unwrap();
        let receipt = json!({"id": "urn:receipt:01a1de05-5814b426", "chain_id": "c", "sequence": 4,
            "action_type": "data.api.read", "tool_name": "", "risk_level": "low", "hash": "",
            "status": "success", "timestamp": "2026-02-03T09:08:07.123Z"});
        let receipt = output::read(&receipt).unwrap();
        assert_eq!(
            list(&[receipt], &now),
            "TIME      ACTION         TOOL  RISK  STATUS   CHAIN  NUMBER  ID\n\
             09:08:07  data.api.read  -     low   success  c      4       5814b426"
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
