//! All servers with their tools, as one immutable snapshot. A change creates a new snapshot that
//! shares everything unchanged.

mod exposed_offers;
mod indexes;
mod listing;
mod offer;
mod plans;
mod recent;
mod server;

use std::sync::{Arc, OnceLock};

use crate::caller::{Caller, TokenSurface};
use crate::exposed::ExposedTools;
use crate::policy::{Lock, Obstacle, ServerRules};
use crate::tool::{Tool, ToolName};
use search::{Match, MatchedWord, SearchQuery};
use text::near;

pub use exposed_offers::{ExposedOffers, PromptName, ResourcePage};
use indexes::Indexes;
pub use listing::Listing;
pub use offer::{ListedItem, ListedResource, ServerOffer};
pub use plans::{PlanSource, ToolPlan};
use recent::Recent;
use server::NEAR_MAX;
pub use server::{Server, UnknownToolName};

/// A filter on search results, applied in addition to what the caller may see.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolFilter {
    pub read_only_only: bool,
    pub exclude_destructive: bool,
    pub exclude_open_world: bool,
}

impl ToolFilter {
    fn keeps(self, tool: &Tool) -> bool {
        use crate::tool::Class;
        let class = tool.hints.class();
        // A tool that does not say whether it reaches the open world is assumed to.
        let open_world = tool.hints.open_world.unwrap_or(true);
        !(self.read_only_only && class != Class::Read
            || self.exclude_destructive && class == Class::Destructive
            || self.exclude_open_world && open_world)
    }
}

pub struct Hit<'a> {
    pub server: &'a Server,
    pub tool: &'a Tool,
    pub score: f32,
    /// The similarity in meaning, from -1 to 1, if the search had one.
    pub similarity: Option<f32>,
}

/// The number of tools that can be found by their text, and of those with a vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VectorCoverage {
    pub tools: usize,
    pub vectors: usize,
}

/// A tool that matches the query but that the caller cannot call.
pub struct LockedHit<'a> {
    pub server: &'a Server,
    pub tool: &'a Tool,
    pub obstacle: Obstacle,
    /// True if its description has been approved.
    pub shows_text: bool,
}

#[derive(Default)]
pub struct Catalog {
    /// Sorted by name.
    servers: Vec<Arc<Server>>,
    indexes: Arc<Indexes>,
    /// For unrestricted callers, as most are.
    all: OnceLock<Arc<ExposedTools>>,
    /// For other callers, by their rights.
    restricted: Recent<Caller, ExposedTools>,
    /// The same for everything besides tools.
    offers: OnceLock<Arc<ExposedOffers>>,
    restricted_offers: Recent<Caller, ExposedOffers>,
}

/// The version of the tools shown to a pass-through client. Two are equal as long as nothing has
/// changed for it.
#[derive(Clone, Default)]
pub struct CatalogVersion(Vec<(Arc<Listing>, Arc<ServerRules>)>);

impl PartialEq for CatalogVersion {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|((listing, rules), (other, other_rules))| {
                Arc::ptr_eq(listing, other) && rules == other_rules
            })
    }
}

impl Catalog {
    pub fn servers(&self) -> impl Iterator<Item = &Arc<Server>> {
        self.servers.iter()
    }

    pub fn server(&self, name: &str) -> Option<&Arc<Server>> {
        let position = self.servers.binary_search_by(|server| (*server.name).cmp(name)).ok()?;
        Some(&self.servers[position])
    }

    /// Returns a snapshot that adds `server` or replaces the one of the same name.
    pub fn with(&self, server: Server) -> Catalog {
        let mut servers = self.servers.clone();
        let server = Arc::new(server);
        match servers.binary_search_by(|other| other.name.cmp(&server.name)) {
            Ok(position) => {
                let known = &servers[position];
                let same = Arc::ptr_eq(&known.listing, &server.listing)
                    && known.rules.quarantined == server.rules.quarantined;
                servers[position] = server;
                if same {
                    let indexes = self.indexes.clone();
                    return Catalog { servers, indexes, ..Catalog::default() };
                }
            }
            Err(position) => servers.insert(position, server),
        }
        Catalog::build(servers)
    }

    pub fn without(&self, name: &str) -> Catalog {
        Catalog::build(self.servers.iter().filter(|s| &*s.name != name).cloned().collect())
    }

