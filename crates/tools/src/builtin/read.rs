//! Read: lines of a text, unchanged, from any position in a file of any size; or an image.

use std::io::{BufRead, BufReader, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::answer::{ToolAnswer, text_block};
use super::arguments::Arguments;
use super::fault::{Fault, Result};
use super::file::{self, OpenFile};
use super::limits::{SNIFFED_BYTES, TEXT_BYTES_MAX};
use super::root::Root;
use super::stop::{Stop, Stoppable};

/// The requested lines.
struct LineRange {
    offset: u64,
    limit: u64,
}

/// The lines that were read.
#[derive(Default)]
struct TextPage {
    bytes: Vec<u8>,
    lines: u64,
    end: PageEnd,
}

#[derive(Default, PartialEq)]
enum PageEnd {
    /// The end of the file.
    #[default]
    File,
    /// All requested lines were read, and there are more.
    Limit,
    /// No room for the next line.
    Full,
    /// A single line is too long to fit.
    LongLine,
}

pub(super) fn run(root: &Root, arguments: &Arguments<'_>, stop: &Stop) -> Result<ToolAnswer> {
    let lines = LineRange {
        offset: arguments.count("offset")?.unwrap_or(0),
        limit: arguments.count("limit")?.unwrap_or(u64::MAX),
    };
    let mut opened = file::open(root, arguments.path()?)?;
    let mut head = Vec::with_capacity(SNIFFED_BYTES);
    let read = (&mut opened.file).take(SNIFFED_BYTES as u64).read_to_end(&mut head);
    read.map_err(|error| Fault::io(&opened.path, &error))?;
    if let Some(kind) = image(&head) {
        return image_answer(opened, head, kind);
    }
    if head.contains(&0) {
        let (path, bytes) = (opened.path.display(), opened.bytes);
        return Err(Fault::said(format!("'{path}' is a binary file of {bytes} bytes, not text")));
    }
    let reader = Stoppable { inner: head.as_slice().chain(&mut opened.file), stop };
    let page = page(BufReader::with_capacity(64 * 1024, reader), &lines);
    stop.check()?;
    let (page, passed) = page.map_err(|error| Fault::io(&opened.path, &error))?;
    if page.lines == 0 && lines.offset > 0 && lines.limit > 0 {
        return Err(Fault::said(format!(
            "'{}' has {passed} lines; offset {} is past its end",
            opened.path.display(),
            lines.offset
        )));
    }
    Ok(answer(page, &lines).with_opened(opened.path))
}

fn answer(page: TextPage, lines: &LineRange) -> ToolAnswer {
    let next = lines.offset + page.lines;
    let note = match page.end {
        PageEnd::File => None,
        PageEnd::Limit => Some(format!("there is more: continue with offset {next}")),
        PageEnd::Full => Some(format!("cut at 5 MiB: continue with offset {next}")),
        PageEnd::LongLine => Some(format!(
            "line {} is longer than 5 MiB and was cut: continue after it with offset {next}",
            next - 1
        )),
    };
    let (text, is_exact) = match String::from_utf8(page.bytes) {
        Ok(text) => (text, true),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
    };
    let mut content = vec![text_block(&text)];
    content.extend(note.map(|note| text_block(&format!("[{note}]"))));
    if !is_exact {
        content
            .push(text_block("[the file is not all UTF-8: invalid bytes are shown as \u{fffd}]"));
    }
    ToolAnswer::of(content)
}

/// Returns the requested lines, and the number of lines up to their end.
fn page(mut reader: impl BufRead, lines: &LineRange) -> std::io::Result<(TextPage, u64)> {
    let mut passed = 0;
    while passed < lines.offset && skip_line(&mut reader)? {
        passed += 1;
    }
    let mut page = TextPage::default();
    if passed < lines.offset {
        return Ok((page, passed));
    }
    while !reader.fill_buf()?.is_empty() {
        if page.lines == lines.limit {
            page.end = PageEnd::Limit;
            break;
        }
        let before = page.bytes.len();
        let room = TEXT_BYTES_MAX - before;
        if take_line(&mut reader, &mut page.bytes, room)? {
            page.lines += 1;
        } else if before == 0 {
            skip_line(&mut reader)?;
            page.lines += 1;
            page.bytes.truncate(whole_characters(&page.bytes));
            page.end = PageEnd::LongLine;
            break;
        } else {
            page.bytes.truncate(before);
            page.end = PageEnd::Full;
            break;
        }
    }
    let passed = passed + page.lines;
    Ok((page, passed))
}

/// Takes a line; returns false if it does not fit, after taking the part that does.
fn take_line(
    reader: &mut impl BufRead,
    bytes: &mut Vec<u8>,
    mut room: usize,
) -> std::io::Result<bool> {
    loop {
        let chunk = reader.fill_buf()?;
        let end = chunk.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(chunk.len());
        if taken > room {
            bytes.extend_from_slice(&chunk[..room]);
            reader.consume(room);
            return Ok(false);
        }
        let is_done = end.is_some() || taken == 0;
        bytes.extend_from_slice(&chunk[..taken]);
        reader.consume(taken);
        room -= taken;
        if is_done {
            return Ok(true);
        }
    }
}

/// Skips a line; returns false at the end of the file.
fn skip_line(reader: &mut impl BufRead) -> std::io::Result<bool> {
    let mut any = false;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(any);
        }
        any = true;
        match chunk.iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                reader.consume(at + 1);
                return Ok(true);
            }
            None => {
                let length = chunk.len();
                reader.consume(length);
            }
        }
    }
}

/// Returns the number of bytes up to the last complete character.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}

fn image(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn image_answer(mut opened: OpenFile, mut bytes: Vec<u8>, kind: &str) -> Result<ToolAnswer> {
    let room = (TEXT_BYTES_MAX + 1 - bytes.len()) as u64;
    let read = (&mut opened.file).take(room).read_to_end(&mut bytes);
    read.map_err(|error| Fault::io(&opened.path, &error))?;
    if bytes.len() > TEXT_BYTES_MAX {
        let path = opened.path.display();
        return Err(Fault::said(format!("'{path}' is an image larger than 5 MiB")));
    }
    let block: Value = json!({"type": "image", "data": STANDARD.encode(bytes), "mimeType": kind});
    Ok(ToolAnswer::of(vec![block]).with_opened(opened.path))
}
