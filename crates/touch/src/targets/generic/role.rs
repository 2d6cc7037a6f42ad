//! The role of a key: it holds a path, an address, an id of something, a container.

use super::super::canonical::singular;
use super::super::words::{self, has, words};
use super::scope;
use super::tool::ToolWords;
use redact::is_secret_key;

/// The end of a move or copy at which a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Neither,
    Destination,
    Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathForm {
    Whole,
    Folder,
    /// A name that may belong to a folder given next to it.
    FileName,
    /// The folder to which other paths are relative.
    Base,
    /// The folder in which a program runs; it is not touched for that.
    WorkingFolder,
}

/// The relation of an id to the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IdRelation {
    /// The thing to or from which something is added or removed.
    Place,
    /// The tool is about it; the number is its place in the tool's name.
    Own(usize),
    Other,
    /// It describes another thing.
    Attribute,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Path {
        form: PathForm,
        side: Side,
    },
    /// `source` or `destination`: a path if it looks like one.
    End(Side),
    Address,
    /// An address that is the content of what is made or sent.
    Content,
    Scope {
        rank: usize,
        side: Side,
    },
    Id {
        noun: Box<str>,
        relation: IdRelation,
        side: Side,
    },
    /// A noun that may be an id, if its value has the form of one.
    MaybeId {
        noun: Box<str>,
    },
    Bare,
    Name,
    Title,
    Key {
        side: Side,
    },
    Kind,
    Statement,
    Manifest,
    /// `object` or `resource`: a manifest, the kind of what is named beside it, or any name.
    Thing,
    /// The content of a named place: `value`.
    Value,
    Method,
    /// An object with arguments inside; `is_own` if it is the thing that the tool is about.
    Envelope {
        is_own: bool,
    },
}

impl Role {
    /// Returns the role of a key; `None` if its value names nothing.
    pub(super) fn of(key: &str, tool: &ToolWords) -> Option<Role> {
        let all = words(key);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let name = all.join(" ");
        let means_nothing = |word: &&str| has(words::CONVERSATION, word);
        if all.is_empty() || all.iter().any(means_nothing) || is_secret_key(key) {
            return None;
        }
        if all.len() > 1 && all.iter().any(|word| has(words::CONDITIONS, word)) {
            return None;
        }
        whole(&name)
            .or_else(|| path(&all))
            .or_else(|| address(&all))
            .or_else(|| id(&all, tool))
            .or_else(|| noun(&all, tool))
    }
}

/// Returns the role of a key that is known as a whole.
fn whole(name: &str) -> Option<Role> {
    Some(match name {
        "value" => Role::Value,
        "method" => Role::Method,
        "name" | "names" => Role::Name,
        "title" => Role::Title,
        "key" | "keys" => Role::Key { side: Side::Neither },
        "object" | "resource" => Role::Thing,
        "source" | "src" => Role::End(Side::Source),
        "destination" | "dest" | "dst" => Role::End(Side::Destination),
        "cwd" | "workdir" | "working directory" | "working dir" => {
            Role::Path { form: PathForm::WorkingFolder, side: Side::Neither }
        }
        "unique id" | "name or id" | "id or name" | "id or key" | "id or url" => Role::Bare,
        name if has(words::BARE_IDS, name) => Role::Bare,
        name if has(words::KINDS, name) => Role::Kind,
        name if has(words::STATEMENTS, name) || name.ends_with(" sql") || name == "sql query" => {
            Role::Statement
        }
        _ => return None,
    })
}

