//! A program in the place of Claude Code, for the tests.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if testkit::agent::run(&args).await { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