    fn build(servers: Vec<Arc<Server>>) -> Catalog {
        Catalog { servers, ..Catalog::default() }
    }

    /// Builds a caller's search index ahead of the first search; with thousands of tools this takes
    /// milliseconds.
    pub fn prepare(&self, caller: &Caller) {
        let visible = self.visible(caller);
        self.indexes.of(&visible).texts(&self.servers, &visible);
    }

    pub fn is_prepared(&self, caller: &Caller) -> bool {
        self.indexes.of(&self.visible(caller)).is_prepared()
    }

    /// Reports for each server whether the caller can see it.
    fn visible(&self, caller: &Caller) -> Vec<bool> {
        self.servers.iter().map(|server| caller.sees(&server.name)).collect()
    }

    /// Returns every listed tool as a pair of server and tool.
    pub fn tool_names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.servers.iter().flat_map(|server| {
            server.listing.tools().iter().map(|tool| (&*server.name, tool.name.as_str()))
        })
    }

    pub fn tool(&self, name: &ToolName) -> Option<(&Arc<Server>, &Arc<Tool>)> {
        let server = self.server(&name.server)?;
        Some((server, server.listing.tool(&name.tool)?))
    }

    /// Returns every tool that the caller may see and call, as `server__tool` or under its server's
    /// name for it.
    pub fn all(&self, caller: &Caller) -> Arc<ExposedTools> {
        let exposed = || {
            let visible = self.servers.iter().filter(|server| caller.sees(&server.name));
            let tools = visible.flat_map(|server| {
                let seen = server.tools().filter(|(t, _)| caller.sees_tool(&server.name, &t.name));
                seen.map(|(tool, lock)| {
                    let obstacle =
                        Obstacle::of(caller, TokenSurface::Passthrough, lock, tool.hints);
                    (&*server.name, server.names, &**tool, obstacle)
                })
            });
            ExposedTools::new(tools, || self.offers(caller).addresses.clone())
        };
        if caller.is_unrestricted() {
            return self.all.get_or_init(|| Arc::new(exposed())).clone();
        }
        self.restricted.get(|known| known.has_rights_of(caller), || (caller.clone(), exposed()))
    }

    /// Returns everything besides tools that the caller may see, of all servers.
    pub fn offers(&self, caller: &Caller) -> Arc<ExposedOffers> {
        let exposed = || {
            let visible = self.servers.iter().filter(|server| caller.sees(&server.name));
            ExposedOffers::new(visible, caller)
        };
        if caller.is_unrestricted() {
            return self.offers.get_or_init(|| Arc::new(exposed())).clone();
        }
        let is_same = |known: &Caller| known.has_rights_of(caller);
        self.restricted_offers.get(is_same, || (caller.clone(), exposed()))
    }

    /// Returns the version of one server's tools, or of all.
    pub fn version(&self, server: Option<&str>) -> CatalogVersion {
        let shown = self.servers.iter().filter(|s| server.is_none_or(|name| *s.name == *name));
        CatalogVersion(shown.map(|server| (server.listing.clone(), server.rules.clone())).collect())
    }

    /// Returns the callable tools that best match the query. Scope, locks and filters apply before
    /// ranking. A tool whose name is the query comes first.
    pub fn search<'q>(
        &self,
        caller: &Caller,
        query: impl Into<SearchQuery<'q>>,
        limit: usize,
        filter: ToolFilter,
    ) -> Vec<Hit<'_>> {
        let scope = Scope::new(self, caller, filter);
        let found = self.matches(&scope, query.into(), limit);
        found.iter().map(|found| self.hit(found)).collect()
    }

    /// Returns the same tools, each with the words of the query that it was found by.
    pub fn search_explained(
        &self,
        caller: &Caller,
        query: SearchQuery<'_>,
        limit: usize,
        filter: ToolFilter,
    ) -> Vec<(Hit<'_>, Vec<MatchedWord>)> {
        let scope = Scope::new(self, caller, filter);
        let found = self.matches(&scope, query, limit);
        let indexes = self.indexes.of(&scope.visible);
        let index = indexes.texts(&self.servers, &scope.visible);
        let words = |found: &Match| index.matched_words(query.text, found.segment, found.tool);
        found.iter().map(|found| (self.hit(found), words(found))).collect()
    }

    fn matches(&self, scope: &Scope<'_>, query: SearchQuery<'_>, limit: usize) -> Vec<Match> {
        let keep = |server, tool| scope.by_text(server, tool) == ToolVisibility::Callable;
        let indexes = self.indexes.of(&scope.visible);
        let mut found = indexes.texts(&self.servers, &scope.visible).search(query, limit, keep);
        self.put_named_first(query.text, keep, &mut found);
        found.truncate(limit);
        found
    }

    fn hit(&self, found: &Match) -> Hit<'_> {
        let (server, tool, _) = self.by_text(found);
        Hit { server, tool, score: found.score, similarity: found.similarity }
    }

    /// Puts the tools with exactly the name that the query is at the beginning.
    fn put_named_first(&self, query: &str, keep: impl Fn(u32, u32) -> bool, hits: &mut Vec<Match>) {
        let name = query.trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return;
        }
        let mut named = Vec::new();
        for (segment, server) in (0..).zip(&self.servers) {
            let own = name.strip_prefix(&*server.name).and_then(|rest| rest.strip_prefix(':'));
            let place = |name| server.listing.approved_place(name);
            let place = own.and_then(place).or_else(|| place(name));
            if let Some(tool) = place.filter(|&tool| keep(segment, tool)) {
                let known = hits.iter().position(|hit| (hit.segment, hit.tool) == (segment, tool));
                let similarity = known.and_then(|known| hits.remove(known).similarity);
                named.push(Match { segment, tool, score: 1.0, similarity });
            }
        }
        hits.splice(..0, named);
    }

    /// Returns the servers whose approved tools have no vectors yet.
    pub fn without_vectors(&self) -> impl Iterator<Item = &Arc<Server>> {
        self.servers
            .iter()
            .filter(|server| !server.rules.quarantined && server.listing.lacks_vectors())
    }

    /// Reports whether any tool has a vector.
    pub fn has_vectors(&self) -> bool {
        self.servers.iter().any(|server| server.listing.has_vectors())
    }

    /// Counts the tools that can be found by their text, and those with a vector.
    pub fn vector_coverage(&self) -> VectorCoverage {
        let searchable = self.servers.iter().filter(|server| !server.rules.quarantined);
        searchable.fold(VectorCoverage::default(), |sum, server| {
            let tools = server.listing.approved_count();
            let vectors = if server.listing.lacks_vectors() { 0 } else { tools };
            VectorCoverage { tools: sum.tools + tools, vectors: sum.vectors + vectors }
        })
    }

    /// Returns the matching tools that the caller cannot call, those pending review first.
    /// Unapproved tools are matched by name only, others by their text.
    pub fn search_locked<'q>(
        &self,
        caller: &Caller,
        query: impl Into<SearchQuery<'q>>,
        limit: usize,
        filter: ToolFilter,
    ) -> Vec<LockedHit<'_>> {
        let query = query.into();
        let scope = Scope::new(self, caller, filter);
        let indexes = self.indexes.of(&scope.visible);
        let texts = indexes.texts(&self.servers, &scope.visible);
        let names = indexes.names(&self.servers, &scope.visible);
        let is_barred = |visibility: ToolVisibility, distrusts| match visibility {
            ToolVisibility::Barred(obstacle) => obstacle.distrusts_text() == distrusts,
            ToolVisibility::Callable | ToolVisibility::Hidden => false,
        };
        let waits = |server, tool| is_barred(scope.by_name(server, tool), true);
        let is_off = |server, tool| is_barred(scope.by_text(server, tool), false);
        // Locked for another reason and also not approved.
        let is_off_and_waits = |server, tool| {
            is_barred(scope.by_name(server, tool), false) && !scope.is_approved(server, tool)
        };
        let waiting = names.search(query, limit, waits);
        let mut left = limit - waiting.len();
        let off = texts.search(query, left, is_off);
        left -= off.len();
        let both = names.search(query, left, is_off_and_waits);
        let found = waiting.iter().map(|hit| (self.by_name(hit), false));
        let found = found.chain(off.iter().map(|hit| (self.by_text(hit), true)));
        let found = found.chain(both.iter().map(|hit| (self.by_name(hit), false)));
        found
            .filter_map(|((server, tool, lock), shows_text)| {
                let obstacle = Obstacle::of(caller, TokenSurface::Discovery, lock, tool.hints)?;
                Some(LockedHit { server, tool, obstacle, shows_text })
            })
            .collect()
    }

    fn by_text(&self, hit: &Match) -> (&Server, &Tool, Lock) {
        let server = &self.servers[hit.segment as usize];
        let (tool, lock) = server.at(server.listing.place(hit.tool));
        (server, tool, lock)
    }

    fn by_name(&self, hit: &Match) -> (&Server, &Tool, Lock) {
        let server = &self.servers[hit.segment as usize];
        let (tool, lock) = server.at(hit.tool as usize);
        (server, tool, lock)
    }

    /// Suggests names that a caller may have meant.
    pub fn near(&self, caller: &Caller, name: &ToolName) -> Vec<String> {
        let visible = || self.servers.iter().filter(|server| caller.sees(&server.name));
        let in_server = |server: &Server| {
            // The name of an unapproved tool is unreviewed text.
            let shown = server.tools().filter(|(tool, lock)| {
                let is_safe = *lock == Lock::Callable || tool.safe_name() == tool.name.as_str();
                is_safe && !tool.is_for_apps
            });
            let names = shown.map(|(tool, _)| tool.name.as_str());
            let names = names.filter(|tool| caller.sees_tool(&server.name, tool));
            near::names(&name.tool, names, NEAR_MAX)
                .into_iter()
                .map(|tool| format!("{}:{tool}", server.name))
                .collect::<Vec<_>>()
        };
        if let Some(server) = visible().find(|server| *server.name == *name.server) {
            return in_server(server);
        }
        let servers = near::names(&name.server, visible().map(|server| &*server.name), NEAR_MAX);
        let mut names: Vec<String> = visible()
            .filter(|server| {
                let has_it = || server.listing.tool(&name.tool).is_some();
                servers.contains(&&*server.name) || has_it()
            })
            .flat_map(|server| in_server(server))
            .collect();
        names.truncate(NEAR_MAX);
        names
    }

    pub fn near_servers(&self, caller: &Caller, name: &str) -> Vec<String> {
        let visible = self.servers.iter().filter(|server| caller.sees(&server.name));
        near::names(name, visible.map(|server| &*server.name), NEAR_MAX)
            .into_iter()
            .map(str::to_owned)
            .collect()
    }
}

