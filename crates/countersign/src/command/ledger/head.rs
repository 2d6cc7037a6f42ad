//! `countersign ledger head`: the state of all chains on one line. Without a running gate it only
//! reads.

use admin::view::LedgerHead;
use store::read::Reader;

use crate::cli::Format;
use crate::control::Control;
use crate::exit::Failure;
use crate::home::Home;
use crate::output;
use crate::site::Site;

pub(super) async fn run(site: &Site, format: Format) -> Result<(), Failure> {
    let head = match Control::running(site).await? {
        Some(control) => output::read(&control.post("/api/v1/checkpoints").await?)?,
        None => newest(site.home()?)?,
    };
    output::print(format, &head, |head: &LedgerHead| head.line.clone())
}

/// Returns the newest checkpoint in the ledger.
fn newest(home: &Home) -> Result<LedgerHead, Failure> {
    let file = home.path().join(store::FILE);
    if !file.exists() {
        return Err(Failure::input(format!(
            "ledger '{}' does not exist yet: nothing has been recorded in this home",
            file.display()
        )));
    }
    let text = Reader::open(&file).and_then(|reader| reader.newest_checkpoint());
    let text = text.map_err(Failure::store)?;
    text.as_deref().and_then(LedgerHead::of).ok_or_else(|| {
        Failure::input(
            "the ledger has no checkpoint yet: it gets one when a process that recorded a call \
             ends, or from this command while 'serve' runs",
        )
    })
}
