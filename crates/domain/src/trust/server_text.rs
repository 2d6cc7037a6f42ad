//! A server's definition as JSON text, in two forms: as its reviewer sees it, and as it is stored
//! with an approval. The stored form has a hash in place of each literal value of a variable or
//! header, because it may be a secret.

use receipt::Hash;
use serde_json::{Map, Value, json};

use crate::config::{ConfigTemplate, LoginScope, OAuth, ServerConfig, TransportPart, secret};

/// Hex digits of a hash that a reader compares.
const DIGITS: usize = 12;

/// The definition of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerText {
    /// The stored form.
    members: Map<String, Value>,
    literals: Vec<Literal>,
}

/// A literal value of a variable or header.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Literal {
    section: &'static str,
    name: String,
    stored: String,
    /// The value as a reviewer sees it, without likely secrets.
    shown: String,
}

impl ServerText {
    /// Describes a server of the configuration.
    pub fn of(server: &ServerConfig) -> ServerText {
        let mut text = ServerText::default();
        for (name, part) in server.transport.parts() {
            text.put_part(name, part);
        }
        if server.pin {
            text.put("pin", true);
        }
        if let Some(oauth) = &server.oauth {
            text.put_sign_in(oauth);
        }
        if server.login != LoginScope::Shared {
            text.put("login", server.login.name());
        }
        text
    }

    /// Describes a server by the files that it consists of, each with its SHA-256.
    pub fn of_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> ServerText {
        let mut text = ServerText::default();
        let file = |(path, sha256)| json!({"path": path, "sha256": sha256});
        text.put("files", files.into_iter().map(file).collect::<Vec<_>>());
        text
    }

    /// Returns the text with the file that the server's command starts.
    #[must_use]
    pub fn with_program(mut self, path: &str, sha256: &str) -> ServerText {
        self.put("program", json!({"path": path, "sha256": sha256}));
        self
    }

    /// Returns the text to store with an approval.
    pub fn stored(&self) -> String {
        Value::Object(self.members.clone()).to_string()
    }

    /// Returns the text for a reviewer.
    pub fn shown(&self) -> String {
        self.fill(self.members.clone())
    }

    /// Returns a stored text for a reviewer: a value that is the same as in this text is shown as
    /// in this text, any other by its hash.
    pub fn shown_stored(&self, stored: &str) -> String {
        serde_json::from_str(stored).map_or_else(|_| stored.to_owned(), |text| self.fill(text))
    }

    fn fill(&self, mut members: Map<String, Value>) -> String {
        for Literal { section, name, stored, shown } in &self.literals {
            let values = members.get_mut(*section).and_then(Value::as_object_mut);
            let value = values.and_then(|values| values.get_mut(name));
            if let Some(value) = value.filter(|value| **value == **stored) {
                *value = shown.as_str().into();
            }
        }
        Value::Object(members).to_string()
    }

    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.members.insert(name.to_owned(), value.into());
    }

    fn put_part(&mut self, name: &'static str, part: TransportPart<'_>) {
        match part {
            TransportPart::Text(text) | TransportPart::OptionalText(Some(text)) => {
                self.put(name, text);
            }
            TransportPart::Flag(true) => self.put(name, true),
            TransportPart::OptionalText(None) | TransportPart::Flag(false) => {}
            TransportPart::Url(url) => self.put(name, hashed(url.text(), secret::url(url.text()))),
            TransportPart::Arguments(args) => self.put(name, arguments(args)),
            TransportPart::Variables(values) | TransportPart::Headers(values) => {
                self.put_values(name, values);
            }
        }
    }

    fn put_sign_in(&mut self, oauth: &OAuth) {
        let named = [("client_secret", &oauth.client_secret), ("private_key", &oauth.private_key)];
        let values =
            named.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it.clone()?)));
        self.put_values("oauth", &values.collect::<Vec<_>>());
        let open = [
            ("client_id", json!(oauth.client_id)),
            ("scopes", json!(oauth.scopes)),
            ("grant", json!(oauth.grant.name())),
            ("metadata_url", json!(oauth.metadata_url)),
        ];
        if let Some(members) = self.members.get_mut("oauth").and_then(Value::as_object_mut) {
            members.extend(open.map(|(name, value)| (name.to_owned(), value)));
        }
    }

    fn put_values(&mut self, section: &'static str, values: &[(String, ConfigTemplate)]) {
        let mut stored = Map::new();
        for (name, value) in values.iter().map(|(name, value)| (name, value.text())) {
            if !secret::is_literal(value) {
                stored.insert(name.clone(), value.into());
                continue;
            }
            let literal = Literal {
                section,
                name: name.clone(),
                stored: format!("(a value with SHA-256 {}…)", digits(value)),
                shown: secret::named(name, value),
            };
            stored.insert(name.clone(), literal.stored.as_str().into());
            self.literals.push(literal);
        }
        self.put(section, stored);
    }
}

