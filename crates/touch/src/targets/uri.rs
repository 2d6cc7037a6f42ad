//! Normalizes URIs and removes everything before the `@`.

/// Longer text is data. What is left of it without userinfo would not fit a record either.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Normalizes a URI: scheme and host in lowercase; no query, fragment, userinfo, default port or
/// trailing slash. Percent-encoding stays: `a%2Fb` is not `a/b`. Returns `None` if nothing is left,
/// or if the port is not a number (the "host" may then be a user and the "port" the start of a
/// password).
pub(super) fn canonical(text: &str) -> Option<String> {
    let text = text.split(['?', '#']).next().unwrap_or_default().trim();
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let whole = match split(text) {
        Some(parts) => parts.canonical()?,
        None => without_userinfo(text),
    };
    let trimmed = whole.trim_end_matches('/');
    match (trimmed.is_empty(), whole.is_empty()) {
        (false, _) => Some(trimmed.to_owned()),
        (true, false) => Some("/".to_owned()),
        (true, true) => None,
    }
}

/// Returns the text as is, or normalized if it is an address.
pub(super) fn without_credentials(text: &str) -> Option<String> {
    if is_address(text) { canonical(text) } else { Some(text.to_owned()) }
}

pub(super) fn is_address(text: &str) -> bool {
    text.contains("://") || text.starts_with("//")
}

struct Parts<'a> {
    scheme: String,
    host: &'a str,
    path: &'a str,
}

/// Returns the scheme, host (with port) and path; `None` if either of the first two is missing.
fn split(text: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = text.split_once("://")?;
    let letter_first = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    let rest_plain =
        scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !letter_first || !rest_plain {
        return None;
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let named = !host.is_empty() && !host.starts_with(':');
    named.then(|| Parts { scheme: scheme.to_ascii_lowercase(), host, path })
}

impl Parts<'_> {
    fn canonical(&self) -> Option<String> {
        let (name, port) = split_port(self.host);
        if !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let name = name.to_ascii_lowercase();
        let path = without_userinfo(self.path);
        let default = port.is_empty() || default_port(&self.scheme) == port.parse().ok();
        let port = if default { String::new() } else { format!(":{port}") };
        Some(format!("{}://{name}{port}{path}", self.scheme))
    }
}

/// Splits off the port. Colons inside `[…]` belong to the address.
fn split_port(host: &str) -> (&str, &str) {
    let name_end = if host.starts_with('[') { host.find(']').map_or(0, |end| end + 1) } else { 0 };
    match host[name_end..].find(':') {
        Some(colon) => (&host[..name_end + colon], &host[name_end + colon + 1..]),
        None => (host, ""),
    }
}

fn default_port(scheme: &str) -> Option<u32> {
    match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        "ftp" => Some(21),
        _ => None,
    }
}

/// Removes everything before the last `@` wherever a lenient parser might find an authority:
/// `//u:p@h`, `u:p@h/x`, `https:/u:p@h`. A part that becomes empty makes the next one follow `//`,
/// so the parts are judged by what is left.
fn without_userinfo(text: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        let authority = match parts.as_slice() {
            [] => part.rfind('@').is_some_and(|at| at > 0),
            [first] => first.ends_with(':'),
            [_, .., last] => last.is_empty(),
        };
        let at = part.rfind('@').filter(|_| authority);
        parts.push(at.map_or(part, |at| &part[at + 1..]));
    }
    parts.join("/")
}
