//! An invalid request to the REST API gets a clear refusal, and affects nothing else.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::PATIENCE;
use testkit::gate::{Gate, http_client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn gate() -> Gate {
    let gate = Gate::scripted(json!([{"name": "t", "annotations": {"readOnlyHint": true}}])).await;
    gate.ready("s").await;
    gate
}

/// Sends one request exactly as written, without a client that would normalize it.
async fn raw(gate: &Gate, method: &str, path: &str, rest: &[u8]) -> (u16, Value) {
    let mut stream = TcpStream::connect(&gate.address).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nconnection: close\r\n",
        gate.address,
        gate.secret("api-key")
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(rest).await.unwrap();
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    tokio::time::timeout(PATIENCE, reading).await.expect("it is answered").unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).unwrap_or_else(|| panic!("no status: {answer}"));
    (status.parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
}

fn assert_refused(what: &str, (status, answer): &(u16, Value), expected: u16, words: &str) {
    assert_eq!(*status, expected, "{what}: {answer}");
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{what}: {answer}"));
    assert!(message.contains(words), "{what}: {message}");
    assert!(answer["request_id"].is_string(), "{what}: {answer}");
}

#[tokio::test]
async fn smoke_errors_name_the_invalid_parameter() {
    let gate = gate().await;
    let between = |max: usize| format!("limit must be between 1 and {max}");
    let (to_100, to_1000) = (between(100), between(1000));
    for (path, words) in [
        ("/activity?cursor=x", "'x' is not a cursor of this list"),
        ("/activity?cursor=", "is not a cursor of this list"),
        ("/activity?cursor=r1", "'r1' is not a cursor of this list"),
        ("/activity?cursor=a-1", "is not a cursor of this list"),
        ("/activity?cursor=a0", "is not a cursor of this list"),
        ("/activity?cursor=afffffffffffffffff", "is not a cursor of this list"),
        ("/receipts?cursor=a1", "is not a cursor of this list"),
        ("/receipts?chain=x&cursor=r1", "is not a cursor of this list"),
        ("/activity?start_time=yesterday", "start_time must be a time such as"),
        ("/activity?end_time=2026-13-01T00:00:00Z", "end_time must be a time such as"),
        ("/activity?start_time=", "start_time must be a time such as"),
        ("/activity?start_time=2026-01-01", "start_time must be a time such as"),
        ("/activity?start_time=99999-01-01T00:00:00Z", "start_time must be a time such as"),
        ("/contention?end_time=1", "end_time must be a time such as"),
        ("/activity?limit=0", &to_100),
        ("/activity?limit=101", &to_100),
        ("/activity?limit=-1", "limit must be a whole number, got"),
        ("/activity?limit=many", "limit must be a whole number, got"),
        ("/activity?limit=99999999999999999999999", "limit must be a whole number, got '999"),
        ("/activity?limit=1&limit=2", "duplicate parameter 'limit'"),
        ("/receipts?limit=0", &to_100),
        ("/tools?q=x&limit=0", &to_100),
        ("/tools?limit=101", &to_100),
        ("/servers/s/logs?limit=0", &to_1000),
        ("/servers/s/logs?limit=1001", &to_1000),
        ("/activity?status=odd", "status must be one of pending, success"),
        ("/activity?type=call", "type must be one of tool_call"),
        ("/activity?effective_class=READ", "must be one of read, write, destructive"),
        ("/activity?access=odd", "access must be one of read, write, delete, unknown"),
        ("/activity?under=", "under must name a resource"),
        ("/activity?containers=maybe", "containers must be true or false, got 'maybe'"),
        ("/receipts?status=blocked", "status must be one of success, failure, pending"),
        ("/activity/summary?period=1y", "period must be one of 1h, 24h, 7d, 30d"),
        ("/contention?window=0s", "window must be a duration such as"),
        ("/contention?window=1w", "window must be a duration such as"),
        ("/contention?window=-1h", "window must be a duration such as"),
        ("/contention?kind=odd", "kind must be one of stale-read"),
        ("/activity/export?format=xml", "format must be one of jsonl, csv"),
        ("/servers/s/items?pending=maybe", "pending must be true or false, got 'maybe'"),
        ("/tools/s/t?kind=toll", "kind must be one of tool, instructions"),
    ] {
        let answer = gate.rest(Method::GET, &format!("/api/v1{path}"), None).await;
        assert_refused(path, &answer, 400, words);
        assert_eq!(answer.1["error"]["code"], "INVALID_REQUEST", "{path}");
    }
}

#[tokio::test]
async fn parameters_that_a_route_does_not_know_are_refused_everywhere() {
    let gate = gate().await;
    for (method, path, words) in [
        ("GET", "/status?verbose=1", "unknown parameter 'verbose': this route takes none"),
        ("GET", "/activity?servr=s", "unknown parameter 'servr'; did you mean 'server'?"),
        ("GET", "/activity?format=csv", "unknown parameter 'format'"),
        ("GET", "/activity/export?limit=5", "unknown parameter 'limit'"),
        ("GET", "/activity/summary?periode=1h", "did you mean 'period'?"),
        ("GET", "/receipts/export?chian=x", "did you mean 'chain'?"),
        ("GET", "/servers?x=1", "this route takes none"),
        ("GET", "/keys?%00=1", "this route takes none"),
        ("POST", "/servers/s/restart?now=1", "this route takes none"),
        ("POST", "/servers/s/approve?inspekt=true", "did you mean 'inspect'?"),
        ("DELETE", "/servers/s?force=true", "this route takes none"),
    ] {
        let answer = raw(&gate, method, &format!("/api/v1{path}"), b"\r\n").await;
        assert_refused(path, &answer, 400, words);
    }
    let (status, _) = raw(&gate, "GET", "/api/v1/status?", b"\r\n").await;
    assert_eq!(status, 200, "an empty query says nothing");
}

#[tokio::test]
async fn names_in_paths_are_names_and_nothing_more() {
    let gate = gate().await;
    let long = "x".repeat(5_000);
    let names = [
        ".",
        "..",
        "%2e%2e",
        "..%2F..%2Fapi-key",
        "%2F",
        "%5C",
        "%00",
        "s%00",
        "%FF",
        "%ZZ",
        "s%0A",
        "%E2%80%AE",
        "s;x",
        "*",
        "'%20OR%201=1--",
        &long,
    ];
    let routes = admin::routes::all().filter(|route| route.path.contains('{'));
    for route in routes {
        for name in names {
            let parts = route.path.split('/');
            let parts = parts.map(|part| if part.starts_with('{') { name } else { part });
            let path = parts.collect::<Vec<_>>().join("/");
            let (status, answer) = raw(&gate, route.method, &path, b"\r\n").await;
            let what = format!("{} {path}: {answer}", route.method);
            assert!(matches!(status, 400 | 404), "{status} {what}");
            assert!(answer["error"]["code"].is_string(), "{what}");
        }
    }
    let (_, list) = gate.rest(Method::GET, "/api/v1/activity?type=server_change", None).await;
    assert_eq!(list["total"], 0, "nothing was decided: {list}");
    gate.ready("s").await;
}

#[tokio::test]
async fn unknown_routes_get_404_and_unknown_methods_405() {
    let gate = gate().await;
    for path in [
        "/api/v1",
        "/api/v1/",
        "/api/v2/status",
        "/api/v1/status/",
        "/api/v1//status",
        "/api/v1/servers/",
        "/api/v1/servers/s/",
        "/api/v1/../../etc/passwd",
        "/API/V1/status",
        "/api/v1/tools/s/t/u/v",
        "//api/v1/status",
    ] {
        let (status, answer) = raw(&gate, "GET", path, b"\r\n").await;
        assert_eq!(
            (status, &answer["error"]["code"]),
            (404, &json!("NOT_FOUND")),
            "{path}: {answer}"
        );
    }
    for method in ["PUT", "PATCH", "OPTIONS", "TRACE", "DELETE", "BREW"] {
        let answer = raw(&gate, method, "/api/v1/activity", b"\r\n").await;
        assert_refused(method, &answer, 405, "is not allowed on /api/v1/activity");
    }
}

#[tokio::test]
async fn bodies_that_are_too_large_or_of_another_kind_are_refused() {
    let gate = gate().await;
    let send = async |path: &str, kind: Option<&str>, body: Vec<u8>| {
        let url = format!("http://{}/api/v1{path}", gate.address);
        let mut request = http_client().post(url).bearer_auth(gate.secret("api-key")).body(body);
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
    };
    let json = Some("application/json");
    let paths = [
        "/servers",
        "/tokens",
        "/tools/call",
        "/servers/s/approve",
        "/servers/s/approve-items",
        "/tools/s/t/approve",
    ];
    for path in paths {
        let limit = match path {
            "/tools/call" => mcp::limits::FRAME_BYTES_MAX,
            "/servers" | "/tokens" => 256 * 1024,
            _ => 4 * 1024 * 1024,
        };
        let huge = format!(r#"{{"name":"{}"}}"#, "x".repeat(limit));
        assert_refused(path, &send(path, json, huge.into_bytes()).await, 413, "the body exceeds");
        for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
            let answer = send(path, kind, b"{}".to_vec()).await;
            assert_refused(path, &answer, 415, "send 'Content-Type: application/json'");
            assert_eq!(answer.1["error"]["code"], "UNSUPPORTED_MEDIA_TYPE", "{path}");
        }
        let encoded = b"content-type: application/json\r\ncontent-encoding: gzip\r\n\
                        content-length: 2\r\n\r\n{}";
        let answer = raw(&gate, "POST", &format!("/api/v1{path}"), encoded).await;
        assert_refused(path, &answer, 415, "without a Content-Encoding");
        for (body, words) in [
            (&b"\xff\xfe"[..], "not UTF-8"),
            (b"{", "not valid JSON"),
            (b"[]", "must be a JSON object"),
            (br#"{"a": 1, "a": 2}"#, "duplicate key 'a'"),
        ] {
            assert_refused(path, &send(path, json, body.to_vec()).await, 400, words);
        }
        let deep = "[".repeat(100_000);
        let answer = send(path, json, format!(r#"{{"a": {deep}"#).into_bytes()).await;
        assert_refused(path, &answer, 400, "not valid JSON");
        let kind = Some("Application/JSON; charset=utf-8");
        let (status, answer) = send(path, kind, br#"{"nonsense": 1}"#.to_vec()).await;
        assert_eq!(status, 400, "{path}: {answer}");
    }
    gate.ready("s").await;
}

/// A page of another site can neither send nor read: it is refused, and no response allows its
/// origin.
#[tokio::test]
async fn requests_from_other_origins_are_rejected() {
    let gate = gate().await;
    let own = format!("http://{}", gate.address);
    for (origin, method, status) in [
        ("https://evil.example", Method::OPTIONS, 403),
        ("https://evil.example", Method::GET, 403),
        (own.as_str(), Method::OPTIONS, 405),
        (own.as_str(), Method::GET, 200),
    ] {
        let answer = http_client()
            .request(method.clone(), format!("{own}/api/v1/status"))
            .bearer_auth(gate.secret("api-key"))
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), status, "{method} from {origin}");
        let invites = |name: &str| name.starts_with("access-control-");
        assert!(!answer.headers().keys().any(|name| invites(name.as_str())), "{answer:?}");
    }
}
