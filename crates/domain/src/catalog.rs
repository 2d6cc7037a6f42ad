//! What can be done: every server with its tools, as one immutable snapshot. A change makes a new
//! snapshot that shares all that stayed the same.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;

use crate::caller::{Caller, Servers};
use crate::exposed::{self, Exposed};
use crate::near;
use crate::policy::{self, Lock, ServerRules};
use crate::search::{Document, Index, Segment};
use crate::tool::{Source, Tool, ToolName};
use crate::upstream::State;

/// Suggestions for a name that is not there.
const NEAR_MAX: usize = 3;

/// The tools of one server as it listed them, with what search needs.
pub struct Listing {
    pub tools: Vec<Arc<Tool>>,
    /// What was left out, and why.
    pub faults: Vec<String>,
    by_name: HashMap<String, usize>,
    segment: Arc<Segment>,
    /// Of all that the server told, the faulty parts included.
    told: u64,
}

/// Tells an unchanged list from another; nothing is trusted because of it.
fn fingerprint(definitions: &[Box<RawValue>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for definition in definitions {
        definition.get().hash(&mut hasher);
    }
    hasher.finish()
}

impl Listing {
    pub fn new(source: &Source, definitions: Vec<Box<RawValue>>) -> Listing {
        let told = fingerprint(&definitions);
        let mut tools: Vec<Arc<Tool>> = Vec::with_capacity(definitions.len());
        let mut faults = Vec::new();
        let mut by_name = HashMap::with_capacity(definitions.len());
        for definition in definitions {
            match Tool::parse(source.clone(), definition) {
                Ok(tool) if by_name.contains_key(&tool.name) => {
                    faults.push(format!(
                        "tool '{}' is listed twice; the first one counts",
                        tool.name
                    ));
                }
                Ok(tool) => {
                    by_name.insert(tool.name.clone(), tools.len());
                    tools.push(Arc::new(tool));
                }
                Err(fault) => faults.push(fault.to_string()),
            }
        }
        let segment = Arc::new(segment(&tools));
        Listing { tools, faults, by_name, segment, told }
    }

    /// Whether these definitions would make the same listing.
    pub fn is_of(&self, definitions: &[Box<RawValue>]) -> bool {
        self.told == fingerprint(definitions)
    }

    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name).map(|index| &self.tools[*index])
    }
}

impl Default for Listing {
    fn default() -> Self {
        Listing::new(&Source::Builtin, Vec::new())
    }
}

fn segment(tools: &[Arc<Tool>]) -> Segment {
    let descriptions: Vec<String> = tools.iter().map(|tool| tool.description()).collect();
    let documents: Vec<Document<'_>> = tools
        .iter()
        .zip(&descriptions)
        .map(|(tool, description)| Document {
            name: &tool.name,
            description,
            input_schema: tool.input_schema_json(),
        })
        .collect();
    Segment::build(&documents)
}

/// One server, as the catalog shows it.
pub struct Server {
    pub name: Arc<str>,
    pub transport: &'static str,
    pub rules: Arc<ServerRules>,
    pub state: State,
    pub listing: Arc<Listing>,
    list: OnceLock<Box<RawValue>>,
}

impl Server {
    pub fn new(
        name: Arc<str>,
        transport: &'static str,
        rules: Arc<ServerRules>,
        state: State,
        listing: Arc<Listing>,
    ) -> Server {
        Server { name, transport, rules, state, listing, list: OnceLock::new() }
    }

    /// The same server with other tools, as one client may see it.
    pub fn with_listing(&self, listing: Arc<Listing>) -> Server {
        let (name, rules, state) = (self.name.clone(), self.rules.clone(), self.state.clone());
        Server::new(name, self.transport, rules, state, listing)
    }

    /// The answer to `tools/list` with the callable tools, each as the server sent it; made once.
    pub fn list(&self) -> &RawValue {
        self.list.get_or_init(|| {
            let tools = self.listing.tools.iter();
            let callable = tools.filter(|tool| self.lock(&tool.name) == Lock::Callable);
            exposed::tools_list(callable.map(|tool| tool.definition().get()))
        })
    }

    pub fn lock(&self, tool: &str) -> Lock {
        policy::lock(&self.rules, tool)
    }

