//! Edits of a home without its signing key: those that every surface finds, and those that it says
//! it does not find.

use std::path::Path;

use super::edits::{
    change, forge_end, longer_head, other_digit, other_signature, replace, without,
};

/// A receipt: the letter of its chain, and its number.
pub(super) type At = (char, i64);

/// A way to edit the home of a `Stage`.
pub(super) enum Tampering {
    /// `{s}` is the id of a chain; `{k ends at 2}` makes its row agree with one that ends there.
    Sql(&'static str),
    /// Replaces a receipt's text.
    Text(At, fn(String) -> String),
    Swap(At, At),
    /// Repeats a receipt at the end of a chain.
    Again(At, char),
    /// Changes files of the home.
    Files(fn(&Path)),
    /// Replaces all tables by those of a copy that was made before the checkpoint.
    Earlier,
}

use Tampering::{Again, Earlier, Files, Sql, Swap, Text};

pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) tampering: Tampering,
    /// Words of the report.
    pub(super) found: &'static str,
}

const fn kind(name: &'static str, tampering: Tampering, found: &'static str) -> Kind {
    Kind { name, tampering, found }
}

/// An edit of records: one statement.
const fn edit(name: &'static str, sql: &'static str, found: &'static str) -> Kind {
    Kind { name, tampering: Sql(sql), found }
}

const END_MISSING: &str = "the end of the chain is missing";
const MISSING: &str = "the chain is missing";
const COLUMNS: &str = "differ from the signed text";
const RECORD: &str = "its record differs from the signed text";
const TOUCHES: &str = "differs from the signed text: touches";
const LONE: &str = "is missing";
const SIGNATURE: &str = "signature does not match";
const CHAINS: &str = "the table of chains differs from what is signed";
const LISTED: &str = "the table of checkpoints";
const MEETINGS: &str = "meetings do not follow from their records";
const DECISIONS: &str = "the database differs from the signed decisions on";
const LOG: &str = "the signed log of decisions is damaged";
const COPY: &str = "the copy of the operators' decisions is not trusted";
const CHECKPOINT: &str = "checkpoint.json is not a checkpoint";

