//! The things of a server that a call names: by ids with a noun, bare ids, keys and names, each
//! inside its containers.

use super::super::super::words::{self, NAME_BYTES_MAX};
use super::super::super::{Access, RESOURCE_BYTES_MAX, Target, canonical, is_break, is_json};
use super::super::Finding;
use super::super::given::Given;
use super::super::role::{IdRelation, PathForm, Role, Side};
use super::super::scope::{self, SCOPES};
use super::{Call, canonical_id, written};

/// Nouns that say nothing about what a thing is, so that its kind takes their place.
const VAGUE: &[&str] = &["", "entity", "item", "object", "record", "resource"];

/// Nouns of the states of a repository.
const REVISIONS: &[&str] = &["branch", "commit", "ref", "revision", "sha"];

/// Ids of different things in one name; a call with more does not say which is meant.
const JOINED_MAX: usize = 4;

/// An id and what it is the id of.
#[derive(Clone, Copy)]
struct Id<'a> {
    given: &'a Given<'a>,
    noun: &'a str,
    relation: IdRelation,
}

/// A thing in its containers, before its values are written.
struct Leaf<'a> {
    given: &'a Given<'a>,
    noun: Option<String>,
    /// The ids of things around it that are not containers themselves.
    around: Vec<Id<'a>>,
    is_bare: bool,
}

