//! Puts the arguments of one call together: containers, the thing inside them, files, addresses.

mod files;
mod ids;
mod stored;

use std::borrow::Cow;
use std::cell::Cell;

use super::super::{Access, CallPlace, Target, canonical, manifest, sql, uri, words};
use super::given::Given;
use super::role::{Role, Side};
use super::scope::{self, SCOPES};
use super::{Finding, GenericPlan};

/// Schemes of addresses that name no resource.
const NO_RESOURCE: &[&str] =
    &["about", "blob", "chrome", "data", "javascript", "mailto", "sms", "tel", "view-source"];

/// A call that is being named.
pub(super) struct Call<'a> {
    pub(super) plan: &'a GenericPlan,
    pub(super) place: &'a CallPlace<'a>,
    /// In the order of their names.
    pub(super) given: &'a [Given<'a>],
    /// The containers that are named, the widest first and each once.
    scopes: Vec<(usize, &'a Given<'a>)>,
    /// A value that may name a resource was not understood.
    is_partial: Cell<bool>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        plan: &'a GenericPlan,
        place: &'a CallPlace<'a>,
        given: &'a [Given<'a>],
    ) -> Call<'a> {
        Call { plan, place, given, scopes: scopes(given), is_partial: Cell::new(false) }
    }

    pub(super) fn is_partial(&self) -> bool {
        self.is_partial.get()
    }

    /// Notes that a value may name a resource that is not found.
    fn miss<T>(&self) -> Option<T> {
        self.is_partial.set(true);
        None
    }

    pub(super) fn find(&self) -> Vec<Finding<'a>> {
        let tables = self.tables();
        if !tables.is_empty() {
            return self.file_of(&tables).into_iter().chain(tables).collect();
        }
        if let Some(found) = self.manifest().or_else(|| self.revision()) {
            return vec![found];
        }
        let files = self.files();
        let is_of_screen = self.plan.tool.is_of_screen;
        let things = if is_of_screen { Vec::new() } else { self.things(!files.is_empty()) };
        let things = self.with_addresses(things);
        match (things.is_empty(), files.is_empty()) {
            // What is made from an address has it as its content.
            (true, true) if self.plan.tool.creates => Vec::new(),
            (true, true) => self.addresses(),
            (true, false) if self.is_request() => files,
            (true, false) => self.joined(self.addresses(), files),
            (false, true) if self.is_in_table() => {
                self.addresses().into_iter().chain(things).collect()
            }
            (false, true) => things,
            (false, false) => self.both(things, files),
        }
    }

    /// Reports whether a table is named, or what is in one: an address beside it is another place.
    fn is_in_table(&self) -> bool {
        self.scopes.iter().any(|(rank, _)| scope::is_table(*rank))
    }

    /// Joins a thing of the server and a file: an upload reads the file, a download writes it. Only
    /// what the tool's name says makes a read of a write.
    fn both(&self, things: Vec<Finding<'a>>, files: Vec<Finding<'a>>) -> Vec<Finding<'a>> {
        if self.only_file_names() { things } else { self.joined(things, files) }
    }

    /// Puts files and something else in the order of what is done to them.
    fn joined(&self, things: Vec<Finding<'a>>, files: Vec<Finding<'a>>) -> Vec<Finding<'a>> {
        let is_download = files.iter().any(|file| file.access == Some(Access::Write));
        let (first, second) = if is_download { (files, things) } else { (things, files) };
        let is_read = is_download || self.plan.tool.sends;
        let second = second.into_iter().map(|one| match is_read {
            true => Finding { access: Some(Access::Read), ..one },
            false => one,
        });
        first.into_iter().chain(second).collect()
    }

    fn with_role(&self, fits: impl Fn(&Role) -> bool) -> impl Iterator<Item = &'a Given<'a>> {
        self.given.iter().filter(move |given| fits(&given.role))
    }

    /// Names a thing of the server; its parts must not be a document.
    fn named(&self, given: &'a Given<'a>, resource: String) -> Option<Finding<'a>> {
        let target = Target::new(self.plan.system(), resource).or_else(|| self.miss())?;
        Some(Finding { target, access: None, given })
    }

    /// Returns the file that a call is about although a text in it could be a statement.
    fn file_of(&self, tables: &[Finding<'a>]) -> Vec<Finding<'a>> {
        let says = |given: &Given<'_>, words: &[&str]| {
            let key = given.key.to_ascii_lowercase();
            words.iter().any(|word| key.contains(word))
        };
        let is_database = |given: &&Given<'_>| says(given, &["db", "database"]);
        if tables.iter().any(|one| says(one.given, &["sql"]))
            || self.paths().any(|p| is_database(&p))
        {
            return Vec::new();
        }
        self.files()
    }

    /// Names the tables of all statements, inside the containers that other arguments name; those
    /// that are changed first.
    fn tables(&self) -> Vec<Finding<'a>> {
        let mut found: Vec<Finding<'a>> = Vec::new();
        for given in self.with_role(|role| *role == Role::Statement) {
            let is_words = self.plan.tool.searches && !given.key.contains("sql");
            let scripts = given.values.iter().filter(|_| !is_words);
            for script in scripts.map(|script| sql::read(script)) {
                if script.leaves_doubt(given.key) {
                    self.is_partial.set(true);
                }
                for (table, access) in script.tables {
                    let named = self.named(given, self.in_database(&table));
                    found.extend(named.map(|one| Finding { access: access.known(), ..one }));
                }
            }
        }
        found.sort_by_key(|one| one.access != Some(Access::Write));
        found
    }

    fn in_database(&self, table: &str) -> String {
        let mut resource = self.prefix(|rank| !SCOPES[rank].is_dotted);
        let homes = self.prefix(|rank| SCOPES[rank].is_dotted && !scope::is_table(rank));
        if let Some(database) = self.paths().next() {
            resource = format!("{}:", database.first().trim_end_matches('/'));
        } else if !resource.is_empty() {
            resource.push('/');
        }
        let is_whole = homes.is_empty() || table.starts_with(&format!("{homes}."));
        if !is_whole {
            resource = format!("{resource}{homes}.");
        }
        resource + table
    }

    fn manifest(&self) -> Option<Finding<'a>> {
        let mut manifests = self.with_role(|role| matches!(role, Role::Manifest | Role::Thing));
        let (given, object) =
            manifests.find_map(|given| Some((given, manifest::read(given.first())?)))?;
        let namespace = self.scope_named("namespace");
        self.named(given, object.resource(namespace))
    }

    fn scope_named(&self, noun: &str) -> Option<&'a str> {
        let wanted = scope::named_alone(noun)?;
        self.scopes.iter().find(|(rank, _)| *rank == wanted).map(|(_, given)| given.first())
    }

    /// Writes the containers of certain ranks: `project/42`, `octo/shop`, `shop.public`.
    fn prefix(&self, counts: impl Fn(usize) -> bool) -> String {
        written(self.scopes.iter().filter(|(rank, _)| counts(*rank)))
    }

    /// Names the addresses of the first key that has any.
    fn addresses(&self) -> Vec<Finding<'a>> {
        let address = || self.with_role(|role| *role == Role::Address);
        let is_plain = |given: &&Given<'_>| words::has(words::ADDRESS_ENDS, given.key);
        let plain = address().filter(is_plain);
        let others = address().filter(|given| !is_plain(given));
        let content = self.with_role(|role| *role == Role::Content);
        for given in plain.chain(others).chain(content) {
            let found: Vec<Finding<'a>> =
                given.values.iter().filter_map(|value| self.address(given, value)).collect();
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    fn address(&self, given: &'a Given<'a>, value: &str) -> Option<Finding<'a>> {
        let file =
            || canonical::is_file_address(value).then(|| canonical::file(value, self.place))?;
        if let Some(target) = canonical::web(value, self.place).or_else(file) {
            return Some(Finding { target, access: None, given });
        }
        let scheme = value.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if words::has(NO_RESOURCE, &scheme) {
            return None;
        }
        let is_address = canonical::is_address(value);
        if value.contains(char::is_whitespace) || is_address && canonical::is_shared(&scheme) {
            return if is_address { self.miss() } else { None };
        }
        let named = uri::canonical(value).or_else(|| if is_address { self.miss() } else { None });
        self.named(given, named?)
    }
}