    /// Whether the server as a whole is locked: then nothing that it says reaches a model.
    pub fn is_locked(&self) -> bool {
        self.rules.quarantined || self.rules.disabled
    }

    /// The word for people: a lock on the whole server comes before the connection.
    pub fn state_word(&self) -> &'static str {
        if self.rules.quarantined {
            return "quarantined";
        }
        if self.rules.disabled {
            return "disabled";
        }
        match self.state {
            State::Ready => "ready",
            State::Idle => "idle",
            State::Connecting => "connecting",
            State::Waiting(_) | State::Stopped => "error",
        }
    }

    /// Why calls would fail now, where they would.
    pub fn unavailable(&self) -> Option<&str> {
        match &self.state {
            State::Ready => None,
            State::Idle => Some("it is idle and was not started yet"),
            State::Connecting => Some("it is still connecting"),
            State::Waiting(reason) => Some(reason),
            State::Stopped => Some("it was stopped"),
        }
    }
}

/// What a search must leave out, beyond what the caller may not see.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    pub read_only_only: bool,
    pub exclude_destructive: bool,
    pub exclude_open_world: bool,
}

impl Filter {
    fn keeps(self, tool: &Tool) -> bool {
        use crate::tool::Class;
        let class = tool.hints.class();
        // A tool that does not say whether it reaches into the open world counts as one that does.
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
}

#[derive(Default)]
pub struct Catalog {
    /// Sorted by name.
    servers: Vec<Arc<Server>>,
    /// Made when it is first needed: while many servers connect, most snapshots are never searched.
    index: Arc<OnceLock<Index>>,
    /// For callers that see every server, who are most.
    all: OnceLock<Arc<Exposed>>,
}

/// What a pass-through client was shown; two are equal while nothing has changed for it.
#[derive(Clone, Default)]
pub struct Version(Vec<(Arc<Listing>, Arc<ServerRules>)>);

impl PartialEq for Version {
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

    /// The snapshot in which `server` is new or takes the place of the one of its name.
    pub fn with(&self, server: Server) -> Catalog {
        let mut servers = self.servers.clone();
        let server = Arc::new(server);
        match servers.binary_search_by(|other| other.name.cmp(&server.name)) {
            Ok(position) => {
                let same = Arc::ptr_eq(&servers[position].listing, &server.listing);
                servers[position] = server;
                if same {
                    return Catalog { servers, index: self.index.clone(), all: OnceLock::new() };
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
        Catalog { servers, index: Arc::default(), all: OnceLock::new() }
    }

    /// Makes the search index, which takes milliseconds with thousands of tools, ahead of the first
    /// search.
    pub fn prepare(&self) {
        self.index();
    }

    pub fn is_prepared(&self) -> bool {
        self.index.get().is_some()
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let servers = self.servers.iter();
            let segments = servers.map(|s| (s.name.clone(), s.listing.segment.clone()));
            Index::build(segments.collect())
        })
    }

    pub fn tool(&self, name: &ToolName) -> Option<(&Arc<Server>, &Arc<Tool>)> {
        let server = self.server(&name.server)?;
        Some((server, server.listing.tool(&name.tool)?))
    }

    /// Every tool that the caller may see and call, as `server__tool`.
    pub fn all(&self, caller: &Caller) -> Arc<Exposed> {
        let exposed = || {
            let visible = self.servers.iter().filter(|server| caller.sees(&server.name));
            let tools = visible.flat_map(|server| {
                let tools = server.listing.tools.iter();
                tools.map(|tool| (&*server.name, &**tool, server.lock(&tool.name)))
            });
            Arc::new(Exposed::new(tools))
        };
        match caller.servers {
            Servers::All => self.all.get_or_init(exposed).clone(),
            Servers::Only(_) => exposed(),
        }
    }

    /// What is shown of one server, or of all.
    pub fn version(&self, server: Option<&str>) -> Version {
        let shown = self.servers.iter().filter(|s| server.is_none_or(|name| *s.name == *name));
        Version(shown.map(|server| (server.listing.clone(), server.rules.clone())).collect())
    }

    /// The callable tools that fit the query best. Scope, locks and filters come before ranking.
    pub fn search(
        &self,
        caller: &Caller,
        query: &str,
        limit: usize,
        filter: Filter,
    ) -> Vec<Hit<'_>> {
        let visible: Vec<bool> = self.servers.iter().map(|s| caller.sees(&s.name)).collect();
        let keep = |server: u32, tool: u32| {
            let (server, tool) = (server as usize, tool as usize);
            let entry = &self.servers[server];
            let tool = &entry.listing.tools[tool];
            visible[server] && entry.lock(&tool.name) == Lock::Callable && filter.keeps(tool)
        };
        let hits = self.index().search(query, limit, keep);
        hits.into_iter()
            .map(|hit| {
                let server = &self.servers[hit.segment as usize];
                Hit { server, tool: &server.listing.tools[hit.tool as usize], score: hit.score }
            })
            .collect()
    }

