//! Which of the things that a server lists somebody has approved: the list is compared with what
//! the store knows, what is new or has changed waits for a person, and only then is it published.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use domain::catalog::Listing;
use domain::config::AutoApprove;
use domain::policy::Approval;
use domain::tool::{Source, Tool};
use domain::trust::{Accepted, Approved, Change, Fingerprint, ItemKind, Standing, stand};
use jiff::Timestamp;
use mcp::message::{Raw, raw};
use mcp::object::Members;
use store::state::{Definition, Item, ItemChange};
use store::{Store, StoreError};

use crate::upstream::ServerSpec;

/// The name that a server's instructions have among its items.
const INSTRUCTIONS: &str = "";

/// What a server says on one connection.
pub(crate) struct Told {
    pub(crate) tools: Tools,
    pub(crate) said: Said,
}

/// What a server says beside its tools.
#[derive(Clone, Default)]
pub(crate) struct Said {
    pub(crate) instructions: Option<String>,
    pub(crate) others: Others,
}

impl PartialEq for Said {
    fn eq(&self, other: &Said) -> bool {
        let text = |said: &Said| -> Vec<String> {
            let items = said.others.iter().flat_map(|(_, items)| items);
            items.map(|item| item.get().to_owned()).collect()
        };
        self.instructions == other.instructions && text(self) == text(other)
    }
}

/// Lists of prompts and templates, each the JSON that was sent.
pub(crate) type Others = Vec<(ItemKind, Vec<Raw>)>;

pub(crate) enum Tools {
    Listed(Vec<Raw>),
    /// Listed now, with nothing in it that is not in this one.
    Same(Arc<Listing>),
    /// A list that was reviewed before, since when somebody decided something.
    Again(Arc<Listing>),
}

/// What of it may be shown.
#[derive(Clone, Default)]
pub(crate) struct Reviewed {
    pub(crate) listing: Arc<Listing>,
    pub(crate) instructions: Option<Arc<str>>,
    /// The store knows of it; otherwise the same list is to be reviewed again when it comes.
    pub(crate) is_kept: bool,
}

/// How a server is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) auto_approve: AutoApprove,
    /// Nothing of a server in quarantine is taken as approved.
    pub(crate) quarantined: bool,
}

impl Terms {
    pub(crate) fn of(spec: &ServerSpec) -> Terms {
        Terms { auto_approve: spec.trust.auto_approve, quarantined: spec.rules.quarantined }
    }
}

/// Whose list it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Of the connection that all clients share: the first one is the baseline.
    Shared,
    /// Of one client's own connection: it adds to what waits, and says nothing of what is gone.
    Own,
}

/// Reviews what one server lists, off the async threads.
#[derive(Clone)]
pub(crate) struct Reviewer {
    store: Store,
    server: Arc<str>,
    source: Source,
    terms: Arc<ArcSwap<Terms>>,
    unkept: Unkept,
}

/// The baseline, where the store could not take it: the next list must not become one as well.
type Unkept = Arc<Mutex<Option<Vec<Item>>>>;

impl Reviewer {
    pub(crate) fn new(store: Store, spec: &ServerSpec) -> Reviewer {
        let terms = Arc::new(ArcSwap::from_pointee(Terms::of(spec)));
        let (server, source) = (spec.name.clone(), spec.source());
        Reviewer { store, server, source, terms, unkept: Arc::default() }
    }

    pub(crate) fn set_terms(&self, terms: Terms) {
        self.terms.store(Arc::new(terms));
    }

    pub(crate) async fn review(&self, told: Told, whose: Whose) -> Reviewed {
        let reviewer = self.clone();
        // Reading and indexing thousands of tools takes milliseconds.
        let reviewing = tokio::task::spawn_blocking(move || reviewer.compare(told, whose));
        let reviewed = reviewing.await.unwrap_or_default();
        for fault in &reviewed.listing.faults {
            tracing::warn!(server = %self.server, "{fault}");
        }
        reviewed
    }

    /// The last list that was seen of a server which is not started.
    pub(crate) async fn remembered(&self) -> Reviewed {
        let Reviewer { store, server, source, .. } = self.clone();
        let reading = tokio::task::spawn_blocking(move || remembered(&store, &server, &source));
        reading.await.unwrap_or_default()
    }

