//! Output for people and programs: tables, JSON, YAML. Hidden characters in text from servers, which
//! a terminal would obey, are shown by their code point or escaped.

pub(crate) mod progress;
pub(crate) mod status;
mod table;
pub(crate) mod terminal;

use std::fmt::Display;
use std::io::Write;

use clap::ValueEnum;
use jiff::{Timestamp, Zoned};
use mcp::task;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use text::{is_hidden, visible};

use crate::exit::Failure;
use crate::json::{escaped, indented, pretty};
pub(crate) use crate::output::table::table;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
    Yaml,
}

/// Prints a value as JSON or YAML, or as the table that `table` makes of it.
pub(crate) fn print<T: Serialize>(
    format: Format,
    value: &T,
    table: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    match format {
        Format::Table => line(table(value).trim_end()),
        Format::Json => line(&pretty(value)),
        Format::Yaml => {
            let text = yaml(value)?;
            // YAML escapes only in double quotes. JSON, which is YAML too, has no other strings.
            if text.contains(is_hidden) {
                line(&escaped(&indented(value), |c| format!("\\U{:08x}", u32::from(c))))
            } else {
                line(text.trim_end())
            }
        }
    }
}

/// Formats YAML. Going through a JSON value avoids a copy of the YAML code for every type.
fn yaml(value: &impl Serialize) -> Result<String, Failure> {
    let fault = |error: &dyn Display| Failure::system(format!("cannot format the output: {error}"));
    let value = serde_json::to_value(value).map_err(|error| fault(&error))?;
    serde_saphyr::to_string(&value).map_err(|error| fault(&error))
}

/// Prints a response of the gate: unchanged for programs, or as a table. Returns the parsed
/// response.
pub(crate) fn answer<T: DeserializeOwned>(
    format: Format,
    answer: &Value,
    table: impl FnOnce(&T) -> String,
) -> Result<Option<T>, Failure> {
    if format != Format::Table {
        return print(format, answer, |_| String::new()).map(|()| None);
    }
    let typed = read(answer)?;
    line(table(&typed).trim_end())?;
    Ok(Some(typed))
}

/// Parses a response of the gate.
pub(crate) fn read<T: DeserializeOwned>(answer: &Value) -> Result<T, Failure> {
    T::deserialize(answer).map_err(|error| Failure::system(unexpected_response(&error)))
}

/// Says why a response of the gate cannot be used; the usual cause is a gate of another version.
pub(crate) fn unexpected_response(error: &serde_json::Error) -> String {
    format!(
        "cannot parse the gate's response: {}; does the gate run another version?",
        text::json::explain(error)
    )
}

/// Prints one or more lines on stdout. A closed stdout is not an error.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    write(format!("{text}\n").as_bytes()).map(|_| ())
}

/// The state of the reader of stdout.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    There,
    Gone,
}

/// Writes bytes unchanged to stdout.
pub(crate) fn write(bytes: &[u8]) -> Result<Audience, Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Audience::There),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Audience::Gone),
        Err(error) => Err(Failure::system(format!("cannot write to stdout: {error}"))),
    }
}

/// Prints a remark on stderr.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", visible(text));
}

/// Asks a question on stderr and reads one line of the answer from stdin; `None` at its end.
pub(crate) async fn ask(question: &str) -> Result<Option<String>, Failure> {
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "{} ", plain(question)).and_then(|()| stderr.flush());
    let reading = task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|bytes| (bytes > 0).then_some(line))
    });
    let read = reading.await.map_err(std::io::Error::other).flatten();
    let line = read.map_err(|error| Failure::system(format!("cannot read from stdin: {error}")))?;
    Ok(line.map(|line| line.trim().to_owned()))
}

/// Formats `name: value` lines.
pub(crate) fn fields(fields: &[(&str, String)]) -> String {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| format!("{name:width$}  {}", plain(value));
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Formats several lines for a terminal, each as in [`plain`].
pub(crate) fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}

