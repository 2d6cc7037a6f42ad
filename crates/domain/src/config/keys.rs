//! Every key of the configuration, declared once: the reader checks names, kinds and ranges against
//! these tables, and `docs/config.md` is generated from them.

use std::time::Duration;

use super::{AutoApprove, Durability, OnFailure, OtlpProtocol, Payloads, Sharing, Start};

/// Keys that are read and checked but have no effect in this version; each produces a note.
const NOT_YET: &[&str] = &["store", "mcpServers.<name>.oauth"];

pub(super) const NOT_YET_NOTE: &str = "accepted, not in effect in this version";

/// The note on a server with the SSE transport, as long as that is not supported upstream.
pub(super) const SSE_NOTE: Option<&str> =
    Some("legacy SSE upstreams come in a later version; the server will show as unavailable");

pub(super) struct Table {
    /// The path of the object, with `<name>` for any name; empty for the whole file.
    pub(super) path: &'static str,
    pub(super) keys: &'static [Key],
    /// Keys that other clients write, with their treatment.
    pub(super) foreign: &'static [(&'static str, &'static str)],
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

    pub(super) fn foreign(&self, name: &str) -> Option<&'static str> {
        self.foreign.iter().find(|(key, _)| *key == name).map(|(_, fate)| *fate)
    }

    pub(super) fn is_not_yet(&self, name: &str) -> bool {
        NOT_YET.iter().any(|path| match path.rsplit_once('.') {
            Some((table, key)) => table == self.path && key == name,
            None => self.path.is_empty() && *path == name,
        })
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
const STORE: Kind = Kind::Shape("`\"\"` or `postgres://…`");
const TRANSPORT: Kind = Kind::Shape("`\"stdio\"`, `\"http\"` or `\"sse\"`");
const TEMPLATES: Kind = Kind::Shape("list of strings, `${env:NAME}` allowed");
const NAMED_TEMPLATES: Kind = Kind::Shape("names to strings, `${env:NAME}` allowed");
const URL: Kind = Kind::Shape("`http` or `https` url, `${env:NAME}` allowed");
const SHA256: Kind = Kind::Shape("64 hex digits");
const ANYTHING: Kind = Kind::Shape("object");

pub(super) static TOP: Table = Table {
    path: "",
    foreign: &[],
    keys: &[
        hot("$schema", Kind::Text, "Address of a JSON schema, for editors; not read."),
        restart(
            "listen",
            ADDRESS,
            "Where HTTP is served. Beyond loopback only with `tls` or `behind_proxy`.",
        ),
        restart("tls", Kind::Section(&TLS), "Serves HTTPS instead of plain HTTP."),
        restart(
            "behind_proxy",
            Kind::Flag,
            "A TLS proxy is in front: plain HTTP may be served beyond loopback, and the last \
             address in `X-Forwarded-For` is the client's.",
        ),
        hot("allowed_hosts", HOSTS, "`Host` values that are answered. Replaces the default."),
        hot("allowed_origins", ORIGINS, "`Origin` values that are answered. Replaces the default."),
        hot("agent_token", Kind::Flag, "Off: the default token in `agent-token` opens nothing."),
        reconnect(
            "mcpServers",
            Kind::Named(&SERVER),
            "The upstream servers, by name; a list of objects with `name` is accepted too.",
        ),
        hot(
            "profiles",
            Kind::Named(&PROFILE),
            "Subsets of servers and tools, each at `/mcp/p/<name>`.",
        ),
        hot("workspace", Kind::Section(&WORKSPACE), "The built-in tools, as server `workspace`."),
        reconnect("plugins", Kind::Named(&PLUGIN), "Plugins whose operations are tools."),
        hot("intent_declaration", Kind::Section(&INTENT), "What is checked of a declared intent."),
        hot("tools_limit", TOOLS_LIMIT, "Tools in one search result."),
        hot(
            "tool_response_limit",
            RESPONSE_LIMIT,
            "Characters of a result in discovery mode; the rest is cut.",
        ),
        hot("call_timeout", TIMEOUT, "How long a call may take."),
        hot(
            "connect_timeout",
            CONNECT,
            "How long a server may take to start and answer `initialize`.",
        ),
        hot(
            "shutdown_timeout",
            SHUTDOWN,
            "How long running calls have to end when the gate stops.",
        ),
        hot("refresh_interval", REFRESH, "How often the tools of a server are listed again."),
        restart("ledger", Kind::Section(&LEDGER), "What is recorded of calls, and for how long."),
        hot(
            "redact",
            Kind::Section(&REDACT),
            "What is hidden in records, added to the built-in list.",
        ),
        restart(
            "telemetry",
            Kind::Section(&TELEMETRY),
            "Where spans go; what is not set here is taken from `OTEL_*`.",
        ),
        hot(
            "rate_limit",
            Kind::CountOrZero { min: 1, max: RATE_MAX },
            "MCP requests a minute for each token; wrong tokens are always slowed down.",
        ),
        restart(
            "store",
            STORE,
            "Where records are kept; empty is SQLite in the home. `${env:NAME}` allowed.",
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

pub(super) static SERVER: Table = Table {
    path: "mcpServers.<name>",
    foreign: &[
        ("type", "understood as 'transport'"),
        ("disabled", "understood as the opposite of 'enabled'"),
        ("autoApprove", "ignored: tools are approved in Countersign (see 'auto_approve')"),
        ("alwaysAllow", "ignored: tools are approved in Countersign (see 'auto_approve')"),
        ("trust", "ignored: tools are approved in Countersign (see 'auto_approve')"),
        ("timeout", "ignored: clients differ on its unit; use 'call_timeout'"),
        ("envFile", "ignored: no file is read; put the variables in 'env'"),
        ("description", "ignored: for people"),
        ("title", "ignored: for people"),
        ("icon", "ignored: for people"),
        ("tags", "ignored: for people"),
        ("version", "ignored: written by a client's gallery"),
        ("gallery", "ignored: written by a client's gallery"),
        ("dev", "ignored: a client's development mode"),
    ],
    keys: &[
        reconnect("name", Kind::Text, "Only in a list of servers, where no key says it."),
        reconnect("command", Kind::Text, "The program to start; one program, not a command line."),
        reconnect("args", TEMPLATES, "Its arguments."),
        reconnect("env", NAMED_TEMPLATES, "Its environment variables."),
        reconnect(
            "inherit_env",
            Kind::Flag,
            "On: it inherits the gate's whole environment, not only the usual variables.",
        ),
        reconnect("cwd", Kind::Text, "The folder it is started in."),
        reconnect("url", URL, "The server's address, instead of `command`."),
        reconnect("headers", NAMED_TEMPLATES, "Sent with every request to `url`."),
        reconnect(
            "transport",
            TRANSPORT,
            "Guessed when absent: sse for a `url` that ends in `/sse`, http for others.",
        ),
        reconnect("enabled", Kind::Flag, "Off: not started, its tools are hidden."),
        hot(
            "quarantined",
            Kind::Flag,
            "On: its tools are listed as locked until a person approves the server.",
        ),
        hot("enabled_tools", Kind::Texts, "Only these tools; not together with `disabled_tools`."),
        hot("disabled_tools", Kind::Texts, "All tools but these."),
        hot(
            "auto_approve",
            Kind::OneOf(AutoApprove::NAMES),
            "Which tools need no approval: none, new ones, or changed ones too.",
        ),
        reconnect("sharing", Kind::OneOf(Sharing::NAMES), "Whether callers share one connection."),
        reconnect(
            "start",
            Kind::OneOf(Start::NAMES),
            "Connected at start, or when a search, a list or a call first needs it.",
        ),
        hot("call_timeout", TIMEOUT, "Instead of the general one."),
        reconnect(
            "max_concurrent",
            Kind::Count { min: 1, max: CONCURRENT_MAX },
            "Calls at a time.",
        ),
        reconnect("oauth", Kind::Section(&OAUTH), "For servers that ask for a sign-in."),
    ],
};

pub(super) static OAUTH: Table = Table {
    path: "mcpServers.<name>.oauth",
    foreign: &[],
    keys: &[
        reconnect(
            "client_id",
            Kind::Text,
            "A client registered beforehand; otherwise one is registered.",
        ),
        reconnect(
            "scopes",
            Kind::Texts,
            "Scopes to ask for; otherwise those that the server names.",
        ),
    ],
};

pub(super) static PROFILE: Table = Table {
    path: "profiles.<name>",
    foreign: &[],
    keys: &[
        hot("servers", Kind::Texts, "Its servers. Required."),
        hot("tools", Kind::Texts, "Only these tools, as `server:tool`."),
        hot("exclude", Kind::Texts, "All but these tools, as `server:tool`."),
    ],
};

pub(super) static WORKSPACE: Table = Table {
    path: "workspace",
    foreign: &[],
    keys: &[
        hot("enabled", Kind::Flag, "By default only while no server and no plugin is configured."),
        hot(
            "root",
            Kind::Text,
            "The folder the tools work in; `/` and the person's home only where named here.",
        ),
        hot("write", Kind::Flag, "Offers `Write` and `Edit` beside `Read`, `Glob` and `Grep`."),
        hot("shell", Kind::Flag, "Offers `Bash`, which the root does not confine."),
        hot(
            "allow_outside",
            Kind::Flag,
            "Whether files outside the root can be reached; the gate's own home never.",
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
            "Absolute: its folder or its program, when it is not in a plugin folder.",
        ),
        reconnect("config", ANYTHING, "Handed to the plugin as it stands."),
        reconnect("env", NAMED_TEMPLATES, "Its environment variables."),
        reconnect("sha256", SHA256, "Of the executable; naming it approves it."),
    ],
};

pub(super) static INTENT: Table = Table {
    path: "intent_declaration",
    foreign: &[],
    keys: &[hot(
        "strict_server_validation",
        Kind::Flag,
        "Refuse a call whose declared intent is milder than the server's annotations; off: warn.",
    )],
};

pub(super) static LEDGER: Table = Table {
    path: "ledger",
    foreign: &[],
    keys: &[
        restart(
            "durability",
            Kind::OneOf(Durability::NAMES),
            "A record survives the end of the process, or the loss of power.",
        ),
        hot("payloads", Kind::OneOf(Payloads::NAMES), "What is stored of arguments and results."),
        restart(
            "on_failure",
            Kind::OneOf(OnFailure::NAMES),
            "While it cannot be written: queue reads and refuse the rest, or refuse all.",
        ),
        restart(
            "activity_retention_days",
            Kind::Count { min: 1, max: DAYS_MAX },
            "Days that activity is kept.",
        ),
        restart(
            "max_records",
            Kind::Count { min: 1_000, max: u32::MAX },
            "Records of activity that are kept.",
        ),
        restart(
            "max_size_mb",
            Kind::Count { min: 16, max: u32::MAX },
            "Megabytes of activity that are kept.",
        ),
        restart(
            "receipt_retention_days",
            Kind::CountOrZero { min: 1, max: DAYS_MAX },
            "Days that receipts are kept; 0: for ever.",
        ),
    ],
};

pub(super) static REDACT: Table = Table {
    path: "redact",
    foreign: &[],
    keys: &[
        hot("keys", Kind::Texts, "Names of members whose values are hidden."),
        hot("patterns", Kind::Texts, "Regular expressions; what matches is hidden."),
    ],
};

pub(super) static TELEMETRY: Table = Table {
    path: "telemetry",
    foreign: &[],
    keys: &[
        restart(
            "exporter",
            Kind::Text,
            "OTLP endpoint, `http` or `https`; empty: what `OTEL_*` names, if anything.",
        ),
        restart("service_name", Kind::Text, "The name spans carry."),
        restart("protocol", Kind::OneOf(OtlpProtocol::NAMES), "How the endpoint is spoken to."),
    ],
};
