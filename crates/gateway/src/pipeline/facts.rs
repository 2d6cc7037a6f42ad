//! Resolve and scope: the catalog's facts about the requested tool, and whether this caller may see
//! them.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::Catalog;
use domain::catalog::{Server, ToolPlan};
use domain::method::Method;
use domain::policy::{
    self, Call as Asked, Facts, IntentClaim as Declaration, Lock, Lookup, Requested, Verdict,
};
use domain::schema::SchemaVerdict;
use domain::tool::{Hints, Source, Tool, ToolName};
use domain::upstream::UpstreamState;
use provider::{Call, CallContext, Declared, Surface};
use touch::targets::CallPlace;

use super::check::Checks;
use super::statement;
use crate::agent::SessionKey;
use crate::metrics::Metrics;
use crate::place::ServerPlace;
use crate::{GateSettings, Gateway};

/// The catalog and the settings in effect when a call began.
pub(super) struct Snapshot {
    catalog: Arc<Catalog>,
    settings: Arc<GateSettings>,
    metrics: Arc<Metrics>,
    place: ServerPlace,
    query_key: [u8; 32],
    /// The origin of what a method other than `tools/call` reaches.
    method_source: Option<Source>,
    /// The sign-in that the caller lacks, where each has its own.
    missing_login: Option<String>,
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
        let method_source = match call.method {
            Method::ToolCall => None,
            _ => catalog.server(&call.tool.server).map(|it| Source::Mcp(it.name.clone())),
        };
        let missing_login = missing_login(gateway, &catalog, call).await;
        Snapshot { catalog, settings, metrics, place, query_key, method_source, missing_login }
    }

    /// The circumstances that decide what the call's arguments name.
    pub(super) fn place(&self, call: &Call) -> CallPlace<'_> {
        let server = self.catalog.server(&call.tool.server);
        let info = server.and_then(|server| server.listing.plan_source().info.as_deref());
        CallPlace {
            root: self.place.root(info),
            home: self.place.home.as_deref(),
            is_local: self.place.is_local,
            query_key: &self.query_key,
        }
    }

    /// The plan of the tool, whether or not the caller may see it: records are for the operator.
    pub(super) fn plan(&self, call: &Call) -> Option<&ToolPlan> {
        if call.method != Method::ToolCall {
            return None;
        }
        self.catalog.server(&call.tool.server)?.listing.plan(&call.tool.tool)
    }

    /// The arguments that a tool without a plan does not have, whether or not the caller may see it.
    pub(super) fn unknown_keys(&self, call: &Call) -> BTreeSet<String> {
        match self.catalog.server(&call.tool.server) {
            Some(server) if call.method == Method::ToolCall => {
                server.listing.unknown_keys(&call.tool.tool, call.arguments.members())
            }
            _ => BTreeSet::new(),
        }
    }

    /// The origin of the tool, whether or not the caller may see it.
    pub(super) fn source_of(&self, call: &Call) -> Option<&Source> {
        match call.method {
            Method::ToolCall => self.catalog.tool(&call.tool).map(|(_, tool)| &tool.source),
            _ => self.method_source.as_ref(),
        }
    }

    /// The tool's name as it may be written down.
    pub(super) fn writable_name(&self, call: &Call) -> ToolName {
        statement::name(&self.settings.redactor, &self.catalog, call)
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
    fn tool(&self, call: &Call) -> Option<&Tool> {
        let (server, tool) = self.catalog.tool(&call.tool)?;
        call.caller.sees_tool(&server.name, &tool.name).then_some(tool)
    }

    /// The origin of the tool or of what else the call reaches, if it exists for this caller.
    pub(super) fn seen_source(&self, call: &Call) -> Option<&Source> {
        match call.method {
            Method::ToolCall => self.tool(call).map(|tool| &tool.source),
            _ => self.method_source.as_ref().filter(|_| is_seen(call)),
        }
    }

    pub(super) fn source(&self, call: &Call) -> Option<String> {
        self.seen_source(call).map(ToString::to_string)
    }

    /// The tool's hints about itself, if they are trusted, or those of the method.
    pub(super) fn hints(&self, call: &Call) -> Option<Hints> {
        if let Some(hints) = call.method.hints() {
            return Some(hints);
        }
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
        let server = self.catalog.server(&call.tool.server);
        Facts {
            caller: &call.caller,
            found: self.find(call),
            strictness: self.settings.strictness,
            arguments: server.map(|server| server.rules.arguments).unwrap_or_default(),
        }
    }

    fn find<'a>(&'a self, call: &'a Call) -> Lookup<'a> {
        let server = self.catalog.server(&call.tool.server);
        let Some(server) = server.filter(|_| is_seen(call)) else {
            return Lookup::Nothing { near: self.catalog.near(&call.caller, &call.tool) };
        };
        if let Some(hints) = call.method.hints() {
            return self.find_subject(server, call, hints);
        }
        let lock = server.lock(&call.tool.tool);
        match server.listing.tool(&call.tool.tool) {
            Some(tool) if tool.is_for_apps && call.surface == Surface::Discovery => {
                Lookup::AppTool { lock }
            }
            // Callers that need the verdict check the arguments first, if they matter.
            Some(tool) => Lookup::Tool { hints: tool.hints, lock, arguments: SchemaVerdict::Fits },
            None if server.rules.quarantined || server.rules.disabled => {
                Lookup::Server { lock, unavailable: None }
            }
            None if server.state != UpstreamState::Ready => {
                Lookup::Server { lock: Lock::Callable, unavailable: self.unavailable(server) }
            }
            None => Lookup::Nothing { near: self.catalog.near(&call.caller, &call.tool) },
        }
    }

    /// Looks up what a request other than a tool call is about.
    fn find_subject<'a>(&'a self, server: &'a Server, call: &Call, hints: Hints) -> Lookup<'a> {
        let lock = server.subject_lock(call.method.subject(call.arguments.members()));
        match lock {
            Some(lock @ Lock::Locked(_)) => Lookup::Server { lock, unavailable: None },
            _ if server.state != UpstreamState::Ready => {
                Lookup::Server { lock: Lock::Callable, unavailable: self.unavailable(server) }
            }
            Some(lock) => Lookup::Tool { hints, lock, arguments: SchemaVerdict::Fits },
            None => Lookup::Nothing { near: Vec::new() },
        }
    }

    fn unavailable<'a>(&'a self, server: &'a Server) -> Option<&'a str> {
        self.missing_login.as_deref().or_else(|| server.unavailable())
    }
}

/// Returns the sign-in that the caller lacks, if that is why the server cannot be used.
async fn missing_login(gateway: &Gateway, catalog: &Catalog, call: &Call) -> Option<String> {
    let server = catalog.server(&call.tool.server)?;
    let needs_login = matches!(server.state, UpstreamState::NeedsLogin(_));
    let upstream = gateway.shared.registry.upstream(&server.name).filter(|_| needs_login)?;
    upstream.missing_login(&call.caller).await
}

/// Reports whether the caller may see the tool. A profile that names tools hides other methods,
/// unless it names them too.
fn is_seen(call: &Call) -> bool {
    call.caller.sees_tool(&call.tool.server, &call.tool.tool)
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
    let request = match call.method {
        Method::ToolCall => Requested::Tool,
        method => Requested::Method(method.subject(call.arguments.members())),
    };
    Asked { tool: &call.tool, request, surface, addressee, declared }
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