/// Formats text for one line of a terminal, with hidden characters visible.
pub(crate) fn plain(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

/// Formats a time briefly, in the local time zone; the date appears only if it is not today.
pub(crate) fn local_time(timestamp: &str, now: &Zoned) -> String {
    local_times([timestamp], now).concat()
}

/// Formats the times of a list alike: with dates if one of them is not today.
pub(crate) fn local_times<'a>(
    timestamps: impl IntoIterator<Item = &'a str>,
    now: &Zoned,
) -> Vec<String> {
    let zoned =
        |text: &str| Some(text.parse::<Timestamp>().ok()?.to_zoned(now.time_zone().clone()));
    let times: Vec<(&str, Option<Zoned>)> =
        timestamps.into_iter().map(|text| (text, zoned(text))).collect();
    let is_today = times.iter().flat_map(|(_, time)| time).all(|time| time.date() == now.date());
    let form = if is_today { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    let words = |(text, time): &(&str, Option<Zoned>)| match time {
        Some(time) => time.strftime(form).to_string(),
        None => (*text).to_owned(),
    };
    times.iter().map(words).collect()
}

/// The end of an id, which tells it from others: ids begin with the time.
const SHORT_ID: usize = 8;

/// Shortens an id; `show` and the filters find it by its end.
pub(crate) fn short_id(id: &str) -> String {
    let skipped = id.chars().count().saturating_sub(SHORT_ID);
    id.chars().skip(skipped).collect()
}

/// Formats a duration with three digits and a suitable unit.
pub(crate) fn milliseconds(duration: Option<f64>) -> String {
    match duration {
        None => "-".to_owned(),
        Some(ms) if ms < 10.0 => format!("{ms:.1} ms"),
        Some(ms) if ms < 1_000.0 => format!("{ms:.0} ms"),
        Some(ms) if ms < 60_000.0 => format!("{:.1} s", ms / 1_000.0),
        Some(ms) if ms < 3_600_000.0 => format!("{:.0} min", ms / 60_000.0),
        Some(ms) => format!("{:.1} h", ms / 3_600_000.0),
    }
}

/// Returns the text, or a dash if there is none.
pub(crate) fn or_dash(text: Option<&str>) -> String {
    match text {
        None | Some("") => "-".to_owned(),
        Some(text) => text.to_owned(),
    }
}

/// Truncates a cell to the width.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

/// The rest of a list after the part that was shown.
pub(crate) struct Rest<'a> {
    pub(crate) shown: usize,
    pub(crate) total: u64,
    pub(crate) is_exact: bool,
    pub(crate) next_cursor: Option<&'a str>,
}

impl Rest<'_> {
    /// Reports the rest on stderr.
    pub(crate) fn tell(&self) {
        let Some(cursor) = self.next_cursor else { return };
        let at_least = if self.is_exact { "" } else { "at least " };
        let (shown, total) = (self.shown, self.total);
        note(&format!("{shown} of {at_least}{total}; continue with --cursor {cursor}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_escapes_control_characters_and_keeps_its_value() {
        let value = serde_json::json!({"a": "\u{9b}1m\u{202e}\u{7f}é\n\u{1b}\u{e0041}"});
        let text = pretty(&value);
        let expected = r#""\u009b1m\u202e\u007fé\n\u001b\udb40\udc41""#;
        assert_eq!(text, format!("{{\n  \"a\": {expected}\n}}"));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn times_are_short_and_local() {
        let now: Zoned = "2026-02-03T12:00:00+02:00[+02:00]".parse().unwrap();
        assert_eq!(local_time("2026-02-03T09:59:58.123Z", &now), "11:59:58");
        assert_eq!(local_time("2026-02-02T21:59:58Z", &now), "2026-02-02 23:59:58");
        assert_eq!(local_time("soon", &now), "soon");
        let several = ["2026-02-03T09:59:58.123Z", "2026-02-02T21:59:58Z", "soon"];
        let dated = ["2026-02-03 11:59:58", "2026-02-02 23:59:58", "soon"];
        assert_eq!(local_times(several, &now), dated);
        assert_eq!(short_id("urn:receipt:01a1de05-f636-7275-a785-685f5814b426"), "5814b426");
        assert_eq!(short_id("0197"), "0197");
        assert_eq!((cut("äöü", 3), cut("äöüx", 3)), ("äöü".to_owned(), "äö…".to_owned()));
        for (ms, expect) in [
            (Some(0.25), "0.2 ms"),
            (Some(123.4), "123 ms"),
            (Some(1_500.0), "1.5 s"),
            (Some(120_000.0), "2 min"),
            (Some(5_400_000.0), "1.5 h"),
            (None, "-"),
        ] {
            assert_eq!(milliseconds(ms), expect);
        }
    }

    #[test]
    fn fields_line_up() {
        assert_eq!(fields(&[("a", "1".to_owned()), ("long", "2".to_owned())]), "a     1\nlong  2");
    }
}
