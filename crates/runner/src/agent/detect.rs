//! Finds the installed agent program and queries its version, its flags, and for Codex its
//! catalogue of models. Every query has a limit on time and on the size of the answer.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use crate::agent::error::AgentError;
use crate::agent::installed::InstalledAgent;
use crate::agent::isolation::Isolation;
use crate::agent::known::{KnownFacts, is_script};
use crate::agent::program::Provider;
use crate::agent::version::{numbers, version_of};
use crate::agent::{claude, codex, gemini, opencode, probe};

/// Programs that run on node take seconds to start on a busy machine.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(30);

/// The catalogue of Codex has 0.7 MiB today.
const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Maximum length of a failing program's output in the error message.
const WORDS_BYTES_MAX: usize = 1000;

/// The first OpenCode whose permissions and variables were measured to isolate.
const OPENCODE_ISOLATING: [u64; 3] = [1, 18, 0];

/// Answers that programs have given.
static ANSWERS: KnownFacts<ProgramAnswer> = KnownFacts::new();

/// The places to look for a program, and the way to query it.
#[derive(Clone, Copy, Default)]
pub struct Search<'a> {
    /// The program, if not the one named like the provider.
    pub command: Option<&'a Path>,
    /// The folders to search for program names, as in `PATH`.
    pub path: Option<&'a OsStr>,
    /// Our own program, which runs in between so that no query outlives us.
    pub supervisor: Option<&'a Path>,
    /// The folder for probes and their results. Without one, only versions in the table count as
    /// isolated.
    pub probes: Option<&'a Path>,
    /// Called when a probe begins, which takes some seconds.
    pub notice: Option<ProbeNotice<'a>>,
}

/// Receives the program that is about to be probed.
pub type ProbeNotice<'a> = &'a (dyn Fn(&InstalledAgent) + Sync);

impl InstalledAgent {
    /// Finds the program and queries its capabilities. It is probed, unless the result of an earlier
    /// probe is known.
    pub async fn detect(
        provider: Provider,
        search: &Search<'_>,
    ) -> Result<InstalledAgent, AgentError> {
        let program = find(provider, search.command, search.path)?;
        let asker = Asker { program: &program, supervisor: search.supervisor };
        let help: &[&str] = match provider {
            Provider::Claude | Provider::Gemini => &["--help"],
            Provider::Codex => &["exec", "--help"],
            Provider::OpenCode => &["run", "--help"],
        };
        let (version, help) = tokio::join!(asker.ask(&["--version"]), asker.ask(help));
        let version = version_of(&version?.text()).ok_or_else(|| AgentError::Crashes {
            program: program.clone(),
            question: "--version".to_owned(),
            words: "the output contains no version".to_owned(),
        })?;
        let help = help?.text();
        let lacks = lacking(needed(provider), &help);
        if !lacks.is_empty() {
            return Err(AgentError::TooOld { program, version, lacks });
        }
        let lacks = lacking(isolating(provider), &help);
        let (isolation, catalogue) = match look_closer(provider, &asker, &version, &lacks).await {
            Ok(catalogue) => (Isolation::Full, catalogue),
            Err(reason) => (Isolation::Coexistence { reason }, Vec::new()),
        };
        let lacks = [lacks, lacking(optional(provider), &help)].concat();
        let mut found = InstalledAgent { provider, program, version, isolation, lacks, catalogue };
        if found.isolation == Isolation::Full {
            found.isolation = probe::isolation(&found, search).await?;
        }
        Ok(found)
    }
}

