//! One server with its tools, its rules and its state.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::value::RawValue;

use super::listing::Listing;
use crate::caller::Caller;
use crate::config::ToolRules;
use crate::exposed::{self, Names};
use crate::near;
use crate::policy::{self, ApprovalState, Lock, ServerRules};
use crate::search::Segment;
use crate::tool::Tool;
use crate::upstream::UpstreamState;

/// Suggestions for a name that is not there.
pub(super) const NEAR_MAX: usize = 3;

/// In place of what may not be found.
pub(super) static NOTHING: LazyLock<Arc<Segment>> = LazyLock::new(|| Arc::new(Segment::build(&[])));

/// One server, as the catalog shows it.
pub struct Server {
    pub name: Arc<str>,
    pub transport: &'static str,
    pub rules: Arc<ServerRules>,
    pub state: UpstreamState,
    pub listing: Arc<Listing>,
    /// What the server tells models of itself, where that is approved.
    pub instructions: Option<Arc<str>>,
    pub(super) names: Names,
    list: OnceLock<Box<RawValue>>,
}

impl Server {
    pub fn new(
        name: Arc<str>,
        transport: &'static str,
        rules: Arc<ServerRules>,
        state: UpstreamState,
        listing: Arc<Listing>,
    ) -> Server {
        let (instructions, names, list) = (None, Names::default(), OnceLock::new());
        Server { name, transport, rules, state, listing, instructions, names, list }
    }

    /// How its tools are named where those of all servers are shown.
    #[must_use]
    pub fn with_names(self, names: Names) -> Server {
        Server { names, ..self }
    }

    #[must_use]
    pub fn with_instructions(self, instructions: Option<Arc<str>>) -> Server {
        Server { instructions, ..self }
    }

    /// The same server with other tools, as one client may see it.
    pub fn with_listing(&self, listing: Arc<Listing>) -> Server {
        let (name, rules, state) = (self.name.clone(), self.rules.clone(), self.state.clone());
        let instructions = self.instructions.clone();
        Server::new(name, self.transport, rules, state, listing)
            .with_instructions(instructions)
            .with_names(self.names)
    }

    /// The answer to `tools/list` with the tools that the caller may see and call, each as the
    /// server sent it; made once for callers that see all.
    pub fn list(&self, caller: &Caller) -> Cow<'_, RawValue> {
        let made = || {
            let tools = self.tools().filter(|(tool, lock)| {
                *lock == Lock::Callable && caller.sees_tool(&self.name, &tool.name)
            });
            exposed::tools_list(tools.map(|(tool, _)| tool.definition().get()))
        };
        if caller.sees_all() {
            Cow::Borrowed(self.list.get_or_init(made))
        } else {
            Cow::Owned(made())
        }
    }

    /// Of a tool that is listed, and of any other where the server as a whole is locked.
    pub fn lock(&self, tool: &str) -> Lock {
        let approval = self.listing.approval(tool).unwrap_or(ApprovalState::Approved);
        policy::lock(&self.rules, tool, approval)
    }

    /// Every listed tool with its lock.
    pub fn tools(&self) -> impl Iterator<Item = (&Arc<Tool>, Lock)> {
        (0..self.listing.tools().len()).map(|place| self.at(place))
    }

    pub(super) fn at(&self, place: usize) -> (&Arc<Tool>, Lock) {
        let (tool, approval) = self.listing.at(place);
        (tool, policy::lock(&self.rules, &tool.name, approval))
    }

    /// Names in the config's lists that the server does not list: such a list does not do what it
    /// says. A server that has listed nothing yet is given the benefit of the doubt.
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

    pub(super) fn is_approved(&self, place: usize) -> bool {
        self.listing.at(place).1 == ApprovalState::Approved
    }

    /// What may be found by its text: nothing of a server in quarantine.
    pub(super) fn segment(&self) -> &Arc<Segment> {
        if self.rules.quarantined { &NOTHING } else { self.listing.segment() }
    }

    /// What may be found by its name alone, because nobody has approved its text.
    pub(super) fn names(&self) -> &Arc<Segment> {
        let has_some = self.rules.quarantined || self.listing.has_unapproved();
        if has_some { self.listing.names() } else { &NOTHING }
    }

    /// Whether the server as a whole is locked: then nothing that it says reaches a model.
    pub fn is_locked(&self) -> bool {
        self.rules.quarantined || self.rules.disabled
    }

    /// What [`Server::state_word`] may be.
    pub const STATE_WORDS: [&'static str; 6] =
        ["ready", "idle", "connecting", "error", "disabled", "quarantined"];

    /// The word for people: a lock on the whole server comes before the connection.
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
        }
    }

    /// Why calls would fail now, where they would.
    pub fn unavailable(&self) -> Option<&str> {
        match &self.state {
            UpstreamState::Ready => None,
            UpstreamState::Idle => Some("it is idle and was not started yet"),
            UpstreamState::Connecting => Some("it is still connecting"),
            UpstreamState::Waiting(reason) => Some(reason),
            UpstreamState::Stopped => Some("it was stopped"),
        }
    }
}

/// A name in a list of the config that no tool of the server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownToolName {
    /// The list.
    pub key: &'static str,
    pub name: String,
    /// What may have been meant.
    pub near: Vec<String>,
}

impl fmt::Display for UnknownToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownToolName { key, name, near } = self;
        write!(f, "{key} names '{name}', which the server does not list{}", near::hint(near))
    }
}
