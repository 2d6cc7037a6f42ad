//! One server with its tools, rules and state.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::value::RawValue;

use super::listing::Listing;
use super::plans;
use crate::caller::{Caller, TokenSurface};
use crate::config::ToolRules;
use crate::exposed::{self, Names};
use crate::method::SubjectItem;
use crate::policy::{self, ApprovalState, Lock, Obstacle, ServerRules};
use crate::tool::Tool;
use crate::trust::ItemKind;
use crate::upstream::UpstreamState;
use search::Segment;
use text::near;
use touch::targets::{FitTool, TargetMapping, UnfitTargetRule};

/// Suggestions for an unknown name.
pub(super) const NEAR_MAX: usize = 3;

/// Replaces a segment that must not be searchable.
pub(super) static NOTHING: LazyLock<Arc<Segment>> = LazyLock::new(|| Arc::new(Segment::build(&[])));

pub struct Server {
    pub name: Arc<str>,
    pub transport: &'static str,
    pub rules: Arc<ServerRules>,
    pub state: UpstreamState,
    pub listing: Arc<Listing>,
    /// The server's instructions for models, if approved.
    pub instructions: Option<Arc<str>>,
    pub(super) names: Names,
    list: OnceLock<Box<RawValue>>,
    unfit_targets: OnceLock<Vec<UnfitTargetRule>>,
}

impl Server {
    pub fn new(
        name: Arc<str>,
        transport: &'static str,
        rules: Arc<ServerRules>,
        state: UpstreamState,
        listing: Arc<Listing>,
    ) -> Server {
        Server {
            name,
            transport,
            rules,
            state,
            listing,
            instructions: None,
            names: Names::default(),
            list: OnceLock::new(),
            unfit_targets: OnceLock::new(),
        }
    }

    /// Sets how its tools are named in the view over all servers.
    #[must_use]
    pub fn with_names(self, names: Names) -> Server {
        Server { names, ..self }
    }

    #[must_use]
    pub fn with_instructions(self, instructions: Option<Arc<str>>) -> Server {
        Server { instructions, ..self }
    }

    /// Returns the same server with other tools, as seen by one client.
    pub fn with_listing(&self, listing: Arc<Listing>) -> Server {
        self.altered(self.state.clone(), listing)
    }

    /// Returns the same server in another state, with the same list.
    #[must_use]
    pub fn with_state(&self, state: UpstreamState) -> Server {
        self.altered(state, self.listing.clone())
    }

    fn altered(&self, state: UpstreamState, listing: Arc<Listing>) -> Server {
        let (name, rules) = (self.name.clone(), self.rules.clone());
        let instructions = self.instructions.clone();
        Server::new(name, self.transport, rules, state, listing)
            .with_instructions(instructions)
            .with_names(self.names)
    }

