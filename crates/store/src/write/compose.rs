//! Composes receipts from records.

use receipt::Hash;
use receipt::RiskLevel;
use receipt::Runtime;
use receipt::canonical::Digest;
use receipt::checkpoint::{self, Checkpoint, Head};
use receipt::content::{
    Action, ActionTarget, Issuer, Operator, OutcomeStatus, PeerCredential, Principal, Receipt,
    ReceiptOutcome, Termination,
};
use receipt::key::{PublicKey, SigningKey};
use receipt::rotation::{self, Rotation};
use touch::targets::Touched;

use crate::database::timestamp;
use crate::record::{CallEnd, CallStart, OutsideSource, RecordKind, RecordStatus};
use crate::upkeep::stated::RECORDS_EXPIRED;
use crate::upkeep::tally::ExpiredData;
use crate::write::link::{ChainBeginning, ChainEnd, Issuance, Link};

/// The type of the action that ends a chain.
pub(crate) const CHAIN_CLOSED: &str = "agent_receipts.chain_closed";

/// The type of the action that expires a whole chain.
pub(crate) const CHAIN_EXPIRED: &str = "agent_receipts.chain_expired";

/// The member that says more of a failure: that it is none for sure, that the call was refused, or
/// that it was cancelled.
pub(crate) const OUTCOME: &str = "outcome";

/// The member of a first receipt that says when and by which process its chain was opened.
pub(crate) const CHAIN_OPENED: &str = "chain_opened";

/// The member with the type of a record that is no call.
pub(crate) const RECORD_TYPE: &str = "record_type";

/// Composes the receipt of an ended call. Receipts that a dead process left are composed again from
/// their records: the same values always give the same text.
pub(crate) fn call(
    issuance: Issuance<'_>,
    call: &CallStart,
    ended: &CallEnd,
    issued_at: &str,
) -> Link {
    let runtime = runtime(call, ended, issuance.beginning);
    with_runtime(issuance, call, ended, issued_at, runtime)
}

/// Composes a receipt for a record that no longer gives the promised hash, and names that hash.
pub(crate) fn reissued(
    issuance: Issuance<'_>,
    call: &CallStart,
    ended: &CallEnd,
    promised: &str,
) -> Link {
    let mut runtime = runtime(call, ended, issuance.beginning);
    runtime.insert("promised_hash", promised);
    with_runtime(issuance, call, ended, &timestamp::now(), runtime)
}

fn with_runtime(
    issuance: Issuance<'_>,
    call: &CallStart,
    ended: &CallEnd,
    issued_at: &str,
    runtime: Runtime<'_>,
) -> Link {
    let at = timestamp::text(call.at);
    let error = error_text(ended);
    let principal = format!("token:{}", call.agent.token);
    let outside = call.outside.as_deref();
    let receipt = Receipt {
        id: &call.id,
        issuer: Issuer {
            id: did(issuance.key),
            name: name(call, outside),
            operator: outside.and_then(operator),
            model: outside.and_then(|outside| outside.model.as_deref()),
            session_id: call.session.as_deref(),
            runtime,
        },
        issued_at,
        principal: Principal { id: &principal, kind: None },
        action: Action {
            id: &call.id,
            action_type: &call.action.kind,
            risk: call.action.risk,
            target: target(call),
            parameters_hash: canonical(call.arguments.digest),
            peer: outside.and_then(peer),
            drop_count: outside.and_then(|outside| outside.drop_count),
            timestamp: &at,
            idempotency_key: call.request_id.as_deref(),
        },
        outcome: ReceiptOutcome {
            status: status(ended.status),
            error: error.as_deref(),
            response_hash: canonical(ended.response.digest),
        },
        correlation_id: call.action.correlation_id.as_deref(),
        rotation: None,
    };
    issuance.end.link(issuance.chain_id, &receipt, None)
}

