//! `countersign receipt list|show|verify|export`.

mod export;
mod overview;
mod proof;
mod verify;

use admin::view::{ReceiptEntry, ReceiptPage};
use jiff::Zoned;
use serde_json::Value;
use text::json;

use crate::cli::{Format, Receipt, ReceiptFilters};
use crate::command::receipt::export::Export;
use crate::control::{Control, encode, read, with_query};
use crate::exit::Failure;
use crate::output::status::spoken;
use crate::output::{self, Rest, local_times, or_dash, short_id, table};
use crate::site::Site;

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
        Receipt::Export { chain, output, format, ledger } => {
            Export { chain, output, format, ledger: ledger.db }.run(site).await
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
}
