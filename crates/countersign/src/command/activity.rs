//! `countersign activity list|show|watch|summary|export`.

mod record;
mod summary;
mod watch;

use std::io::IsTerminal;

use jiff::Zoned;
use serde_json::Value;

use crate::cli::{Activity, Filters, Place, Rows, Span};
use crate::command::export;
use crate::control::{Control, encode, get, with_query};
use crate::exit::Failure;
use crate::output::{self, entries};
use gateway::plan::Reach;
use record::Looks;

pub(crate) async fn run(place: &Place, verb: Activity) -> Result<(), Failure> {
    match verb {
        Activity::List { filters, span, rows, output } => {
            let values = [filters.values(), span.values(), rows.values()].concat();
            let path = with_query("/api/v1/activity", &values);
            let answer = get(place, Reach::Nothing, &path).await?;
            output::print(output, &answer, |answer| record::list(answer, &looks()))?;
            output::tell_next(output, &answer, entries(&answer, "activities").len());
            Ok(())
        }
        Activity::Show { id, output } => {
            let path = format!("/api/v1/activity/{}", encode(&id));
            output::print(output, &get(place, Reach::Nothing, &path).await?, record::show)
        }
        Activity::Watch(args) => watch::run(place, args, &looks()).await,
        Activity::Summary { period, output } => {
            let path = format!("/api/v1/activity/summary?period={}", period.as_str());
            let answer = get(place, Reach::Nothing, &path).await?;
            output::print(output, &answer, summary::tables)
        }
        Activity::Export { format, output, filters, span } => {
            let format = ("format", Some(format.as_str().to_owned()));
            let values = [vec![format], filters.values(), span.values()].concat();
            let path = with_query("/api/v1/activity/export", &values);
            Control::with(place, Reach::Nothing, async |control| {
                export::to(control, &path, output.as_deref()).await
            })
            .await
        }
    }
}

/// Icons are for people at a terminal.
fn looks() -> Looks {
    Looks { has_icons: std::io::stdout().is_terminal(), now: Zoned::now() }
}

type Values = Vec<(&'static str, Option<String>)>;

impl Filters {
    fn values(&self) -> Values {
        vec![
            ("server", self.server.clone()),
            ("tool", self.tool.clone()),
            ("status", self.status.clone()),
            ("intent_type", self.intent_type.clone()),
            ("agent", self.agent.clone()),
            ("session_id", self.session.clone()),
            ("target_system", self.target_system.clone()),
            ("target_resource", self.target_resource.clone()),
            ("type", self.kind.clone()),
            ("q", self.text.clone()),
        ]
    }

    /// The same question asked of one record, as the gate would answer it.
    fn fits(&self, record: &Value) -> bool {
        let is = |wanted: &Option<String>, pointer: &str| {
            let found = record.pointer(pointer).and_then(Value::as_str);
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        is(&self.server, "/server_name")
            && is(&self.tool, "/tool_name")
            && is(&self.status, "/status")
            && is(&self.intent_type, "/metadata/intent/operation_type")
            && is(&self.session, "/session_id")
            && is(&self.target_system, "/target/system")
            && is(&self.target_resource, "/target/resource")
            && is(&self.kind, "/type")
            && self.agent.as_deref().is_none_or(|wanted| is_by(record, wanted))
            && self.text.as_deref().is_none_or(|wanted| mentions(record, wanted))
    }
}

/// An agent is named with its session, without it, or by its token.
fn is_by(record: &Value, wanted: &str) -> bool {
    let agent = &record["agent"];
    let name = agent["name"].as_str().unwrap_or_default();
    let sessionless = name.split_once('#').map_or(name, |(name, _)| name);
    [name, sessionless].contains(&wanted) || agent["token"] == wanted
}

fn mentions(record: &Value, wanted: &str) -> bool {
    let wanted = wanted.to_ascii_lowercase();
    [
        "/tool_name",
        "/server_name",
        "/metadata/intent/reason",
        "/error_message",
        "/target/system",
        "/target/resource",
    ]
    .into_iter()
    .filter_map(|pointer| record.pointer(pointer).and_then(Value::as_str))
    .any(|text| text.to_ascii_lowercase().contains(&wanted))
}

impl Span {
    pub(crate) fn values(&self) -> Values {
        let text = |time: Option<jiff::Timestamp>| time.map(|time| time.to_string());
        vec![("start_time", text(self.since)), ("end_time", text(self.until))]
    }
}

impl Rows {
    pub(crate) fn values(&self) -> Values {
        vec![("limit", Some(self.limit.to_string())), ("cursor", self.cursor.clone())]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_watched_record_is_filtered_as_a_listed_one() {
        let record = json!({"type": "tool_call", "server_name": "git", "tool_name": "push",
            "status": "error", "error_message": "No Route", "session_id": "s1",
            "agent": {"name": "claude#7", "client": "claude", "token": "agent-token"},
            "target": {"system": "git", "resource": "a/b"},
            "metadata": {"intent": {"operation_type": "write", "reason": "Release 2"}}});
        let some = |text: &str| Some(text.to_owned());
        let none = Filters::default();
        for (fits, filters) in [
            (true, none.clone()),
            (true, Filters { server: some("git"), tool: some("push"), ..none.clone() }),
            (false, Filters { server: some("gi"), ..none.clone() }),
            (false, Filters { server: some("git"), tool: some("pull"), ..none.clone() }),
            (true, Filters { status: some("error"), kind: some("tool_call"), ..none.clone() }),
            (false, Filters { intent_type: some("read"), ..none.clone() }),
            (true, Filters { agent: some("claude"), ..none.clone() }),
            (true, Filters { agent: some("claude#7"), session: some("s1"), ..none.clone() }),
            (true, Filters { agent: some("agent-token"), ..none.clone() }),
            (false, Filters { agent: some("claude#8"), ..none.clone() }),
            (true, Filters { text: some("no route"), ..none.clone() }),
            (true, Filters { text: some("RELEASE"), target_resource: some("a/b"), ..none.clone() }),
            (false, Filters { text: some("tool_call"), ..none.clone() }),
        ] {
            assert_eq!(filters.fits(&record), fits, "{:?}", filters.values());
        }
    }
}
