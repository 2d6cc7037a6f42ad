//! Resolve and scope: what the catalog knows of the tool that was asked for, and whether this
//! caller may know it.

use std::sync::Arc;

use domain::Catalog;
use domain::policy::{
    self, Call as Asked, Facts, IntentClaim as Declaration, Lock, Lookup, Verdict,
};
use domain::schema::SchemaVerdict;
use domain::tool::{Hints, Tool};
use domain::upstream::UpstreamState;
use provider::{Call, CallContext, Declared};

use super::check::Checks;
use crate::metrics::Metrics;
use crate::{GateSettings, Gateway};

/// The catalog and the settings that a call began with.
pub(super) struct Snapshot {
    catalog: Arc<Catalog>,
    settings: Arc<GateSettings>,
    metrics: Arc<Metrics>,
    /// Where the tool works, if it is a built-in one.
    root: Option<Arc<str>>,
}

impl Snapshot {
    pub(super) async fn take(gateway: &Gateway, call: &Call, ctx: &CallContext) -> Snapshot {
        let settings = gateway.settings();
        if !gateway.shared.draining.is_cancelled() {
            wait_for_list(gateway, call, ctx).await;
        }
        let metrics = gateway.metrics().clone();
        let root = gateway.shared.registry.builtin(&call.tool.server);
        let root = root.map(|builtin| builtin.root.clone());
        let catalog = gateway.catalog_of(call.session.as_deref());
        Snapshot { catalog, settings, metrics, root }
    }

    pub(super) fn root(&self) -> Option<&str> {
        self.root.as_deref()
    }

    pub(super) fn settings(&self) -> &GateSettings {
        &self.settings
    }

    /// Where calls are counted.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The server's name as the catalog has it, whoever asks.
    pub(super) fn server(&self, call: &Call) -> Option<&Arc<str>> {
        self.catalog.server(&call.tool.server).map(|server| &server.name)
    }

    /// The tool, where there is one for this caller.
    pub(super) fn tool(&self, call: &Call) -> Option<&Tool> {
        let (server, tool) = self.catalog.tool(&call.tool)?;
        call.caller.sees_tool(&server.name, &tool.name).then_some(tool)
    }

    pub(super) fn source(&self, call: &Call) -> Option<String> {
        Some(self.tool(call)?.source.to_string())
    }

    /// What the tool says of itself, where that is trusted.
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
            // Whoever asks for the verdict has the arguments checked first, where they count.
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

/// What the connection that will carry the call lists is what the call is checked against.
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
    if let Some(session) = &call.session
        && call.caller.sees(&call.tool.server)
    {
        gateway.open_own(session, &call.tool.server, ctx).await;
    }
}

/// What policy is asked, in its own words.
fn asked(call: &Call) -> Asked<'_> {
    let declared = match &call.declared {
        Declared::Nothing => Declaration::Nothing,
        Declared::Variant(class, declaration) => Declaration::Variant(*class, declaration),
    };
    Asked { tool: &call.tool, surface: call.surface.granted(), declared }
}

/// The server has not told its tools yet: a call in the first seconds waits for that. A server that
/// the caller may not see is neither waited for nor started.
fn is_unlisted(catalog: &Catalog, call: &Call) -> bool {
    catalog.server(&call.tool.server).is_some_and(|server| {
        call.caller.sees(&server.name)
            && matches!(server.state, UpstreamState::Idle | UpstreamState::Connecting)
            && server.listing.tool(&call.tool.tool).is_none()
    })
}
