//! `countersign activity list|show|watch|summary|export`.

mod record;
mod summary;
mod watch;

use std::io::IsTerminal;

use admin::view::{ActivityPage, ActivityRecord, CallMetadata, ResourceTouch};
use jiff::Zoned;
use store::read::{ID_PART_MIN, TouchAccess};
use touch::container::{container_name, contains};
use touch::targets::glob;

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
            let list = |page: &ActivityPage| record::list(page, &looks());
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
            ("effective_class", self.class.clone()),
            ("agent", self.agent.clone()),
            ("session_id", self.session.clone()),
            ("request_id", self.request.clone()),
            ("target_system", self.target_system.clone()),
            ("target_resource", self.target_resource.clone()),
            ("under", self.under.clone()),
            ("containers", self.containers.then(|| "true".to_owned())),
            ("access", self.access.clone()),
            ("type", self.kind.clone()),
            ("q", self.text.clone()),
        ]
    }

    /// Applies the filter to one record, with the same result as the gate's.
    fn fits(&self, record: &ActivityRecord) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let CallMetadata { intent, effective_class: class, .. } = &record.metadata;
        let intent = intent.as_ref();
        is(&self.server, Some(&record.server_name))
            && is(&self.tool, Some(&record.tool_name))
            && is(&self.status, Some(&record.status))
            && is(&self.intent_type, intent.and_then(|intent| intent.operation_type.as_deref()))
            && is(&self.class, class.as_deref())
            && self.session.as_deref().is_none_or(|wanted| is_part(wanted, &record.session_id))
            && is(&self.request, record.request_id.as_deref())
            && self.fits_target(record)
            && is(&self.kind, Some(&record.kind))
            && self.agent.as_deref().is_none_or(|wanted| is_by(record, wanted))
            && self.text.as_deref().is_none_or(|wanted| mentions(record, wanted))
    }

    /// Reports whether one of the targets matches.
    fn fits_target(&self, record: &ActivityRecord) -> bool {
        let Filters { target_system, target_resource, under, access, .. } = self;
        let asks = [target_system, target_resource, under, access].into_iter().any(Option::is_some);
        let class = record.metadata.effective_class.as_deref();
        !asks || record.targets.iter().any(|touch| self.fits_touch(touch, class))
    }

    fn fits_touch(&self, touch: &ResourceTouch, class: Option<&str>) -> bool {
        let ResourceTouch { system, resource, access } = touch;
        let around = |name: &str| self.containers && contains(system, resource, name);
        let is_named = self
            .target_resource
            .as_deref()
            .is_none_or(|name| glob(name.as_bytes(), resource.as_bytes()) || around(name));
        let is_within = self.under.as_deref().is_none_or(|given| {
            let folder = container_name(given);
            let is_around = self.target_resource.is_none() && around(folder);
            resource == folder || contains(system, folder, resource) || is_around
        });
        let wanted =
            TouchAccess::ALL.into_iter().find(|one| Some(one.as_str()) == self.access.as_deref());
        let is_done = wanted.is_none_or(|wanted| {
            wanted.of_touch().as_str() == access
                && wanted.class().is_none_or(|wanted| class == Some(wanted.as_str()))
        });
        self.target_system.as_ref().is_none_or(|wanted| wanted == system)
            && is_named
            && is_within
            && is_done
    }
}

/// Reports whether an id is the wanted one, or begins or ends with it.
fn is_part(wanted: &str, id: &Option<String>) -> bool {
    let found = id.as_deref().unwrap_or_default();
    found == wanted
        || (wanted.len() >= ID_PART_MIN && (found.starts_with(wanted) || found.ends_with(wanted)))
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
            "error_message": "No Route", "timestamp": "2026-02-03T09:08:07Z", "session_id": "mcp-5814b426",
            "request_id": "r9",
            "agent": {"name": "claude#7", "client": "claude", "token": "agent-token"},
            "target": {"system": "git", "resource": "a/b"},
            "targets": [{"system": "git", "resource": "a/b", "access": "write"}],
            "metadata": {"unverified": false, "warnings": [], "arguments_bytes": 2,
                "response_bytes": 2, "effective_class": "destructive",
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
            (
                true,
                Filters { agent: some("claude#7"), session: some("mcp-5814b426"), ..none.clone() },
            ),
            (true, Filters { agent: some("agent-token"), ..none.clone() }),
            (false, Filters { agent: some("claude#8"), ..none.clone() }),
            (true, Filters { text: some("no route"), ..none.clone() }),
            (true, Filters { text: some("RELEASE"), target_resource: some("a/b"), ..none.clone() }),
            (false, Filters { text: some("tool_call"), ..none.clone() }),
            (true, Filters { class: some("destructive"), request: some("r9"), ..none.clone() }),
            (false, Filters { class: some("write"), ..none.clone() }),
            (true, Filters { session: some("5814b426"), ..none.clone() }),
            (true, Filters { session: some("mcp-"), ..none.clone() }),
            (false, Filters { session: some("426"), ..none.clone() }),
            (
                true,
                Filters { target_resource: some("a/*"), access: some("delete"), ..none.clone() },
            ),
            (false, Filters { target_resource: some("*/c"), ..none.clone() }),
            (true, Filters { under: some("a/"), access: some("write"), ..none.clone() }),
            (false, Filters { under: some("b"), ..none.clone() }),
            (false, Filters { under: some("/"), ..none.clone() }),
            (false, Filters { access: some("read"), ..none.clone() }),
            (false, Filters { target_resource: some("a/b#7"), ..none.clone() }),
            (true, Filters { target_resource: some("a/b#7"), containers: true, ..none.clone() }),
            (true, Filters { under: some("a/b/c"), containers: true, ..none.clone() }),
        ] {
            assert_eq!(filters.fits(&record), fits, "{:?}", filters.values());
        }
    }
}
