//! A scripted MCP server on stdio, for the tests: `scripted_upstream TOOLS.json`.

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let path = std::env::args().nth(1).expect("usage: scripted_upstream TOOLS.json");
    let text = std::fs::read_to_string(path).expect("the tools file can be read");
    let tools = serde_json::from_str(&text).expect("the tools file is JSON");
    testkit::script::Script::new(tools).serve_stdio().await;
}
