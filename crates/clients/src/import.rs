//! Turns the server entries of other programs into ours.

use std::collections::BTreeSet;
use std::ops::Range;

use domain::config::{ConfigTemplate, VISIBLE_SECRET};
use redact::REDACTED;
use serde_json::{Map, Value, json};

use crate::hidden::{are_hidden, is_hidden};
use crate::reference::Reference;

/// A server of another program, as our config has it.
#[derive(Debug, Default, PartialEq)]
pub struct ImportedServer {
    pub entry: Map<String, Value>,
    /// The references in the other program's entry.
    pub references: BTreeSet<Reference>,
    /// Remarks on members that could not be taken over.
    pub notes: Vec<String>,
    /// The reason that our config cannot have it.
    pub fault: Option<String>,
}

/// The values of an entry that are not stored in the clear.
#[derive(Debug, Default)]
pub struct HiddenValues {
    /// The values as they are written, each with the text that is shown.
    pub shown: Vec<(String, String)>,
    /// The secrets in them.
    pub secrets: Vec<String>,
}

/// Stores a secret under a name like the given one, and returns the name.
pub type Keeper<'a> = dyn FnMut(&str, &str) -> String + 'a;

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

/// Placeholder for the name of a secret that is only shown.
const UNNAMED: &str = "countersign-hides-this";

/// The longest name made for a secret; a prefix and a number may be added.
const NAME_CHARS_MAX: usize = 80;

/// Reads one entry. `None` if it names neither a program nor an address.
pub fn server(name: &str, foreign: &Value, keep: &mut Keeper<'_>) -> Option<ImportedServer> {
    let mut server = read(foreign)?;
    server.translate_variables();
    server.find_references();
    server.move_secrets(name, keep);
    Some(server)
}

/// Returns the values of an entry that are not stored in the clear.
pub fn hidden(name: &str, foreign: &Value) -> HiddenValues {
    let mut secrets = Vec::new();
    let Some(mut server) = read(foreign) else { return HiddenValues::default() };
    let written = server.texts();
    server.translate_variables();
    let before = server.texts();
    server.move_secrets(name, &mut |_, secret| {
        secrets.push(secret.to_owned());
        UNNAMED.to_owned()
    });
    let moved = format!("${{secret:{UNNAMED}}}");
    let shown = server.texts().into_iter().map(|text| text.replace(&moved, REDACTED));
    let changed = written.into_iter().zip(before.into_iter().zip(shown));
    let is_moved = |(_, (before, shown)): &(String, (String, String))| before != shown;
    let shown = changed.filter(is_moved).map(|(written, (_, shown))| (written, shown)).collect();
    HiddenValues { shown, secrets }
}

/// Reads one entry as it is written.
fn read(foreign: &Value) -> Option<ImportedServer> {
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
    server.spell_out();
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

    /// Makes texts of numbers and flags where our config has texts.
    fn spell_out(&mut self) {
        let spell = |value: &mut Value| {
            if value.is_number() || value.is_boolean() {
                *value = Value::from(value.to_string());
            }
        };
        for section in ["env", "headers", "args"] {
            match self.entry.get_mut(section) {
                Some(Value::Object(members)) => members.values_mut().for_each(spell),
                Some(Value::Array(items)) => items.iter_mut().for_each(spell),
                _ => {}
            }
        }
    }

    /// Returns all texts of the entry, always in the same order.
    fn texts(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        let mut each = |text: &mut String| texts.push(text.clone());
        self.entry.values_mut().for_each(|value| each_text(value, &mut each));
        texts
    }

    fn translate_variables(&mut self) {
        let notes = &mut self.notes;
        let mut each = |text: &mut String| *text = translate(text, notes);
        self.entry.values_mut().for_each(|value| each_text(value, &mut each));
    }

    /// Finds what the entry refers to, now that references are in our form.
    fn find_references(&mut self) {
        let ImportedServer { entry, references, fault, .. } = self;
        let mut each = |text: &mut String| match ConfigTemplate::parse(text) {
            Ok(template) => {
                let variables = template.variables().map(str::to_owned).map(Reference::Variable);
                let secrets = template.secrets().map(str::to_owned).map(Reference::Secret);
                references.extend(variables.chain(secrets));
            }
            Err(malformed) => *fault = Some(malformed.to_string()),
        };
        entry.values_mut().for_each(|value| each_text(value, &mut each));
    }

    /// Moves what a person would not be shown out of variables, headers, arguments and the address.
    fn move_secrets(&mut self, server: &str, keep: &mut Keeper<'_>) {
        let mut kept = Vec::new();
        let keep = &mut |name: &str, value: &str| {
            let name = keep(name, value);
            kept.push((name.clone(), value.to_owned()));
            name
        };
        for section in ["env", "headers"] {
            let values = self.entry.get_mut(section).and_then(Value::as_object_mut);
            for (name, value) in values.into_iter().flatten() {
                if let Value::String(text) = value {
                    move_out(text, name, &secret_name(server, name), keep);
                }
            }
        }
        if let Some(Value::String(url)) = self.entry.get_mut("url") {
            move_out(url, "url", &secret_name(server, "url"), keep);
        }
        if self.move_arguments(server, keep) {
            self.notes.push(VISIBLE_SECRET.to_owned());
        }
        self.move_copies(&kept);
        for name in ["command", "cwd"] {
            let text = self.entry.get(name).and_then(Value::as_str);
            if text.is_some_and(|text| is_hidden(name, text)) {
                self.fault = Some(format!("'{name}' seems to hold a secret: put that in 'env'"));
            }
        }
    }

    /// Moves what stands elsewhere too and would not be recognised there.
    fn move_copies(&mut self, kept: &[(String, String)]) {
        let mut each = |text: &mut String| {
            for (name, value) in kept {
                if text == value || value.len() > REDACTED.len() && text.contains(value.as_str()) {
                    *text = text.replace(value.as_str(), &format!("${{secret:{name}}}"));
                }
            }
        };
        for section in ["env", "headers", "args", "url"] {
            self.entry.get_mut(section).into_iter().for_each(|value| each_text(value, &mut each));
        }
    }

    /// Reports whether an argument was moved.
    fn move_arguments(&mut self, server: &str, keep: &mut Keeper<'_>) -> bool {
        let command = self.entry.get("command").cloned().unwrap_or_default();
        let Some(args) = self.entry.get_mut("args").and_then(Value::as_array_mut) else {
            return false;
        };
        let beside = are_hidden(&command, args);
        let mut flag = String::new();
        let mut is_any = false;
        for (arg, is_hidden_beside) in args.iter_mut().zip(beside) {
            let Value::String(text) = arg else { continue };
            let before = text.clone();
            let is_flag = text.starts_with('-');
            let name = if flag.is_empty() { assigned_name(text) } else { flag.clone() };
            let name = secret_name(server, name.trim_start_matches('-'));
            move_out(text, if is_flag { "" } else { &flag }, &name, keep);
            if is_hidden_beside && *text == before {
                *text = format!("${{secret:{}}}", keep(&name, text));
            }
            is_any |= *text != before;
            let takes_value = is_flag && !before.contains('=');
            flag = if takes_value { before } else { String::new() };
        }
        is_any
    }
}

