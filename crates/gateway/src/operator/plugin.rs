//! Decisions about a project's plugins, which start only while their files are trusted.

use domain::Refusal;
use serde_json::{Value, json};

use crate::Gateway;
use crate::operator::decision::{DecisionSource, DecisionSubject};
use crate::spec::FileDigest;

impl Gateway {
    /// Trusts a plugin's files with their current content. The list seen from another plugin of the
    /// same name does not carry over.
    pub async fn approve_plugin(
        &self,
        by: &DecisionSource,
        name: &str,
        files: &[FileDigest],
    ) -> Result<(), Refusal> {
        let details = details("approve_plugin", files);
        self.record_decision(by, DecisionSubject::server(name), details).await?;
        let (name, files) = (name.to_owned(), files.to_vec());
        self.decide(move |state| {
            files.iter().try_for_each(|file| state.trust_file(&file.path, &file.sha256))?;
            state.begin_server_anew(&name)
        })
        .await
    }

    /// Withdraws trust in the plugin's files and reports whether any was trusted.
    pub async fn revoke_plugin(
        &self,
        by: &DecisionSource,
        name: &str,
        files: &[FileDigest],
    ) -> Result<bool, Refusal> {
        let details = details("revoke_plugin", files);
        self.record_decision(by, DecisionSubject::server(name), details).await?;
        let files = files.to_vec();
        self.decide(move |state| {
            let mut was_trusted = false;
            for file in &files {
                was_trusted |= state.forget_file(&file.path)?;
            }
            Ok(was_trusted)
        })
        .await
    }
}

fn details(decision: &str, files: &[FileDigest]) -> Value {
    let files = files.iter().map(|file| json!({"path": file.path, "sha256": file.sha256}));
    json!({"decision": decision, "files": files.collect::<Vec<_>>()})
}
