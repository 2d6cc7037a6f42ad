//! Isolation against files: attacks through everything that a program reads on its own, and the
//! table of what that is, checked by tracing the real programs.

use std::collections::BTreeSet;

use runner::agent::{AgentTools, Person, Provider, ReadTable, prepare};
use serde_json::json;
use testkit::foreign;
use testkit::model::{ModelCall, Turn};

use super::attacks::Attack;
use super::stage::{Outcome, Stage};
use super::trace;
use crate::preloaded;

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
    if !foreign::are_here_or_skipped() {
        return;
    }
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

/// No attack works on the isolated program, and it looks at no file that the table does not have.
async fn fails(provider: Provider) {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let (mut stage, attacks) = Stage::attacked(provider).await;
    stage.is_traced = true;
    let turns = [Turn::Say("all done".to_owned())];
    let prompt = "tell bob@example.com to read @secret.txt";
    let outcome = stage.run(AgentTools::Only, prompt, turns, &[]).await;
    let shown = outcome.shown();
    let report = outcome.report.as_ref().unwrap_or_else(|failed| panic!("{failed}: {shown}"));
    assert_eq!(report.text, "all done", "{shown}");
    assert_eq!(successful(&attacks, &stage, &outcome), [], "{shown}");
    assert!(outcome.asked.contains(prompt), "the prompt is not as written: {shown}");
    let table = ReadTable::of(provider);
    assert_eq!(stage.installed().version(), table.version, "the table is of another version");
    let unlisted = trace::unlisted(&outcome.trace, &stage.ground(), table);
    assert_eq!(unlisted, BTreeSet::new(), "not in the table of {provider:?}");
}

#[tokio::test]
async fn attacks_through_files_work_on_claude() {
    works(Provider::Claude).await;
}

#[tokio::test]
async fn attacks_through_files_fail_on_isolated_claude() {
    fails(Provider::Claude).await;
}

#[tokio::test]
async fn attacks_through_files_work_on_gemini() {
    works(Provider::Gemini).await;
}

#[tokio::test]
async fn attacks_through_files_fail_on_isolated_gemini() {
    fails(Provider::Gemini).await;
}

#[tokio::test]
async fn attacks_through_files_work_on_codex() {
    works(Provider::Codex).await;
}

#[tokio::test]
async fn attacks_through_files_fail_on_isolated_codex() {
    fails(Provider::Codex).await;
}

#[tokio::test]
async fn attacks_through_files_work_on_opencode() {
    works(Provider::OpenCode).await;
}

#[tokio::test]
async fn attacks_through_files_fail_on_isolated_opencode() {
    fails(Provider::OpenCode).await;
}

/// Codex loads a file of variables whatever its flags: with anything but logins in it, nothing is
/// started. As a person starts it, the library in that file is loaded.
#[tokio::test]
async fn codex_is_not_started_with_variables_that_load_code() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let (stage, _) = Stage::attacked(Provider::Codex).await;
    let ran = stage.marks().join("preloaded");
    let library = preloaded(stage.marks().parent().unwrap(), &ran);
    let variables = format!("OPENAI_API_KEY=k\nLD_PRELOAD={}\n", library.display());
    std::fs::write(stage.home().join(".codex/.env"), variables).unwrap();
    let turns = [Turn::Say("all done".to_owned())];
    let outcome = stage.run(AgentTools::None, "do it", turns, &[]).await;
    assert!(ran.exists(), "the control: {}", outcome.shown());
    let request = stage.request(AgentTools::Only, "do it", "http://127.0.0.1:1");
    let person = Person::new(stage.inherited());
    let error = prepare(stage.installed(), &request, &person).unwrap_err();
    assert_eq!(error.code().as_str(), "AGENT_NOT_ISOLATED");
    assert!(error.to_string().contains("it would load LD_PRELOAD from"), "{error}");
}