/// Puts references in place of the secrets in a value that would not be shown in full.
fn move_out(text: &mut String, label: &str, name: &str, keep: &mut Keeper<'_>) {
    if !is_hidden(label, text) {
        return;
    }
    // Where the parts do not have all of it, the whole is the secret.
    let without = replaced(text, &mut |_| "_".to_owned());
    *text = if is_hidden(label, &without) {
        format!("${{secret:{}}}", keep(name, text))
    } else {
        replaced(text, &mut |value| keep(name, value))
    };
}

/// Replaces the parts of a value by references to the names under which they are kept.
fn replaced(text: &str, keep: &mut dyn FnMut(&str) -> String) -> String {
    let mut replaced = text.to_owned();
    for part in parts(text).into_iter().rev() {
        let stored = format!("${{secret:{}}}", keep(&text[part.clone()]));
        replaced.replace_range(part, &stored);
    }
    replaced
}

/// Returns the parts of a value that usually are the secret in it: the user part of an address, the
/// values of its query, and what follows a name or a scheme.
fn parts(text: &str) -> Vec<Range<usize>> {
    if let Some(start) = text.find("://").map(|at| at + 3) {
        let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at);
        let user = text[start..end].rfind('@').map(|at| start..start + at);
        let query = text.find('?').map_or(text.len(), |at| at + 1);
        let mut parts: Vec<Range<usize>> = user.into_iter().collect();
        let mut at = query;
        for pair in text[query..].split('&') {
            if let Some((name, value)) = pair.split_once('=')
                && is_hidden(name, value)
            {
                parts.push(at + name.len() + 1..at + pair.len());
            }
            at += pair.len() + 1;
        }
        return parts;
    }
    let assigned = text.find(['=', ':']).map_or(0, |at| at + 1);
    let assigned = if assigned_name(text).is_empty() { 0 } else { assigned };
    let start = text.len() - text[assigned..].trim_start().len();
    let value = &text[start..];
    let scheme = ["Bearer ", "Basic ", "Token ", "bearer ", "basic ", "token "];
    let scheme = scheme.iter().find(|scheme| value.starts_with(**scheme));
    let start = start + scheme.map_or(0, |scheme| scheme.len());
    std::iter::once(start..text.len()).collect()
}

/// Returns the name in `--name=value` or `Name: value`; empty if there is none.
fn assigned_name(text: &str) -> String {
    let name = text.split(['=', ':']).next().filter(|name| name.len() < text.len());
    let name = name.filter(|_| !text.contains("://"));
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.filter(|name| name.chars().all(is_fit)).unwrap_or_default().to_owned()
}

