//! The words of names: how a name is split, and which words matter, sorted by what they tell.

/// Longer names are data, not names.
pub(super) const NAME_BYTES_MAX: usize = 96;

/// Splits a name into lower-case words: `issueNumber`, `issue-number`, `issue_number`. A name with
/// other characters than letters, digits and separators has none.
pub(super) fn words(name: &str) -> Vec<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-. :/$@[]".contains(&byte);
    if name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        return Vec::new();
    }
    let bytes = name.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(b' ');
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for (index, byte) in bytes.iter().copied().enumerate() {
        if !byte.is_ascii_alphanumeric() {
            open = false;
            continue;
        }
        let before = if index == 0 { b' ' } else { at(index - 1) };
        let next = at(index + 1);
        // In `fileIDs` and `HTTPServer` the last capital begins a word only before a whole word.
        let plural = next == b's' && !at(index + 2).is_ascii_lowercase();
        let ends_capitals = before.is_ascii_uppercase() && next.is_ascii_lowercase() && !plural;
        let after_lower = before.is_ascii_lowercase() || before.is_ascii_digit();
        let begins = byte.is_ascii_uppercase() && (after_lower || ends_capitals);
        if !open || begins {
            words.push(String::new());
            open = true;
        }
        if let Some(word) = words.last_mut() {
            word.push(char::from(byte.to_ascii_lowercase()));
        }
    }
    words
}

/// Reports whether a list, which is sorted, has the word.
pub(super) fn has(list: &[&str], word: &str) -> bool {
    list.binary_search(&word).is_ok()
}

// --- The ends of keys ---

pub(super) const ID_ENDS: &[&str] = text::words!("words/id-ends.txt");

/// Keys that are an id without a noun.
pub(super) const BARE_IDS: &[&str] =
    &["gid", "guid", "id", "identifier", "ids", "iid", "sid", "slug", "uid", "uids", "urn", "uuid"];

pub(super) const PATH_ENDS: &[&str] = text::words!("words/path-ends.txt");

/// Ends of keys that hold an address.
pub(super) const ADDRESS_ENDS: &[&str] = &["endpoint", "uri", "uris", "url", "urls"];

/// Keys that hold a statement in SQL or a language like it.
pub(super) const STATEMENTS: &[&str] = &["esql", "query", "sql", "statement"];

/// Keys that hold a description of an object.
pub(super) const MANIFESTS: &[&str] = &["definition", "manifest", "resource", "yaml"];

/// Keys that hold the kind of the thing that another key names.
pub(super) const KINDS: &[&str] =
    &["kind", "object type", "resource kind", "resource type", "type name"];

// --- Words in keys that change what they hold ---

/// Words that make a key the one from which something is taken.
pub(super) const SOURCES: &[&str] = &["from", "input", "old", "original", "source", "src"];

/// Words that make a key the one to which something goes.
pub(super) const DESTINATIONS: &[&str] =
    &["dest", "destination", "download", "dst", "new", "output", "save", "target", "to"];

pub(super) const CONDITIONS: &[&str] = text::words!("words/conditions.txt");
pub(super) const CONVERSATION: &[&str] = text::words!("words/conversation.txt");
pub(super) const INNER_PATHS: &[&str] = text::words!("words/inner-paths.txt");
pub(super) const BASE_PATHS: &[&str] = text::words!("words/base-paths.txt");
pub(super) const CALLED_ADDRESSES: &[&str] = text::words!("words/called-addresses.txt");

/// Words before `url` that make it the content of what is sent or made.
pub(super) const CONTENT_ADDRESSES: &[&str] =
    &["attachment", "audio", "cover", "image", "img", "media", "photo", "picture", "video"];

// --- Nouns ---

pub(super) const ATTRIBUTES: &[&str] = text::words!("words/attributes.txt");
pub(super) const PLAIN_VALUES: &[&str] = text::words!("words/plain-values.txt");

/// Words after a noun that say which of its ids is meant.
pub(super) const QUALIFIERS: &[&str] =
    &["external", "full", "global", "internal", "numeric", "public", "unique"];

pub(super) const OPTIONS: &[&str] = text::words!("words/options.txt");

/// Attributes that are places, from the best: something is made in them if nothing else is named.
pub(super) const PLACES: [&str; 6] = ["parent", "folder", "list", "team", "group", "account"];

pub(super) const REMOTE_STORES: &[&str] = text::words!("words/remote-stores.txt");

/// Last words of keys whose objects hold the arguments proper: `issue_data`.
pub(super) const ENVELOPE_ENDS: [&str; 6] =
    ["body", "data", "input", "params", "payload", "request"];

/// Containers that may have a word before them: `application_namespace`.
pub(super) const COMPOUND_SCOPES: [&str; 5] =
    ["bucket", "collection", "database", "namespace", "table"];

/// Nouns of tools whose `topic` is that of a broker, not of a conversation.
pub(super) const BROKER_NOUNS: [&str; 4] = ["consumer", "event", "message", "topic"];

pub(super) const PARTS: &[&str] = text::words!("words/parts.txt");
pub(super) const CONTENTS: &[&str] = text::words!("words/contents.txt");
pub(super) const NUMBERED: &[&str] = text::words!("words/numbered.txt");
pub(super) const NAMED_ALONE: &[&str] = text::words!("words/named-alone.txt");
pub(super) const ASPECTS: &[&str] = text::words!("words/aspects.txt");
pub(super) const JOINERS: &[&str] = text::words!("words/joiners.txt");
pub(super) const ENVELOPES: &[&str] = text::words!("words/envelopes.txt");

// --- Verbs ---

/// Verbs that look for something: what they name is not known to exist.
pub(super) const SEARCHES: &[&str] =
    &["autocomplete", "discover", "lookup", "recommend", "resolve", "search", "suggest"];

/// Verbs that return several things of a place.
pub(super) const LISTS: &[&str] = &["enumerate", "explore", "find", "list", "query", "scan"];

pub(super) const CREATES: &[&str] = text::words!("words/creates.txt");
pub(super) const USES: &[&str] = text::words!("words/uses.txt");

/// Verbs that read one thing.
pub(super) const READS: &[&str] =
    &["describe", "fetch", "get", "open", "read", "retrieve", "show", "view"];

pub(super) const OTHER_VERBS: &[&str] = text::words!("words/other-verbs.txt");

/// Verbs that take a thing from one place to another, so that both change.
pub(super) const MOVES: &[&str] = &["move", "rename"];

pub(super) const SCREEN: &[&str] = text::words!("words/screen.txt");

/// Verbs that begin a connection; what they are given is a login.
pub(super) const CONNECTS: &[&str] =
    &["auth", "authenticate", "authorize", "connect", "disconnect", "login", "logout"];
