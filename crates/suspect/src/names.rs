//! The names of all servers' tools, and the ones that one server's text borrows.

use std::collections::HashMap;

/// A shorter name may be an ordinary word.
const NAME_CHARS_MIN: usize = 6;

/// Built once per catalog: thousands of names, looked up word by word.
#[derive(Default)]
pub struct KnownNames {
    servers: Vec<String>,
    /// By the lowercase name.
    tools: HashMap<String, Bearers>,
}

struct Bearers {
    /// True if no ordinary word looks like it.
    is_unmistakable: bool,
    /// Indexes into `servers`.
    servers: Vec<usize>,
}

/// A name of another server's tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention<'a> {
    pub(super) name: String,
    pub(super) server: &'a str,
}

impl KnownNames {
    /// Creates the table from pairs of server and tool.
    pub fn new<'a>(names: impl IntoIterator<Item = (&'a str, &'a str)>) -> KnownNames {
        let mut known = KnownNames::default();
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for (server, tool) in names {
            let server = *numbers.entry(server).or_insert_with(|| {
                known.servers.push(server.to_owned());
                known.servers.len() - 1
            });
            let entry = known.tools.entry(tool.to_lowercase()).or_insert_with(|| Bearers {
                is_unmistakable: is_unmistakable(tool),
                servers: Vec::new(),
            });
            entry.is_unmistakable |= is_unmistakable(tool);
            if !entry.servers.contains(&server) {
                entry.servers.push(server);
            }
        }
        known
    }

    pub(super) fn same_name(&self, tool: &str, own_server: &str) -> Option<Mention<'_>> {
        let known = self.tools.get(&tool.to_lowercase())?;
        let server = self.others(known, own_server).next()?;
        Some(Mention { name: tool.to_owned(), server })
    }

    /// Returns the names mentioned in a lowercase text.
    pub(super) fn mentions(&self, text: &str, own_server: &str) -> Vec<Mention<'_>> {
        let is_inside = |c: char| c.is_alphanumeric() || "_-.:/".contains(c);
        let words = text.split(|c| !is_inside(c));
        words.filter_map(|word| self.mention(word, own_server)).collect()
    }

    fn mention(&self, word: &str, own_server: &str) -> Option<Mention<'_>> {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let full = word.split_once(':').or_else(|| word.split_once("__"));
        full.and_then(|(server, tool)| self.full_name(server, tool, own_server))
            .or_else(|| self.bare_name(word, own_server))
            .or_else(|| word.split([':', '/', '.']).find_map(|w| self.bare_name(w, own_server)))
    }

    fn full_name(&self, server: &str, tool: &str, own_server: &str) -> Option<Mention<'_>> {
        let known = self.tools.get(tool)?;
        let mut others = self.others(known, own_server);
        let server = others.find(|other| other.to_lowercase() == server)?;
        Some(Mention { name: format!("{server}:{tool}"), server })
    }

    /// Looks up a bare name. A name that the server's own tools also have is its own.
    fn bare_name(&self, word: &str, own_server: &str) -> Option<Mention<'_>> {
        let known = self.tools.get(word).filter(|known| known.is_unmistakable)?;
        if known.servers.iter().any(|at| self.servers[*at] == own_server) {
            return None;
        }
        let server = self.others(known, own_server).next()?;
        Some(Mention { name: word.to_owned(), server })
    }

    fn others<'a>(&'a self, known: &'a Bearers, own_server: &str) -> impl Iterator<Item = &'a str> {
        let servers = known.servers.iter().map(|at| self.servers[*at].as_str());
        servers.filter(move |server| *server != own_server)
    }
}

/// Reports whether a name has several words and is long enough: `read_file`, `getUser`,
/// `repo.delete`, never `search`.
fn is_unmistakable(name: &str) -> bool {
    let parted = name.trim_matches(['_', '-', '.']).contains(['_', '-', '.']);
    let humped =
        name.chars().zip(name.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    name.chars().count() >= NAME_CHARS_MIN && (parted || humped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> KnownNames {
        KnownNames::new([
            ("files", "read_file"),
            ("files", "search"),
            ("files", "a_b"),
            ("Git", "createIssue"),
            ("git", "search"),
            ("own", "list_all"),
            ("git", "list_all"),
        ])
    }

    #[test]
    fn only_unambiguous_names_of_other_tools_are_mentions() {
        for (text, expected) in [
            ("use read_file instead", Some(("read_file", "files"))),
            ("use 'read_file'.", Some(("read_file", "files"))),
            ("call createissue()", Some(("createissue", "Git"))),
            ("see mcp/read_file, or not", Some(("read_file", "files"))),
            ("use git:search", Some(("git:search", "git"))),
            ("use files__a_b", Some(("files:a_b", "files"))),
            ("use git:list_all", Some(("git:list_all", "git"))),
            ("to search files", None),
            ("a_b", None),
            ("note: search", None),
            ("read_files and read_file_2", None),
            ("list_all is our own", None),
        ] {
            let known = known();
            let found = known.mentions(text, "own");
            let found: Vec<_> = found.iter().map(|m| (m.name.as_str(), m.server)).collect();
            assert_eq!(found, Vec::from_iter(expected), "{text}");
        }
        assert_eq!(known().mentions("read_file", "files"), []);
    }

    #[test]
    fn a_tool_of_the_same_name_is_found_even_if_the_name_is_plain() {
        assert_eq!(
            known().same_name("Search", "own").map(|m| m.server.to_owned()),
            Some("files".into())
        );
        assert_eq!(
            known().same_name("search", "files").map(|m| m.server.to_owned()),
            Some("git".into())
        );
        assert_eq!(known().same_name("read_file", "files"), None);
        assert_eq!(known().same_name("other", "own"), None);
    }
}
