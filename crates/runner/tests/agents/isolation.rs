//! Isolation against files: attacks through everything that a program reads on its own, and the
//! table of what that is, checked by tracing the real programs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use runner::agent::{AgentTools, Person, Provider, ReadTable, prepare};
use serde_json::json;
use testkit::foreign::{self, control};
use testkit::model::{ModelCall, Turn};

use super::attacks::Attack;
use super::stage::{Outcome, Stage};
use super::trace;
use crate::{Effects, Poison, assert_worked_isolated, insists, preloaded};

/// The places in which a repository may have variables for Gemini.
const VARIABLES: [&str; 4] = ["workspace/.gemini/.env", "workspace/.env", ".gemini/.env", ".env"];

/// Returns the attacks that had an effect.
fn successful(attacks: &[Attack], stage: &Stage, outcome: &Outcome) -> Vec<Attack> {
    let has_worked = |attack: &&Attack| match attack {
        Attack::Mark(name) => stage.marks().join(name).exists(),
        Attack::Words(words) => outcome.asked.contains(words),
    };
    attacks.iter().filter(has_worked).copied().collect()
}

/// The control: each attack works on the program as a person starts it.
async fn works(provider: Provider) {
    let (stage, attacks) = Stage::attacked(provider).await;
    let permissive: &[&str] = match provider {
        Provider::Gemini => &["--skip-trust"],
        Provider::Codex => &["--sandbox", "danger-full-access"],
        Provider::Claude | Provider::OpenCode => &[],
    };
    let mut turns = vec![Turn::Say("all done".to_owned())];
    if provider == Provider::Codex {
        // It reads the profiles of the shell in parallel with its work, and would end before it
        // has.
        let mark = stage.marks().join("bashrc");
        let wait = format!("until test -e {}; do sleep 0.1; done", mark.display());
        let call = ModelCall::native("exec_command", json!({"cmd": wait}));
        turns.insert(0, Turn::Call(vec![call]));
    }
    let outcome = stage.run(AgentTools::None, "read @secret.txt", turns, permissive).await;
    assert_eq!(successful(&attacks, &stage, &outcome), attacks, "{}", outcome.shown());
}

/// No attack works on the isolated program, it looks at no file that the table does not have, and it
/// works with our tools alone. Its prompt looks like a command and like the mention of a file.
async fn fails(provider: Provider) {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let (mut stage, attacks) = Stage::attacked(provider).await;
    stage.is_traced = true;
    let poison = match provider {
        Provider::Gemini => Some(Poison::lay(&mut stage, &VARIABLES).await),
        Provider::Claude | Provider::Codex | Provider::OpenCode => None,
    };
    let prompt = "/help bob@example.com to read @secret.txt";
    let outcome = stage.run(AgentTools::Only, prompt, insists(&stage, provider), &[]).await;
    let shown = outcome.shown();
    assert_eq!(successful(&attacks, &stage, &outcome), [], "{shown}");
    assert!(outcome.asked.contains(prompt), "the prompt is not as written: {shown}");
    assert_worked_isolated(provider, &stage, &outcome);
    if let Some(poison) = poison {
        assert_eq!(poison.effects(&outcome), Effects::NONE, "{shown}");
    }
    let table = ReadTable::of(provider);
    assert_eq!(stage.installed().version(), table.version, "the table is of another version");
    let unlisted = trace::unlisted(&outcome.trace, &stage.ground(), table);
    assert_eq!(unlisted, BTreeSet::new(), "not in the table of {provider:?}");
}

#[tokio::test]
async fn attacks_through_files_work_without_isolation() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let attack = concat!(include_str!("attacks.rs"), include_str!("isolation.rs"));
    for provider in Provider::ALL {
        control(&format!("files-{}", provider.as_str()), attack, works(provider)).await;
    }
}

#[tokio::test]
async fn attacks_through_files_fail_on_isolated_claude() {
    fails(Provider::Claude).await;
}

#[tokio::test]
async fn attacks_through_files_fail_on_isolated_gemini() {
    fails(Provider::Gemini).await;
}

#[tokio::test]
async fn attacks_through_files_fail_on_isolated_codex() {
    fails(Provider::Codex).await;
}

#[tokio::test]
async fn attacks_through_files_fail_on_isolated_opencode() {
    fails(Provider::OpenCode).await;
}

/// Prepares a file of variables that loads a library into every process of Codex; returns its mark.
fn lay_library(stage: &Stage) -> PathBuf {
    let ran = stage.marks().join("preloaded");
    let library = preloaded(stage.marks().parent().unwrap(), &ran);
    let variables = format!("OPENAI_API_KEY=k\nLD_PRELOAD={}\n", library.display());
    std::fs::write(stage.home().join(".codex/.env"), variables).unwrap();
    ran
}

/// The control: as a person starts Codex, the library is loaded.
async fn loads_library() {
    let (stage, _) = Stage::attacked(Provider::Codex).await;
    let ran = lay_library(&stage);
    let turns = [Turn::Say("all done".to_owned())];
    let outcome = stage.run(AgentTools::None, "do it", turns, &[]).await;
    assert!(ran.exists(), "{}", outcome.shown());
}

/// Codex loads a file of variables whatever its flags: with anything but logins in it, nothing is
/// started.
#[tokio::test]
async fn codex_is_not_started_with_variables_that_load_code() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    control("library-codex", include_str!("isolation.rs"), loads_library()).await;
    let (stage, _) = Stage::attacked(Provider::Codex).await;
    lay_library(&stage);
    let request = stage.request(AgentTools::Only, "do it", "http://127.0.0.1:1");
    let person = Person::new(stage.inherited());
    let error = prepare(stage.installed(), &request, &person).unwrap_err();
    assert_eq!(error.code().as_str(), "AGENT_NOT_ISOLATED");
    assert!(error.to_string().contains("it would load LD_PRELOAD from"), "{error}");
}
