//! Locks as clients see them on every interface, servers whose list a test replaces, and decisions
//! made in the store of a running gate.

use std::path::Path;

use jiff::Timestamp;
use mcp::http::client::Endpoint;
use mcp::peer::RequestError;
use receipt::Hash;
use serde_json::{Value, json};
use store::Store;
use store::state::{ApprovedServer, ItemVersion, TokenRecord};
use testkit::client::{Client, text};
use testkit::gate::Gate;
use testkit::upstream::scripted;
use testkit::wait::eventually;

/// Opens the store of the gate's home, as another process would.
pub(crate) fn decisions(gate: &Gate) -> Store {
    Store::open(&gate.home(), &domain::config::Ledger::default()).expect("the store opens")
}

/// Returns a scripted server that reads its script again with every request.
pub(crate) fn live(dir: &Path, name: &str, script: &Value) -> Value {
    let mut entry = scripted(dir, name, script);
    entry["args"].as_array_mut().expect("a list").push("live".into());
    entry
}

/// Replaces the script of a live server.
pub(crate) fn replace_script(gate: &Gate, name: &str, script: &Value) {
    let (file, new) = (format!("{name}.tools.json"), format!("{name}.new.json"));
    std::fs::write(gate.dir.path().join(&new), script.to_string()).expect("it can be written");
    std::fs::rename(gate.dir.path().join(new), gate.dir.path().join(file)).expect("it is replaced");
}

/// Approves these tools of a server in their pending version.
pub(crate) fn approve(store: &Store, server: &str, tools: &[&str]) {
    let items = store.state().items(server).unwrap();
    let reviewed: Vec<ItemVersion<'_>> = items
        .iter()
        .filter(|item| item.kind == "tool" && tools.contains(&&*item.name))
        .map(|item| {
            let pending = item.pending.as_ref().unwrap_or_else(|| panic!("{item:?} waits"));
            ItemVersion { kind: "tool", name: &item.name, fingerprint: &pending.fingerprint }
        })
        .collect();
    assert_eq!(reviewed.len(), tools.len(), "{items:?}");
    let answers = store.state().approve_items(server, &reviewed).unwrap();
    assert!(answers.iter().all(|answer| *answer == store::state::ApprovalResult::Approved));
}

/// Returns the identity that an approval of the server is bound to, from its present config entry.
pub(crate) fn identity(entry: &Value) -> String {
    let config = json!({"mcpServers": {"x": entry}}).to_string();
    let parsed = domain::config::parse(&config).unwrap_or_else(|faults| panic!("{faults}"));
    domain::trust::identity(&parsed.config.servers[0]).to_string()
}

/// Approves a server in the version with this identity.
pub(crate) fn approve_server(store: &Store, server: &str, identity: &str) {
    let approved = ApprovedServer { identity, text: "{}", program: None };
    store.state().approve_server(server, approved).unwrap();
}

/// Creates a token with this scope; its secret is its name.
pub(crate) fn make_token(store: &Store, name: &str, scope: &Value) {
    let record = TokenRecord {
        name: name.to_owned(),
        hash: *Hash::of(name.as_bytes()).as_bytes(),
        scope: scope.to_string(),
        created_at: Timestamp::now(),
        expires_at: None,
        revoked_at: None,
    };
    assert!(store.state().create_token(&record).unwrap());
}

/// Connects a client of a view with its own token, once the gate knows it.
pub(crate) async fn client_with(gate: &Gate, secret: &str, view: &str) -> Client {
    let url = format!("http://{}{view}", gate.address);
    let probe = || async {
        let request = testkit::gate::http_client().get(&url).bearer_auth(secret);
        (request.send().await.unwrap().status() != 401).then_some(())
    };
    eventually(probe).await;
    let mut endpoint = Endpoint::new(url.clone());
    let bearer = reqwest::header::HeaderValue::from_str(&format!("Bearer {secret}")).unwrap();
    endpoint.headers.push((reqwest::header::AUTHORIZATION, bearer));
    Client::greet(json!({}), vec![], |service| {
        mcp::http::client::connect(endpoint, service).expect("a plain url")
    })
    .await
}

/// Returns the response to a request, whatever it is, as text.
pub(crate) async fn bytes(client: &Client, method: &str, params: &Value) -> String {
    match client.request_text(method, &params.to_string()).await {
        Ok(answer) => answer,
        Err(RequestError::Refused(error)) => error.text().get().to_owned(),
        Err(other) => panic!("{method} {params}: {other}"),
    }
}

pub(crate) async fn tool_bytes(client: &Client, name: &str, arguments: &Value) -> String {
    bytes(client, "tools/call", &json!({"name": name, "arguments": arguments})).await
}

/// Returns `callable`, the status of the lock, or `unknown`.
pub(crate) async fn lock_on(client: &Client, name: &str, arguments: &Value) -> String {
    let params = json!({"name": name, "arguments": arguments});
    match client.request("tools/call", params).await {
        Err(RequestError::Refused(error)) if error.code == -32602 => "unknown".to_owned(),
        Err(error) => panic!("{name}: {error}"),
        Ok(result) => match testkit::client::refusal(&result)["code"].as_str() {
            None => "callable".to_owned(),
            Some("TOOL_NOT_FOUND") => "unknown".to_owned(),
            Some("TOOL_BLOCKED") => {
                let error = testkit::client::refusal(&result);
                let details = &error["details"];
                let status = details["status"].as_str().unwrap_or_else(|| panic!("{result}"));
                assert!(details["remediation"].is_string(), "{result}");
                let is_own_tool = name.starts_with("call_tool_") || name == "describe_tool";
                let message = error["message"].as_str().unwrap();
                assert_eq!(message.ends_with("include_disabled:true."), is_own_tool, "{result}");
                assert!(text(&result).contains(message), "{result}");
                status.to_owned()
            }
            Some(_) => panic!("{name}: {result}"),
        },
    }
}

/// Returns the names in the response to `tools/list`.
pub(crate) async fn listed(client: &Client) -> Vec<String> {
    let list = client.request("tools/list", json!({})).await.unwrap();
    let names = list["tools"].as_array().unwrap().iter();
    names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns the entry of one server in `upstream_servers`.
pub(crate) async fn entry(client: &Client, server: &str) -> Value {
    let asked = json!({"operation": "get", "name": server});
    client.document("upstream_servers", asked).await["servers"][0].clone()
}

/// Waits until this many tools of the server are pending.
pub(crate) async fn pending(client: &Client, server: &str, count: usize) {
    eventually(|| async {
        let counts = entry(client, server).await["tools"].clone();
        (counts["pending_approval"].as_u64().unwrap_or(0) == count as u64).then_some(())
    })
    .await;
}
