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

/// Ends of keys that hold an id: `issue_id`, `projectKey`.
pub(super) const ID_ENDS: &[&str] = &[
    "arn",
    "gid",
    "guid",
    "id",
    "identifier",
    "identifiers",
    "ids",
    "iid",
    "key",
    "keys",
    "sid",
    "slug",
    "slugs",
    "ts",
    "uid",
    "uids",
    "urn",
    "uuid",
    "uuids",
];

/// Keys that are an id without a noun.
pub(super) const BARE_IDS: &[&str] =
    &["gid", "guid", "id", "identifier", "ids", "iid", "sid", "slug", "uid", "uids", "urn", "uuid"];

/// Ends of keys that hold a file or folder.
pub(super) const PATH_ENDS: &[&str] = &[
    "dir",
    "directories",
    "directory",
    "dirname",
    "dirpath",
    "file",
    "filename",
    "filenames",
    "filepath",
    "filepaths",
    "files",
    "path",
    "pathname",
    "paths",
];

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

/// Words that make a key a condition, a part of a search or a limit.
pub(super) const CONDITIONS: &[&str] = &[
    "contains",
    "exclude",
    "excluded",
    "exclusion",
    "filter",
    "filters",
    "glob",
    "ignore",
    "include",
    "included",
    "like",
    "limit",
    "mask",
    "match",
    "max",
    "min",
    "order",
    "pattern",
    "patterns",
    "prefix",
    "search",
    "selector",
    "sort",
    "suffix",
    "term",
    "terms",
];

/// Words of the conversation between caller and server; what they name ends with it.
pub(super) const CONVERSATION: &[&str] = &[
    "client",
    "correlation",
    "cursor",
    "idempotency",
    "nonce",
    "prompt",
    "session",
    "sessions",
    "thought",
    "token",
    "tokens",
];

/// Words before `path` that make it a place inside a document or a program.
pub(super) const INNER_PATHS: &[&str] = &[
    "api",
    "attribute",
    "class",
    "css",
    "entrypoint",
    "field",
    "fields",
    "http",
    "json",
    "key",
    "member",
    "name",
    "node",
    "previous",
    "property",
    "route",
    "symbol",
    "url",
    "xml",
];

/// Words before `path` that make it the folder to which other paths are relative.
pub(super) const BASE_PATHS: &[&str] = &[
    "base",
    "cwd",
    "project",
    "repo",
    "repository",
    "root",
    "vault",
    "workdir",
    "working",
    "workspace",
];

/// Words before `url` that make it a place to call or a setting, not a thing that is touched.
pub(super) const CALLED_ADDRESSES: &[&str] = &[
    "api",
    "auth",
    "avatar",
    "base",
    "callback",
    "cancel",
    "homepage",
    "host",
    "icon",
    "login",
    "logo",
    "proxy",
    "redirect",
    "referer",
    "region",
    "return",
    "server",
    "success",
    "thumbnail",
    "webhook",
];

/// Words before `url` that make it the content of what is sent or made.
pub(super) const CONTENT_ADDRESSES: &[&str] =
    &["attachment", "audio", "cover", "image", "img", "media", "photo", "picture", "video"];

// --- Nouns ---

/// Nouns that describe a thing rather than name it, unless the tool is about them: the assignee of
/// an issue, the template of a page.
pub(super) const ATTRIBUTES: &[&str] = &[
    "account",
    "artist",
    "asset",
    "assignee",
    "attribute",
    "author",
    "branch",
    "category",
    "chart",
    "city",
    "color",
    "column",
    "commit",
    "company",
    "component",
    "config",
    "contact",
    "country",
    "creator",
    "currency",
    "custom",
    "department",
    "device",
    "domain",
    "embedding",
    "event",
    "field",
    "folder",
    "font",
    "group",
    "image",
    "label",
    "language",
    "layer",
    "layout",
    "library",
    "link",
    "list",
    "location",
    "media",
    "member",
    "metric",
    "milestone",
    "model",
    "owner",
    "parent",
    "person",
    "place",
    "player",
    "pool",
    "position",
    "priority",
    "property",
    "provider",
    "region",
    "reporter",
    "reviewer",
    "revision",
    "role",
    "section",
    "sprint",
    "state",
    "station",
    "status",
    "style",
    "tag",
    "team",
    "template",
    "texture",
    "theme",
    "tool",
    "trace",
    "transition",
    "type",
    "user",
    "username",
    "variable",
    "version",
    "voice",
];

