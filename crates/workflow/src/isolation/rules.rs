//! The flags, variables and settings of each agent program that do not affect its isolation. This
//! is the only such list: `options` checks a workflow against it when it is read, and a step again
//! when it starts.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::plan::Provider;

const LOADERS: &[&str] = text::words!("rules/loaders.txt");
const SEARCHED: &[&str] = text::words!("rules/searched.txt");

static PROGRAMS: LazyLock<Programs> = LazyLock::new(|| {
    serde_json::from_str(include_str!("rules/programs.json")).expect("the tests read the data")
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
struct Programs {
    claude: ProgramRules,
    gemini: ProgramRules,
    codex: ProgramRules,
    opencode: ProgramRules,
    /// Nothing runs: the step itself talks to the model.
    #[serde(skip)]
    none: ProgramRules,
}

/// The parts of a program's interface that are known not to affect its isolation.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub struct ProgramRules {
    /// Harmless flags without a value.
    pub switches: Vec<&'static str>,
    /// Harmless flags that take one value.
    pub valued: Vec<&'static str>,
    /// The flags in `valued` whose value is a comma-separated list of files.
    pub paths: Vec<&'static str>,
    /// Prefixes of the variables that configure the program itself.
    pub governed: Vec<&'static str>,
    /// Variables with such a prefix that configure something else, such as logins, and are kept.
    pub free: Vec<&'static str>,
    /// First segments of harmless config paths.
    pub config: Vec<&'static str>,
}

impl ProgramRules {
    pub fn of(provider: Provider) -> &'static ProgramRules {
        match provider {
            Provider::Claude => &PROGRAMS.claude,
            Provider::Gemini => &PROGRAMS.gemini,
            Provider::Codex => &PROGRAMS.codex,
            Provider::OpenCode => &PROGRAMS.opencode,
            Provider::OpenAiCompatible => &PROGRAMS.none,
        }
    }

    /// Reports whether a variable controls the program's own tools or loads code into it. An isolated
    /// program does not inherit such a variable.
    pub fn governs(&self, variable: &str) -> bool {
        let steers = self.governed.iter().any(|begin| variable.starts_with(begin));
        let loads = LOADERS.iter().any(|begin| variable.starts_with(begin));
        loads || (steers && !self.free.contains(&variable))
    }

    /// Reports whether a step may set a variable for an isolated program: not one that governs it, nor
    /// one that decides which programs and settings are found.
    pub fn may_set(&self, variable: &str) -> bool {
        !self.governs(variable) && !SEARCHED.contains(&variable)
    }
}