/// The tools that one caller can find.
struct Scope<'a> {
    catalog: &'a Catalog,
    caller: &'a Caller,
    filter: ToolFilter,
    /// Per server.
    visible: Vec<bool>,
}

impl<'a> Scope<'a> {
    fn new(catalog: &'a Catalog, caller: &'a Caller, filter: ToolFilter) -> Scope<'a> {
        Scope { catalog, caller, filter, visible: catalog.visible(caller) }
    }

    fn by_text(&self, server: u32, tool: u32) -> ToolVisibility {
        self.visibility(server, |server| server.listing.place(tool))
    }

    fn by_name(&self, server: u32, tool: u32) -> ToolVisibility {
        self.visibility(server, |_| tool as usize)
    }

    fn is_approved(&self, server: u32, tool: u32) -> bool {
        self.catalog.servers[server as usize].is_approved(tool as usize)
    }

    fn visibility(&self, server: u32, place: impl FnOnce(&Server) -> usize) -> ToolVisibility {
        if !self.visible[server as usize] {
            return ToolVisibility::Hidden;
        }
        let server = &self.catalog.servers[server as usize];
        let (tool, lock) = server.at(place(server));
        let is_shown = !tool.is_for_apps && self.filter.keeps(tool);
        if !is_shown || !self.caller.sees_tool(&server.name, &tool.name) {
            return ToolVisibility::Hidden;
        }
        match Obstacle::of(self.caller, TokenSurface::Discovery, lock, tool.hints) {
            None => ToolVisibility::Callable,
            Some(obstacle) => ToolVisibility::Barred(obstacle),
        }
    }
}

