//! Decisions about files, made in this process rather than through a running `serve`, which notices
//! decisions made by others.

use domain::Refusal;
use domain::config::Config;
use gateway::operator::DecisionSource;
use gateway::plan::{Plan, Reach};
use gateway::{GateSettings, Gateway};
use store::Store;

use crate::cli::Locations;
use crate::exit::Failure;
use crate::home::Home;

pub(super) fn by() -> DecisionSource {
    DecisionSource { source: "cli", request_id: None }
}

pub(super) fn refused(refusal: Refusal) -> Failure {
    Failure::system(format!("{}: {}", refusal.code, refusal.message))
}

/// Runs the work on a separate gate that connects to nothing; a `serve` may run at the same time.
pub(super) async fn with_gate<T>(
    place: &Locations,
    config: &Config,
    work: impl AsyncFnOnce(&Gateway) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let home = Home::of(place)?;
    home.prepare()?;
    let store = Store::open(home.path(), &config.ledger).map_err(Failure::store)?;
    let gateway = Gateway::new(GateSettings::from(config), store);
    home.hide_keys(gateway.settings().redactor.known());
    let plan = Plan { reach: Reach::Nothing, ..Plan::default() };
    gateway.start(plan).map_err(Failure::store)?;
    let result = work(&gateway).await;
    gateway.drain().await;
    result
}
