//! Compares two definitions line by line for a reviewer. A definition is laid out with one member
//! per line and the text of strings over as many lines as it has, without commas, so that a line
//! differs only if its content does.

use std::collections::HashMap;
use std::iter::Peekable;

use receipt::canonical;
use serde_json::value::RawValue;

use super::fingerprint::{Fingerprint, RawMembers, without};
use text::json::tokens::{Token, decode, tokens};
use text::visible;

/// Lines on either side, between the first and last change, that are compared with each other; the
/// time grows with their product. Beyond this, all of them count as removed and added.
const LINES_MAX: usize = 1_000;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;

/// Deeper levels are not indented further: otherwise the output for deliberately deep nesting would
/// be larger than the input by a factor of its depth.
const INDENTED_MAX: usize = 32;

/// Precedes each further line of a string, so that its text cannot pass for members.
const CONTINUED: &str = "│ ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineChange {
    Same,
    Removed,
    Added,
    /// The number of unchanged lines omitted here.
    Skipped(usize),
}

impl LineChange {
    pub fn as_str(self) -> &'static str {
        match self {
            LineChange::Same => "same",
            LineChange::Removed => "removed",
            LineChange::Added => "added",
            LineChange::Skipped(_) => "skipped",
        }
    }
}

/// One line of a difference, with hidden characters made visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferenceLine {
    pub mark: LineChange,
    pub text: String,
}

/// Returns the changes from `old` to `new`; without `old`, all of `new` is added. Long unchanged
/// runs are folded, unless there is no change at all. Where the order of members does not count for
/// the fingerprint, it does not count here: both have the order of `new`.
pub fn difference(old: Option<&str>, new: &str) -> Vec<DifferenceLine> {
    match old {
        None => marked(LineChange::Added, lay_out(new)).collect(),
        Some(old) => fold(compare_texts(old, new)),
    }
}

/// Returns the changes from one text to another, line by line as they are. Long unchanged runs are
/// folded.
pub fn line_difference(old: &str, new: &str) -> Vec<DifferenceLine> {
    let lines = |text: &str| text.lines().map(|line| visible(line).into_owned()).collect();
    fold(compare(lines(old), lines(new)))
}

/// Returns a hash of the changed lines and of the members that they are in. The same change in
/// several items has the same hash, whatever else is in them.
pub fn change_fingerprint(old: &str, new: &str) -> Fingerprint {
    let mut changed = String::new();
    let mut within: Vec<&str> = Vec::new();
    let lines = compare_texts(old, new);
    for DifferenceLine { mark, text } in &lines {
        let line = text.trim_start_matches(' ');
        within.truncate((text.len() - line.len()) / 2);
        within.push(line);
        if *mark != LineChange::Same {
            changed.push_str(&format!("{} {}\n", mark.as_str(), within.join("\n")));
        }
    }
    Fingerprint::of_text(&changed)
}

fn compare_texts(old: &str, new: &str) -> Vec<DifferenceLine> {
    let is_unordered = without(old, &[]).is_some() && without(new, &[]).is_some();
    let old = if is_unordered { lay_out(&ordered(old, new)) } else { lay_out(old) };
    compare(old, lay_out(new))
}

/// Returns `old` with its members in the order of `new`. One that `new` lacks stays behind its
/// predecessor. The recursion is as deep as a canonical form can be.
fn ordered(old: &str, new: &str) -> String {
    if let (Some(RawMembers(old)), Some(RawMembers(new))) =
        (RawMembers::read(old), RawMembers::read(new))
    {
        let values = new.iter().enumerate().map(|(at, (name, value))| (&**name, (at, value.get())));
        return ordered_members(&old, &values.collect());
    }
    let items = |text| serde_json::from_str::<Vec<&RawValue>>(text).ok();
    if let (Some(old), Some(new)) = (items(old), items(new)) {
        let matched = old.iter().zip(&new).map(|(old, new)| ordered(old.get(), new.get()));
        let rest = old.iter().skip(new.len()).map(|item| item.get().to_owned());
        return format!("[{}]", matched.chain(rest).collect::<Vec<_>>().join(","));
    }
    old.to_owned()
}

fn ordered_members(old: &[(String, &RawValue)], new: &HashMap<&str, (usize, &str)>) -> String {
    let mut last = None;
    let mut members = Vec::with_capacity(old.len());
    for (name, value) in old {
        let mut member = String::new();
        canonical::write_text(&mut member, name);
        member.push(':');
        match new.get(&**name) {
            Some((at, new)) => {
                last = Some(*at);
                member.push_str(&ordered(value.get(), new));
            }
            None => member.push_str(value.get()),
        }
        members.push((last, member));
    }
    members.sort_by_key(|(at, _)| *at);
    let members: Vec<String> = members.into_iter().map(|(_, member)| member).collect();
    format!("{{{}}}", members.join(","))
}

fn marked(mark: LineChange, lines: Vec<String>) -> impl Iterator<Item = DifferenceLine> {
    lines.into_iter().map(move |text| DifferenceLine { mark, text })
}

/// Lays out a definition. Text that is not JSON is laid out by its own lines.
fn lay_out(text: &str) -> Vec<String> {
    match tokens(text) {
        Some(tokens) => Layout::default().run(tokens.peekable()),
        None => text.split('\n').map(|line| visible(line).into_owned()).collect(),
    }
}

#[derive(Default)]
struct Layout {
    lines: Vec<String>,
    depth: usize,
    /// The name of the member whose value comes next, with a colon.
    name: String,
}

