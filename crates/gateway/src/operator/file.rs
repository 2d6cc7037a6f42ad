//! Decisions about config files that lie in folders. Whoever watches the folder puts them into
//! effect.

use domain::Refusal;
use serde_json::json;

use crate::Gateway;
use crate::operator::decision::{DecisionSource, DecisionSubject};
use crate::operator::refusal::unavailable;

impl Gateway {
    /// Trusts a file as it is now; one that changes later is another one.
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

    /// Whether the file was trusted; nothing is recorded where it was not.
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
