//! `secrets`: the place of the key that stored secrets are encrypted with.

use serde_json::json;

use super::declare::{keys, section};
use super::keys::Table;
use super::kind::{Kind, Shape, TEXTS, no_choice};
use super::members::Members;
use super::secret;
use text::document::Content;

section! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SecretsConfig at "secrets" {
        Hot key: SecretsKey = SecretsKey::Auto, KEY_PLACE,
            "Where the key is that they are encrypted with; `auto` is a file, on macOS the OS keychain. \
             A command prints the key. A change applies when the next secret is set.";
    }
}

static COMMAND: Table = Table {
    path: "secrets.key",
    groups: &[keys! {
        Hot command: Vec<String>, TEXTS, "The program that prints the key, and its arguments.";
    }],
    foreign: &[],
};

/// The place of the key that the secrets are encrypted with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretsKey {
    /// A file; on macOS the OS keychain if it can be used.
    Auto,
    /// A file of the home that only its owner can read.
    File,
    Keychain,
    /// A program and its arguments; it prints the key.
    Command(Vec<String>),
}

impl SecretsKey {
    /// Every valid word.
    pub const NAMES: &[&str] = &["auto", "file", "keychain"];

    pub fn named(word: &str) -> Option<SecretsKey> {
        match word {
            "auto" => Some(SecretsKey::Auto),
            "file" => Some(SecretsKey::File),
            "keychain" => Some(SecretsKey::Keychain),
            _ => None,
        }
    }
}

const KEY_PLACE: Shape<SecretsKey> = Shape {
    words: "`\"auto\"`, `\"file\"`, `\"keychain\"` or `{\"command\": [program, argument, …]}`",
    read: |node, report| {
        let Content::Map(_) = &node.tree.content else {
            let word = report.take(node.text())?;
            let named = SecretsKey::named(word);
            return named.or_else(|| no_choice(node, word, SecretsKey::NAMES, report));
        };
        let members = Members::open(node, &COMMAND, report)?;
        let words = members.read("command", report, |node, report| TEXTS.read(node, report));
        let words = words.unwrap_or_default();
        let program = words.first().map(String::as_str).unwrap_or_default();
        if program.is_empty() || (program.contains('/') && !program.starts_with('/')) {
            let fault = "expected \"command\" with a program in PATH or an absolute path, and its \
                         arguments";
            report.fault(&node.location, fault);
            return None;
        }
        Some(SecretsKey::Command(words))
    },
    show: |value| {
        Some(match value {
            SecretsKey::Auto => json!("auto"),
            SecretsKey::File => json!("file"),
            SecretsKey::Keychain => json!("keychain"),
            SecretsKey::Command(words) => {
                json!({"command": secret::words(words.iter().map(String::as_str))})
            }
        })
    },
};
