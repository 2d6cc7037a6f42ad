//! `countersign ledger head|check|repair`.

mod check;
mod head;
mod repair;

use domain::config::AnchorConfig;

use crate::cli::{Ledger, Locations};
use crate::exit::Failure;
use crate::home::Home;
use crate::output::note;
use crate::source;

/// Checks everything but the anchor, and returns the number of receipts, or the faults.
pub(super) fn check(home: &Home) -> Result<u64, Vec<String>> {
    check::verdict(home)
}

/// Returns the anchor that the config names, if the config is valid.
pub(super) fn anchor(place: &Locations) -> Option<AnchorConfig> {
    match source::load(place) {
        Ok(source) => source.config.ledger.anchor,
        Err(failure) => {
            note(&format!("the anchor is not compared: {}", failure.message()));
            None
        }
    }
}

pub(crate) async fn run(place: &Locations, verb: Ledger) -> Result<(), Failure> {
    match verb {
        Ledger::Head { output } => head::run(place, output).await,
        Ledger::Check { output } => check::run(place, output).await,
        Ledger::Repair { yes } => repair::run(place, yes).await,
    }
}
