//! The sessions of a listener by their ids, and how many each holder has.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::session::HttpSession;

/// The time between two searches for idle sessions, each of which looks at all.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct OpenSessions {
    by_id: HashMap<String, Arc<HttpSession>>,
    held: HashMap<String, usize>,
    swept_at: Option<Instant>,
}

impl OpenSessions {
    pub(super) fn get(&self, id: &str) -> Option<Arc<HttpSession>> {
        self.by_id.get(id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<HttpSession>> {
        self.by_id.values().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the number of sessions that a holder has.
    pub(super) fn held_by(&self, holder: &str) -> usize {
        self.held.get(holder).copied().unwrap_or_default()
    }

    pub(super) fn insert(&mut self, id: String, session: Arc<HttpSession>) {
        *self.held.entry(session.holder().to_owned()).or_default() += 1;
        self.by_id.insert(id, session);
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<HttpSession>> {
        let session = self.by_id.remove(id)?;
        if let Some(held) = self.held.get_mut(session.holder()) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(session.holder());
            }
        }
        Some(session)
    }

    pub(super) fn remove_all(&mut self) -> Vec<Arc<HttpSession>> {
        self.held.clear();
        self.by_id.drain().map(|(_, session)| session).collect()
    }

    /// Removes the idle sessions, unless that was done just now.
    pub(super) fn sweep(&mut self, now: Instant) -> Vec<Arc<HttpSession>> {
        if self.swept_at.is_some_and(|before| now.duration_since(before) < SWEEP_EVERY) {
            return Vec::new();
        }
        self.swept_at = Some(now);
        let is_idle = |(_, session): &(&String, &Arc<HttpSession>)| session.is_idle(now);
        let idle: Vec<String> =
            self.by_id.iter().filter(is_idle).map(|(id, _)| id.clone()).collect();
        idle.iter().filter_map(|id| self.remove(id)).collect()
    }
}