/// Composes the last receipt of a chain.
pub(crate) fn closing(
    issuance: Issuance<'_>,
    termination: Termination,
    checkpoint: Option<&Checkpoint>,
) -> Link {
    let runtime = with_checkpoint(issuance.beginning, checkpoint);
    own(issuance, CHAIN_CLOSED, (RiskLevel::Low, runtime), None, Some(termination))
}

/// Composes a receipt that names the heads of all chains.
pub(crate) fn checkpoint(issuance: Issuance<'_>, checkpoint: &Checkpoint) -> Link {
    let runtime = with_checkpoint(issuance.beginning, Some(checkpoint));
    own(issuance, checkpoint::ACTION_TYPE, (RiskLevel::Low, runtime), None, None)
}

/// Composes the receipt with which a key hands over to another.
pub(crate) fn rotated(issuance: Issuance<'_>, new: &PublicKey) -> Link {
    let rotation = Rotation::new(&issuance.key.public(), new);
    let runtime = issuance.beginning.map(beginning).unwrap_or_default();
    own(issuance, rotation::ACTION_TYPE, (RiskLevel::High, runtime), Some(rotation), None)
}

/// Composes the receipt that replaces an expired chain. The chains whose expiry that chain stated
/// are stated again: older receipts may still name them.
pub(crate) fn expired(
    issuance: Issuance<'_>,
    chain_id: &str,
    last: ChainEnd,
    before: &[Head],
) -> Link {
    let mut runtime = issuance.beginning.map(beginning).unwrap_or_default();
    runtime.insert("expired_chain", gone(chain_id, last.sequence, last.hash));
    if !before.is_empty() {
        let before = before.iter();
        let before = before.map(|head| gone(&head.chain_id, head.length, Some(head.hash)));
        runtime.insert("expired_before", before.collect::<Vec<_>>());
    }
    own(issuance, CHAIN_EXPIRED, (RiskLevel::Low, runtime), None, None)
}

fn gone(chain_id: &str, sequence: u64, hash: Option<Hash>) -> Runtime<'_> {
    let mut gone = Runtime::new();
    gone.insert("chain_id", chain_id);
    gone.insert("sequence", sequence);
    if let Some(hash) = hash {
        gone.insert("hash", hash);
    }
    gone
}

/// Composes the receipt that states what retention deleted.
pub(crate) fn records_expired<'a>(issuance: Issuance<'a>, deleted: &'a [ExpiredData]) -> Link {
    let mut runtime = issuance.beginning.map(beginning).unwrap_or_default();
    let stated = |data: &'a ExpiredData| {
        let mut stated = Runtime::new();
        stated.insert("kind", data.kind.as_str());
        stated.insert("reason", data.reason.as_str());
        stated.insert("count", data.count);
        if let Some(holder) = &data.holder {
            stated.insert("holder", &**holder);
        }
        if data.bytes > 0 {
            stated.insert("bytes", data.bytes);
        }
        let time = |microseconds| timestamp::read(microseconds).map(timestamp::text).ok();
        let span = data.span_us.and_then(|(from, to)| time(from).zip(time(to)));
        if let Some((from, to)) = span {
            stated.insert("from", from);
            stated.insert("to", to);
        }
        stated
    };
    runtime.insert("expired_records", deleted.iter().map(stated).collect::<Vec<_>>());
    own(issuance, RECORDS_EXPIRED, (RiskLevel::Low, runtime), None, None)
}

