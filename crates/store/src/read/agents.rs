//! The agents that made calls, with the time of the last one.

use jiff::Timestamp;

use super::reader::Reader;
use crate::error::StoreError;

/// Agents that are listed, most recent first.
const AGENTS_MAX: usize = 200;

/// An agent as the ledger knows it: its name, the client's own words, and its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenAgent {
    pub name: String,
    pub client: String,
    pub token: String,
    pub last_call: Timestamp,
}

impl Reader {
    /// Reports whether a client of the gate is the agent of this name, or has this session. What
    /// events from outside name does not count.
    pub fn is_name_of_gate(&self, name: &str) -> Result<bool, StoreError> {
        self.pool.ask(|db| {
            let mut statement = db.prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM activity
                   WHERE session_id = ?1 AND surface <> 'events')
                 OR EXISTS (SELECT 1 FROM agents WHERE name = ?1 AND token <> 'events')",
            )?;
            Ok(statement.query_row([name], |row| row.get(0))?)
        })
    }

    /// Lists the agents whose calls are kept.
    pub fn seen_agents(&self) -> Result<Vec<SeenAgent>, StoreError> {
        self.pool.ask_in_passing(|db| {
            let mut statement = db.prepare_cached(
                "SELECT name, client, token, last_us FROM (
                   SELECT name, client, token,
                     (SELECT started_us FROM activity WHERE activity.agent = agents.agent
                      ORDER BY number DESC LIMIT 1) AS last_us
                   FROM agents)
                 WHERE last_us IS NOT NULL ORDER BY last_us DESC LIMIT ?1",
            )?;
            let rows = statement.query_map([AGENTS_MAX], |row| {
                let last_us: i64 = row.get(3)?;
                Ok(SeenAgent {
                    name: row.get(0)?,
                    client: row.get(1)?,
                    token: row.get(2)?,
                    last_call: Timestamp::from_microsecond(last_us).unwrap_or_default(),
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}
