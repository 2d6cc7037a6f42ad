//! A scripted MCP server on stdio, for the tests: `scripted_upstream TOOLS.json [live]`. A live one
//! reads its file again with every request. Further arguments are ignored.

use std::path::Path;

use testkit::script::Script;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("usage: scripted_upstream TOOLS.json [live]");
    let script = if args.next().is_some_and(|word| word == "live") {
        Script::live(Path::new(&path))
    } else {
        let text = std::fs::read_to_string(path).expect("the tools file can be read");
        Script::new(serde_json::from_str(&text).expect("the tools file is JSON"))
    };
    script.serve_stdio().await;
}