/// Composes a receipt of an action of the ledger itself.
pub(crate) fn own(
    issuance: Issuance<'_>,
    action_type: &str,
    (risk, runtime): (RiskLevel, Runtime<'_>),
    rotation: Option<Rotation>,
    termination: Option<Termination>,
) -> Link {
    let (id, now) = (uuid::Uuid::now_v7().to_string(), timestamp::now());
    let receipt = Receipt {
        id: &id,
        issuer: Issuer { id: did(issuance.key), runtime, ..Issuer::default() },
        issued_at: &now,
        principal: Principal { id: did(issuance.key), kind: None },
        action: Action {
            id: &id,
            action_type,
            risk,
            target: None,
            parameters_hash: None,
            peer: None,
            drop_count: None,
            timestamp: &now,
            idempotency_key: None,
        },
        outcome: ReceiptOutcome {
            status: OutcomeStatus::Success,
            error: None,
            response_hash: None,
        },
        correlation_id: None,
        rotation,
    };
    issuance.end.link(issuance.chain_id, &receipt, termination)
}

/// Returns the key's DID, without the fragment that proofs add.
fn did(key: &SigningKey) -> &str {
    key.verification_method().split('#').next().unwrap_or_default()
}

fn name<'a>(call: &'a CallStart, outside: Option<&'a OutsideSource>) -> Option<&'a str> {
    outside.and_then(|outside| outside.issuer_name.as_deref()).or(Some(&call.agent.client))
}

fn operator(outside: &OutsideSource) -> Option<Operator<'_>> {
    outside.operator.as_ref().map(|operator| Operator { id: &operator.id, name: &operator.name })
}

fn peer(outside: &OutsideSource) -> Option<PeerCredential<'_>> {
    outside.pid.map(|pid| PeerCredential {
        platform: std::env::consts::OS,
        pid,
        uid: outside.uid,
        gid: outside.gid,
        exe_path: None,
    })
}

/// Returns the target. The system is always named if the type of the action says nothing.
fn target(call: &CallStart) -> Option<ActionTarget<'_>> {
    let known = call
        .touches
        .main()
        .map(|target| ActionTarget { system: target.system(), resource: Some(target.resource()) });
    known.or_else(|| {
        let system = if call.server.is_empty() { &call.tool } else { &call.server };
        (call.action.kind == "unknown").then_some(ActionTarget { system, resource: None })
    })
}

fn canonical(digest: Option<Digest>) -> Option<receipt::Hash> {
    match digest {
        Some(Digest::Canonical(hash)) => Some(hash),
        Some(Digest::Exact(_)) | None => None,
    }
}

fn exact(digest: Option<Digest>) -> Option<receipt::Hash> {
    match digest {
        Some(Digest::Exact(hash)) => Some(hash),
        Some(Digest::Canonical(_)) | None => None,
    }
}

fn status(status: RecordStatus) -> OutcomeStatus {
    match status {
        RecordStatus::Success => OutcomeStatus::Success,
        RecordStatus::Error
        | RecordStatus::Blocked
        | RecordStatus::Cancelled
        | RecordStatus::Unknown => OutcomeStatus::Failure,
        RecordStatus::Pending | RecordStatus::Interrupted => OutcomeStatus::Pending,
    }
}

fn error_text(ended: &CallEnd) -> Option<String> {
    match (&ended.error_code, &ended.error_message) {
        (Some(code), Some(message)) => Some(format!("{code}: {message}")),
        (Some(text), None) => Some(text.to_string()),
        (None, text) => text.clone(),
    }
}

fn with_checkpoint<'a>(
    begun: Option<&'a ChainBeginning>,
    checkpoint: Option<&'a Checkpoint>,
) -> Runtime<'a> {
    let mut runtime = begun.map(beginning).unwrap_or_default();
    if let Some(checkpoint) = checkpoint {
        runtime.insert(checkpoint::MEMBER, checkpoint.runtime());
    }
    runtime
}

/// States the beginning of a chain: when it was opened, by which process, and after which chain.
pub(crate) fn beginning(beginning: &ChainBeginning) -> Runtime<'_> {
    let ChainBeginning { opened_at, pid, preceding } = beginning;
    let (mut opened, mut runtime) = (Runtime::new(), Runtime::new());
    opened.insert("at", &**opened_at);
    opened.insert("pid", u64::from(*pid));
    runtime.insert(CHAIN_OPENED, opened);
    if let Some(preceding) = preceding {
        let mut chain = Runtime::new();
        chain.insert("chain_id", &*preceding.chain_id);
        chain.insert("sequence", preceding.sequence);
        chain.insert("hash", preceding.hash);
        runtime.insert("preceding_chain", chain);
    }
    runtime
}

