//! Access to every route of the API, requested by every kind of caller, over both listeners. The
//! list of routes is the one that the router is built from.

use admin::routes::{Route, RouteAccess};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use testkit::gate::{Gate, http_client};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

#[derive(Clone, Copy, Debug)]
enum Door {
    Http,
    Socket,
}

/// Returns a path; parts in braces name missing items, so that nothing important is changed.
fn path(route: &Route) -> String {
    let parts = route.path.split('/');
    let parts = parts.map(|part| if part.starts_with('{') { "nothing-of-that-name" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Returns the status of the response, whose body may be endless.
async fn ask(gate: &Gate, door: Door, method: &str, path: &str, token: Option<&str>) -> u16 {
    match door {
        Door::Http => {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let url = format!("http://{}{path}", gate.address);
            let mut request = http_client().request(method, url);
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            request.send().await.unwrap().status().as_u16()
        }
        Door::Socket => {
            let stream = UnixStream::connect(gate.home().join("control.sock")).await.unwrap();
            let mut stream = BufReader::new(stream);
            let bearer = token.map(|token| format!("authorization: Bearer {token}\r\n"));
            let head = format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n{}\r\n",
                bearer.unwrap_or_default()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            line.split(' ').nth(1).unwrap().parse().unwrap()
        }
    }
}

/// Reports whether the admin key may get this status from a gate without such a server, tool or
/// record.
fn suits_admin(route: &Route, status: u16) -> bool {
    match (route.method, route.path.contains('{')) {
        ("GET" | "DELETE", false) => status == 200,
        // Either it does not exist, or the name is not valid.
        ("GET" | "DELETE", _) => matches!(status, 400 | 404),
        // A required body is missing, and with it its content type.
        _ => matches!(status, 200 | 201 | 400 | 404 | 409 | 415),
    }
}

#[tokio::test]
async fn every_route_enforces_its_access_rule() {
    let gate = Gate::scripted(json!([{"name": "t"}])).await;
    gate.ready("s").await;
    let scoped = json!({"name": "scoped", "servers": ["s"], "operations": ["read"]});
    let (status, made) = gate.rest(Method::POST, "/api/v1/tokens", Some(scoped)).await;
    assert_eq!(status, 201, "{made}");
    let (admin, agent) = (gate.secret("api-key"), gate.secret("agent-token"));
    let callers = [
        ("nobody", None, 401),
        ("a bad token", Some("cst_bad"), 401),
        ("an empty token", Some(""), 401),
        ("an agent", Some(&*agent), 403),
        ("a scoped agent", made["token"].as_str(), 403),
        ("the admin", Some(&*admin), 0),
    ];
    let routes: Vec<&Route> = admin::routes::all().collect();
    assert!(routes.len() >= 49, "the list is the whole list");
    for route in routes {
        // Together, since the answers to wrong tokens are late.
        let asking = [Door::Http, Door::Socket].map(async |door| {
            let path = path(route);
            let asking = callers.map(async |(who, token, refused)| {
                (who, refused, ask(&gate, door, route.method, &path, token).await)
            });
            (door, join_all(asking).await)
        });
        for (door, answers) in join_all(asking).await {
            for (who, refused, status) in answers {
                let suits = match (route.access, refused) {
                    // A missing file of the page.
                    (RouteAccess::Anyone, _) if route.path.contains('{') => status == 404,
                    (RouteAccess::Anyone, _) => status == 200,
                    // Only the page can sign in.
                    (RouteAccess::Code, _) => status == 403,
                    (RouteAccess::Admin, 0) => suits_admin(route, status),
                    (RouteAccess::Admin, refused) => status == refused,
                };
                assert!(suits, "{} {} by {who} over {door:?}: {status}", route.method, route.path);
            }
        }
    }
}

#[tokio::test]
async fn smoke_unknown_routes_reveal_nothing_to_callers_without_access() {
    let gate = Gate::scripted(json!([])).await;
    let agent = gate.secret("agent-token");
    for (token, expected) in [(None, 401), (Some(&*agent), 403), (Some("bad"), 401)] {
        for method in ["GET", "POST", "DELETE"] {
            for door in [Door::Http, Door::Socket] {
                let status = ask(&gate, door, method, "/api/v1/made-up", token).await;
                assert_eq!(status, expected, "{method} {token:?}");
            }
        }
    }
}

#[test]
fn every_route_is_documented() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rest.md");
    let text = std::fs::read_to_string(file).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    for route in admin::routes::all() {
        let (folder, last) = route.path.rsplit_once('/').unwrap();
        let is_told = rows.iter().any(|row| {
            let column = row.split('|').nth(1).unwrap();
            let whole = format!("`{} {}`", route.method, route.path);
            // Rows may join routes: `POST …/enable`, `/disable`.
            let joined = column.contains(&format!("`/{last}`"))
                && column.contains(&format!("`{} {folder}/", route.method));
            column.contains(&whole) || joined
        });
        assert!(is_told, "{} {} is not in docs/rest.md", route.method, route.path);
    }
}
