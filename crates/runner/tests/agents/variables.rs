//! The variables that the programs name in their own code. Each that steers a program is removed or
//! set, as its table says; the others were reviewed, and are listed next to this file. A new
//! version that names more of them fails here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use runner::agent::{Provider, ReadTable};
use testkit::foreign;

/// Ways in which JavaScript reads a variable.
const READS: [&str; 2] = [
    r"(process[0-9$]*\.env|[^A-Za-z0-9_$]env[0-9]*)\.[A-Z][A-Z0-9_]{2,}",
    r#"process[0-9$]*\.env\["[A-Z][A-Z0-9_]{2,}"\]"#,
];

/// Claude Code's own list of its variables: a long object of functions.
const REGISTRY: &str = r"([A-Z][A-Z0-9_]+:\(\)=>[A-Za-z0-9_$]+,){60,}";

/// Returns what a pattern finds in a file, or in the scripts of a folder.
fn found(pattern: &str, place: &Path) -> Vec<String> {
    let mut command = Command::new("grep");
    command.env("LC_ALL", "C").args(["-raohE", "-e", pattern]);
    if place.is_dir() {
        command.arg("--include=*.js");
    }
    let output = command.arg(place).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

fn named(provider: Provider) -> BTreeSet<String> {
    let program = foreign::program(&format!("agents/bin/{}", provider.as_str()));
    let program = program.canonicalize().unwrap();
    let place = match provider {
        Provider::Gemini => program.parent().unwrap().to_owned(),
        Provider::Claude | Provider::Codex | Provider::OpenCode => program,
    };
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let reads = READS.iter().flat_map(|pattern| found(pattern, &place));
    let mut names: BTreeSet<String> = reads
        .filter_map(|read| {
            let read = read.trim_end_matches(['"', ']']);
            read.rsplit(|c| !is_name(c)).next().map(str::to_owned)
        })
        .collect();
    if provider == Provider::Claude {
        let lists = found(REGISTRY, &place).into_iter().filter(|it| it.contains("CLAUDE_CODE_"));
        for list in lists {
            let members = list.split(',').filter_map(|member| member.split_once(':'));
            names.extend(members.map(|(name, _)| name.to_owned()));
        }
    }
    names
}

fn reviewed(provider: Provider) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/variables");
    folder.join(format!("{}.txt", provider.as_str()))
}

/// Codex is no script; its variables begin with `CODEX_`, or with the name of a service.
#[test]
fn every_variable_that_a_program_names_is_in_its_table_or_reviewed() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    for (provider, steers) in [
        (Provider::Claude, "CLAUDE_CODE_SIMPLE"),
        (Provider::Gemini, "GEMINI_CLI_SYSTEM_SETTINGS_PATH"),
        (Provider::OpenCode, "OPENCODE_PERMISSION"),
    ] {
        let (table, names) = (ReadTable::of(provider), named(provider));
        assert!(names.contains(steers), "{provider:?}: {names:?}");
        let others = names.iter().filter(|name| table.variable(name).is_none());
        let text: String = others.map(|name| format!("{name}\n")).collect();
        let file = reviewed(provider);
        if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
            std::fs::write(&file, &text).unwrap();
        }
        let known = std::fs::read_to_string(&file).unwrap_or_default();
        let known: BTreeSet<&str> = known.lines().collect();
        let found: BTreeSet<&str> = text.lines().collect();
        let new: Vec<&&str> = found.difference(&known).collect();
        let gone: Vec<&&str> = known.difference(&found).collect();
        assert!(
            new.is_empty() && gone.is_empty(),
            "{provider:?}: review {new:?}: does one add a tool, start a program or load code? Shut \
             those off (workflow::ProgramRules), and list the others with UPDATE_GOLDEN=1; gone: \
             {gone:?}"
        );
    }
}
