//! The tools of a step as a scripted MCP server on stdio, for the tests: `step_server TOOLS.json`.

use testkit::script::Script;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let path = std::env::args().nth(1).expect("usage: step_server TOOLS.json");
    let text = std::fs::read_to_string(path).expect("the tools file can be read");
    Script::new(serde_json::from_str(&text).expect("the tools file is JSON")).serve_stdio().await;
}
