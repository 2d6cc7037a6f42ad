//! `countersign ledger head|check|repair|accept`.

mod accept;
mod check;
mod head;
mod repair;

use domain::config::AnchorConfig;

use crate::cli::Ledger;
use crate::exit::Failure;
use crate::home::Home;
use crate::output::note;
use crate::site::Site;

/// Checks everything but the anchor, and returns the number of receipts, or the faults.
pub(super) fn check(home: &Home) -> Result<u64, Vec<String>> {
    check::verdict(home)
}

/// Returns the anchor that the config names, if the config is valid.
pub(super) fn anchor(site: &Site) -> Option<AnchorConfig> {
    match site.source() {
        Ok(source) => source.config.ledger.anchor.clone(),
        Err(failure) => {
            note(&format!("the anchor is not compared: {}", failure.message()));
            None
        }
    }
}

pub(crate) async fn run(site: &Site, verb: Ledger) -> Result<(), Failure> {
    match verb {
        Ledger::Head { output } => head::run(site, output).await,
        Ledger::Check { output } => check::run(site, output).await,
        Ledger::Repair { yes } => repair::run(site, yes).await,
        Ledger::Accept { yes } => accept::run(site, yes).await,
    }
}
