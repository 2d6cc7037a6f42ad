//! The tables against the launches that they describe.

use std::time::Duration;

use super::*;
use crate::agent::installed::InstalledAgent;
use crate::agent::isolation::Isolation;
use crate::agent::person::Person;
use crate::agent::prepare;
use crate::agent::request::{AgentRequest, AgentServer, AgentTools};

#[test]
fn patterns_fit_names_and_paths() {
    for (pattern, text, fits) in [
        ("~/.claude.json", "~/.claude.json", true),
        ("~/.claude.json", "~/.claude.json.x", false),
        ("~/.claude.json*", "~/.claude.json.tmp.7", true),
        ("~/.claude.json*", "~/.claude.json/x", false),
        ("~/a/*/c", "~/a/b/c", true),
        ("~/a/*/c", "~/a/b/b/c", false),
        ("~/a/**", "~/a/b/c", true),
        ("~/a/**", "~/ab", false),
        ("~/a/*/memory/**", "~/a/x/memory/y/z", true),
        ("GIT_*", "GIT_DIR", true),
        ("GIT_*", "XGIT_DIR", false),
    ] {
        assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
    }
}

/// Every variable of a table is removed, set or kept as the table says, though the person has it.
#[test]
fn launches_treat_variables_as_the_tables_say() {
    for provider in Provider::ALL {
        let table = ReadTable::of(provider);
        for read in &table.variables {
            let name = read.name.replace('*', "EXAMPLE");
            let person = Person::new([(name.clone().into(), "/nowhere/at-all".into())]);
            let installed = InstalledAgent::imagined(provider, Isolation::Full);
            let launch = prepare(&installed, &request(), &person).unwrap();
            let is_removed = launch.env_remove.contains(&name);
            let is_set = launch.env.iter().any(|(set, _)| *set == name);
            let expected = match table.variable(&name).unwrap().effect {
                ReadEffect::Ours(_) => is_set,
                ReadEffect::Harmless(_) => !is_removed && !is_set,
                ReadEffect::Shut(_) => is_removed && !is_set,
            };
            assert!(expected, "{provider:?} {name}: removed {is_removed}, set {is_set}");
        }
    }
}

/// `UPDATE_DOCS=1` writes the tables.
#[test]
fn docs_isolation_md_has_the_tables() {
    const BEGIN: &str = "<!-- made from crates/runner/src/agent/reads -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/isolation.md");
    let document = std::fs::read_to_string(path).expect("docs/isolation.md is readable");
    let (text, tables) = document.split_once(BEGIN).expect("the mark is there");
    let expected: String =
        Provider::ALL.map(|provider| tables_of(ReadTable::of(provider))).concat();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        let updated = format!("{text}{BEGIN}{expected}");
        return std::fs::write(path, updated).expect("docs/isolation.md is writable");
    }
    assert!(tables == expected, "docs/isolation.md has other tables: run with UPDATE_DOCS=1");
}

fn tables_of(table: &ReadTable) -> String {
    let row = |name: &str, effect: ReadEffect| {
        let (kind, words) = match effect {
            ReadEffect::Ours(words) => ("ours", words),
            ReadEffect::Harmless(words) => ("harmless", words),
            ReadEffect::Shut(words) => ("shut off", words),
        };
        format!("| `{name}` | {kind} | {words} |\n")
    };
    let files: String = table.files.iter().map(|read| row(read.path, read.effect)).collect();
    let variables: String =
        table.variables.iter().map(|read| row(read.name, read.effect)).collect();
    let head = |name: &str| format!("| {name} | | |\n|---|---|---|\n");
    format!(
        "\n## {} {}\n\n{}{files}\n{}{variables}",
        table.provider.as_str(),
        table.version,
        head("file"),
        head("variable"),
    )
}

fn request() -> AgentRequest {
    AgentRequest {
        prompt: "do it".to_owned(),
        system_prompt: None,
        model: None,
        args: Vec::new(),
        env: Vec::new(),
        config: None,
        dir: "/workspace".into(),
        private: "/private".into(),
        server: AgentServer { program: "/bin/gate".into(), args: Vec::new() },
        tools: AgentTools::Only,
        max_cost_usd: None,
        call_timeout: Duration::from_secs(600),
    }
}
