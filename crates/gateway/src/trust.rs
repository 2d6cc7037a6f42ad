//! Approval of the items a server lists: a list is compared with the store, new and changed items
//! wait for a person, and only then is the list published.

mod announcement;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use domain::catalog::{ListedItem, ListedResource, Listing, PlanSource, ServerOffer};
use domain::config::AutoApprove;
use domain::policy::ApprovalState;
use domain::tool::{DEFINITION_BYTES_MAX, DefinitionExcess, Source, Tool};
use domain::trust::{
    AcceptanceReason, ApprovedDefinition, Fingerprint, ItemKind, ReviewChange, ReviewState,
    review_state,
};
use jiff::Timestamp;
use mcp::message::{Raw, raw};
use mcp::object::ObjectMembers;
use mcp::task;
use serde_json::value::RawValue;
use store::state::{Definition, ItemChange, ServerItem};
use store::{Store, StoreError};
use touch::targets::TargetMapping;

use crate::catalogs::Publisher;
use crate::limits::GONE_ITEMS_MAX;
use crate::spec::ServerSpec;
use crate::trust::announcement::LineBudget;

/// The item name of a server's instructions.
const INSTRUCTIONS: &str = "";

/// Everything a server offers on one connection.
pub(crate) struct Offer {
    pub(crate) tools: ToolList,
    pub(crate) extras: Extras,
    /// The name that the server gives itself on the connection.
    pub(crate) info: Option<Arc<str>>,
}

/// A server's offer besides its tools.
#[derive(Clone, Default)]
pub(crate) struct Extras {
    pub(crate) instructions: Option<String>,
    pub(crate) lists: Vec<ItemList>,
    /// The resources, which need no separate approval.
    pub(crate) resources: Arc<[ListedResource]>,
    /// The number of times the server announced other resources.
    pub(crate) resources_changed: u64,
}

/// All prompts or all templates of a server, each as the JSON that was sent.
#[derive(Clone)]
pub(crate) struct ItemList {
    pub(crate) kind: ItemKind,
    pub(crate) items: Vec<Raw>,
}

impl PartialEq for Extras {
    fn eq(&self, other: &Extras) -> bool {
        fn texts(extras: &Extras) -> impl Iterator<Item = &str> {
            extras.lists.iter().flat_map(|list| &list.items).map(|item| item.get())
        }
        self.instructions == other.instructions
            && self.resources_changed == other.resources_changed
            && self.resources == other.resources
            && texts(self).eq(texts(other))
    }
}

/// The tools that a server offers.
pub(crate) enum ToolList {
    New(Vec<Raw>),
    /// A new list identical to this one.
    Same(Arc<Listing>),
    /// A list that was reviewed before a later decision and is due for another review.
    Again(Arc<Listing>),
}

/// The part of an offer that may be shown.
#[derive(Clone, Default)]
pub(crate) struct Review {
    pub(crate) listing: Arc<Listing>,
    pub(crate) instructions: Option<Arc<str>>,
    /// The review is stored; otherwise the same list is reviewed again when it next arrives.
    pub(crate) is_kept: bool,
}

/// The terms on which a server's items are approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ApprovalTerms {
    pub(crate) auto_approve: AutoApprove,
    /// Nothing of a server in quarantine counts as approved.
    pub(crate) quarantined: bool,
}

impl ApprovalTerms {
    pub(crate) fn of(spec: &ServerSpec) -> ApprovalTerms {
        ApprovalTerms { auto_approve: spec.trust.auto_approve, quarantined: spec.rules.quarantined }
    }
}

/// The clients that a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListScope {
    /// All clients that share a connection: the first list is the baseline.
    Shared,
    /// One client with its own connection: the list adds to the pending items, and says nothing
    /// about removed ones.
    Own,
}

/// Reviews the lists of one server, off the async threads.
#[derive(Clone)]
pub(crate) struct Reviewer {
    store: Store,
    publisher: Publisher,
    server: Arc<str>,
    source: Source,
    terms: Arc<ArcSwap<ApprovalTerms>>,
    targets: Arc<ArcSwapOption<TargetMapping>>,
    unsaved_baseline: UnsavedBaseline,
    lines: Arc<LineBudget>,
}