impl Layout {
    fn run<'a>(mut self, mut tokens: Peekable<impl Iterator<Item = Token<'a>>>) -> Vec<String> {
        while let Some(token) = tokens.next() {
            match token {
                Token::Key(literal) => {
                    // A name with line feeds still takes only one line.
                    self.name = quoted(literal).replace('\n', "⟨U+000A⟩") + ": ";
                }
                Token::Open(bracket) => match tokens.peek() {
                    Some(Token::Close(close)) => {
                        self.line(&format!("{bracket}{close}"));
                        tokens.next();
                    }
                    _ => {
                        self.line(&bracket.to_string());
                        self.depth += 1;
                    }
                },
                Token::Close(bracket) => {
                    self.depth -= 1;
                    self.line(&bracket.to_string());
                }
                Token::Text(literal) => self.text(&quoted(literal)),
                Token::Scalar(literal) => self.line(literal),
            }
        }
        self.lines
    }

    fn text(&mut self, text: &str) {
        let mut lines = text.split('\n');
        self.line(lines.next().unwrap_or_default());
        for line in lines {
            self.line(&format!("{CONTINUED}{line}"));
        }
    }

    fn line(&mut self, text: &str) {
        let name = std::mem::take(&mut self.name);
        let indentation = "  ".repeat(self.depth.min(INDENTED_MAX));
        self.lines.push(format!("{indentation}{name}{text}"));
    }
}

/// Formats a string for reading: line feeds and Unicode unescaped, hidden characters made visible.
fn quoted(literal: &str) -> String {
    let text = decode(literal).replace('\\', r"\\").replace('"', r#"\""#);
    format!("\"{}\"", visible(&text))
}

fn compare(mut old: Vec<String>, mut new: Vec<String>) -> Vec<DifferenceLine> {
    let common = |pairs: &mut dyn Iterator<Item = (&String, &String)>| {
        pairs.take_while(|(old, new)| old == new).count()
    };
    let start = common(&mut old.iter().zip(&new));
    let end = common(&mut old[start..].iter().rev().zip(new[start..].iter().rev()));
    let last = new.split_off(new.len() - end);
    old.truncate(old.len() - end);
    let new_middle = new.split_off(start);
    let old_middle = old.split_off(start);
    let mut lines: Vec<DifferenceLine> = marked(LineChange::Same, new).collect();
    if old_middle.len().max(new_middle.len()) > LINES_MAX {
        lines.extend(marked(LineChange::Removed, old_middle));
        lines.extend(marked(LineChange::Added, new_middle));
    } else {
        compare_middle(old_middle, new_middle, &mut lines);
    }
    lines.extend(marked(LineChange::Same, last));
    lines
}

/// Compares by the longest common subsequence.
fn compare_middle(old: Vec<String>, new: Vec<String>, lines: &mut Vec<DifferenceLine>) {
    let lengths = common_lengths(&old, &new);
    let width = new.len() + 1;
    let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
    let (mut row, mut column) = (0, 0);
    loop {
        let mark = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(a), Some(b)) if a == b => LineChange::Same,
            (Some(_), Some(_))
                if lengths[(row + 1) * width + column] >= lengths[row * width + column + 1] =>
            {
                LineChange::Removed
            }
            (Some(_), None) => LineChange::Removed,
            (None | Some(_), Some(_)) => LineChange::Added,
        };
        let (from_old, from_new) = (mark != LineChange::Added, mark != LineChange::Removed);
        let removed = if from_old { old.next() } else { None };
        let added = if from_new { new.next() } else { None };
        (row, column) = (row + usize::from(from_old), column + usize::from(from_new));
        lines.extend(added.or(removed).map(|text| DifferenceLine { mark, text }));
    }
}

/// Returns the number of lines that the tails of both have in common, for each pair of starting
/// positions: row by row of `old`, with one column more than `new` has lines.
fn common_lengths(old: &[String], new: &[String]) -> Vec<u16> {
    let mut numbers = HashMap::new();
    let mut number = |line| {
        let next = numbers.len();
        *numbers.entry(line).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(&mut number).collect();
    let new: Vec<usize> = new.iter().map(&mut number).collect();
    let width = new.len() + 1;
    let mut lengths = vec![0u16; (old.len() + 1) * width];
    for row in (0..old.len()).rev() {
        for column in (0..new.len()).rev() {
            let at = row * width + column;
            lengths[at] = if old[row] == new[column] {
                lengths[at + width + 1] + 1
            } else {
                lengths[at + width].max(lengths[at + 1])
            };
        }
    }
    lengths
}

fn fold(lines: Vec<DifferenceLine>) -> Vec<DifferenceLine> {
    if lines.iter().all(|line| line.mark == LineChange::Same) {
        return lines;
    }
    let count = lines.len();
    let mut folded = Vec::new();
    let mut run = Vec::new();
    let mut from = 0;
    for (at, line) in lines.into_iter().enumerate() {
        if line.mark == LineChange::Same {
            run.push(line);
            continue;
        }
        let before = if from == 0 { 0 } else { CONTEXT };
        fold_run(std::mem::take(&mut run), before, CONTEXT, &mut folded);
        folded.push(line);
        from = at + 1;
    }
    if from < count {
        fold_run(run, CONTEXT, 0, &mut folded);
    }
    folded
}

/// Keeps the first and last lines of an unchanged run; a single line is not worth folding.
fn fold_run(
    mut run: Vec<DifferenceLine>,
    first: usize,
    last: usize,
    folded: &mut Vec<DifferenceLine>,
) {
    if run.len() <= first + last + 1 {
        folded.append(&mut run);
        return;
    }
    let tail = run.split_off(run.len() - last);
    let skipped = run.len() - first;
    folded.extend(run.into_iter().take(first));
    folded.push(DifferenceLine {
        mark: LineChange::Skipped(skipped),
        text: format!("… {skipped} unchanged lines"),
    });
    folded.extend(tail);
}

#[cfg(test)]
mod tests;