/// Returns the containers that are named.
fn scopes<'a>(given: &'a [Given<'a>]) -> Vec<(usize, &'a Given<'a>)> {
    let mut scopes: Vec<(usize, &Given<'_>)> = Vec::new();
    for given in given {
        let Role::Scope { rank, side: Side::Neither } = *given.role else {
            continue;
        };
        let value = given.first();
        // The address of a repository is no container here, nor is a folder of this machine.
        let is_path = SCOPES[rank].files == Some('/') && value.starts_with(['/', '~', '.']);
        let misused = value.contains("://") || is_path;
        if !misused && scopes.iter().all(|(had, _)| *had != rank) {
            scopes.push((rank, given));
        }
    }
    // A bare number is the position of something, such as a tab or a slide, or in a repository the
    // number of an issue.
    if !scopes.iter().any(|(rank, _)| SCOPES[*rank].files == Some(':')) {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_position =
            |given: &Given<'_>| given.key.eq_ignore_ascii_case("index") && is_number(given.first());
        scopes.retain(|(_, given)| !is_position(given));
    }
    scopes.sort_unstable_by_key(|(rank, _)| *rank);
    scopes
}

/// Writes containers in a row: `project/42`, `octo/shop`, `shop.public`.
fn written<'s>(scopes: impl Iterator<Item = &'s (usize, &'s Given<'s>)> + Clone) -> String {
    let has = |noun: &str| {
        let wanted = scope::named_alone(noun);
        scopes.clone().any(|(rank, _)| Some(*rank) == wanted)
    };
    // Forges with owners ignore the case of both names.
    let ignores_case = has("owner") && has("repo");
    let mut text = String::new();
    let mut dotted_before = false;
    for (rank, given) in scopes {
        let scope = &SCOPES[*rank];
        if !text.is_empty() {
            text.push(if scope.is_dotted && dotted_before { '.' } else { '/' });
        }
        if let Some(label) = scope.label {
            text.push_str(label);
            text.push('/');
        }
        let value = canonical::value(given.first());
        if ignores_case && scope.label.is_none() {
            text.push_str(&value.to_lowercase());
        } else {
            text.push_str(&value);
        }
        dotted_before = scope.is_dotted;
    }
    text
}

/// Returns the canonical form of an id of this noun.
fn canonical_id<'a>(noun: &str, value: &'a str) -> Cow<'a, str> {
    match noun {
        "bug" | "epic" | "issue" | "story" | "task" | "ticket" => canonical::id(value),
        _ => canonical::value(value),
    }
}
