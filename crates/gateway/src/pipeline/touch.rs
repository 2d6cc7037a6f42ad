//! Touch: the resources of a call, named once, by the plan of its tool. All records of the call have
//! the same names, whatever becomes of it.

#[cfg(test)]
mod tests;

use domain::catalog::ToolPlan;
use domain::ledger::target::{
    self, Access, CallPlace, PlanStep, PlannedTargets, Target, TargetBasis, Touched, Touches,
};
use domain::method::{Method, SubjectItem};
use domain::tool::{Class, Source};
use provider::{Call, CallContext, Declared};
use serde_json::{Map, Value};

use super::facts::Snapshot;
use super::payload::CallArguments;
use crate::Gateway;

/// The resources of a call before their links are followed.
pub(crate) struct NamedTouches {
    pub(crate) touches: Touches,
    /// Some were left out because they appear to contain a secret.
    pub(crate) has_omitted: bool,
}

impl NamedTouches {
    /// Takes what was found in the arguments, without what differs once the arguments' secrets are
    /// removed: a value that the redactor hides there must not appear as a target either.
    pub(crate) fn new(
        planned: PlannedTargets,
        redacted: Option<PlannedTargets>,
        access: Access,
    ) -> NamedTouches {
        let PlannedTargets { mut found, basis } = planned;
        let count = found.len();
        if let Some(PlannedTargets { found: harmless, .. }) = redacted {
            let is_harmless = |target: &Target| harmless.iter().any(|(known, _)| known == target);
            // The others mean little without the main one.
            let is_main = found.first().is_some_and(|(main, _)| is_harmless(main));
            found.retain(|(target, _)| is_main && is_harmless(target));
        }
        let has_omitted = found.len() < count || basis == TargetBasis::SECRET;
        let basis = if has_omitted && found.is_empty() { TargetBasis::SECRET } else { basis };
        let touched = found
            .into_iter()
            .map(|(target, own)| Touched { target, access: own.unwrap_or(access) });
        NamedTouches { touches: Touches::new(touched, basis), has_omitted }
    }
}

/// The resources that a call would touch, with the rule of its tool's plan that decided.
pub struct ExplainedTouches {
    pub touches: Touches,
    pub rule: Option<PlanStep>,
}

impl Gateway {
    /// Names the resources that a call would touch, as its record would, without making the call.
    pub async fn explain_touches(&self, call: &Call, ctx: &CallContext) -> ExplainedTouches {
        let snapshot = Snapshot::take(self, call, ctx).await;
        let arguments = CallArguments::of(snapshot.settings(), &call.arguments);
        let named = named(call, &snapshot, arguments.redacted());
        let place = snapshot.place(call);
        let plan = snapshot.plan(call);
        let explained = plan.map(|plan| plan.targets.explain(call.arguments.members(), &place));
        let touches = self.shared.links.follow(named.touches).known().await;
        ExplainedTouches { touches, rule: explained.and_then(|explained| explained.rule) }
    }
}

/// Names the resources of a call. `redacted` are its arguments without their secrets, if it has any.
pub(super) fn named(
    call: &Call,
    snapshot: &Snapshot,
    redacted: Option<&Map<String, Value>>,
) -> NamedTouches {
    let plan = snapshot.plan(call);
    let find = |arguments: &Map<String, Value>| planned(call, snapshot, plan, arguments);
    let found = find(call.arguments.members());
    let redacted = redacted.filter(|_| !found.found.is_empty()).map(find);
    NamedTouches::new(found, redacted, access(call, snapshot, plan))
}

fn planned(
    call: &Call,
    snapshot: &Snapshot,
    plan: Option<&ToolPlan>,
    arguments: &Map<String, Value>,
) -> PlannedTargets {
    let place = snapshot.place(call);
    if call.method != Method::ToolCall {
        return of_method(call, arguments, &place);
    }
    if let Some(plan) = plan {
        return plan.targets.find(arguments, &place);
    }
    let (target, reason) = match snapshot.source_of(call) {
        // The gate's own tools need no plan.
        Some(Source::Builtin) => {
            let root = place.root.unwrap_or_default();
            let target = target::of_builtin(&call.tool.tool, arguments, root);
            (target, TargetBasis::NO_RESOURCE)
        }
        Some(Source::Mcp(_) | Source::Plugin(_)) | None => (None, TargetBasis::UNKNOWN_TOOL),
    };
    let basis = if target.is_some() { TargetBasis::WORKSPACE } else { reason };
    PlannedTargets { found: target.into_iter().map(|target| (target, None)).collect(), basis }
}

/// Names what a request other than a tool call is about: the address of a resource, or a prompt.
fn of_method(call: &Call, params: &Map<String, Value>, place: &CallPlace<'_>) -> PlannedTargets {
    let server = &call.tool.server;
    let target = call.method.subject(params).and_then(|subject| match subject {
        SubjectItem::Resource(uri) => target::of_resource(server, uri, place),
        SubjectItem::Template(uri) => Target::new(server, uri.to_owned()),
        SubjectItem::Prompt(name) => Target::new(server, format!("prompt/{name}")),
    });
    let basis = if target.is_some() { TargetBasis::PROTOCOL } else { TargetBasis::NO_RESOURCE };
    PlannedTargets { found: target.into_iter().map(|target| (target, None)).collect(), basis }
}

/// Returns what the call does to its resources, as far as trusted text tells it.
fn access(call: &Call, snapshot: &Snapshot, plan: Option<&ToolPlan>) -> Access {
    let verb = plan.map_or(Access::Unknown, |plan| plan.verb);
    Access::of_call(snapshot.hints(call), declared(call), verb)
}

fn declared(call: &Call) -> Option<Class> {
    match &call.declared {
        Declared::Nothing => None,
        Declared::Variant(variant, declaration) => {
            Some(declaration.stated_operation().unwrap_or(*variant))
        }
    }
}
