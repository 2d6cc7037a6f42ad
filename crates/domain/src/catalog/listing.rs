//! The tools that one server listed, their approvals, and their search data.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use embed::Vector;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::offer::ServerOffer;
use super::plans::{self, PlanSource, ToolPlan, ToolPlans};
use crate::policy::ApprovalState;
use crate::tool::{Source, Tool};
use search::{Document, Segment, ToolText};
use text::document::Shortlist;
use touch::targets::KnownKeys;

pub struct Listing {
    /// In the server's order.
    tools: Vec<Arc<Tool>>,
    /// One per tool.
    approvals: Vec<ApprovalState>,
    /// Definitions that are omitted or locked, with the reason.
    pub faults: Vec<String>,
    by_name: HashMap<String, usize>,
    /// The approved tools; the text of others must not be searchable.
    segment: Arc<Segment>,
    /// The position in `tools` of each tool of the segment.
    places: Vec<u32>,
    /// Every tool, by name only.
    names: OnceLock<Arc<Segment>>,
    /// The fingerprint of everything that the server listed, including faulty parts.
    told: u64,
    plans: Arc<ToolPlans>,
    /// The keys of each tool of a list without plans, read at its first call.
    keys: OnceLock<Box<[KnownKeys]>>,
    /// The other items of the server; `None` if they are not reviewed.
    offer: Option<Arc<ServerOffer>>,
}

