//! `countersign targets`: what a call would touch, and how many recorded calls had a target.

mod coverage;
mod try_call;

pub(super) use coverage::{lost, with_losses};

use crate::cli::Targets;
use crate::exit::Failure;
use crate::site::Site;

pub(crate) async fn run(site: &Site, verb: Targets) -> Result<(), Failure> {
    match verb {
        Targets::Try { tool, arguments, output } => {
            try_call::run(site, &tool, &arguments, output).await
        }
        Targets::Coverage { server, verbose, span, ledger, output } => {
            let values = [vec![("server", server)], span.values()].concat();
            coverage::run(site, ledger.db.as_deref(), &values, (verbose, output)).await
        }
    }
}
