//! Resolve and scope: the catalog's facts about the requested tool, and whether this caller may see
//! them.

use std::sync::Arc;

use domain::Catalog;
use domain::catalog::ToolPlan;
use domain::ledger::target::CallPlace;
use domain::policy::{
    self, Call as Asked, Facts, IntentClaim as Declaration, Lock, Lookup, Verdict,
};
use domain::schema::SchemaVerdict;
use domain::tool::{Hints, Source, Tool};
use domain::upstream::UpstreamState;
use provider::{Call, CallContext, Declared};

use super::check::Checks;
use crate::metrics::Metrics;
use crate::place::ServerPlace;
use crate::upstream::SessionKey;
use crate::{GateSettings, Gateway};

/// The catalog and the settings in effect when a call began.
pub(super) struct Snapshot {
    catalog: Arc<Catalog>,
    settings: Arc<GateSettings>,
    metrics: Arc<Metrics>,
    place: ServerPlace,
    query_key: [u8; 32],
}

impl Snapshot {
    pub(super) async fn take(gateway: &Gateway, call: &Call, ctx: &CallContext) -> Snapshot {
        let settings = gateway.settings();
        if !gateway.shared.draining.is_cancelled() {
            wait_for_list(gateway, call, ctx).await;
        }
        let metrics = gateway.metrics().clone();
        let session = call.session.as_deref();
        let place = gateway.shared.registry.place(&call.tool.server, session);
        let catalog = gateway.catalog_of(session);
        let query_key = gateway.shared.query_key;
        Snapshot { catalog, settings, metrics, place, query_key }
    }

    /// The circumstances that decide what the call's arguments name.
    pub(super) fn place(&self, call: &Call) -> CallPlace<'_> {
        let server = self.catalog.server(&call.tool.server);
        let info = server.and_then(|server| server.listing.plan_source().info.as_deref());
        CallPlace {
            root: self.place.root(info),
            is_local: self.place.is_local,
            query_key: &self.query_key,
        }
    }

    /// The plan of the tool, whether or not the caller may see it: records are for the operator.
    pub(super) fn plan(&self, call: &Call) -> Option<&ToolPlan> {
        self.catalog.server(&call.tool.server)?.listing.plan(&call.tool.tool)
    }

    /// The origin of the tool, whether or not the caller may see it.
    pub(super) fn source_of(&self, call: &Call) -> Option<&Source> {
        self.catalog.tool(&call.tool).map(|(_, tool)| &tool.source)
    }

    pub(super) fn settings(&self) -> &GateSettings {
        &self.settings
    }

    /// The counters for calls.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The server's name as in the catalog, regardless of the caller.
    pub(super) fn server(&self, call: &Call) -> Option<&Arc<str>> {
        self.catalog.server(&call.tool.server).map(|server| &server.name)
    }

    /// The tool, if it exists for this caller.
    pub(super) fn tool(&self, call: &Call) -> Option<&Tool> {
        let (server, tool) = self.catalog.tool(&call.tool)?;
        call.caller.sees_tool(&server.name, &tool.name).then_some(tool)
    }

    pub(super) fn source(&self, call: &Call) -> Option<String> {
        Some(self.tool(call)?.source.to_string())
    }

    /// The tool's hints about itself, if they are trusted.
    pub(super) fn hints(&self, call: &Call) -> Option<Hints> {
        let (tool, server) = (self.tool(call)?, self.catalog.server(&call.tool.server)?);
        let is_trusted = match server.lock(&tool.name) {
            Lock::Callable => true,
            Lock::Locked(status) => !status.distrusts_text(),
        };
        is_trusted.then_some(tool.hints)
    }

    pub(super) async fn decide(&self, checks: &Checks, call: &Call, ctx: &CallContext) -> Verdict {
        let (asked, mut facts) = (asked(call), self.facts(call));
        if policy::depends_on_arguments(&asked, &facts)
            && let Lookup::Tool { arguments, .. } = &mut facts.found
            && let Some((_, tool)) = self.catalog.tool(&call.tool)
        {
            *arguments = checks.arguments(tool, call, ctx).await;
        }
        policy::decide(&asked, &facts)
    }

    fn facts<'a>(&'a self, call: &'a Call) -> Facts<'a> {
        Facts { caller: &call.caller, found: self.find(call), strictness: self.settings.strictness }
    }

    fn find<'a>(&'a self, call: &'a Call) -> Lookup<'a> {
        let server = self.catalog.server(&call.tool.server);
        let seen = || call.caller.sees_tool(&call.tool.server, &call.tool.tool);
        let Some(server) = server.filter(|_| seen()) else {
            return Lookup::Nothing { near: self.catalog.near(&call.caller, &call.tool) };
        };
        let lock = server.lock(&call.tool.tool);
        match server.listing.tool(&call.tool.tool) {
            // Callers that need the verdict check the arguments first, if they matter.
            Some(tool) => Lookup::Tool { hints: tool.hints, lock, arguments: SchemaVerdict::Fits },
            None if server.rules.quarantined || server.rules.disabled => {
                Lookup::Server { lock, unavailable: None }
            }
            None if server.state != UpstreamState::Ready => {
                Lookup::Server { lock: Lock::Callable, unavailable: server.unavailable() }
            }
            None => Lookup::Nothing { near: self.catalog.near(&call.caller, &call.tool) },
        }
    }
}

/// Waits for the list of the connection that will carry the call: the call is checked against it.
async fn wait_for_list(gateway: &Gateway, call: &Call, ctx: &CallContext) {
    if is_unlisted(&gateway.catalog(), call)
        && let Some(upstream) = gateway.shared.registry.upstream(&call.tool.server)
    {
        tokio::select! {
            () = upstream.first_settled() => {}
            () = ctx.cancel.cancelled() => {}
            () = tokio::time::sleep_until(ctx.deadline) => {}
        }
    }
    if let Some(client) = SessionKey::of(call)
        && call.caller.sees(&call.tool.server)
    {
        gateway.open_own(client, &call.tool.server, ctx).await;
    }
}

/// Builds the question for the policy, in its own terms.
fn asked(call: &Call) -> Asked<'_> {
    let declared = match &call.declared {
        Declared::Nothing => Declaration::Nothing,
        Declared::Variant(class, declaration) => Declaration::Variant(*class, declaration),
    };
    let (surface, addressee) = (call.surface.granted(), call.surface.addressee());
    Asked { tool: &call.tool, surface, addressee, declared }
}

/// Reports whether the server has not listed its tools yet: a call in the first seconds waits for
/// the list. A server the caller may not see is neither waited for nor started.
fn is_unlisted(catalog: &Catalog, call: &Call) -> bool {
    catalog.server(&call.tool.server).is_some_and(|server| {
        call.caller.sees(&server.name)
            && matches!(server.state, UpstreamState::Idle | UpstreamState::Connecting)
            && server.listing.tool(&call.tool.tool).is_none()
    })
}
