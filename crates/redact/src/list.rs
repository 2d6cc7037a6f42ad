//! Reads the lists and tables that are files of this crate: one row a line, and comments after `#`.

use std::sync::LazyLock;

/// A list of words, read on first use.
pub(super) type Words = LazyLock<Vec<&'static str>>;

/// Returns the rows of a file.
pub(super) fn rows(file: &str) -> impl Iterator<Item = &str> {
    file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Splits a row at its blanks.
pub(super) fn columns<const COUNT: usize>(row: &'static str) -> [&'static str; COUNT] {
    let mut columns = row.split_ascii_whitespace();
    std::array::from_fn(|_| columns.next().expect("the tests read every row"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_name_nothing_twice() {
        for file in [
            include_str!("keys/clues.txt"),
            include_str!("keys/glued.txt"),
            include_str!("keys/harmless-tokens.txt"),
            include_str!("keys/hints.txt"),
            include_str!("keys/services.txt"),
            include_str!("keys/trailing.txt"),
            include_str!("ordinary/beginnings.txt"),
            include_str!("ordinary/words.txt"),
            include_str!("pairs/types.txt"),
        ] {
            assert!(rows(file).is_sorted_by(|one, next| one < next), "{file}");
        }
    }

    #[test]
    fn tables_name_nothing_twice() {
        for file in [include_str!("keys/endings.txt"), include_str!("shapes/prefixes.txt")] {
            let mut names: Vec<&str> = rows(file).filter_map(|row| row.split(' ').next()).collect();
            names.sort_unstable();
            assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
        }
    }
}