/// Returns what isolation needs besides flags (Codex: its models), or the reason it is impossible.
async fn look_closer(
    provider: Provider,
    asker: &Asker<'_>,
    version: &str,
    lacks: &[String],
) -> Result<Vec<u8>, String> {
    if !lacks.is_empty() {
        return Err(format!("version {version} does not support {}", lacks.join(", ")));
    }
    match provider {
        Provider::Claude | Provider::Gemini => Ok(Vec::new()),
        Provider::OpenCode if numbers(version) < OPENCODE_ISOLATING => {
            Err(format!("version {version} is older than 1.18"))
        }
        Provider::OpenCode => Ok(Vec::new()),
        Provider::Codex => {
            // The models may change while the program does not.
            let answer = asker.ask_anew(&["debug", "models"]).await;
            codex::tame(&answer.map_err(|error| error.to_string())?.stdout)
        }
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

fn optional(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Claude => claude::OPTIONAL,
        Provider::Gemini | Provider::Codex | Provider::OpenCode => &[],
    }
}

/// Returns the words that a help text does not contain as separate words.
fn lacking(wanted: &[&str], help: &str) -> Vec<String> {
    let ends = |char: char| char.is_whitespace() || ",=<>[]()\"'|".contains(char);
    let known: std::collections::HashSet<&str> = help.split(ends).collect();
    wanted.iter().filter(|word| !known.contains(**word)).map(|word| (*word).to_owned()).collect()
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

/// Finds the program behind npm's script: killing the script would leave it running. The script is
/// `<package>/bin/codex.js`; the program is in a package for the platform, next to it or inside.
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

#[derive(Clone)]
struct ProgramAnswer {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl ProgramAnswer {
    /// Some programs print their help on stderr.
    fn text(&self) -> String {
        let stdout = String::from_utf8_lossy(&self.stdout);
        format!("{stdout}\n{}", String::from_utf8_lossy(&self.stderr))
    }
}

/// Runs queries on a program.
struct Asker<'a> {
    program: &'a Path,
    supervisor: Option<&'a Path>,
}

impl Asker<'_> {
    /// Answers from memory if the program has not changed since it was last asked.
    async fn ask(&self, question: &[&str]) -> Result<ProgramAnswer, AgentError> {
        ANSWERS.get(self.program, &question.join(" "), self.ask_anew(question)).await
    }

    /// Runs a query, in a process group that does not outlive the answer.
    async fn ask_anew(&self, question: &[&str]) -> Result<ProgramAnswer, AgentError> {
        let program = self.program.to_owned();
        let mut child = match self.command(question).spawn() {
            Ok(child) => child,
            Err(error) => {
                return Err(AgentError::NotRunnable { program, cause: error.to_string() });
            }
        };
        let group = QuestionGroup(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
        let answered = tokio::time::timeout(QUESTION_TIMEOUT, answer(&mut child)).await;
        drop(group);
        let question = question.join(" ");
        match answered {
            Err(_) => Err(AgentError::Hangs { program, question, after: QUESTION_TIMEOUT }),
            Ok(Err(error)) => Err(AgentError::NotRunnable { program, cause: error.to_string() }),
            Ok(Ok((status, answer))) if status.success() => Ok(answer),
            Ok(Ok((status, answer))) => {
                let text = answer.text();
                let words: String = text.trim().chars().take(WORDS_BYTES_MAX).collect();
                let words = format!("{status}: {words}");
                Err(AgentError::Crashes { program, question, words })
            }
        }
    }

    fn command(&self, question: &[&str]) -> Command {
        let mut command = match self.supervisor {
            Some(supervisor) => {
                let mut command = Command::new(supervisor);
                command.args(["supervise", "--gate", &std::process::id().to_string(), "--"]);
                command.arg(self.program);
                command
            }
            None => Command::new(self.program),
        };
        command.args(question).current_dir("/").process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The query gets none of our variables, and fetches nothing.
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
        command
    }
}

async fn answer(child: &mut Child) -> std::io::Result<(std::process::ExitStatus, ProgramAnswer)> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr, status) = tokio::join!(read(stdout), read(stderr), child.wait());
    Ok((status?, ProgramAnswer { stdout: stdout?, stderr: stderr? }))
}

/// Reads to the end, discarding everything past the limit.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        (&mut stream).take(ANSWER_BYTES_MAX).read_to_end(&mut bytes).await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}

/// Kills the rest of a process group when dropped.
struct QuestionGroup(Option<Pid>);

impl Drop for QuestionGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // The group may already be gone, which is fine.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests;
