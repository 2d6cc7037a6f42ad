//! The process to start for a step: a program with its arguments, environment and files.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::agent::error::AgentError;
use crate::agent::ground;
use crate::agent::installed::InstalledAgent;
use crate::agent::isolation::Isolation;
use crate::agent::person::Person;
use crate::agent::request::AgentRequest;

/// Linux allows 128 KiB for one argument; longer texts are passed in other ways.
pub(super) const ARGUMENT_BYTES_MAX: usize = 100 * 1024;

#[derive(Clone)]
pub struct Launch {
    pub program: PathBuf,
    /// The start folder: a private one for an isolated program.
    pub dir: PathBuf,
    pub args: Vec<String>,
    /// Added to the environment, after the variables in `env_remove` are removed.
    pub env: Vec<(String, String)>,
    pub env_remove: Vec<String>,
    /// Written with mode 0600, all within the step's private folder.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Links to the person's files that must stay in one place.
    pub links: Vec<Symlink>,
    /// Created with mode 0700.
    pub folders: Vec<PathBuf>,
    /// The program's complete input.
    pub stdin: Option<Vec<u8>>,
    /// The isolation reached, if `AgentTools::Only` was requested; `Full` otherwise.
    pub isolation: Isolation,
    /// Set if the program is to have no tools but ours.
    pub isolated: bool,
}

/// A symbolic link to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symlink {
    pub path: PathBuf,
    pub target: PathBuf,
}

impl Launch {
    /// Sets the program and its start folder; the providers add the rest.
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
            isolated: input.mode == LaunchMode::Isolated,
        }
    }

    /// Creates the files, folders and links. Overwrites nothing.
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

/// Keys are in the environment and the files, so only names are shown.
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

/// The set of tools the program runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaunchMode {
    /// The program with the person's own setup.
    Plain,
    /// Only our tools.
    Isolated,
    /// Our tools and the program's own.
    Beside,
}

/// The input of a provider's own part.
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

    /// Returns a variable as the program will see it.
    pub(super) fn var(&self, name: &str) -> Option<&str> {
        let asked = self.request.env.iter().rev().find(|(asked, _)| asked == name);
        asked.map(|(_, value)| value.as_str()).or_else(|| self.person.var(name))
    }
}

/// Converts words to owned arguments.
pub(super) fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// Returns a path as text; ours are all UTF-8, since we name the step's folder.
pub(super) fn path_text(path: &Path) -> Result<String, AgentError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        AgentError::BadOption(format!("path {} is not UTF-8, which agents require", path.display()))
    })
}
