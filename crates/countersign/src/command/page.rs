//! `countersign page`: a link that signs a browser in to the running gate.

use admin::view::SignInLink;

use crate::cli::Locations;
use crate::control::Control;
use crate::exit::Failure;
use crate::home::Home;
use crate::output::{self, note};

pub(crate) async fn run(place: &Locations) -> Result<(), Failure> {
    let Some(control) = Control::running(Home::of(place)?).await? else {
        let words = "no gate is running in this home: start one with 'countersign serve'";
        return Err(Failure::input(words));
    };
    let link = control.post("/api/v1/page/codes").await?;
    output::line(&output::read::<SignInLink>(&link)?.url)?;
    note("The link signs in one browser, once, and expires after ten minutes.");
    Ok(())
}
