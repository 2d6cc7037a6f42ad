//! The views that a table of tests runs through, and how a tool of server `s` is called on each.

use mcp::message::raw;
use mcp::peer::Ask;
use serde_json::{Value, json};
use testkit::client::{PATIENCE, two_keys};

/// One server under its own names, all servers, and the gate's own tools.
pub(crate) const VIEWS: [&str; 3] = ["/mcp/s/s", "/mcp/all", "/mcp"];

/// The views that pass on what servers offer.
pub(crate) const PASSING: [&str; 2] = ["/mcp/s/s", "/mcp/all"];

/// Returns the name of a tool or prompt of server `s` on a view that passes it on.
pub(crate) fn name_on(view: &str, name: &str) -> String {
    match view {
        "/mcp/all" => format!("s__{name}"),
        _ => name.to_owned(),
    }
}

/// Returns the params of a call of a tool of server `s`.
pub(crate) fn call_on(view: &str, tool: &str, arguments: Value) -> Value {
    match view {
        "/mcp" => two_keys("write", &format!("s:{tool}"), arguments),
        _ => json!({"name": name_on(view, tool), "arguments": arguments}),
    }
}

/// Returns the request of such a call, for tests that follow it.
pub(crate) fn ask_on(view: &str, tool: &str) -> Ask {
    let params = call_on(view, tool, json!({}));
    Ask::new("tools/call", Some(raw(params.to_string())), PATIENCE)
}
