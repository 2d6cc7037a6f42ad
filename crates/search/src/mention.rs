//! Addresses and paths in a query. They are future arguments: their kind says more about the tool
//! that is wanted than their words.

/// Returns the words that represent the addresses and paths in a query.
pub(super) fn kinds(text: &str) -> impl Iterator<Item = &'static str> {
    let mut chunks = text.split_whitespace();
    let has_url = text.contains("://");
    let has_path = chunks.any(|chunk| is_path(chunk.trim_start_matches(['"', '\'', '`', '('])));
    [(has_url, "url"), (has_path, "file")].into_iter().filter(|(has, _)| *has).map(|(_, kind)| kind)
}

fn is_path(chunk: &str) -> bool {
    let starts = ["/", "~/", "./", "../", "C:\\"];
    let rest = starts.iter().find_map(|start| chunk.strip_prefix(start));
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_paths_are_recognised() {
        for (text, expected) in [
            ("summarise https://example.com/a", "url"),
            ("open '/etc/hosts' please", "file"),
            ("compare ~/a.txt with ../b.txt", "file"),
            ("put file:///x into /tmp/y", "url file"),
            ("and / or, 1/2, a/b", ""),
        ] {
            assert_eq!(kinds(text).collect::<Vec<_>>().join(" "), expected, "{text}");
        }
    }
}
