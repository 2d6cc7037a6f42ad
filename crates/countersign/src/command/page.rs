//! `countersign page`: a link that signs a browser in to the running gate.

use admin::view::SignInLink;

use crate::control::Control;
use crate::exit::Failure;
use crate::output::{self, note};
use crate::page_link;
use crate::site::Site;

pub(crate) async fn run(site: &Site) -> Result<(), Failure> {
    let Some(control) = Control::running(site).await? else {
        let words = "no gate is running in this home: start one with 'countersign serve'";
        return Err(Failure::input(words));
    };
    let link = control.post("/api/v1/page/codes").await?;
    let url = output::read::<SignInLink>(&link)?.url;
    output::line(&url)?;
    note("The link signs in one browser, once, and expires after ten minutes.");
    if let Some(words) = page_link::note_for(&url) {
        note(words);
    }
    Ok(())
}
