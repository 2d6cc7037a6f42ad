//! Calls that were filed when they started and have no end, as the tables know them. Recovery needs
//! them if the start of a call can no longer be read from the journal.

use jiff::Timestamp;
use receipt::canonical::Digest;
use receipt::{Hash, RiskLevel};
use rusqlite::{Connection, OptionalExtension, Row};

use domain::tool::Class;
use touch::targets::{Target, TargetBasis, Touched, Touches};

use crate::error::StoreError;
use crate::record::{CallStart, Payload, ReceiptAction, RecordAgent, RecordKind, Word};
use crate::touches;

const COLUMNS: &str =
    "activity.id, type, source, surface, server, tool, agents.name, client, token,
  session_id, request_id, started_us, tool_variant, intent_type, data_sensitivity, reason,
  effective_class, unverified, trace_id, correlation_id, target_basis, activity.number,
  warnings, arguments_bytes, payloads.arguments
  FROM activity JOIN agents USING (agent) LEFT JOIN payloads USING (number)
  WHERE status = 'pending' AND receipt_id IS NULL";

/// Returns a call that has no end yet.
pub(crate) fn call(db: &Connection, id: &str) -> Result<Option<CallStart>, StoreError> {
    let words = format!("SELECT {COLUMNS} AND activity.id = ?1");
    let found = db.prepare(&words)?.query_row([id], read).optional()?;
    found.map(|(number, call)| with_touches(db, number, call)).transpose()
}

/// Returns the calls of a chain that have no end yet.
pub(crate) fn calls(db: &Connection, chain: i64) -> Result<Vec<CallStart>, StoreError> {
    let words = format!("SELECT {COLUMNS} AND chain = ?1 ORDER BY number");
    let mut statement = db.prepare(&words)?;
    let found: Vec<(i64, CallStart)> =
        statement.query_map([chain], read)?.collect::<Result<_, _>>()?;
    found.into_iter().map(|(number, call)| with_touches(db, number, call)).collect()
}

/// Adds the resources of a call, the main one first.
fn with_touches(
    db: &Connection,
    number: i64,
    mut call: CallStart,
) -> Result<CallStart, StoreError> {
    let touched = touches::of_record(db, number)?;
    let touched = touched.into_iter().filter_map(|one| {
        let target = Target::recorded(&one.system, one.resource)?;
        Some(Touched { target, access: one.access })
    });
    call.touches = Touches::recorded(touched.collect(), call.touches.basis().cloned());
    Ok(call)
}

/// Reads a call. The tables do not keep the hash of its arguments, nor the kind of its action.
fn read(row: &Row<'_>) -> rusqlite::Result<(i64, CallStart)> {
    let kind: String = row.get(1)?;
    let kinds = RecordKind::ALL.into_iter();
    let word = |at: usize| row.get::<_, Option<String>>(at).map(|word| word.map(Word::from));
    let class: Option<String> = row.get(16)?;
    let basis: Option<String> = row.get(20)?;
    let (warnings, arguments): (Option<String>, Option<String>) = (row.get(22)?, row.get(24)?);
    let call = CallStart {
        id: row.get(0)?,
        kind: kinds.clone().find(|known| known.as_str() == kind).unwrap_or(RecordKind::ToolCall),
        source: row.get::<_, String>(2)?.into(),
        surface: row.get::<_, String>(3)?.into(),
        server: row.get(4)?,
        tool: row.get(5)?,
        agent: RecordAgent { name: row.get(6)?, client: row.get(7)?, token: row.get(8)? },
        session: row.get(9)?,
        request_id: row.get(10)?,
        at: Timestamp::from_microsecond(row.get(11)?).unwrap_or(Timestamp::UNIX_EPOCH),
        variant: word(12)?,
        declared: word(13)?,
        sensitivity: word(14)?,
        reason: row.get(15)?,
        effective: class.as_deref().and_then(Class::parse),
        unverified: row.get(17)?,
        warnings: warnings.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        touches: Touches::recorded(Vec::new(), basis.map(TargetBasis::new)),
        trace_id: row.get(18)?,
        arguments: Payload {
            bytes: row.get(23)?,
            kept_digest: arguments.map(|text| Digest::Exact(Hash::of(text.as_bytes()))),
            ..Payload::default()
        },
        action: ReceiptAction {
            kind: "unknown".into(),
            risk: RiskLevel::High,
            correlation_id: row.get(19)?,
        },
        outside: None,
    };
    Ok((row.get(21)?, call))
}
