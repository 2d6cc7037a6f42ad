//! Decisions about the items servers list: approved as reviewed, switched on and off.

use std::sync::Arc;

use domain::catalog::Server;
use domain::policy::LockStatus;
use domain::tool::ToolName;
use domain::trust::ItemKind;
use domain::{Caller, Code, Refusal};
use serde_json::json;
use store::state::{ApprovalResult, ItemVersion, ServerItem};
use text::near;

use crate::Gateway;
use crate::operator::decision::{DecisionSource, DecisionSubject};
use crate::operator::refusal::{changed, conflict, unavailable};
use crate::trust::stored_items;

/// An item that a person has reviewed and approves.
#[derive(Clone, Debug)]
pub struct ReviewedItem {
    pub kind: ItemKind,
    pub name: String,
    /// The fingerprint of the reviewed text.
    pub fingerprint: String,
}

/// An item with the fingerprint of the approved text.
#[derive(Clone, Debug)]
pub struct ApprovedItem {
    pub kind: String,
    pub name: String,
    pub fingerprint: String,
}

impl ApprovedItem {
    pub(super) fn version(&self) -> ItemVersion<'_> {
        ItemVersion { kind: &self.kind, name: &self.name, fingerprint: &self.fingerprint }
    }
}

impl Gateway {
    /// Returns all known items of a server, approved or pending.
    pub async fn items(&self, server: &str) -> Result<Vec<ServerItem>, Refusal> {
        let server = server.to_owned();
        let items = self.with_store(move |store| stored_items(store, &server)).await;
        items.map_err(|error| unavailable(&error))
    }

    /// Approves pending items of a server, all or none; returns the approved texts.
    pub async fn approve_items(
        &self,
        by: &DecisionSource,
        server: &str,
        reviewed: &[ReviewedItem],
    ) -> Result<Vec<ApprovedItem>, Refusal> {
        self.known_server(server)?;
        let items = self.items(server).await?;
        let mut approved = Vec::with_capacity(reviewed.len());
        for ReviewedItem { kind, name, fingerprint } in reviewed {
            let known = items.iter().find(|i| i.kind == kind.as_str() && i.name == *name);
            let Some(item) = known else {
                return Err(no_such_item(server, *kind, name, &items));
            };
            let Some(pending) = &item.pending else {
                return Err(conflict(format!(
                    "{} is not waiting for approval",
                    word(server, item)
                )));
            };
            if *fingerprint != pending.fingerprint {
                return Err(changed(&word(server, item)));
            }
            approved.push(ApprovedItem {
                kind: item.kind.clone(),
                name: item.name.clone(),
                fingerprint: pending.fingerprint.clone(),
            });
        }
        for ApprovedItem { kind, name, fingerprint } in &approved {
            let details = json!({"decision": "approve", "kind": kind, "fingerprint": fingerprint});
            self.record_decision(by, DecisionSubject::tool(server, name), details).await?;
        }
        let (owned, kept) = (server.to_owned(), approved.clone());
        let answers = self
            .decide(move |state| {
                let items = kept.iter().map(ApprovedItem::version);
                state.approve_items(&owned, &items.collect::<Vec<_>>())
            })
            .await?;
        match answers.iter().position(|answer| matches!(answer, ApprovalResult::Changed)) {
            Some(place) => Err(changed(&format!("'{server}:{}'", reviewed[place].name))),
            None if answers.iter().all(|answer| *answer == ApprovalResult::Approved) => {
                Ok(approved)
            }
            None => Err(conflict("someone else has approved some of these items: list them again")),
        }
    }

    pub async fn enable_tool(&self, by: &DecisionSource, tool: &ToolName) -> Result<(), Refusal> {
        let server = self.known_tool(tool)?;
        // A lock on the whole server takes precedence, and this does not lift it.
        if !server.rules.tools.allow(&tool.tool) {
            return Err(conflict(format!(
                "tool '{tool}' is locked by the operator's config, which takes precedence: \
                 only the operator can change that, by editing the config"
            ))
            .with(json!({"status": LockStatus::DisabledByConfig.as_str()})));
        }
        self.switch_tool(by, tool, "enable", false).await
    }

    pub async fn disable_tool(&self, by: &DecisionSource, tool: &ToolName) -> Result<(), Refusal> {
        self.known_tool(tool)?;
        self.switch_tool(by, tool, "disable", true).await
    }

    async fn switch_tool(
        &self,
        by: &DecisionSource,
        tool: &ToolName,
        decision: &str,
        off: bool,
    ) -> Result<(), Refusal> {
        let about = DecisionSubject::tool(&tool.server, &tool.tool);
        self.record_decision(by, about, json!({"decision": decision})).await?;
        let ToolName { server, tool } = tool.clone();
        self.decide(move |state| state.set_switch(&server, &tool, off).map(|_| ())).await
    }

    /// Finds the server of a tool that is listed, or that was listed when it was switched off.
    fn known_tool(&self, name: &ToolName) -> Result<Arc<Server>, Refusal> {
        let server = self.known_server(&name.server)?;
        let is_switched = server.rules.switched_off.contains(&name.tool);
        if is_switched || server.listing.tool(&name.tool).is_some() {
            return Ok(server);
        }
        let near = self.catalog().near(&Caller::admin(), name);
        let message = format!("tool '{name}' not found{}", near::hint(&near));
        Err(Refusal::new(Code::NotFound, message).with(json!({"near": near})))
    }
}

fn word(server: &str, item: &ServerItem) -> String {
    match ItemKind::parse(&item.kind) {
        Some(ItemKind::Instructions) => format!("the instructions text of '{server}'"),
        Some(ItemKind::Tool | ItemKind::Prompt | ItemKind::Template) | None => {
            format!("{} '{server}:{}'", item.kind, item.name)
        }
    }
}

fn no_such_item(server: &str, kind: ItemKind, name: &str, items: &[ServerItem]) -> Refusal {
    let names = items.iter().filter(|item| item.kind == kind.as_str()).map(|item| &*item.name);
    let near: Vec<String> = near::names(name, names, 3).into_iter().map(str::to_owned).collect();
    let (kind, hint) = (kind.as_str(), near::hint(&near));
    Refusal::new(Code::NotFound, format!("{kind} '{server}:{name}' not found{hint}"))
        .with(json!({"near": near}))
}
