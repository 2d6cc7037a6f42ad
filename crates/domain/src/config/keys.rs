//! Every key of the configuration, declared once: the reader checks names, kinds and ranges against
//! these tables, and `docs/config.md` is generated from them.

use std::fmt;
use std::time::Duration;

use super::{
    AutoApprove, Durability, LoginScope, OAuthGrant, OnFailure, OtlpProtocol, Payloads, Sharing,
    Start, TokenAuth,
};

/// The name that Gemini CLI gives to an address whose transport is not HTTP+SSE.
pub(super) const HTTP_ADDRESS: &str = "httpUrl";

/// The members of a server that hold an address.
pub(super) const ADDRESSES: [&str; 3] = ["url", HTTP_ADDRESS, "serverUrl"];

pub(super) struct Table {
    /// The path of the object, with `<name>` for any name; empty for the whole file.
    pub(super) path: &'static str,
    pub(super) keys: &'static [Key],
    /// Keys that other clients write, with their treatment.
    pub(super) foreign: &'static [(&'static str, KeyTreatment)],
}

/// The treatment of a key that other clients write.
#[derive(Clone, Copy)]
pub(super) enum KeyTreatment {
    /// Means the same as keys of ours.
    ReadAs(&'static str),
    /// Has no effect, for this reason; a note says so.
    Ignored(&'static str),
}

impl fmt::Display for KeyTreatment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyTreatment::ReadAs(ours) => write!(f, "read as {ours}"),
            KeyTreatment::Ignored(reason) => write!(f, "ignored: {reason}"),
        }
    }
}

pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) when: When,
    pub(super) meaning: &'static str,
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Texts,
    Flag,
    Count {
        min: u32,
        max: u32,
    },
    /// 0 disables the setting; other values start at `min`.
    CountOrZero {
        min: u32,
        max: u32,
    },
    Span {
        min: Duration,
        max: Duration,
    },
    OneOf(&'static [&'static str]),
    Section(&'static Table),
    /// A list of objects.
    Listed(&'static Table),
    /// A map of names to objects.
    Named(&'static Table),
    /// Read by its own function; the text describes the accepted values.
    Shape(&'static str),
}

/// The time at which a changed value takes effect.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum When {
    Hot,
    Reconnect,
    Restart,
}

/// Returns the keys of an entry of `mcpServers`, except those of other clients.
pub fn server_keys() -> impl Iterator<Item = &'static str> {
    SERVER.keys.iter().map(|key| key.name)
}

impl Table {
    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    pub(super) fn foreign(&self, name: &str) -> Option<KeyTreatment> {
        self.foreign.iter().find(|(key, _)| *key == name).map(|(_, treatment)| *treatment)
    }
}

const fn hot(name: &'static str, kind: Kind, meaning: &'static str) -> Key {
    Key { name, kind, when: When::Hot, meaning }
}

const fn reconnect(name: &'static str, kind: Kind, meaning: &'static str) -> Key {
    Key { name, kind, when: When::Reconnect, meaning }
}

const fn restart(name: &'static str, kind: Kind, meaning: &'static str) -> Key {
    Key { name, kind, when: When::Restart, meaning }
}

/// No upstream responds faster than the minimum; more than a day is an endless wait.
const TIMEOUT: Kind = Kind::Span { min: Duration::from_millis(10), max: Duration::from_hours(24) };

/// A handshake that takes longer than ten minutes has failed.
const CONNECT: Kind = Kind::Span { min: Duration::from_millis(10), max: Duration::from_mins(10) };

/// Service managers kill a process that has not stopped after a few minutes.
const SHUTDOWN: Kind = Kind::Span { min: Duration::ZERO, max: Duration::from_mins(5) };

/// Listing all tools of all servers more than once a second only adds load.
const REFRESH: Kind = Kind::Span { min: Duration::from_secs(1), max: Duration::from_hours(24) };

/// More search results cost a model more than they are worth.
const TOOLS_LIMIT: Kind = Kind::Count { min: 1, max: 100 };

/// Below 100 characters, the truncation notice is longer than the result.
const RESPONSE_LIMIT: Kind = Kind::CountOrZero { min: 100, max: 100_000_000 };

/// A hundred years.
const DAYS_MAX: u32 = 36_500;

/// Concurrent calls to one server; beyond this the calls queue in the server, not in the gate.
const CONCURRENT_MAX: u32 = 10_000;

/// More than 16,000 requests a second is effectively no limit.
const RATE_MAX: u32 = 1_000_000;

const ADDRESS: Kind = Kind::Shape("`ip:port` or `localhost:port`");
const HOSTS: Kind = Kind::Shape("list of `host` or `host:port`");
const ORIGINS: Kind = Kind::Shape("list of `scheme://host:port`");
const SECRETS_KEY: Kind = Kind::Shape(
    "`\"auto\"`, `\"file\"`, `\"keychain\"` or `{\"command\": [program, argument, …]}`",
);
const TRANSPORT: Kind = Kind::Shape("`\"stdio\"`, `\"http\"` or `\"sse\"`");
const TEMPLATES: Kind = Kind::Shape("list of strings, `${env:NAME}` and `${secret:NAME}` allowed");
const TEMPLATE: Kind = Kind::Shape("string, `${env:NAME}` and `${secret:NAME}` allowed");
const NAMED_TEMPLATES: Kind =
    Kind::Shape("names to strings, `${env:NAME}` and `${secret:NAME}` allowed");
const URL: Kind = Kind::Shape("`http` or `https` url, `${env:NAME}` and `${secret:NAME}` allowed");
const SHA256: Kind = Kind::Shape("64 hex digits");
const TOOL_PATTERN: Kind = Kind::Shape("string, such as `get_*`");
const RESOURCE: Kind = Kind::Shape("template, list of templates, or `null`");
const READS: Kind = Kind::Shape("template or list of templates");
const ANYTHING: Kind = Kind::Shape("object");

pub(super) static TOP: Table = Table {
    path: "",
    foreign: &[],
    keys: &[
        hot("$schema", Kind::Text, "URL of a JSON schema, for editors; the gate does not read it."),
        restart(
            "listen",
            ADDRESS,
            "The address on which the gate serves HTTP: 127.0.0.1 and ::1 come together. Beyond loopback \
             it needs `tls` or `behind_proxy`.",
        ),
        restart("tls", Kind::Section(&TLS), "Serves HTTPS instead of plain HTTP."),
        restart(
            "behind_proxy",
            Kind::Flag,
            "A TLS proxy is in front: plain HTTP may be served beyond loopback, and the last \
             address in `X-Forwarded-For` is the client's.",
        ),
        hot(
            "allowed_hosts",
            HOSTS,
            "Accepted values of the `Host` header. Replaces the default list. Over plain HTTP, only \
             names of other machines in it serve the page.",
        ),
        hot(
            "allowed_origins",
            ORIGINS,
            "Accepted values of the `Origin` header. Replaces the default list.",
        ),
        hot("agent_token", Kind::Flag, "Accepts the default token in `agent-token`."),
        reconnect(
            "mcpServers",
            Kind::Named(&SERVER),
            "The upstream servers, by name; a list of objects with `name` is accepted too.",
        ),
        hot(
            "profiles",
            Kind::Named(&PROFILE),
            "Subsets of servers and tools, each served at `/mcp/p/<name>`.",
        ),
        hot(
            "workspace",
            Kind::Section(&WORKSPACE),
            "The built-in tools, offered as server `workspace`.",
        ),
        reconnect(
            "plugins",
            Kind::Named(&PLUGIN),
            "Plugins whose operations are offered as tools.",
        ),
        hot(
            "intent_declaration",
            Kind::Section(&INTENT),
            "How strictly declared intents are checked.",
        ),
        hot("search", Kind::Section(&SEARCH), "What counts when tools are searched."),
        hot(
            "tools_limit",
            TOOLS_LIMIT,
            "The most tools in the result of a search that names no limit.",
        ),
        hot(
            "tool_response_limit",
            RESPONSE_LIMIT,
            "The longest result in discovery mode, in characters; the rest is cut off.",
        ),
        hot("call_timeout", TIMEOUT, "The longest time a call may take."),
        hot(
            "connect_timeout",
            CONNECT,
            "The longest time a server may take to start and answer `initialize`.",
        ),
        hot(
            "shutdown_timeout",
            SHUTDOWN,
            "How long the gate waits for running calls when it shuts down.",
        ),
        hot("refresh_interval", REFRESH, "How often the gate lists each server's tools again."),
        restart(
            "ledger",
            Kind::Section(&LEDGER),
            "What the gate records about calls, and for how long.",
        ),
        hot(
            "redact",
            Kind::Section(&REDACT),
            "What to redact in records, in addition to the built-in rules.",
        ),
        hot(
            "secrets",
            Kind::Section(&SECRETS),
            "How the values of `${secret:NAME}` and the tokens of servers are stored.",
        ),
        restart(
            "telemetry",
            Kind::Section(&TELEMETRY),
            "Where spans are exported; `OTEL_*` variables supply what is not set here.",
        ),
        hot(
            "rate_limit",
            Kind::CountOrZero { min: 1, max: RATE_MAX },
            "MCP requests per minute for each token; invalid tokens are always slowed down.",
        ),
    ],
};

pub(super) static TLS: Table = Table {
    path: "tls",
    foreign: &[],
    keys: &[
        restart("cert", Kind::Text, "PEM file with the certificate chain. Required."),
        restart("key", Kind::Text, "PEM file with the private key. Required."),
    ],
};

pub(super) static SECRETS: Table = Table {
    path: "secrets",
    foreign: &[],
    keys: &[hot(
        "key",
        SECRETS_KEY,
        "Where the key is that they are encrypted with; `auto` is a file, on macOS the OS keychain. \
         A command prints the key. A change applies when the next secret is set.",
    )],
};

pub(super) static KEY_COMMAND: Table = Table {
    path: "secrets.key",
    foreign: &[],
    keys: &[hot("command", Kind::Texts, "The program that prints the key, and its arguments.")],
};

pub(super) static SERVER: Table = Table {
    path: "mcpServers.<name>",
    foreign: &[
        ("type", KeyTreatment::ReadAs("'transport'")),
        ("httpUrl", KeyTreatment::ReadAs("'url' with transport \"http\"")),
        ("serverUrl", KeyTreatment::ReadAs("'url'")),
        ("disabled", KeyTreatment::ReadAs("the opposite of 'enabled'")),
        (
            "autoApprove",
            KeyTreatment::Ignored("tools are approved in Countersign (see 'auto_approve')"),
        ),
        (
            "alwaysAllow",
            KeyTreatment::Ignored("tools are approved in Countersign (see 'auto_approve')"),
        ),
        ("trust", KeyTreatment::Ignored("tools are approved in Countersign (see 'auto_approve')")),
        ("timeout", KeyTreatment::Ignored("clients differ on its unit; use 'call_timeout'")),
        (
            "envFile",
            KeyTreatment::Ignored("Countersign reads no env file; put the variables in 'env'"),
        ),
        ("description", KeyTreatment::Ignored("display only")),
        ("title", KeyTreatment::Ignored("display only")),
        ("icon", KeyTreatment::Ignored("display only")),
        ("tags", KeyTreatment::Ignored("display only")),
        ("version", KeyTreatment::Ignored("metadata of a client's gallery")),
        ("gallery", KeyTreatment::Ignored("metadata of a client's gallery")),
        ("dev", KeyTreatment::Ignored("setting of a client's development mode")),
    ],
    keys: &[
        reconnect(
            "name",
            Kind::Text,
            "The server's name; only in a list of servers, which has no keys.",
        ),
        reconnect(
            "command",
            Kind::Text,
            "The program to start: a single program, not a command line.",
        ),
        reconnect("args", TEMPLATES, "Arguments of the program."),
        reconnect("env", NAMED_TEMPLATES, "Environment variables of the program."),
        reconnect(
            "inherit_env",
            Kind::Flag,
            "Inherits the gate's whole environment, not only the usual variables.",
        ),
        reconnect("cwd", Kind::Text, "The working directory of the program."),
        reconnect("url", URL, "The server's URL; replaces `command`."),
        reconnect("headers", NAMED_TEMPLATES, "HTTP headers sent with every request to `url`."),
        reconnect(
            "transport",
            TRANSPORT,
            "If absent: stdio with `command`; sse for a `url` that ends in `/sse`, otherwise http.",
        ),
        reconnect(
            "enabled",
            Kind::Flag,
            "If false, the server is not started and its tools are hidden.",
        ),
        hot(
            "quarantined",
            Kind::Flag,
            "If true, its tools are listed as locked until a person approves the server.",
        ),
        reconnect(
            "untrusted",
            Kind::Flag,
            "If true, the server is not started before a person approves it, nor after a change until it is approved again. `connect --import` sets it for servers that somebody else may have defined.",
        ),
        hot(
            "enabled_tools",
            Kind::Texts,
            "The only tools allowed; cannot be combined with `disabled_tools`.",
        ),
        hot("disabled_tools", Kind::Texts, "Tools to lock; all others are allowed."),
        hot(
            "auto_approve",
            Kind::OneOf(AutoApprove::NAMES),
            "Which tools need no approval: none, new ones, or new and changed ones.",
        ),
        reconnect("sharing", Kind::OneOf(Sharing::NAMES), "Whether callers share one connection."),
        reconnect(
            "start",
            Kind::OneOf(Start::NAMES),
            "Connect at start, or when a search, a list or a call first needs the server.",
        ),
        hot("call_timeout", TIMEOUT, "Replaces the top-level `call_timeout` for this server."),
        reconnect(
            "max_concurrent",
            Kind::Count { min: 1, max: CONCURRENT_MAX },
            "The most concurrent calls.",
        ),
        reconnect(
            "login",
            Kind::OneOf(LoginScope::NAMES),
            "Whether all callers share one sign-in, or each agent token has its own; see \
             [sign-in](sign-in.md).",
        ),
        reconnect(
            "oauth",
            Kind::Section(&OAUTH),
            "How to sign in to the server, where the gate cannot find out; see [sign-in](sign-in.md).",
        ),
        reconnect(
            "pin",
            Kind::Flag,
            "Quarantines the server if the file that `command` starts changes.",
        ),
        hot(
            "targets",
            Kind::Section(&TARGETS),
            "Which resources its calls touch; see [targets](targets.md).",
        ),
    ],
};

pub(super) static TARGETS: Table = Table {
    path: "mcpServers.<name>.targets",
    foreign: &[],
    keys: &[
        hot(
            "system",
            Kind::Text,
            "Replaces the server's name as the system of its resources, such as `github.com`.",
        ),
        hot("rules", Kind::Listed(&TARGET_RULE), "Tried in their order, before the built-in ones."),
    ],
};

pub(super) static TARGET_RULE: Table = Table {
    path: "mcpServers.<name>.targets.rules[]",
    foreign: &[],
    keys: &[
        hot(
            "tools",
            TOOL_PATTERN,
            "The tools that the rule is for: `*` stands for any text, a bar separates names. Required.",
        ),
        hot(
            "resource",
            RESOURCE,
            "Names what a call touches; `null` for calls that touch nothing. Required.",
        ),
        hot("reads", READS, "Names what a call only reads, such as the source of a copy."),
    ],
};

pub(super) static OAUTH: Table = Table {
    path: "mcpServers.<name>.oauth",
    foreign: &[],
    keys: &[
        reconnect(
            "client_id",
            Kind::Text,
            "ID of a registered client, or the https URL of its metadata document; if absent, the gate \
             registers one.",
        ),
        reconnect("client_secret", TEMPLATE, "The secret of that client."),
        reconnect(
            "private_key",
            TEMPLATE,
            "A private key of that client (PKCS#8 in PEM, P-256 or RSA), for `private_key_jwt`.",
        ),
        reconnect(
            "auth_method",
            Kind::OneOf(TokenAuth::NAMES),
            "How that client authenticates; if absent, as the authorization server supports it.",
        ),
        reconnect(
            "scopes",
            Kind::Texts,
            "Scopes to request; if absent, those that the server advertises.",
        ),
        reconnect(
            "grant",
            Kind::OneOf(OAuthGrant::NAMES),
            "Whether a person signs in, or the gate itself with the secret or key of the client.",
        ),
        reconnect(
            "metadata_url",
            Kind::Text,
            "Metadata of the authorization server, where the server does not name it.",
        ),
        reconnect(
            "resource",
            Kind::Flag,
            "Names the server in requests for tokens; some authorization servers reject that.",
        ),
        reconnect(
            "assume_pkce",
            Kind::Flag,
            "The authorization server supports PKCE though its metadata does not say so.",
        ),
    ],
};

pub(super) static PROFILE: Table = Table {
    path: "profiles.<name>",
    foreign: &[],
    keys: &[
        hot("servers", Kind::Texts, "Servers of the profile. Required."),
        hot("tools", Kind::Texts, "The only tools included, as `server:tool`."),
        hot("exclude", Kind::Texts, "Tools to exclude, as `server:tool`."),
    ],
};

pub(super) static WORKSPACE: Table = Table {
    path: "workspace",
    foreign: &[],
    keys: &[
        hot(
            "enabled",
            Kind::Flag,
            "By default true only while no server and no plugin is configured.",
        ),
        hot(
            "root",
            Kind::Text,
            "The folder the tools work in; `/` or the user's home must be named explicitly.",
        ),
        hot(
            "write",
            Kind::Flag,
            "Offers `Write` and `Edit` in addition to `Read`, `Glob` and `Grep`.",
        ),
        hot("shell", Kind::Flag, "Offers `Bash`, which is not confined to the root."),
        hot(
            "allow_outside",
            Kind::Flag,
            "Whether tools may access files outside the root; never the gate's own home.",
        ),
    ],
};

pub(super) static PLUGIN: Table = Table {
    path: "plugins.<name>",
    foreign: &[],
    keys: &[
        reconnect(
            "path",
            Kind::Text,
            "Absolute path of its folder or executable, if it is not in a plugin folder.",
        ),
        reconnect("config", ANYTHING, "Passed to the plugin unchanged."),
        reconnect("env", NAMED_TEMPLATES, "Environment variables of the plugin."),
        reconnect("sha256", SHA256, "SHA-256 of the executable; setting it approves the plugin."),
    ],
};

pub(super) static INTENT: Table = Table {
    path: "intent_declaration",
    foreign: &[],
    keys: &[hot(
        "strict_server_validation",
        Kind::Flag,
        "Refuse a call that declares a milder intent than the tool's annotations; else warn.",
    )],
};

pub(super) static SEARCH: Table = Table {
    path: "search",
    foreign: &[],
    keys: &[hot(
        "learned",
        Kind::Flag,
        "Count similarity in meaning beside words; see [search.md](search.md).",
    )],
};

pub(super) static LEDGER: Table = Table {
    path: "ledger",
    foreign: &[],
    keys: &[
        restart(
            "durability",
            Kind::OneOf(Durability::NAMES),
            "What a record survives: a crash of the process, or a power loss too.",
        ),
        hot("payloads", Kind::OneOf(Payloads::NAMES), "How arguments and results are stored."),
        restart(
            "on_failure",
            Kind::OneOf(OnFailure::NAMES),
            "While the ledger cannot be written, queue reads and refuse the rest, or refuse all.",
        ),
        hot(
            "activity_retention_days",
            Kind::Count { min: 1, max: DAYS_MAX },
            "How many days of activity to keep.",
        ),
        hot(
            "max_records",
            Kind::Count { min: 1_000, max: u32::MAX },
            "How many activity records to keep.",
        ),
        hot(
            "max_size_mb",
            Kind::Count { min: 16, max: u32::MAX },
            "How many megabytes of activity to keep.",
        ),
        hot(
            "receipt_retention_days",
            Kind::CountOrZero { min: 1, max: DAYS_MAX },
            "How many days to keep receipts; 0 keeps them forever.",
        ),
        restart(
            "anchor",
            Kind::Shape("string (file) or list of strings (command)"),
            "Where each checkpoint is also put: a file to append to, or a command with it on stdin.",
        ),
    ],
};

pub(super) static REDACT: Table = Table {
    path: "redact",
    foreign: &[],
    keys: &[
        hot("keys", Kind::Texts, "Names of JSON members whose values are redacted."),
        hot("patterns", Kind::Texts, "Regular expressions; matching text is redacted."),
    ],
};

pub(super) static TELEMETRY: Table = Table {
    path: "telemetry",
    foreign: &[],
    keys: &[
        restart(
            "exporter",
            Kind::Text,
            "OTLP endpoint, `http` or `https`; if empty, the one set by `OTEL_*` variables.",
        ),
        restart("service_name", Kind::Text, "The service name in spans."),
        restart("protocol", Kind::OneOf(OtlpProtocol::NAMES), "The OTLP protocol of the endpoint."),
    ],
};
