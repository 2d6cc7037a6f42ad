//! Write and Edit: replace a whole file, or one text in it.

use std::io::Read;

use super::answer::ToolAnswer;
use super::arguments::Arguments;
use super::fault::{Fault, Result};
use super::file;
use super::limits::{DIFF_LINES_MAX, EDIT_BYTES_MAX, PLACES_MAX};
use super::root::{Destination, Root, missing};

pub(super) fn write(root: &Root, arguments: &Arguments<'_>) -> Result<ToolAnswer> {
    let (path, content) = (arguments.path()?, arguments.text(&["content"])?);
    let written = file::write(root, path, content.as_bytes())?;
    let shown = root.shown(&written).display();
    let answer = ToolAnswer::text(format!("OK: {} bytes written to {shown}", content.len()));
    Ok(answer.with_opened(written))
}

pub(super) fn edit(root: &Root, arguments: &Arguments<'_>) -> Result<ToolAnswer> {
    let old = arguments.text(&["old", "old_string"])?;
    let new = arguments.text(&["new", "new_string"])?;
    if old.is_empty() {
        return Err(Fault::said("'old' is empty: give the text to replace, or use Write"));
    }
    if old == new {
        return Err(Fault::said("'old' and 'new' are the same: nothing to do"));
    }
    let (folder, name) = match root.find(arguments.path()?)? {
        Destination::File(folder, name) => (folder, name),
        Destination::Folder(folder) => return Err(Fault::is_folder(&folder.path)),
        Destination::Missing(folder, names) => return Err(missing(&folder, &names)),
    };
    let mut opened = file::open_in(&folder, &name)?;
    if opened.bytes > EDIT_BYTES_MAX {
        let (path, bytes) = (opened.path.display(), opened.bytes);
        return Err(Fault::said(format!(
            "'{path}' has {bytes} bytes; Edit accepts at most 64 MiB"
        )));
    }
    let mut bytes = Vec::new();
    let read = (&mut opened.file).take(EDIT_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Fault::io(&opened.path, &error))?;
    let places = find_all(&bytes, old.as_bytes());
    let shown = root.shown(&opened.path).display().to_string();
    check(&places, &bytes, &shown, arguments.flag("replace_all")?)?;
    let edited = replaced(&bytes, &places, old.len(), new.as_bytes());
    file::replace(root, &folder, &name, &edited)?;
    let times = places.len();
    let line = line_of(&bytes, places[0]);
    let word = if times == 1 { "replacement" } else { "replacements" };
    let answer =
        ToolAnswer::text(format!("OK: {times} {word} in {shown}\n{}", diff(line, old, new)));
    Ok(answer.with_opened(opened.path))
}

fn check(places: &[usize], bytes: &[u8], shown: &str, replace_all: bool) -> Result<()> {
    match places {
        [] => Err(Fault::said(format!(
            "the old text was not found in '{shown}': read it again; whitespace must match exactly"
        ))),
        [_] => Ok(()),
        _ if replace_all => Ok(()),
        places => {
            let lines = places.iter().take(PLACES_MAX).map(|at| line_of(bytes, *at).to_string());
            let lines = lines.collect::<Vec<_>>().join(", ");
            let more = if places.len() > PLACES_MAX { ", …" } else { "" };
            Err(Fault::said(format!(
                "the old text was found {} times in '{shown}', at lines {lines}{more}: include \
                 more of the surrounding text, or set replace_all",
                places.len()
            )))
        }
    }
}

/// Returns the positions of the text, without overlaps.
fn find_all(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    let Some(first) = wanted.first() else { return Vec::new() };
    let (mut places, mut from) = (Vec::new(), 0);
    while let Some(step) = bytes[from..].iter().position(|byte| byte == first) {
        let at = from + step;
        let is_here = bytes[at..].starts_with(wanted);
        if is_here {
            places.push(at);
        }
        from = if is_here { at + wanted.len() } else { at + 1 };
    }
    places
}

fn replaced(bytes: &[u8], places: &[usize], old_bytes: usize, new: &[u8]) -> Vec<u8> {
    let mut edited = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for at in places {
        edited.extend_from_slice(&bytes[from..*at]);
        edited.extend_from_slice(new);
        from = at + old_bytes;
    }
    edited.extend_from_slice(&bytes[from..]);
    edited
}

/// Returns the line number, counted from 1 as editors do.
fn line_of(bytes: &[u8], at: usize) -> usize {
    bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Shows the first replacement: the removed and the added lines.
fn diff(line: usize, old: &str, new: &str) -> String {
    let marked = |mark: char, text: &str| {
        text.lines().map(|line| format!("{mark}{line}")).collect::<Vec<_>>()
    };
    let mut lines = marked('-', old);
    lines.extend(marked('+', new));
    let left_out = lines.len().saturating_sub(DIFF_LINES_MAX);
    lines.truncate(DIFF_LINES_MAX);
    if left_out > 0 {
        lines.push(format!("… {left_out} more lines"));
    }
    format!("@@ line {line} @@\n{}", lines.join("\n"))
}
