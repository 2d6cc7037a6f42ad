//! `countersign hook`: turns a hook event of Claude Code on stdin into an event for the gate. The
//! agent waits for this process, so it does little and waits for nothing.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use domain::ledger::hook;
use jiff::Timestamp;

use crate::cli::Locations;
use crate::exit::Failure;
use crate::home::Home;
use crate::spool;

/// The time a gate has to take the event; after that it counts as absent.
const SEND_MAX: Duration = Duration::from_millis(5);

/// The maximum size of an event; no agent sends larger ones.
const EVENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Runs without an async runtime: starting one would take longer than everything else.
pub(crate) fn run(place: &Locations) -> Result<(), Failure> {
    let mut event = String::new();
    std::io::stdin().take(EVENT_BYTES_MAX).read_to_string(&mut event).map_err(|error| {
        Failure::input(format!("cannot read the hook event from stdin: {error}"))
    })?;
    let frame =
        hook::frame(&event, Timestamp::now()).map_err(|error| Failure::input(error.to_string()))?;
    let Some(frame) = frame else {
        return Ok(());
    };
    let home = Home::of(place)?;
    if send(&home, &frame).is_ok() {
        return Ok(());
    }
    home.prepare()?;
    spool::append(&home, &frame)
        .map_err(|error| Failure::system(format!("cannot write the event to the spool: {error}")))
}

fn send(home: &Home, frame: &str) -> std::io::Result<()> {
    let mut socket = UnixStream::connect(home.events_socket())?;
    socket.set_write_timeout(Some(SEND_MAX))?;
    let length = u32::try_from(frame.len()).map_err(std::io::Error::other)?;
    let mut message = length.to_be_bytes().to_vec();
    message.extend_from_slice(frame.as_bytes());
    socket.write_all(&message)
}
