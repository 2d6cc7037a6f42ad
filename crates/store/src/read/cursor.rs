//! Cursors: the end of a page as an opaque text, with a position and the list it belongs to.

use crate::error::StoreError;

/// Lists with different kinds of positions.
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

/// Returns the cursor of the page that continues below a position.
pub(super) fn write(list: List, position: i64) -> String {
    format!("{}{position:x}", list.letter())
}

/// Parses a cursor; accepts only the output of `write`.
pub(super) fn read(list: List, cursor: &str) -> Result<i64, StoreError> {
    let position = cursor.strip_prefix(list.letter());
    let position = position.and_then(|digits| i64::from_str_radix(digits, 16).ok());
    position
        .filter(|position| *position > 0 && write(list, *position) == cursor)
        .ok_or_else(|| StoreError::Cursor(cursor.chars().take(SHOWN_MAX).collect()))
}

/// The number of characters of a bad cursor that the error repeats.
const SHOWN_MAX: usize = 64;
