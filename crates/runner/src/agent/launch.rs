//! From what a step asks to what is started: arguments, environment and files. Touches the disk in
//! one place, Gemini's folder (`person`), and in `Launch::write`.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::person::GeminiFolder;
use super::{
    AgentError, COEXISTENCE_LINE, Installed, Isolation, Person, Provider, Request, Tools, claude,
    codex, gemini, ground, guard, opencode,
};

/// Linux takes 128 KiB for one argument; longer texts go another way.
pub(super) const ARGUMENT_BYTES_MAX: usize = 100 * 1024;

/// A process to start.
#[derive(Clone)]
pub struct Launch {
    pub program: PathBuf,
    /// Where it is started: a folder of its own where it is isolated.
    pub dir: PathBuf,
    pub args: Vec<String>,
    /// Added to the environment, after `env_remove` was taken out of it.
    pub env: Vec<(String, String)>,
    pub env_remove: Vec<String>,
    /// 0600, all under the step's private folder.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Symbolic links, as link and target: what is the person's and must stay in one place.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// 0700.
    pub folders: Vec<PathBuf>,
    /// What the program reads, and then the end.
    pub stdin: Option<Vec<u8>>,
    /// What was reached, where `Tools::Only` was asked for; `Full` otherwise.
    pub isolation: Isolation,
}

impl Launch {
    /// The program and where it starts; the providers add the rest.
    pub(super) fn of(wanted: &Wanted) -> Launch {
        let request = wanted.request;
        let dir = match wanted.mode {
            Mode::Isolated => ground::folder(&request.private),
            Mode::Plain | Mode::Beside => request.dir.clone(),
        };
        Launch {
            program: wanted.installed.program().to_owned(),
            dir,
            args: Vec::new(),
            env: Vec::new(),
            env_remove: Vec::new(),
            files: Vec::new(),
            links: Vec::new(),
            folders: Vec::new(),
            stdin: Some(wanted.prompt.clone().into_bytes()),
            isolation: Isolation::Full,
        }
    }

    /// Puts the files, folders and links where they belong. Nothing is written over.
    pub fn write(&self) -> std::io::Result<()> {
        for folder in &self.folders {
            make_folder(folder)?;
        }
        for (path, bytes) in &self.files {
            make_folder(path.parent().unwrap_or(Path::new("/")))?;
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(bytes)?;
        }
        for (link, target) in &self.links {
            make_folder(link.parent().unwrap_or(Path::new("/")))?;
            std::os::unix::fs::symlink(target, link)?;
        }
        Ok(())
    }
}

/// Keys travel in the environment and the files: only names are shown.
impl std::fmt::Debug for Launch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let env: Vec<&String> = self.env.iter().map(|(name, _)| name).collect();
        let files: Vec<&PathBuf> = self.files.iter().map(|(path, _)| path).collect();
        let mut shown = out.debug_struct("Launch");
        shown.field("program", &self.program).field("env", &env).field("files", &files);
        shown.field("isolation", &self.isolation).finish_non_exhaustive()
    }
}

fn make_folder(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Which column of the injection is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The program as the person has it.
    Plain,
    /// Our tools and no other.
    Isolated,
    /// Our tools and the program's own.
    Beside,
}

/// What a provider's own part works from.
pub(super) struct Wanted<'a> {
    pub(super) installed: &'a Installed,
    pub(super) request: &'a Request,
    pub(super) person: &'a Person,
    pub(super) mode: Mode,
    pub(super) prompt: String,
    pub(super) system_prompt: Option<String>,
}

impl Wanted<'_> {
    pub(super) fn private(&self, name: &str) -> PathBuf {
        self.request.private.join(name)
    }

    /// A variable as the program will see it.
    pub(super) fn var(&self, name: &str) -> Option<&str> {
        let asked = self.request.env.iter().rev().find(|(asked, _)| asked == name);
        asked.map(|(_, value)| value.as_str()).or_else(|| self.person.var(name))
    }
}

