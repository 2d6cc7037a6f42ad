//! `countersign hook`: turns a hook event of Claude Code on stdin into an event for the gate. The
//! agent waits for this process, so it only writes the event to the spool and waits for nothing.

use std::io::Read;
use std::sync::mpsc;
use std::time::Duration;

use gateway::{links, place};
use jiff::Timestamp;
use redact::Redactor;
use touch::hook::{self, RealName};
use touch::targets::Target;

use crate::exit::Failure;
use crate::site::Site;
use crate::spool::Spool;

/// The maximum size of an event; no agent sends larger ones.
const EVENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The time to follow the links of a path; the gate that records the event tries again.
const LINK_TIME_MAX: Duration = Duration::from_millis(4);

/// Runs without an async runtime: starting one would take longer than everything else.
pub(crate) fn run(site: &Site) -> Result<(), Failure> {
    let mut event = String::new();
    std::io::stdin().take(EVENT_BYTES_MAX).read_to_string(&mut event).map_err(|error| {
        Failure::input(format!("cannot read the hook event from stdin: {error}"))
    })?;
    let (home, redactor) = (site.home(), redactor(site));
    home.iter().for_each(|home| home.hide_keys(redactor.known()));
    let user = place::home();
    let frame = hook::frame(&event, Timestamp::now(), &redactor, user.as_deref(), real_name)
        .map_err(|error| Failure::input(error.to_string()))?;
    let Some(frame) = frame else {
        return Ok(());
    };
    let home = home?;
    home.prepare()?;
    Spool::of(home)
        .append(&frame)
        .map_err(|error| Failure::system(format!("cannot write the event to the spool: {error}")))
}

/// Follows the links of a file on another thread, which ends with this process: a network mount may
/// not answer.
fn real_name(target: &Target) -> RealName {
    let (done, real) = mpsc::channel();
    let given = target.clone();
    let follow = move || {
        let _ = done.send(links::real_target(&given));
    };
    let thread = std::thread::Builder::new().name("links".to_owned()).spawn(follow);
    match thread.ok().and_then(|_| real.recv_timeout(LINK_TIME_MAX).ok()) {
        Some(Some(real)) => RealName::Other(real),
        Some(None) => RealName::Same,
        None => RealName::Unknown,
    }
}

/// Redacts by the user's own config too. A config with faults must not cost the event, which the
/// gate redacts again.
fn redactor(site: &Site) -> Redactor {
    site.own().map(|own| own.config.redact.clone()).unwrap_or_default().redactor()
}