impl<'a> Call<'a> {
    /// Names the things of the server. Next to a file, a part of a document adds nothing.
    pub(super) fn things(&self, beside_files: bool) -> Vec<Finding<'a>> {
        let both_ends = self.both_ends(beside_files);
        if !both_ends.is_empty() {
            return both_ends;
        }
        if self.holds_files() {
            let inside = self.files_inside();
            if !inside.is_empty() {
                return inside;
            }
        }
        let leaves = self.leaves(beside_files);
        if leaves.is_empty() {
            // What an id names in a container is not the container.
            let is_inside = self.has_untyped_id();
            return if is_inside { Vec::new() } else { self.containers(beside_files) };
        }
        leaves.iter().flat_map(|leaf| self.leaf(leaf, beside_files)).collect()
    }

    /// Names a state of a repository on this machine: `/srv/shop@fix`.
    pub(super) fn revision(&self) -> Option<Finding<'a>> {
        let base = self
            .paths()
            .find(|given| matches!(*given.role, Role::Path { form: PathForm::Base, .. }))?;
        if self.paths().count() > 1 {
            return None;
        }
        let ids = self.ids(false);
        let id = ids.iter().find(|id| {
            let is_meant = matches!(id.relation, IdRelation::Own(_)) || id.noun == "revision";
            is_meant && REVISIONS.contains(&id.noun)
        })?;
        let folder = canonical::file(base.first(), self.place)?;
        self.named(id.given, format!("{}@{}", folder.resource(), id.given.first()))
    }

    /// Names both ends of a move, copy or link of things that are no files.
    fn both_ends(&self, beside_files: bool) -> Vec<Finding<'a>> {
        let sided = |wanted: Side| {
            self.given.iter().filter(move |given| match *given.role {
                Role::Scope { side, .. } | Role::Id { side, .. } | Role::Key { side } => {
                    side == wanted
                }
                _ => false,
            })
        };
        let is_complete =
            sided(Side::Source).next().is_some() && sided(Side::Destination).next().is_some();
        // Where the thing that moves is named, the ends are its places.
        let is_thing = |role: &Role| {
            let Role::Id { relation: IdRelation::Own(_) | IdRelation::Place, side, .. } = role
            else {
                return false;
            };
            *side == Side::Neither
        };
        if beside_files || !is_complete || self.with_role(is_thing).next().is_some() {
            return Vec::new();
        }
        let prefix = written(self.scopes.iter());
        let mut found = Vec::new();
        for (side, access) in
            [(Side::Destination, Access::Write), (Side::Source, self.access_of_source())]
        {
            let mut ends: Vec<(usize, &'a Given<'a>)> =
                sided(side).map(|given| (rank(given), given)).collect();
            ends.sort_by_key(|(rank, _)| *rank);
            let mut resource = prefix.clone();
            for (_, given) in &ends {
                let label = label(given);
                push(&mut resource, '/', label, &canonical_id(label, given.first()));
            }
            let named = self.named(ends[0].1, resource);
            found.extend(named.map(|one| Finding { access: Some(access), ..one }));
        }
        found
    }

    /// Names files inside a container that is not this machine.
    fn files_inside(&self) -> Vec<Finding<'a>> {
        let sign =
            self.scopes.iter().rev().find_map(|(rank, _)| SCOPES[*rank].files).unwrap_or('/');
        let prefix = written(self.scopes.iter());
        let mut found = Vec::new();
        for given in self.paths() {
            for value in &given.values {
                let path = canonical::inner_path(&canonical::value(value));
                let resource = path.map(|path| format!("{prefix}{sign}{path}"));
                let system = self.plan.system();
                let target = resource.and_then(|resource| Target::of_server(system, resource));
                found.extend(target.map(|target| Finding { target, access: None, given }));
            }
        }
        found
    }

    /// Names the containers alone.
    fn containers(&self, beside_files: bool) -> Vec<Finding<'a>> {
        let scopes = self.scopes_beside(beside_files);
        let Some((_, last)) = scopes.last() else {
            return Vec::new();
        };
        if let Some((at, (_, many))) =
            scopes.iter().enumerate().find(|(_, (_, given))| given.values.len() > 1)
        {
            let prefix = written(scopes[..at].iter());
            let each = many.values.iter().filter_map(|value| {
                let mut resource = prefix.clone();
                let label = SCOPES[scopes[at].0].label.unwrap_or_default();
                push(&mut resource, '/', label, &canonical::value(value));
                self.named(many, resource)
            });
            return each.collect();
        }
        let mut resource = written(scopes.iter());
        // Objects of one kind in one namespace.
        let in_namespace =
            scopes.iter().any(|(rank, _)| Some(*rank) == scope::named_alone("namespace"));
        if let Some(kind) = self.kind().filter(|_| in_namespace) {
            push(&mut resource, '/', "", &kind);
        }
        self.named(last, resource).into_iter().collect()
    }

    pub(super) fn scopes_beside(&self, beside_files: bool) -> Vec<(usize, &'a Given<'a>)> {
        let is_part = |rank: usize| {
            let part = |noun: &&str| scope::ranked(&[noun]) == Some(rank);
            words::PARTS.iter().any(part)
        };
        let counts = |(rank, _): &&(usize, &Given<'_>)| !(beside_files && is_part(*rank));
        self.scopes.iter().filter(counts).copied().collect()
    }

    fn kind(&self) -> Option<String> {
        let given = |wanted: Role| self.with_role(move |role| *role == wanted).next();
        // Beside a name, a thing is the kind of it: `resource: "pods", name: "api"`.
        let is_word =
            |text: &str| text.bytes().all(|c| c.is_ascii_alphabetic() || b".-".contains(&c));
        let is_beside = |role: &Role| matches!(role, Role::Name | Role::Bare);
        let thing = || {
            let has_name = self.with_role(is_beside).any(|given| given.parent.is_none());
            given(Role::Thing).filter(|thing| has_name && is_word(thing.first()))
        };
        given(Role::Kind).or_else(thing).map(|given| canonical::kind(given.first()))
    }

    /// Returns the ids with a noun that the call is about.
    fn ids(&self, beside_files: bool) -> Vec<Id<'a>> {
        let all = self.given.iter().filter_map(|given| match &*given.role {
            Role::Id { noun, relation, side } => {
                Some((Id { given, noun, relation: *relation }, *side))
            }
            Role::MaybeId { noun } if self.plan.tool.is_about(noun) && is_id(given.first()) => {
                Some((Id { given, noun, relation: IdRelation::Own(0) }, Side::Neither))
            }
            Role::MaybeId { noun } if self.is_content(given, noun) => {
                Some((Id { given, noun, relation: IdRelation::Other }, Side::Neither))
            }
            _ => None,
        });
        let all: Vec<(Id<'a>, Side)> = all.collect();
        // An id at one end only is an id like others, unless there are others.
        let has_plain = all.iter().any(|(_, side)| *side == Side::Neither);
        let is_outer =
            |id: &Id<'_>| id.given.parent.is_none() && id.relation != IdRelation::Attribute;
        let has_outer = all.iter().any(|(id, _)| is_outer(id));
        let searches = self.plan.tool.searches;
        let kept = all.into_iter().filter(|(id, side)| {
            let is_part = beside_files && words::has(words::PARTS, id.noun);
            let is_inner = id.given.parent.is_some() && !id.given.is_own_part() && has_outer;
            let is_sought = searches && id.relation != IdRelation::Place;
            // What is added to a thing is not that thing.
            let is_new = matches!(*id.given.role, Role::MaybeId { .. }) && self.plan.tool.creates;
            let is_choice = words::has(words::OPTIONS, id.noun) && !self.is_about_options(id);
            let is_sought = is_sought || is_new || is_choice;
            (*side == Side::Neither || !has_plain) && !is_part && !is_inner && !is_sought
        });
        kept.map(|(id, _)| id).collect()
    }

    /// Reports whether a noun alone names something in the container of the call, so that the call is
    /// not about the container: `collection: "orders", document: "7"`.
    fn is_content(&self, given: &Given<'_>, noun: &str) -> bool {
        let text = given.first();
        let is_name = text.len() <= NAME_BYTES_MAX && !text.contains(char::is_whitespace);
        let is_inside = !self.scopes.is_empty() && given.parent.is_none();
        is_inside && is_name && !is_json(text) && words::has(words::CONTENTS, noun)
    }

    /// Reports whether a choice is itself what the tool reads or changes.
    fn is_about_options(&self, id: &Id<'_>) -> bool {
        let tool = &self.plan.tool;
        let handles = tool.reads || tool.removes || tool.edits || tool.lists;
        handles && id.relation != IdRelation::Attribute
    }

    /// Returns the things that the call names, in the order of precedence.
    fn leaves(&self, beside_files: bool) -> Vec<Leaf<'a>> {
        let ids = self.ids(beside_files);
        let with = |fits: fn(&IdRelation) -> bool| -> Vec<Id<'a>> {
            ids.iter().copied().filter(|id| fits(&id.relation)).collect()
        };
        let places = with(|relation| *relation == IdRelation::Place);
        if !places.is_empty() {
            return leaves_of(places);
        }
        let mut own = with(|relation| matches!(relation, IdRelation::Own(_)));
        own.sort_by_key(|id| id.relation);
        if own.iter().any(|id| id.given.parent.is_none()) {
            own.retain(|id| id.given.parent.is_none());
        }
        let others = with(|relation| *relation == IdRelation::Other);
        // In `set_texture`, the texture is what the other thing gets.
        if !others.is_empty() && (self.plan.tool.edits || self.plan.tool.creates) {
            own.retain(|id| !words::has(words::ATTRIBUTES, id.noun));
        }
        if !own.is_empty() {
            // On a change, another id may be a new value; else it is where the thing is.
            let scoped = self.plan.tool.reads || self.plan.tool.removes;
            let around = others.into_iter().filter(|id| scoped && id.given.parent.is_none());
            return leaves_of(around.chain(own).collect());
        }
        if let Some(leaf) = self.bare(&others) {
            return vec![leaf];
        }
        if !others.is_empty() {
            return leaves_of(others);
        }
        if self.has_untyped_id() {
            return Vec::new();
        }
        // Beside a kind, a name is what it is the kind of; else it may be a new one.
        let (name, thing) = (|| self.name(beside_files), || self.thing(beside_files));
        let untyped = self.key().or_else(|| match self.kind() {
            Some(_) => name().or_else(thing),
            None => thing().or_else(name),
        });
        if let Some(leaf) = untyped {
            return vec![leaf];
        }
        let has_address = self.with_role(|role| *role == Role::Address).next().is_some();
        let only_names = self.only_file_names();
        if !self.scopes.is_empty() || (beside_files && !only_names) || has_address {
            return Vec::new();
        }
        // A list may be limited by any attribute, and a file have any; only a place holds them.
        let rank = |id: &Id<'_>| words::PLACES.iter().position(|place| *place == id.noun);
        let mut attributes = with(|relation| *relation == IdRelation::Attribute);
        let only_places = self.plan.tool.lists || only_names;
        attributes.retain(|id| rank(id).is_some() || !only_places);
        attributes.sort_by_key(|id| rank(id).unwrap_or(words::PLACES.len()));
        attributes.truncate(1);
        leaves_of(attributes)
    }

    /// Returns a bare id, typed by the object in which it lies, by the tool or by a kind. Without a
    /// type it names nothing: it may be the id of anything.
    fn bare(&self, others: &[Id<'a>]) -> Option<Leaf<'a>> {
        let tool = &self.plan.tool;
        let bare = || self.with_role(|role| *role == Role::Bare);
        let own = bare().find(|given| given.is_own_part());
        let outer = || bare().find(|given| given.parent.is_none());
        let inner = || bare().next().filter(|_| others.is_empty());
        let given = own.or_else(outer).or_else(inner)?;
        let is_conversation = tool.head() == Some("session");
        if (own.is_none() && (tool.searches || tool.lists)) || is_conversation {
            return None;
        }
        if self.is_untyped(given) {
            return None;
        }
        let parent = given.parent.filter(|parent| parent.is_own);
        let noun = match parent {
            Some(parent) => {
                words::words(parent.key).pop().map(|word| canonical::singular(&word).into_owned())
            }
            None => tool.head().map(str::to_owned),
        };
        let around = if parent.is_some() { others.to_vec() } else { Vec::new() };
        Some(Leaf { given, noun, around, is_bare: true })
    }

    /// Reports whether nothing says of what a bare id is the id.
    fn is_untyped(&self, given: &Given<'_>) -> bool {
        !given.is_own_part() && self.plan.tool.head().is_none() && self.kind().is_none()
    }

    fn has_untyped_id(&self) -> bool {
        let tool = &self.plan.tool;
        let mut bare = self.with_role(|role| *role == Role::Bare);
        !(tool.searches || tool.lists)
            && bare.any(|given| given.parent.is_none() && self.is_untyped(given))
    }

    /// Returns the name under `object` or `resource`.
    fn thing(&self, beside_files: bool) -> Option<Leaf<'a>> {
        let tool = &self.plan.tool;
        let given = self.with_role(|role| *role == Role::Thing).find(|it| it.parent.is_none())?;
        let text = given.first().trim();
        let is_name = !text.is_empty() && text.len() <= RESOURCE_BYTES_MAX;
        let is_text = text.contains(is_break) || is_json(text);
        let is_new = tool.creates && self.scopes.is_empty();
        let is_vague = is_new || tool.searches || beside_files;
        let noun = Some(given.key.to_ascii_lowercase());
        (is_name && !is_text && !is_vague).then_some(Leaf {
            given,
            noun,
            around: Vec::new(),
            is_bare: false,
        })
    }

    /// Returns the key of a value in a store, if no name is given with it.
    fn key(&self) -> Option<Leaf<'a>> {
        let tool = &self.plan.tool;
        let given = self.with_role(|role| matches!(role, Role::Key { .. })).next()?;
        let is_new = tool.creates && self.scopes.is_empty();
        let has_name = self.with_role(|role| *role == Role::Name).any(|name| name.parent.is_none());
        let is_vague = is_new || tool.searches || tool.lists || has_name;
        (!is_vague).then_some(Leaf { given, noun: None, around: Vec::new(), is_bare: false })
    }

    /// Returns a name or title that identifies something that exists.
    fn name(&self, beside_files: bool) -> Option<Leaf<'a>> {
        let tool = &self.plan.tool;
        let names = || self.with_role(|role| *role == Role::Name);
        // One thing that is made has a new name; entries of a list are known by theirs.
        let is_known = |given: &Given<'_>| given.is_listed() || !tool.creates;
        let own = names().find(|given| given.is_own_part() && is_known(given));
        let own = own.filter(|_| self.scopes.is_empty());
        let outer = names().find(|given| given.parent.is_none());
        let is_sought = tool.searches || tool.lists || beside_files;
        let names_contents = self.scopes.iter().any(|(rank, _)| SCOPES[*rank].names_contents);
        let has_value = self.with_role(|role| *role == Role::Value).next().is_some();
        let has_kind = self.kind().is_some();
        let exists = if tool.creates {
            names_contents
        } else {
            !self.scopes.is_empty() || has_kind || has_value || tool.uses
        };
        // Where the container is what the tool is about, the name is its new one.
        let head = tool.head().and_then(|head| scope::ranked(&[head]));
        let is_new = head.is_some_and(|head| self.scopes.iter().any(|(rank, _)| *rank == head));
        let given = match (own, outer) {
            (Some(own), None) if !beside_files => own,
            (_, Some(outer)) if !is_sought && exists && !is_new => outer,
            _ => return self.title(is_sought),
        };
        let noun = match given.parent {
            Some(parent) => {
                words::words(parent.key).pop().map(|word| canonical::singular(&word).into_owned())
            }
            None => tool.head().map(str::to_owned),
        };
        Some(Leaf { given, noun, around: Vec::new(), is_bare: false })
    }

    /// Returns a title, where it is how a thing is known: in a space, or when it is read.
    fn title(&self, is_sought: bool) -> Option<Leaf<'a>> {
        let tool = &self.plan.tool;
        let given =
            self.with_role(|role| *role == Role::Title).find(|given| given.parent.is_none())?;
        let is_unique = self.scopes.iter().any(|(rank, _)| scope::keeps_titles(*rank));
        let is_known = !is_sought && (is_unique || (tool.reads && self.scopes.is_empty()));
        let noun = tool.head().map(str::to_owned);
        is_known.then_some(Leaf { given, noun, around: Vec::new(), is_bare: false })
    }

    /// Writes a thing with its containers, once for each of its values.
    fn leaf(&self, leaf: &Leaf<'a>, beside_files: bool) -> Vec<Finding<'a>> {
        let kind = self.kind();
        let noun = leaf.noun.as_deref().unwrap_or_default();
        let is_named = matches!(*leaf.given.role, Role::Name | Role::Bare);
        let dotted = self.scopes.last().is_some_and(|(rank, _)| SCOPES[*rank].is_dotted);
        let is_table = noun == "object" && dotted;
        let noun = match &kind {
            _ if is_table => noun,
            Some(kind) if is_named || VAGUE.contains(&noun) => kind.as_str(),
            _ => noun,
        };
        let mut scopes = self.scopes_beside(beside_files);
        // What is unique needs no container, and on a change they may be the new ones.
        let value = canonical_id(noun, leaf.given.first());
        if leaf.is_bare && self.plan.tool.edits && is_unique(&value) {
            scopes.retain(|(rank, _)| SCOPES[*rank].label.is_none());
        }
        let is_plain = *leaf.given.role == Role::Thing || self.is_stored(noun);
        let is_in_repository = scopes.iter().any(|(rank, _)| SCOPES[*rank].files == Some(':'));
        let mut prefix = written(scopes.iter());
        for id in &leaf.around {
            push(&mut prefix, '/', id.noun, &canonical_id(id.noun, id.given.first()));
        }
        let write = |value: &str| {
            let mut resource = prefix.clone();
            if REVISIONS.contains(&noun) && is_in_repository {
                push(&mut resource, '@', "", value);
            } else if is_table {
                push(&mut resource, '.', "", value);
            } else if is_plain {
                push(&mut resource, '/', "", value);
            } else {
                push(&mut resource, '/', noun, value);
            }
            self.named(leaf.given, resource)
        };
        let values = leaf.given.values.iter();
        values.filter_map(|value| write(&canonical_id(noun, value))).collect()
    }
}

