//! The parts of a receipt, and its position in a chain.

use crate::rotation::Rotation;
use crate::{Hash, RiskLevel, Runtime};

#[derive(Clone, Debug, PartialEq)]
pub struct Receipt<'a> {
    /// A lowercase UUID.
    pub id: &'a str,
    pub issuer: Issuer<'a>,
    /// RFC 3339, like every time in a receipt.
    pub issued_at: &'a str,
    pub principal: Principal<'a>,
    pub action: Action<'a>,
    pub outcome: ReceiptOutcome<'a>,
    pub correlation_id: Option<&'a str>,
    pub rotation: Option<Rotation>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Issuer<'a> {
    pub id: &'a str,
    pub name: Option<&'a str>,
    pub operator: Option<Operator<'a>>,
    pub model: Option<&'a str>,
    pub session_id: Option<&'a str>,
    pub runtime: Runtime<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operator<'a> {
    pub id: &'a str,
    pub name: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Principal<'a> {
    pub id: &'a str,
    pub kind: Option<PrincipalKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalKind {
    Human,
    Organization,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action<'a> {
    /// A lowercase UUID; the receipt prefixes it with `act_`.
    pub id: &'a str,
    /// A type from the taxonomy; `unknown` requires a target.
    pub action_type: &'a str,
    pub risk: RiskLevel,
    pub target: Option<ActionTarget<'a>>,
    pub parameters_hash: Option<Hash>,
    pub peer: Option<PeerCredential<'a>>,
    pub drop_count: Option<u32>,
    pub timestamp: &'a str,
    pub idempotency_key: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionTarget<'a> {
    pub system: &'a str,
    pub resource: Option<&'a str>,
}

/// The process at the other end of a socket, as reported by the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredential<'a> {
    pub platform: &'a str,
    pub pid: i32,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub exe_path: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiptOutcome<'a> {
    pub status: OutcomeStatus,
    pub error: Option<&'a str>,
    pub response_hash: Option<Hash>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeStatus {
    Success,
    Failure,
    Pending,
}

/// A position in a chain. The first has sequence 1 and no predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position<'a> {
    pub chain_id: &'a str,
    pub sequence: u64,
    pub previous: Option<Hash>,
    pub termination: Option<Termination>,
}

/// The end of a chain, stated on its last receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Termination {
    Complete,
    Interrupted,
}

impl OutcomeStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            OutcomeStatus::Success => "success",
            OutcomeStatus::Failure => "failure",
            OutcomeStatus::Pending => "pending",
        }
    }
}

impl PrincipalKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            PrincipalKind::Human => "HumanPrincipal",
            PrincipalKind::Organization => "OrganizationPrincipal",
        }
    }
}

impl Termination {
    pub fn as_str(self) -> &'static str {
        match self {
            Termination::Complete => "complete",
            Termination::Interrupted => "interrupted",
        }
    }
}
