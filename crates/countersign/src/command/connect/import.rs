//! Turns the server entries of other programs into ours.

use std::collections::BTreeMap;

use domain::config::is_secret;
use serde_json::{Map, Value, json};

/// A server of another program, as our config has it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ImportedServer {
    pub(super) entry: Map<String, Value>,
    /// Values that the entry only names, as `${secret:NAME}`.
    pub(super) secrets: BTreeMap<String, String>,
    /// Remarks on members that could not be taken over.
    pub(super) notes: Vec<String>,
}

/// Members that mean the same to us, by the names that programs give them.
const SAME: &[(&str, &str)] = &[
    ("command", "command"),
    ("args", "args"),
    ("env", "env"),
    ("environment", "env"),
    ("env_vars", "env"),
    ("cwd", "cwd"),
    ("working_dir", "cwd"),
    ("url", "url"),
    ("httpUrl", "url"),
    ("serverUrl", "url"),
    ("headers", "headers"),
    ("http_headers", "headers"),
    ("enabled", "enabled"),
    ("quarantined", "quarantined"),
    ("enabled_tools", "enabled_tools"),
    ("disabled_tools", "disabled_tools"),
];

/// Members that say nothing about how the server is reached.
const IGNORED: &[&str] = &[
    "$schema",
    "autoApprove",
    "alwaysAllow",
    "created",
    "description",
    "dev",
    "gallery",
    "icon",
    "name",
    "protocol",
    "source",
    "startup_timeout_sec",
    "tags",
    "timeout",
    "title",
    "tool_timeout_sec",
    "transport",
    "trust",
    "type",
    "updated",
    "version",
];

/// Reads one entry. `None` if it is our own, or names neither a program nor an address.
pub(super) fn server(name: &str, foreign: &Value) -> Option<ImportedServer> {
    let foreign = foreign.as_object()?;
    let mut server = ImportedServer::default();
    for (key, value) in foreign {
        match SAME.iter().find(|(theirs, _)| theirs == key) {
            Some((_, ours)) => {
                server.entry.insert((*ours).to_owned(), value.clone());
            }
            None => server.take(key, value),
        }
    }
    server.divide_command();
    server.choose_transport(foreign);
    if !server.entry.contains_key("command") && !server.entry.contains_key("url") {
        return None;
    }
    if server.entry.get("enabled") == Some(&Value::Bool(true)) {
        server.entry.remove("enabled");
    }
    server.translate_variables();
    server.move_secrets(name);
    Some(server)
}

impl ImportedServer {
    /// Takes a member over that has another form than ours.
    fn take(&mut self, key: &str, value: &Value) {
        match (key, value) {
            ("disabled", Value::Bool(disabled)) => {
                if *disabled {
                    self.entry.insert("enabled".to_owned(), json!(false));
                }
            }
            ("bearer_token_env_var", Value::String(variable)) => {
                self.header("Authorization", format!("Bearer ${{env:{variable}}}"));
            }
            ("env_http_headers", Value::Object(headers)) => {
                for (header, variable) in headers {
                    let variable = variable.as_str().unwrap_or_default();
                    self.header(header, format!("${{env:{variable}}}"));
                }
            }
            (key, _) if IGNORED.contains(&key) => {}
            (key, _) => self.notes.push(format!("'{key}' has no counterpart and was left out")),
        }
    }

    fn header(&mut self, name: &str, value: String) {
        let headers = self.entry.entry("headers").or_insert_with(|| json!({}));
        if let Some(headers) = headers.as_object_mut() {
            headers.insert(name.to_owned(), Value::from(value));
        }
    }

