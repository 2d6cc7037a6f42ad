//! `countersign activity watch`: the events of a running gate, one line each. If the gate stops,
//! waits for it to return and requests the events missed in between.

use std::time::Duration;

use admin::view::ActivityEvent;
use axum::body::Body;
use axum::http::HeaderName;
use http_body_util::BodyExt;
use mcp::sse::{Parser, SseEvent};
use serde_json::Value;

use super::record::{COLUMNS, RecordStyle, row};
use crate::cli::{Locations, Watch, WatchFormat};
use crate::control::{Control, lost};
use crate::exit::Failure;
use crate::home::Home;
use crate::output::{self, Audience, compact, note, plain};
use crate::serve::StopSignal;

/// The interval between attempts to reach a gate that stopped.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The maximum size of one event: a record without its payloads.
const EVENT_BYTES_MAX: usize = 1024 * 1024;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(super) async fn run(
    place: &Locations,
    args: Watch,
    looks: &RecordStyle,
) -> Result<(), Failure> {
    let mut stop = StopSignal::new()?;
    let watching = async {
        let Some(gate) = Control::running(Home::of(place)?).await? else {
            return Err(Failure::system(
                "no 'serve' is running in this home: start one with 'countersign serve', or use \
                 'countersign activity list'",
            ));
        };
        let mut screen = Screen { args, looks, last_id: None };
        screen.watch(place, gate).await
    };
    tokio::select! {
        result = watching => result,
        () = stop.received() => Ok(()),
    }
}

struct Screen<'a> {
    args: Watch,
    looks: &'a RecordStyle,
    last_id: Option<String>,
}

impl Screen<'_> {
    /// Watches until stdout is closed.
    async fn watch(&mut self, place: &Locations, first: Control) -> Result<(), Failure> {
        let mut body = self.open(&first).await?;
        // The head is printed once the stream is open: from then on no event is missed.
        self.head().map_or(Ok(()), |head| output::line(&head))?;
        loop {
            if self.follow(body).await? == Audience::Gone {
                return Ok(());
            }
            note("the gate has stopped; waiting for it to restart");
            body = self.reopen(place).await?;
        }
    }

    /// Opens the stream of events after the last one shown.
    async fn open(&self, gate: &Control) -> Result<Body, Failure> {
        let resume = self.last_id.as_deref().map(|id| (LAST_EVENT_ID, id));
        gate.stream("/api/v1/events", resume.as_slice()).await
    }

    /// Opens the stream again once a gate serves it. A gate that is still shutting down accepts
    /// connections and drops them, so a failure means no more than that it is too early.
    async fn reopen(&self, place: &Locations) -> Result<Body, Failure> {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Some(gate) = Control::running(Home::of(place)?).await? else { continue };
            if let Ok(body) = self.open(&gate).await {
                return Ok(body);
            }
        }
    }

    /// Prints events until the stream ends or fails.
    async fn follow(&mut self, mut body: Body) -> Result<Audience, Failure> {
        let mut parser = Parser::new(EVENT_BYTES_MAX);
        while let Some(Ok(frame)) = body.frame().await {
            let Some(bytes) = frame.data_ref() else { continue };
            for event in parser.push(bytes).map_err(lost)? {
                if self.show(event)? == Audience::Gone {
                    return Ok(Audience::Gone);
                }
            }
        }
        Ok(Audience::There)
    }

    fn show(&mut self, event: SseEvent) -> Result<Audience, Failure> {
        if event.id.is_some() {
            self.last_id = event.id;
        }
        match self.line(event.event.as_deref(), &event.data) {
            Some(line) => output::write(format!("{line}\n").as_bytes()),
            None => Ok(Audience::There),
        }
    }

    fn line(&self, kind: Option<&str>, data: &str) -> Option<String> {
        if kind != Some("activity") {
            return None;
        }
        let value: Value = serde_json::from_str(data).ok()?;
        let ActivityEvent { phase, record } = output::read(&value).ok()?;
        let wanted = (self.args.starts || phase != "start") && self.args.filters.fits(&record);
        wanted.then(|| match self.args.output {
            WatchFormat::Json => compact(&value),
            WatchFormat::Table => columns(&row(&record, self.looks)),
        })
    }

    fn head(&self) -> Option<String> {
        match self.args.output {
            WatchFormat::Json => None,
            WatchFormat::Table => Some(columns(&COLUMNS.map(str::to_uppercase))),
        }
    }
}

/// Formats columns. Later rows are not known yet, so the widths are typical ones.
fn columns(cells: &[String]) -> String {
    const WIDTHS: [usize; 8] = [8, 20, 28, 13, 9, 8, 32, 0];
    let cell = |(cell, width): (&String, usize)| format!("{:width$}", plain(cell));
    let cells: Vec<String> = cells.iter().zip(WIDTHS).map(cell).collect();
    cells.join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::Filters;

    #[test]
    fn ends_are_shown_and_starts_on_request() {
        let looks = RecordStyle {
            has_icons: false,
            now: "2026-02-03T12:00:00+00:00[UTC]".parse().unwrap(),
        };
        let args = Watch { filters: Filters::default(), starts: false, output: WatchFormat::Json };
        let mut screen = Screen { args, looks: &looks, last_id: None };
        let event = |phase: &str| {
            let record = json!({"id": "1", "type": "tool_call", "source": "mcp",
                "surface": "discovery", "server_name": "s", "tool_name": "t", "status": "success",
                "timestamp": "2026-02-03T09:08:07Z",
                "agent": {"name": "a", "client": "c", "token": "t"},
                "metadata": {"unverified": false, "warnings": [], "arguments_bytes": 2,
                    "response_bytes": 2}});
            json!({"phase": phase, "record": record}).to_string()
        };
        let [start, end] = ["start", "end"].map(event);
        assert_eq!(screen.line(Some("activity"), &start), None);
        assert_eq!(screen.line(Some("activity"), &end).as_ref(), Some(&end));
        assert_eq!(screen.line(Some("server"), &end), None);
        screen.args.starts = true;
        assert_eq!(screen.line(Some("activity"), &start).as_ref(), Some(&start));
        screen.args.filters.server = Some("other".to_owned());
        assert_eq!(screen.line(Some("activity"), &end), None);
    }
}
