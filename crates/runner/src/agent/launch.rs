//! The process that is started for a step: a program with its arguments, environment and files.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::agent::error::AgentError;
use crate::agent::ground;
use crate::agent::installed::InstalledAgent;
use crate::agent::isolation::Isolation;
use crate::agent::person::Person;
use crate::agent::request::AgentRequest;

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
    /// Links to files of the person's that must stay in one place.
    pub links: Vec<Symlink>,
    /// 0700.
    pub folders: Vec<PathBuf>,
    /// What the program reads, and then the end.
    pub stdin: Option<Vec<u8>>,
    /// What was reached, where `Tools::Only` was asked for; `Full` otherwise.
    pub isolation: Isolation,
}

/// A symbolic link to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symlink {
    pub path: PathBuf,
    pub target: PathBuf,
}

impl Launch {
    /// The program and where it starts; the providers add the rest.
    pub(super) fn of(input: &LaunchInput) -> Launch {
        let request = input.request;
        let dir = match input.mode {
            LaunchMode::Isolated => ground::folder(&request.private),
            LaunchMode::Plain | LaunchMode::Beside => request.dir.clone(),
        };
        Launch {
            program: input.installed.program().to_owned(),
            dir,
            args: Vec::new(),
            env: Vec::new(),
            env_remove: Vec::new(),
            files: Vec::new(),
            links: Vec::new(),
            folders: Vec::new(),
            stdin: Some(input.prompt.clone().into_bytes()),
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
        for Symlink { path, target } in &self.links {
            make_folder(path.parent().unwrap_or(Path::new("/")))?;
            std::os::unix::fs::symlink(target, path)?;
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
pub(super) enum LaunchMode {
    /// The program as the person has it.
    Plain,
    /// Our tools and no other.
    Isolated,
    /// Our tools and the program's own.
    Beside,
}

/// What a provider's own part works from.
pub(super) struct LaunchInput<'a> {
    pub(super) installed: &'a InstalledAgent,
    pub(super) request: &'a AgentRequest,
    pub(super) person: &'a Person,
    pub(super) mode: LaunchMode,
    pub(super) prompt: String,
    pub(super) system_prompt: Option<String>,
}

impl LaunchInput<'_> {
    pub(super) fn private(&self, name: &str) -> PathBuf {
        self.request.private.join(name)
    }

    /// A variable as the program will see it.
    pub(super) fn var(&self, name: &str) -> Option<&str> {
        let asked = self.request.env.iter().rev().find(|(asked, _)| asked == name);
        asked.map(|(_, value)| value.as_str()).or_else(|| self.person.var(name))
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
