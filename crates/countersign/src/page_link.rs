//! Advice about a sign-in link to the web page.

/// Returns what is to be said about a link, on this system.
pub(crate) fn note_for(url: &str) -> Option<&'static str> {
    note_on(std::env::consts::OS, url)
}

/// Returns what is to be said about a link to a name of this machine's own: Safari asks the DNS for
/// it, which does not know it.
fn note_on(system: &str, url: &str) -> Option<&'static str> {
    let authority = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '#']).next().unwrap_or_default();
    let name = authority.split(':').next().unwrap_or_default();
    (system == "macos" && name.ends_with(".localhost")).then_some(
        "Safari cannot open this address: use another browser, or set 'tls' in the config.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safari_is_named_where_it_cannot_open_the_link() {
        for (system, url, expected) in [
            ("macos", "http://gate-1.localhost:7420/#code=csl_a", true),
            ("macos", "http://gate-1.localhost/#code=csl_a", true),
            ("macos", "https://127.0.0.1:7420/#code=csl_a", false),
            ("macos", "https://gate.example/#code=csl_.localhost:", false),
            ("linux", "http://gate-1.localhost:7420/#code=csl_a", false),
        ] {
            assert_eq!(note_on(system, url).is_some(), expected, "{system} {url}");
        }
    }
}