/// The baseline, if the store could not save it: the next list must not become one as well.
type UnsavedBaseline = Arc<Mutex<Option<Vec<ServerItem>>>>;

impl Reviewer {
    pub(crate) fn new(store: Store, publisher: Publisher, spec: &ServerSpec) -> Reviewer {
        let terms = Arc::new(ArcSwap::from_pointee(ApprovalTerms::of(spec)));
        let targets = Arc::new(ArcSwapOption::new(spec.rules.targets.clone()));
        let (server, source) = (spec.name.clone(), spec.source());
        let (unsaved_baseline, lines) = (Arc::default(), Arc::default());
        Reviewer { store, publisher, server, source, terms, targets, unsaved_baseline, lines }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Sets the terms and the mapping that apply from the next review on.
    pub(crate) fn set_terms(&self, terms: ApprovalTerms, targets: Option<Arc<TargetMapping>>) {
        self.terms.store(Arc::new(terms));
        self.targets.store(targets);
    }

    pub(crate) async fn review(&self, offer: Offer, scope: ListScope) -> Review {
        let reviewer = self.clone();
        // Reading and indexing thousands of tools takes milliseconds.
        let reviewing = task::spawn_blocking(move || reviewer.compare(offer, scope));
        let reviewed = reviewing.await.unwrap_or_default();
        for fault in &reviewed.listing.faults {
            if self.lines.allows(&self.server) {
                tracing::warn!(server = %self.server, "{fault}");
            }
        }
        reviewed
    }

    /// Returns the last list seen of a server that is not started.
    pub(crate) async fn remembered(&self) -> Review {
        let Reviewer { store, server, source, targets, .. } = self.clone();
        let plans = PlanSource { server, info: None, mapping: targets.load_full() };
        let reading = task::spawn_blocking(move || remembered(&store, &source, &plans));
        reading.await.unwrap_or_default()
    }

    /// Compares a server's offer with the approved items, and stores the result.
    fn compare(&self, offer: Offer, scope: ListScope) -> Review {
        let server = &self.server;
        match self.known() {
            Ok(known) => {
                let is_whole = scope == ListScope::Shared && offer.tools.is_news();
                let terms = **self.terms.load();
                Comparison::new(&known, terms, scope, is_whole).run(self, offer)
            }
            Err(error) => {
                tracing::error!(%server, "cannot read approvals, so its tools are locked: {error}");
                let listing = self.listing(offer.tools, offer.info, |_| ApprovalState::Unknown);
                let items = items(&offer.extras);
                let locked = items.iter().filter_map(|item| item.reviewed(ApprovalState::Unknown));
                let locked = ServerOffer::new(locked.collect(), offer.extras.resources_changed)
                    .with_resources(offer.extras.resources.clone());
                let listing = listing.with_offer(locked).map_or(listing, Arc::new);
                Review { listing, instructions: None, is_kept: false }
            }
        }
    }

    /// Returns the reviewed list with the plans of its tools.
    fn listing(
        &self,
        tools: ToolList,
        info: Option<Arc<str>>,
        review: impl FnMut(&Tool) -> ApprovalState,
    ) -> Arc<Listing> {
        let mapping = self.targets.load_full();
        let plans = PlanSource { server: self.server.clone(), info, mapping };
        match tools {
            ToolList::New(tools) => {
                Arc::new(Listing::reviewed(&self.source, tools, review).planned(&plans))
            }
            ToolList::Same(listing) | ToolList::Again(listing) => {
                let listing = listing.review(review).map_or(listing, Arc::new);
                listing.planned_anew(&plans).map_or(listing, Arc::new)
            }
        }
    }

    /// Loads the items from the store, and the baseline it could not save before.
    fn known(&self) -> Result<KnownItems, StoreError> {
        let known = KnownItems::read(&self.store, &self.server)?;
        let mut unsaved_baseline =
            self.unsaved_baseline.lock().unwrap_or_else(PoisonError::into_inner);
        if known.has_baseline {
            *unsaved_baseline = None;
        }
        let Some(items) = &*unsaved_baseline else {
            return Ok(known);
        };
        let changes = items.iter().filter_map(|item| {
            let Definition { text, fingerprint, .. } = item.approved.as_ref()?;
            Some(ItemChange::Approved { kind: &item.kind, name: &item.name, text, fingerprint })
        });
        let changes: Vec<ItemChange<'_>> = changes.collect();
        match self.store.state().record_items(&self.server, &changes, true) {
            Ok(()) => {
                *unsaved_baseline = None;
                KnownItems::read(&self.store, &self.server)
            }
            Err(_) => Ok(KnownItems::of(items.clone(), true)),
        }
    }
}

impl ToolList {
    fn is_news(&self) -> bool {
        match self {
            ToolList::New(_) | ToolList::Same(_) => true,
            ToolList::Again(_) => false,
        }
    }
}

fn remembered(store: &Store, source: &Source, plans: &PlanSource) -> Review {
    let Ok(known) = KnownItems::read(store, &plans.server) else {
        return Review::default();
    };
    let listed = known.items().filter(|item| item.listed && is_tool(item));
    let mut texts: Vec<(&str, &str)> =
        listed.filter_map(|item| Some((&*item.name, latest(item)?))).collect();
    texts.sort_unstable();
    let tools = texts.into_iter().map(|(_, text)| raw(text.to_owned())).collect();
    let listing = Listing::reviewed(source, tools, |tool| known.approval(tool));
    let listing = listing.planned(plans);
    Review { listing: Arc::new(listing), instructions: None, is_kept: true }
}

fn is_tool(item: &ServerItem) -> bool {
    item.kind == ItemKind::Tool.as_str()
}

fn latest(item: &ServerItem) -> Option<&str> {
    let definition = item.pending.as_ref().or(item.approved.as_ref())?;
    // A restored approval has no text until the server lists the item again.
    Some(&*definition.text).filter(|text| !text.is_empty())
}

/// Reads the items of a server. What is approved is a fingerprint, so a text that has another one was
/// not stored by a gate, and no model and no reviewer reads it.
pub(crate) fn stored_items(store: &Store, server: &str) -> Result<Vec<ServerItem>, StoreError> {
    let mut items = store.state().items(server)?;
    for item in &mut items {
        let Some(kind) = ItemKind::parse(&item.kind) else { continue };
        let is_foreign = |definition: &Definition| {
            let text = &definition.text;
            !text.is_empty()
                && Fingerprint::parse(&definition.fingerprint) != Some(kind.fingerprint(text))
        };
        if let Some(approved) = item.approved.as_mut().filter(|approved| is_foreign(approved)) {
            tracing::error!(server, kind = item.kind, name = item.name, "its text was edited");
            approved.text.clear();
        }
        item.pending.take_if(|pending| is_foreign(pending));
    }
    Ok(items)
}

/// The stored items of a server.
pub(crate) struct KnownItems {
    by_kind: HashMap<ItemKind, HashMap<String, ServerItem>>,
    has_baseline: bool,
}

impl KnownItems {
    pub(crate) fn read(store: &Store, server: &str) -> Result<KnownItems, StoreError> {
        let state = store.state();
        let has_baseline = state.server(server)?.is_some_and(|server| server.has_baseline);
        Ok(KnownItems::of(stored_items(store, server)?, has_baseline))
    }