/// Adds what `action.target` has no place for: the rule that found the resources, the access to the
/// main one, and the other resources.
fn add_touches<'a>(runtime: &mut Runtime<'a>, call: &'a CallStart) {
    let Some(basis) = call.touches.basis() else {
        return;
    };
    runtime.insert("target_basis", basis.as_str());
    let Some((main, more)) = call.touches.all().split_first() else {
        return;
    };
    runtime.insert("target_access", main.access.as_str());
    if !more.is_empty() {
        let object = |touched: &'a Touched| {
            let mut object = Runtime::new();
            object.insert("system", touched.target.system());
            object.insert("resource", touched.target.resource());
            object.insert("access", touched.access.as_str());
            object
        };
        runtime.insert("targets", more.iter().map(object).collect::<Vec<_>>());
    }
}

/// Collects the members for which the format has no place.
fn runtime<'a>(
    call: &'a CallStart,
    ended: &'a CallEnd,
    begun: Option<&'a ChainBeginning>,
) -> Runtime<'a> {
    let mut runtime = begun.map(beginning).unwrap_or_default();
    let outside = call.outside.as_deref();
    let texts = [
        (RECORD_TYPE, Some(call.kind.as_str()).filter(|_| call.kind != RecordKind::ToolCall)),
        ("server", Some(&*call.server)),
        ("tool", Some(&*call.tool)),
        ("source", Some(&*call.source)),
        ("surface", Some(&*call.surface)),
        ("agent_id", Some(outside.and_then(|o| o.agent_id.as_deref()).unwrap_or(&call.agent.name))),
        ("agent_type", outside.and_then(|outside| outside.agent_type.as_deref())),
        ("capture_method", outside.and_then(|outside| outside.capture_method.as_deref())),
        ("usage", outside.and_then(|outside| outside.usage.as_deref())),
        ("tool_variant", call.variant.as_deref()),
        ("declared_class", call.declared.as_deref()),
        ("effective_class", call.effective.map(domain::tool::Class::as_str)),
        ("data_sensitivity", call.sensitivity.as_deref()),
        ("reason", call.reason.as_deref()),
        ("verdict", ended.error_code.as_deref()),
        ("trace_id", call.trace_id.as_deref()),
    ];
    for (name, text) in texts {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            runtime.insert(name, text);
        }
    }
    for (name, digest) in [
        ("parameters_exact_hash", call.arguments.digest),
        ("response_exact_hash", ended.response.digest),
        ("arguments_kept_hash", call.arguments.kept_digest),
        ("response_kept_hash", ended.response.kept_digest),
    ] {
        if let Some(hash) = exact(digest) {
            runtime.insert(name, hash);
        }
    }
    add_touches(&mut runtime, call);
    if call.unverified {
        runtime.insert("unverified", true);
    }
    if ended.status == RecordStatus::Interrupted {
        runtime.insert("interrupted", true);
    }
    let precisely = [RecordStatus::Unknown, RecordStatus::Blocked, RecordStatus::Cancelled];
    if precisely.contains(&ended.status) {
        runtime.insert(OUTCOME, ended.status.as_str());
    }
    if ended.response.truncated {
        runtime.insert("response_truncated", true);
    }
    for (name, number) in [
        ("duration_us", u64::try_from(duration_us(ended)).unwrap_or_default()),
        ("arguments_bytes", call.arguments.bytes as u64),
        ("response_bytes", ended.response.bytes as u64),
    ] {
        if number > 0 {
            runtime.insert(name, number);
        }
    }
    let warnings = call.warnings.iter().chain(&ended.warnings).map(String::as_str);
    let warnings: Vec<&str> = warnings.collect();
    if !warnings.is_empty() {
        runtime.insert("warnings", warnings.as_slice());
    }
    runtime
}

/// Returns the duration of a call as records and receipts have it.
pub(crate) fn duration_us(ended: &CallEnd) -> i64 {
    i64::try_from(ended.duration.as_micros()).unwrap_or(i64::MAX)
}
