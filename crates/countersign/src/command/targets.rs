//! `countersign targets`: what a call would touch, and how many recorded calls had a target.

mod coverage;
mod try_call;

pub(super) use coverage::{lost, with_losses};

use crate::cli::{Locations, Targets};
use crate::exit::Failure;

pub(crate) async fn run(place: &Locations, verb: Targets) -> Result<(), Failure> {
    match verb {
        Targets::Try { tool, arguments, output } => {
            try_call::run(place, &tool, &arguments, output).await
        }
        Targets::Coverage { server, verbose, span, ledger, output } => {
            let values = [vec![("server", server)], span.values()].concat();
            coverage::run(place, ledger.db.as_deref(), &values, (verbose, output)).await
        }
    }
}
