//! Authentication of requests from a signed-in page: an address that serves the page, the cookie of
//! its port, the tab's token in a header, and the page's own origin for any request that may change
//! something.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, header};
use axum::response::Response;
use domain::{Code, Refusal};
use futures_util::StreamExt;
use jiff::Timestamp;

use super::session::{OpenSession, PageSessions, SESSION_LIFETIME};
use crate::Admin;

/// The header in which the page sends its token.
pub(crate) const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-countersign-session");

/// The cookie's path: only the API needs it.
const COOKIE_PATH: &str = "/api/v1";

/// Returns the session that a request belongs to. A request with a key or an agent's token is not
/// the page's, and is judged by that credential.
pub(crate) fn admit(
    sessions: &PageSessions,
    request: &Request,
) -> Result<Option<OpenSession>, Refusal> {
    let headers = request.headers();
    if !sessions.address().serves_page(host(headers)) {
        return Ok(None);
    }
    let token = headers.get(&TOKEN_HEADER).and_then(|token| token.to_str().ok());
    let opened = match (cookie(headers), token, headers.get(header::AUTHORIZATION)) {
        (Some(cookie), Some(token), None) => sessions.find(cookie, token, Timestamp::now()),
        _ => None,
    };
    let only_reads = matches!(*request.method(), Method::GET | Method::HEAD);
    match opened {
        Some(_) if !only_reads && !is_own(headers) => Err(foreign()),
        opened => Ok(opened),
    }
}

/// Reports whether a request was sent to an address that serves the page.
pub(crate) fn is_at_the_page(admin: &Admin, headers: &HeaderMap) -> bool {
    admin.sessions.address().serves_page(host(headers))
}

fn host(headers: &HeaderMap) -> &str {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

/// Reports whether the request comes from a page of this same address.
pub(crate) fn is_own(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    let (Some(host), Some(origin)) = (text(header::HOST), text(header::ORIGIN)) else {
        return false;
    };
    // The guard checks the scheme; a proxy may serve https for this listener.
    origin.split_once("://").is_some_and(|(_, name)| name.eq_ignore_ascii_case(host))
}

pub(crate) fn foreign() -> Refusal {
    let message = "only the page itself may send this: the Origin header must be its own address";
    Refusal::new(Code::Forbidden, message)
}

/// Returns the cookie of this port: a browser keeps those of all ports in one place.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let name = cookie_name(headers);
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';'));
    pairs.find_map(|pair| pair.trim().split_once('=').filter(|(key, _)| *key == name)).map(|p| p.1)
}

pub(crate) fn set_cookie(headers: &HeaderMap, value: &str) -> String {
    let name = cookie_name(headers);
    let seconds = SESSION_LIFETIME.as_secs();
    // The guard has checked the origin, so it says how the page was reached.
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let is_https = origin.is_some_and(|origin| origin.starts_with("https://"));
    let secure = if is_https { "; Secure" } else { "" };
    format!(
        "{name}={value}; Path={COOKIE_PATH}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    )
}

fn cookie_name(headers: &HeaderMap) -> String {
    let port = host(headers).rsplit_once(':').map(|(_, port)| port);
    let port = port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    format!("countersign-{}", port.unwrap_or("default"))
}

impl OpenSession {
    /// Ends a streamed response with the session that opened it.
    pub(crate) fn bound(self, response: Response) -> Response {
        let kind = response.headers().get(header::CONTENT_TYPE);
        if kind.is_none_or(|kind| kind != "text/event-stream") {
            return response;
        }
        let left = self.until.duration_since(Timestamp::now());
        let left = std::time::Duration::try_from(left).unwrap_or_default();
        let over = Box::pin(async move {
            let _ = tokio::time::timeout(left, self.ended.cancelled()).await;
        });
        response.map(|body| Body::from_stream(body.into_data_stream().take_until(over)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn the_session_cookie_is_specific_to_the_port() {
        for (host, cookies, expected) in [
            ("127.0.0.1:7420", "countersign-7420=a", Some("a")),
            ("127.0.0.1:7420", "x=y; countersign-7420=a; countersign-7421=b", Some("a")),
            ("[::1]:7420", "countersign-7420=a", Some("a")),
            ("gate.example", "countersign-default=a", Some("a")),
            ("[::1]", "countersign-default=a", Some("a")),
            ("127.0.0.1:7420", "countersign-7421=a", None),
            ("127.0.0.1:7420", "xcountersign-7420=a", None),
            ("127.0.0.1:7420", "", None),
        ] {
            let headers = headers(&[(header::HOST, host), (header::COOKIE, cookies)]);
            assert_eq!(cookie(&headers), expected, "{host} {cookies}");
        }
    }

    #[test]
    fn a_cookie_of_an_https_page_is_secure() {
        for (origin, secure) in [("http://127.0.0.1:7420", false), ("https://gate.example", true)] {
            let headers = headers(&[(header::ORIGIN, origin)]);
            assert_eq!(set_cookie(&headers, "a").ends_with("; Secure"), secure, "{origin}");
        }
    }

    #[test]
    fn an_origin_is_ours_when_it_names_our_address() {
        for (host, origin, expected) in [
            ("127.0.0.1:7420", "http://127.0.0.1:7420", true),
            ("gate.example", "https://gate.example", true),
            ("127.0.0.1:7420", "http://localhost:7420", false),
            ("127.0.0.1:7420", "http://127.0.0.1:7421", false),
            ("127.0.0.1:7420", "null", false),
        ] {
            let headers = headers(&[(header::HOST, host), (header::ORIGIN, origin)]);
            assert_eq!(is_own(&headers), expected, "{host} {origin}");
        }
        assert!(!is_own(&headers(&[(header::HOST, "127.0.0.1:7420")])), "it must be there");
    }
}