    /// Splits a command that is a list of words, or an object with `path` and `args`.
    fn divide_command(&mut self) {
        match self.entry.get("command").cloned() {
            Some(Value::Array(words)) => {
                let mut words = words.into_iter();
                self.entry.insert("command".to_owned(), words.next().unwrap_or_default());
                self.entry.insert("args".to_owned(), words.collect());
            }
            Some(Value::Object(mut command)) => {
                self.entry.remove("command");
                for (theirs, ours) in [("path", "command"), ("args", "args"), ("env", "env")] {
                    if let Some(value) = command.remove(theirs) {
                        self.entry.insert(ours.to_owned(), value);
                    }
                }
            }
            _ => {}
        }
        if self.entry.get("args").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            self.entry.remove("args");
        }
    }

    /// Names the transport only where ours would guess another one.
    fn choose_transport(&mut self, foreign: &Map<String, Value>) {
        let Some(url) = self.entry.get("url").and_then(Value::as_str) else {
            return;
        };
        let named =
            ["type", "transport", "protocol"].iter().find_map(|key| foreign.get(*key)?.as_str());
        let guessed = if url.trim_end_matches('/').ends_with("/sse") { "sse" } else { "http" };
        let meant = match named {
            Some("sse") => "sse",
            Some("http" | "streamable-http" | "streamableHttp" | "streamable_http") => "http",
            _ => guessed,
        };
        if meant != guessed {
            self.entry.insert("transport".to_owned(), json!(meant));
        }
    }

    fn translate_variables(&mut self) {
        let notes = &mut self.notes;
        let mut each = |text: &mut String| *text = translate(text, notes);
        self.entry.values_mut().for_each(|value| each_text(value, &mut each));
    }

    /// Takes out values that look secret, of variables, headers and arguments.
    fn move_secrets(&mut self, server: &str) {
        let ImportedServer { entry, secrets, .. } = self;
        for section in ["env", "headers"] {
            let values = entry.get_mut(section).and_then(Value::as_object_mut);
            for (name, value) in values.into_iter().flatten() {
                let Value::String(text) = value else { continue };
                if is_secret(name, text) {
                    let (scheme, token) = match text.split_once(' ') {
                        Some((scheme, token)) if section == "headers" => {
                            (format!("{scheme} "), token)
                        }
                        _ => (String::new(), text.as_str()),
                    };
                    let reference = keep(secrets, server, name, token);
                    *text = format!("{scheme}{reference}");
                }
            }
        }
        let args = entry.get_mut("args").and_then(Value::as_array_mut);
        let mut flag = String::new();
        for arg in args.into_iter().flatten() {
            let Value::String(text) = arg else { continue };
            let (name, value) = match text.split_once('=') {
                Some((name, value)) if name.starts_with('-') => (name.to_owned(), value.to_owned()),
                _ => (flag.clone(), text.clone()),
            };
            flag = if text.starts_with('-') { text.clone() } else { String::new() };
            if !value.starts_with('-') && !name.is_empty() && is_secret(&name, &value) {
                let reference = keep(secrets, server, name.trim_start_matches('-'), &value);
                *text = text.replace(&value, &reference);
            }
        }
    }
}

/// Keeps a value under a name made of the server's and its own, and returns the reference to it.
fn keep(secrets: &mut BTreeMap<String, String>, server: &str, name: &str, value: &str) -> String {
    let joined = if name.to_lowercase().contains(&server.to_lowercase()) {
        name.to_owned()
    } else {
        format!("{server}_{name}")
    };
    let fitting = |character: char| {
        if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' }
    };
    let key: String = joined.chars().map(fitting).collect();
    secrets.insert(key.clone(), value.to_owned());
    format!("${{secret:{key}}}")
}

