//! The search of one file after another, and its output.

use std::ffi::OsStr;
use std::fmt::Write;
use std::io::{self, Read};
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};

use crate::builtin::answer::{ToolAnswer, text_block};
use crate::builtin::arguments::Arguments;
use crate::builtin::fault::{Fault, Result};
use crate::builtin::file::{self, OpenFile};
use crate::builtin::limits::{
    GREP_CONTEXT_MAX, GREP_LINE_BYTES_MAX, GREP_LINES_MAX, GREP_WHOLE_BYTES_MAX, TEXT_BYTES_MAX,
};
use crate::builtin::root::{Folder, Root};
use crate::builtin::stop::{Stop, Stoppable};
use crate::builtin::tree::Notes;

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputMode {
    Content,
    Files,
    Count,
}

/// The pattern to search for, and the form of the output.
pub(super) struct GrepSearch<'a> {
    root: &'a Root,
    stop: &'a Stop,
    matcher: RegexMatcher,
    mode: OutputMode,
    context: usize,
}

/// One thread's tools, reused for each file. Each thread has its own matcher: a shared one passes
/// its memory around under a lock, line by line.
pub(super) struct Desk {
    searcher: Searcher,
    matcher: RegexMatcher,
    text: Vec<u8>,
}

/// The output of a search, within its limits.
#[derive(Default)]
pub(super) struct Printout {
    text: String,
    lines: usize,
    pub(super) is_full: bool,
}

/// Rewrites the library's error, which shows the pattern within an added group, `(?:…)`, and a mark
/// below it.
fn bad_pattern(pattern: &str, told: &str) -> Fault {
    let reason = told.lines().last().unwrap_or(told).trim_start_matches("error: ");
    let mark = told.lines().find(|line| line.trim_start().starts_with('^'));
    let column =
        mark.and_then(|line| line.find('^')).and_then(|at| at.checked_sub("    (?:".len()));
    let place = column.map(|column| format!(", at character {}", column + 1)).unwrap_or_default();
    Fault::said(format!("invalid regular expression '{pattern}': {reason}{place}"))
}

impl<'a> GrepSearch<'a> {
    pub(super) fn new(
        root: &'a Root,
        arguments: &Arguments<'_>,
        stop: &'a Stop,
    ) -> Result<GrepSearch<'a>> {
        let mode = match arguments.optional_text(&["output_mode"])? {
            None | Some("content") => OutputMode::Content,
            Some("files_with_matches") => OutputMode::Files,
            Some("count") => OutputMode::Count,
            Some(other) => {
                return Err(Fault::said(format!(
                    "invalid output_mode '{other}': must be content, files_with_matches or count"
                )));
            }
        };
        let context = arguments.count("context")?.unwrap_or(0).min(GREP_CONTEXT_MAX);
        let context = if mode == OutputMode::Content { context as usize } else { 0 };
        let pattern = arguments.text(&["pattern"])?;
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(arguments.flag("case_insensitive")?)
            .line_terminator(Some(b'\n'))
            .build(pattern)
            .map_err(|error| bad_pattern(pattern, &error.to_string()))?;
        Ok(GrepSearch { root, stop, matcher, mode, context })
    }

    pub(super) fn desk(&self) -> Desk {
        let searcher = SearcherBuilder::new()
            .line_number(self.mode == OutputMode::Content)
            .before_context(self.context)
            .after_context(self.context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(GREP_LINE_BYTES_MAX))
            .build();
        let text = vec![0; GREP_WHOLE_BYTES_MAX];
        Desk { searcher, matcher: self.matcher.clone(), text }
    }

    /// Searches one file; one that cannot be read is noted.
    pub(super) fn visit(
        &self,
        desk: &mut Desk,
        (folder, name): (&Folder, &OsStr),
        found: &mut FileMatches,
    ) -> Result<()> {
        self.stop.check()?;
        match file::open_in(folder, name) {
            Ok(opened) => self.file(desk, opened, found),
            Err(fault) => {
                let path = folder.path.join(name);
                found.notes.fault(&self.root.shown(&path).display().to_string(), fault);
                Ok(())
            }
        }
    }

    pub(super) fn file(
        &self,
        desk: &mut Desk,
        mut opened: OpenFile,
        found: &mut FileMatches,
    ) -> Result<()> {
        let shown = self.root.shown(&opened.path);
        let mut lines = MatchedLines {
            shown,
            mode: self.mode,
            has_context: self.context > 0,
            found: String::new(),
            count: 0,
            lines: 0,
            is_binary: false,
            room: found.printed.room(),
        };
        let searched = match usize::try_from(opened.bytes) {
            Ok(bytes @ 1..=GREP_WHOLE_BYTES_MAX) => desk.whole(&mut opened.file, bytes, &mut lines),
            // Some files with text report a length of zero, such as those of the kernel.
            Ok(_) | Err(_) => {
                let reader = Stoppable { inner: &opened.file, stop: self.stop };
                desk.searcher.search_reader(&desk.matcher, reader, &mut lines)
            }
        };
        if let Err(error) = searched {
            self.stop.check()?;
            found.notes.add(format!("{}: {error}", shown.display()));
        }
        if lines.is_binary || lines.count == 0 {
            return Ok(());
        }
        let printed = &mut found.printed;
        match self.mode {
            OutputMode::Content => {
                let is_full =
                    lines.lines >= lines.room.lines || lines.found.len() >= lines.room.bytes;
                printed.add(self.gap(printed), &lines.found, lines.lines);
                printed.is_full |= is_full;
            }
            OutputMode::Files => printed.add("", &format!("{}\n", shown.display()), 1),
            OutputMode::Count => {
                printed.add("", &format!("{}:{}\n", shown.display(), lines.count), 1)
            }
        }
        Ok(())
    }

    /// Returns the separator between two files.
    pub(super) fn gap(&self, printed: &Printout) -> &'static str {
        if self.context > 0 && printed.lines > 0 { GAP } else { "" }
    }
}

