//! `countersign ledger head|check|repair`.

mod check;
mod head;
mod progress;
mod repair;

use crate::cli::{Ledger, Locations};
use crate::exit::Failure;

pub(crate) async fn run(place: &Locations, verb: Ledger) -> Result<(), Failure> {
    match verb {
        Ledger::Head { output } => head::run(place, output).await,
        Ledger::Check { output } => check::run(place, output).await,
        Ledger::Repair { yes } => repair::run(place, yes).await,
    }
}
