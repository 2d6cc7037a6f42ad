//! Records that are gone while their receipts are there: they are made again from what is signed, without
//! arguments and results. One whose deletion is stated stays away.
//! Records that differ from their receipts repeat them again.

use std::path::Path;

use jiff::Timestamp;
use receipt::PublicKey;
use receipt::verify::SignedReceipt;
use rusqlite::{Connection, params};
use serde_json::Value;

use super::{rebuild, strangers};
use crate::database::{change, transaction};
use crate::error::StoreError;
use crate::read::{AlteredRecord, altered_records};
use crate::record::RecordKind;
use crate::upkeep::stated::StatedDeletions;
use crate::write::compose::{OUTCOME, RECORD_TYPE};

/// The receipts of which no record is there.
const LONE: &str = "SELECT chain, receipt_json FROM receipts JOIN chains USING (chain_id)
    WHERE NOT EXISTS (SELECT 1 FROM activity WHERE activity.id = substr(receipts.id, 13))
    ORDER BY chain_id, sequence";

/// Makes such records again; returns what was made, in words.
pub(super) fn make(db: &Connection, keys: &[PublicKey]) -> Result<Option<String>, StoreError> {
    let stated = StatedDeletions::of_home(db)?;
    let made = transaction::whole(db, |db| {
        let mut statement = db.prepare(LONE)?;
        let mut rows = statement.query([])?;
        let (mut made, mut changed) = (0, change::latest(db)?);
        while let Some(row) = rows.next()? {
            let Ok(text) = row.get::<_, String>(1) else { continue };
            let Ok((signed, receipt)) = SignedReceipt::read(&text) else { continue };
            let Some((token, started)) = call_of(&receipt) else { continue };
            let is_deleted = stated.cover(token, started);
            let is_signed = signed.key_among(keys).is_some_and(|key| signed.verify(key).is_ok());
            if is_signed && !is_deleted {
                changed += 1;
                insert(db, (row.get(0)?, changed), (&receipt, token, started))?;
                made += 1;
            }
        }
        Ok(made)
    })?;
    if made == 0 {
        return Ok(None);
    }
    rebuild::make_touches(db)?;
    Ok(Some(format!(
        "made {made} records again from their receipts, without arguments and results"
    )))
}

/// Restores records that differ from their receipts; returns what was done, in words. Their old content
/// is kept in a file.
pub(super) fn correct(
    db: &Connection,
    home: &Path,
    keys: &[PublicKey],
) -> Result<Option<String>, StoreError> {
    let mut statement = db.prepare("SELECT chain, chain_id FROM chains ORDER BY chain")?;
    let chains = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let chains: Vec<(i64, String)> = chains.collect::<Result<_, _>>()?;
    let mut altered = Vec::new();
    for (chain, id) in &chains {
        let found = altered_records(db, id)?.into_iter().map(|record| (*chain, record));
        altered.extend(found.filter(|(_, record)| is_signed(&record.receipt, keys)));
    }
    let mut lines = Vec::new();
    for (_, AlteredRecord { number, columns, .. }) in &altered {
        let with_texts = columns.iter().any(|column| TEXTS.contains(column));
        for table in ["activity", "payloads"].iter().take(1 + usize::from(with_texts)) {
            let words = format!("SELECT * FROM {table} WHERE number = {number}");
            lines.extend(strangers::rows(db, &words)?);
        }
    }
    let what = ("rows of records that differ from their receipts", &*lines);
    let done = strangers::kept(db, home, what, || {
        altered.iter().try_for_each(|(chain, record)| make_as_signed(db, *chain, record))
    })?;
    if done.is_some() {
        rebuild::make_touches(db)?;
    }
    Ok(done)
}

/// The columns of a record's texts. A text that is not the signed one is removed.
const TEXTS: [&str; 3] = ["arguments", "response", "response_truncated"];

/// Reports whether one of these keys signed a receipt.
fn is_signed(receipt: &Value, keys: &[PublicKey]) -> bool {
    let Ok(signed) = SignedReceipt::parse(&receipt.to_string()) else { return false };
    signed.key_among(keys).is_some_and(|key| signed.verify(key).is_ok())
}

fn make_as_signed(db: &Connection, chain: i64, record: &AlteredRecord) -> Result<(), StoreError> {
    let AlteredRecord { number, columns, receipt } = record;
    let Some((token, started)) = call_of(receipt) else { return Ok(()) };
    insert(db, (chain, change::latest(db)? + 1), (receipt, token, started))?;
    db.execute("DELETE FROM touches WHERE number = ?1", [number])?;
    db.execute("UPDATE activity SET joined = NULL WHERE number = ?1", [number])?;
    for column in columns.iter().filter(|column| TEXTS.contains(column)) {
        let is_cut = receipt["issuer"]["runtime"]["response_truncated"] == true;
        let value = (*column == "response_truncated").then_some(is_cut);
        let words = format!("UPDATE payloads SET {column} = ?2 WHERE number = ?1");
        db.execute(&words, params![number, value])?;
    }
    Ok(())
}

