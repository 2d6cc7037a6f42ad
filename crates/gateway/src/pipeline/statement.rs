//! The start of a call as recorded: who requested what, for what purpose, and on which target.

use std::borrow::Cow;

use domain::catalog::Catalog;
use domain::intent::{self, StatedIntent};
use domain::method::Method;
use domain::policy::Permit;
use domain::taxonomy::{self, Before};
use domain::tool::{Class, Hints, Source, ToolName};
use provider::{Call, Declared};
use redact::{REDACTED, Redactor};
use serde_json::value::RawValue;
use store::{CallStart, ReceiptAction, RecordKind};
use touch::targets::Touches;

use super::record::RecordContext;
use crate::agent;

/// The `_meta` key in which Claude Code sends the id of the tool use behind a call.
const TOOL_USE_ID: &str = "claudecode/toolUseId";

/// Colons in the name of a tool at which it is examined.
const COLONS_MAX: usize = 8;

pub(super) fn started(
    context: RecordContext<'_>,
    allowed: Option<&Permit>,
    touches: Touches,
) -> CallStart {
    let RecordContext { call, ctx, snapshot, arguments, warnings, .. } = context;
    let (variant, stated) = match &call.declared {
        Declared::Nothing => (None, StatedIntent::default()),
        Declared::Variant(class, declaration) => (Some(class.variant()), declaration.stated()),
    };
    let settings = snapshot.settings();
    let (effective, unverified) = match allowed {
        Some(allowed) => (Some(allowed.effective), allowed.unverified),
        None => {
            let hints = snapshot.hints(call);
            (class_of_refused(call, hints), hints.is_some_and(Hints::unverified))
        }
    };
    let class = effective.or(stated.operation);
    let source = snapshot.seen_source(call);
    let name = snapshot.writable_name(call);
    let mut started = CallStart {
        id: call.id.clone(),
        kind: RecordKind::ToolCall,
        source: call.surface.source().into(),
        surface: call.surface.as_str().into(),
        server: name.server,
        tool: name.tool,
        agent: agent::of_call(call),
        session: call.session.as_deref().map(str::to_owned),
        request_id: call.request_id.clone(),
        at: jiff::Timestamp::now(),
        variant: variant.map(Into::into),
        declared: stated.operation.map(|class| class.as_str().into()),
        sensitivity: variant.map(|_| stated.sensitivity.as_str().into()),
        reason: stated.reason,
        effective,
        unverified,
        warnings: allowed
            .map(|allowed| allowed.warnings.iter().map(|warning| warning.text.clone()).collect())
            .unwrap_or_default(),
        touches,
        trace_id: ctx.trace.trace_id().map(str::to_owned),
        arguments: arguments.payload(settings),
        action: action(call, source, class),
        outside: None,
    };
    started.warnings.extend_from_slice(warnings);
    started
}

/// Returns the name of a call's tool without secrets. The caller chose that of a tool that does not
/// exist, and a secret in it may have the colon between server and tool.
pub(super) fn name(redactor: &Redactor, catalog: &Catalog, call: &Call) -> ToolName {
    let is_known = match call.method {
        Method::ToolCall => catalog.tool(&call.tool).is_some(),
        _ => catalog.server(&call.tool.server).is_some(),
    };
    if is_known {
        return call.tool.clone();
    }
    let server = match catalog.server(&call.tool.server) {
        Some(server) => server.name.to_string(),
        None => redactor.text(&call.tool.server).into_owned(),
    };
    let name = ToolName { server, tool: redactor.text(&call.tool.tool).into_owned() };
    let given = call.tool.to_string();
    // What follows another colon may hide that the part before it is a secret.
    let colons = given.match_indices(':').skip(1).take(COLONS_MAX);
    let mut starts = colons.map(|(colon, _)| &given[..colon]);
    let is_whole = redactor.text(&given) == name.to_string()
        && starts.all(|start| matches!(redactor.text(start), Cow::Borrowed(_)));
    if is_whole { name } else { ToolName { tool: REDACTED.to_owned(), ..name } }
}

/// Returns the class that a refused call would have had: the stricter of the declared class and the
/// tool's hints. Without hints that can be trusted, a declaration counts only if it is valid.
pub(super) fn class_of_refused(call: &Call, hints: Option<Hints>) -> Option<Class> {
    match (&call.declared, hints.map(Hints::class)) {
        (Declared::Nothing, hinted) => hinted,
        (Declared::Variant(_, declaration), Some(hinted)) => {
            declaration.stated_operation().max(Some(hinted))
        }
        (Declared::Variant(variant, declaration), None) => {
            intent::check_keys(*variant, &call.tool, declaration)
                .ok()
                .map(|intent| intent.operation)
        }
    }
}

fn action(call: &Call, source: Option<&Source>, class: Option<Class>) -> ReceiptAction {
    let action = match source {
        Some(source) => taxonomy::classify(source, &call.tool.tool, class, Before::Unknown),
        None => taxonomy::classify_event(None, Some(&call.tool.server), &call.tool.tool),
    };
    ReceiptAction {
        kind: action.action_type.as_str().into(),
        risk: action.risk,
        correlation_id: meta(call, TOOL_USE_ID),
    }
}

/// Returns a text from the request's `_meta`.
fn meta(call: &Call, name: &str) -> Option<String> {
    let meta: &RawValue = call.other.iter().find(|(name, _)| name == "_meta").map(|(_, m)| &**m)?;
    let members = mcp::object::ObjectMembers::parse(meta).ok()?;
    let text: String = serde_json::from_str(members.get(name)?).ok()?;
    Some(text).filter(|text| !text.is_empty())
}
