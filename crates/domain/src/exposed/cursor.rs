//! The cursor of a list that several servers share: a place in it, bound by a keyed hash to those
//! who got it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// A place in the list: a server, and the number of its items that came before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPosition {
    pub server: String,
    pub index: usize,
}

const TAG_BYTES: usize = 16;
const INDEX_BYTES: usize = 4;

/// Longer cursors are not ours.
const CURSOR_CHARS_MAX: usize = 1024;

impl ListPosition {
    /// Returns the cursor for this place; `view` says whose it is.
    pub fn cursor(&self, key: &[u8; 32], view: &str) -> String {
        let index = u32::try_from(self.index).unwrap_or(u32::MAX);
        let mut bytes = index.to_be_bytes().to_vec();
        bytes.extend_from_slice(self.server.as_bytes());
        let tag = tag(key, view, &bytes);
        bytes.splice(0..0, tag);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a cursor; `None` if we did not give it to this view.
    pub fn of_cursor(cursor: &str, key: &[u8; 32], view: &str) -> Option<ListPosition> {
        if cursor.len() > CURSOR_CHARS_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (given, place) = bytes.split_at_checked(TAG_BYTES)?;
        if tag(key, view, place) != given {
            return None;
        }
        let (index, server) = place.split_at_checked(INDEX_BYTES)?;
        let index = u32::from_be_bytes(index.try_into().ok()?) as usize;
        Some(ListPosition { server: String::from_utf8(server.to_vec()).ok()?, index })
    }
}

fn tag(key: &[u8; 32], view: &str, place: &[u8]) -> [u8; TAG_BYTES] {
    let inner = Sha256::new()
        .chain_update(key)
        .chain_update(b"list cursor")
        .chain_update((view.len() as u64).to_be_bytes())
        .chain_update(view)
        .chain_update(place)
        .finalize();
    // The second round keeps a longer text from being hashed on.
    let outer = Sha256::new().chain_update(key).chain_update(inner).finalize();
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(&outer[..TAG_BYTES]);
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_by_the_view_that_got_it_and_by_nobody_else() {
        let (key, other) = ([1; 32], [2; 32]);
        let place = ListPosition { server: "my server".to_owned(), index: 70_000 };
        let cursor = place.cursor(&key, "me");
        let read = |cursor: &str, key, view| ListPosition::of_cursor(cursor, key, view);
        assert_eq!(read(&cursor, &key, "me"), Some(place));
        assert_eq!(read(&cursor, &key, "you"), None);
        assert_eq!(read(&cursor, &other, "me"), None);
        for at in 0..cursor.len() {
            let mut tampered = cursor.clone().into_bytes();
            tampered[at] = if tampered[at] == b'A' { b'B' } else { b'A' };
            let tampered = String::from_utf8(tampered).unwrap();
            assert_eq!(read(&tampered, &key, "me"), None, "{at}");
        }
        for wrong in ["", "x", "====", &"A".repeat(10_000), &cursor[1..]] {
            assert_eq!(read(wrong, &key, "me"), None, "{wrong}");
        }
    }
}
