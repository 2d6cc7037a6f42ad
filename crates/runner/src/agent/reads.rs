//! The files and variables that each agent program reads from the person's home, the step's folder
//! and the folders above its start folder while it is isolated, by the version that was traced, and
//! what becomes of each. `docs/isolation.md` shows these tables, and a test traces the real programs
//! against them. Other versions have nothing but the probe.

mod claude;
mod codex;
mod gemini;
mod opencode;

use crate::agent::program::Provider;

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
#[derive(Clone, Copy, Debug)]
pub struct ReadTable {
    pub provider: Provider,
    pub version: &'static str,
    pub files: &'static [FileRead],
    pub variables: &'static [VariableRead],
}

impl ReadTable {
    pub fn of(provider: Provider) -> &'static ReadTable {
        match provider {
            Provider::Claude => &claude::TABLE,
            Provider::Gemini => &gemini::TABLE,
            Provider::Codex => &codex::TABLE,
            Provider::OpenCode => &opencode::TABLE,
        }
    }

    pub(super) fn knows(&self, version: &str) -> bool {
        self.version == version
    }

    /// Returns the entry of a file, by its place as [`FileRead`] writes it.
    pub fn file(&self, place: &str) -> Option<&'static FileRead> {
        self.files.iter().find(|read| matches(read.path, place))
    }

    pub fn variable(&self, name: &str) -> Option<&'static VariableRead> {
        self.variables.iter().chain(EVERY_PROGRAM).find(|read| matches(read.name, name))
    }

    /// Returns the variables of all programs, after those of this one.
    pub fn variables(&self) -> impl Iterator<Item = &'static VariableRead> {
        self.variables.iter().chain(EVERY_PROGRAM)
    }
}

/// Variables that steer any program.
const EVERY_PROGRAM: &[VariableRead] = &[
    removed("LD_*"),
    removed("DYLD_*"),
    removed("GCONV_PATH"),
    removed("OPENSSL_CONF"),
    removed("OPENSSL_ENGINES"),
    removed("OPENSSL_MODULES"),
    removed("NODE_CHANNEL_FD"),
    removed("NODE_INSPECTOR_IPC"),
    removed("NODE_OPTIONS"),
    removed("NODE_PATH"),
    removed("NODE_REPL_EXTERNAL_MODULE"),
    removed("NODE_V8_COVERAGE"),
    removed("BUN_*"),
    removed("BASH_ENV"),
    removed("BASH_FUNC_*"),
    removed("BASHOPTS"),
    removed("SHELLOPTS"),
    removed("PS4"),
    set("GIT_CEILING_DIRECTORIES", "the step's private folder"),
    set("GIT_CONFIG_GLOBAL", "no file"),
    set("GIT_CONFIG_NOSYSTEM", "1"),
    removed("GIT_*"),
    removed("COUNTERSIGN_*"),
    kept("PATH", "where programs are found; the person's own"),
    kept("HTTP_PROXY", "a proxy"),
    kept("HTTPS_PROXY", "a proxy"),
    kept("NODE_EXTRA_CA_CERTS", "certificates"),
    kept("SSL_CERT_FILE", "certificates"),
];

const fn ours(path: &'static str, what: &'static str) -> FileRead {
    FileRead { path, effect: ReadEffect::Ours(what) }
}

const fn harmless(path: &'static str, reason: &'static str) -> FileRead {
    FileRead { path, effect: ReadEffect::Harmless(reason) }
}

const fn shut(path: &'static str, how: &'static str) -> FileRead {
    FileRead { path, effect: ReadEffect::Shut(how) }
}

const fn set(name: &'static str, what: &'static str) -> VariableRead {
    VariableRead { name, effect: ReadEffect::Ours(what) }
}

const fn kept(name: &'static str, reason: &'static str) -> VariableRead {
    VariableRead { name, effect: ReadEffect::Harmless(reason) }
}

const fn removed(name: &'static str) -> VariableRead {
    VariableRead { name, effect: ReadEffect::Shut("removed") }
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
