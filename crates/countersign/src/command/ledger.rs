//! `countersign ledger head|check|repair`.

mod check;
mod head;
mod repair;

use crate::cli::{Ledger, Locations};
use crate::exit::Failure;
use crate::home::Home;

/// Checks everything, and returns the number of receipts, or the faults.
pub(super) fn check(home: &Home) -> Result<u64, Vec<String>> {
    check::verdict(home)
}

pub(crate) async fn run(place: &Locations, verb: Ledger) -> Result<(), Failure> {
    match verb {
        Ledger::Head { output } => head::run(place, output).await,
        Ledger::Check { output } => check::run(place, output).await,
        Ledger::Repair { yes } => repair::run(place, yes).await,
    }
}
