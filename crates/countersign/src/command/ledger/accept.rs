//! `countersign ledger accept`: shows everything that is missing, asks for confirmation, and signs that
//! its loss is accepted. Only a person at the home's command line can do it, with the home's key.

use mcp::task;
use receipt::audit::loss::Loss;

use crate::exit::Failure;
use crate::home::Home;
use crate::output::{self, note};
use crate::site::Site;

pub(super) async fn run(site: &Site, yes: bool) -> Result<(), Failure> {
    let home = site.home()?;
    if !home.path().join(store::FILE).exists() {
        let words =
            format!("there is no ledger in '{}': nothing can be missing", home.path().display());
        return Err(Failure::input(words));
    }
    // Held until the end, so that no gate starts meanwhile.
    let _serving = home.lock()?;
    let path = home.path().to_owned();
    let losses = off_thread(move || store::acceptance::losses(&path)).await?;
    let losses = losses.map_err(Failure::store)?;
    if losses.is_empty() {
        output::line("nothing is missing that was not accepted before")?;
        return report(home).await;
    }
    for loss in &losses {
        note(&loss.words());
    }
    if !yes {
        confirm(losses.len()).await?;
    }
    let path = home.path().to_owned();
    let accepted = losses.clone();
    let accept = move || store::acceptance::accept(&path, &accepted);
    off_thread(accept).await?.map_err(Failure::store)?;
    let words: Vec<String> = losses.iter().map(Loss::words).map(|it| output::plain(&it)).collect();
    output::line(&format!("accepted: {}", words.join("\naccepted: ")))?;
    report(home).await
}

/// Checks the ledger, and reports the faults that are no losses.
async fn report(home: &Home) -> Result<(), Failure> {
    let home = home.clone();
    match off_thread(move || super::check(&home)).await? {
        Ok(_) => Ok(()),
        Err(faults) => {
            faults.iter().for_each(|fault| note(fault));
            Err(Failure::broken(
                "the ledger has faults that are no losses: run 'countersign ledger \
                                 repair'",
            ))
        }
    }
}

async fn confirm(count: usize) -> Result<(), Failure> {
    let question = format!(
        "accept the loss of this in {count} chains for good? It is signed, and no longer a fault [y/N]"
    );
    match output::ask(&question).await?.as_deref() {
        Some("y" | "Y" | "yes") => Ok(()),
        Some(_) => Err(Failure::input("nothing was changed")),
        None => Err(Failure::input("nothing was changed: answer y, or pass --yes")),
    }
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let ended = task::spawn_blocking(work).await;
    ended.map_err(|error| Failure::system(format!("the command stopped early: {error}")))
}
