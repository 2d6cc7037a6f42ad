//! A record of the ledger as this API shows it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use store::read::Record;

/// Without the texts of arguments and response.
pub(crate) fn brief(record: &Record) -> Value {
    Value::Object(members(record))
}

pub(crate) fn whole(record: &Record) -> Value {
    let mut members = members(record);
    members.insert("arguments".to_owned(), payload(record.payloads.arguments.as_deref()));
    members.insert("response".to_owned(), payload(record.payloads.response.as_deref()));
    members.insert("response_truncated".to_owned(), record.response_truncated.into());
    Value::Object(members)
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

pub(crate) fn moment(at: Timestamp) -> String {
    format!("{at:.3}")
}

fn members(record: &Record) -> Map<String, Value> {
    let value = json!({
        "id": record.id,
        "type": record.kind.as_str(),
        "source": record.source,
        "surface": record.surface,
        "server_name": record.server,
        "tool_name": record.tool,
        "status": record.status.as_str(),
        "error_code": record.error_code,
        "error_message": record.error_message,
        "duration_ms": record.duration.map(milliseconds),
        "timestamp": moment(record.timestamp),
        "session_id": record.session_id,
        "request_id": record.request_id,
        "agent": {
            "name": record.agent.name,
            "client": record.agent.client,
            "token": record.agent.token,
        },
        "target": record.target.as_ref().map(|target| {
            json!({"system": target.system, "resource": target.resource})
        }),
        "receipt_id": record.receipt_id,
        "metadata": metadata(record),
    });
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn metadata(record: &Record) -> Value {
    let mut metadata = json!({
        "tool_variant": record.tool_variant,
        "effective_class": record.effective_class.map(domain::tool::Class::as_str),
        "unverified": record.unverified,
        "warnings": record.warnings,
        "trace_id": record.trace_id,
        "arguments_bytes": record.arguments_bytes,
        "response_bytes": record.response_bytes,
    });
    if record.kind.is_decision() {
        metadata["decision"] = metadata["tool_variant"].take();
    }
    if let Some(intent) = &record.intent {
        metadata["intent"] = json!({
            "operation_type": intent.operation_type,
            "data_sensitivity": intent.data_sensitivity,
            "reason": intent.reason,
        });
    }
    metadata
}

/// JSON where it is whole, else the text that is left of it.
fn payload(text: Option<&str>) -> Value {
    match text {
        Some(text) => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        None => Value::Null,
    }
}

const COLUMNS: [&str; 22] = [
    "id",
    "timestamp",
    "type",
    "source",
    "surface",
    "agent",
    "client",
    "token",
    "server_name",
    "tool_name",
    "status",
    "error_code",
    "error_message",
    "duration_ms",
    "intent_type",
    "data_sensitivity",
    "reason",
    "effective_class",
    "target_system",
    "target_resource",
    "session_id",
    "receipt_id",
];

pub(crate) fn csv_head() -> String {
    format!("{}\r\n", COLUMNS.join(","))
}

pub(crate) fn csv_line(out: &mut String, record: &Record) {
    let intent = record.intent.as_ref();
    let target = record.target.as_ref();
    let duration = record.duration.map(|duration| milliseconds(duration).to_string());
    let timestamp = moment(record.timestamp);
    let cells: [Option<&str>; COLUMNS.len()] = [
        Some(&record.id),
        Some(&timestamp),
        Some(record.kind.as_str()),
        Some(&record.source),
        Some(&record.surface),
        Some(&record.agent.name),
        Some(&record.agent.client),
        Some(&record.agent.token),
        Some(&record.server),
        Some(&record.tool),
        Some(record.status.as_str()),
        record.error_code.as_deref(),
        record.error_message.as_deref(),
        duration.as_deref(),
        intent.and_then(|intent| intent.operation_type.as_deref()),
        intent.and_then(|intent| intent.data_sensitivity.as_deref()),
        intent.and_then(|intent| intent.reason.as_deref()),
        record.effective_class.map(domain::tool::Class::as_str),
        target.map(|target| target.system.as_str()),
        target.map(|target| target.resource.as_str()),
        record.session_id.as_deref(),
        record.receipt_id.as_deref(),
    ];
    for (index, cell) in cells.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_cell(out, cell.unwrap_or_default());
    }
    out.push_str("\r\n");
}

/// A cell that a spreadsheet would run as a formula is shown as text.
fn push_cell(out: &mut String, text: &str) {
    let runs = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let plain = !runs && !text.contains(['"', ',', '\n', '\r']);
    if plain {
        out.push_str(text);
        return;
    }
    out.push('"');
    if runs {
        out.push('\'');
    }
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_run_by_a_spreadsheet_or_breaks_its_line() {
        let cell = |text: &str| {
            let mut out = String::new();
            push_cell(&mut out, text);
            out
        };
        assert_eq!(cell("plain text"), "plain text");
        assert_eq!(cell("a,b"), r#""a,b""#);
        assert_eq!(cell("say \"x\"\nand"), "\"say \"\"x\"\"\nand\"");
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"] {
            assert!(cell(formula).starts_with("\"'"), "{formula:?}");
        }
    }
}