    /// Names that a caller may have meant.
    pub fn near(&self, caller: &Caller, name: &ToolName) -> Vec<String> {
        let visible = || self.servers.iter().filter(|server| caller.sees(&server.name));
        let in_server = |server: &Server| {
            let names = server.listing.tools.iter().map(|tool| tool.name.as_str());
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
                servers.contains(&&*server.name) || server.listing.tool(&name.tool).is_some()
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::policy::ToolRules;

    fn server(name: &str, rules: ServerRules, tools: &[&str]) -> Server {
        let source = Source::Mcp(name.into());
        let definitions =
            tools.iter().map(|tool| RawValue::from_string((*tool).to_owned()).unwrap()).collect();
        let listing = Arc::new(Listing::new(&source, definitions));
        Server::new(name.into(), "stdio", Arc::new(rules), State::Ready, listing)
    }

    fn catalog() -> Catalog {
        let rules = ServerRules {
            tools: ToolRules::Except(vec!["drop_table".to_owned()]),
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

    fn found(catalog: &Catalog, caller: &Caller, query: &str, filter: Filter) -> Vec<String> {
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
        assert_eq!(found(&catalog, &admin, "table", Filter::default()), ["list_tables"]);
        let mut caller = Caller::agent("t");
        caller.servers = Servers::Only(BTreeSet::from(["db".to_owned()]));
        assert!(found(&catalog, &caller, "file", Filter::default()).is_empty());
        assert!(catalog.near(&caller, &ToolName::parse("files:raed_file").unwrap()).is_empty());
    }

    #[test]
    fn filters_read_the_hints() {
        let catalog = catalog();
        let admin = Caller::admin();
        let filter = |read_only_only, exclude_destructive, exclude_open_world| {
            let filter = Filter { read_only_only, exclude_destructive, exclude_open_world };
            found(&catalog, &admin, "file", filter)
        };
        assert_eq!(filter(true, false, false), ["read_file"]);
        assert_eq!(filter(false, true, false), ["read_file", "touch_file"]);
        assert_eq!(filter(false, false, true), ["read_file"]);
    }

    #[test]
    fn faulty_definitions_are_left_out_and_told() {
        let catalog = catalog();
        let listing = &catalog.server("db").unwrap().listing;
        assert_eq!(listing.tools.len(), 2);
        assert_eq!(listing.faults.len(), 2);
        let same = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let faulty = vec![same(r#"{"name":"a"}"#), same(r#"{"name":""}"#)];
        let relisted = Listing::new(&Source::Builtin, faulty.clone());
        assert!(relisted.is_of(&faulty), "faults that were told are no news");
        assert!(!relisted.is_of(&faulty[..1]));
        assert_eq!(listing.tool("list_tables").unwrap().description(), "List every table");
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
    fn a_state_change_keeps_the_index() {
        let catalog = catalog();
        let server = catalog.server("db").unwrap();
        let waiting = Server::new(
            server.name.clone(),
            server.transport,
            server.rules.clone(),
            State::Waiting("gone".to_owned()),
            server.listing.clone(),
        );
        let next = catalog.with(waiting);
        assert!(Arc::ptr_eq(&catalog.index, &next.index));
        assert_eq!(next.server("db").unwrap().state_word(), "error");
        assert!(next.without("db").server("db").is_none());
    }
}
