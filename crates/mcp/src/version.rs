//! The supported protocol revisions, and their differences.

use std::fmt;

/// Handshake-era revisions, oldest first, so that `<` means "older than".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
}

impl Version {
    pub const LATEST: Version = Version::V2025_11_25;
    pub const ALL: [Version; 4] =
        [Version::V2024_11_05, Version::V2025_03_26, Version::V2025_06_18, Version::V2025_11_25];

    pub fn as_str(self) -> &'static str {
        match self {
            Version::V2024_11_05 => "2024-11-05",
            Version::V2025_03_26 => "2025-03-26",
            Version::V2025_06_18 => "2025-06-18",
            Version::V2025_11_25 => "2025-11-25",
        }
    }

    pub fn parse(text: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// Returns the revision a server answers with: `requested` if supported, or else the newest.
    pub fn negotiate(requested: &str) -> Version {
        Version::parse(requested).unwrap_or(Version::LATEST)
    }

    /// Clients of older revisions take an event without data for a broken message.
    pub fn has_empty_events(self) -> bool {
        self >= Version::V2025_11_25
    }

    /// Only one revision has JSON-RPC batches.
    pub fn allows_batches(self) -> bool {
        self == Version::V2025_03_26
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_revision_is_kept_and_an_unknown_one_answered_with_the_newest() {
        for version in Version::ALL {
            assert_eq!(Version::negotiate(version.as_str()), version);
        }
        assert_eq!(Version::negotiate("2099-01-01"), Version::LATEST);
        assert_eq!(Version::negotiate(""), Version::LATEST);
    }
}
