//! The requests of a client that pass to a server besides calls of its tools. Each is one row: what
//! it is about, how it is decided, and how it is routed. What has no row and is no part of the
//! protocol is a server's own method.

use serde_json::{Map, Value};

use crate::tool::{Class, Hints};

/// The request behind a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    ToolCall,
    Known(&'static MethodRule),
    /// A method of the server's own, of which nothing is known.
    Custom,
    /// A notification of the server's own, which has no response.
    CustomNotification,
}

/// One method of the protocol.
#[derive(Debug, PartialEq, Eq)]
pub struct MethodRule {
    pub name: &'static str,
    /// The capability that a server declares if it offers the method.
    pub capability: &'static str,
    pub class: Class,
    pub subject: Subject,
    pub route: MethodRoute,
}

/// The part of the params that says what a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Nothing,
    /// `uri`
    Resource,
    /// `name`
    Prompt,
    /// `ref`: a prompt or a resource template.
    Reference,
}

/// The way of a request on a connection that several clients share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodRoute {
    /// Sent as it is.
    Forwarded,
    /// Sent, and the client gets the updates of the resource from then on.
    Subscribes,
    /// Sent once no client is subscribed any more.
    Unsubscribes,
    /// Sent with the most detailed level that a client wants.
    SetsLevel,
}

/// The subject of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectItem<'a> {
    Resource(&'a str),
    Template(&'a str),
    Prompt(&'a str),
}

/// Longer addresses and names are data.
pub const SUBJECT_BYTES_MAX: usize = 8 * 1024;

/// Every method that passes and is recorded, besides `tools/call`.
pub static METHODS: [MethodRule; 6] = [
    MethodRule {
        name: "resources/read",
        capability: "resources",
        class: Class::Read,
        subject: Subject::Resource,
        route: MethodRoute::Forwarded,
    },
    MethodRule {
        name: "resources/subscribe",
        capability: "resources",
        class: Class::Read,
        subject: Subject::Resource,
        route: MethodRoute::Subscribes,
    },
    MethodRule {
        name: "resources/unsubscribe",
        capability: "resources",
        class: Class::Read,
        subject: Subject::Resource,
        route: MethodRoute::Unsubscribes,
    },
    MethodRule {
        name: "prompts/get",
        capability: "prompts",
        class: Class::Read,
        subject: Subject::Prompt,
        route: MethodRoute::Forwarded,
    },
    MethodRule {
        name: "completion/complete",
        capability: "completions",
        class: Class::Read,
        subject: Subject::Reference,
        route: MethodRoute::Forwarded,
    },
    MethodRule {
        name: "logging/setLevel",
        capability: "logging",
        class: Class::Read,
        subject: Subject::Nothing,
        route: MethodRoute::SetsLevel,
    },
];

/// The families of the protocol's own methods. A name in one of them that has no row is not a
/// server's own, and is not passed on.
const FAMILIES: [&str; 13] = [
    "tools",
    "resources",
    "prompts",
    "completion",
    "logging",
    "tasks",
    "sampling",
    "elicitation",
    "roots",
    "server",
    "subscriptions",
    "notifications",
    "rpc.",
];

/// The protocol's methods without a family.
const ALONE: [&str; 2] = ["initialize", "ping"];

impl Method {
    /// Returns the method of a request, unless it is a part of the protocol that does not pass this
    /// way.
    pub fn of_request(name: &str) -> Option<Method> {
        let known = METHODS.iter().find(|rule| rule.name == name).map(Method::Known);
        known.or_else(|| (!is_protocol(name)).then_some(Method::Custom))
    }

    /// Returns the method of a client's notification, unless the protocol defines it.
    pub fn of_notification(name: &str) -> Option<Method> {
        is_custom_notification(name).then_some(Method::CustomNotification)
    }

    /// Returns the fixed hints of the method; a tool has its own.
    pub fn hints(self) -> Option<Hints> {
        let class = match self {
            Method::ToolCall => return None,
            Method::Known(rule) => rule.class,
            Method::Custom | Method::CustomNotification => Class::Write,
        };
        Some(Hints {
            read_only: Some(class == Class::Read),
            destructive: Some(class == Class::Destructive),
            open_world: None,
        })
    }

    /// Returns what the request is about.
    pub fn subject(self, params: &Map<String, Value>) -> Option<SubjectItem<'_>> {
        match self {
            Method::Known(rule) => rule.subject.find(params),
            Method::ToolCall | Method::Custom | Method::CustomNotification => None,
        }
    }
}

/// Reports whether a notification is a server's or a client's own. The protocol's are listed, since
/// later revisions and extensions share their family.
pub fn is_custom_notification(name: &str) -> bool {
    const PROTOCOL: [&str; 11] = [
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/message",
        "notifications/roots/list_changed",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/elicitation/complete",
        "notifications/tasks/status",
    ];
    !PROTOCOL.contains(&name) && !ALONE.contains(&name)
}

fn is_protocol(name: &str) -> bool {
    let in_family = |family: &&str| match name.strip_prefix(*family) {
        Some(rest) => rest.starts_with('/') || family.ends_with('.'),
        None => false,
    };
    ALONE.contains(&name) || FAMILIES.iter().any(in_family)
}

impl Subject {
    /// Returns the subject that the params name.
    fn find(self, params: &Map<String, Value>) -> Option<SubjectItem<'_>> {
        match self {
            Subject::Nothing => None,
            Subject::Resource => params.get("uri")?.as_str().map(SubjectItem::Resource),
            Subject::Prompt => params.get("name")?.as_str().map(SubjectItem::Prompt),
            Subject::Reference => {
                let reference = params.get("ref")?.as_object()?;
                match reference.get("type")?.as_str()? {
                    "ref/prompt" => reference.get("name")?.as_str().map(SubjectItem::Prompt),
                    "ref/resource" => reference.get("uri")?.as_str().map(SubjectItem::Template),
                    _ => None,
                }
            }
        }
    }

    /// Says what is wrong with params that do not name the subject. A server must not read a name
    /// where the gate reads none.
    pub fn fault(self, params: &Map<String, Value>) -> Option<String> {
        let wanted = match self {
            Subject::Nothing => return None,
            Subject::Resource => "uri must be a string",
            Subject::Prompt => "name must be a string",
            Subject::Reference => "ref must name a prompt or a resource template",
        };
        match self.find(params) {
            None => Some(wanted.to_owned()),
            Some(item) if item.name().len() > SUBJECT_BYTES_MAX => {
                Some(format!("the name has more than {SUBJECT_BYTES_MAX} bytes"))
            }
            Some(_) => None,
        }
    }
}

