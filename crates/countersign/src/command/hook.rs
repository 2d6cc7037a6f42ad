//! `countersign hook`: turns a hook event of Claude Code on stdin into an event for the gate. The
//! agent waits for this process, so it only writes the event to the spool and waits for nothing.

use std::io::Read;

use domain::ledger::hook;
use domain::ledger::redaction::Redactor;
use jiff::Timestamp;

use crate::cli::Locations;
use crate::exit::Failure;
use crate::home::Home;
use crate::source;
use crate::spool::Spool;

/// The maximum size of an event; no agent sends larger ones.
const EVENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Runs without an async runtime: starting one would take longer than everything else.
pub(crate) fn run(place: &Locations) -> Result<(), Failure> {
    let mut event = String::new();
    std::io::stdin().take(EVENT_BYTES_MAX).read_to_string(&mut event).map_err(|error| {
        Failure::input(format!("cannot read the hook event from stdin: {error}"))
    })?;
    let redactor = redactor(place);
    let frame = hook::frame(&event, Timestamp::now(), &redactor)
        .map_err(|error| Failure::input(error.to_string()))?;
    let Some(frame) = frame else {
        return Ok(());
    };
    let home = Home::of(place)?;
    home.prepare()?;
    Spool::of(&home)
        .append(&frame)
        .map_err(|error| Failure::system(format!("cannot write the event to the spool: {error}")))
}

/// Redacts by the user's own config too. A config with faults must not cost the event, which the
/// gate redacts again.
fn redactor(place: &Locations) -> Redactor {
    source::own(place).map(|own| own.config.redact).unwrap_or_default().redactor()
}