/// Nouns that name no resource, whatever the tool: choices, measures, parts of a person's name.
pub(super) const PLAIN_VALUES: &[&str] = &[
    "airport",
    "artist",
    "city",
    "company",
    "country",
    "county",
    "currency",
    "display",
    "district",
    "family",
    "first",
    "friendly",
    "full",
    "game",
    "given",
    "last",
    "locale",
    "metro",
    "middle",
    "new",
    "nick",
    "old",
    "operation",
    "phone",
    "place",
    "region",
    "screen",
    "search",
    "short",
    "sort",
    "station",
    "street",
    "subscription key",
    "ticker",
    "time",
    "time zone",
    "timezone",
    "unit",
];

/// Words after a noun that say which of its ids is meant.
pub(super) const QUALIFIERS: &[&str] =
    &["external", "full", "global", "internal", "numeric", "public", "unique"];

/// Attributes that are choices: what a tool applies or sets is not what it touches.
pub(super) const OPTIONS: &[&str] = &[
    "attribute",
    "category",
    "chart",
    "city",
    "color",
    "column",
    "config",
    "country",
    "currency",
    "custom",
    "embedding",
    "field",
    "font",
    "language",
    "layer",
    "layout",
    "location",
    "metric",
    "model",
    "pool",
    "position",
    "priority",
    "property",
    "provider",
    "region",
    "state",
    "status",
    "style",
    "template",
    "texture",
    "theme",
    "transition",
    "type",
    "variable",
    "version",
    "voice",
];

/// Attributes that are places, from the best: something is made in them if nothing else is named.
pub(super) const PLACES: [&str; 6] = ["parent", "folder", "list", "team", "group", "account"];

/// Servers with their own files, even if they run on this machine.
pub(super) const REMOTE_STORES: &[&str] = &[
    "box",
    "dropbox",
    "ftp",
    "gdrive",
    "nextcloud",
    "onedrive",
    "s3",
    "sftp",
    "sharepoint",
    "ssh",
    "webdav",
];

/// Last words of keys whose objects hold the arguments proper: `issue_data`.
pub(super) const ENVELOPE_ENDS: [&str; 6] =
    ["body", "data", "input", "params", "payload", "request"];

/// Containers that may have a word before them: `application_namespace`.
pub(super) const COMPOUND_SCOPES: [&str; 5] =
    ["bucket", "collection", "database", "namespace", "table"];

/// Nouns of tools whose `topic` is that of a broker, not of a conversation.
pub(super) const BROKER_NOUNS: [&str; 4] = ["consumer", "event", "message", "topic"];

/// Things inside a document: next to the path of the document, they add nothing.
pub(super) const PARTS: &[&str] = &[
    "bookmark",
    "cell",
    "chart",
    "class",
    "column",
    "footnote",
    "function",
    "layer",
    "layout",
    "line",
    "method",
    "notebook",
    "object",
    "paragraph",
    "placeholder",
    "presentation",
    "range",
    "row",
    "section",
    "series",
    "shape",
    "sheet",
    "slide",
    "style",
    "symbol",
    "table",
    "test",
    "variable",
    "workbook",
    "worksheet",
];

/// Things that are known by a number.
pub(super) const NUMBERED: &[&str] = &[
    "build",
    "case",
    "change",
    "discussion",
    "incident",
    "invoice",
    "issue",
    "job",
    "order",
    "pr",
    "pull",
    "request",
    "run",
    "ticket",
];

/// Things that a key names by the noun alone: `subscription: "sub_1"`, `container: "web"`.
pub(super) const NAMED_ALONE: &[&str] = &[
    "app",
    "application",
    "charge",
    "container",
    "crate",
    "customer",
    "dispute",
    "entity",
    "gist",
    "invoice",
    "package",
    "payment intent",
    "pod",
    "product",
    "queue",
    "stream",
    "subscription",
    "volume",
];

/// Aspects of a thing, which follow its name in that of a tool: `get_container_logs`.
pub(super) const ASPECTS: &[&str] = &[
    "attribute",
    "body",
    "by",
    "children",
    "code",
    "config",
    "configuration",
    "content",
    "contents",
    "count",
    "data",
    "detail",
    "details",
    "diff",
    "doc",
    "docs",
    "example",
    "examples",
    "field",
    "fields",
    "health",
    "history",
    "info",
    "information",
    "key",
    "link",
    "links",
    "location",
    "log",
    "logs",
    "metadata",
    "name",
    "names",
    "outline",
    "overview",
    "permissions",
    "preview",
    "profile",
    "properties",
    "raw",
    "readme",
    "report",
    "result",
    "results",
    "schema",
    "size",
    "source",
    "state",
    "statistics",
    "stats",
    "status",
    "structure",
    "summary",
    "text",
    "title",
    "trend",
    "uid",
    "usage",
    "value",
    "values",
    "version",
    "versions",
];