fn arguments(args: &[ConfigTemplate]) -> Vec<String> {
    let shown = secret::args(args).into_iter();
    args.iter().zip(shown).map(|(arg, shown)| hashed(arg.text(), shown)).collect()
}

/// Appends a hash to a text from which a secret was removed, so that a change is seen.
fn hashed(written: &str, shown: String) -> String {
    if shown == written { shown } else { format!("{shown} (SHA-256 {}…)", digits(written)) }
}

fn digits(text: &str) -> String {
    let hash = Hash::of(text.as_bytes());
    text::hex::encode(&hash.as_bytes()[..DIGITS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(entry: &Value) -> ServerText {
        let config = json!({"mcpServers": {"s": entry}}).to_string();
        ServerText::of(&crate::config::parse(&config).unwrap().config.servers[0])
    }

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn references_and_plain_values_are_shown_and_secrets_are_not() {
        let text = text(&json!({
            "command": "npx", "args": ["-y", "--token", "t0p"], "cwd": "/srv", "pin": true,
            "env": {"PYTHONPATH": "/tmp/evil", "API_KEY": "t0p", "AWS": "${env:AWS_SECRET}"},
        }));
        let shown = read(&text.shown());
        assert_eq!(
            shown["env"],
            json!({"PYTHONPATH": "/tmp/evil", "API_KEY": "…", "AWS": "${env:AWS_SECRET}"})
        );
        assert_eq!((&shown["cwd"], &shown["pin"]), (&json!("/srv"), &json!(true)));
        let hidden = shown["args"][2].as_str().unwrap();
        assert!(hidden.starts_with("… (SHA-256 ") && hidden.ends_with("…)"), "{hidden}");
        let stored = read(&text.stored());
        assert_eq!(stored["env"]["AWS"], "${env:AWS_SECRET}");
        for secret in ["t0p", "/tmp/evil"] {
            assert!(!text.stored().contains(secret), "{stored}");
        }
        assert!(!text.shown().contains("t0p"), "{shown}");
    }

    #[test]
    fn a_stored_text_differs_where_a_value_does() {
        let entry = |path: &str, key: &str| {
            text(&json!({"url": "https://h/mcp", "headers": {"X-Path": path, "X-Api-Key": key}}))
        };
        let (old, new) = (entry("/a", "one"), entry("/b", "two"));
        assert_eq!(new.shown_stored(&new.stored()), new.shown());
        let before = read(&new.shown_stored(&old.stored()));
        let after = read(&new.shown());
        for name in ["X-Path", "X-Api-Key"] {
            assert_ne!(before["headers"][name], after["headers"][name], "{name}");
        }
        assert_eq!(before["url"], after["url"]);
        let same = read(&new.shown_stored(&entry("/b", "one").stored()));
        assert_eq!(same["headers"]["X-Path"], "/b");
    }

    #[test]
    fn no_written_value_passes_for_a_hash() {
        let mark = text(&json!({"command": "x", "env": {"A": "safe"}})).members["env"]["A"].clone();
        let forged =
            text(&json!({"command": "x", "args": [mark], "env": {"A": "safe", "B": mark}}));
        let shown = read(&forged.shown());
        assert_eq!((&shown["args"][0], &shown["env"]["B"]), (&mark, &mark));
        assert_ne!(read(&forged.stored())["env"]["B"], mark);
    }
}
