//! Ledgers made for a test: row by row in SQL if many are needed, otherwise through the public API.

use std::time::Duration;

use domain::config::Ledger;
use domain::tool::Class;
use jiff::Timestamp;
use receipt::RiskLevel;
use rusqlite::{Connection, params};
use tempfile::TempDir;
use touch::targets::{Access, Target, Touches};

use crate::Store;
use crate::database::schema;
use crate::read::Reader;
use crate::record::{
    CallEnd, CallStart, Entry, Payload, ReceiptAction, RecordAgent, RecordKind, RecordStatus,
};

/// The values that filters examine.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) kind: RecordKind,
    pub(super) server: &'static str,
    pub(super) tool: &'static str,
    pub(super) status: RecordStatus,
    pub(super) intent: Option<&'static str>,
    pub(super) class: Option<Class>,
    pub(super) agent: (&'static str, &'static str),
    pub(super) session: Option<&'static str>,
    pub(super) request: Option<&'static str>,
    pub(super) target: Option<(&'static str, &'static str)>,
    pub(super) at_us: i64,
    pub(super) reason: Option<&'static str>,
    pub(super) error: Option<&'static str>,
}

impl Row {
    pub(super) fn plain() -> Row {
        Row {
            kind: RecordKind::ToolCall,
            server: "github",
            tool: "get_issue",
            status: RecordStatus::Success,
            intent: Some("read"),
            class: Some(Class::Read),
            agent: ("claude-code#1", "main"),
            session: Some("s1"),
            request: Some("1"),
            target: None,
            at_us: 1_000_000,
            reason: None,
            error: None,
        }
    }
}

pub(super) struct Rig {
    _folder: TempDir,
    pub(super) reader: Reader,
    /// Stays open, as the writer of a ledger does.
    pub(super) db: Connection,
}

impl Rig {
    pub(super) fn new(rows: &[Row]) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(crate::database::FILE);
        let mut db = Connection::open(&file).unwrap();
        db.pragma_update(None, "journal_mode", "wal").unwrap();
        schema::migrate(&mut db).unwrap();
        let transaction = db.transaction().unwrap();
        for (index, row) in rows.iter().enumerate() {
            insert(&transaction, index + 1, row);
        }
        transaction.commit().unwrap();
        let reader = Reader::live(&file);
        Rig { _folder: folder, reader, db }
    }
}

pub(super) fn insert(db: &Connection, number: usize, row: &Row) {
    let number = i64::try_from(number).unwrap();
    db.execute(
        "INSERT OR IGNORE INTO agents (name, client, token) VALUES (?1, 'client', ?2)",
        params![row.agent.0, row.agent.1],
    )
    .unwrap();
    if let Some((system, resource)) = row.target {
        db.execute(
            "INSERT OR IGNORE INTO targets (system, resource) VALUES (?1, ?2)",
            params![system, resource],
        )
        .unwrap();
    }
    let (system, resource) = row.target.unzip();
    db.execute(
        "INSERT INTO activity (number, id, changed, chain, type, source, surface, server, tool,
           agent, session_id, request_id, started_us, status, error_message, intent_type, reason,
           effective_class, target)
         VALUES (?1, 'id-' || ?1, ?1, 1, ?2, 'mcp', 'discovery', ?3, ?4,
           (SELECT agent FROM agents WHERE name = ?5 AND token = ?6), ?7, ?8, ?9, ?10, ?11, ?12,
           ?13, ?14, (SELECT target FROM targets WHERE system = ?15 AND resource = ?16))",
        params![
            number,
            row.kind.as_str(),
            row.server,
            row.tool,
            row.agent.0,
            row.agent.1,
            row.session,
            row.request,
            row.at_us,
            row.status.as_str(),
            row.error,
            row.intent,
            row.reason,
            row.class.map(Class::as_str),
            system,
            resource,
        ],
    )
    .unwrap();
    db.execute(
        "INSERT INTO touches (target, started_us, who, number)
         SELECT target, started_us,
           agent * 4 + iif(effective_class IS NULL, 2, effective_class <> 'read'),
           number
         FROM activity WHERE number = ?1 AND target IS NOT NULL",
        [number],
    )
    .unwrap();
}

/// Returns a call as the pipeline passes it.
pub(super) fn call(id: &str, agent: &str, class: Class, resource: &str, second: i64) -> CallStart {
    CallStart {
        id: id.to_owned(),
        kind: RecordKind::ToolCall,
        source: "mcp".into(),
        surface: "discovery".into(),
        server: "files".to_owned(),
        tool: "edit".to_owned(),
        agent: RecordAgent {
            name: agent.to_owned(),
            client: "claude-code".to_owned(),
            token: "main".to_owned(),
        },
        session: Some("s1".to_owned()),
        request_id: Some("7".to_owned()),
        at: Timestamp::from_second(1_700_000_000 + second).unwrap(),
        variant: Some("call_tool_write".into()),
        declared: Some(class.as_str().into()),
        sensitivity: Some("unknown".into()),
        reason: Some("tidy up".to_owned()),
        effective: Some(class),
        unverified: true,
        warnings: vec!["readOnlyHint".to_owned()],
        touches: Touches::reported(
            Target::new("files", resource.to_owned()),
            Access::of(Some(class)),
        ),
        trace_id: Some("4bf9".to_owned()),
        arguments: Payload {
            bytes: 9,
            kept: Some("{\"a\":\"b\"}".to_owned()),
            ..Payload::default()
        },
        action: ReceiptAction {
            kind: "data.api.write".into(),
            risk: RiskLevel::Medium,
            correlation_id: None,
        },
        outside: None,
    }
}

pub(super) fn end(id: &str, status: RecordStatus) -> CallEnd {
    CallEnd {
        id: id.to_owned(),
        status,
        error_code: None,
        error_message: None,
        duration: Duration::from_millis(12),
        response: Payload {
            bytes: 70_000,
            kept: Some("{\"cut".to_owned()),
            truncated: true,
            ..Payload::default()
        },
        warnings: Vec::new(),
        touches: Touches::default(),
    }
}

/// Makes a store with these calls, however old they are.
pub(super) async fn store(calls: Vec<(CallStart, RecordStatus)>) -> (TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let rules = Ledger { activity_retention_days: 36_500, ..Ledger::default() };
    let store = Store::open(home.path(), &rules).unwrap();
    for (call, status) in calls {
        let ended = end(&call.id, status);
        store.append(Entry::Whole(Box::new(call), Box::new(ended))).await.unwrap();
    }
    store.settled().await;
    (home, store)
}