/// Words that join the nouns of a tool's name, or follow them without adding a noun.
pub(super) const JOINERS: &[&str] = &[
    "a", "all", "an", "and", "any", "api", "as", "at", "batch", "bulk", "by", "current", "data",
    "for", "from", "id", "ids", "in", "into", "is", "it", "latest", "many", "mcp", "multiple",
    "new", "next", "of", "on", "one", "or", "safely", "self", "sid", "single", "the", "to", "tool",
    "tools", "v1", "v2", "with", "within",
];

/// Objects that hold the arguments proper.
pub(super) const ENVELOPES: &[&str] = &[
    "args",
    "arguments",
    "body",
    "data",
    "deletions",
    "input",
    "inputs",
    "item",
    "items",
    "params",
    "parent",
    "payload",
    "query params",
    "ref",
    "request",
    "resource",
    "resource ref",
];

// --- Verbs ---

/// Verbs that look for something: what they name is not known to exist.
pub(super) const SEARCHES: &[&str] =
    &["autocomplete", "discover", "lookup", "recommend", "resolve", "search", "suggest"];

/// Verbs that return several things of a place.
pub(super) const LISTS: &[&str] = &["enumerate", "explore", "find", "list", "query", "scan"];

/// Verbs that make something new.
pub(super) const CREATES: &[&str] = &[
    "add", "build", "clone", "create", "fork", "generate", "import", "insert", "install", "invite",
    "make", "new", "register", "reply", "run", "schedule", "send", "share", "submit",
];

/// Verbs whose name for a thing is that of something that exists.
pub(super) const USES: &[&str] = &[
    "activate",
    "append",
    "approve",
    "archive",
    "call",
    "cancel",
    "check",
    "clear",
    "close",
    "deactivate",
    "delete",
    "deploy",
    "describe",
    "disable",
    "download",
    "drop",
    "edit",
    "enable",
    "execute",
    "export",
    "fetch",
    "get",
    "inspect",
    "invoke",
    "kill",
    "load",
    "lock",
    "mark",
    "merge",
    "modify",
    "monitor",
    "open",
    "patch",
    "pause",
    "publish",
    "purge",
    "put",
    "read",
    "remove",
    "replace",
    "reset",
    "restart",
    "restore",
    "resume",
    "retrieve",
    "retry",
    "save",
    "scale",
    "set",
    "show",
    "start",
    "stop",
    "summarize",
    "switch",
    "sync",
    "transfer",
    "trigger",
    "truncate",
    "turn",
    "unlock",
    "update",
    "upsert",
    "use",
    "view",
    "watch",
    "write",
];

/// Verbs that read one thing.
pub(super) const READS: &[&str] =
    &["describe", "fetch", "get", "open", "read", "retrieve", "show", "view"];

/// Verbs of nearly any tool, which say nothing more about its arguments.
pub(super) const OTHER_VERBS: &[&str] = &[
    "analyze",
    "apply",
    "assign",
    "compare",
    "complete",
    "convert",
    "copy",
    "duplicate",
    "explain",
    "extract",
    "finalize",
    "log",
    "manage",
    "move",
    "mute",
    "perform",
    "post",
    "process",
    "push",
    "release",
    "rename",
    "scrape",
    "store",
    "take",
    "transform",
    "transition",
    "unmute",
    "upload",
    "validate",
    "verify",
];

/// Verbs that take a thing from one place to another, so that both change.
pub(super) const MOVES: &[&str] = &["move", "rename"];

/// Verbs that handle a screen. Their names and keys are those of elements and of a keyboard.
pub(super) const SCREEN: &[&str] = &[
    "click",
    "codegen",
    "drag",
    "evaluate",
    "fill",
    "hover",
    "keyboard",
    "mouse",
    "press",
    "screenshot",
    "scroll",
    "select",
    "snapshot",
    "swipe",
    "tap",
    "type",
    "wait",
];

/// Verbs that begin a connection; what they are given is a login.
pub(super) const CONNECTS: &[&str] =
    &["auth", "authenticate", "authorize", "connect", "disconnect", "login", "logout"];
