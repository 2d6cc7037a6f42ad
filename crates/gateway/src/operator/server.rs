//! Decisions about servers: added, removed, switched, inspected, approved, quarantined.

use std::sync::Arc;

use domain::catalog::Server;
use domain::config::{self, DividedServer, ServerConfig, ServerOrigin, Transport};
use domain::upstream::UpstreamState;
use domain::{Caller, Code, Refusal};
use serde_json::{Value, json};
use store::state::ApprovedServer;

use crate::Gateway;
use crate::command::ProgramFile;
use crate::front::discovery;
use crate::operator::decision::{DecisionSource, DecisionSubject};
use crate::operator::refusal::{changed, conflict, unavailable};
use crate::operator::review::ServerReview;
use crate::operator::tool::{ApprovedItem, ReviewedItem};
use crate::plan::parse_added;
use crate::spec::{ServerSpec, Trust};

impl Gateway {
    /// Adds an unapproved server: it is shown but not started.
    pub async fn add_server(
        &self,
        by: &DecisionSource,
        name: &str,
        entry: &Value,
    ) -> Result<(), Refusal> {
        if let Some(fault) = config::name_fault(name) {
            let message = format!("'{name}' is not a valid server name: {fault}");
            return Err(Refusal::new(Code::InvalidRequest, message).with(json!({"field": "name"})));
        }
        if !entry.is_object() {
            return Err(Refusal::new(
                Code::InvalidRequest,
                "a server must be an object, as in the config",
            ));
        }
        let server = parse_added(name, entry).map_err(|faults| {
            let message = format!("the server is not valid:\n{faults}");
            Refusal::new(Code::InvalidRequest, message)
        })?;
        if self.catalog().server(name).is_some() {
            return Err(conflict(format!("server '{name}' already exists")));
        }
        self.record_decision(by, DecisionSubject::server(name), added(entry, &server)).await?;
        let owned = name.to_owned();
        let DividedServer { open, secrets } = config::divide(entry);
        self.decide(move |state| {
            state.keep_secrets(&owned, &secrets)?;
            state.add_server(&owned, &open.to_string())
        })
        .await
    }

    /// Removes a server that was added at run time, all decisions about it, and what it granted.
    pub async fn remove_server(&self, by: &DecisionSource, name: &str) -> Result<(), Refusal> {
        self.known_server(name)?;
        match self.origin(name) {
            Some(ServerOrigin::Added) => {}
            Some(ServerOrigin::Own | ServerOrigin::Found) | None => {
                return Err(conflict(format!(
                    "server '{name}' is defined in a config file: remove it there, or disable it \
                     with `countersign upstream disable {name}`"
                )));
            }
        }
        self.record_decision(by, DecisionSubject::server(name), json!({"decision": "remove"}))
            .await?;
        let removed = self.shared.registry.upstream(name);
        let name = name.to_owned();
        self.decide(move |state| {
            state.remove_server(&name)?;
            state.keep_secrets(&name, &[])
        })
        .await?;
        if let Some(sign_ins) = removed.as_ref().and_then(|upstream| upstream.sign_ins())
            && let Err(reason) = sign_ins.forget_stored().await
        {
            tracing::warn!("cannot remove what a removed server granted: {reason}");
        }
        Ok(())
    }

    pub async fn enable_server(&self, by: &DecisionSource, name: &str) -> Result<(), Refusal> {
        self.known_server(name)?;
        if self.is_disabled_by_config(name).await {
            return Err(conflict(format!(
                "server '{name}' is disabled in the config: only the operator can change that, \
                 by editing the config"
            )));
        }
        self.switch_server(by, name, "enable", false).await
    }

    pub async fn disable_server(&self, by: &DecisionSource, name: &str) -> Result<(), Refusal> {
        self.known_server(name)?;
        self.switch_server(by, name, "disable", true).await
    }

    async fn switch_server(
        &self,
        by: &DecisionSource,
        name: &str,
        decision: &str,
        off: bool,
    ) -> Result<(), Refusal> {
        self.record_decision(by, DecisionSubject::server(name), json!({"decision": decision}))
            .await?;
        let name = name.to_owned();
        self.decide(move |state| state.set_server_disabled(&name, off)).await
    }

    pub async fn quarantine_server(&self, by: &DecisionSource, name: &str) -> Result<(), Refusal> {
        self.known_server(name)?;
        self.record_decision(by, DecisionSubject::server(name), json!({"decision": "quarantine"}))
            .await?;
        let name = name.to_owned();
        self.decide(move |state| state.quarantine_server(&name)).await
    }

