//! Tables: columns as wide as their widest cell. On a terminal they are narrowed to its width, and
//! states are coloured.

use crate::output::plain;
use crate::output::terminal::{Colour, Terminal, painted};

const GAP: &str = "  ";

/// No column is made narrower than this.
const NARROWEST: usize = 8;

/// Columns that other commands take as an argument; a part of them is of no use.
const WHOLE: [&str; 1] = ["ID"];

/// Words that begin the cell of a state, with their colours.
const STATES: [(&str, Colour); 19] = [
    ("ready", Colour::Green),
    ("callable", Colour::Green),
    ("success", Colour::Green),
    ("valid", Colour::Green),
    ("quarantined", Colour::Yellow),
    ("pending_approval", Colour::Yellow),
    ("needs_login", Colour::Yellow),
    ("connecting", Colour::Yellow),
    ("running", Colour::Yellow),
    ("cancelled", Colour::Yellow),
    ("interrupted", Colour::Yellow),
    ("unknown", Colour::Yellow),
    ("expired", Colour::Yellow),
    ("error", Colour::Red),
    ("failed", Colour::Red),
    ("refused", Colour::Red),
    ("revoked", Colour::Red),
    ("BROKEN", Colour::Red),
    ("INVALID", Colour::Red),
];

/// The columns whose cells are states.
const STATE_COLUMNS: [&str; 3] = ["STATE", "STATUS", "RESULT"];

/// Formats a table for stdout; the last column is not padded.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    formatted(head, rows, Terminal::stdout())
}

fn formatted(head: &[&str], rows: &[Vec<String>], terminal: Terminal) -> String {
    let head: Vec<String> = head.iter().map(|cell| cell.to_uppercase()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head.clone())
        .chain(rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()))
        .collect();
    let widths = fitted(&head, widths(&head, &rows), terminal.columns);
    let line = |(number, row): (usize, &Vec<String>)| {
        let is_painted = |column: usize| {
            number > 0 && terminal.has_colour && STATE_COLUMNS.contains(&head[column].as_str())
        };
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let cell = shortened(cell, *width);
            let blanks = " ".repeat(width - cell.chars().count());
            let shown = if is_painted(column) { state(&cell) } else { cell };
            format!("{shown}{blanks}")
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    };
    rows.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

fn widths(head: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    (0..head.len()).map(|column| width(column).unwrap_or(0)).collect()
}

/// Takes from the widest column until the table fits, or none can be narrowed.
fn fitted(head: &[String], mut widths: Vec<usize>, columns: Option<usize>) -> Vec<usize> {
    let Some(columns) = columns else { return widths };
    let gaps = GAP.len() * head.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > columns {
        let can_shrink = |column: &usize| {
            let least = NARROWEST.max(head[*column].chars().count());
            widths[*column] > least && !WHOLE.contains(&head[*column].as_str())
        };
        let Some(widest) =
            (0..widths.len()).filter(can_shrink).max_by_key(|column| widths[*column])
        else {
            break;
        };
        widths[widest] -= 1;
    }
    widths
}

/// Shortens a cell: a sentence at its end, a name or path in its middle, where it says least.
fn shortened(cell: &str, width: usize) -> String {
    let length = cell.chars().count();
    if length <= width {
        return cell.to_owned();
    }
    let kept = width.saturating_sub(1);
    let start = if cell.trim_end().contains(' ') { kept } else { kept / 3 };
    let end = cell.chars().skip(length - (kept - start));
    cell.chars().take(start).chain(['…']).chain(end).collect()
}

fn state(cell: &str) -> String {
    let word = cell.split([' ', ',', ':', '(']).next().unwrap_or_default();
    match STATES.iter().find(|(state, _)| *state == word) {
        Some((_, colour)) => painted(cell, *colour),
        None => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELSEWHERE: Terminal = Terminal { columns: None, has_colour: false };

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn tables_line_up_and_hide_escapes() {
        let rows = rows(&[&["a", "x\u{1b}[1m"], &["bbb", "y"]]);
        let text = formatted(&["id", "text"], &rows, ELSEWHERE);
        assert_eq!(text, "ID   TEXT\na    x⟨U+001B⟩[1m\nbbb  y");
    }

    #[test]
    fn a_table_fits_the_terminal_and_keeps_what_is_needed() {
        let rows = rows(&[&[
            "7d0c6f5e-0000-4000-8000-000000000000",
            "/srv/project/src/pipeline/verdict.rs",
            "Reads a file that somebody has written before",
        ]]);
        let terminal = Terminal { columns: Some(80), has_colour: false };
        let text = formatted(&["id", "target", "description"], &rows, terminal);
        let expected = [
            "ID                                    TARGET                DESCRIPTION",
            "7d0c6f5e-0000-4000-8000-000000000000  /srv/p…ne/verdict.rs  Reads a file that s…",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        // The columns of a terminal that is too narrow stay legible.
        let narrow = Terminal { columns: Some(20), has_colour: false };
        let text = formatted(&["id", "target", "description"], &rows, narrow);
        let last = "7d0c6f5e-0000-4000-8000-000000000000  /s…ct.rs  Reads a fi…";
        assert_eq!(text.lines().last(), Some(last));
    }

    #[test]
    fn states_are_coloured_only_where_colours_are_shown() {
        let rows = rows(&[&["error", "refused CODE"], &["b", "ready"]]);
        let terminal = Terminal { columns: None, has_colour: true };
        let text = formatted(&["server", "state"], &rows, terminal);
        let expected = "SERVER  STATE\nerror   \u{1b}[31mrefused CODE\u{1b}[0m\nb       \u{1b}[32mready\u{1b}[0m";
        assert_eq!(text, expected);
        assert!(!formatted(&["server", "state"], &rows, ELSEWHERE).contains('\u{1b}'));
    }
}
