//! Lines of text in the columns and rows that a screen has.

use crate::output::plain;

/// Divides lines among steps that have so many to show: one after the other, until all have enough.
pub(super) fn shares(wanted: &[usize], mut left: usize) -> Vec<usize> {
    let mut shares = vec![0; wanted.len()];
    while left > 0 && shares != wanted {
        for (share, wanted) in shares.iter_mut().zip(wanted) {
            if left > 0 && *share < *wanted {
                *share += 1;
                left -= 1;
            }
        }
    }
    shares
}

/// Wraps text at words, with every hidden character visible.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for line in text.lines() {
        let (mut line, mut width) = (plain(line), 0);
        while let Some(at) = line.char_indices().find_map(|(at, c)| {
            width += columns_of(c);
            (width > columns).then_some(at)
        }) {
            let at = at.max(line.chars().next().map_or(0, char::len_utf8));
            // A word that fills most of the line is broken.
            let space = if line[at..].starts_with(' ') {
                Some(at)
            } else {
                line[..at].rfind(' ').filter(|space| *space > at / 2)
            };
            let rest = line.split_off(space.map_or(at, |space| space + 1));
            lines.push(line.trim_end().to_owned());
            (line, width) = (rest, 0);
        }
        lines.push(line);
    }
    lines
}

/// Cuts a line to a width.
pub(super) fn cut(line: &str, columns: usize) -> String {
    let mut width = 0;
    let fits = |c: char| {
        width += columns_of(c);
        width <= columns
    };
    if line.chars().all(fits) {
        return line.to_owned();
    }
    let mut width = 1;
    let kept = line.chars().take_while(|c| {
        width += columns_of(*c);
        width <= columns
    });
    kept.chain(['…']).collect()
}

/// Returns the columns that a terminal gives a character.
pub(super) fn columns_of(character: char) -> usize {
    match u32::from(character) {
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff => 2,
        0xfe30..=0xfe4f | 0xff00..=0xff60 | 0xffe0..=0xffe6 => 2,
        0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}
