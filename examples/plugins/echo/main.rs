//! The smallest plugin: an operation that gives back what it is given.

use std::process::ExitCode;

use plugin_sdk::{Input, Kind, Operation, Plugin};
use serde_json::json;

fn main() -> ExitCode {
    let echo = Operation::new("echo", "Gives a text back, with a prefix if there is one.")
        .input(Input::new("text", Kind::String, "What to give back.").required())
        .input(Input::new("prefix", Kind::String, "Put before it."))
        .output("text", Kind::String, "The text with its prefix.");
    Plugin::new("echo", "0.1.0")
        .describe("Gives back what it is given")
        .operation(echo, |request| async move {
            let prefix = request.inputs.get("prefix").and_then(|value| value.as_str());
            let text = format!("{}{}", prefix.unwrap_or_default(), request.text("text")?);
            Ok::<_, String>(json!({"text": text}))
        })
        .run()
}
