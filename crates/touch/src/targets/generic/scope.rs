//! The things that hold others, from the widest to the narrowest: an id inside one means nothing
//! without it.

/// A kind of container.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scope {
    /// The nouns of keys that name it.
    nouns: &'static [&'static str],
    /// The word before its id, where the id alone would be unclear.
    pub(super) label: Option<&'static str>,
    /// The sign between it and a path inside it, if it holds files.
    pub(super) files: Option<char>,
    /// The noun alone is a key that names it.
    is_named_alone: bool,
    /// A thing that is made in it is known by the name that its maker gives it.
    pub(super) names_contents: bool,
    /// Its names are joined with a dot: `shop.orders`.
    pub(super) is_dotted: bool,
}

const fn plain(nouns: &'static [&'static str]) -> Scope {
    Scope {
        nouns,
        label: None,
        files: None,
        is_named_alone: true,
        names_contents: true,
        is_dotted: false,
    }
}

/// A container of which only the id is unclear.
const fn labelled(nouns: &'static [&'static str]) -> Scope {
    Scope { label: Some(nouns[0]), is_named_alone: false, names_contents: false, ..plain(nouns) }
}

const fn alone(scope: Scope) -> Scope {
    Scope { is_named_alone: true, ..scope }
}

const fn with_files(scope: Scope, sign: char) -> Scope {
    Scope { files: Some(sign), ..scope }
}

const fn dotted(nouns: &'static [&'static str]) -> Scope {
    Scope { is_dotted: true, ..plain(nouns) }
}

/// The containers, the widest first.
pub(super) const SCOPES: &[Scope] = &[
    plain(&["org", "organization", "organisation", "tenant"]),
    plain(&["owner"]),
    alone(labelled(&["workspace"])),
    with_files(alone(labelled(&["project"])), ':'),
    alone(Scope { names_contents: true, ..labelled(&["space"]) }),
    labelled(&["environment"]),
    alone(labelled(&["cluster"])),
    with_files(plain(&["repo", "repository"]), ':'),
    labelled(&["base"]),
    labelled(&["instance"]),
    labelled(&["guild", "server"]),
    with_files(labelled(&["site"]), ':'),
    with_files(labelled(&["drive"]), ':'),
    with_files(plain(&["vault"]), '/'),
    with_files(plain(&["mount"]), '/'),
    dotted(&["database", "db"]),
    dotted(&["catalog"]),
    dotted(&["schema"]),
    dotted(&["keyspace"]),
    dotted(&["dataset"]),
    with_files(plain(&["bucket"]), '/'),
    plain(&["namespace"]),
    labelled(&["calendar"]),
    alone(labelled(&["spreadsheet"])),
    dotted(&["collection"]),
    dotted(&["table"]),
    plain(&["index"]),
    with_files(plain(&["folder", "mailbox"]), '/'),
    alone(labelled(&["channel"])),
    labelled(&["chat"]),
    labelled(&["board"]),
    labelled(&["datasource"]),
    alone(labelled(&["sheet"])),
];

/// The position of the scopes that rows and objects belong to.
pub(super) fn is_table(rank: usize) -> bool {
    let first = SCOPES[rank].nouns[0];
    matches!(first, "collection" | "table")
}

/// Reports whether the container is a bucket of a store of objects.
pub(super) fn is_bucket(rank: usize) -> bool {
    SCOPES[rank].nouns[0] == "bucket"
}

/// Reports whether titles are unique in the container.
pub(super) fn keeps_titles(rank: usize) -> bool {
    matches!(SCOPES[rank].nouns[0], "folder" | "space" | "vault")
}

/// Returns the rank of the container that a key with an end names: `project_id`.
pub(super) fn ranked(noun: &[&str]) -> Option<usize> {
    let last = noun.last()?;
    SCOPES.iter().position(|scope| scope.nouns.contains(last))
}

/// Returns the rank of the container that a noun alone names.
pub(super) fn named_alone(noun: &str) -> Option<usize> {
    SCOPES.iter().position(|scope| scope.is_named_alone && scope.nouns.contains(&noun))
}
