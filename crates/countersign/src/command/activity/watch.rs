//! `countersign activity watch`: the calls of a running gate, one line each.

use admin::view::ActivityEvent;
use serde_json::Value;

use super::record::{COLUMNS, RecordStyle, row};
use crate::cli::{Watch, WatchFormat};
use crate::command::following::{self, EventPrinter, columns};
use crate::control::Control;
use crate::exit::Failure;
use crate::json::compact;
use crate::output;
use crate::site::Site;
use crate::stop_signal::StopSignal;

const WIDTHS: [usize; 8] = [8, 20, 28, 13, 9, 8, 32, 0];

pub(super) async fn run(site: &Site, args: Watch, looks: &RecordStyle) -> Result<(), Failure> {
    let mut stop = StopSignal::new()?;
    let watching = async {
        let Some(gate) = Control::running(site).await? else {
            return Err(Failure::system(
                "no 'serve' is running in this home: start one with 'countersign serve', or use \
                 'countersign activity list'",
            ));
        };
        following::follow(site, gate, &Screen { args, looks }).await
    };
    tokio::select! {
        result = watching => result,
        () = stop.received() => Ok(()),
    }
}

struct Screen<'a> {
    args: Watch,
    looks: &'a RecordStyle,
}

impl EventPrinter for Screen<'_> {
    fn line(&self, kind: Option<&str>, data: &str) -> Option<String> {
        if kind != Some("activity") {
            return None;
        }
        let value: Value = serde_json::from_str(data).ok()?;
        let ActivityEvent { phase, record } = output::read(&value).ok()?;
        let wanted = (self.args.starts || phase != "start") && self.args.filters.fits(&record);
        wanted.then(|| match self.args.output {
            WatchFormat::Json => compact(&value),
            WatchFormat::Table => columns(&row(&record, self.looks), &WIDTHS),
        })
    }

    fn head(&self) -> Option<String> {
        match self.args.output {
            WatchFormat::Json => None,
            WatchFormat::Table => Some(columns(&COLUMNS.map(str::to_uppercase), &WIDTHS)),
        }
    }
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
        let mut screen = Screen { args, looks: &looks };
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
