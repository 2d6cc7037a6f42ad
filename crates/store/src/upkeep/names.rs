//! Prunes names that no record refers to: agents and targets.

use rusqlite::{Connection, params};

use super::tally::{self, ExpiredData, ExpiredKind, ExpiryReason};
use crate::database::{settings, transaction};
use crate::error::StoreError;

/// The name of the setting that counts prunings. A cached number of a name must be forgotten when
/// this changes.
const SETTING: &str = "names_pruned";

/// The place up to which the names have been examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamesProgress {
    agents: Progress,
    targets: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    After(i64),
    Done,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::After(0)
    }
}

/// A table of names, with the column that numbers them there and in the table that refers to them.
struct Names {
    table: &'static str,
    number: &'static str,
    users: &'static str,
    kind: ExpiredKind,
}

const AGENTS: Names =
    Names { table: "agents", number: "agent", users: "activity", kind: ExpiredKind::Agents };
const TARGETS: Names =
    Names { table: "targets", number: "target", users: "touches", kind: ExpiredKind::Targets };

impl NamesProgress {
    /// Examines some names and prunes the unused ones; returns whether there are more to examine.
    pub(crate) fn prune(&mut self, db: &Connection, most: usize) -> Result<bool, StoreError> {
        if let Progress::After(after) = self.agents {
            self.agents = AGENTS.prune(db, after, most)?;
            return Ok(true);
        }
        if let Progress::After(after) = self.targets {
            self.targets = TARGETS.prune(db, after, most)?;
            return Ok(true);
        }
        Ok(false)
    }
}

impl Names {
    fn prune(&self, db: &Connection, after: i64, most: usize) -> Result<Progress, StoreError> {
        let Names { table, number, users, kind } = self;
        let list = format!(
            "SELECT {number}, EXISTS (SELECT 1 FROM {users} WHERE {number} = {table}.{number})
             FROM {table} WHERE {number} > ?1 ORDER BY {number} LIMIT ?2"
        );
        let delete = format!("DELETE FROM {table} WHERE {number} = ?1");
        transaction::whole(db, |db| {
            let mut examined = 0;
            let mut last = after;
            let mut unused = Vec::new();
            let mut statement = db.prepare_cached(&list)?;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let mut rows = statement.query(params![after, most])?;
            while let Some(row) = rows.next()? {
                (examined, last) = (examined + 1, row.get(0)?);
                if !row.get::<_, bool>(1)? {
                    unused.push(last);
                }
            }
            let mut delete = db.prepare_cached(&delete)?;
            for number in &unused {
                delete.execute([number])?;
            }
            if !unused.is_empty() {
                let count = unused.len() as u64;
                let reason = ExpiryReason::Unused;
                let (holder, bytes, span_us) = (None, 0, None);
                let unused = ExpiredData { kind: *kind, reason, holder, count, bytes, span_us };
                tally::add(db, std::iter::once(unused))?;
                settings::set(db, SETTING, &(prunings(db)? + 1).to_string())?;
            }
            Ok(if examined < most { Progress::Done } else { Progress::After(last) })
        })
    }
}

/// Returns the number of prunings so far, by any process.
pub(crate) fn prunings(db: &Connection) -> Result<u64, StoreError> {
    Ok(settings::get(db, SETTING)?.and_then(|text| text.parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{self, Keys};

    #[test]
    fn only_names_without_a_record_are_pruned() {
        let home = tempfile::tempdir().unwrap();
        let mut db = Connection::open(home.path().join(crate::FILE)).unwrap();
        crate::database::schema::migrate(&mut db).unwrap();
        let folder = home.path().join(keys::FOLDER);
        Keys::open(&folder, &db).unwrap();
        db.execute_batch(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10)
             INSERT INTO agents (agent, name, client, token) SELECT i, i, '', '' FROM n;
             INSERT INTO targets (target, system, resource) VALUES (1, 'fs', '/a'), (2, 'fs', '/b');
             INSERT INTO activity (number, id, changed, chain, type, source, surface, server, tool,
                 agent, target, started_us, status)
               VALUES (1, '1', 1, 1, 'tool_call', '', '', '', '', 7, 2, 1, 'success');
             INSERT INTO touches (target, started_us, who, number) VALUES (2, 1, 29, 1);",
        )
        .unwrap();
        let mut progress = NamesProgress::default();
        while progress.prune(&db, 4).unwrap() {}
        let left = |sql: &str| -> i64 { db.query_row(sql, [], |row| row.get(0)).unwrap() };
        assert_eq!(left("SELECT agent FROM agents"), 7);
        assert_eq!(left("SELECT target FROM targets"), 2);
        let unstated = tally::unstated(&db, &keys::all_public(&folder)).unwrap();
        let counts: Vec<_> = unstated.iter().map(|one| (one.kind, one.count)).collect();
        assert_eq!(counts, [(ExpiredKind::Agents, 9), (ExpiredKind::Targets, 1)]);
        assert_eq!(prunings(&db).unwrap(), 4, "three steps pruned agents and one a target");
    }
}
