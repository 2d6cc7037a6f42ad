//! The prompts of all servers in discovery mode, as `server__prompt`: people choose them in their
//! client, so that they need no tool.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use domain::{Caller, Catalog};
use mcp::message::{Raw, raw};
use mcp::object::ObjectMembers;
use mcp::peer::Peer;
use mcp::task;
use serde_json::value::RawValue;
use suspect::UNSEEN;

use crate::front::session::Session;

pub(super) const GET: &str = "prompts/get";

const CHANGED: &str = "notifications/prompts/list_changed";

/// Returns the response to `prompts/list`: the definitions without unapproved members.
pub(super) fn list(catalog: &Catalog, caller: &Caller) -> Raw {
    let offers = catalog.offers(caller);
    let shown = || {
        let prompts = ObjectMembers::parse(&offers.prompts).ok()?;
        let prompts: Vec<&RawValue> = serde_json::from_str(prompts.get("prompts")?).ok()?;
        let prompts: Vec<String> = prompts.into_iter().map(reviewed).collect();
        Some(raw(format!(r#"{{"prompts":[{}]}}"#, prompts.join(","))))
    };
    shown().unwrap_or_else(|| raw(r#"{"prompts":[]}"#.to_owned()))
}

fn reviewed(definition: &RawValue) -> String {
    let mut members = ObjectMembers::parse(definition).unwrap_or_default();
    for member in UNSEEN {
        members.remove(member);
    }
    members.write_text()
}

/// The list of prompts that a client was shown last.
#[derive(Default)]
pub(super) struct ShownPrompts(Mutex<u64>);

impl ShownPrompts {
    /// Takes a list as shown; reports whether it differs from the last one.
    pub(super) fn set(&self, list: &Raw) -> bool {
        let mut hasher = DefaultHasher::new();
        list.get().hash(&mut hasher);
        let hash = hasher.finish();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *last, hash) != hash
    }
}

/// Notifies the client when its list of prompts changes.
pub(super) fn watch(session: &Arc<Session>, shown: &Arc<ShownPrompts>, peer: Peer) {
    let (session, shown) = (Arc::downgrade(session), shown.clone());
    task::spawn(async move {
        let Some(mut changes) = session.upgrade().map(|session| session.gateway.changes()) else {
            return;
        };
        loop {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                // The peer keeps the session alive, so its reference must be dropped once it closes.
                _ = peer.closed() => return,
            }
            let Some(session) = session.upgrade() else { return };
            let list = list(&session.catalog(), &session.caller());
            drop(session);
            if shown.set(&list) && peer.notify(CHANGED, None).await.is_err() {
                return;
            }
        }
    });
}