    fn of(items: Vec<ServerItem>, has_baseline: bool) -> KnownItems {
        let mut by_kind: HashMap<ItemKind, HashMap<String, ServerItem>> = HashMap::new();
        for item in items {
            if let Some(kind) = ItemKind::parse(&item.kind) {
                by_kind.entry(kind).or_default().insert(item.name.clone(), item);
            }
        }
        KnownItems { by_kind, has_baseline }
    }

    fn items(&self) -> impl Iterator<Item = &ServerItem> {
        self.by_kind.values().flat_map(HashMap::values)
    }

    fn item(&self, kind: ItemKind, name: &str) -> Option<&ServerItem> {
        self.by_kind.get(&kind)?.get(name)
    }

    fn review_state(
        &self,
        kind: ItemKind,
        name: &str,
        text: &str,
        auto: AutoApprove,
    ) -> ReviewState {
        let approved = self.item(kind, name).and_then(|item| item.approved.as_ref());
        let approved = approved.and_then(|approved| {
            let fingerprint = Fingerprint::parse(&approved.fingerprint)?;
            Some(ApprovedDefinition { fingerprint, definition: &approved.text })
        });
        review_state(kind, text, approved.as_ref(), auto)
    }

    /// Reports whether a tool's definition is the approved one.
    pub(crate) fn approval(&self, tool: &Tool) -> ApprovalState {
        let text = tool.definition().get();
        match self.review_state(ItemKind::Tool, &tool.name, text, AutoApprove::None) {
            ReviewState::Same => ApprovalState::Approved,
            ReviewState::Accepted(_) | ReviewState::Pending(_) => ApprovalState::Pending,
        }
    }
}

/// One item of a server's offer besides its tools.
struct OfferedItem<'a> {
    kind: ItemKind,
    name: String,
    text: &'a str,
    /// The same as JSON, unless it is plain text.
    listed: Option<&'a Raw>,
}

