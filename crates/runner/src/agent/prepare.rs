//! Turns a step's request into the process to start. Of the disk it reads only the person's logins
//! and, for Gemini, settings (`person`), and the instructions of the step's folder (`ground`).

use std::path::Path;

use crate::agent::error::AgentError;
use crate::agent::installed::InstalledAgent;
use crate::agent::isolation::{COEXISTENCE_LINE, Isolation};
use crate::agent::launch::{Launch, LaunchInput, LaunchMode};
use crate::agent::person::{GeminiFolder, Person};
use crate::agent::program::{PromptSize, Provider};
use crate::agent::request::{AgentRequest, AgentTools};
use crate::agent::{claude, codex, gemini, ground, guard, opencode};

/// Prepares the launch for a request. The program inherits the environment of `person`.
pub fn prepare(
    installed: &InstalledAgent,
    request: &AgentRequest,
    person: &Person,
) -> Result<Launch, AgentError> {
    let provider = installed.provider();
    guard::check(provider, request)?;
    let (mode, isolation) = mode(installed, request.tools);
    if mode == LaunchMode::Isolated {
        guard::check_isolated(provider, request)?;
    }
    let prompt = prompt(provider, request, mode)?;
    let request = &guard::rooted(provider, request, mode);
    let system_prompt = system_prompt(request, &isolation);
    let input = LaunchInput { installed, request, person, mode, prompt, system_prompt };
    let mut launch = match provider {
        Provider::Claude => claude::launch(&input),
        Provider::Gemini => gemini::launch(&input, &gemini_folder(&input)?),
        Provider::Codex => codex::launch(&input),
        Provider::OpenCode => opencode::launch(&input),
    }?;
    if mode == LaunchMode::Isolated {
        ground::enclose(&input, &mut launch)?;
    }
    check_size(provider, &launch)?;
    launch.isolation = isolation;
    launch.env_remove.extend(person.names(|name| name.starts_with("COUNTERSIGN_")));
    // The requested variables come first, so that they cannot change ours.
    let mut env = request.env.clone();
    env.append(&mut launch.env);
    launch.env = env;
    Ok(launch)
}

fn mode(installed: &InstalledAgent, tools: AgentTools) -> (LaunchMode, Isolation) {
    match (tools, installed.isolation()) {
        (AgentTools::None, _) => (LaunchMode::Plain, Isolation::Full),
        (AgentTools::Beside, _) => (LaunchMode::Beside, Isolation::Full),
        (AgentTools::Only, Isolation::Full) => (LaunchMode::Isolated, Isolation::Full),
        (AgentTools::Only, coexistence @ Isolation::Coexistence { .. }) => {
            (LaunchMode::Beside, coexistence.clone())
        }
    }
}

/// Keeps a prompt plain text in an isolated step: Claude and Gemini would run one that begins with
/// a slash as a command. Files that it mentions with an `@` are not read: a variable stops Claude,
/// and Gemini ignores everything in its start folder and reads nothing outside it.
fn prompt(
    provider: Provider,
    request: &AgentRequest,
    mode: LaunchMode,
) -> Result<String, AgentError> {
    if request.prompt.trim().is_empty() {
        return Err(AgentError::EmptyPrompt);
    }
    if mode != LaunchMode::Isolated {
        return Ok(request.prompt.clone());
    }
    Ok(ground::introduced(provider, &request.dir, &request.prompt))
}

/// Checks the length of stdin, which also holds the system prompt if there is no other way to pass
/// it.
fn check_size(provider: Provider, launch: &Launch) -> Result<(), AgentError> {
    let said = String::from_utf8_lossy(launch.stdin.as_deref().unwrap_or_default());
    let PromptSize { size, max, unit } = provider.prompt_size(&said);
    if size > max {
        return Err(AgentError::PromptTooLarge { provider, size, max, unit });
    }
    Ok(())
}

/// Reads the person's own Gemini folder, if the step gets its own home.
fn gemini_folder(input: &LaunchInput) -> Result<GeminiFolder, AgentError> {
    let home = input.var("GEMINI_CLI_HOME").or_else(|| input.var("HOME"));
    match home {
        Some(home) if input.mode != LaunchMode::Plain => {
            GeminiFolder::read(&Path::new(home).join(".gemini"))
        }
        Some(_) | None => Ok(GeminiFolder::default()),
    }
}

fn system_prompt(request: &AgentRequest, isolation: &Isolation) -> Option<String> {
    let asked = request.system_prompt.as_deref().filter(|text| !text.trim().is_empty());
    match (isolation, asked) {
        (Isolation::Full, asked) => asked.map(str::to_owned),
        (Isolation::Coexistence { .. }, None) => Some(COEXISTENCE_LINE.to_owned()),
        (Isolation::Coexistence { .. }, Some(asked)) => {
            Some(format!("{asked}\n\n{COEXISTENCE_LINE}"))
        }
    }
}

#[cfg(test)]
mod tests;