/// Splits off a first word that tells the end of a move.
fn side<'a>(all: &'a [&'a str]) -> (Side, &'a [&'a str]) {
    match all {
        [first, rest @ ..] if !rest.is_empty() && has(words::SOURCES, first) => {
            (Side::Source, rest)
        }
        [first, rest @ ..] if !rest.is_empty() && has(words::DESTINATIONS, first) => {
            (Side::Destination, rest)
        }
        _ => (Side::Neither, all),
    }
}

fn path(all: &[&str]) -> Option<Role> {
    let (last, first) = (*all.last()?, *all.first()?);
    let is_file_name = last == "filename" || all.ends_with(&["file", "name"]);
    let is_path = has(words::PATH_ENDS, last) || is_file_name || first == "path";
    if !is_path || all[..all.len() - 1].iter().any(|word| has(words::INNER_PATHS, word)) {
        return None;
    }
    let (side, rest) = side(all);
    let is_folder = ["dir", "directories", "directory", "dirname", "dirpath"].contains(&last);
    let form = match rest {
        [base, _] if has(words::BASE_PATHS, base) => PathForm::Base,
        _ if is_file_name => PathForm::FileName,
        _ if is_folder => PathForm::Folder,
        _ => PathForm::Whole,
    };
    Some(Role::Path { form, side })
}

fn address(all: &[&str]) -> Option<Role> {
    let (last, before) = all.split_last()?;
    if !has(words::ADDRESS_ENDS, last) {
        return None;
    }
    let any = |list: &[&str]| before.iter().any(|word| has(list, word));
    let (side, _) = side(all);
    if any(words::CALLED_ADDRESSES) || side != Side::Neither {
        return None;
    }
    Some(if any(words::CONTENT_ADDRESSES) { Role::Content } else { Role::Address })
}

/// Returns the role of a key that ends like an id: `issue_id`, `idList`, `repo_name`.
fn id(all: &[&str], tool: &ToolWords) -> Option<Role> {
    let (side, rest) = side(all);
    let (last, before) = rest.split_last()?;
    let by_id = has(words::ID_ENDS, last);
    let is_title = *last == "title" && tool.reads && tool.position(before).is_some();
    let by_name = ["name", "names"].contains(last) || is_title;
    let noun: Vec<String> = match before {
        [] if rest.len() == all.len() => return None,
        [] => return sided(last, side, tool),
        ["id", ..] if !by_id => [&before[1..], &[*last]].concat(),
        [.., qualifier]
            if (by_id || by_name) && before.len() > 1 && has(words::QUALIFIERS, qualifier) =>
        {
            before[..before.len() - 1].to_vec()
        }
        _ if by_id || by_name || ["number", "numbers"].contains(last) => before.to_vec(),
        _ => return None,
    }
    .iter()
    .map(|word| singular(word).into_owned())
    .collect();
    let noun: Vec<&str> = noun.iter().map(String::as_str).collect();
    let numbered = !by_id && !by_name && before.first() != Some(&"id");
    let (end, position) = (*noun.last()?, tool.position(&noun));
    let is_joined = noun.iter().any(|word| ["by", "in", "of", "or", "to"].contains(word));
    let is_plain = |noun: &str| has(words::PLAIN_VALUES, noun);
    // A city is a value by its name, and by its id a thing that describes others.
    let is_described = by_id && has(words::ATTRIBUTES, end);
    if ((is_plain(end) || is_plain(&noun.join(" "))) && !is_described)
        || (is_joined && !noun.ends_with(&["id", "or"]))
    {
        return None;
    }
    if numbered && !(has(words::NUMBERED, end) || position.is_some_and(|_| !is_part(end))) {
        return None;
    }
    // The id of a folder may be that of its new one.
    let is_folder = end == "folder" || noun[0] == "parent";
    if let Some(rank) = scope::ranked(&noun).filter(|_| !numbered && !is_folder) {
        // The id of an owner is a person's; his name is the first part of a repository's.
        let is_person = end == "owner" && by_id;
        return (!is_person).then_some(Role::Scope { rank, side });
    }
    Some(Role::Id { noun: end.into(), relation: relation(&noun, position, tool), side })
}

/// Returns the role of an id without a noun at one end of a move: `old_key`, `source_id`. The tool's
/// name types it.
fn sided(end: &str, side: Side, tool: &ToolWords) -> Option<Role> {
    match end {
        "key" => Some(Role::Key { side }),
        end if has(words::BARE_IDS, end) => {
            let noun = tool.head()?.into();
            Some(Role::Id { noun, relation: IdRelation::Other, side })
        }
        _ => None,
    }
}

fn relation(noun: &[&str], position: Option<usize>, tool: &ToolWords) -> IdRelation {
    let is_request = noun.len() > 1 && noun.ends_with(&["request"]);
    let is_attribute =
        noun == ["request"] || !is_request && noun.iter().any(|word| has(words::ATTRIBUTES, word));
    match position {
        Some(_) if tool.is_place(noun) => IdRelation::Place,
        Some(at) if noun[0] != "parent" => IdRelation::Own(at),
        _ if is_attribute => IdRelation::Attribute,
        _ => IdRelation::Other,
    }
}

fn is_part(noun: &str) -> bool {
    has(words::PARTS, noun)
}

/// Returns the role of a key that is a noun alone.
fn noun(all: &[&str], tool: &ToolWords) -> Option<Role> {
    let (side, rest) = side(all);
    let singulars: Vec<_> = rest.iter().map(|word| singular(word)).collect();
    let noun: Vec<&str> = singulars.iter().map(|word| &**word).collect();
    let name = noun.join(" ");
    if let Some(rank) = scope::named_alone(&name) {
        return Some(Role::Scope { rank, side });
    }
    if let [first, last] = noun.as_slice() {
        let is_compound =
            words::COMPOUND_SCOPES.contains(last) && !["default", "parent"].contains(first);
        if let Some(rank) = scope::named_alone(last).filter(|_| is_compound) {
            return Some(Role::Scope { rank, side });
        }
    }
    if all.ends_with(&["owner"]) && all.len() == 2 {
        return scope::named_alone("owner").map(|rank| Role::Scope { rank, side: Side::Neither });
    }
    let position = tool.position(&noun);
    let is_of_broker = || words::BROKER_NOUNS.iter().any(|noun| tool.is_about(noun));
    if name == "topic" && is_of_broker() {
        return Some(Role::Id { noun: "topic".into(), relation: IdRelation::Other, side });
    }
    let id = |relation| Some(Role::Id { noun: (*noun.last()?).into(), relation, side });
    if has(words::NAMED_ALONE, &name) {
        return id(relation(&noun, position, tool));
    }
    let is_commit = ["branch", "commit", "ref", "revision", "sha"].contains(&name.as_str());
    if is_commit && (position.is_some() || name == "revision") {
        return id(position.map_or(IdRelation::Other, IdRelation::Own));
    }
    if name == "username" && ["user", "profile", "account"].iter().any(|noun| tool.is_about(noun)) {
        return Some(Role::Id { noun: "user".into(), relation: IdRelation::Own(0), side });
    }
    if has(words::MANIFESTS, all.last()?) {
        return Some(Role::Manifest);
    }
    if noun.len() == 1 && side == Side::Neither && has(words::CONTENTS, &name) {
        return Some(Role::MaybeId { noun: name.into() });
    }
    let is_own = position.is_some();
    let ends_as_envelope = all.len() > 1 && words::ENVELOPE_ENDS.contains(all.last()?);
    if has(words::ENVELOPES, &all.join(" ")) || ends_as_envelope || is_own {
        let one = noun.len() == 1 && is_own && side == Side::Neither;
        return Some(if one && !has(words::ENVELOPES, all[0]) {
            Role::MaybeId { noun: name.into() }
        } else {
            Role::Envelope { is_own }
        });
    }
    None
}
