//! `countersign contention --watch`: writes that meet another agent's access, as they are recorded.

use admin::view::ContentionEvent;
use jiff::Zoned;
use serde_json::Value;

use crate::cli::{Contention, Format};
use crate::command::following::{self, EventPrinter, columns};
use crate::control::Control;
use crate::exit::Failure;
use crate::json::compact;
use crate::output::{self, local_time, milliseconds, note};
use crate::site::Site;
use crate::stop_signal::StopSignal;

const WIDTHS: [usize; 6] = [8, 28, 24, 24, 8, 0];

pub(super) async fn run(site: &Site, args: &Contention) -> Result<(), Failure> {
    let mut stop = StopSignal::new()?;
    let screen = Screen {
        system: args.search.system.clone(),
        kind: args.kind.clone(),
        is_json: args.output != Format::Table,
    };
    let watching = async {
        let control = Control::to_read(site, args.search.ledger.db.as_deref()).await?;
        if !control.is_running() {
            note("no 'serve' is running: reading the ledger every second");
        }
        following::follow(site, control, &screen).await
    };
    tokio::select! {
        result = watching => result,
        () = stop.received() => Ok(()),
    }
}

struct Screen {
    system: Option<String>,
    kind: Option<String>,
    /// Prints one JSON object a line.
    is_json: bool,
}

impl EventPrinter for Screen {
    fn head(&self) -> Option<String> {
        let names = ["TIME", "WHAT", "AGENT", "OTHER AGENT", "GAP", "RESOURCE"];
        (!self.is_json).then(|| columns(&names.map(str::to_owned), &WIDTHS))
    }

    fn line(&self, kind: Option<&str>, data: &str) -> Option<String> {
        if kind != Some("contention") {
            return None;
        }
        let value: Value = serde_json::from_str(data).ok()?;
        let met: ContentionEvent = output::read(&value).ok()?;
        let is = |wanted: &Option<String>, found: &String| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        let is_wanted = is(&self.system, &met.system) && is(&self.kind, &met.kind);
        is_wanted.then(|| {
            if self.is_json {
                return compact(&value);
            }
            let cells = [
                local_time(&met.write.timestamp, &Zoned::now()),
                met.words,
                met.write.agent,
                met.other.agent,
                milliseconds(Some(met.gap_ms as f64)),
                format!("{} {}", met.system, met.resource),
            ];
            columns(&cells, &WIDTHS)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_meeting_is_one_line_and_others_are_left_out() {
        let side = |agent: &str, access: &str| {
            json!({"record": "1", "agent": agent, "tool": "fs:edit", "access": access,
                "timestamp": "2026-02-03T09:08:07Z"})
        };
        let event = json!({"kind": "write-write", "words": "both wrote", "system": "fs",
            "resource": "/a", "gap_ms": 1500, "write": side("a#1", "write"),
            "other": side("b#2", "write")})
        .to_string();
        let screen = |system: Option<&str>, is_json| Screen {
            system: system.map(str::to_owned),
            kind: None,
            is_json,
        };
        let line = screen(None, false).line(Some("contention"), &event).unwrap();
        // The time comes first, after the date if that is not today's.
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(
            words.ends_with(&["both", "wrote", "a#1", "b#2", "1.5", "s", "fs", "/a"]),
            "{line}"
        );
        assert_eq!(screen(None, true).line(Some("contention"), &event).as_ref(), Some(&event));
        assert_eq!(screen(Some("db"), false).line(Some("contention"), &event), None);
        assert_eq!(screen(None, false).line(Some("activity"), &event), None);
    }
}