/// Returns a hash that detects an unchanged list; it is not used for trust.
fn fingerprint(definitions: &[Box<RawValue>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for definition in definitions {
        definition.get().hash(&mut hasher);
    }
    hasher.finish()
}

impl Listing {
    /// Creates a list whose tools need no approval.
    pub fn new(source: &Source, definitions: Vec<Box<RawValue>>) -> Listing {
        Listing::reviewed(source, definitions, |_| ApprovalState::Approved)
    }

    pub fn reviewed(
        source: &Source,
        definitions: Vec<Box<RawValue>>,
        review: impl FnMut(&Tool) -> ApprovalState,
    ) -> Listing {
        let told = fingerprint(&definitions);
        let mut tools: Vec<Arc<Tool>> = Vec::with_capacity(definitions.len());
        let mut faults = Shortlist::default();
        let mut by_name = HashMap::with_capacity(definitions.len());
        for definition in definitions {
            match Tool::parse(source.clone(), definition) {
                Ok(tool) if by_name.contains_key(&tool.name) => {
                    faults.push(format!(
                        "tool '{}' is listed twice; only the first entry is used",
                        tool.name
                    ));
                }
                Ok(tool) => {
                    if let Some(excess) = tool.schema_excess() {
                        faults.push(format!(
                            "tool '{}' is locked; its input schema cannot be checked: {excess}",
                            tool.name
                        ));
                    }
                    by_name.insert(tool.name.clone(), tools.len());
                    tools.push(Arc::new(tool));
                }
                Err(fault) => faults.push(fault.to_string()),
            }
        }
        let Shortlist { list: mut faults, left_out } = faults;
        if left_out > 0 {
            faults.push(format!("{left_out} more faults are not shown"));
        }
        Listing::of(tools, faults, by_name, told, review)
    }

    /// Returns the same list with new approvals, or `None` if they are unchanged.
    pub fn review(&self, mut review: impl FnMut(&Tool) -> ApprovalState) -> Option<Listing> {
        let approvals: Vec<ApprovalState> =
            self.tools.iter().map(|tool| affordable(tool, review(tool))).collect();
        if approvals == self.approvals {
            return None;
        }
        let mut approvals = approvals.into_iter();
        let (tools, by_name) = (self.tools.clone(), self.by_name.clone());
        let next = |_: &Tool| approvals.next().unwrap_or(ApprovalState::Unknown);
        let reviewed = Listing::of(tools, self.faults.clone(), by_name, self.told, next);
        Some(Listing { plans: self.plans.clone(), offer: self.offer.clone(), ..reviewed })
    }

    /// Returns the same list with a plan for each tool, for all its calls.
    #[must_use]
    pub fn planned(self, source: &PlanSource) -> Listing {
        Listing { plans: Arc::new(ToolPlans::new(source, &self.tools)), ..self }
    }

    /// Returns the same list with other plans, or `None` if they would be the same.
    pub fn planned_anew(&self, source: &PlanSource) -> Option<Listing> {
        if self.plans.source() == source {
            return None;
        }
        Some(self.same().planned(source))
    }

    /// Returns the prompts and templates that were listed with the tools, if they are reviewed.
    pub fn offer(&self) -> Option<&Arc<ServerOffer>> {
        self.offer.as_ref()
    }

    /// Returns the same tools with other prompts and templates, or `None` if these are unchanged.
    pub fn with_offer(&self, offer: ServerOffer) -> Option<Listing> {
        if self.offer.as_deref() == Some(&offer) {
            return None;
        }
        Some(Listing { offer: Some(Arc::new(offer)), ..self.same() })
    }

    /// Returns the same list, with the same search data.
    fn same(&self) -> Listing {
        Listing {
            tools: self.tools.clone(),
            approvals: self.approvals.clone(),
            faults: self.faults.clone(),
            by_name: self.by_name.clone(),
            segment: self.segment.clone(),
            places: self.places.clone(),
            names: self.names.clone(),
            told: self.told,
            plans: self.plans.clone(),
            keys: self.keys.clone(),
            offer: self.offer.clone(),
        }
    }

    /// Returns what the plans were compiled from.
    pub fn plan_source(&self) -> &PlanSource {
        self.plans.source()
    }

    /// Returns the plan of a listed tool, whatever its approval.
    pub fn plan(&self, name: &str) -> Option<&ToolPlan> {
        let place = *self.by_name.get(name)?;
        self.plans.get(place, &self.tools[place])
    }

    /// Returns the arguments that a tool of a list without plans does not have.
    pub fn unknown_keys(&self, name: &str, arguments: &Map<String, Value>) -> BTreeSet<String> {
        let Some(place) = self.by_name.get(name).copied() else { return BTreeSet::new() };
        let of_tool =
            |tool: &Arc<Tool>| KnownKeys::of(&plans::properties(tool.input_schema_json()));
        let keys = self.keys.get_or_init(|| self.tools.iter().map(of_tool).collect());
        keys[place].unknown(arguments)
    }

    fn of(
        tools: Vec<Arc<Tool>>,
        faults: Vec<String>,
        by_name: HashMap<String, usize>,
        told: u64,
        mut review: impl FnMut(&Tool) -> ApprovalState,
    ) -> Listing {
        let approvals: Vec<ApprovalState> =
            tools.iter().map(|tool| affordable(tool, review(tool))).collect();
        let approved = |place: &u32| approvals[*place as usize] == ApprovalState::Approved;
        let places: Vec<u32> = (0..tools.len() as u32).filter(approved).collect();
        let segment = Arc::new(segment(places.iter().map(|place| &tools[*place as usize])));
        Listing {
            tools,
            approvals,
            faults,
            by_name,
            segment,
            places,
            names: OnceLock::new(),
            told,
            plans: Arc::default(),
            keys: OnceLock::new(),
            offer: None,
        }
    }

    /// Reports whether a newer list is identical to this one.
    pub fn is_of(&self, definitions: &[Box<RawValue>]) -> bool {
        self.told == fingerprint(definitions)
    }

    /// Returns a hash that changes with the list.
    pub fn hash(&self) -> u64 {
        self.told
    }

    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name).map(|place| &self.tools[*place])
    }

    /// Returns the approval of a listed tool.
    pub fn approval(&self, name: &str) -> Option<ApprovalState> {
        self.by_name.get(name).map(|place| self.approvals[*place])
    }

    pub fn has_unapproved(&self) -> bool {
        self.places.len() < self.tools.len()
    }

    pub(super) fn at(&self, place: usize) -> (&Arc<Tool>, ApprovalState) {
        (&self.tools[place], self.approvals[place])
    }

    pub(super) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Reports whether the approved tools have no vectors yet.
    pub fn lacks_vectors(&self) -> bool {
        self.segment.lacks_vectors()
    }

    pub(super) fn has_vectors(&self) -> bool {
        !self.places.is_empty() && !self.lacks_vectors()
    }

    /// Returns the text of each approved tool that its vector is made from. Unapproved text gets no
    /// vector.
    pub fn tool_texts(&self, server: &str) -> Vec<ToolText> {
        let approved = self.places.iter().map(|place| &self.tools[*place as usize]);
        let text = |tool: &Arc<Tool>| {
            let description = tool.description();
            ToolText::new(server, &document(tool, &description))
        };
        approved.map(text).collect()
    }

    /// Sets the vectors of the approved tools, in the order of [`Listing::tool_texts`].
    pub fn set_vectors(&self, vectors: Vec<Vector>) {
        self.segment.set_vectors(vectors);
    }

    pub(super) fn approved_count(&self) -> usize {
        self.places.len()
    }

    /// Returns the position among the approved tools of a tool by its name.
    pub(super) fn approved_place(&self, name: &str) -> Option<u32> {
        let place = *self.by_name.get(name)? as u32;
        self.places.binary_search(&place).ok().map(|approved| approved as u32)
    }

    /// Returns the position in `tools` of a tool of the segment.
    pub(super) fn place(&self, indexed: u32) -> usize {
        self.places[indexed as usize] as usize
    }

    pub(super) fn names(&self) -> &Arc<Segment> {
        self.names.get_or_init(|| {
            let documents: Vec<Document<'_>> =
                self.tools.iter().map(|tool| Document::named(&tool.name)).collect();
            Arc::new(Segment::build(&documents))
        })
    }
}

impl Default for Listing {
    fn default() -> Self {
        Listing::new(&Source::Builtin, Vec::new())
    }
}

/// Marks a tool with a schema that is too costly; no approval overrides that.
fn affordable(tool: &Tool, approval: ApprovalState) -> ApprovalState {
    match approval {
        ApprovalState::Approved if tool.schema_excess().is_some() => ApprovalState::TooCostly,
        approval => approval,
    }
}

fn segment<'a>(tools: impl Iterator<Item = &'a Arc<Tool>>) -> Segment {
    let tools: Vec<(&Arc<Tool>, String)> = tools.map(|tool| (tool, tool.description())).collect();
    let documents: Vec<Document<'_>> =
        tools.iter().map(|(tool, description)| document(tool, description)).collect();
    Segment::build(&documents)
}

fn document<'a>(tool: &'a Tool, description: &'a str) -> Document<'a> {
    Document { name: &tool.name, description, input_schema: tool.input_schema_json() }
}
