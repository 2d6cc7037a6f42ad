//! A plugin for tests. `SCRIPTED_PLUGIN` holds its name and then its operations: `fail` fails,
//! `die` ends the process, `hang` never responds, and any other returns its input.

use std::process::ExitCode;
use std::time::Duration;

use plugin_sdk::{Input, Kind, Operation, Plugin};
use serde_json::json;

fn main() -> ExitCode {
    let script = std::env::var("SCRIPTED_PLUGIN").unwrap_or_default();
    let mut words = script.split_whitespace();
    let mut plugin = Plugin::new(words.next().unwrap_or_default(), "1.0.0");
    for name in words.map(str::to_owned) {
        let operation = Operation::new(&name, "Does what its name says.")
            .input(Input::new("table", Kind::String, "What it is about.").required())
            .input(Input::new("times", Kind::Integer, "How often.").default(1))
            .output("table", Kind::String, "What it was about.");
        plugin = plugin.operation(operation, move |request| {
            let name = name.clone();
            async move {
                match name.as_str() {
                    "fail" => return Err("no luck".to_owned()),
                    "die" => std::process::abort(),
                    "hang" => tokio::time::sleep(Duration::from_secs(3600)).await,
                    _ => {}
                }
                let times = request.inputs.get("times").cloned();
                let here = std::env::current_dir().unwrap_or_default();
                let pwd = std::env::var("PWD").ok();
                let told = json!({"table": request.text("table")?, "times": times, "in": here,
                                  "pwd": pwd, "oldpwd": std::env::var("OLDPWD").ok()});
                Ok(told)
            }
        });
    }
    plugin.run()
}
