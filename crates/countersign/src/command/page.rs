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
    let url = output::read::<SignInLink>(&link)?.url;
    output::line(&url)?;
    note("The link signs in one browser, once, and expires after ten minutes.");
    if let Some(words) = note_for(&url) {
        note(words);
    }
    Ok(())
}

/// Returns what is to be said about a link to a name of this machine's own: Safari asks the DNS for
/// it, which does not know it.
pub(crate) fn note_for(url: &str) -> Option<&'static str> {
    let is_unknown = cfg!(target_os = "macos") && url.contains(".localhost:");
    is_unknown.then_some(
        "Safari cannot open this address: use another browser, or set 'tls' in the config.",
    )
}
