//! The words of `countersign activity`, and the values that other commands share with it.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use domain::tool::Class;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use store::read::TouchAccess;
use store::{RecordKind, RecordStatus};

use super::Format;
use crate::output::status::{spoken, stable};

#[derive(Subcommand)]
pub(crate) enum Activity {
    /// List records of calls and changes, newest first
    #[command(after_help = "Examples:\n  \
        countersign activity list --under /srv/app --since 7d        who touched something there\n  \
        countersign activity list --access delete --status success   which agents deleted\n  \
        countersign activity list --status refused -o json           what was refused, and why")]
    List {
        #[command(flatten)]
        filters: Filters,
        #[command(flatten)]
        span: Span,
        #[command(flatten)]
        rows: Rows,
        #[command(flatten)]
        ledger: LedgerFile,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Show one record in full
    Show {
        /// Id of the record, or a part that no other has, as in the last column of `activity list`
        id: String,
        #[command(flatten)]
        ledger: LedgerFile,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Print calls as they end, until Ctrl+C; requires a running `serve`
    #[command(after_help = "Examples:\n  \
        countersign activity watch --status refused\n  \
        countersign activity watch --starts -o json | jq .record.tool_name")]
    Watch(Watch),
    /// Summarize recent activity
    Summary {
        /// Period to summarize, up to now
        #[arg(long, value_enum, default_value_t = Period::Day)]
        period: Period,
        #[command(flatten)]
        ledger: LedgerFile,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Export matching records in full, as JSON lines or CSV
    #[command(after_help = "Example:\n  \
        countersign activity export --format csv --since 7d --output week.csv")]
    Export {
        #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
        format: ExportFormat,
        /// File to write, created only once the export is complete [default: stdout]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        filters: Filters,
        #[command(flatten)]
        span: Span,
        #[command(flatten)]
        ledger: LedgerFile,
    },
}

/// Everything that is given must hold.
#[derive(Args, Clone, Default)]
#[command(group(ArgGroup::new("named").args(["target_resource", "under"]).multiple(true)))]
pub(crate) struct Filters {
    /// Only calls to this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Only calls to this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    #[arg(long, hide_possible_values = true, help = list("Only records with this status", &RecordStatus::ALL, |one| spoken(one.as_str())),
        value_parser = statuses(RecordStatus::ALL.map(RecordStatus::as_str)))]
    pub(crate) status: Option<String>,
    #[arg(long, hide_possible_values = true, help = list("Only calls whose declared intent is", &Class::ALL, Class::as_str),
        value_parser = words(&Class::ALL, Class::as_str))]
    pub(crate) intent_type: Option<String>,
    #[arg(long, alias = "effective-class", hide_possible_values = true,
        help = list("Only calls whose effective class is", &Class::ALL, Class::as_str),
        value_parser = words(&Class::ALL, Class::as_str))]
    pub(crate) class: Option<String>,
    /// Only calls by this agent, in all sessions or one, or with this token
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only calls in this session, by its id or the end that follows `#` in names
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only calls of this request
    #[arg(long, value_name = "ID")]
    pub(crate) request: Option<String>,
    /// Only calls that used this system
    #[arg(long, value_name = "NAME")]
    pub(crate) target_system: Option<String>,
    /// Only calls that used this resource; `*` in it is any text
    #[arg(long, value_name = "NAME")]
    pub(crate) target_resource: Option<String>,
    /// Only calls that used this folder, or something in it
    #[arg(long, value_name = "NAME")]
    pub(crate) under: Option<String>,
    /// Also calls that used a container of the resource, such as its folder
    #[arg(long, requires = "named")]
    pub(crate) containers: bool,
    #[arg(long, hide_possible_values = true,
        help = list("Only calls that did this to it", &TouchAccess::ALL, TouchAccess::as_str),
        value_parser = words(&TouchAccess::ALL, TouchAccess::as_str))]
    pub(crate) access: Option<String>,
    #[arg(long = "type", hide_possible_values = true, value_name = "TYPE",
        help = list("Only records of this type", &RecordKind::ALL, RecordKind::as_str),
        value_parser = words(&RecordKind::ALL, RecordKind::as_str))]
    pub(crate) kind: Option<String>,
    /// Only records with this text in tool, server, reason, error or target
    #[arg(short = 'q', long = "query", value_name = "TEXT")]
    pub(crate) text: Option<String>,
}

