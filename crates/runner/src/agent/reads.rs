//! The files and variables that each agent program reads from the person's home, the step's folder
//! and the folders above its start folder while it is isolated, by the version that was traced, and
//! what becomes of each. `docs/isolation.md` shows these tables, and a test traces the real programs
//! against them. Other versions have nothing but the probe.

use std::sync::LazyLock;

use crate::agent::program::Provider;

static CLAUDE: LazyLock<ReadTable> =
    LazyLock::new(|| ReadTable::read(Provider::Claude, include_str!("reads/claude.txt")));
static GEMINI: LazyLock<ReadTable> =
    LazyLock::new(|| ReadTable::read(Provider::Gemini, include_str!("reads/gemini.txt")));
static CODEX: LazyLock<ReadTable> =
    LazyLock::new(|| ReadTable::read(Provider::Codex, include_str!("reads/codex.txt")));
static OPENCODE: LazyLock<ReadTable> =
    LazyLock::new(|| ReadTable::read(Provider::OpenCode, include_str!("reads/opencode.txt")));

const EVERY_PROGRAM: &str = include_str!("reads/every.txt");

/// The effect that something read has on an isolated program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadEffect {
    /// It comes from us, or holds the person's login.
    Ours(&'static str),
    /// It has no effect on the tools, for this reason.
    Harmless(&'static str),
    /// The program is kept from using it, in this way.
    Shut(&'static str),
}

/// A file or folder, by its place: `~/` is the person's home, `^/` any folder above the private one,
/// `+/` the step's private folder. A `*` is any part of a name, and a final `**` any path.
#[derive(Clone, Copy, Debug)]
pub struct FileRead {
    pub path: &'static str,
    pub effect: ReadEffect,
}

/// A variable; a final `*` is any ending. The first entry that matches counts.
#[derive(Clone, Copy, Debug)]
pub struct VariableRead {
    pub name: &'static str,
    pub effect: ReadEffect,
}

/// Everything that one version of a program reads.
#[derive(Clone, Debug)]
pub struct ReadTable {
    pub provider: Provider,
    pub version: &'static str,
    pub files: Vec<FileRead>,
    /// Those of all programs come last.
    pub variables: Vec<VariableRead>,
}

impl ReadTable {
    pub fn of(provider: Provider) -> &'static ReadTable {
        match provider {
            Provider::Claude => &CLAUDE,
            Provider::Gemini => &GEMINI,
            Provider::Codex => &CODEX,
            Provider::OpenCode => &OPENCODE,
        }
    }

    /// Reads a table: on each line what becomes of a file or variable, its name, and a reason.
    fn read(provider: Provider, lines: &'static str) -> ReadTable {
        let (mut version, mut files, mut variables) = ("", Vec::new(), Vec::new());
        for line in lines.lines().chain(EVERY_PROGRAM.lines()) {
            let (kind, rest) = line.split_once(' ').unwrap_or_default();
            let rest = rest.trim_start();
            let (name, words) = rest.split_once(' ').unwrap_or((rest, ""));
            let words = words.trim_start();
            let mut file = |effect| files.push(FileRead { path: name, effect });
            let mut variable = |effect| variables.push(VariableRead { name, effect });
            match kind {
                "version" => version = name,
                "ours" => file(ReadEffect::Ours(words)),
                "harmless" => file(ReadEffect::Harmless(words)),
                "shut" => file(ReadEffect::Shut(words)),
                "set" => variable(ReadEffect::Ours(words)),
                "kept" => variable(ReadEffect::Harmless(words)),
                "removed" => variable(ReadEffect::Shut("removed")),
                other => debug_assert!(matches!(other, "" | "#"), "{line}"),
            }
        }
        ReadTable { provider, version, files, variables }
    }

    pub(super) fn knows(&self, version: &str) -> bool {
        self.version == version
    }

    /// Returns the entry of a file, by its place as [`FileRead`] writes it.
    pub fn file(&self, place: &str) -> Option<&FileRead> {
        self.files.iter().find(|read| matches(read.path, place))
    }

    pub fn variable(&self, name: &str) -> Option<&VariableRead> {
        self.variables.iter().find(|read| matches(read.name, name))
    }
}

/// Reports whether a text fits a pattern in which `*` is any part without a slash, and a final `**`
/// anything.
fn matches(pattern: &str, text: &str) -> bool {
    if let Some(start) = pattern.strip_suffix("**") {
        return prefix_fits(start, text);
    }
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            let end = text.find('/').unwrap_or(text.len());
            (0..=end).filter(|at| text.is_char_boundary(*at)).any(|at| matches(rest, &text[at..]))
        }),
    }
}

/// Reports whether the text begins with something that fits the pattern.
fn prefix_fits(pattern: &str, text: &str) -> bool {
    (0..=text.len())
        .filter(|end| text.is_char_boundary(*end))
        .any(|end| matches(pattern, &text[..end]))
}

#[cfg(test)]
mod tests;