    /// Compares what a server told with what was approved, and keeps what came of it.
    fn compare(&self, told: Told, whose: Whose) -> Reviewed {
        let (server, source) = (&self.server, &self.source);
        match self.known() {
            Ok(known) => {
                let is_whole = whose == Whose::Shared && told.tools.is_news();
                let terms = **self.terms.load();
                Review::new(&known, terms, whose, is_whole).run(self, source, told)
            }
            Err(error) => {
                tracing::error!(%server, "its tools are locked: {error}");
                let listing = told.tools.reviewed(source, |_| Approval::Unknown);
                Reviewed { listing, instructions: None, is_kept: false }
            }
        }
    }

    /// What the store knows, and the baseline that it could not take before.
    fn known(&self) -> Result<Known, StoreError> {
        let known = Known::read(&self.store, &self.server)?;
        let mut unkept = self.unkept.lock().unwrap_or_else(PoisonError::into_inner);
        if known.has_baseline {
            *unkept = None;
        }
        let Some(items) = &*unkept else {
            return Ok(known);
        };
        let changes = items.iter().filter_map(|item| {
            let Definition { text, fingerprint, .. } = item.approved.as_ref()?;
            Some(ItemChange::Approved { kind: &item.kind, name: &item.name, text, fingerprint })
        });
        let changes: Vec<ItemChange<'_>> = changes.collect();
        match self.store.state().record_items(&self.server, &changes, true) {
            Ok(()) => {
                *unkept = None;
                Known::read(&self.store, &self.server)
            }
            Err(_) => Ok(Known::of(items.clone(), true)),
        }
    }
}

impl Tools {
    fn reviewed(self, source: &Source, review: impl FnMut(&Tool) -> Approval) -> Arc<Listing> {
        match self {
            Tools::Listed(tools) => Arc::new(Listing::reviewed(source, tools, review)),
            Tools::Same(listing) | Tools::Again(listing) => {
                listing.review(review).map_or(listing, Arc::new)
            }
        }
    }

    fn is_news(&self) -> bool {
        match self {
            Tools::Listed(_) | Tools::Same(_) => true,
            Tools::Again(_) => false,
        }
    }
}

fn remembered(store: &Store, server: &str, source: &Source) -> Reviewed {
    let Ok(known) = Known::read(store, server) else {
        return Reviewed::default();
    };
    let listed = known.items().filter(|item| item.listed && is_tool(item));
    let mut texts: Vec<(&str, &str)> =
        listed.filter_map(|item| Some((&*item.name, latest(item)?))).collect();
    texts.sort_unstable();
    let tools = texts.into_iter().map(|(_, text)| raw(text.to_owned())).collect();
    let listing = Listing::reviewed(source, tools, |tool| known.approval(tool));
    Reviewed { listing: Arc::new(listing), instructions: None, is_kept: true }
}

fn is_tool(item: &Item) -> bool {
    item.kind == ItemKind::Tool.as_str()
}

fn latest(item: &Item) -> Option<&str> {
    item.pending.as_ref().or(item.approved.as_ref()).map(|definition| &*definition.text)
}

/// What the store knows of a server's items.
pub(crate) struct Known {
    by_kind: HashMap<ItemKind, HashMap<String, Item>>,
    has_baseline: bool,
}

impl Known {
    pub(crate) fn read(store: &Store, server: &str) -> Result<Known, StoreError> {
        let state = store.state();
        let has_baseline = state.server(server)?.is_some_and(|server| server.has_baseline);
        Ok(Known::of(state.items(server)?, has_baseline))
    }

    fn of(items: Vec<Item>, has_baseline: bool) -> Known {
        let mut by_kind: HashMap<ItemKind, HashMap<String, Item>> = HashMap::new();
        for item in items {
            if let Some(kind) = ItemKind::parse(&item.kind) {
                by_kind.entry(kind).or_default().insert(item.name.clone(), item);
            }
        }
        Known { by_kind, has_baseline }
    }

    fn items(&self) -> impl Iterator<Item = &Item> {
        self.by_kind.values().flat_map(HashMap::values)
    }

    fn item(&self, kind: ItemKind, name: &str) -> Option<&Item> {
        self.by_kind.get(&kind)?.get(name)
    }

