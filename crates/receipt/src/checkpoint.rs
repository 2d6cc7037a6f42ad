//! Checkpoints: a signed receipt names the heads of a ledger's chains, so that a chain whose end is
//! cut off later is found out.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::{Hash, Runtime};

/// The type of the action that does nothing but name the heads.
pub const ACTION_TYPE: &str = "agent_receipts.checkpoint";

/// The member of `issuer.runtime` that holds a checkpoint. The last receipt of a chain has one too.
pub const MEMBER: &str = "checkpoint";

/// The head of a chain: its length, and the hash of its last receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub chain_id: String,
    pub length: u64,
    pub hash: Hash,
}

/// The statement of a receipt about the chains of its ledger, as they were just before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The open chains, and those that have changed since a checkpoint last named them.
    pub heads: Vec<Head>,
    /// Chains that have changed and would have made the receipt too long.
    pub omitted: u64,
    /// The number of chains that the digest covers.
    pub count: u64,
    pub digest: Hash,
    /// The number of decisions that operators had made.
    pub decisions: u64,
    /// The place and hash of the receipt with the checkpoint before.
    pub previous: Option<Head>,
}

/// A checkpoint on one short line, to be kept elsewhere: `<digest> <count> <time>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadLine {
    pub digest: Hash,
    pub count: u64,
    /// The time at which the checkpoint was issued.
    pub time: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a line of 'ledger head': expected '<digest> <count> <time>'")]
pub struct NotAHeadLine;

/// Returns the hash over all heads, which must be sorted by chain: of each the line
/// `<chain_id> <length> <hash>`, with its line break.
pub fn digest<'a>(heads: impl IntoIterator<Item = &'a Head>) -> Hash {
    let mut text = String::new();
    for Head { chain_id, length, hash } in heads {
        text.push_str(&format!("{chain_id} {length} {hash}\n"));
    }
    Hash::of(text.as_bytes())
}

impl Checkpoint {
    /// Returns the value of the member.
    pub fn runtime(&self) -> Runtime<'_> {
        let mut runtime = Runtime::new();
        runtime.insert("chains", self.heads.iter().map(named).collect::<Vec<_>>());
        runtime.insert("count", self.count);
        runtime.insert("digest", self.digest);
        runtime.insert("decisions", self.decisions);
        if self.omitted > 0 {
            runtime.insert("omitted", self.omitted);
        }
        if let Some(previous) = &self.previous {
            runtime.insert("previous", named(previous));
        }
        runtime
    }

    /// Reads the checkpoint of a receipt, if it has one.
    pub fn of(receipt: &Value) -> Option<Checkpoint> {
        let found = receipt.get("issuer")?.get("runtime")?.get(MEMBER)?;
        Some(Checkpoint {
            heads: found["chains"].as_array()?.iter().map(head).collect::<Option<_>>()?,
            omitted: found["omitted"].as_u64().unwrap_or(0),
            count: found["count"].as_u64()?,
            digest: found["digest"].as_str()?.parse().ok()?,
            decisions: found["decisions"].as_u64()?,
            previous: match &found["previous"] {
                Value::Null => None,
                previous => Some(head(previous)?),
            },
        })
    }
}

impl HeadLine {
    /// Returns the line of a receipt with a checkpoint.
    pub fn of(receipt: &Value) -> Option<HeadLine> {
        let Checkpoint { digest, count, .. } = Checkpoint::of(receipt)?;
        let time = receipt.get("issuanceDate")?.as_str()?.to_owned();
        Some(HeadLine { digest, count, time })
    }
}

impl fmt::Display for HeadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.digest, self.count, self.time)
    }
}

impl FromStr for HeadLine {
    type Err = NotAHeadLine;

    fn from_str(text: &str) -> Result<HeadLine, NotAHeadLine> {
        let mut words = text.split_whitespace();
        let mut next = || words.next().ok_or(NotAHeadLine);
        let digest = next()?.parse().map_err(|_| NotAHeadLine)?;
        let count = next()?.parse().map_err(|_| NotAHeadLine)?;
        let line = HeadLine { digest, count, time: next()?.to_owned() };
        if words.next().is_some() { Err(NotAHeadLine) } else { Ok(line) }
    }
}

fn named(head: &Head) -> Runtime<'_> {
    let mut runtime = Runtime::new();
    runtime.insert("chain_id", &*head.chain_id);
    runtime.insert("length", head.length);
    runtime.insert("hash", head.hash);
    runtime
}

fn head(value: &Value) -> Option<Head> {
    Some(Head {
        chain_id: value["chain_id"].as_str()?.to_owned(),
        length: value["length"].as_u64()?,
        hash: value["hash"].as_str()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn head_of(chain_id: &str, length: u64) -> Head {
        Head { chain_id: chain_id.to_owned(), length, hash: Hash::of(chain_id.as_bytes()) }
    }

    #[test]
    fn a_checkpoint_is_read_as_it_was_written() {
        for (omitted, decisions, previous) in [(0, 0, None), (7, 5, Some(head_of("before", 3)))] {
            let heads = vec![head_of("a", 1), head_of("b", 2)];
            let digest = digest(&heads);
            let checkpoint = Checkpoint { heads, omitted, count: 9, digest, decisions, previous };
            let mut text = String::new();
            checkpoint.runtime().write(&mut text);
            let value: Value = serde_json::from_str(&text).unwrap();
            let receipt = json!({"issuer": {"runtime": {"checkpoint": value}}});
            assert_eq!(Checkpoint::of(&receipt), Some(checkpoint));
        }
        assert_eq!(Checkpoint::of(&json!({"issuer": {"runtime": {"checkpoint": {}}}})), None);
    }

    #[test]
    fn a_head_line_is_read_as_it_is_written() {
        let line = HeadLine { digest: Hash::of(b""), count: 3, time: "now".to_owned() };
        assert_eq!(line.to_string().parse(), Ok(line.clone()));
        assert_eq!(format!("  {line}\n").parse(), Ok(line.clone()));
        let digest = line.digest;
        for bad in ["", "x 1 now", &format!("{digest} 1"), &format!("{digest} x now")] {
            assert_eq!(bad.parse::<HeadLine>(), Err(NotAHeadLine), "{bad}");
        }
    }

    #[test]
    fn the_digest_is_that_of_lines_of_text() {
        let (a, b) = (head_of("a", 1), head_of("b", 20));
        let text = format!("a 1 {}\nb 20 {}\n", a.hash, b.hash);
        assert_eq!(digest([&a, &b]), Hash::of(text.as_bytes()));
    }
}
