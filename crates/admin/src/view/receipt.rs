//! Receipts, their chains and keys, and the result of verifying them.

use std::collections::BTreeMap;

use receipt::PublicKey;
use receipt::audit::{AuditOutcome, Report};
use receipt::chain::ReceiptCheck;
use receipt::checkpoint::HeadLine;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::ChainCopy;
use store::read::{Receipts, StoredChain, StoredReceipt};
use utoipa::ToSchema;

use super::{moment, words};

/// Receipts, newest first.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ReceiptPage {
    pub receipts: Vec<ReceiptEntry>,
    /// The cursor of the next page; null at the end.
    #[schema(required)]
    pub next_cursor: Option<String>,
    pub total: u64,
    /// The total is exact; otherwise it is a lower bound.
    pub total_is_exact: bool,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ReceiptEntry {
    pub id: String,
    pub chain_id: String,
    pub sequence: u64,
    pub action_type: String,
    pub tool_name: String,
    #[schema(schema_with = words::risk_level)]
    pub risk_level: String,
    #[schema(schema_with = words::receipt_status)]
    pub status: String,
    #[schema(schema_with = words::moment)]
    pub timestamp: String,
    #[schema(schema_with = words::digest)]
    pub hash: String,
    #[schema(schema_with = words::digest_or_null, required)]
    pub previous_hash: Option<String>,
}

/// A receipt as it was signed: a credential, specified elsewhere. Only its outline is described
/// here; the response holds it byte for byte.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ReceiptDocument {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: Vec<String>,
    pub version: String,
    #[schema(schema_with = words::any_object)]
    pub issuer: Value,
    #[serde(rename = "issuanceDate")]
    #[schema(schema_with = words::moment)]
    pub issuance_date: String,
    #[serde(rename = "credentialSubject")]
    #[schema(schema_with = words::any_object)]
    pub credential_subject: Value,
    #[schema(schema_with = words::any_object)]
    pub proof: Value,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// Chains, newest first.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ChainList {
    pub chains: Vec<ChainEntry>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ChainEntry {
    pub id: String,
    #[schema(schema_with = words::chain_state_or_null, required)]
    pub status: Option<String>,
    #[schema(schema_with = words::moment_or_null, required)]
    pub opened_at: Option<String>,
    #[schema(required)]
    pub pid: Option<u32>,
    /// The fingerprint of the key that signs it.
    #[schema(schema_with = words::digest_or_null, required)]
    pub key: Option<String>,
    pub length: u64,
    #[schema(schema_with = words::digest_or_null, required)]
    pub last_hash: Option<String>,
    #[schema(schema_with = words::moment_or_null, required)]
    pub first: Option<String>,
    #[schema(schema_with = words::moment_or_null, required)]
    pub last: Option<String>,
    #[schema(required)]
    pub preceding: Option<String>,
}

/// The verdict on one chain.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ChainReport {
    pub chain_id: String,
    pub valid: bool,
    pub length: u64,
    #[schema(schema_with = words::chain_status)]
    pub status: String,
    #[schema(required)]
    pub broken_at: Option<u64>,
    #[schema(required)]
    pub receipt_id: Option<String>,
    /// The first fault.
    #[schema(required)]
    pub error: Option<String>,
    /// The number of faults.
    pub faults: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipts: Option<Vec<ReceiptVerdict>>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ReceiptVerdict {
    pub index: u64,
    pub receipt_id: String,
    pub signature_valid: bool,
    pub hash_link_valid: bool,
    pub sequence_valid: bool,
}

/// The verdict on all chains.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct LedgerReport {
    pub valid: bool,
    pub receipts: u64,
    pub chains: Vec<ChainReport>,
    /// Matters that could not be checked.
    pub notes: Vec<String>,
}

/// A checkpoint: the state of all chains, to be kept elsewhere.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct LedgerHead {
    /// The digest, the count and the time on one line, for `receipt verify --head`.
    pub line: String,
    /// The hash over the heads of all chains.
    #[schema(schema_with = words::digest)]
    pub digest: String,
    /// The number of chains.
    pub count: u64,
    #[schema(schema_with = words::moment)]
    pub issued_at: String,
    /// The signed receipt that names the heads.
    pub receipt_id: String,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct CopyList {
    pub copies: Vec<CopyEntry>,
}

/// An export that was placed back in the home.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CopyEntry {
    pub name: String,
    pub bytes: u64,
    #[schema(schema_with = words::moment_or_null, required)]
    pub modified_at: Option<String>,
}

/// An export to verify.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SentCopy {
    /// The name of the file, for the verdict.
    pub name: String,
    /// The receipts, as JSON lines.
    pub text: String,
}

