//! `countersign ledger head`.

mod head;

use crate::cli::{Ledger, Locations};
use crate::exit::Failure;

pub(crate) async fn run(place: &Locations, verb: Ledger) -> Result<(), Failure> {
    match verb {
        Ledger::Head { output } => head::run(place, output).await,
    }
}
