//! `countersign hook`: a hook event of Claude Code on stdin becomes an event for the gate. The agent
//! waits for this process, so it does little and waits for nobody.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use domain::ledger::hook;
use jiff::Timestamp;

use crate::cli::Locations;
use crate::exit::Failure;
use crate::home::Home;
use crate::spool;

/// A gate that does not take the event in this time is as good as none.
const SEND_MAX: Duration = Duration::from_millis(5);

/// Larger events come from no agent.
const EVENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Without a runtime: starting one would take longer than all the rest.
pub(crate) fn run(place: &Locations) -> Result<(), Failure> {
    let mut event = String::new();
    std::io::stdin()
        .take(EVENT_BYTES_MAX)
        .read_to_string(&mut event)
        .map_err(|error| Failure::input(format!("cannot read the event: {error}")))?;
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
        .map_err(|error| Failure::system(format!("cannot write the event down: {error}")))
}

fn send(home: &Home, frame: &str) -> std::io::Result<()> {
    let mut socket = UnixStream::connect(home.events_socket())?;
    socket.set_write_timeout(Some(SEND_MAX))?;
    let length = u32::try_from(frame.len()).map_err(std::io::Error::other)?;
    let mut message = length.to_be_bytes().to_vec();
    message.extend_from_slice(frame.as_bytes());
    socket.write_all(&message)
}
