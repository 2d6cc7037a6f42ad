//! `countersign activity list|show|watch|summary|export`.

mod record;
mod summary;
mod watch;

use std::io::IsTerminal;

use admin::view::{ActivityPage, ActivityRecord};
use jiff::Zoned;

use crate::cli::{Activity, Filters, Rows, Span};
use crate::command::export;
use crate::control::{Control, encode, read, with_query};
use crate::exit::Failure;
use crate::output::{self, Rest};
use crate::site::Site;
use record::RecordStyle;
pub(super) use record::target;

pub(crate) async fn run(site: &Site, verb: Activity) -> Result<(), Failure> {
    match verb {
        Activity::List { filters, span, rows, ledger, output } => {
            let values = [filters.values(), span.values(), rows.values()].concat();
            let path = with_query("/api/v1/activity", &values);
            let answer = read(site, ledger.db.as_deref(), &path).await?;
            let list = |page: &ActivityPage| record::list(&page.activities, &looks());
            if let Some(page) = output::answer(output, &answer, list)? {
                Rest {
                    shown: page.activities.len(),
                    total: page.total,
                    is_exact: page.total_is_exact,
                    next_cursor: page.next_cursor.as_deref(),
                }
                .tell();
            }
            Ok(())
        }
        Activity::Show { id, ledger, output } => {
            let path = format!("/api/v1/activity/{}", encode(&id));
            let answer = read(site, ledger.db.as_deref(), &path).await?;
            output::answer(output, &answer, record::show).map(|_| ())
        }
        Activity::Watch(args) => watch::run(site, args, &looks()).await,
        Activity::Summary { period, ledger, output } => {
            let path = format!("/api/v1/activity/summary?period={}", period.as_str());
            let answer = read(site, ledger.db.as_deref(), &path).await?;
            output::answer(output, &answer, summary::tables).map(|_| ())
        }
        Activity::Export { format, output, filters, span, ledger } => {
            let format = ("format", Some(format.as_str().to_owned()));
            let values = [vec![format], filters.values(), span.values()].concat();
            let path = with_query("/api/v1/activity/export", &values);
            let control = Control::to_read(site, ledger.db.as_deref()).await?;
            export::to(&control, &path, output.as_deref()).await
        }
    }
}

/// Returns the style of records; only a terminal gets icons.
fn looks() -> RecordStyle {
    RecordStyle { has_icons: std::io::stdout().is_terminal(), now: Zoned::now() }
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

    /// Applies the filter to one record, with the same result as the gate's.
    fn fits(&self, record: &ActivityRecord) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let intent = record.metadata.intent.as_ref();
        is(&self.server, Some(&record.server_name))
            && is(&self.tool, Some(&record.tool_name))
            && is(&self.status, Some(&record.status))
            && is(&self.intent_type, intent.and_then(|intent| intent.operation_type.as_deref()))
            && is(&self.session, record.session_id.as_deref())
            && self.fits_target(record)
            && is(&self.kind, Some(&record.kind))
            && self.agent.as_deref().is_none_or(|wanted| is_by(record, wanted))
            && self.text.as_deref().is_none_or(|wanted| mentions(record, wanted))
    }

    /// Reports whether one of the targets matches.
    fn fits_target(&self, record: &ActivityRecord) -> bool {
        let Filters { target_system: system, target_resource: resource, .. } = self;
        let is = |wanted: &Option<String>, found: &String| {
            wanted.as_ref().is_none_or(|wanted| found == wanted)
        };
        (system.is_none() && resource.is_none())
            || record
                .targets
                .iter()
                .any(|touch| is(system, &touch.system) && is(resource, &touch.resource))
    }
}

/// Reports whether the agent matches: by name with or without its session, or by its token.
fn is_by(record: &ActivityRecord, wanted: &str) -> bool {
    let name = record.agent.name.as_str();
    let sessionless = name.split_once('#').map_or(name, |(name, _)| name);
    [name, sessionless, &record.agent.token].contains(&wanted)
}

fn mentions(record: &ActivityRecord, wanted: &str) -> bool {
    let wanted = wanted.to_ascii_lowercase();
    let reason = record.metadata.intent.as_ref().and_then(|intent| intent.reason.as_deref());
    let targets = record.targets.iter().flat_map(|touch| [&*touch.system, &*touch.resource]);
    [
        Some(record.tool_name.as_str()),
        Some(&record.server_name),
        reason,
        record.error_message.as_deref(),
    ]
    .into_iter()
    .flatten()
    .chain(targets)
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
        let record = json!({"id": "1", "type": "tool_call", "server_name": "git",
            "tool_name": "push", "source": "mcp", "surface": "discovery", "status": "error",
            "error_message": "No Route", "timestamp": "2026-02-03T09:08:07Z", "session_id": "s1",
            "agent": {"name": "claude#7", "client": "claude", "token": "agent-token"},
            "target": {"system": "git", "resource": "a/b"},
            "targets": [{"system": "git", "resource": "a/b", "access": "write"}],
            "metadata": {"unverified": false, "warnings": [], "arguments_bytes": 2,
                "response_bytes": 2,
                "intent": {"operation_type": "write", "reason": "Release 2"}}});
        let record: ActivityRecord = output::read(&record).unwrap();
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