/// The visibility of a tool to one caller.
#[derive(PartialEq, Eq)]
enum ToolVisibility {
    /// It must not be found.
    Hidden,
    Callable,
    Barred(Obstacle),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::value::RawValue;

    use super::*;
    use crate::caller::{Operations, Servers, UnannotatedRule};
    use crate::config::ToolRules;
    use crate::policy::ApprovalState;
    use crate::tool::Source;
    use crate::upstream::UpstreamState;

    fn server(name: &str, rules: ServerRules, tools: &[&str]) -> Server {
        let source = Source::Mcp(name.into());
        let definitions =
            tools.iter().map(|tool| RawValue::from_string((*tool).to_owned()).unwrap()).collect();
        let listing = Arc::new(Listing::new(&source, definitions));
        Server::new(name.into(), "stdio", Arc::new(rules), UpstreamState::Ready, listing)
    }

    fn catalog() -> Catalog {
        let rules = ServerRules {
            tools: ToolRules::Except(BTreeSet::from(["drop_table".to_owned()])),
            ..ServerRules::default()
        };
        Catalog::default()
            .with(server(
                "files",
                ServerRules::default(),
                &[
                    r#"{"name":"read_file","description":"Read a file","annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
                    r#"{"name":"delete_file","description":"Delete a file","annotations":{"destructiveHint":true}}"#,
                    r#"{"name":"touch_file","description":"Touch a file"}"#,
                ],
            ))
            .with(server(
                "db",
                rules,
                &[
                    r#"{"name":"drop_table","description":"Drop a table"}"#,
                    r#"{"name":"list_tables","description":"List every table"}"#,
                    r#"{"name":"list_tables","description":"twice"}"#,
                    r#"{"description":"no name"}"#,
                ],
            ))
    }

