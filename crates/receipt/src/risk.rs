//! The risk level of an action, in the format's words.

use serde::Serialize;

/// Ordered from lowest to highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RiskLevel {
    Low,
    Medium,
    High,
    Critical,
}

impl RiskLevel {
    pub const ALL: [RiskLevel; 4] =
        [RiskLevel::Low, RiskLevel::Medium, RiskLevel::High, RiskLevel::Critical];

    pub fn as_str(self) -> &'static str {
        match self {
            RiskLevel::Low => "low",
            RiskLevel::Medium => "medium",
            RiskLevel::High => "high",
            RiskLevel::Critical => "critical",
        }
    }

    pub fn parse(text: &str) -> Option<RiskLevel> {
        RiskLevel::ALL.into_iter().find(|level| level.as_str() == text)
    }
}
