//! Tools that a person switched off.

use std::collections::{BTreeMap, BTreeSet};

use super::OperatorState;
use super::decision::{Decisions, KeptSwitch, Scope};
use crate::error::StoreError;

impl OperatorState {
    pub fn switched_off(&self, server: &str) -> Result<BTreeSet<String>, StoreError> {
        Ok(self.all_switched_off()?.remove(server).unwrap_or_default())
    }

    /// Returns the tools by server; a server without such tools is left out.
    pub fn all_switched_off(&self) -> Result<BTreeMap<String, BTreeSet<String>>, StoreError> {
        self.ask_decided(|db, signed| {
            let mut statement = db.prepare_cached("SELECT server, tool FROM switches")?;
            let mut rows = statement.query([])?;
            let mut off: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for KeptSwitch { server, tool } in signed.into_iter().flat_map(Decisions::switched_off)
            {
                off.entry(server.clone()).or_default().insert(tool.clone());
            }
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
        self.decide(Scope::switches(server), |db| {
            Ok(db.prepare_cached(words)?.execute([server, tool])? > 0)
        })
    }
}