    /// Starts a server that otherwise may not start, so that a person can see its list. Nothing of
    /// it becomes callable.
    pub async fn inspect_server(&self, by: &DecisionSource, name: &str) -> Result<(), Refusal> {
        let server = self.known_server(name)?;
        if server.rules.disabled {
            let message = format!("server '{name}' is disabled: enable it first");
            return Err(conflict(message));
        }
        // A connected server already keeps its list up to date.
        let is_held = server.rules.quarantined && server.state != UpstreamState::Ready;
        let upstream = self.shared.registry.upstream(name);
        let Some(upstream) = upstream.filter(|_| is_held) else {
            return Ok(());
        };
        self.record_decision(by, DecisionSubject::server(name), json!({"decision": "inspect"}))
            .await?;
        let within = self.settings().connect_timeout;
        let _ = tokio::time::timeout(within, upstream.inspect()).await;
        Ok(())
    }

    /// Returns a server as its reviewer is to see it.
    pub async fn review_server(&self, name: &str) -> Result<ServerReview, Refusal> {
        let server = self.known_server(name)?;
        let spec = self.server_spec(name);
        let command = spec.as_ref().and_then(ServerSpec::command).cloned();
        let trust = spec.map_or_else(|| Trust::own(String::new()), |spec| spec.trust);
        let owned = name.to_owned();
        let read = self.with_store(move |store| {
            let program = command.as_ref().and_then(ProgramFile::of);
            let has_listed = !store.state().items(&owned)?.is_empty();
            Ok((program, has_listed, store.state().server(&owned)?.unwrap_or_default()))
        });
        let (program, has_listed, state) = read.await.map_err(|error| unavailable(&error))?;
        Ok(ServerReview {
            is_quarantined: server.rules.quarantined,
            trust,
            program,
            has_listed,
            state,
        })
    }

    /// Approves a server if it is still as reviewed, with the reviewed ones of its pending items;
    /// returns those items.
    pub async fn approve_server(
        &self,
        by: &DecisionSource,
        name: &str,
        fingerprint: &str,
        reviewed: &[ReviewedItem],
    ) -> Result<Vec<ApprovedItem>, Refusal> {
        if !self.known_server(name)?.rules.quarantined {
            return Err(conflict(format!(
                "server '{name}' is not waiting for approval; to approve its pending items, run \
                 `countersign tools approve --server {name} --all`"
            )));
        }
        let review = self.review_server(name).await?;
        if review.fingerprint() != fingerprint {
            return Err(changed(&format!("server '{name}'")));
        }
        // The items are approved first: once the server leaves quarantine, nothing approved with it
        // may still appear as pending.
        let approved = match reviewed {
            [] => Vec::new(),
            items => self.approve_items(by, name, items).await?,
        };
        let details = json!({
            "decision": "approve", "identity": review.trust.identity, "fingerprint": fingerprint,
            "program": review.program.as_ref().map(ToString::to_string),
        });
        self.record_decision(by, DecisionSubject::server(name), details).await?;
        let owned = name.to_owned();
        let decided = self.decide(move |state| {
            // A list that was already seen is the baseline; otherwise the first list becomes it.
            state.record_items(&owned, &[], review.has_listed)?;
            let ServerReview { trust, program, .. } = &review;
            trust.files.iter().try_for_each(|file| state.trust_file(&file.path, &file.sha256))?;
            let text = review.text().stored();
            let program = program.as_ref().map(|program| trust.kept_program(program));
            let (identity, program) = (&*trust.identity, program.as_deref());
            state.approve_server(&owned, ApprovedServer { identity, text: &text, program })
        });
        decided.await?;
        Ok(approved)
    }

    /// Returns how a server is reached and who added it. Its rules are in the catalog.
    pub fn server_spec(&self, name: &str) -> Option<ServerSpec> {
        Some(self.shared.registry.upstream(name)?.spec().clone())
    }

    fn origin(&self, name: &str) -> Option<ServerOrigin> {
        Some(self.shared.registry.upstream(name)?.spec().trust.origin)
    }

    async fn is_disabled_by_config(&self, name: &str) -> bool {
        let plan = self.shared.plan.lock().await;
        plan.configured.iter().any(|spec| *spec.name == *name && spec.rules.disabled)
    }

    /// Finds an existing server by name.
    pub(super) fn known_server(&self, name: &str) -> Result<Arc<Server>, Refusal> {
        match self.catalog().server(name) {
            Some(server) => Ok(server.clone()),
            None => Err(discovery::no_such_server(&self.catalog(), &Caller::admin(), name)),
        }
    }
}

/// Describes an added server for its record. Values of variables and headers may be secret, so only
/// their names are recorded.
fn added(entry: &Value, server: &ServerConfig) -> Value {
    let names = |member: &str| {
        let members = entry[member].as_object();
        members.map(|members| members.keys().cloned().collect::<Vec<_>>())
    };
    let (args, url) = match &server.transport {
        Transport::Stdio(program) => (Some(config::shown_args(&program.args)), None),
        Transport::Remote(remote) => (None, Some(config::shown_url(remote.url.text()))),
    };
    json!({
        "decision": "add", "command": entry["command"], "args": args, "url": url,
        "env": names("env"), "headers": names("headers"),
    })
}
