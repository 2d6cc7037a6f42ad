//! The format of a log line: time, level, message, members. It looks like the usual lines of
//! `tracing` but costs a fraction of them, because every call writes one. An event is one line,
//! whatever text of clients and servers is in it.

use std::fmt::{self, Debug, Write};
use std::sync::Mutex;

use jiff::Timestamp;
use text::visible;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::json::escaped_json;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";
const BLUE: &str = "\u{1b}[34m";
const PURPLE: &str = "\u{1b}[35m";
const PLAIN: &str = "\u{1b}[0m";

#[derive(Default)]
pub(super) struct TextLine {
    /// The last formatted second, which the next line usually shares.
    second: Mutex<(i64, String)>,
}

impl<S, N> FormatEvent<S, N> for TextLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _ctx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        self.write_time(&mut writer)?;
        let (level, colour) = match *event.metadata().level() {
            tracing::Level::TRACE => ("TRACE", PURPLE),
            tracing::Level::DEBUG => ("DEBUG", BLUE),
            tracing::Level::INFO => (" INFO", GREEN),
            tracing::Level::WARN => (" WARN", YELLOW),
            tracing::Level::ERROR => ("ERROR", RED),
        };
        match writer.has_ansi_escapes() {
            true => write!(writer, " {colour}{level}{PLAIN}")?,
            false => write!(writer, " {level}")?,
        }
        let mut members = MemberWriter { writer: &mut writer, result: Ok(()) };
        event.record(&mut members);
        members.result?;
        writer.write_char('\n')
    }
}

impl TextLine {
    fn write_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let now = Timestamp::now();
        if let Ok(mut second) = self.second.lock() {
            if second.0 != now.as_second() || second.1.is_empty() {
                let whole = Timestamp::from_second(now.as_second()).unwrap_or_default();
                let text = whole.to_string();
                *second = (now.as_second(), text.trim_end_matches('Z').to_owned());
            }
            writer.write_str(&second.1)?;
        }
        let mut micros = now.subsec_microsecond().unsigned_abs();
        let mut digits = *b".000000Z";
        for digit in digits[1..7].iter_mut().rev() {
            *digit += (micros % 10) as u8;
            micros /= 10;
        }
        writer.write_str(std::str::from_utf8(&digits).unwrap_or_default())
    }
}

/// Writes each member after a space: the message as it is, others as `name=value`.
struct MemberWriter<'a, 'b> {
    writer: &'a mut Writer<'b>,
    result: fmt::Result,
}

impl MemberWriter<'_, '_> {
    fn name(&mut self, field: &Field) -> fmt::Result {
        self.writer.write_char(' ')?;
        if field.name() == "message" {
            return Ok(());
        }
        let name = field.name();
        self.writer.write_str(name.strip_prefix("r#").unwrap_or(name))?;
        self.writer.write_char('=')
    }

    fn write(&mut self, field: &Field, value: &dyn Debug) -> fmt::Result {
        self.name(field)?;
        write!(Harmless(self.writer), "{value:?}")
    }
}

impl Visit for MemberWriter<'_, '_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let result = match field.name() {
            "message" => self.name(field).and_then(|()| Harmless(self.writer).write_str(value)),
            _ => self.write(field, &value),
        };
        self.result = self.result.and(result);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let result = self.write(field, value);
        self.result = self.result.and(result);
    }
}

/// Escapes text that may come from clients and servers, so that none of it begins a line, controls a
/// terminal or hides.
struct Harmless<'a, 'b>(&'a mut Writer<'b>);

impl Write for Harmless<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut lines = visible(text);
        if lines.contains(['\n', '\t']) {
            lines = lines.replace('\n', "\\n").replace('\t', "\\t").into();
        }
        self.0.write_str(&lines)
    }
}

/// A JSON format in which hidden characters are escaped, which keeps the meaning.
pub(super) struct JsonLine<F>(pub(super) F);

impl<S, N, F> FormatEvent<S, N> for JsonLine<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(ctx, Writer::new(&mut line), event)?;
        writer.write_str(&escaped_json(&line))
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Text(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Text {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Formats the same events, without the digits of their times.
    fn written(subscriber: impl FnOnce(Text) -> tracing::Dispatch) -> String {
        let text = Text::default();
        tracing::dispatcher::with_default(&subscriber(text.clone()), || {
            tracing::info!(tool = %"a:b", source = "x\"y", duration_ms = 1.5, n = 7, "tool call");
            tracing::warn!(error = ?Some(1), r#type = true, "a {}", "message");
            tracing::error!(text = %"red \u{1b}[31m\u{202e}", "rings \u{7}\n{}", "0000-00-00 forged");
        });
        let text = String::from_utf8(text.0.lock().unwrap().clone()).unwrap();
        let digit = |c: char| if c.is_ascii_digit() { '0' } else { c };
        text.lines()
            .map(|line| {
                let (time, rest) = line.split_at(27);
                time.chars().map(digit).collect::<String>() + rest + "\n"
            })
            .collect()
    }

    #[test]
    fn lines_are_the_usual_ones_and_none_is_forged() {
        let plain = written(|text| {
            let lines = tracing_subscriber::fmt().with_writer(move || text.clone());
            let lines = lines.with_ansi(false).event_format(TextLine::default());
            tracing::Dispatch::new(lines.finish())
        });
        let usual = written(|text| {
            let lines = tracing_subscriber::fmt().with_writer(move || text.clone());
            tracing::Dispatch::new(lines.with_ansi(false).with_target(false).finish())
        });
        assert!(
            plain.starts_with("0000-00-00T00:00:00.000000Z  INFO tool call tool=a:b"),
            "{plain}"
        );
        let first_two = |text: &str| text.lines().take(2).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(first_two(&plain), first_two(&usual));
        let third = r"ERROR rings ⟨U+0007⟩\n0000-00-00 forged text=red ⟨U+001B⟩[31m⟨U+202E⟩";
        assert!(plain.ends_with(&format!("{third}\n")) && plain.lines().count() == 3, "{plain}");
    }

    #[test]
    fn json_hides_nothing() {
        let json = written(|text| {
            let lines = tracing_subscriber::fmt().with_writer(move || text.clone()).json();
            tracing::Dispatch::new(lines.map_event_format(JsonLine).finish())
        });
        let hostile =
            r#""message":"rings \u0007\n0000-00-00 forged","text":"red \u001b[31m\u202e""#;
        assert!(json.contains(hostile), "{json}");
    }
}
