//! Answers as people and programs want them: tables, JSON, YAML. Text from servers is shown
//! without its control characters, which a terminal would obey.

use std::io::Write;

use serde_json::Value;

use crate::cli::Format;
use crate::exit::Failure;

/// Prints a value as JSON or YAML, or as the table that `table` makes of it.
pub(crate) fn print(
    format: Format,
    value: &Value,
    table: impl FnOnce(&Value) -> String,
) -> Result<(), Failure> {
    let text = match format {
        Format::Table => table(value),
        Format::Json => serde_json::to_string_pretty(value)
            .map_err(|error| Failure::system(format!("cannot print: {error}")))?,
        Format::Yaml => serde_saphyr::to_string(value)
            .map_err(|error| Failure::system(format!("cannot print: {error}")))?,
    };
    line(text.trim_end())
}

/// One line, or block of lines, on stdout. A reader that has gone away is no error.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match writeln!(stdout, "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::system(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Columns as wide as their widest cell; the last one is not padded.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        std::iter::once(head.iter().map(|cell| cell.to_uppercase()).collect())
            .chain(rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()))
            .collect();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..head.len()).map(|column| width(column).unwrap_or(0)).collect();
    let lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| {
                let blanks = width - cell.chars().count();
                format!("{cell}{}", " ".repeat(blanks))
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        })
        .collect();
    lines.join("\n")
}

/// `name: value` lines.
pub(crate) fn fields(fields: &[(&str, String)]) -> String {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| format!("{name:width$}  {}", plain(value));
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A member that is text, or nothing.
pub(crate) fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// Text for a terminal: control and bidirectional characters become visible.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\n' | '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                '\u{fffd}'
            }
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up_and_hide_escapes() {
        let rows =
            [vec!["a".to_owned(), "x\u{1b}[1m".to_owned()], vec!["bbb".to_owned(), "y".to_owned()]];
        assert_eq!(table(&["id", "text"], &rows), "ID   TEXT\na    x\u{fffd}[1m\nbbb  y");
        assert_eq!(fields(&[("a", "1".to_owned()), ("long", "2".to_owned())]), "a     1\nlong  2");
    }
}
