//! Cursors: the end of a page as an opaque text. It holds a position and names the list.

use crate::error::StoreError;

/// Lists whose positions mean different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Activity,
    Receipts,
    /// Receipts of one chain, by sequence.
    Chain,
    Runs,
}

impl List {
    fn letter(self) -> char {
        match self {
            List::Activity => 'a',
            List::Receipts => 'r',
            List::Chain => 'c',
            List::Runs => 'w',
        }
    }
}

/// The cursor of the page that goes on below a position.
pub(super) fn write(list: List, position: i64) -> String {
    format!("{}{position:x}", list.letter())
}

/// Only what `write` makes is read.
pub(super) fn read(list: List, cursor: &str) -> Result<i64, StoreError> {
    let position = cursor.strip_prefix(list.letter());
    let position = position.and_then(|digits| i64::from_str_radix(digits, 16).ok());
    position
        .filter(|position| *position > 0 && write(list, *position) == cursor)
        .ok_or_else(|| StoreError::Cursor(cursor.chars().take(SHOWN_MAX).collect()))
}

/// Characters of a bad cursor that are repeated to who sent it.
const SHOWN_MAX: usize = 64;