impl OfferedItem<'_> {
    /// Returns the item as clients may be shown it; `None` for instructions.
    fn reviewed(&self, approval: ApprovalState) -> Option<ListedItem> {
        let (kind, name) = (self.kind, self.name.clone());
        let definition = self.listed?.clone();
        Some(ListedItem { kind, name, definition, approval })
    }
}

/// Returns every item besides the tools, with its name. An item without a name cannot be
/// identified, and so cannot be approved.
fn items(extras: &Extras) -> Vec<OfferedItem<'_>> {
    let instructions = extras.instructions.as_deref().map(|text| OfferedItem {
        kind: ItemKind::Instructions,
        name: INSTRUCTIONS.to_owned(),
        text,
        listed: None,
    });
    let listed = extras.lists.iter().flat_map(|ItemList { kind, items }| {
        items.iter().filter_map(|item| {
            let (name, text) = (name(*kind, item)?, item.get());
            Some(OfferedItem { kind: *kind, name, text, listed: Some(item) })
        })
    });
    instructions.into_iter().chain(listed).collect()
}

fn name(kind: ItemKind, item: &Raw) -> Option<String> {
    let members = ObjectMembers::parse(item).ok()?;
    let member = match kind {
        ItemKind::Tool | ItemKind::Prompt | ItemKind::Instructions => "name",
        ItemKind::Template => "uriTemplate",
    };
    serde_json::from_str(members.get(member)?).ok()
}

impl Extras {
    /// Returns the items of a list that was reviewed before.
    pub(crate) fn of_listing(listing: &Listing) -> Extras {
        let Some(offer) = listing.offer() else { return Extras::default() };
        let lists = [ItemKind::Prompt, ItemKind::Template].map(|kind| {
            let items = offer.items().iter().filter(|item| item.kind == kind);
            ItemList { kind, items: items.map(|item| item.definition.clone()).collect() }
        });
        let (resources, resources_changed) = (offer.resources().clone(), offer.resources_changed());
        Extras { instructions: None, lists: lists.into(), resources, resources_changed }
    }

    /// Leaves out the items that exceed the bounds of a definition, and logs why.
    pub(crate) fn bounded(mut self, server: &str) -> Extras {
        let size = self.instructions.as_ref().map_or(0, String::len);
        if size > DEFINITION_BYTES_MAX {
            let excess = DefinitionExcess::Size(size);
            tracing::warn!(server, kind = "instructions", "an item is left out: {excess}");
            self.instructions = None;
        }
        for ItemList { kind, items } in &mut self.lists {
            let mut left_out = Vec::new();
            items.retain(|item| match DefinitionExcess::check(item.get()) {
                Ok(()) => true,
                Err(excess) => {
                    left_out.push(excess);
                    false
                }
            });
            if let Some(first) = left_out.first() {
                let (kind, count) = (kind.as_str(), left_out.len());
                tracing::warn!(
                    server,
                    kind,
                    count,
                    "items are left out, the first because {first}"
                );
            }
        }
        self
    }

    /// Reports whether the server answered a request for items of this kind.
    fn has(&self, kind: ItemKind) -> bool {
        kind == ItemKind::Instructions || self.lists.iter().any(|list| list.kind == kind)
    }
}

/// The comparison of one list.
struct Comparison<'a> {
    known: &'a KnownItems,
    auto: AutoApprove,
    /// So many items have come and gone that new ones wait even if `auto` accepts them.
    is_flooded: bool,
    takes_baseline: bool,
    /// The list shows which items are gone and which are back. One client's list does not, since
    /// others may see more; nor does one that was reviewed before, since newer lists may have
    /// followed: two that correct each other would never settle.
    is_whole: bool,
}

