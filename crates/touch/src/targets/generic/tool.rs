//! The parts of a tool's name that tell about its arguments: the things that it is about, its verb.

use super::super::canonical::singular;
use super::super::words::{self, has, words};

const SENDS: &[&str] = text::words!("tool/sends.txt");

/// Words of stores of objects whose addresses have their own scheme.
const STORES: &[(&str, &str)] =
    &[("amazon", "s3"), ("aws", "s3"), ("gcp", "gs"), ("gcs", "gs"), ("gs", "gs"), ("s3", "s3")];

const OTHER_STORES: &[&str] = text::words!("tool/other-stores.txt");

/// The store that the buckets of a tool are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BucketStore {
    #[default]
    Untold,
    /// The scheme of its addresses.
    At(&'static str),
    /// Its buckets are its own.
    Other,
}

impl BucketStore {
    fn told_by(words: &[&str]) -> BucketStore {
        let scheme = |word: &&str| STORES.iter().find(|(store, _)| store == word);
        if words.iter().any(|word| has(OTHER_STORES, word)) {
            return BucketStore::Other;
        }
        let told = words.iter().find_map(scheme);
        told.map_or(BucketStore::Untold, |(_, scheme)| BucketStore::At(scheme))
    }
}

/// The words of a tool's name, sorted by what they tell.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolWords {
    /// The things that the tool is about, in the singular and in the order of the name.
    nouns: Vec<String>,
    /// The last of them that is not an aspect; it types a bare id or name.
    head: Option<String>,
    /// The thing to which or from which something is added, sent or removed.
    place: Option<String>,
    pub(super) searches: bool,
    pub(super) lists: bool,
    pub(super) creates: bool,
    pub(super) uses: bool,
    pub(super) moves: bool,
    pub(super) reads: bool,
    pub(super) removes: bool,
    pub(super) edits: bool,
    /// It writes what it gets to a file.
    pub(super) saves: bool,
    /// It takes a file somewhere else, and leaves it as it is.
    pub(super) sends: bool,
    /// Paths are the server's own.
    pub(super) has_files: bool,
    pub(super) connects: bool,
    pub(super) is_of_screen: bool,
    pub(super) store: BucketStore,
}

impl ToolWords {
    pub(super) fn new(tool: &str, server: &str, info: Option<&str>) -> ToolWords {
        let all = words(tool);
        let own_name = [words(server), words(info.unwrap_or_default())].concat();
        let told: Vec<&str> = all
            .iter()
            .map(String::as_str)
            // A tool often repeats the name of its server, which says nothing about arguments.
            .filter(|word| all.len() == 1 || !own_name.iter().any(|name| name == word))
            .collect();
        let every: Vec<&str> = all.iter().chain(&own_name).map(String::as_str).collect();
        let verb = told.iter().copied().find(|word| is_verb(word)).unwrap_or_default();
        let any = |list: &[&str]| told.iter().any(|word| has(list, word));
        let mut tool = ToolWords {
            searches: any(words::SEARCHES),
            lists: has(words::LISTS, verb),
            creates: has(words::CREATES, verb),
            uses: has(words::USES, verb),
            moves: any(words::MOVES),
            // A name without a verb is that of what is read: `model_details`.
            reads: has(words::READS, verb) || (verb.is_empty() && all.len() > 1),
            removes: ["delete", "drop", "remove"].contains(&verb),
            edits: ["edit", "modify", "patch", "save", "set", "update", "upsert"].contains(&verb),
            saves: ["download", "export", "save"].contains(&verb),
            sends: any(SENDS),
            has_files: own_name.iter().any(|word| has(words::REMOTE_STORES, word)),
            connects: any(words::CONNECTS),
            is_of_screen: has(words::SCREEN, verb),
            store: BucketStore::told_by(&every),
            ..ToolWords::default()
        };
        // A single word is the verb, even one that is not known, such as `hset`.
        if all.len() > 1 {
            tool.read_nouns(&told);
        }
        tool
    }

    fn read_nouns(&mut self, told: &[&str]) {
        // What follows `with` is an addition: `get_story_with_comments`.
        let end = told.iter().position(|word| *word == "with").unwrap_or(told.len());
        let told = &told[..end];
        // Only one word is the verb, or each side of an `or`: in `get_run`, the run is a thing.
        let verb = told.iter().position(|word| is_verb(word));
        let alternative = |at: usize| at > 0 && ["or", "and", "as"].contains(&told[at - 1]);
        let is_noun = |at: usize| {
            Some(at) != verb
                && !has(words::JOINERS, told[at])
                && !(is_verb(told[at]) && alternative(at))
        };
        let nouns = |from: usize| (from..told.len()).filter(|at| is_noun(*at)).map(|at| told[at]);
        let noun = |word: &str| singular(word).into_owned();
        self.nouns = nouns(0).map(noun).collect();
        // What is made from a thing leaves it as it is.
        let joins = |word: &&str| {
            ["in", "into", "on", "to"].contains(word) || (*word == "from" && !self.creates)
        };
        let joint = told.iter().position(joins);
        self.place = joint.filter(|_| !self.moves).and_then(|at| nouns(at + 1).next()).map(noun);
        let things: Vec<&str> = nouns(0).filter(|word| !has(words::ASPECTS, word)).collect();
        self.head = match things.as_slice() {
            // `list_issue_comments` with an id lists those of that issue.
            [.., owner, last] if singular(last) != *last => Some(noun(owner)),
            [.., last] => Some(noun(last)),
            [] => None,
        };
    }

    /// Returns the place of a noun in the name; `None` if the tool is not about it. A compound is
    /// found by its last word: `pull_request` in `merge_pull_request`.
    pub(super) fn position(&self, noun: &[&str]) -> Option<usize> {
        let last = noun.last()?;
        let at = self.nouns.iter().rposition(|have| have == last);
        at.or_else(|| self.nouns.iter().rposition(|have| noun.contains(&have.as_str())))
    }

    pub(super) fn is_place(&self, noun: &[&str]) -> bool {
        self.place.as_deref().is_some_and(|place| noun.last() == Some(&place))
    }

    pub(super) fn is_about(&self, noun: &str) -> bool {
        self.nouns.iter().any(|have| have == noun)
    }

    pub(super) fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }
}

fn is_verb(word: &str) -> bool {
    [
        words::SEARCHES,
        words::LISTS,
        words::CREATES,
        words::USES,
        words::OTHER_VERBS,
        words::SCREEN,
        words::CONNECTS,
    ]
    .iter()
    .any(|list| has(list, word))
}
