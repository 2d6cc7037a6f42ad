//! Decisions about config files found in folders. Whatever watches the folder puts them into
//! effect.

use domain::Refusal;
use serde_json::json;

use crate::Gateway;
use crate::operator::decision::{DecisionSource, DecisionSubject};
use crate::operator::refusal::unavailable;

impl Gateway {
    /// Trusts a file's current content; a changed file must be trusted anew.
    pub async fn trust_file(
        &self,
        by: &DecisionSource,
        path: &str,
        sha256: &str,
    ) -> Result<(), Refusal> {
        let details = json!({"decision": "trust_file", "path": path, "sha256": sha256});
        self.record_decision(by, DecisionSubject::file(), details).await?;
        let (path, sha256) = (path.to_owned(), sha256.to_owned());
        self.decide(move |state| state.trust_file(&path, &sha256)).await
    }

    /// Withdraws trust in a file and reports whether it was trusted; if it was not, nothing is
    /// recorded.
    pub async fn forget_file(&self, by: &DecisionSource, path: &str) -> Result<bool, Refusal> {
        let asked = path.to_owned();
        let trusted = self.with_store(move |store| store.state().trusted_file(&asked)).await;
        let Some(sha256) = trusted.map_err(|error| unavailable(&error))? else {
            return Ok(false);
        };
        let details = json!({"decision": "forget_file", "path": path, "sha256": sha256});
        self.record_decision(by, DecisionSubject::file(), details).await?;
        let path = path.to_owned();
        self.decide(move |state| state.forget_file(&path)).await
    }
}