/// The verdict on a copy.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CopyReport {
    pub name: String,
    pub valid: bool,
    pub chains: Vec<ChainReport>,
    /// The parts that could not be checked.
    pub notes: Vec<String>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct KeyList {
    pub keys: Vec<KeyEntry>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct KeyEntry {
    #[schema(schema_with = words::digest)]
    pub fingerprint: String,
    #[schema(schema_with = words::did)]
    pub did: String,
    pub pem: String,
    /// This key signs now.
    pub current: bool,
}

impl From<Receipts> for ReceiptPage {
    fn from(page: Receipts) -> ReceiptPage {
        ReceiptPage {
            receipts: page.receipts.into_iter().map(ReceiptEntry::from).collect(),
            next_cursor: page.next_cursor,
            total: page.total.count(),
            total_is_exact: page.total.is_exact(),
        }
    }
}

impl From<StoredReceipt> for ReceiptEntry {
    fn from(receipt: StoredReceipt) -> ReceiptEntry {
        ReceiptEntry {
            id: receipt.id,
            chain_id: receipt.chain_id,
            sequence: receipt.sequence,
            action_type: receipt.action_type,
            tool_name: receipt.tool_name,
            risk_level: receipt.risk_level,
            status: receipt.status,
            timestamp: receipt.timestamp,
            hash: receipt.hash,
            previous_hash: receipt.previous_hash,
        }
    }
}

impl From<StoredChain> for ChainEntry {
    fn from(chain: StoredChain) -> ChainEntry {
        let opening = chain.opening.as_ref();
        ChainEntry {
            status: opening.map(|opening| opening.status.clone()),
            opened_at: opening.map(|opening| opening.opened_at.clone()),
            pid: opening.map(|opening| opening.pid),
            key: opening.map(|opening| opening.key.clone()),
            preceding: opening.and_then(|opening| opening.preceding.clone()),
            id: chain.id,
            length: chain.length,
            last_hash: chain.last_hash,
            first: chain.first_timestamp,
            last: chain.last_timestamp,
        }
    }
}

impl From<Report> for ChainReport {
    fn from(report: Report) -> ChainReport {
        let verdicts = |checks: Vec<ReceiptCheck>| checks.into_iter().map(ReceiptVerdict::from);
        ChainReport {
            chain_id: report.chain_id,
            valid: report.valid,
            length: report.length,
            status: report.status.as_str().to_owned(),
            broken_at: report.broken_at,
            receipt_id: report.receipt_id,
            error: report.error,
            faults: report.faults,
            receipts: report.receipts.map(|checks| verdicts(checks).collect()),
        }
    }
}

impl From<ReceiptCheck> for ReceiptVerdict {
    fn from(check: ReceiptCheck) -> ReceiptVerdict {
        ReceiptVerdict {
            index: check.index,
            receipt_id: check.receipt_id,
            signature_valid: check.signature_valid,
            hash_link_valid: check.hash_link_valid,
            sequence_valid: check.sequence_valid,
        }
    }
}

impl LedgerReport {
    pub fn new(outcome: AuditOutcome) -> LedgerReport {
        LedgerReport {
            valid: outcome.is_valid(),
            receipts: outcome.reports.iter().map(|report| report.length).sum(),
            chains: outcome.reports.into_iter().map(ChainReport::from).collect(),
            notes: outcome.notes,
        }
    }
}

impl LedgerHead {
    /// Reads the checkpoint of a signed receipt.
    pub fn of(receipt: &str) -> Option<LedgerHead> {
        let receipt: Value = serde_json::from_str(receipt).ok()?;
        let head = HeadLine::of(&receipt)?;
        Some(LedgerHead {
            line: head.to_string(),
            digest: head.digest.to_string(),
            count: head.count,
            issued_at: head.time,
            receipt_id: receipt.get("id")?.as_str()?.to_owned(),
        })
    }
}

impl From<ChainCopy> for CopyEntry {
    fn from(copy: ChainCopy) -> CopyEntry {
        let modified_at = copy.modified_at.map(moment);
        CopyEntry { name: copy.name, bytes: copy.bytes, modified_at }
    }
}

impl CopyReport {
    /// Reports on a copy. One without a receipt is not valid.
    pub(crate) fn new(name: String, outcome: AuditOutcome) -> CopyReport {
        CopyReport {
            name,
            valid: !outcome.reports.is_empty() && outcome.is_valid(),
            chains: outcome.reports.into_iter().map(ChainReport::from).collect(),
            notes: outcome.notes,
        }
    }
}

impl KeyEntry {
    pub(crate) fn new(key: &PublicKey, current: bool) -> KeyEntry {
        KeyEntry {
            fingerprint: key.fingerprint().to_string(),
            did: key.did(),
            pem: key.to_pem(),
            current,
        }
    }
}
