//! Tools that a person switched off.

use std::collections::{BTreeMap, BTreeSet};

use super::OperatorState;
use crate::error::StoreError;

impl OperatorState {
    pub fn switched_off(&self, server: &str) -> Result<BTreeSet<String>, StoreError> {
        self.ask(|db| {
            let mut statement = db.prepare_cached("SELECT tool FROM switches WHERE server = ?1")?;
            let tools = statement.query_map([server], |row| row.get(0))?;
            Ok(tools.collect::<Result<_, _>>()?)
        })
    }

    /// Returns the tools by server; a server without such tools is left out.
    pub fn all_switched_off(&self) -> Result<BTreeMap<String, BTreeSet<String>>, StoreError> {
        self.ask(|db| {
            let mut statement = db.prepare_cached("SELECT server, tool FROM switches")?;
            let mut rows = statement.query([])?;
            let mut off: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            while let Some(row) = rows.next()? {
                off.entry(row.get(0)?).or_default().insert(row.get(1)?);
            }
            Ok(off)
        })
    }

    /// Sets the switch; returns whether that changed anything.
    pub fn set_switch(&self, server: &str, tool: &str, off: bool) -> Result<bool, StoreError> {
        let words = if off {
            "INSERT INTO switches (server, tool) VALUES (?1, ?2) ON CONFLICT DO NOTHING"
        } else {
            "DELETE FROM switches WHERE server = ?1 AND tool = ?2"
        };
        self.decide(|db| Ok(db.prepare_cached(words)?.execute([server, tool])? > 0))
    }
}
