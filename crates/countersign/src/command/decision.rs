//! Decisions about files, made in this process rather than through a running `serve`, which notices
//! decisions made by others.

use domain::Refusal;
use domain::config::Config;
use gateway::operator::DecisionSource;
use gateway::plan::{Plan, Reach};
use gateway::{GateSettings, Gateway};

use crate::exit::Failure;
use crate::site::Site;

pub(super) fn by() -> DecisionSource {
    DecisionSource { source: "cli", request_id: None }
}

pub(super) fn refused(refusal: Refusal) -> Failure {
    Failure::system(format!("{}: {}", refusal.code, refusal.message))
}

/// Runs the work on a separate gate that connects to nothing; a `serve` may run at the same time.
pub(super) async fn with_gate<T>(
    site: &Site,
    config: &Config,
    work: impl AsyncFnOnce(&Gateway) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let home = site.home()?;
    home.prepare()?;
    let store = home.store(&config.ledger)?;
    let gateway = Gateway::new(GateSettings::from(config), store);
    home.hide_keys(gateway.settings().redactor.known());
    let plan = Plan { reach: Reach::Nothing, ..Plan::default() };
    gateway.start(plan).map_err(Failure::store)?;
    let result = work(&gateway).await;
    gateway.drain().await;
    result
}