impl<'a> SubjectItem<'a> {
    pub fn name(self) -> &'a str {
        match self {
            SubjectItem::Resource(name)
            | SubjectItem::Template(name)
            | SubjectItem::Prompt(name) => name,
        }
    }

    /// Returns the noun for it in a message.
    pub fn noun(self) -> &'static str {
        match self {
            SubjectItem::Resource(_) => "resource",
            SubjectItem::Template(_) => "resource template",
            SubjectItem::Prompt(_) => "prompt",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_method_is_known_a_servers_own_or_none_that_passes() {
        for rule in &METHODS {
            assert_eq!(Method::of_request(rule.name), Some(Method::Known(rule)));
        }
        for own in ["acme/reindex", "resource/read", "toolsmith", "pings", "x"] {
            assert_eq!(Method::of_request(own), Some(Method::Custom), "{own}");
        }
        for other in [
            "initialize",
            "ping",
            "tools/call",
            "tasks/get",
            "resources/forget",
            "server/discover",
            "subscriptions/listen",
            "sampling/createMessage",
            "notifications/initialized",
            "rpc.discover",
        ] {
            assert_eq!(Method::of_request(other), None, "{other}");
        }
        let own = Method::of_notification("notifications/acme/moved");
        assert_eq!(own, Some(Method::CustomNotification));
        assert_eq!(Method::of_notification("notifications/cancelled"), None);
    }

    #[test]
    fn classes_are_fixed() {
        for rule in &METHODS {
            assert_eq!(Method::Known(rule).hints().map(Hints::class), Some(rule.class));
        }
        assert_eq!(Method::Custom.hints().map(Hints::class), Some(Class::Write));
        assert!(!Method::Custom.hints().is_some_and(Hints::unverified));
        assert_eq!(Method::ToolCall.hints(), None);
    }

    #[test]
    fn a_subject_is_a_string_at_its_place() {
        let find = |subject: Subject, params: Value| {
            let params = params.as_object().cloned().unwrap_or_default();
            let found =
                subject.find(&params).map(|item| format!("{} {}", item.noun(), item.name()));
            (found, subject.fault(&params).is_none())
        };
        let found = |text: &str| (Some(text.to_owned()), true);
        assert_eq!(find(Subject::Resource, json!({"uri": "a://b"})), found("resource a://b"));
        assert_eq!(find(Subject::Prompt, json!({"name": "p"})), found("prompt p"));
        let reference = json!({"ref": {"type": "ref/prompt", "name": "p"}});
        assert_eq!(find(Subject::Reference, reference), found("prompt p"));
        let reference = json!({"ref": {"type": "ref/resource", "uri": "a://{b}"}});
        assert_eq!(find(Subject::Reference, reference), found("resource template a://{b}"));
        for (subject, params) in [
            (Subject::Resource, json!({"uri": ["a://b"]})),
            (Subject::Prompt, json!({"uri": "p"})),
            (Subject::Prompt, json!({"name": {"x": 1}})),
            (Subject::Reference, json!({"ref": {"type": "ref/other", "name": "p"}})),
            (Subject::Reference, json!({"name": "p"})),
        ] {
            assert_eq!(find(subject, params), (None, false));
        }
        assert_eq!(find(Subject::Nothing, json!({})), (None, true));
        let long = json!({"uri": "a".repeat(SUBJECT_BYTES_MAX + 1)});
        assert!(!find(Subject::Resource, long).1);
    }
}