/// The result of comparing one item.
#[derive(Clone, Copy)]
enum ReviewResult {
    Stays,
    Back,
    /// Becomes part of the baseline.
    Begin,
    Accept(AcceptanceReason),
    Wait(ReviewChange),
}

impl ReviewResult {
    fn approval(self) -> ApprovalState {
        match self {
            ReviewResult::Stays
            | ReviewResult::Back
            | ReviewResult::Begin
            | ReviewResult::Accept(_) => ApprovalState::Approved,
            ReviewResult::Wait(_) => ApprovalState::Pending,
        }
    }
}

impl<'a> Comparison<'a> {
    fn new(
        known: &'a KnownItems,
        terms: ApprovalTerms,
        scope: ListScope,
        is_whole: bool,
    ) -> Comparison<'a> {
        let auto = if terms.quarantined { AutoApprove::None } else { terms.auto_approve };
        let takes_baseline =
            scope == ListScope::Shared && !terms.quarantined && !known.has_baseline;
        let is_flooded = known.items().filter(|item| !item.listed).count() > GONE_ITEMS_MAX;
        Comparison { known, auto, is_flooded, takes_baseline, is_whole }
    }

    fn run(&self, reviewer: &Reviewer, offer: Offer) -> Review {
        let mut results = Vec::new();
        let listing = reviewer.listing(offer.tools, offer.info, |tool| {
            let result = self.compare(ItemKind::Tool, &tool.name, tool.definition().get());
            results.push(result);
            result.approval()
        });
        let tools = listing.tools().iter().zip(results);
        let mut changed: Vec<ItemUpdate<'_>> = tools
            .filter_map(|(tool, result)| {
                self.change(ItemKind::Tool, &tool.name, tool.definition().get(), result)
            })
            .collect();
        let items = items(&offer.extras);
        let mut reviewed = self.unlisted(&offer.extras);
        for item in &items {
            let OfferedItem { kind, name, text, .. } = item;
            let result = self.compare(*kind, name, text);
            changed.extend(self.change(*kind, name, text, result));
            reviewed.extend(item.reviewed(result.approval()));
        }
        announcement::announce(reviewer, &listing, &changed);
        let is_kept = self.keep(reviewer, &changed, |item| match ItemKind::parse(&item.kind) {
            Some(ItemKind::Tool) => listing.tool(&item.name).is_some(),
            Some(kind) if !offer.extras.has(kind) => true,
            kind => items.iter().any(|known| Some(known.kind) == kind && known.name == item.name),
        });
        let instructions = offer.extras.instructions.as_deref().filter(|text| {
            let result = self.compare(ItemKind::Instructions, INSTRUCTIONS, text);
            result.approval() == ApprovalState::Approved
        });
        let instructions = instructions.map(Into::into);
        let reviewed = ServerOffer::new(reviewed, offer.extras.resources_changed)
            .with_resources(offer.extras.resources);
        let listing = listing.with_offer(reviewed).map_or_else(|| listing.clone(), Arc::new);
        Review { listing, instructions, is_kept }
    }

    /// Returns the approved items of lists that could not be fetched: the last known ones apply.
    fn unlisted(&self, extras: &Extras) -> Vec<ListedItem> {
        let kinds = [ItemKind::Prompt, ItemKind::Template].into_iter();
        let missing = kinds.filter(|kind| !extras.has(*kind));
        let known = missing.filter_map(|kind| Some((kind, self.known.by_kind.get(&kind)?)));
        let mut items: Vec<ListedItem> = known
            .flat_map(|(kind, items)| items.values().map(move |item| (kind, item)))
            .filter(|(_, item)| item.listed && item.pending.is_none())
            .filter_map(|(kind, item)| {
                let definition =
                    RawValue::from_string(item.approved.as_ref()?.text.clone()).ok()?;
                let (name, approval) = (item.name.clone(), ApprovalState::Approved);
                Some(ListedItem { kind, name, definition, approval })
            })
            .collect();
        items.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        items
    }

    fn compare(&self, kind: ItemKind, name: &str, text: &str) -> ReviewResult {
        if self.takes_baseline {
            return ReviewResult::Begin;
        }
        match self.known.review_state(kind, name, text, self.auto) {
            ReviewState::Same => match self.known.item(kind, name) {
                Some(item) if !item.listed || item.pending.is_some() => ReviewResult::Back,
                Some(_) | None => ReviewResult::Stays,
            },
            ReviewState::Accepted(AcceptanceReason::AutoNew) if self.is_flooded => {
                ReviewResult::Wait(ReviewChange::New)
            }
            ReviewState::Accepted(why) => ReviewResult::Accept(why),
            ReviewState::Pending(change) => ReviewResult::Wait(change),
        }
    }

    /// Returns the update to store; `None` if the store already has it.
    fn change<'t>(
        &self,
        kind: ItemKind,
        name: &'t str,
        text: &'t str,
        result: ReviewResult,
    ) -> Option<ItemUpdate<'t>> {
        let known = self.known.item(kind, name);
        let pending = known.and_then(|item| item.pending.as_ref());
        let is_known = |fingerprint: &str| {
            known.is_some_and(|item| item.listed)
                && pending.is_some_and(|pending| pending.fingerprint == fingerprint)
        };
        let fingerprint = match result {
            ReviewResult::Stays => return None,
            ReviewResult::Back => String::new(),
            ReviewResult::Begin | ReviewResult::Accept(_) | ReviewResult::Wait(_) => {
                kind.fingerprint(text).to_string()
            }
        };
        match result {
            // Another list may still show the pending item.
            ReviewResult::Back if !self.is_whole => None,
            ReviewResult::Wait(_) if is_known(&fingerprint) => None,
            ReviewResult::Stays
            | ReviewResult::Back
            | ReviewResult::Begin
            | ReviewResult::Accept(_)
            | ReviewResult::Wait(_) => Some(ItemUpdate { kind, name, text, result, fingerprint }),
        }
    }

    /// Stores the changes. If the store fails, the error is logged and the next list tries again;
    /// the decisions made here hold regardless.
    fn keep(
        &self,
        reviewer: &Reviewer,
        changed: &[ItemUpdate<'_>],
        is_listed: impl Fn(&ServerItem) -> bool,
    ) -> bool {
        let server = &*reviewer.server;
        let mut changes: Vec<ItemChange<'_>> = changed.iter().map(ItemUpdate::entry).collect();
        if self.is_whole {
            let gone = self.known.items().filter(|item| item.listed && !is_listed(item));
            changes
                .extend(gone.map(|item| ItemChange::Gone { kind: &item.kind, name: &item.name }));
        }
        let kept = reviewer.store.state().record_items(server, &changes, self.takes_baseline);
        if let Err(error) = &kept {
            tracing::error!(server, "cannot store what the server lists: {error}");
            if self.takes_baseline {
                let mut unsaved_baseline =
                    reviewer.unsaved_baseline.lock().unwrap_or_else(PoisonError::into_inner);
                *unsaved_baseline = Some(changed.iter().map(ItemUpdate::approved).collect());
            }
        }
        kept.is_ok()
    }
}

struct ItemUpdate<'a> {
    kind: ItemKind,
    name: &'a str,
    text: &'a str,
    result: ReviewResult,
    fingerprint: String,
}

impl ItemUpdate<'_> {
    /// The item as the store would return it.
    fn approved(&self) -> ServerItem {
        let (text, fingerprint) = (self.text.to_owned(), self.fingerprint.clone());
        ServerItem {
            kind: self.kind.as_str().to_owned(),
            name: self.name.to_owned(),
            approved: Some(Definition { text, fingerprint, at: Timestamp::now() }),
            pending: None,
            listed: true,
        }
    }

    fn entry(&self) -> ItemChange<'_> {
        let ItemUpdate { kind, name, text, result, fingerprint } = self;
        let kind = kind.as_str();
        match result {
            ReviewResult::Stays | ReviewResult::Back => ItemChange::Back { kind, name },
            ReviewResult::Begin | ReviewResult::Accept(_) => {
                ItemChange::Approved { kind, name, text, fingerprint }
            }
            ReviewResult::Wait(_) => ItemChange::Pending { kind, name, text, fingerprint },
        }
    }
}