pub(super) const KINDS: &[Kind] = &[
    // Ends that are cut off.
    kind(
        "the end that no checkpoint names is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{k}' AND sequence > 1"),
        "the chain has 1 receipts, but had 3 according to the table of chains",
    ),
    kind(
        "the end is gone, and the table of chains agrees",
        Sql("DELETE FROM receipts WHERE chain_id='{k}' AND sequence > 2; {k ends at 2}"),
        LONE,
    ),
    kind(
        "the end is gone with its records and its checkpoint",
        Sql("DELETE FROM activity WHERE receipt_id IN (SELECT id FROM receipts
               WHERE chain_id='{s}' AND sequence > 4);
             DELETE FROM receipts WHERE chain_id='{s}' AND sequence > 4;
             DELETE FROM checkpoints WHERE chain_id='{s}'; {s ends at 4}"),
        "but had 12",
    ),
    kind(
        "all but the first receipt is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{s}' AND sequence > 1"),
        END_MISSING,
    ),
    kind(
        "the last receipt of a closed chain is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{w}' AND sequence=2"),
        END_MISSING,
    ),
    kind(
        "the same, and the chain is said to be open",
        Sql("DELETE FROM receipts WHERE chain_id='{w}' AND sequence=2;
             UPDATE chains SET status='open' WHERE chain_id='{w}'; {w ends at 1}"),
        "but had 2 at the checkpoint in receipt 5",
    ),
    kind(
        "the end of the last closed chain is gone, and the chain is said to be open",
        Sql("DELETE FROM receipts WHERE chain_id='{c}' AND sequence=2;
             UPDATE chains SET status='open' WHERE chain_id='{c}'; {c ends at 1}"),
        END_MISSING,
    ),
    // Whole chains.
    kind(
        "all receipts of a chain are gone",
        Sql("DELETE FROM receipts WHERE chain_id='{w}'"),
        MISSING,
    ),
    kind(
        "all receipts of the open chain are gone",
        Sql("DELETE FROM receipts WHERE chain_id='{k}'"),
        LONE,
    ),
    kind(
        "a chain is gone with its row and its records",
        Sql("DELETE FROM activity WHERE receipt_id IN (SELECT id FROM receipts
               WHERE chain_id='{w}');
             DELETE FROM receipts WHERE chain_id='{w}'; DELETE FROM chains WHERE chain_id='{w}'"),
        "the chain has 0 receipts, but had 2 at the checkpoint in receipt 5",
    ),
    kind(
        "the oldest chain is gone with its row and its records",
        Sql("DELETE FROM activity WHERE receipt_id IN (SELECT id FROM receipts
               WHERE chain_id='{s}');
             DELETE FROM receipts WHERE chain_id='{s}'; DELETE FROM chains WHERE chain_id='{s}'"),
        LONE,
    ),
    kind(
        "a chain is said to have expired",
        Sql("DELETE FROM receipts WHERE chain_id='{w}';
             UPDATE chains SET status='expired' WHERE chain_id='{w}'"),
        LONE,
    ),
    kind(
        "the row of a chain is gone",
        Sql("DELETE FROM chains WHERE chain_id='{w}'"),
        "the chain is not in the table of chains",
    ),
    kind(
        "the ledger was emptied",
        Sql("DELETE FROM receipts; DELETE FROM chains; DELETE FROM activity;
             DELETE FROM checkpoints; DELETE FROM touches; DELETE FROM meetings"),
        "the checkpoint in checkpoint.json names it",
    ),
    kind("the ledger is an earlier copy", Earlier, "in checkpoint.json"),
    // The file of the newest checkpoint.
    kind(
        "checkpoint.json is of another ledger",
        Files(|home| replace(home, "checkpoint.json", "\"low\"", "\"high\"")),
        "checkpoint.json is not a checkpoint: signature does not match",
    ),
    kind(
        "checkpoint.json names another head",
        Files(|home| change(home, "checkpoint.json", |text| longer_head(&text))),
        CHECKPOINT,
    ),
    kind(
        "checkpoint.json has no proof",
        Files(|home| change(home, "checkpoint.json", |text| without(&text, "proof"))),
        CHECKPOINT,
    ),
    kind(
        "checkpoint.json is half of it",
        Files(|home| change(home, "checkpoint.json", |text| text[..text.len() / 2].to_owned())),
        CHECKPOINT,
    ),
    kind(
        "checkpoint.json is noise",
        Files(|home| change(home, "checkpoint.json", |_| "noise".to_owned())),
        CHECKPOINT,
    ),
    kind(
        "checkpoint.json is empty",
        Files(|home| change(home, "checkpoint.json", |_| String::new())),
        CHECKPOINT,
    ),
    // Receipts in the wrong place.
    kind(
        "the beginning is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{s}' AND sequence=1"),
        "sequence is 2, expected 1",
    ),
    kind(
        "a receipt in the middle is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{s}' AND sequence=3"),
        "sequence is 4, expected 3",
    ),
    kind(
        "the checkpoint is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{s}' AND sequence=5;
             DELETE FROM checkpoints WHERE chain_id='{s}' AND sequence=5"),
        "sequence is 6, expected 5",
    ),
    kind(
        "a gap is closed by renumbering",
        Sql("DELETE FROM receipts WHERE chain_id='{k}' AND sequence=2;
             UPDATE receipts SET sequence=2 WHERE chain_id='{k}' AND sequence=3"),
        "sequence is 3, expected 2",
    ),
    kind(
        "two receipts are exchanged",
        Sql("UPDATE receipts SET sequence=90 WHERE chain_id='{s}' AND sequence=1;
             UPDATE receipts SET sequence=1 WHERE chain_id='{s}' AND sequence=2;
             UPDATE receipts SET sequence=2 WHERE chain_id='{s}' AND sequence=90"),
        "sequence is 2, expected 1",
    ),
    kind("the texts of two receipts are exchanged", Swap(('k', 1), ('k', 2)), "sequence is 2"),
    kind("two chains are exchanged in part", Swap(('w', 1), ('c', 1)), "belongs to chain"),
    kind(
        "a receipt is in another chain",
        Sql("UPDATE receipts SET chain_id='{w}', sequence=3 WHERE chain_id='{k}' AND sequence=3"),
        "belongs to chain",
    ),
    kind("a receipt comes twice", Again(('k', 3), 'k'), "sequence is 3, expected 4"),
    kind("something follows the end", Again(('w', 1), 'c'), "belongs to chain"),
    kind("the end is forged", Files(forge_end), "signed with another key"),
    kind(
        "a chain has another id",
        Sql("UPDATE receipts SET chain_id='other' WHERE chain_id='{w}';
             UPDATE chains SET chain_id='other' WHERE chain_id='{w}'"),
        "the columns chain_id",
    ),
    // Texts.
    text("another tool", 1, |text| text.replace("\"say\"", "\"pay\"")),
    text("another outcome", 3, |text| text.replace("\"failure\"", "\"success\"")),
    text("another time", 2, |text| text.replace("issuanceDate\":\"20", "issuanceDate\":\"19")),
    text("another agent", 2, |text| text.replace("agent_id\":\"", "agent_id\":\"x")),
    text("another reason", 1, |text| text.replace("to look", "to act")),
    text("another token", 1, |text| text.replace("token:", "token:x")),
    text("another risk", 2, |text| text.replace("\"medium\"", "\"low\"")),
    text("another target", 2, |text| text.replace("/srv/a", "/srv/b")),
    text("other arguments", 2, |text| other_digit(&text, "parameters_hash\":\"sha256:")),
    text("another result", 1, |text| other_digit(&text, "response_exact_hash\":\"sha256:")),
    text("another duration", 1, |text| text.replace("duration_us\":", "duration_us\":1")),
    text("another link", 3, |text| other_digit(&text, "previous_receipt_hash\":\"sha256:")),
    text("another head in the checkpoint", 5, |text| longer_head(&text)),
    text("another signature", 2, |text| other_signature(&text)),
    text("another sequence", 2, |text| text.replace("\"sequence\":2", "\"sequence\":9")),
    text("one member more", 2, |text| text.replacen('{', "{\"x\":1,", 1)),
    kind(
        "one member less",
        Text(('s', 2), |text| without(&text, "version")),
        "version is missing or malformed",
    ),
    kind("no proof", Text(('s', 2), |text| without(&text, "proof")), "proof is missing"),
    kind(
        "a member twice",
        Text(('s', 2), |text| text.replacen('{', "{\"version\":\"0.5.0\",", 1)),
        "not valid JSON",
    ),
    kind("no JSON", Text(('s', 2), |_| "noise".to_owned()), "not valid JSON"),
    kind("half of it", Text(('s', 2), |text| text[..text.len() / 2].to_owned()), "not valid JSON"),
    kind("no text", Text(('s', 2), |_| String::new()), "not valid JSON"),
    kind(
        "not UTF-8",
        Sql("UPDATE receipts SET receipt_json=CAST(x'ff00fe' AS TEXT)
             WHERE chain_id='{s}' AND sequence=2"),
        "not valid JSON",
    ),
    // Columns of receipts.
    edit(
        "the column of the id",
        "UPDATE receipts SET id=id || 'x' WHERE chain_id='{s}' AND sequence=3",
        "the receipt of record",
    ),
    edit(
        "the column of a checkpoint's id",
        "UPDATE receipts SET id=id || 'x' WHERE chain_id='{s}' AND sequence=5",
        COLUMNS,
    ),
    edit(
        "a receipt passes for one of the ledger itself",
        "UPDATE receipts SET own='agent_receipts.chain_expired'
         WHERE chain_id='{s}' AND sequence=3",
        COLUMNS,
    ),
    edit(
        "a receipt of the ledger itself passes for a call's",
        "UPDATE receipts SET own=NULL WHERE own IS NOT NULL AND chain_id='{w}'",
        COLUMNS,
    ),
    edit(
        "the column of the hash",
        "UPDATE receipts SET receipt_hash='x' WHERE chain_id='{s}' AND sequence=3",
        COLUMNS,
    ),
    // The table of chains.
    edit("opened later", "UPDATE chains SET opened_at='2036' || substr(opened_at, 5)", CHAINS),
    edit("opened by another process", "UPDATE chains SET pid=pid + 1", CHAINS),
    edit("another key", "UPDATE chains SET key='sha256:' || hex(randomblob(32))", CHAINS),
    edit(
        "nothing came before",
        "UPDATE chains SET preceding=NULL, preceding_sequence=NULL,
           preceding_hash=NULL WHERE chain_id='{c}'",
        CHAINS,
    ),
    edit("another came before", "UPDATE chains SET preceding='{k}' WHERE chain_id='{c}'", CHAINS),
    edit("the one before was longer", "UPDATE chains SET preceding_sequence=99", CHAINS),
    edit("the one before was another", "UPDATE chains SET preceding_hash='x'", CHAINS),
    edit(
        "an open chain is closed",
        "UPDATE chains SET status='complete' WHERE chain_id='{k}'",
        END_MISSING,
    ),
    edit("a closed chain is open", "UPDATE chains SET status='open' WHERE chain_id='{w}'", CHAINS),
    edit(
        "an interrupted chain is complete",
        "UPDATE chains SET status='complete' WHERE chain_id='{s}'",
        CHAINS,
    ),
    edit(
        "an open chain has expired",
        "UPDATE chains SET status='expired' WHERE chain_id='{k}'",
        CHAINS,
    ),
    edit(
        "a chain is damaged",
        "UPDATE chains SET status='damaged' WHERE chain_id='{w}'",
        END_MISSING,
    ),
    edit(
        "a chain is longer",
        "UPDATE chains SET length=length + 1 WHERE chain_id='{k}'",
        "the chain has 3 receipts, but had 4",
    ),
    edit(
        "a chain is shorter",
        "UPDATE chains SET length=length - 1 WHERE chain_id='{k}'",
        "receipt 2 has changed since it was filed",
    ),
    edit(
        "a journal is filed less far",
        "UPDATE chains SET filed=filed - 1 WHERE chain_id='{k}'",
        "the table of chains",
    ),
    edit(
        "a chain was made up",
        "INSERT INTO chains (chain_id, opened_at, pid, key, status, length,
           last_hash) SELECT 'made-up', opened_at, pid, key, 'complete', 2, last_hash FROM chains
           WHERE chain_id='{w}'",
        MISSING,
    ),
    // The table of checkpoints.
    edit(
        "a checkpoint is not listed",
        "DELETE FROM checkpoints WHERE chain_id='{s}' AND sequence=5",
        LISTED,
    ),
    edit("no checkpoint is listed", "DELETE FROM checkpoints", LISTED),
    edit(
        "a checkpoint is listed elsewhere",
        "UPDATE checkpoints SET sequence=sequence + 1",
        LISTED,
    ),
    edit(
        "a checkpoint is listed in another chain",
        "UPDATE checkpoints SET chain_id='{w}'",
        LISTED,
    ),
    edit(
        "a checkpoint is listed with another hash",
        "UPDATE checkpoints SET hash='sha256:'
           || (SELECT lower(hex(hash)) FROM signed_receipts WHERE number=1)",
        LISTED,
    ),
    edit(
        "a checkpoint was made up",
        "INSERT INTO checkpoints (chain_id, sequence, hash)
           SELECT chain_id, sequence, receipt_hash FROM receipts WHERE chain_id='{k}' LIMIT 1",
        LISTED,
    ),
    // Records.
    edit("a record is gone", "DELETE FROM activity WHERE tool='fail'", "its record is missing"),
    edit(
        "the record of a decision is gone",
        "DELETE FROM activity WHERE type='token_change'",
        "its record is missing",
    ),
    edit("all records are gone", "DELETE FROM activity", "its record is missing"),
    edit(
        "a record denies its receipt",
        "UPDATE activity SET receipt_id=NULL WHERE tool='put'",
        "names no receipt",
    ),
    edit(
        "a record names another receipt",
        "UPDATE activity SET receipt_id=(SELECT receipt_id
           FROM activity WHERE tool='fail') WHERE tool='put'",
        RECORD,
    ),
    edit(
        "a record was made up",
        "INSERT INTO activity (id, changed, chain, type, source, surface,
           server, tool, agent, started_us, status)
         SELECT 'made-up', changed + 1000, chain, type, source, surface, server, tool, agent,
           started_us, status FROM activity WHERE tool='say' LIMIT 1",
        "record made-up names no receipt",
    ),
    edit(
        "a record of no chain was made up",
        "INSERT INTO activity (id, changed, chain, type, source,
           surface, server, tool, agent, started_us, status)
         SELECT 'made-up', changed + 1000, 99, type, source, surface, server, tool, agent,
           started_us, status FROM activity WHERE tool='say' LIMIT 1",
        "belong to no chain",
    ),
    edit("another id", "UPDATE activity SET id='other' WHERE tool='put'", LONE),
    edit("another type", "UPDATE activity SET type='system' WHERE tool='put'", RECORD),
    edit("another source", "UPDATE activity SET source='hook' WHERE tool='put'", RECORD),
    edit("another surface", "UPDATE activity SET surface='run' WHERE tool='put'", RECORD),
    edit("another server", "UPDATE activity SET server='t' WHERE tool='put'", RECORD),
    edit("another tool name", "UPDATE activity SET tool='pay' WHERE tool='put'", RECORD),
    edit("no tool", "UPDATE activity SET tool='' WHERE tool='put'", RECORD),
    edit(
        "the agent of another call",
        "UPDATE activity SET agent=(SELECT agent FROM activity
           WHERE tool='fail') WHERE tool='put'",
        RECORD,
    ),
    edit("an agent that is not there", "UPDATE activity SET agent=99 WHERE tool='put'", RECORD),
    edit("another session", "UPDATE activity SET session_id='x' WHERE tool='put'", RECORD),
    edit("no session", "UPDATE activity SET session_id=NULL WHERE tool='put'", RECORD),
    edit("another request", "UPDATE activity SET request_id='99' WHERE tool='put'", RECORD),
    edit("another start", "UPDATE activity SET started_us=started_us - 5000", RECORD),
    edit(
        "another length",
        "UPDATE activity SET duration_us=duration_us + 1 WHERE tool='put'",
        RECORD,
    ),
    edit("no length", "UPDATE activity SET duration_us=NULL WHERE tool='put'", RECORD),
    edit("a resource without a name", "UPDATE activity SET target=99 WHERE tool='fail'", RECORD),
    edit("a call still runs", "UPDATE activity SET status='pending' WHERE tool='put'", RECORD),
    edit(
        "a failed call succeeded",
        "UPDATE activity SET status='success' WHERE tool='fail'",
        RECORD,
    ),
    edit(
        "a refused call was cancelled",
        "UPDATE activity SET status='cancelled' WHERE tool='drop'",
        RECORD,
    ),
    edit("a call failed", "UPDATE activity SET status='error' WHERE tool='put'", RECORD),
    edit("another code", "UPDATE activity SET error_code='TIMEOUT' WHERE status='blocked'", RECORD),
    edit(
        "another message",
        "UPDATE activity SET error_message='it worked' WHERE tool='fail'",
        RECORD,
    ),
    edit(
        "another variant",
        "UPDATE activity SET tool_variant='call_tool_read' WHERE tool='put'",
        RECORD,
    ),
    edit("another intent", "UPDATE activity SET intent_type='read' WHERE tool='put'", RECORD),
    edit("another sensitivity", "UPDATE activity SET data_sensitivity='public'", RECORD),
    edit(
        "another stated reason",
        "UPDATE activity SET reason='to act' WHERE reason='to look'",
        RECORD,
    ),
    edit("a reason was made up", "UPDATE activity SET reason='to act' WHERE tool='put'", RECORD),
    edit("another class", "UPDATE activity SET effective_class='read' WHERE tool='put'", RECORD),
    edit("a call counts as verified", "UPDATE activity SET unverified=0 WHERE tool='put'", RECORD),
    edit(
        "another main target",
        "UPDATE activity SET target=(SELECT target FROM targets
           WHERE resource='/srv/k') WHERE tool='put'",
        RECORD,
    ),
    edit("no main target", "UPDATE activity SET target=NULL WHERE tool='put'", RECORD),
    edit("another basis", "UPDATE activity SET target_basis='x' WHERE tool='put'", RECORD),
    edit("another tool-use id", "UPDATE activity SET correlation_id='x' WHERE tool='Edit'", RECORD),
    edit(
        "a record is hidden behind another",
        "UPDATE activity SET joined=(SELECT id FROM activity
           WHERE tool='fail') WHERE tool='put'",
        "differs from the signed text: joined",
    ),
    edit("another trace", "UPDATE activity SET trace_id='x' WHERE trace_id IS NOT NULL", RECORD),
    edit("a warning was made up", "UPDATE activity SET warnings='[\"careful\"]'", RECORD),
    edit(
        "other sizes of arguments",
        "UPDATE activity SET arguments_bytes=1 WHERE tool='put'",
        RECORD,
    ),
    edit("other sizes of results", "UPDATE activity SET response_bytes=1 WHERE tool='put'", RECORD),
    edit(
        "the number of a decision's record",
        "UPDATE activity SET tool='x' WHERE type='tool_change'",
        RECORD,
    ),
    // Names that records share.
    edit(
        "an agent has another name",
        "UPDATE agents SET name='nobody' WHERE agent=(SELECT agent
           FROM activity WHERE tool='put')",
        RECORD,
    ),
    edit(
        "an agent has another client",
        "UPDATE agents SET client='nothing' WHERE agent=(SELECT agent
           FROM activity WHERE tool='put')",
        RECORD,
    ),
    edit(
        "an agent has another token",
        "UPDATE agents SET token='none' WHERE agent=(SELECT agent
           FROM activity WHERE tool='put')",
        RECORD,
    ),
    edit("agents are gone", "DELETE FROM agents", RECORD),
    edit(
        "a target has another name",
        "UPDATE targets SET resource='/srv/z' WHERE resource='/srv/a'",
        RECORD,
    ),
    edit(
        "a target is of another system",
        "UPDATE targets SET system='x' WHERE resource='/srv/a'",
        RECORD,
    ),
    edit("targets are gone", "DELETE FROM targets", RECORD),
    // Texts that are kept of calls.
    edit("other kept arguments", "UPDATE payloads SET arguments='{}'", RECORD),
    edit("another kept result", "UPDATE payloads SET response='{\"content\":[]}'", RECORD),
    edit(
        "a kept result is shorter",
        "UPDATE payloads SET response=substr(response, 1, 100)
           WHERE response_truncated=1",
        RECORD,
    ),
    edit(
        "a kept result is said to be whole",
        "UPDATE payloads SET response_truncated=0 WHERE response_truncated=1",
        RECORD,
    ),
    edit(
        "a kept result is said to be cut",
        "UPDATE payloads SET response_truncated=1 WHERE response_truncated=0",
        RECORD,
    ),
    edit(
        "the texts of another call",
        "UPDATE payloads SET arguments=(SELECT arguments FROM payloads
           JOIN activity USING (number) WHERE tool='Edit' LIMIT 1)",
        RECORD,
    ),
    // Touches.
    edit(
        "a record touches nothing any more",
        "DELETE FROM touches WHERE number=(SELECT number FROM activity WHERE tool='put')",
        TOUCHES,
    ),
    edit("a write became a read", "UPDATE touches SET who=who - 1 WHERE who % 4=1", TOUCHES),
    edit("a touch is another agent's", "UPDATE touches SET who=who + 4", TOUCHES),
    edit("a touch is of another time", "UPDATE touches SET started_us=started_us + 1", TOUCHES),
    edit(
        "another resource was touched",
        "UPDATE touches SET target=(SELECT target FROM targets
           WHERE resource='/srv/k') WHERE target<>(SELECT target FROM targets
           WHERE resource='/srv/k')",
        TOUCHES,
    ),
    edit(
        "a touch of no record was made up",
        "INSERT INTO touches
           SELECT target, started_us, who, 9999 FROM touches LIMIT 1",
        "belong to no record",
    ),
    edit(
        "a touch was made up",
        "INSERT INTO touches SELECT touches.target, activity.started_us,
           activity.agent * 4, activity.number FROM touches, activity
           WHERE activity.tool='fail' LIMIT 1",
        TOUCHES,
    ),
    // Meetings.
    edit("another kind of meeting", "UPDATE meetings SET kind='write-write'", MEETINGS),
    edit("no kind of meeting", "UPDATE meetings SET kind='x'", MEETINGS),
    edit("another gap", "UPDATE meetings SET gap_us=gap_us + 1", MEETINGS),
    edit("an agent met itself", "UPDATE meetings SET other=number", MEETINGS),
    edit("who met whom", "UPDATE meetings SET number=other, other=number", MEETINGS),
    edit(
        "a meeting was made up",
        "INSERT INTO meetings
           SELECT changed + 1000, other, number, target, kind, gap_us FROM meetings LIMIT 1",
        MEETINGS,
    ),
    // Decisions.
    edit(
        "a line of the log is another",
        "UPDATE decisions SET line=replace(line, '\"drop\"', '\"say\"')",
        LOG,
    ),
    edit(
        "the last line of the log is gone",
        "DELETE FROM decisions WHERE number=(SELECT max(number) FROM decisions)",
        DECISIONS,
    ),
    edit(
        "the last line is gone with its decision",
        "DELETE FROM decisions WHERE number=(SELECT max(number) FROM decisions);
         DELETE FROM switches",
        "the database has older decisions than their copy",
    ),
    edit("the first line of the log is gone", "DELETE FROM decisions WHERE number=1", LOG),
    edit("the log is gone", "DELETE FROM decisions", LOG),
    edit(
        "two lines of the log are exchanged",
        "UPDATE decisions SET number=-number
           WHERE number < 3; UPDATE decisions SET number=3 + number WHERE number < 0",
        LOG,
    ),
    edit("a tool is on again", "DELETE FROM switches", DECISIONS),
    edit("a tool was switched off", "INSERT INTO switches VALUES ('s', 'say')", DECISIONS),
    edit("a token is gone", "DELETE FROM tokens", DECISIONS),
    edit("a token may write", "UPDATE tokens SET scope=replace(scope, 'read', 'write')", DECISIONS),
    edit("a token has another secret", "UPDATE tokens SET hash=x'00'", DECISIONS),
    edit("a token was revoked", "UPDATE tokens SET revoked_us=1", DECISIONS),
    edit("a token expires", "UPDATE tokens SET expires_us=1", DECISIONS),
    edit("a server is in quarantine", "UPDATE servers SET quarantined=1", DECISIONS),
    edit("a server is switched off", "UPDATE servers SET disabled=1", DECISIONS),
    edit("a server has listed nothing", "UPDATE servers SET has_baseline=0", DECISIONS),
    edit("a server was added", "INSERT INTO servers (name, added) VALUES ('x', '{}')", DECISIONS),
    edit(
        "a tool is approved as something else",
        "UPDATE items SET approved_fingerprint='x' WHERE name='say'",
        DECISIONS,
    ),
    edit("an approval is gone", "DELETE FROM items WHERE name='say'", DECISIONS),
    edit("a file is trusted", "INSERT INTO trusted_files VALUES ('/srv/x.json', 'x')", DECISIONS),
    edit(
        "decisions are said to be lost",
        "INSERT INTO settings VALUES ('decisions_lost', '2026-01-01T00:00:00Z')",
        DECISIONS,
    ),
    kind(
        "the copy of the log has another line",
        Files(|home| replace(home, "decisions.jsonl", "\"drop\"", "\"say\"")),
        COPY,
    ),
    kind(
        "the copy of the log is noise",
        Files(|home| change(home, "decisions.jsonl", |_| "noise\n".to_owned())),
        COPY,
    ),
    // Settings.
    edit(
        "a count of deletions was made up",
        "INSERT INTO settings VALUES ('expired_records', '{}')",
        "is not signed by this home",
    ),
];

