//! Results too long for a model, kept in full for a while so that it can read the rest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::limits;

#[derive(Default)]
pub(crate) struct ResultCache {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<String, Entry>,
    bytes: usize,
}

struct Entry {
    /// Only the caller that got the truncated result may read the rest.
    token: Arc<str>,
    text: Arc<str>,
    since: Instant,
}

impl ResultCache {
    pub(crate) fn put(&self, token: &Arc<str>, text: String) -> String {
        let key = uuid::Uuid::new_v7(uuid::Timestamp::now(uuid::NoContext)).simple().to_string();
        let entry = Entry { token: token.clone(), text: text.into(), since: Instant::now() };
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.bytes += entry.text.len();
        entries.by_key.insert(key.clone(), entry);
        entries.trim(Instant::now());
        key
    }

    pub(crate) fn get(&self, token: &str, key: &str) -> Option<Arc<str>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.trim(Instant::now());
        let entry = entries.by_key.get(key).filter(|entry| &*entry.token == token)?;
        Some(entry.text.clone())
    }
}

impl Entries {
    fn trim(&mut self, now: Instant) {
        while let Some((key, since)) = self.oldest() {
            let expired = now.duration_since(since) > limits::CACHE_AGE_MAX;
            let crowded = self.by_key.len() > limits::CACHE_ENTRIES_MAX
                || self.bytes > limits::CACHE_BYTES_MAX && self.by_key.len() > 1;
            if !expired && !crowded {
                return;
            }
            if let Some(entry) = self.by_key.remove(&key) {
                self.bytes -= entry.text.len();
            }
        }
    }

    fn oldest(&self) -> Option<(String, Instant)> {
        let oldest = self.by_key.iter().min_by_key(|(_, entry)| entry.since)?;
        Some((oldest.0.clone(), oldest.1.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn entries_belong_to_their_caller_and_age() {
        let cache = ResultCache::default();
        let key = cache.put(&"a".into(), "text".to_owned());
        assert_eq!(cache.get("a", &key).as_deref(), Some("text"));
        assert_eq!(cache.get("b", &key), None);
        tokio::time::advance(limits::CACHE_AGE_MAX * 2).await;
        assert_eq!(cache.get("a", &key), None);
    }

    #[test]
    fn the_oldest_entries_are_evicted_when_the_cache_is_full() {
        let cache = ResultCache::default();
        let token: Arc<str> = "a".into();
        let keys: Vec<String> =
            (0..=limits::CACHE_ENTRIES_MAX).map(|n| cache.put(&token, n.to_string())).collect();
        assert_eq!(cache.get("a", &keys[0]), None);
        assert!(cache.get("a", &keys[1]).is_some());
        let big = "x".repeat(limits::CACHE_BYTES_MAX);
        let key = cache.put(&token, big);
        assert!(cache.get("a", &key).is_some());
        assert_eq!(cache.get("a", &keys[5]), None);
    }
}