/// What to start for a request. `person` is whose environment the program inherits.
pub fn prepare(
    installed: &Installed,
    request: &Request,
    person: &Person,
) -> Result<Launch, AgentError> {
    let provider = installed.provider();
    guard::check(provider, request)?;
    let (mode, isolation) = mode(installed, request.tools);
    if mode == Mode::Isolated {
        guard::check_isolated(provider, request)?;
    }
    let prompt = prompt(provider, request, mode)?;
    let request = &guard::rooted(provider, request, mode);
    let system_prompt = system_prompt(request, &isolation);
    let wanted = Wanted { installed, request, person, mode, prompt, system_prompt };
    let mut launch = match provider {
        Provider::Claude => claude::launch(&wanted),
        Provider::Gemini => gemini::launch(&wanted, &gemini_folder(&wanted)?),
        Provider::Codex => codex::launch(&wanted),
        Provider::OpenCode => opencode::launch(&wanted),
    }?;
    if mode == Mode::Isolated {
        // Neither the program nor a git that it runs looks any further up.
        launch.folders.push(ground::boundary(&request.private));
        let ceiling = path_text(&request.private)?;
        launch.env.push(("GIT_CEILING_DIRECTORIES".to_owned(), ceiling));
    }
    check_size(provider, &launch)?;
    launch.isolation = isolation;
    launch.env_remove.extend(person.names(|name| name.starts_with("COUNTERSIGN_")));
    // What was asked for comes first: a variable of ours is not to be changed.
    let mut env = request.env.clone();
    env.append(&mut launch.env);
    launch.env = env;
    Ok(launch)
}

fn mode(installed: &Installed, tools: Tools) -> (Mode, Isolation) {
    match (tools, installed.isolation()) {
        (Tools::None, _) => (Mode::Plain, Isolation::Full),
        (Tools::Beside, _) => (Mode::Beside, Isolation::Full),
        (Tools::Only, Isolation::Full) => (Mode::Isolated, Isolation::Full),
        (Tools::Only, coexistence @ Isolation::Coexistence { .. }) => {
            (Mode::Beside, coexistence.clone())
        }
    }
}

/// In an isolated step a prompt is words and nothing else. Claude and Gemini would run one that
/// begins with a slash as a command, which it does not do here, and Gemini would read files at each
/// `@` (Claude is told not to by a variable).
fn prompt(provider: Provider, request: &Request, mode: Mode) -> Result<String, AgentError> {
    if request.prompt.trim().is_empty() {
        return Err(AgentError::EmptyPrompt);
    }
    if mode != Mode::Isolated {
        return Ok(request.prompt.clone());
    }
    let prompt = ground::introduced(provider, &request.dir, &request.prompt);
    Ok(match provider {
        Provider::Gemini => prompt.replace('@', "\\@"),
        Provider::Claude | Provider::Codex | Provider::OpenCode => prompt,
    })
}

/// Where there is no other way, the system prompt is a part of what is said.
fn check_size(provider: Provider, launch: &Launch) -> Result<(), AgentError> {
    let said = String::from_utf8_lossy(launch.stdin.as_deref().unwrap_or_default());
    let (size, max, unit) = provider.prompt_size(&said);
    if size > max {
        return Err(AgentError::PromptTooLarge { provider, size, max, unit });
    }
    Ok(())
}

/// What is the person's, where the step gets a home of its own.
fn gemini_folder(wanted: &Wanted) -> Result<GeminiFolder, AgentError> {
    let home = wanted.var("GEMINI_CLI_HOME").or_else(|| wanted.var("HOME"));
    match home {
        Some(home) if wanted.mode != Mode::Plain => {
            GeminiFolder::read(&Path::new(home).join(".gemini"))
        }
        Some(_) | None => Ok(GeminiFolder::default()),
    }
}

fn system_prompt(request: &Request, isolation: &Isolation) -> Option<String> {
    let asked = request.system_prompt.as_deref().filter(|text| !text.trim().is_empty());
    match (isolation, asked) {
        (Isolation::Full, asked) => asked.map(str::to_owned),
        (Isolation::Coexistence { .. }, None) => Some(COEXISTENCE_LINE.to_owned()),
        (Isolation::Coexistence { .. }, Some(asked)) => {
            Some(format!("{asked}\n\n{COEXISTENCE_LINE}"))
        }
    }
}

/// Arguments from words of either kind.
pub(super) fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// The text of a path; ours are all UTF-8, since the step's folder has a name of our making.
pub(super) fn path_text(path: &Path) -> Result<String, AgentError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        AgentError::BadOption(format!("{} is not UTF-8, which the agents need", path.display()))
    })
}

#[cfg(test)]
mod tests;