    fn stand(&self, kind: ItemKind, name: &str, text: &str, auto: AutoApprove) -> Standing {
        let approved = self.item(kind, name).and_then(|item| item.approved.as_ref());
        let approved = approved.and_then(|approved| {
            let fingerprint = Fingerprint::parse(&approved.fingerprint)?;
            Some(Approved { fingerprint, definition: &approved.text })
        });
        stand(kind, text, approved.as_ref(), auto)
    }

    /// Whether what a tool says of itself is what was approved of it.
    pub(crate) fn approval(&self, tool: &Tool) -> Approval {
        let text = tool.definition().get();
        match self.stand(ItemKind::Tool, &tool.name, text, AutoApprove::None) {
            Standing::Same => Approval::Approved,
            Standing::Accepted(_) | Standing::Pending(_) => Approval::Pending,
        }
    }
}

/// Everything beside the tools, with its name. What has none cannot be told apart from others, and
/// so cannot be approved.
fn items(said: &Said) -> Vec<(ItemKind, String, &str)> {
    let instructions = said.instructions.as_deref();
    let instructions =
        instructions.map(|text| (ItemKind::Instructions, INSTRUCTIONS.to_owned(), text));
    let others = said.others.iter().flat_map(|(kind, items)| {
        items.iter().filter_map(|item| Some((*kind, name(*kind, item)?, item.get())))
    });
    instructions.into_iter().chain(others).collect()
}

fn name(kind: ItemKind, item: &Raw) -> Option<String> {
    let members = Members::parse(item).ok()?;
    let member = match kind {
        ItemKind::Tool | ItemKind::Prompt | ItemKind::Instructions => "name",
        ItemKind::Template => "uriTemplate",
    };
    serde_json::from_str(members.get(member)?).ok()
}

impl Said {
    /// Whether the server was asked for such things, and answered.
    fn has(&self, kind: ItemKind) -> bool {
        kind == ItemKind::Instructions || self.others.iter().any(|(listed, _)| *listed == kind)
    }
}

/// The comparison of one list.
struct Review<'a> {
    known: &'a Known,
    auto: AutoApprove,
    takes_baseline: bool,
    /// Whether the list tells what is gone and what is back. That of one client does not, since
    /// others may see more; nor does one that was told before, since others may have come after
    /// it: two that correct one another would never come to an end.
    is_whole: bool,
}

/// What becomes of one item.
#[derive(Clone, Copy)]
enum Fate {
    Stays,
    Back,
    /// As part of the baseline.
    Begin,
    Accept(Accepted),
    Wait(Change),
}

impl Fate {
    fn approval(self) -> Approval {
        match self {
            Fate::Stays | Fate::Back | Fate::Begin | Fate::Accept(_) => Approval::Approved,
            Fate::Wait(_) => Approval::Pending,
        }
    }
}

