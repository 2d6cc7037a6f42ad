//! Results too long for a model, kept in full for a while so that it can read the rest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::fairness::share;
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
        entries.trim_to_share(token);
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
        while let Some((key, since)) = self.oldest(|_| true) {
            let expired = now.duration_since(since) > limits::CACHE_AGE_MAX;
            let crowded = self.by_key.len() > limits::CACHE_ENTRIES_MAX
                || self.bytes > limits::CACHE_BYTES_MAX && self.by_key.len() > 1;
            if !expired && !crowded {
                return;
            }
            self.remove(&key);
        }
    }

    /// Drops the oldest entries of a token that has more than its share, so that it pushes out none
    /// of the others'.
    fn trim_to_share(&mut self, token: &Arc<str>) {
        let own = |entry: &Entry| entry.token == *token;
        loop {
            let sizes = self.by_key.values().filter(|entry| own(entry));
            let (count, bytes) =
                sizes.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.text.len()));
            let fits = count <= share(limits::CACHE_ENTRIES_MAX)
                && bytes <= share(limits::CACHE_BYTES_MAX);
            if fits || count <= 1 {
                return;
            }
            if let Some((key, _)) = self.oldest(own) {
                self.remove(&key);
            }
        }
    }

    fn remove(&mut self, key: &str) {
        if let Some(entry) = self.by_key.remove(key) {
            self.bytes -= entry.text.len();
        }
    }

    fn oldest(&self, fits: impl Fn(&Entry) -> bool) -> Option<(String, Instant)> {
        let fitting = self.by_key.iter().filter(|(_, entry)| fits(entry));
        let (key, entry) = fitting.min_by_key(|(_, entry)| entry.since)?;
        Some((key.clone(), entry.since))
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
    fn a_token_that_fills_its_share_pushes_out_its_own_oldest_entries() {
        let cache = ResultCache::default();
        let (greedy, other): (Arc<str>, Arc<str>) = ("greedy".into(), "other".into());
        let honest = cache.put(&other, "text".to_owned());
        let most = share(limits::CACHE_ENTRIES_MAX);
        let keys: Vec<String> = (0..=most).map(|n| cache.put(&greedy, n.to_string())).collect();
        assert_eq!(cache.get("greedy", &keys[0]), None);
        assert!(cache.get("greedy", &keys[1]).is_some());
        let half = || "x".repeat(share(limits::CACHE_BYTES_MAX) / 2);
        let large = [cache.put(&greedy, half()), cache.put(&greedy, half())];
        assert_eq!(cache.get("greedy", &keys[most]), None);
        let last = cache.put(&greedy, half());
        let kept: Vec<bool> =
            large.iter().chain([&last]).map(|key| cache.get("greedy", key).is_some()).collect();
        assert_eq!(kept, [false, true, true]);
        assert!(cache.get("other", &honest).is_some());
    }

    #[test]
    fn the_oldest_entries_of_all_are_evicted_when_the_cache_is_full() {
        let cache = ResultCache::default();
        let tokens: [Arc<str>; 3] = ["a".into(), "b".into(), "c".into()];
        let most = share(limits::CACHE_ENTRIES_MAX);
        let full = tokens[..2].iter().flat_map(|token| std::iter::repeat_n(token, most));
        let keys: Vec<String> = full.map(|token| cache.put(token, "text".to_owned())).collect();
        assert!(cache.get("a", &keys[0]).is_some());
        cache.put(&tokens[2], "text".to_owned());
        assert_eq!(cache.get("a", &keys[0]), None);
        assert!(cache.get("a", &keys[1]).is_some());
    }
}
