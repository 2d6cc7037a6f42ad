//! Containers and their contents, by their names alone: a folder and its files, a repository and its
//! issues, a table and its rows.

use crate::targets::{FILESYSTEM, WEB};

/// Reports whether a resource lies in another: the name of the container is followed by a separator.
/// In names of files only a slash separates, and a full stop only where there is no slash, because
/// `notes.md` is not in `notes`.
pub fn contains(system: &str, container: &str, content: &str) -> bool {
    let Some(rest) = content.strip_prefix(container).filter(|rest| !rest.is_empty()) else {
        return false;
    };
    let separates = |char: char| match char {
        '/' => true,
        // An address and the same with a query.
        '?' => system == WEB,
        '#' | ':' | '@' => system != FILESYSTEM,
        '.' => system != FILESYSTEM && !content.contains('/'),
        _ => false,
    };
    container.ends_with('/') || rest.starts_with(separates)
}

/// Returns the name of a container without the slashes that people write after it.
pub fn container_name(written: &str) -> &str {
    match written.trim_end_matches('/') {
        "" if !written.is_empty() => "/",
        name => name,
    }
}

/// Returns the names that containers of a resource can have, the outermost first; which of them
/// contain it depends on the system.
pub fn possible_containers(content: &str) -> impl Iterator<Item = &str> {
    let ends = content
        .char_indices()
        .filter(|(_, char)| matches!(char, '/' | '?' | '#' | ':' | '@' | '.'));
    let names = ends.flat_map(move |(at, char)| {
        let with_slash = (char == '/').then(|| &content[..=at]);
        [Some(&content[..at]), with_slash].into_iter().flatten()
    });
    names.filter(move |name| !name.is_empty() && *name != content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_a_prefix_at_a_separator() {
        for (system, container, content, expected) in [
            ("filesystem", "/a", "/a/b", true),
            ("filesystem", "/", "/a", true),
            ("filesystem", "/a", "/a", false),
            ("filesystem", "/a", "/ab", false),
            ("filesystem", "/a/notes", "/a/notes.md", false),
            ("filesystem", "/a/b", "/a/b@2", false),
            ("filesystem", "/a/b", "/a/c", false),
            ("github.com", "owner/repo", "owner/repo#1", true),
            ("github.com", "owner/repo", "owner/repo:src/main.rs", true),
            ("github.com", "owner/repo", "owner/repo@main", true),
            ("github.com", "owner/repo", "owner/repo2#1", false),
            ("github.com", "owner/next", "owner/next.js", false),
            ("github.com", "owner/repo#1", "owner/repo#12", false),
            ("db", "analytics", "analytics.events", true),
            ("db", "events", "events/42", true),
            ("web", "https://x.org/a", "https://x.org/a/b", true),
            ("web", "https://x.org/a", "https://x.org/a?~0f0f0f0f0f0f", true),
            ("web", "https://x.org/a?~0f0f0f0f0f0f", "https://x.org/a?~1f1f1f1f1f1f", false),
            ("db", "a", "a?b", false),
        ] {
            assert_eq!(contains(system, container, content), expected, "{container} {content}");
            let is_possible = possible_containers(content).any(|name| name == container);
            assert!(is_possible || !expected, "{container} {content}");
        }
    }

    #[test]
    fn a_container_is_named_without_its_last_slash() {
        let names = ["/srv/", "/srv", "//", "/", ""].map(container_name);
        assert_eq!(names, ["/srv", "/srv", "/", "/", ""]);
    }

    #[test]
    fn containers_come_outermost_first() {
        let names: Vec<&str> = possible_containers("/srv/a#1").collect();
        assert_eq!(names, ["/", "/srv", "/srv/", "/srv/a"]);
        assert_eq!(possible_containers("/srv/").collect::<Vec<_>>(), ["/", "/srv"]);
    }
}