    /// Returns the `tools/list` response with the tools that the caller may see and call, unchanged
    /// from the server; built once for unrestricted callers.
    pub fn list(&self, caller: &Caller) -> Cow<'_, RawValue> {
        let made = || {
            let tools = self.tools().filter(|(tool, lock)| {
                caller.sees_tool(&self.name, &tool.name)
                    && Obstacle::of(caller, TokenSurface::Passthrough, *lock, tool.hints).is_none()
            });
            exposed::list_response("tools", tools.map(|(tool, _)| tool.definition().get()))
        };
        if caller.is_unrestricted() {
            Cow::Borrowed(self.list.get_or_init(made))
        } else {
            Cow::Owned(made())
        }
    }

    /// Returns the lock status of a tool; unlisted names are locked only with the whole server.
    pub fn lock(&self, tool: &str) -> Lock {
        let approval = self.listing.approval(tool).unwrap_or(ApprovalState::Approved);
        policy::lock(&self.rules, tool, approval)
    }

    /// Returns the lock of what a request other than a tool call is about; `None` for a prompt that
    /// the server does not list. Rules about tools do not apply.
    pub fn subject_lock(&self, subject: Option<SubjectItem<'_>>) -> Option<Lock> {
        let approval = match (self.listing.offer(), subject) {
            (Some(offer), Some(subject)) => offer.approval(subject),
            (None, _) | (_, None) => Some(ApprovalState::Approved),
        };
        match policy::subject_lock(&self.rules, approval.unwrap_or(ApprovalState::Approved)) {
            Lock::Callable => approval.map(|_| Lock::Callable),
            locked => Some(locked),
        }
    }

    /// Returns the response to a list of prompts or of templates: those approved, unchanged from the
    /// server. `caller` sees all of them or none.
    pub fn items(&self, kind: ItemKind, caller: &Caller) -> Box<RawValue> {
        let (member, reads) = match kind {
            ItemKind::Prompt => ("prompts", "prompts/get"),
            ItemKind::Template => ("resourceTemplates", "resources/read"),
            ItemKind::Tool | ItemKind::Instructions => return self.list(caller).into_owned(),
        };
        let is_shown = !self.is_locked() && caller.sees_tool(&self.name, reads);
        let offer = self.listing.offer().filter(|_| is_shown);
        exposed::list_response(member, offer.iter().flat_map(|offer| offer.approved(kind)))
    }

    /// Returns every listed tool with its lock.
    pub fn tools(&self) -> impl Iterator<Item = (&Arc<Tool>, Lock)> {
        (0..self.listing.tools().len()).map(|place| self.at(place))
    }

    pub(super) fn at(&self, place: usize) -> (&Arc<Tool>, Lock) {
        let (tool, approval) = self.listing.at(place);
        (tool, policy::lock(&self.rules, &tool.name, approval))
    }

    /// Returns names in the config's lists that the server does not list: such a list does not have
    /// its intended effect. Returns none for a server that has listed nothing yet.
    pub fn misnamed(&self) -> Vec<UnknownToolName> {
        let key = match self.rules.tools {
            ToolRules::All => return Vec::new(),
            ToolRules::Only(_) => "enabled_tools",
            ToolRules::Except(_) => "disabled_tools",
        };
        let listed = || self.listing.tools().iter().map(|tool| tool.name.as_str());
        let names = self.rules.tools.names().filter(|_| !self.listing.tools().is_empty());
        let unknown = names.filter(|name| self.listing.tool(name).is_none());
        unknown
            .map(|name| {
                let near = near::names(name, listed(), NEAR_MAX);
                let near = near.into_iter().map(str::to_owned).collect();
                UnknownToolName { key, name: name.to_owned(), near }
            })
            .collect()
    }

    /// Returns the rules of the operator's mapping that do not fit the listed tools. Returns none for
    /// a server that has listed nothing yet.
    pub fn unfit_targets(&self) -> &[UnfitTargetRule] {
        match &self.rules.targets {
            Some(mapping) if !self.listing.tools().is_empty() => {
                self.unfit_targets.get_or_init(|| self.unfit(mapping))
            }
            _ => &[],
        }
    }

    fn unfit(&self, mapping: &TargetMapping) -> Vec<UnfitTargetRule> {
        let properties = |tool: &Arc<Tool>| plans::properties(tool.input_schema_json());
        let schemas: Vec<_> = self.listing.tools().iter().map(properties).collect();
        let names = self.listing.tools().iter().map(|tool| tool.name.as_str());
        let members = schemas.iter().map(|schema| schema.keys().map(String::as_str).collect());
        let tools: Vec<FitTool<'_>> = names.zip(members).collect();
        mapping.unfit(&tools)
    }

    pub(super) fn is_approved(&self, place: usize) -> bool {
        self.listing.at(place).1 == ApprovalState::Approved
    }

    /// Returns the tools that can be found by text: none for a server in quarantine.
    pub(super) fn segment(&self) -> &Arc<Segment> {
        if self.rules.quarantined { &NOTHING } else { self.listing.segment() }
    }

    /// Returns the tools that can be found by name only, because their text has not been approved.
    pub(super) fn names(&self) -> &Arc<Segment> {
        let has_some = self.rules.quarantined || self.listing.has_unapproved();
        if has_some { self.listing.names() } else { &NOTHING }
    }

    /// Reports whether the whole server is locked; if so, none of its text reaches a model.
    pub fn is_locked(&self) -> bool {
        self.rules.quarantined || self.rules.disabled
    }

    /// The possible values of [`Server::state_word`].
    pub const STATE_WORDS: [&'static str; 7] =
        ["ready", "idle", "connecting", "error", "needs_login", "disabled", "quarantined"];

    /// Returns the state to show to people: a lock on the whole server takes precedence over the
    /// connection.
    pub fn state_word(&self) -> &'static str {
        if self.rules.quarantined {
            return "quarantined";
        }
        if self.rules.disabled {
            return "disabled";
        }
        match self.state {
            UpstreamState::Ready => "ready",
            UpstreamState::Idle => "idle",
            UpstreamState::Connecting => "connecting",
            UpstreamState::Waiting(_) | UpstreamState::Stopped => "error",
            UpstreamState::NeedsLogin(_) => "needs_login",
        }
    }

    /// Returns the reason that calls would fail now, if they would. It holds no words of the server.
    pub fn unavailable(&self) -> Option<&str> {
        match &self.state {
            UpstreamState::Ready => None,
            UpstreamState::Idle => Some("it is idle and has not been started"),
            UpstreamState::Connecting => Some("it is still connecting"),
            UpstreamState::Waiting(failure) | UpstreamState::NeedsLogin(failure) => {
                Some(&failure.reason)
            }
            UpstreamState::Stopped => Some("it has been stopped"),
        }
    }

    /// Returns the same reason for operators, with what the server said of it.
    pub fn unavailable_in_full(&self) -> Option<String> {
        match &self.state {
            UpstreamState::Waiting(failure) | UpstreamState::NeedsLogin(failure) => {
                Some(failure.to_string())
            }
            UpstreamState::Ready
            | UpstreamState::Idle
            | UpstreamState::Connecting
            | UpstreamState::Stopped => self.unavailable().map(str::to_owned),
        }
    }
}

/// A name in one of the config's lists that matches no tool of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownToolName {
    /// The list that contains it.
    pub key: &'static str,
    pub name: String,
    /// Suggestions for the intended name.
    pub near: Vec<String>,
}

impl fmt::Display for UnknownToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownToolName { key, name, near } = self;
        write!(f, "{key} names '{name}', but the server lists no such tool{}", near::hint(near))
    }
}
