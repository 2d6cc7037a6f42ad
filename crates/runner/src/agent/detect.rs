//! Which agent program is installed, and what it can be asked: its version, its flags, and for
//! Codex its catalogue of models. Every question has a bound on time and on the answer.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use super::{AgentError, Isolation, Provider, claude, codex, gemini, opencode};

/// Programs that run on node take seconds to start on a busy machine.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(30);

/// The catalogue of Codex has 0.7 MiB today.
const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Of a failing program's words this much is passed on.
const WORDS_BYTES_MAX: usize = 1000;

/// The first OpenCode whose permissions and variables were measured to isolate.
const OPENCODE_ISOLATING: [u64; 3] = [1, 18, 0];

/// A program that was found and has answered.
#[derive(Clone, Debug)]
pub struct Installed {
    provider: Provider,
    program: PathBuf,
    version: String,
    isolation: Isolation,
    /// Codex's models without tools of their own.
    catalogue: Vec<u8>,
}

impl Installed {
    /// Finds the program: `command` if given, else by its name in the folders of `path_env`.
    pub async fn detect(
        provider: Provider,
        command: Option<&Path>,
        path_env: Option<&OsStr>,
    ) -> Result<Installed, AgentError> {
        let program = find(provider, command, path_env)?;
        let help: &[&str] = match provider {
            Provider::Claude | Provider::Gemini => &["--help"],
            Provider::Codex => &["exec", "--help"],
            Provider::OpenCode => &["run", "--help"],
        };
        let (version, help) = tokio::join!(ask(&program, &["--version"]), ask(&program, help));
        let version = version_of(&version?.text()).ok_or_else(|| AgentError::Crashes {
            program: program.clone(),
            question: "--version".to_owned(),
            words: "there is no version in its answer".to_owned(),
        })?;
        let help = help?.text();
        let lacks = lacking(needed(provider), &help);
        if !lacks.is_empty() {
            return Err(AgentError::TooOld { program, version, lacks });
        }
        let mut installed = Installed {
            provider,
            program,
            version,
            isolation: Isolation::Full,
            catalogue: Vec::new(),
        };
        if let Err(reason) = installed.look_closer(&help).await {
            installed.isolation = Isolation::Coexistence { reason };
        }
        Ok(installed)
    }

    pub fn provider(&self) -> Provider {
        self.provider
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether this program can be left without tools of its own.
    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    pub(super) fn catalogue(&self) -> &[u8] {
        &self.catalogue
    }

    /// What isolation needs, or why it cannot be had.
    async fn look_closer(&mut self, help: &str) -> Result<(), String> {
        let lacks = lacking(isolating(self.provider), help);
        if !lacks.is_empty() {
            return Err(format!("version {} has no {}", self.version, lacks.join(", ")));
        }
        match self.provider {
            Provider::Claude | Provider::Gemini => Ok(()),
            Provider::OpenCode if numbers(&self.version) < OPENCODE_ISOLATING => {
                Err(format!("version {} is older than 1.18", self.version))
            }
            Provider::OpenCode => Ok(()),
            Provider::Codex => {
                let answer = ask(&self.program, &["debug", "models"]).await;
                let answer = answer.map_err(|error| error.to_string())?;
                self.catalogue = codex::tame(&answer.stdout)?;
                Ok(())
            }
        }
    }

    /// For tests of what is made of a program: nothing is asked.
    #[cfg(test)]
    pub(super) fn imagined(provider: Provider, isolation: Isolation) -> Installed {
        let program = PathBuf::from("/opt").join(provider.as_str());
        let catalogue = b"{\"models\":[]}".to_vec();
        Installed { provider, program, version: "1.2.3".to_owned(), isolation, catalogue }
    }
}

fn needed(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Claude => claude::NEEDED,
        Provider::Gemini => gemini::NEEDED,
        Provider::Codex => codex::NEEDED,
        Provider::OpenCode => opencode::NEEDED,
    }
}

fn isolating(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Claude => claude::ISOLATING,
        Provider::Gemini => gemini::ISOLATING,
        Provider::Codex => codex::ISOLATING,
        Provider::OpenCode => opencode::ISOLATING,
    }
}

/// Which of the words a help text does not have as words of their own.
fn lacking(wanted: &[&str], help: &str) -> Vec<String> {
    let ends = |char: char| char.is_whitespace() || ",=<>[]()\"'|".contains(char);
    let known: std::collections::HashSet<&str> = help.split(ends).collect();
    wanted.iter().filter(|word| !known.contains(**word)).map(|word| (*word).to_owned()).collect()
}

/// The first three numbers with dots between them.
fn version_of(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        let numbers: Vec<&str> = word.split('.').collect();
        let number =
            |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        numbers.len() == 3 && numbers.iter().all(number)
    };
    let words = text.split(|char: char| !(char.is_ascii_alphanumeric() || char == '.'));
    words.map(|word| word.trim_start_matches('v')).find(is_version).map(str::to_owned)
}