/// The ledger to read.
#[derive(Args, Clone, Default)]
pub(crate) struct LedgerFile {
    /// Ledger, or copy of one, to read instead of the home's
    #[arg(long, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
}

/// From when to when.
#[derive(Args, Clone, Default)]
pub(crate) struct Span {
    /// Only from this time on: 10m, 2h or 3d (ago), or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) since: Option<Timestamp>,
    /// Only before this time, in the same format
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) until: Option<Timestamp>,
}

/// One page of a list.
#[derive(Args, Clone)]
pub(crate) struct Rows {
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) limit: u16,
    /// Continue after an earlier list, with the cursor that it printed
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

#[derive(Args)]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) filters: Filters,
    /// Also print a line when a call starts
    #[arg(long)]
    pub(crate) starts: bool,
    /// Output format; json prints one object per line
    #[arg(short, long, value_enum, default_value_t = WatchFormat::Table)]
    pub(crate) output: WatchFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WatchFormat {
    Table,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Jsonl,
    Csv,
}

impl ExportFormat {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ExportFormat::Jsonl => "jsonl",
            ExportFormat::Csv => "csv",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Period {
    #[value(name = "1h")]
    Hour,
    #[value(name = "24h")]
    Day,
    #[value(name = "7d")]
    Week,
    #[value(name = "30d")]
    Month,
}

impl Period {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Period::Hour => "1h",
            Period::Day => "24h",
            Period::Week => "7d",
            Period::Month => "30d",
        }
    }
}

/// One word out of a closed list; a misspelled one is told the nearest.
pub(super) fn words<T: Copy>(
    all: &[T],
    word: impl Fn(T) -> &'static str,
) -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(all.iter().map(|one| word(*one)).collect::<Vec<_>>())
}

/// A status in the words of tables, or as its stable value, which it becomes.
pub(super) fn statuses<const N: usize>(
    all: [&'static str; N],
) -> impl TypedValueParser<Value = String> {
    let value = |one| PossibleValue::new(spoken(one)).alias(one);
    PossibleValuesParser::new(all.map(value)).map(move |word| stable(&word, &all))
}

pub(super) fn list<T: Copy>(what: &str, all: &[T], word: impl Fn(T) -> &'static str) -> String {
    let words: Vec<&str> = all.iter().map(|one| word(*one)).collect();
    format!("{what}: {}", words.join(", "))
}

/// A time that people write: how long ago, RFC 3339, or a date or time of where they are.
pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    read_moment(text, Timestamp::now(), &TimeZone::system()).ok_or_else(|| {
        "expected a time such as 2026-01-31T12:00:00Z, or 10m, 2h or 3d for that long ago"
            .to_owned()
    })
}

fn read_moment(text: &str, now: Timestamp, here: &TimeZone) -> Option<Timestamp> {
    if let Some(ago) = text::duration::parse(text) {
        return now.checked_sub(SignedDuration::try_from(ago).ok()?).ok();
    }
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let date_time = match text.parse::<DateTime>() {
        Ok(date_time) => date_time,
        Err(_) => text.parse::<Date>().ok()?.into(),
    };
    here.to_timestamp(date_time).ok()
}

/// A duration that the gate understands, as it was written.
pub(super) fn duration(text: &str) -> Result<String, String> {
    match text::duration::parse(text) {
        Some(duration) if !duration.is_zero() => Ok(text.to_owned()),
        Some(_) | None => Err("expected a duration, such as 30s, 10m or 1h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now: Timestamp = "2026-02-03T12:00:00Z".parse().unwrap();
        let here = TimeZone::fixed(jiff::tz::offset(2));
        for (text, expect) in [
            ("10m", "2026-02-03T11:50:00Z"),
            ("2h", "2026-02-03T10:00:00Z"),
            ("3d", "2026-01-31T12:00:00Z"),
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
            ("2026-01-31T12:00:00+01:00", "2026-01-31T11:00:00Z"),
            ("2026-01-31T12:00", "2026-01-31T10:00:00Z"),
            ("2026-01-31", "2026-01-30T22:00:00Z"),
        ] {
            let expect: Timestamp = expect.parse().unwrap();
            assert_eq!(read_moment(text, now, &here), Some(expect), "{text}");
        }
        for bad in ["", "yesterday", "10", "10 m", "99999999999999d", "-2h"] {
            assert_eq!(read_moment(bad, now, &here), None, "{bad}");
        }
    }
}
