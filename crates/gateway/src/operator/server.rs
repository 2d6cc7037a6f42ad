//! Decisions about servers: added, removed, switched, inspected, approved, quarantined.

use std::sync::Arc;

use domain::catalog::Server;
use domain::config::{self, ServerOrigin};
use domain::upstream::UpstreamState;
use domain::{Caller, Code, Refusal};
use serde_json::{Value, json};

use crate::Gateway;
use crate::front::discovery;
use crate::operator::decision::{DecisionSource, DecisionSubject};
use crate::operator::refusal::conflict;
use crate::operator::tool::ApprovedItem;
use crate::plan::parse_added;
use crate::spec::ServerSpec;

impl Gateway {
    /// Adds a server that nobody has approved: it is shown but not started.
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
        let definition = entry.to_string();
        if !entry.is_object() {
            return Err(Refusal::new(
                Code::InvalidRequest,
                "a server must be an object, as in the config",
            ));
        }
        parse_added(name, &definition).map_err(|faults| {
            let message = format!("the server is not valid:\n{faults}");
            Refusal::new(Code::InvalidRequest, message)
        })?;
        if self.catalog().server(name).is_some() {
            return Err(conflict(format!("server '{name}' already exists")));
        }
        // Values of variables and headers may be secret, so only their names are recorded.
        let names = |member: &str| {
            let members = entry[member].as_object();
            members.map(|members| members.keys().cloned().collect::<Vec<_>>())
        };
        let details = json!({
            "decision": "add", "command": entry["command"], "args": entry["args"],
            "url": entry["url"], "env": names("env"), "headers": names("headers"),
        });
        self.record_decision(by, DecisionSubject::server(name), details).await?;
        let owned = name.to_owned();
        self.decide(move |state| state.add_server(&owned, &definition)).await
    }

    /// Removes a server that was added at run time, and all decisions about it.
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
        let name = name.to_owned();
        self.decide(move |state| state.remove_server(&name).map(|_| ())).await
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

    /// Approves a server as it is now, with everything it has listed so far; returns those items.
    pub async fn approve_server(
        &self,
        by: &DecisionSource,
        name: &str,
    ) -> Result<Vec<ApprovedItem>, Refusal> {
        if !self.known_server(name)?.rules.quarantined {
            return Err(conflict(format!(
                "server '{name}' is not waiting for approval; to approve its pending items, run \
                 `countersign tools approve --server {name} --all`"
            )));
        }
        let upstream = self.shared.registry.upstream(name);
        let trust = upstream.map(|upstream| upstream.spec().trust.clone());
        let (identity, files) =
            trust.map(|trust| (trust.identity, trust.files)).unwrap_or_default();
        let details = json!({"decision": "approve", "identity": identity});
        self.record_decision(by, DecisionSubject::server(name), details).await?;
        // The items are approved first: once the server leaves quarantine, nothing approved with it
        // may still appear as pending.
        let owned = name.to_owned();
        let approved = self.decide(move |state| {
            let items = state.items(&owned)?;
            let pending = items.iter().filter_map(|item| {
                let fingerprint = item.pending.as_ref()?.fingerprint.clone();
                Some(ApprovedItem { kind: item.kind.clone(), name: item.name.clone(), fingerprint })
            });
            let pending: Vec<ApprovedItem> = pending.collect();
            let versions = pending.iter().map(ApprovedItem::version);
            state.approve_items(&owned, &versions.collect::<Vec<_>>())?;
            // A list that was already seen is the baseline; otherwise the first list becomes it.
            state.record_items(&owned, &[], !items.is_empty())?;
            Ok(pending)
        });
        let approved = approved.await?;
        let owned = name.to_owned();
        let decided = self.decide(move |state| {
            files.iter().try_for_each(|file| state.trust_file(&file.path, &file.sha256))?;
            state.approve_server(&owned, &identity)
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
