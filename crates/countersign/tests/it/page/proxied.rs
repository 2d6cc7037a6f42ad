//! The page behind a proxy with TLS, at the name that the operator configured.

use reqwest::Method;
use serde_json::json;
use testkit::gate::Gate;

use super::{Session, ask, enter, link};

/// The proxy is played by requests with the headers that it would send.
#[tokio::test]
async fn a_page_behind_a_proxy_is_at_the_configured_name_alone() {
    let config = json!({"behind_proxy": true, "allowed_hosts": ["gate.example", "127.0.0.1"],
        "allowed_origins": ["https://gate.example"]});
    let gate = Gate::start(|_| json!({}), config).await;
    let link = link(&gate).await;
    let code = link.strip_prefix("https://gate.example/#code=").expect(&link);
    let far = ("x-forwarded-for", "203.0.113.7");
    let (name, own) = ("gate.example", "https://gate.example");
    // Control: neither the address behind the proxy nor another origin takes the code.
    for (host, origin) in
        [("127.0.0.1", own), (name, "http://gate.example"), ("other.example", own)]
    {
        assert_eq!(enter(&gate, code, host, origin).await.err(), Some(403), "{host} {origin}");
    }
    let session = enter(&gate, code, name, own).await.ok().unwrap();
    let (cookie, token) = (&*session.cookie, &*session.token);
    let of_page = |host| {
        [("host", host), far, ("origin", own), ("cookie", cookie), ("x-countersign-session", token)]
    };
    for (method, path, expected) in [
        (Method::GET, "/", 200),
        (Method::GET, "/page/app.mjs", 200),
        (Method::GET, "/api/v1/status", 200),
        (Method::POST, "/api/v1/page/codes", 201),
        (Method::DELETE, "/api/v1/page/sessions", 200),
        (Method::GET, "/api/v1/status", 401),
    ] {
        let status = ask(&gate, method.clone(), path, &of_page(name)).await;
        assert_eq!(status, expected, "{method} {path}");
    }
    let again = sign_in_at(&gate, own).await;
    let headers = [("cookie", &*again.cookie), ("x-countersign-session", &*again.token)];
    for (host, expected) in [(name, 200), ("127.0.0.1", 401), ("other.example", 403)] {
        let headers = [&headers[..], &[("host", host), far]].concat();
        assert_eq!(ask(&gate, Method::GET, "/api/v1/status", &headers).await, expected, "{host}");
    }
}

/// Signs in with a fresh link to this origin.
async fn sign_in_at(gate: &Gate, origin: &str) -> Session {
    let link = link(gate).await;
    let (at, code) = link.split_once("/#code=").unwrap();
    assert_eq!(at, origin);
    let host = origin.split_once("://").unwrap().1;
    enter(gate, code, host, origin).await.ok().unwrap()
}
