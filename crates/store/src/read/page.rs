//! Pages of a list.

/// The size and the start of a part of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The number of rows, 1 to [`PAGE_MAX`]; other values are clamped.
    pub limit: usize,
    /// The cursor from an earlier page.
    pub cursor: Option<String>,
}

/// The maximum number of rows of one page: what a person can look through.
pub const PAGE_MAX: usize = 100;

impl Page {
    pub fn first(limit: usize) -> Page {
        Page { limit, cursor: None }
    }

    pub(super) fn rows(&self) -> usize {
        self.limit.clamp(1, PAGE_MAX)
    }
}
