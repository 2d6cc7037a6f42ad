//! `countersign ledger check|repair`.

mod check;
mod progress;
mod repair;

use crate::cli::{Ledger, Locations};
use crate::exit::Failure;

pub(crate) async fn run(place: &Locations, verb: Ledger) -> Result<(), Failure> {
    match verb {
        Ledger::Check { output } => check::run(place, output).await,
        Ledger::Repair { yes } => repair::run(place, yes).await,
    }
}