/// Returns a name made of the server's and the value's own.
fn secret_name(server: &str, name: &str) -> String {
    let joined = match name {
        "" => format!("{server}_argument"),
        name if name.to_lowercase().contains(&server.to_lowercase()) => name.to_owned(),
        name => format!("{server}_{name}"),
    };
    let fitting = |character: char| {
        if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' }
    };
    joined.chars().map(fitting).take(NAME_CHARS_MAX).collect()
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
    use std::collections::BTreeMap;

    use super::*;

    /// Reads an entry, and returns what was kept of it.
    fn imported(foreign: &Value) -> (ImportedServer, BTreeMap<String, String>) {
        let mut kept = BTreeMap::new();
        let mut keep = |name: &str, value: &str| {
            kept.insert(name.to_owned(), value.to_owned());
            name.to_owned()
        };
        let server = server("github", foreign, &mut keep).expect("a server");
        (server, kept)
    }

    #[track_caller]
    fn check(foreign: Value, ours: Value, secrets: &[(&str, &str)], notes: usize) {
        let (server, kept) = imported(&foreign);
        assert_eq!(Value::Object(server.entry), ours);
        let secrets = secrets.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        assert_eq!(kept, secrets.collect());
        assert_eq!(server.notes.len(), notes, "{:?}", server.notes);
        assert_eq!(server.fault, None);
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
            1,
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
        let none = server("x", &json!({"enabled": true}), &mut |name, _| name.to_owned());
        assert_eq!(none, None);
    }
    #[test]
    fn secrets_in_arguments_and_addresses_are_kept_where_they_stand() {
        for (args, ours, secret) in [
            (
                json!(["--header", "Authorization: Bearer hunter2hunter2"]),
                json!(["--header", "Authorization: Bearer ${secret:GITHUB_HEADER}"]),
                ("GITHUB_HEADER", "hunter2hunter2"),
            ),
            (
                json!(["--password=hunter2hunter2", "x"]),
                json!(["--password=${secret:GITHUB_PASSWORD}", "x"]),
                ("GITHUB_PASSWORD", "hunter2hunter2"),
            ),
            (
                json!(["postgres://me:hunter2hunter2@db/x"]),
                json!(["postgres://${secret:GITHUB_ARGUMENT}@db/x"]),
                ("GITHUB_ARGUMENT", "me:hunter2hunter2"),
            ),
            (
                json!(["see sk-ant-api03-0123456789abcdefghijABCDEFGHIJ"]),
                json!(["${secret:GITHUB_ARGUMENT}"]),
                ("GITHUB_ARGUMENT", "see sk-ant-api03-0123456789abcdefghijABCDEFGHIJ"),
            ),
        ] {
            let (foreign, ours) =
                (json!({"command": "x", "args": args}), json!({"command": "x", "args": ours}));
            check(foreign, ours, &[secret], 1);
        }
        check(
            json!({"command": "curl", "args": ["-u", "me:hunter2hunter2", "https://x/y"]}),
            json!({"command": "curl", "args": ["-u", "${secret:GITHUB_U}", "https://x/y"]}),
            &[("GITHUB_U", "me:hunter2hunter2")],
            1,
        );
        check(
            json!({"url": "https://x/mcp?api_key=hunter2hunter2&mode=fast"}),
            json!({"url": "https://x/mcp?api_key=${secret:GITHUB_URL}&mode=fast"}),
            &[("GITHUB_URL", "hunter2hunter2")],
            0,
        );
        let (server, _) =
            imported(&json!({"command": "x --token=ghp_0123456789abcdefghijABCDEFGHIJ01234567"}));
        assert!(server.fault.is_some_and(|fault| fault.contains("'command'")));
    }

    #[test]
    fn every_reference_is_found_however_it_is_written() {
        for (text, expect) in [
            ("plain $HOME", ""),
            ("${TOKEN}", "env:TOKEN"),
            ("{env:TOKEN}", "env:TOKEN"),
            ("${env:TOKEN}${secret:GITHUB_TOKEN}", "env:TOKEN secret:GITHUB_TOKEN"),
            ("${input:a-b}", "secret:a_b"),
            ("${TOKEN:-x}", "env:TOKEN"),
            ("$${env:TOKEN}", "env:TOKEN"),
            ("${x${env:TOKEN}}", "env:TOKEN"),
            ("${a{secret:TOKEN}", ""),
            ("postgres://${U}:${P}@db/x", "env:P env:U"),
        ] {
            for foreign in [json!({"command": "x", "args": [text]}), json!({"url": text})] {
                let found = imported(&foreign).0.references;
                let found: Vec<String> = found.iter().map(Reference::to_string).collect();
                assert_eq!(found.join(" "), expect, "{foreign}");
            }
        }
        let (server, _) = imported(&json!({"command": "x", "args": ["${env:NOT A NAME}"]}));
        assert!(server.fault.is_some());
        for (text, reference) in [
            ("env:A", Ok(Reference::Variable("A".to_owned()))),
            ("secret:a.b", Ok(Reference::Secret("a.b".to_owned()))),
            ("A", Err("expected env:NAME or secret:NAME".to_owned())),
        ] {
            assert_eq!(text.parse(), reference);
        }
    }
}
