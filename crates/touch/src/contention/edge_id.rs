//! The id of an edge, by which it can be asked for again.

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use text::hex;

use super::touch::ContentionKind;

/// Depends only on what an edge is about: the two agents, the kind, the system, and whether one of
/// them touched a container of what the other touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EdgeId([u8; EdgeId::BYTES]);

impl EdgeId {
    const BYTES: usize = 6;

    /// Agents may come in any order, except in a stale read.
    pub(super) fn of(
        [from, to]: [&str; 2],
        kind: ContentionKind,
        system: &str,
        is_within: bool,
    ) -> EdgeId {
        let is_ordered = kind == ContentionKind::StaleRead || from <= to;
        let (first, second) = if is_ordered { (from, to) } else { (to, from) };
        let place = if is_within { "within" } else { "at" };
        // No name contains the separator unescaped: names of agents have no control characters, and
        // one that had would only give two edges one id.
        let text = [first, second, kind.as_str(), system, place].join("\u{1f}");
        let hash = Sha256::digest(text.as_bytes());
        let mut id = [0; EdgeId::BYTES];
        id.copy_from_slice(&hash[..EdgeId::BYTES]);
        EdgeId(id)
    }

    pub fn parse(text: &str) -> Option<EdgeId> {
        let mut id = [0; EdgeId::BYTES];
        hex::decode(text, &mut id)?;
        Some(EdgeId(id))
    }
}

impl std::fmt::Display for EdgeId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&hex::encode(&self.0))
    }
}

impl Serialize for EdgeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_depends_on_what_the_edge_is_about_and_on_nothing_else() {
        use ContentionKind::{StaleRead, WriteWrite};
        let id = |from, to, kind, within| EdgeId::of([from, to], kind, "fs", within);
        let one = id("a", "b", WriteWrite, false);
        assert_eq!(one, id("b", "a", WriteWrite, false));
        assert_ne!(one, id("a", "c", WriteWrite, false));
        assert_ne!(one, id("a", "b", WriteWrite, true));
        assert_ne!(one, id("a", "b", StaleRead, false));
        assert_ne!(id("a", "b", StaleRead, false), id("b", "a", StaleRead, false));
        assert_eq!(EdgeId::parse(&one.to_string()), Some(one));
        for bad in ["", "xyz", "0123456789a", "0123456789abc", "0123456789ag"] {
            assert_eq!(EdgeId::parse(bad), None, "{bad}");
        }
    }
}