impl<'a> Review<'a> {
    fn new(known: &'a Known, terms: Terms, whose: Whose, is_whole: bool) -> Review<'a> {
        let auto = if terms.quarantined { AutoApprove::None } else { terms.auto_approve };
        let takes_baseline = whose == Whose::Shared && !terms.quarantined && !known.has_baseline;
        Review { known, auto, takes_baseline, is_whole }
    }

    fn run(&self, reviewer: &Reviewer, source: &Source, told: Told) -> Reviewed {
        let mut fates = Vec::new();
        let listing = told.tools.reviewed(source, |tool| {
            let fate = self.fate(ItemKind::Tool, &tool.name, tool.definition().get());
            fates.push(fate);
            fate.approval()
        });
        let tools = listing.tools().iter().zip(fates);
        let mut changed: Vec<Changed<'_>> = tools
            .filter_map(|(tool, fate)| {
                self.change(ItemKind::Tool, &tool.name, tool.definition().get(), fate)
            })
            .collect();
        let items = items(&told.said);
        for (kind, name, text) in &items {
            changed.extend(self.change(*kind, name, text, self.fate(*kind, name, text)));
        }
        let is_kept = self.keep(reviewer, &changed, |item| match ItemKind::parse(&item.kind) {
            Some(ItemKind::Tool) => listing.tool(&item.name).is_some(),
            Some(kind) if !told.said.has(kind) => true,
            kind => items.iter().any(|(k, name, _)| Some(*k) == kind && *name == item.name),
        });
        let instructions = told.said.instructions.as_deref().filter(|text| {
            let fate = self.fate(ItemKind::Instructions, INSTRUCTIONS, text);
            fate.approval() == Approval::Approved
        });
        let instructions = instructions.map(Into::into);
        Reviewed { listing, instructions, is_kept }
    }

    fn fate(&self, kind: ItemKind, name: &str, text: &str) -> Fate {
        if self.takes_baseline {
            return Fate::Begin;
        }
        match self.known.stand(kind, name, text, self.auto) {
            Standing::Same => match self.known.item(kind, name) {
                Some(item) if !item.listed || item.pending.is_some() => Fate::Back,
                Some(_) | None => Fate::Stays,
            },
            Standing::Accepted(why) => Fate::Accept(why),
            Standing::Pending(change) => Fate::Wait(change),
        }
    }

    /// What is to be written down; nothing where the store knows it already.
    fn change<'t>(
        &self,
        kind: ItemKind,
        name: &'t str,
        text: &'t str,
        fate: Fate,
    ) -> Option<Changed<'t>> {
        let known = self.known.item(kind, name);
        let pending = known.and_then(|item| item.pending.as_ref());
        let is_known = |fingerprint: &str| {
            known.is_some_and(|item| item.listed)
                && pending.is_some_and(|pending| pending.fingerprint == fingerprint)
        };
        let fingerprint = match fate {
            Fate::Stays => return None,
            Fate::Back => String::new(),
            Fate::Begin | Fate::Accept(_) | Fate::Wait(_) => kind.fingerprint(text).to_string(),
        };
        match fate {
            // Another list may still show what waits.
            Fate::Back if !self.is_whole => None,
            Fate::Wait(_) if is_known(&fingerprint) => None,
            Fate::Stays | Fate::Back | Fate::Begin | Fate::Accept(_) | Fate::Wait(_) => {
                Some(Changed { kind, name, text, fate, fingerprint })
            }
        }
    }

    /// Writes down what changed. A store that cannot take it is told of, and tried again with the
    /// next list: what was decided here holds all the same.
    fn keep(
        &self,
        reviewer: &Reviewer,
        changed: &[Changed<'_>],
        is_listed: impl Fn(&Item) -> bool,
    ) -> bool {
        let server = &*reviewer.server;
        let mut changes: Vec<ItemChange<'_>> = changed.iter().map(Changed::entry).collect();
        if self.is_whole {
            let gone = self.known.items().filter(|item| item.listed && !is_listed(item));
            changes
                .extend(gone.map(|item| ItemChange::Gone { kind: &item.kind, name: &item.name }));
        }
        let kept = reviewer.store.state().record_items(server, &changes, self.takes_baseline);
        if let Err(error) = &kept {
            tracing::error!(server, "cannot keep what the server lists: {error}");
            if self.takes_baseline {
                let mut unkept = reviewer.unkept.lock().unwrap_or_else(PoisonError::into_inner);
                *unkept = Some(changed.iter().map(Changed::approved).collect());
            }
        }
        for Changed { kind, name, fate, .. } in changed {
            let kind = kind.as_str();
            match fate {
                Fate::Wait(change) => {
                    let change = change.as_str();
                    tracing::warn!(server, kind, name, change, "locked until a person approves it");
                }
                Fate::Accept(why) => {
                    tracing::info!(server, kind, name, why = why.as_str(), "a change is accepted");
                }
                Fate::Stays | Fate::Back | Fate::Begin => {}
            }
        }
        kept.is_ok()
    }
}

struct Changed<'a> {
    kind: ItemKind,
    name: &'a str,
    text: &'a str,
    fate: Fate,
    fingerprint: String,
}

impl Changed<'_> {
    /// As the store would have it.
    fn approved(&self) -> Item {
        let (text, fingerprint) = (self.text.to_owned(), self.fingerprint.clone());
        Item {
            kind: self.kind.as_str().to_owned(),
            name: self.name.to_owned(),
            approved: Some(Definition { text, fingerprint, at: Timestamp::now() }),
            pending: None,
            listed: true,
        }
    }

    fn entry(&self) -> ItemChange<'_> {
        let Changed { kind, name, text, fate, fingerprint } = self;
        let kind = kind.as_str();
        match fate {
            Fate::Stays | Fate::Back => ItemChange::Back { kind, name },
            Fate::Begin | Fate::Accept(_) => ItemChange::Approved { kind, name, text, fingerprint },
            Fate::Wait(_) => ItemChange::Pending { kind, name, text, fingerprint },
        }
    }
}