/// An edit of the text of a receipt of `s`, after which its signature does not fit.
const fn text(name: &'static str, sequence: i64, change: fn(String) -> String) -> Kind {
    Kind { name, tampering: Text(('s', sequence), change), found: SIGNATURE }
}

/// Kinds whose export differs and is intact: nothing in it names the end that it lacks, or its
/// chains are in another order.
pub(super) const INTACT_EXPORTS: &[&str] = &[
    "the end that no checkpoint names is gone",
    "the end is gone, and the table of chains agrees",
    "all receipts of the open chain are gone",
    "the ledger is an earlier copy",
    "the row of a chain is gone",
];

/// Edits that nothing finds, since they decide nothing that anybody is shown: what a process writes
/// down for itself, and the order of rows.
pub(super) const SHOWN_BY_NO_VIEW: &[&str] = &[
    "UPDATE chains SET named=0",
    "UPDATE chains SET last_hash=NULL",
    "UPDATE activity SET changed=changed + 1000",
    "UPDATE activity SET chain=(SELECT chain FROM chains WHERE chain_id='{w}')",
    "UPDATE checkpoints SET number=-number",
    "UPDATE meetings SET changed=changed + 1000",
    "UPDATE state SET version=version + 1",
    "DELETE FROM settings",
];

/// Edits that change what a view shows and are no fault: runs are not signed (their calls are), and
/// retention deletes kept texts and meetings.
pub(super) const NOT_SIGNED: &[&str] = &[
    "UPDATE runs SET status='success', message=NULL, exit_code=0",
    "UPDATE runs SET workflow='other'",
    "UPDATE run_steps SET status='success', error_code=NULL, error=NULL",
    "UPDATE run_steps SET output='all is well'",
    "UPDATE run_texts SET text='all is well'",
    "DELETE FROM run_texts; DELETE FROM run_steps; DELETE FROM runs",
    "DELETE FROM payloads",
    "UPDATE payloads SET arguments=NULL, response=NULL",
];
