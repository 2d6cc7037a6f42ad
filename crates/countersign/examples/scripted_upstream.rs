//! A scripted MCP server on stdio, for the tests: `scripted_upstream TOOLS.json [live]`. A live one
//! reads its file again with every request.

use std::path::Path;

use testkit::script::Script;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let script = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [path] => {
            let text = std::fs::read_to_string(path).expect("the tools file can be read");
            Script::new(serde_json::from_str(&text).expect("the tools file is JSON"))
        }
        [path, "live"] => Script::live(Path::new(path)),
        _ => panic!("usage: scripted_upstream TOOLS.json [live]"),
    };
    script.serve_stdio().await;
}