/// Returns the token that made a call, and when it began; none for a receipt of the ledger itself.
fn call_of(receipt: &Value) -> Option<(&str, Timestamp)> {
    let subject = &receipt["credentialSubject"];
    let token = text_of(&subject["principal"]["id"])?.strip_prefix("token:")?;
    Some((token, text_of(&subject["action"]["timestamp"])?.parse().ok()?))
}

/// The columns of a record that its receipt gives.
const COLUMNS: &str = "id, changed, chain, type, source, surface, server, tool, agent, session_id, \
    request_id, started_us, duration_us, status, error_code, error_message, tool_variant, \
    intent_type, data_sensitivity, reason, effective_class, unverified, target, target_basis, \
    correlation_id, receipt_id, trace_id, warnings, arguments_bytes, response_bytes";

/// Writes the record that a receipt describes.
fn insert(
    db: &Connection,
    (chain, changed): (i64, i64),
    (receipt, token, started): (&Value, &str, Timestamp),
) -> Result<(), StoreError> {
    let (issuer, subject) = (&receipt["issuer"], &receipt["credentialSubject"]);
    let (runtime, action, outcome) = (&issuer["runtime"], &subject["action"], &subject["outcome"]);
    let id = text_of(&receipt["id"]).unwrap_or_default();
    let of = |name: &str| text_of(&runtime[name]);
    let name = of("agent_id").unwrap_or_default();
    let client = text_of(&issuer["name"]).unwrap_or_default();
    db.prepare_cached("INSERT OR IGNORE INTO agents (name, client, token) VALUES (?1, ?2, ?3)")?
        .execute([name, client, token])?;
    let target = &action["target"];
    let target = match (text_of(&target["system"]), text_of(&target["resource"])) {
        (Some(system), Some(resource)) => Some(rebuild::target_number(db, system, resource)?),
        (_, None) | (None, _) => None,
    };
    let code = of("verdict");
    let warnings = runtime["warnings"].as_array().map(|all| Value::from(all.clone()).to_string());
    let update: Vec<String> =
        COLUMNS.split(", ").map(|column| format!("{column} = excluded.{column}")).collect();
    let update = update.join(", ");
    db.prepare_cached(&format!(
        "INSERT INTO activity ({COLUMNS})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, (SELECT agent FROM agents
             WHERE name = ?9 AND client = ?10 AND token = ?11), ?12, ?13, ?14, ?15, ?16, ?17, ?18,
           ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32)
         ON CONFLICT (id) DO UPDATE SET {update}"
    ))?
    .execute(params![
        id.trim_start_matches("urn:receipt:"),
        changed,
        chain,
        of(RECORD_TYPE).unwrap_or(RecordKind::ToolCall.as_str()),
        of("source").unwrap_or_default(),
        of("surface").unwrap_or_default(),
        of("server").unwrap_or_default(),
        of("tool").unwrap_or_default(),
        name,
        client,
        token,
        text_of(&issuer["session_id"]),
        text_of(&action["idempotency_key"]),
        started.as_microsecond(),
        runtime["duration_us"].as_i64().unwrap_or_default(),
        status(outcome, runtime),
        code,
        message(code, text_of(&outcome["error"])),
        of("tool_variant"),
        of("declared_class"),
        of("data_sensitivity"),
        of("reason"),
        of("effective_class"),
        runtime["unverified"] == true,
        target,
        of("target_basis"),
        text_of(&subject["correlation_id"]),
        id,
        of("trace_id"),
        warnings,
        runtime["arguments_bytes"].as_i64().unwrap_or_default(),
        runtime["response_bytes"].as_i64().unwrap_or_default(),
    ])?;
    Ok(())
}

/// Returns the message of an error that is signed with its code.
fn message<'a>(code: Option<&str>, error: Option<&'a str>) -> Option<&'a str> {
    let Some(code) = code else { return error };
    error.and_then(|error| error.strip_prefix(code)).and_then(|rest| rest.strip_prefix(": "))
}

/// Returns the status of the record whose outcome is signed.
fn status<'a>(outcome: &Value, runtime: &'a Value) -> &'a str {
    match (text_of(&outcome["status"]), text_of(&runtime[OUTCOME])) {
        (Some("success"), _) => "success",
        (Some("failure"), precisely) => precisely.unwrap_or("error"),
        (_, _) if runtime["interrupted"] == true => "interrupted",
        (_, _) => "pending",
    }
}

fn text_of(value: &Value) -> Option<&str> {
    value.as_str()
}
