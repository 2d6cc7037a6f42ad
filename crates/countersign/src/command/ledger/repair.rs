//! `countersign ledger repair`: asks for confirmation, repairs the ledger if no gate is running, and
//! prints each step.

use mcp::task;
use store::survey::{self, Survey};

use crate::exit::Failure;
use crate::output::{self, note};
use crate::site::Site;

pub(super) async fn run(site: &Site, yes: bool) -> Result<(), Failure> {
    let home = site.home()?;
    if !home.path().is_dir() {
        return Err(Failure::input(format!("the home '{}' does not exist", home.path().display())));
    }
    // Held until the end, so that no gate starts meanwhile.
    let _serving = home.lock()?;
    let anchor = super::anchor(site);
    let (path, against) = (home.path().to_owned(), anchor.clone());
    let survey = move || (Survey::of(&path, against.as_ref()), survey::living(&path));
    let (survey, living) = off_thread(survey).await?;
    if let Some(chain) = living.first() {
        return Err(Failure::system(format!(
            "a process writes chain {chain} of this home: end every 'mcp', 'wrap' and 'run' first"
        )));
    }
    if survey.is_new() {
        return output::line("nothing has been recorded in this home: there is nothing to repair");
    }
    for words in survey.faults.iter().chain(&survey.notes) {
        note(words);
    }
    if !yes {
        confirm().await?;
    }
    let path = home.path().to_owned();
    let repair = move || store::repair::repair(&path, anchor.as_ref());
    let done = off_thread(repair).await?.map_err(Failure::store)?;
    if done.is_empty() {
        output::line("there was nothing to repair")?;
    } else {
        let lines: Vec<String> = done.iter().map(|words| output::plain(words)).collect();
        output::line(&lines.join("\n"))?;
    }
    let home = home.clone();
    match off_thread(move || super::check(&home)).await? {
        Ok(_) => Ok(()),
        Err(faults) => {
            faults.iter().for_each(|fault| note(fault));
            Err(Failure::broken(
                "the ledger still has faults: restore a backup, or accept what is missing with \
                 'countersign ledger accept'",
            ))
        }
    }
}

async fn confirm() -> Result<(), Failure> {
    let question = "repair the ledger? damaged files are set aside, nothing is deleted [y/N]";
    match output::ask(question).await?.as_deref() {
        Some("y" | "Y" | "yes") => Ok(()),
        Some(_) => Err(Failure::input("nothing was changed")),
        None => Err(Failure::input("nothing was changed: answer y, or pass --yes")),
    }
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let ended = task::spawn_blocking(work).await;
    ended.map_err(|error| Failure::system(format!("the repair stopped early: {error}")))
}
