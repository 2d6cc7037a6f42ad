//! Decisions about a project's plugins: they are started only while their files are trusted.

use domain::Refusal;
use serde_json::{Value, json};

use super::By;
use super::decision::About;
use crate::Gateway;

impl Gateway {
    /// Trusts the files of a plugin, each by path and SHA-256. What another one of that name was seen
    /// to list says nothing of this one.
    pub async fn approve_plugin(
        &self,
        by: &By,
        name: &str,
        files: &[(String, String)],
    ) -> Result<(), Refusal> {
        let details = details("approve_plugin", files);
        self.record_decision(by, About::server(name), details).await?;
        let (name, files) = (name.to_owned(), files.to_vec());
        self.decide(move |state| {
            files.iter().try_for_each(|(path, sha256)| state.trust_file(path, sha256))?;
            state.begin_server_anew(&name)
        })
        .await
    }

    /// Whether any of them was trusted.
    pub async fn revoke_plugin(
        &self,
        by: &By,
        name: &str,
        files: &[(String, String)],
    ) -> Result<bool, Refusal> {
        let details = details("revoke_plugin", files);
        self.record_decision(by, About::server(name), details).await?;
        let files = files.to_vec();
        self.decide(move |state| {
            let mut was_trusted = false;
            for (path, _) in &files {
                was_trusted |= state.forget_file(path)?;
            }
            Ok(was_trusted)
        })
        .await
    }
}

fn details(decision: &str, files: &[(String, String)]) -> Value {
    let files = files.iter().map(|(path, sha256)| json!({"path": path, "sha256": sha256}));
    json!({"decision": decision, "files": files.collect::<Vec<_>>()})
}
