//! Keeps what was built for a few keys, the most recently used last. Few tokens and profiles are in
//! use at a time, and building takes milliseconds.

use std::sync::{Arc, Mutex, PoisonError};

/// Keys to keep.
const KEYS_MAX: usize = 8;

pub(super) struct Recent<K, V>(Mutex<Vec<(K, Arc<V>)>>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Recent(Mutex::default())
    }
}

impl<K, V> Recent<K, V> {
    /// Returns the value of a key that `is` recognises, or makes one.
    pub(super) fn get(&self, is: impl Fn(&K) -> bool, make: impl FnOnce() -> (K, V)) -> Arc<V> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match kept.iter().position(|(key, _)| is(key)) {
            Some(place) => kept.remove(place),
            None => {
                let (key, value) = make();
                (key, Arc::new(value))
            }
        };
        if kept.len() >= KEYS_MAX {
            kept.remove(0);
        }
        let value = found.1.clone();
        kept.push(found);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_key_is_dropped() {
        let recent: Recent<usize, usize> = Recent::default();
        let built = |key: usize| {
            let mut built = false;
            recent.get(
                |known| *known == key,
                || {
                    built = true;
                    (key, key)
                },
            );
            built
        };
        assert!((0..KEYS_MAX).all(built));
        assert!(!built(0), "kept, and now the most recent");
        assert!(built(KEYS_MAX));
        assert!(!built(0) && built(1));
    }
}