/// Joins ids of different things into one name; those of one kind are several things.
fn leaves_of(ids: Vec<Id<'_>>) -> Vec<Leaf<'_>> {
    let is_again = |at: usize| ids[..at].iter().any(|had| had.noun == ids[at].noun);
    if (0..ids.len()).any(is_again) {
        return ids.into_iter().map(Leaf::of).collect();
    }
    if ids.len() > JOINED_MAX {
        return Vec::new();
    }
    // The one with several values is the last.
    let many = ids.iter().position(|id| id.given.values.len() > 1);
    let Some(last) = many.or(ids.len().checked_sub(1)) else {
        return Vec::new();
    };
    let around = ids.iter().enumerate().filter(|(at, _)| *at != last).map(|(_, id)| *id).collect();
    vec![Leaf { around, ..Leaf::of(ids[last]) }]
}

impl<'a> Leaf<'a> {
    fn of(id: Id<'a>) -> Leaf<'a> {
        let noun = Some(id.noun.to_owned());
        Leaf { given: id.given, noun, around: Vec::new(), is_bare: false }
    }
}

fn push(resource: &mut String, sign: char, label: &str, value: &str) {
    if !resource.is_empty() {
        resource.push(sign);
    }
    if !label.is_empty() {
        resource.push_str(label);
        resource.push('/');
    }
    resource.push_str(value);
}

fn rank(given: &Given<'_>) -> usize {
    match *given.role {
        Role::Scope { rank, .. } => rank,
        _ => SCOPES.len(),
    }
}

fn label<'a>(given: &'a Given<'_>) -> &'a str {
    match &*given.role {
        Role::Scope { rank, .. } => SCOPES[*rank].label.unwrap_or_default(),
        Role::Id { noun, .. } => noun,
        _ => "",
    }
}

/// Reports whether a value means one thing without its containers.
fn is_unique(value: &str) -> bool {
    canonical::uuid(value).is_some() || canonical::is_issue_key(value)
}

/// Reports whether a value has the form of an id rather than of a word.
fn is_id(value: &str) -> bool {
    let has = |fits: fn(&u8) -> bool| value.bytes().any(|byte| fits(&byte));
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let is_token =
        value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_:#".contains(&byte));
    is_number || is_unique(value) || (is_token && is_mixed && (6..=64).contains(&value.len()))
}