fn numbers(version: &str) -> [u64; 3] {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}

fn find(
    provider: Provider,
    command: Option<&Path>,
    path_env: Option<&OsStr>,
) -> Result<PathBuf, AgentError> {
    let name = command.unwrap_or(Path::new(provider.as_str()));
    let missing = || AgentError::Missing { program: name.display().to_string() };
    let found = if name.components().count() > 1 {
        name.to_owned()
    } else {
        let folders = std::env::split_paths(path_env.unwrap_or_default());
        let mut candidates =
            folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
        candidates.find(|candidate| is_executable(candidate)).ok_or_else(missing)?
    };
    let resolved = found.canonicalize().map_err(|_| missing())?;
    if !is_executable(&resolved) {
        let cause = "it is not an executable file".to_owned();
        return Err(AgentError::NotRunnable { program: resolved, cause });
    }
    Ok(match provider {
        Provider::Codex => native_codex(&resolved).unwrap_or(resolved),
        Provider::Claude | Provider::Gemini | Provider::OpenCode => resolved,
    })
}

fn is_executable(path: &Path) -> bool {
    let metadata = path.metadata();
    metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The program behind npm's script: killing the script would leave it running. The script is
/// `<package>/bin/codex.js`; the program lies in a package for the platform, beside or inside.
fn native_codex(found: &Path) -> Option<PathBuf> {
    if !is_script(found) {
        return None;
    }
    let package = found.parent()?.parent()?;
    let (os, cpu) = (platform_os(), platform_cpu());
    let platform = format!("codex-{os}-{cpu}");
    let vendors = [
        package.parent()?.join(&platform).join("vendor"),
        package.join("node_modules/@openai").join(&platform).join("vendor"),
        package.join("vendor"),
    ];
    vendors.iter().find_map(|vendor| in_vendor(vendor))
}

fn in_vendor(vendor: &Path) -> Option<PathBuf> {
    let mut triples: Vec<PathBuf> =
        std::fs::read_dir(vendor).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    triples.retain(|triple| {
        let name = triple.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(std::env::consts::ARCH) && name.contains(platform_os())
    });
    triples.sort();
    let places =
        triples.iter().flat_map(|triple| [triple.join("bin/codex"), triple.join("codex/codex")]);
    places.into_iter().find(|place| is_executable(place))?.canonicalize().ok()
}

fn platform_os() -> &'static str {
    if std::env::consts::OS == "macos" { "darwin" } else { std::env::consts::OS }
}

fn platform_cpu() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn is_script(path: &Path) -> bool {
    let mut start = [0; 2];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && &start == b"#!"
}

struct Answer {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Answer {
    /// Some programs print their help on stderr.
    fn text(&self) -> String {
        let stdout = String::from_utf8_lossy(&self.stdout);
        format!("{stdout}\n{}", String::from_utf8_lossy(&self.stderr))
    }
}

/// Runs the program with a question, in a group of its own that does not outlive the answer.
async fn ask(program: &Path, question: &[&str]) -> Result<Answer, AgentError> {
    let not_runnable = |error: std::io::Error| AgentError::NotRunnable {
        program: program.to_owned(),
        cause: error.to_string(),
    };
    let mut command = Command::new(program);
    command.args(question).current_dir("/").process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Nothing of ours reaches it, and nothing is fetched for a question.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("COUNTERSIGN_") {
            command.env_remove(name);
        }
    }
    for name in
        ["DISABLE_AUTOUPDATER", "OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH"]
    {
        command.env(name, "1");
    }
    command.env("GEMINI_CLI_NO_RELAUNCH", "true");
    let mut child = command.spawn().map_err(not_runnable)?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let answered = tokio::time::timeout(QUESTION_TIMEOUT, answer(&mut child)).await;
    drop(group);
    let question = question.join(" ");
    match answered {
        Err(_) => Err(AgentError::Hangs {
            program: program.to_owned(),
            question,
            after: QUESTION_TIMEOUT,
        }),
        Ok(Err(error)) => Err(not_runnable(error)),
        Ok(Ok((status, answer))) if status.success() => Ok(answer),
        Ok(Ok((status, answer))) => {
            let text = answer.text();
            let words: String = text.trim().chars().take(WORDS_BYTES_MAX).collect();
            let words = format!("{status}: {words}");
            Err(AgentError::Crashes { program: program.to_owned(), question, words })
        }
    }
}

async fn answer(child: &mut Child) -> std::io::Result<(std::process::ExitStatus, Answer)> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr, status) = tokio::join!(read(stdout), read(stderr), child.wait());
    Ok((status?, Answer { stdout: stdout?, stderr: stderr? }))
}

/// To the end or the bound, past which the rest is thrown away.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        (&mut stream).take(ANSWER_BYTES_MAX).read_to_end(&mut bytes).await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}

/// Ends what is left of a group.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may be gone already: that is what was wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests;
