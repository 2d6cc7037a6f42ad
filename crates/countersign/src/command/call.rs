//! `countersign call tool-read|tool-write|tool-destructive`: a call by a person, with the intent
//! filled in from the command.

use std::io::IsTerminal;

use admin::view::{CallAnswer, CallIntent, CallRequest};
use axum::http::Method;
use domain::tool::Class;
use serde_json::Value;
use text::json::{self, Object};
use text::visible;

use super::tools;
use crate::cli::{Call, CallArgs, Format};
use crate::control::{self, Control};
use crate::exit::Failure;
use crate::output;
use crate::site::Site;
use gateway::plan::Reach;

/// Said when no answer came from the gate.
const LOST: &str = "the call may have taken effect; see 'countersign activity list'";

pub(crate) async fn run(site: &Site, call: Call) -> Result<(), Failure> {
    let (class, args) = match call {
        Call::Read(args) => (Class::Read, args),
        Call::Write(args) => (Class::Write, args),
        Call::Destructive(args) => (Class::Destructive, args),
    };
    let (tool, arguments) = (tool(&args)?, arguments(&args)?);
    let server = tools::parse(tool)?.server;
    let body = body(class, tool, arguments, &args)?;
    let answer = Control::with(site, Reach::Only(server), async |control| {
        let answer = control.request(Method::POST, "/api/v1/tools/call", Some(body)).await;
        answer.map_err(|failure| failure.with(LOST))
    })
    .await?;
    if !answer.status.is_success() {
        return Err(Failure::call(control::words(&answer)));
    }
    let answer: CallAnswer = serde_json::from_str(&answer.text)
        .map_err(|error| Failure::system(output::unexpected_response(&error)))?;
    show(args.output, &answer)
}

/// Returns the tool as it was named, by position or by flag.
fn tool(args: &CallArgs) -> Result<&str, Failure> {
    match Vec::from_iter(args.tool.iter().chain(&args.tool_name))[..] {
        [tool] => Ok(tool),
        [first, second, ..] => Err(Failure::input(format!(
            "the tool is named twice, as '{first}' and as '{second}'; \
             name it once, and after -t give its arguments with -j"
        ))),
        // The command line requires one.
        [] => Err(Failure::input("no tool is named")),
    }
}

/// Returns the arguments as they were given, by position or by flag: the text itself, or the
/// content of `@file`.
fn arguments(args: &CallArgs) -> Result<Option<String>, Failure> {
    match Vec::from_iter(args.json.iter().chain(&args.json_args))[..] {
        [] => Ok(None),
        [text] => object(text).map(Some),
        _ => Err(Failure::input(
            "the arguments are given twice; give them once, after the tool or with -j",
        )),
    }
}

fn body(
    class: Class,
    tool: &str,
    arguments: Option<String>,
    args: &CallArgs,
) -> Result<String, Failure> {
    let intent = CallIntent {
        operation_type: class.as_str().to_owned(),
        data_sensitivity: args.sensitivity.clone(),
        reason: args.reason.clone(),
        ..CallIntent::default()
    };
    let request = CallRequest {
        tool_variant: class.variant().to_owned(),
        name: tool.to_owned(),
        args_json: arguments,
        intent: Some(intent),
        ..CallRequest::default()
    };
    serde_json::to_string(&request)
        .map_err(|error| Failure::system(format!("cannot encode the request to the gate: {error}")))
}

/// Returns the text of a JSON object, or of the one in `@file`.
pub(super) fn object(text: &str) -> Result<String, Failure> {
    let is_file = text.starts_with('@');
    let text = match text.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(|error| {
            Failure::input(format!("cannot read the arguments from '{path}': {error}"))
        })?,
        None => text.to_owned(),
    };
    match Object::parse(&text) {
        Ok(Some(_)) => Ok(text),
        Ok(None) => Err(Failure::input(
            "the arguments must be a JSON object, such as {\"path\": \"a.txt\"}",
        )),
        Err(error) => {
            let why = if is_file { json::explain_in_file(&error) } else { json::explain(&error) };
            Err(Failure::input(format!("the arguments are not valid JSON: {why}")))
        }
    }
}

fn show(format: Format, answer: &CallAnswer) -> Result<(), Failure> {
    for warning in &answer.warnings {
        tracing::warn!("{warning}");
    }
    let result = answer.result.value();
    output::print(format, &result, |result| match std::io::stdout().is_terminal() {
        true => visible(&text_blocks(result)).into_owned(),
        false => text_blocks(result),
    })?;
    if result["isError"] == true {
        return Err(Failure::call("the tool returned an error"));
    }
    Ok(())
}

/// Returns text blocks unchanged, for a pipe, and other blocks by their type. The
/// result comes from a tool and may have any form.
fn text_blocks(result: &Value) -> String {
    let block = |block: &Value| match block["text"].as_str() {
        Some(text) => text.to_owned(),
        None => format!("[{}]", block["type"].as_str().unwrap_or("block")),
    };
    match result["content"].as_array() {
        Some(blocks) => blocks.iter().map(block).collect::<Vec<_>>().join("\n"),
        None => result.to_string(),
    }
}
