//! The definition of a server that was added at run time, divided into the part that the ledger's
//! file keeps and the values that it must not: copies of that file are given away.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::secret;
use super::template::ConfigTemplate;
use super::transport::ADDRESSES;

/// The only member of an object in place of a value that is kept elsewhere; its number.
const REFERENCE: &str = "secret";

/// A definition without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DividedServer {
    pub open: Value,
    pub secrets: Vec<String>,
}

/// Takes out each literal value of a variable or header, the secrets of `oauth`, and each argument or URL that appears to
/// hold a secret. A reference such as `${env:NAME}` stays.
pub fn divide(entry: &Value) -> DividedServer {
    let mut divided = DividedServer { open: entry.clone(), secrets: Vec::new() };
    let DividedServer { open, secrets } = &mut divided;
    for section in ["env", "headers"] {
        let values = open.get_mut(section).and_then(Value::as_object_mut);
        for value in values.into_iter().flat_map(|values| values.values_mut()) {
            take(value, secrets, |text| !text.is_empty() && secret::is_literal(text));
        }
    }
    let oauth = open.get_mut("oauth").and_then(Value::as_object_mut);
    for (name, value) in oauth.into_iter().flatten() {
        if matches!(name.as_str(), "client_secret" | "private_key") {
            take(value, secrets, |text| !text.is_empty() && secret::is_literal(text));
        }
    }
    if let Some(args) = open.get_mut("args").and_then(Value::as_array_mut) {
        let templates = args.iter().map(|arg| ConfigTemplate::parse(arg.as_str()?).ok());
        let templates: Vec<ConfigTemplate> = templates.collect::<Option<_>>().unwrap_or_default();
        for (arg, shown) in args.iter_mut().zip(secret::args(&templates)) {
            take(arg, secrets, |text| text != shown);
        }
    }
    for name in ADDRESSES {
        if let Some(url) = open.get_mut(name) {
            take(url, secrets, |text| text != secret::url(text));
        }
    }
    divided
}

fn take(value: &mut Value, secrets: &mut Vec<String>, is_secret: impl Fn(&str) -> bool) {
    if let Value::String(text) = value
        && is_secret(text)
    {
        secrets.push(std::mem::take(text));
        *value = json!({REFERENCE: secrets.len() - 1});
    }
}

/// Returns the definition with its secrets; `None` if one is missing.
pub fn unite(open: &Value, secrets: &[String]) -> Option<Value> {
    match open {
        Value::Object(members) => match reference(open) {
            Some(number) => secrets.get(number).map(|secret| Value::from(secret.as_str())),
            None => {
                let member =
                    |(name, value): (&String, &Value)| Some((name.clone(), unite(value, secrets)?));
                members.iter().map(member).collect()
            }
        },
        Value::Array(items) => items.iter().map(|item| unite(item, secrets)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(open.clone()),
    }
}

/// Returns the names of the secrets that the texts of a definition refer to.
pub fn secret_names(entry: &Value) -> BTreeSet<String> {
    match entry {
        Value::String(text) => match ConfigTemplate::parse(text) {
            Ok(template) => template.secrets().map(str::to_owned).collect(),
            Err(_) => BTreeSet::new(),
        },
        Value::Array(items) => items.iter().flat_map(secret_names).collect(),
        Value::Object(members) => members.values().flat_map(secret_names).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => BTreeSet::new(),
    }
}

fn reference(value: &Value) -> Option<usize> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    usize::try_from(members.get(REFERENCE)?.as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_secrets_stay_and_are_found() {
        let entry = json!({"command": "npx", "args": ["--token", "${secret:T}"],
            "env": {"API": "${secret:A}", "HOST": "${env:B}"}, "pin": true});
        let divided = divide(&entry);
        assert_eq!((&divided.open, divided.secrets.len()), (&entry, 0));
        assert_eq!(secret_names(&entry).into_iter().collect::<Vec<_>>(), ["A", "T"]);
    }

    #[test]
    fn a_definition_is_divided_and_united() {
        for (entry, open, secrets) in [
            (
                json!({"command": "npx", "args": ["-y", "--token", "t0p", "--k=${env:K}", "x"],
                    "env": {"API": "t1p", "HOME": "${env:HOME}", "EMPTY": ""}, "pin": true}),
                json!({"command": "npx",
                    "args": ["-y", "--token", {"secret": 1}, "--k=${env:K}", "x"],
                    "env": {"API": {"secret": 0}, "HOME": "${env:HOME}", "EMPTY": ""},
                    "pin": true}),
                vec!["t1p", "t0p"],
            ),
            (
                json!({"url": "https://me:pw@h/mcp", "headers": {"X-A": "b"}}),
                json!({"url": {"secret": 1}, "headers": {"X-A": {"secret": 0}}}),
                vec!["b", "https://me:pw@h/mcp"],
            ),
            (
                json!({"httpUrl": "https://h/mcp?token=pw"}),
                json!({"httpUrl": {"secret": 0}}),
                vec!["https://h/mcp?token=pw"],
            ),
            (
                json!({"command": "npx", "args":
                    ["--from", "https://h/c?sv=1&sig=AbC1dEf2GhI3jKl4MnO5pQr6StU7vWx8%3D"]}),
                json!({"command": "npx", "args": ["--from", {"secret": 0}]}),
                vec!["https://h/c?sv=1&sig=AbC1dEf2GhI3jKl4MnO5pQr6StU7vWx8%3D"],
            ),
            (json!({"url": "https://h/mcp"}), json!({"url": "https://h/mcp"}), vec![]),
            (
                json!({"url": "https://h", "oauth": {"client_id": "c", "client_secret": "t"}}),
                json!({"url": "https://h",
                    "oauth": {"client_id": "c", "client_secret": {"secret": 0}}}),
                vec!["t"],
            ),
        ] {
            let divided = divide(&entry);
            assert_eq!(
                (&divided.open, &divided.secrets[..]),
                (&open, &secrets.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..])
            );
            assert_eq!(unite(&divided.open, &divided.secrets), Some(entry));
            assert_eq!(unite(&divided.open, &[]).is_none(), !secrets.is_empty());
            assert_eq!(divide(&divided.open).secrets, Vec::<String>::new(), "divided twice");
        }
    }
}
