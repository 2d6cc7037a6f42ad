//! Follows the events of a gate. If the gate stops, waits for it to return and requests the events
//! missed in between.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderName;
use http_body_util::BodyExt;
use mcp::sse::{Parser, SseEvent};

use crate::control::{Control, lost};
use crate::exit::Failure;
use crate::output::{self, Audience, note, plain};
use crate::site::Site;

/// The interval between attempts to reach a gate that stopped.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The maximum size of one event: a record without its payloads.
const EVENT_BYTES_MAX: usize = 1024 * 1024;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Something that prints events.
pub(super) trait EventPrinter {
    /// Returns the line above all events, if there is one.
    fn head(&self) -> Option<String>;

    /// Returns the line of an event, if it is to be shown.
    fn line(&self, kind: Option<&str>, data: &str) -> Option<String>;
}

/// Formats columns. Later rows are not known yet, so the widths are typical ones.
pub(super) fn columns(cells: &[String], widths: &[usize]) -> String {
    let cell = |(cell, width): (&String, &usize)| format!("{:1$}", plain(cell), *width);
    let cells: Vec<String> = cells.iter().zip(widths).map(cell).collect();
    cells.join("  ").trim_end().to_owned()
}

/// Prints events until stdout is closed.
pub(super) async fn follow(
    site: &Site,
    first: Control,
    printer: &impl EventPrinter,
) -> Result<(), Failure> {
    let mut last_id = None;
    let mut body = open(&first, None).await?;
    // The head is printed once the stream is open: from then on no event is missed.
    printer.head().map_or(Ok(()), |head| output::line(&head))?;
    loop {
        if print(body, &mut last_id, printer).await? == Audience::Gone {
            return Ok(());
        }
        note("the gate has stopped; waiting for it to restart");
        body = reopen(site, last_id.as_deref()).await?;
    }
}

/// Opens the stream of events after the last one shown.
async fn open(gate: &Control, last_id: Option<&str>) -> Result<Body, Failure> {
    let resume = last_id.map(|id| (LAST_EVENT_ID, id));
    gate.stream("/api/v1/events", resume.as_slice()).await
}

/// Opens the stream again once a gate serves it. A gate that is still shutting down accepts
/// connections and drops them, so a failure means no more than that it is too early.
async fn reopen(site: &Site, last_id: Option<&str>) -> Result<Body, Failure> {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(gate) = Control::running(site).await? else { continue };
        if let Ok(body) = open(&gate, last_id).await {
            return Ok(body);
        }
    }
}

/// Prints events until the stream ends or fails.
async fn print(
    mut body: Body,
    last_id: &mut Option<String>,
    printer: &impl EventPrinter,
) -> Result<Audience, Failure> {
    let mut parser = Parser::new(EVENT_BYTES_MAX);
    while let Some(Ok(frame)) = body.frame().await {
        let Some(bytes) = frame.data_ref() else { continue };
        for SseEvent { id, event, data, .. } in parser.push(bytes).map_err(lost)? {
            if id.is_some() {
                *last_id = id;
            }
            if let Some(line) = printer.line(event.as_deref(), &data)
                && output::write(format!("{line}\n").as_bytes())? == Audience::Gone
            {
                return Ok(Audience::Gone);
            }
        }
    }
    Ok(Audience::There)
}