fn each_text(value: &mut Value, each: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, each)),
        Value::Object(members) => members.values_mut().for_each(|value| each_text(value, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Rewrites references to variables: `${NAME}`, `${NAME:-default}` and `{env:NAME}` become
/// `${env:NAME}`, and `${input:NAME}` and `${keyring:NAME}` become `${secret:NAME}`.
fn translate(text: &str, notes: &mut Vec<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let before = &rest[..start];
        let Some(length) = rest[start..].find('}') else { break };
        let inner = &rest[start + 1..start + length];
        let is_dollar = before.ends_with('$');
        let plain = before.strip_suffix('$').unwrap_or(before);
        out.push_str(plain);
        match reference(inner, is_dollar, notes) {
            Some(reference) => out.push_str(&reference),
            None => {
                out.push_str(if is_dollar { "$" } else { "" });
                out.push_str(&rest[start..=start + length]);
            }
        }
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    out
}

fn reference(inner: &str, is_dollar: bool, notes: &mut Vec<String>) -> Option<String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match inner.split_once(':') {
        Some(("env", name)) => Some(format!("${{env:{name}}}")),
        Some(("input" | "keyring" | "secret", name)) if is_dollar => {
            let key: String =
                name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            notes.push(format!("set the value of '{name}': countersign secret set {key}"));
            Some(format!("${{secret:{key}}}"))
        }
        Some((name, default)) if is_dollar && is_name(name) && default.starts_with('-') => {
            notes.push(format!("the default of '{name}' was left out: set the variable"));
            Some(format!("${{env:{name}}}"))
        }
        None if is_dollar && is_name(inner) => {
            if inner.starts_with(|c: char| c.is_ascii_lowercase()) {
                notes.push(format!("'${{{inner}}}' is a variable of the other program"));
                return None;
            }
            Some(format!("${{env:{inner}}}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(foreign: Value, ours: Value, secrets: &[(&str, &str)], notes: usize) {
        let server = server("github", &foreign).expect("a server");
        assert_eq!(Value::Object(server.entry), ours);
        let secrets = secrets.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        assert_eq!(server.secrets, secrets.collect());
        assert_eq!(server.notes.len(), notes, "{:?}", server.notes);
    }

    #[test]
    fn each_program_s_form_is_understood() {
        let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        check(
            json!({"type": "stdio", "command": "npx", "args": ["-y", "x"],
                "env": {"GITHUB_TOKEN": token, "MODE": "fast"}}),
            json!({"command": "npx", "args": ["-y", "x"],
                "env": {"GITHUB_TOKEN": "${secret:GITHUB_TOKEN}", "MODE": "fast"}}),
            &[("GITHUB_TOKEN", token)],
            0,
        );
        check(
            json!({"httpUrl": "https://x/mcp", "headers": {"Authorization": format!("Bearer {token}")}}),
            json!({"url": "https://x/mcp",
                "headers": {"Authorization": "Bearer ${secret:GITHUB_AUTHORIZATION}"}}),
            &[("GITHUB_AUTHORIZATION", token)],
            0,
        );
        check(
            json!({"type": "local", "command": ["npx", "x", "--token", token], "enabled": true,
                "environment": {"A": "{env:HOST}"}}),
            json!({"command": "npx", "args": ["x", "--token", "${secret:GITHUB_TOKEN}"],
                "env": {"A": "${env:HOST}"}}),
            &[("GITHUB_TOKEN", token)],
            0,
        );
        check(
            json!({"url": "https://x/mcp", "bearer_token_env_var": "GH", "startup_timeout_sec": 5}),
            json!({"url": "https://x/mcp", "headers": {"Authorization": "Bearer ${env:GH}"}}),
            &[],
            0,
        );
        check(
            json!({"source": "custom", "command": {"path": "x", "args": [], "env": {"B": "1"}}}),
            json!({"command": "x", "env": {"B": "1"}}),
            &[],
            0,
        );
        check(
            json!({"serverUrl": "https://x/events", "type": "sse", "disabled": true}),
            json!({"url": "https://x/events", "transport": "sse", "enabled": false}),
            &[],
            0,
        );
        check(
            json!({"command": "x", "args": ["${HOST:-local}", "${workspaceFolder}"],
                "env": {"KEY": "${input:my-key}"}, "sandbox": true}),
            json!({"command": "x", "args": ["${env:HOST}", "${workspaceFolder}"],
                "env": {"KEY": "${secret:my_key}"}}),
            &[],
            4,
        );
        assert_eq!(server("x", &json!({"enabled": true})), None);
    }
}