impl Desk {
    /// Searches a small file in one read: up to its length when it was opened, which saves a read
    /// to find the end.
    fn whole(
        &mut self,
        file: &mut impl Read,
        bytes: usize,
        lines: &mut MatchedLines<'_>,
    ) -> io::Result<()> {
        let mut read = 0;
        while read < bytes {
            match file.read(&mut self.text[read..bytes]) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.searcher.search_slice(&self.matcher, &self.text[..read], lines)
    }
}

/// The separator between lines that are not adjacent, when context lines are shown.
const GAP: &str = "--\n";

/// The results of some files.
#[derive(Default)]
pub(super) struct FileMatches {
    pub(super) printed: Printout,
    pub(super) notes: Notes,
}

/// The lines and bytes that still fit.
#[derive(Clone, Copy)]
struct Room {
    lines: usize,
    bytes: usize,
}

impl Printout {
    fn room(&self) -> Room {
        Room {
            lines: GREP_LINES_MAX.saturating_sub(self.lines),
            bytes: TEXT_BYTES_MAX.saturating_sub(self.text.len()),
        }
    }

    fn add(&mut self, gap: &str, text: &str, lines: usize) {
        self.text.push_str(gap);
        self.text.push_str(text);
        self.lines += lines;
        self.is_full |= self.lines >= GREP_LINES_MAX || self.text.len() >= TEXT_BYTES_MAX;
    }

    /// Appends as much of the next output as there is room for.
    pub(super) fn append(&mut self, gap: &str, next: Printout) {
        let Room { lines, bytes } = self.room();
        if next.lines <= lines && next.text.len() <= bytes {
            if next.lines > 0 {
                self.add(gap, &next.text, next.lines);
            }
            self.is_full |= next.is_full;
            return;
        }
        for (index, line) in next.text.split_inclusive('\n').enumerate() {
            let gap = if index == 0 { gap } else { "" };
            if self.is_full {
                return;
            }
            self.add(gap, line, usize::from(line != GAP));
        }
    }

    pub(super) fn answer(self, notes: &Notes) -> ToolAnswer {
        let text = match self.text.as_str() {
            "" => "no matching lines",
            text => text.trim_end_matches('\n'),
        };
        let mut content = vec![text_block(text)];
        if self.is_full {
            content.push(text_block(&format!(
                "[cut at {} lines; there may be more: narrow the pattern, path or glob]",
                self.lines
            )));
        }
        content.extend(notes.text().map(|notes| text_block(&notes)));
        ToolAnswer::of(content)
    }
}

/// The matches of one file; a binary file may be detected only during the search, and then has
/// none.
struct MatchedLines<'a> {
    shown: &'a Path,
    mode: OutputMode,
    has_context: bool,
    found: String,
    count: u64,
    lines: usize,
    is_binary: bool,
    room: Room,
}

impl MatchedLines<'_> {
    /// Prints a line and reports whether there is room for more.
    fn print(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let number = number.unwrap_or_default();
        let before = self.found.len();
        let shown = self.shown.display();
        writeln!(self.found, "{shown}{mark}{number}{mark}{text}")
            .expect("writing to a string cannot fail");
        self.lines += 1;
        if self.found.len() > self.room.bytes {
            let room = self.room.bytes.max(before);
            self.found.truncate(self.found.floor_char_boundary(room));
        }
        self.lines < self.room.lines && self.found.len() < self.room.bytes
    }
}

impl Sink for MatchedLines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        Ok(match self.mode {
            OutputMode::Content => self.print(':', found.line_number(), found.bytes()),
            OutputMode::Files => false,
            OutputMode::Count => true,
        })
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        Ok(match found.kind() {
            SinkContextKind::Before | SinkContextKind::After | SinkContextKind::Other => {
                self.print('-', found.line_number(), found.bytes())
            }
        })
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.has_context && self.lines > 0 {
            self.found.push_str(GAP);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}