    fn found(catalog: &Catalog, caller: &Caller, query: &str, filter: ToolFilter) -> Vec<String> {
        let mut names: Vec<String> = catalog
            .search(caller, query, 10, filter)
            .iter()
            .map(|hit| hit.tool.name.clone())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn locked_and_hidden_tools_take_no_slot() {
        let catalog = catalog();
        let admin = Caller::admin();
        assert_eq!(found(&catalog, &admin, "table", ToolFilter::default()), ["list_tables"]);
        let mut caller = Caller::agent("t");
        caller.servers = Servers::Only(BTreeSet::from(["db".to_owned()]));
        assert!(found(&catalog, &caller, "file", ToolFilter::default()).is_empty());
        assert!(catalog.near(&caller, &ToolName::parse("files:raed_file").unwrap()).is_empty());
    }

    #[test]
    fn tools_that_a_token_can_never_call_are_not_offered() {
        let catalog = catalog();
        let reader = Caller {
            operations: Operations { read: true, ..Operations::NONE },
            unannotated: UnannotatedRule::Deny,
            ..Caller::agent("t")
        };
        assert_eq!(found(&catalog, &reader, "file", ToolFilter::default()), ["read_file"]);
        let barred = catalog.search_locked(&reader, "file", 10, ToolFilter::default());
        let mut barred: Vec<(&str, &str)> =
            barred.iter().map(|hit| (&*hit.tool.name, hit.obstacle.as_str())).collect();
        barred.sort_unstable();
        assert_eq!(barred, [("delete_file", "not_permitted"), ("touch_file", "not_permitted")]);
        let all = |caller: &Caller| catalog.all(caller).list.get().matches("\"name\"").count();
        assert_eq!((all(&reader), all(&Caller::admin())), (1, 4));
        let server = catalog.server("files").unwrap();
        assert_eq!(server.list(&reader).get().matches("\"name\"").count(), 1);
        // The right to write covers reads that are declared as writes, but not on pass-through.
        let writer = Caller {
            operations: Operations { write: true, ..Operations::NONE },
            ..Caller::agent("w")
        };
        let writable = found(&catalog, &writer, "file", ToolFilter::default());
        assert_eq!(writable, ["read_file", "touch_file"]);
        assert!(!catalog.all(&writer).list.get().contains("read_file"));
    }

    #[test]
    fn servers_hidden_from_a_caller_do_not_affect_scores() {
        let catalog = catalog();
        let mut caller = Caller::agent("t");
        caller.servers = Servers::Only(BTreeSet::from(["db".to_owned()]));
        let alone = catalog.without("files");
        for query in ["list table", "files", "file table", "every"] {
            let score = |catalog: &Catalog| -> Vec<(String, String)> {
                let hits = catalog.search(&caller, query, 10, ToolFilter::default());
                hits.iter().map(|hit| (hit.tool.name.clone(), hit.score.to_string())).collect()
            };
            assert_eq!(score(&catalog), score(&alone), "{query}");
        }
        assert!(catalog.is_prepared(&caller) && !catalog.is_prepared(&Caller::admin()));
    }

    #[test]
    fn indexes_are_kept_for_a_few_sets_of_servers() {
        let names: Vec<String> = (0..20).map(|n| format!("s{n:02}")).collect();
        let catalog = names.iter().fold(Catalog::default(), |catalog, name| {
            catalog.with(server(name, ServerRules::default(), &[r#"{"name":"t"}"#]))
        });
        let sees = |name: &String| {
            let servers = Servers::Only(BTreeSet::from([name.clone()]));
            Caller { servers, ..Caller::agent("t") }
        };
        for name in &names {
            let hits = catalog.search(&sees(name), "t", 10, ToolFilter::default());
            assert_eq!(hits.iter().map(|hit| &*hit.server.name).collect::<Vec<_>>(), [name]);
        }
        let kept = names.iter().rev().take_while(|name| catalog.is_prepared(&sees(name))).count();
        assert_eq!(kept, 8);
    }

    #[test]
    fn filters_read_the_hints() {
        let catalog = catalog();
        let admin = Caller::admin();
        let filter = |read_only_only, exclude_destructive, exclude_open_world| {
            let filter = ToolFilter { read_only_only, exclude_destructive, exclude_open_world };
            found(&catalog, &admin, "file", filter)
        };
        assert_eq!(filter(true, false, false), ["read_file"]);
        assert_eq!(filter(false, true, false), ["read_file", "touch_file"]);
        assert_eq!(filter(false, false, true), ["read_file"]);
    }

    #[test]
    fn faulty_definitions_are_omitted_and_reported() {
        let catalog = catalog();
        let listing = &catalog.server("db").unwrap().listing;
        assert_eq!(listing.tools().len(), 2);
        assert_eq!(listing.faults.len(), 2);
        let same = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let faulty = vec![same(r#"{"name":"a"}"#), same(r#"{"name":""}"#)];
        let relisted = Listing::new(&Source::Builtin, faulty.clone());
        assert!(relisted.is_of(&faulty), "faults that were told are no news");
        assert!(!relisted.is_of(&faulty[..1]));
        assert_eq!(listing.tool("list_tables").unwrap().description(), "List every table");
    }

    #[test]
    fn rules_naming_unlisted_tools_are_reported_with_suggestions() {
        let rules = |name: &str| ServerRules {
            tools: ToolRules::Except(BTreeSet::from([name.to_owned()])),
            ..ServerRules::default()
        };
        let tools = [r#"{"name":"drop_table"}"#, r#"{"name":"list_tables"}"#];
        let told = |name, tools: &[&str]| server("db", rules(name), tools).misnamed();
        assert!(told("drop_table", &tools).is_empty());
        let [one] = &told("drop_tabel", &tools)[..] else { panic!("one name is wrong") };
        let text = "disabled_tools names 'drop_tabel', but the server lists no such tool; did you \
                    mean 'drop_table'?";
        assert_eq!(one.to_string(), text);
        assert!(told("drop_tabel", &[]).is_empty(), "nothing is known yet");
    }

    #[test]
    fn unapproved_tools_are_found_only_by_name() {
        let approvals = |tool: &Tool| match tool.name.as_str() {
            "read_file" => ApprovalState::Approved,
            "shred_file" => ApprovalState::Pending,
            _ => ApprovalState::Unknown,
        };
        let source = Source::Mcp("files".into());
        let definitions = [
            r#"{"name":"shred_file","description":"secretly elephant"}"#,
            r#"{"name":"read_file","description":"Read an elephant"}"#,
            r#"{"name":"move_file","description":"elephant"}"#,
        ]
        .map(|text| RawValue::from_string(text.to_owned()).unwrap());
        let listing = Arc::new(Listing::reviewed(&source, definitions.to_vec(), approvals));
        let state = UpstreamState::Ready;
        let server = Server::new("files".into(), "stdio", Arc::default(), state, listing.clone());
        let catalog = Catalog::default().with(server);
        let admin = Caller::admin();
        let locked = |catalog: &Catalog, query, limit| -> Vec<(String, &'static str)> {
            let hits = catalog.search_locked(&admin, query, limit, ToolFilter::default());
            hits.iter().map(|hit| (hit.tool.name.clone(), hit.obstacle.as_str())).collect()
        };
        assert_eq!(found(&catalog, &admin, "elephant", ToolFilter::default()), ["read_file"]);
        assert!(locked(&catalog, "elephant", 10).is_empty(), "the text of others is not searched");
        let expected = [("move_file", "disabled_unknown"), ("shred_file", "pending_approval")];
        let mut by_name = locked(&catalog, "file", 10);
        by_name.sort();
        assert_eq!(by_name, expected.map(|(name, status)| (name.to_owned(), status)));
        assert_eq!(locked(&catalog, "file", 1).len(), 1, "the limit holds");

        // In quarantine, even previously approved tools are locked.
        let rules = ServerRules { quarantined: true, ..ServerRules::default() };
        let server =
            Server::new("files".into(), "stdio", Arc::new(rules), UpstreamState::Ready, listing);
        let catalog = catalog.with(server);
        assert!(found(&catalog, &admin, "elephant", ToolFilter::default()).is_empty());
        assert!(locked(&catalog, "elephant", 10).is_empty());
        assert_eq!(locked(&catalog, "file", 10).len(), 3);
    }

    #[test]
    fn only_approved_text_gets_a_vector() {
        let approvals = |tool: &Tool| match tool.name.as_str() {
            "read_file" => ApprovalState::Approved,
            _ => ApprovalState::Pending,
        };
        let definitions = [r#"{"name":"shred_file"}"#, r#"{"name":"read_file"}"#]
            .map(|text| RawValue::from_string(text.to_owned()).unwrap());
        let source = Source::Mcp("files".into());
        let listing = Arc::new(Listing::reviewed(&source, definitions.to_vec(), approvals));
        let with = |quarantined| {
            let rules = Arc::new(ServerRules { quarantined, ..ServerRules::default() });
            let state = UpstreamState::Ready;
            let server = Server::new("files".into(), "stdio", rules, state, listing.clone());
            Catalog::default().with(server)
        };
        let texts: Vec<String> =
            listing.tool_texts("files").into_iter().map(|text| text.text).collect();
        assert_eq!(texts, ["files read file. "]);
        assert_eq!(with(true).without_vectors().count(), 0, "in quarantine, nothing is read");
        assert_eq!(with(true).vector_coverage(), VectorCoverage::default());
        assert_eq!(with(false).without_vectors().count(), 1);
        listing.set_vectors(Vec::new());
        assert!(listing.lacks_vectors(), "too few");
    }

    #[test]
    fn a_tool_whose_name_is_the_query_comes_first() {
        let tools = [
            r#"{"name":"list","description":"file file file"}"#,
            r#"{"name":"file","description":"-"}"#,
        ];
        let catalog = Catalog::default().with(server("s", ServerRules::default(), &tools));
        for query in ["file", " file ", "s:file"] {
            let hits = catalog.search(&Caller::admin(), query, 1, ToolFilter::default());
            let names: Vec<&str> = hits.iter().map(|hit| hit.tool.name.as_str()).collect();
            assert_eq!(names, ["file"], "{query}");
            assert_eq!(hits[0].score, 1.0);
        }
    }

    #[test]
    fn near_names_stay_within_reach() {
        let catalog = catalog();
        let near = |name| catalog.near(&Caller::admin(), &ToolName::parse(name).unwrap());
        assert_eq!(near("files:raed_file"), ["files:read_file"]);
        assert_eq!(near("file:read_file"), ["files:read_file"]);
        assert_eq!(near("disk:read_file"), ["files:read_file"]);
        assert!(near("x:y").is_empty());
    }

    #[test]
    fn unapproved_names_are_suggested_only_if_they_can_carry_no_message() {
        let rules = ServerRules { quarantined: true, ..ServerRules::default() };
        let tools = [r#"{"name":"obey_us"}"#, r#"{"name":"obey us"}"#];
        let near = |rules| {
            let catalog = Catalog::default().with(server("s", rules, &tools));
            catalog.near(&Caller::admin(), &ToolName::parse("s:obey.us").unwrap())
        };
        assert_eq!(near(rules), ["s:obey_us"]);
        assert_eq!(near(ServerRules::default()).len(), 2);
    }

    #[test]
    fn a_state_change_keeps_the_index() {
        let catalog = catalog();
        let server = catalog.server("db").unwrap();
        let waiting = Server::new(
            server.name.clone(),
            server.transport,
            server.rules.clone(),
            UpstreamState::Waiting("gone".to_owned().into()),
            server.listing.clone(),
        );
        let next = catalog.with(waiting);
        assert!(Arc::ptr_eq(&catalog.indexes, &next.indexes));
        assert_eq!(next.server("db").unwrap().state_word(), "error");
        assert!(next.without("db").server("db").is_none());
    }
}
