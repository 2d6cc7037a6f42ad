//! The rules that name the resources of a tool's calls, and what they make of one call.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use touch::targets::{PlanStep, Touched};
use utoipa::ToSchema;

use super::words;

/// A rule that names the resources of a tool's calls.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct TargetPlanRule {
    /// `config`, `builtin:<server>`, `generic` (for one call `generic:<argument>`) or `keys`
    pub origin: String,
    /// The system of the resources. Files of this machine are in `filesystem` and addresses in
    /// `web`, whatever it says.
    pub system: String,
    /// Templates, the main resource first; empty if the calls touch nothing that can be named. For
    /// `generic`, the arguments that it considers.
    pub resource: Vec<String>,
    /// Templates of resources that a call only reads.
    pub reads: Vec<String>,
}

impl From<PlanStep> for TargetPlanRule {
    fn from(step: PlanStep) -> TargetPlanRule {
        let PlanStep { origin, system, resource, reads } = step;
        TargetPlanRule { origin, system, resource, reads }
    }
}

/// A call to name the resources of; it is not made.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriedCall {
    /// The arguments of the tool.
    #[schema(schema_with = words::any_object)]
    pub arguments: Value,
}

/// The resources that a call would touch.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct TriedTargets {
    /// `server:tool`
    pub name: String,
    /// The main one first.
    pub targets: Vec<TriedTarget>,
    /// The rule that named them, or the reason that there are none.
    pub basis: String,
    /// The rule that decided, if it is one of the tool's plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<TargetPlanRule>,
}

/// A resource that a call would touch.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct TriedTarget {
    pub system: String,
    pub resource: String,
    #[schema(schema_with = words::access)]
    pub access: String,
}

impl From<&Touched> for TriedTarget {
    fn from(touched: &Touched) -> TriedTarget {
        TriedTarget {
            system: touched.target.system().to_owned(),
            resource: touched.target.resource().to_owned(),
            access: touched.access.as_str().to_owned(),
        }
    }
}
