//! The limits of an agent's work, checked against what its program reports.

use workflow::ResolvedOptions;

use crate::agent::WorkUsage;

/// The limits that a step sets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    turns: Option<u32>,
    tokens: Option<u32>,
    cost_usd: Option<f64>,
}

impl Limits {
    pub(super) fn of(options: &ResolvedOptions) -> Limits {
        Limits {
            turns: options.max_turns,
            tokens: options.max_tokens,
            cost_usd: options.max_cost_usd,
        }
    }

    /// Names the limit that the work is beyond, if any.
    pub(super) fn exceeded(&self, usage: &WorkUsage) -> Option<String> {
        let turns = usage.turns;
        let turns = self
            .turns
            .filter(|max| turns > *max)
            .map(|max| format!("the agent began turn {turns}, beyond max_turns ({max})"));
        let tokens = usage.tokens.unwrap_or(0);
        let tokens = self
            .tokens
            .filter(|max| tokens > u64::from(*max))
            .map(|max| format!("the agent used {tokens} tokens, beyond max_tokens ({max})"));
        let cost = usage.cost_usd.unwrap_or(0.0);
        let cost = self
            .cost_usd
            .filter(|max| cost > *max)
            .map(|max| format!("the agent cost ${cost:.4}, beyond max_cost_usd (${max:.4})"));
        turns.or(tokens).or(cost).map(|words| format!("{words}: raise it to allow more"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_is_exceeded_is_named() {
        let limits = Limits { turns: Some(2), tokens: Some(100), cost_usd: Some(0.5) };
        for (turns, tokens, cost_usd, expected) in [
            (2, Some(100), Some(0.5), None),
            (2, None, None, None),
            (3, None, None, Some("began turn 3, beyond max_turns (2)")),
            (1, Some(101), None, Some("used 101 tokens, beyond max_tokens (100)")),
            (1, None, Some(0.51), Some("cost $0.5100, beyond max_cost_usd ($0.5000)")),
        ] {
            let usage = WorkUsage { turns, tokens, cost_usd };
            let found = limits.exceeded(&usage);
            assert_eq!(found.is_some(), expected.is_some(), "{usage:?}");
            let named = expected.is_none_or(|words| found.unwrap_or_default().contains(words));
            assert!(named, "{usage:?}");
            assert_eq!(Limits::default().exceeded(&usage), None);
        }
    }
}
