//! The HTTP edge: the requests it admits, and the responses to those it refuses.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::gate::{Gate, http_client, rest};

fn initialize() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
    .to_string()
}

struct Post<'a> {
    gate: &'a Gate,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Post<'_> {
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    fn without(mut self, name: &'static str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    async fn send(self) -> (u16, Value) {
        let mut request = http_client().post(format!("http://{}/mcp", self.gate.address));
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let response = request.body(self.body).send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }
}

fn post(gate: &Gate) -> Post<'_> {
    let headers = vec![
        ("authorization", format!("Bearer {}", gate.secret("agent-token"))),
        ("content-type", "application/json".to_owned()),
        ("accept", "application/json, text/event-stream".to_owned()),
    ];
    Post { gate, headers, body: initialize() }
}

#[tokio::test]
async fn a_token_is_always_needed() {
    let gate = Gate::scripted(json!([])).await;
    assert_eq!(post(&gate).send().await.0, 200);
    for wrong in ["Bearer wrong", "Basic x", "Bearer ", "cst_"] {
        let (status, body) = post(&gate).with("authorization", wrong).send().await;
        assert_eq!(
            (status, body["error"]["code"].as_str()),
            (401, Some("UNAUTHORIZED")),
            "{wrong}"
        );
    }
    let (status, body) = post(&gate).without("authorization").send().await;
    assert_eq!((status, body["error"]["code"].as_str()), (401, Some("UNAUTHORIZED")));
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused_everywhere() {
    let gate = Gate::scripted(json!([])).await;
    for (name, value) in [
        ("host", "evil.example"),
        ("host", "evil.example:7420"),
        ("host", "localhost"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost:1"),
    ] {
        let (status, body) = post(&gate).with(name, value).send().await;
        assert_eq!(
            (status, body["error"]["code"].as_str()),
            (403, Some("FORBIDDEN")),
            "{name}: {value}"
        );
        let key = gate.secret("api-key");
        let request = http_client().get(format!("http://{}/api/v1/status", gate.address));
        let response = request.bearer_auth(key).header(name, value).send().await.unwrap();
        assert_eq!(response.status(), 403, "{name}: {value}");
    }
    let own = format!("http://{}", gate.address);
    assert_eq!(post(&gate).with("origin", &own).send().await.0, 200);
}

/// Every refusal has the one shape and names its request.
#[tokio::test]
async fn refusals_name_their_request() {
    let gate = Gate::scripted(json!([])).await;
    let (agent, admin) = (gate.secret("agent-token"), gate.secret("api-key"));
    let scoped = json!({"name": "narrow", "operations": ["read"]});
    let (_, made) = gate.rest(Method::POST, "/api/v1/tokens", Some(scoped)).await;
    let narrow = made["token"].as_str().unwrap();
    for (method, path, token, header, status, code) in [
        (Method::GET, "/healthz", "", Some(("host", "evil.example")), 403, "FORBIDDEN"),
        (Method::GET, "/api/v1/status", &*admin, Some(("origin", "null")), 403, "FORBIDDEN"),
        (Method::POST, "/mcp", &*agent, Some(("origin", "http://evil.example")), 403, "FORBIDDEN"),
        (Method::POST, "/mcp", "wrong", None, 401, "UNAUTHORIZED"),
        (Method::GET, "/mcp/all", "wrong", None, 401, "UNAUTHORIZED"),
        (Method::POST, "/mcp/all", narrow, None, 403, "NOT_PERMITTED"),
        (Method::POST, "/mcp/s/nothing", &*agent, None, 404, "NOT_FOUND"),
        (Method::POST, "/mcp/p/nothing", &*agent, None, 404, "NOT_FOUND"),
        (Method::GET, "/nothing", "", None, 404, "NOT_FOUND"),
        (Method::POST, "/healthz", "", None, 405, "METHOD_NOT_ALLOWED"),
        (Method::POST, "/api/v1/tools/call", &*admin, None, 415, "UNSUPPORTED_MEDIA_TYPE"),
    ] {
        let what = format!("{method} {path}");
        for given in [None, Some("mine-7")] {
            let url = format!("http://{}{path}", gate.address);
            let mut request = http_client().request(method.clone(), url).bearer_auth(token);
            for (name, value) in header.into_iter().chain(given.map(|id| ("x-request-id", id))) {
                request = request.header(name, value);
            }
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), status, "{what}");
            let named = response.headers()["x-request-id"].to_str().unwrap().to_owned();
            let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert_eq!(body["error"]["code"], code, "{what}");
            assert!(body["error"]["message"].is_string(), "{what}: {body}");
            assert_eq!(body["request_id"], named, "{what}");
            assert!(given.is_none_or(|id| id == named), "{what}: {named}");
        }
    }
    // MCP endpoints respond as MCP requires, and name the request in a header.
    for (method, kind, status) in
        [(Method::POST, "text/plain", 415), (Method::PUT, "application/json", 405)]
    {
        let request = http_client().request(method, format!("http://{}/mcp", gate.address));
        let request = request.bearer_auth(&agent).header("x-request-id", "mine-8");
        let response = request.header("content-type", kind).body("{}").send().await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()["x-request-id"], "mine-8");
        let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(body["jsonrpc"], "2.0", "{body}");
    }
}

