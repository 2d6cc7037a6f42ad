//! Touch: the resources of a call, named once, by the plan of its tool. All records of the call have
//! the same names, whatever becomes of it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use domain::catalog::ToolPlan;
use domain::method::{Method, SubjectItem};
use domain::tool::{Class, Source};
use provider::{Call, CallContext, CallOutcome, Declared, Reply};
use redact::Redactor;
use serde_json::{Map, Value};
use store::record::{TARGET_OMITTED, TARGETS_OMITTED};
use touch::targets::{
    self, Access, CallPlace, PlanStep, PlannedTargets, SecretTexts, TOUCHED_MAX, Target,
    TargetBasis, TargetPlan, Touched, Touches,
};

use super::facts::Snapshot;
use crate::Gateway;
use crate::payload::CallArguments;

/// The most keys that one warning names; it also gives their number.
const KEYS_SHOWN_MAX: usize = 4;

/// Bytes of a key that a warning shows.
const KEY_BYTES_MAX: usize = 64;

/// The resources of a call before their links are followed.
pub(crate) struct NamedTouches {
    pub(crate) touches: Touches,
    /// Remarks on them, for the record.
    pub(crate) warnings: Vec<String>,
}

impl NamedTouches {
    /// Takes what was found in the arguments.
    pub(crate) fn new(
        planned: PlannedTargets,
        secrets: &SecretTexts,
        access: Access,
    ) -> NamedTouches {
        let PlannedTargets { found, basis, is_partial } = planned;
        let warning = match (found.len() > TOUCHED_MAX, is_partial) {
            (true, _) => Some(TARGETS_OMITTED),
            (false, true) => Some(TARGET_OMITTED),
            (false, false) => None,
        };
        if is_partial && found.is_empty() {
            let touches = Touches::nothing(TargetBasis::UNREAD);
            return NamedTouches { touches, warnings: vec![TARGET_OMITTED.to_owned()] };
        }
        let warnings = warning.map(str::to_owned).into_iter().collect();
        let touched = found.into_iter().map(|(target, own)| Touched {
            target: secrets.hide(target),
            access: own.unwrap_or(access),
        });
        NamedTouches { touches: Touches::new(touched, basis), warnings }
    }

    /// Adds what the plan of the tool says about the arguments beyond their resources.
    pub(crate) fn with_faults(
        mut self,
        plan: &TargetPlan,
        arguments: &Map<String, Value>,
        redactor: &Redactor,
    ) -> NamedTouches {
        if plan.has_long_name(arguments) {
            if self.warnings.is_empty() {
                self.warnings.push(TARGET_OMITTED.to_owned());
            }
            if self.touches.all().is_empty() {
                self.touches = Touches::nothing(TargetBasis::TOO_LONG);
            }
        }
        self.with_unknown(&plan.unknown_keys(arguments), redactor)
    }

    /// Adds a warning with the keys that the tool does not have, if there are any.
    fn with_unknown(mut self, unknown: &BTreeSet<String>, redactor: &Redactor) -> NamedTouches {
        if !unknown.is_empty() {
            self.warnings.push(unknown_keys(unknown, redactor));
        }
        self
    }
}

/// Tells the keys that the tool does not have, which the caller chose.
fn unknown_keys(unknown: &BTreeSet<String>, redactor: &Redactor) -> String {
    let shown = |key: &String| {
        let key = redactor.text(key);
        format!("'{}'", &key[..key.floor_char_boundary(KEY_BYTES_MAX)])
    };
    let keys: Vec<String> = unknown.iter().take(KEYS_SHOWN_MAX).map(shown).collect();
    let more = match unknown.len().saturating_sub(KEYS_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("arguments that the tool does not have: {}{more}", keys.join(", "))
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
        let (touches, _) = touches.recordable(&snapshot.settings().redactor);
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
    let (sent, redactor) = (call.arguments.members(), &snapshot.settings().redactor);
    let given = redacted.map(|redacted| SecretTexts::of(sent, redacted, redactor));
    let (secrets, arguments) = match &given {
        Some((secrets, arguments)) => (secrets, arguments),
        None => (&SecretTexts::default(), sent),
    };
    let found = planned(call, snapshot, plan, arguments);
    let named = NamedTouches::new(found, secrets, access(call, snapshot, plan));
    match plan {
        Some(plan) => named.with_faults(&plan.targets, sent, redactor),
        None => named.with_unknown(&snapshot.unknown_keys(call), redactor),
    }
}

/// Returns the file or folder that the gate's own tool opened, by its real name, whatever the links
/// on its path were when the call began.
pub(super) fn opened(call: &Call, snapshot: &Snapshot, outcome: &CallOutcome) -> Touches {
    let CallOutcome::Replied { reply: Reply { opened: Some(path), .. }, .. } = outcome else {
        return Touches::default();
    };
    let target = Target::of_path(path.to_string_lossy().into_owned());
    let access = access(call, snapshot, snapshot.plan(call));
    let touched = target.into_iter().map(|target| Touched { target, access });
    Touches::new(touched, TargetBasis::WORKSPACE)
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
            let (tool, root) = (&*call.tool.tool, place.root.unwrap_or_default());
            let changed = targets::of_builtin(tool, arguments, root, place.home);
            let target = changed.map(|target| (target, None)).or_else(|| {
                let read = targets::read_by_builtin(tool, arguments, root, place.home)?;
                Some((read, Some(Access::Read)))
            });
            (target, TargetBasis::NO_RESOURCE)
        }
        Some(Source::Mcp(_) | Source::Plugin(_)) | None => (None, TargetBasis::UNKNOWN_TOOL),
    };
    let basis = if target.is_some() { TargetBasis::WORKSPACE } else { reason };
    PlannedTargets::of(target.into_iter().collect(), basis)
}

/// Names what a request other than a tool call is about: the address of a resource, or a prompt.
fn of_method(call: &Call, params: &Map<String, Value>, place: &CallPlace<'_>) -> PlannedTargets {
    let server = &call.tool.server;
    let subject = call.method.subject(params);
    let is_named = subject.is_some();
    let target = subject.and_then(|subject| match subject {
        SubjectItem::Resource(uri) => targets::of_resource(server, uri, place),
        SubjectItem::Template(uri) => Target::new(server, uri.to_owned()),
        SubjectItem::Prompt(name) => Target::new(server, format!("prompt/{name}")),
    });
    let basis = if target.is_some() { TargetBasis::PROTOCOL } else { TargetBasis::NO_RESOURCE };
    let is_partial = is_named && target.is_none();
    let found = target.into_iter().map(|target| (target, None)).collect();
    PlannedTargets { found, basis, is_partial }
}

/// Returns what the call does to its resources, judged by trusted text.
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
