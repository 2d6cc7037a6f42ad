//! Protection against DNS rebinding and foreign pages: a browser states in `Host` and `Origin`
//! which server it addresses and for which page. Only listed names pass.

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, Uri};

/// The names a listener accepts, in lower case.
#[derive(Clone, Debug)]
pub struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    #[error("the Host header is missing")]
    HostMissing,
    #[error("the {0} header appears more than once")]
    Repeated(&'static str),
    #[error("the {0} header is malformed")]
    Malformed(&'static str),
    #[error("the target names another host than the Host header")]
    Target,
    #[error("host {0:?} is not allowed here")]
    Host(String),
    #[error("origin {0:?} is not allowed here")]
    Origin(String),
}

impl Guard {
    /// Compares each entry with the whole header: `localhost:7420`, `https://gate.example`.
    pub fn new(
        hosts: impl IntoIterator<Item = String>,
        origins: impl IntoIterator<Item = String>,
    ) -> Self {
        let lower = |text: String| text.to_ascii_lowercase();
        Guard {
            hosts: hosts.into_iter().map(lower).collect(),
            origins: origins.into_iter().map(lower).collect(),
        }
    }

    /// A guard for a Unix socket, which no page can reach: it rejects every request with an origin.
    pub fn local() -> Self {
        Guard { hosts: vec!["localhost".to_owned()], origins: Vec::new() }
    }

    pub fn check(&self, target: &Uri, headers: &HeaderMap) -> Result<(), Forbidden> {
        let host = single(headers, &HOST, "Host")?.ok_or(Forbidden::HostMissing)?;
        // One reader of a doubled header may take the first, another the last.
        single(headers, &AUTHORIZATION, "Authorization")?;
        if target.authority().is_some_and(|named| !named.as_str().eq_ignore_ascii_case(host)) {
            return Err(Forbidden::Target);
        }
        if host.contains(['?', '#', '@', '\\', '/']) || host.contains(char::is_whitespace) {
            return Err(Forbidden::Malformed("Host"));
        }
        let is_listed =
            |list: &[String], name: &str| list.iter().any(|known| known.eq_ignore_ascii_case(name));
        if !is_listed(&self.hosts, host) {
            return Err(Forbidden::Host(host.to_ascii_lowercase()));
        }
        match single(headers, &ORIGIN, "Origin")? {
            // Sandboxed frames and files send `null`; no list may admit them all.
            Some(origin)
                if origin.eq_ignore_ascii_case("null") || !is_listed(&self.origins, origin) =>
            {
                Err(Forbidden::Origin(origin.to_ascii_lowercase()))
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    shown: &'static str,
) -> Result<Option<&'a str>, Forbidden> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Forbidden::Repeated(shown));
    }
    value.to_str().map(Some).map_err(|_| Forbidden::Malformed(shown))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(guard: &Guard, headers: &[(&str, &str)]) -> Result<(), Forbidden> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        guard.check(&Uri::from_static("/mcp"), &map)
    }

    fn guard() -> Guard {
        let own = ["127.0.0.1:7000", "localhost:7000", "[::1]:7000"];
        let hosts = own.into_iter().chain(["Gate.Example"]).map(str::to_owned);
        let origins = own.map(|host| format!("http://{host}"));
        let extra = ["https://gate.example".to_owned(), "null".to_owned()];
        Guard::new(hosts, origins.into_iter().chain(extra))
    }

    #[test]
    fn only_listed_hosts_pass() {
        let guard = guard();
        let host = |text: &str| Forbidden::Host(text.to_owned());
        for (text, expected) in [
            ("127.0.0.1:7000", Ok(())),
            ("localhost:7000", Ok(())),
            ("LOCALHOST:7000", Ok(())),
            ("[::1]:7000", Ok(())),
            ("gate.example", Ok(())),
            ("gate.example:7000", Err(host("gate.example:7000"))),
            ("localhost", Err(host("localhost"))),
            ("localhost:7001", Err(host("localhost:7001"))),
            ("localhost.:7000", Err(host("localhost.:7000"))),
            ("evil.example:7000", Err(host("evil.example:7000"))),
            ("localhost:7000.evil.example", Err(host("localhost:7000.evil.example"))),
            ("127.0.0.2:7000", Err(host("127.0.0.2:7000"))),
            ("0.0.0.0:7000", Err(host("0.0.0.0:7000"))),
            ("", Err(host(""))),
            ("localhost:7000?", Err(Forbidden::Malformed("Host"))),
            ("localhost:7000#x", Err(Forbidden::Malformed("Host"))),
            ("evil@localhost:7000", Err(Forbidden::Malformed("Host"))),
            ("localhost:7000\\x", Err(Forbidden::Malformed("Host"))),
            ("localhost:7000/x", Err(Forbidden::Malformed("Host"))),
            ("localhost :7000", Err(Forbidden::Malformed("Host"))),
            ("localhost:7000\u{e9}", Err(Forbidden::Malformed("Host"))),
        ] {
            assert_eq!(check(&guard, &[("host", text)]), expected, "{text}");
        }
        assert_eq!(check(&guard, &[]), Err(Forbidden::HostMissing));
        let twice = [("host", "localhost:7000"), ("host", "localhost:7000")];
        assert_eq!(check(&guard, &twice), Err(Forbidden::Repeated("Host")));
    }

    #[test]
    fn only_listed_origins_pass() {
        let guard = guard();
        let origin = |text: &str| Err(Forbidden::Origin(text.to_owned()));
        for (text, expected) in [
            ("http://localhost:7000", Ok(())),
            ("HTTP://LocalHost:7000", Ok(())),
            ("http://127.0.0.1:7000", Ok(())),
            ("http://[::1]:7000", Ok(())),
            ("https://gate.example", Ok(())),
            ("http://gate.example", origin("http://gate.example")),
            ("https://localhost:7000", origin("https://localhost:7000")),
            ("http://localhost", origin("http://localhost")),
            ("http://localhost:7000.evil.example", origin("http://localhost:7000.evil.example")),
            ("http://localhost:7000/", origin("http://localhost:7000/")),
            ("http://evil.example", origin("http://evil.example")),
            ("null", origin("null")),
            ("NULL", origin("null")),
            ("", origin("")),
        ] {
            let headers = [("host", "localhost:7000"), ("origin", text)];
            assert_eq!(check(&guard, &headers), expected, "{text}");
        }
        let twice = [
            ("host", "localhost:7000"),
            ("origin", "http://localhost:7000"),
            ("origin", "http://localhost:7000"),
        ];
        assert_eq!(check(&guard, &twice), Err(Forbidden::Repeated("Origin")));
    }

    #[test]
    fn a_target_and_a_token_are_unambiguous() {
        let guard = guard();
        let target = |text: &'static str| {
            let headers =
                HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost:7000"))]);
            guard.check(&Uri::from_static(text), &headers)
        };
        assert_eq!(target("http://LocalHost:7000/mcp"), Ok(()));
        for other in ["http://127.0.0.1:7000/mcp", "http://x@localhost:7000/", "http://evil/"] {
            assert_eq!(target(other), Err(Forbidden::Target), "{other}");
        }
        let twice = [
            ("host", "localhost:7000"),
            ("authorization", "Bearer a"),
            ("authorization", "Bearer a"),
        ];
        assert_eq!(check(&guard, &twice), Err(Forbidden::Repeated("Authorization")));
    }

    #[test]
    fn a_socket_accepts_only_localhost_and_no_origin() {
        let guard = Guard::local();
        assert_eq!(check(&guard, &[("host", "localhost")]), Ok(()));
        assert!(check(&guard, &[("host", "localhost:80")]).is_err());
        assert!(check(&guard, &[("host", "localhost"), ("origin", "http://localhost")]).is_err());
    }
}