#[tokio::test]
async fn smoke_an_agents_token_never_opens_an_admin_route() {
    let gate = Gate::scripted(json!([])).await;
    let agent = gate.secret("agent-token");
    let admin = gate.secret("api-key");
    for path in [
        "/api/v1/status",
        "/api/v1/servers",
        "/api/v1/servers/s",
        "/api/v1/tools",
        "/api/v1/tools/s/t",
        "/api/v1/nothing",
    ] {
        let (status, body) = rest(&gate.address, &agent, Method::GET, path, None).await;
        assert_eq!((status, body["error"]["code"].as_str()), (403, Some("FORBIDDEN")), "{path}");
        assert!(body["request_id"].is_string(), "{path}");
        let (status, body) = rest(&gate.address, "wrong", Method::GET, path, None).await;
        assert_eq!((status, body["error"]["code"].as_str()), (401, Some("UNAUTHORIZED")), "{path}");
    }
    let call = json!({"tool_variant": "call_tool_read", "name": "s:t"});
    assert_eq!(
        rest(&gate.address, &agent, Method::POST, "/api/v1/tools/call", Some(call)).await.0,
        403
    );
    assert_eq!(rest(&gate.address, &admin, Method::GET, "/api/v1/status", None).await.0, 200);
}

#[tokio::test]
async fn the_rest_api_shows_what_agents_see_and_calls_the_same_way() {
    let tools = json!([
        {"name": "a", "description": "Alpha", "x-extra": 1E2, "annotations": {"readOnlyHint": true}},
        {"name": "b", "description": "Beta", "annotations": {"destructiveHint": true}},
    ]);
    let gate = Gate::scripted(tools).await;
    gate.http().await.document("retrieve_tools", json!({"query": "alpha"})).await;
    let get = async |path: &str| gate.rest(Method::GET, path, None).await;
    let (_, status) = get("/api/v1/status").await;
    assert_eq!(status["upstreams"], json!({"ready": 1}));
    assert_eq!(status["tools"], json!({"callable": 2}));
    assert_eq!(get("/api/v1/servers").await.1["servers"][0]["name"], "s");
    assert_eq!(get("/api/v1/servers/s").await.1["tool_count"], 2);
    assert_eq!(get("/api/v1/tools").await.1["total"], 2);
    assert_eq!(get("/api/v1/tools?q=beta").await.1["tools"][0]["name"], "s:b");
    assert_eq!(get("/api/v1/tools/s/a").await.1["definition"]["x-extra"], 100.0);
    for (path, expected, code) in [
        ("/api/v1/servers/x", 404, "NOT_FOUND"),
        ("/api/v1/tools/s/x", 404, "NOT_FOUND"),
        ("/api/v1/tools?status=odd", 400, "INVALID_REQUEST"),
        ("/api/v1/tools?nonsense=1", 400, "INVALID_REQUEST"),
        ("/api/v1/nothing", 404, "NOT_FOUND"),
    ] {
        let (status, body) = get(path).await;
        assert_eq!((status, body["error"]["code"].as_str()), (expected, Some(code)), "{path}");
    }
    assert_eq!(gate.rest(Method::DELETE, "/api/v1/servers", None).await.0, 405);

    let call = async |body: Value| gate.rest(Method::POST, "/api/v1/tools/call", Some(body)).await;
    let good = json!({"tool_variant": "call_tool_read", "name": "s:a", "intent": {"operation_type": "read"}});
    let (status, body) = call(good).await;
    assert_eq!((status, &body["result"]["x-number"]), (200, &json!(100.0)));
    let refused = json!({"tool_variant": "call_tool_read", "name": "s:b", "intent": {"operation_type": "read"}});
    let (status, body) = call(refused).await;
    assert_eq!((status, body["error"]["code"].as_str()), (400, Some("SERVER_MISMATCH")));
    for (body, status, code) in [
        (json!({"name": "s:a"}), 400, "INVALID_REQUEST"),
        (json!({"tool_variant": "call_tool", "name": "s:a"}), 400, "INVALID_REQUEST"),
        (json!([1]), 400, "INVALID_REQUEST"),
        (json!({"tool_variant": "call_tool_read", "name": "s:a"}), 400, "MISSING_INTENT"),
        (
            json!({"tool_variant": "call_tool_read", "name": "s:zz", "intent_operation_type": "read"}),
            404,
            "TOOL_NOT_FOUND",
        ),
    ] {
        let (found, answer) = call(body.clone()).await;
        assert_eq!((found, answer["error"]["code"].as_str()), (status, Some(code)), "{body}");
    }
}

#[tokio::test]
async fn malformed_requests_get_their_status_and_the_gate_goes_on() {
    let gate = Gate::scripted(json!([])).await;
    assert_eq!(post(&gate).with("content-type", "text/plain").send().await.0, 415);
    assert_eq!(post(&gate).with("mcp-session-id", "forged").send().await.0, 404);
    let mut bad = post(&gate);
    bad.body = "{".to_owned();
    let (status, body) = bad.send().await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!(-32700)));
    let mut discover = post(&gate).with("mcp-protocol-version", "2026-07-28");
    discover.body = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}).to_string();
    assert!(discover.send().await.1["error"]["code"].is_i64());
    let mut huge = post(&gate);
    huge.body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}",
        "x".repeat(mcp::limits::FRAME_BYTES_MAX)
    );
    assert_eq!(huge.send().await.0, 413);
    let mut many = http_client().get(format!("http://{}/api/v1/status", gate.address));
    for index in 0..500 {
        many = many.header(format!("x-{index}"), "1");
    }
    assert_eq!(many.send().await.unwrap().status(), 431);
    assert_eq!(post(&gate).send().await.0, 200);
}
