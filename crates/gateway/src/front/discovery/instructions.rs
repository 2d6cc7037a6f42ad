//! The instructions that a client gets when it connects: how to use the gate, and which servers are
//! ready. Only reviewed text is in them.

use std::borrow::Cow;

use domain::catalog::{Catalog, Server};
use domain::policy::Obstacle;
use domain::upstream::UpstreamState;
use domain::{Caller, caller::TokenSurface, signature};

const USE: &str = "Countersign stands between you and the tools of several servers. Find tools \
    with retrieve_tools, then call them with call_tool_read, call_tool_write or \
    call_tool_destructive, whichever retrieve_tools recommends in call_with, and declare the same \
    operation in intent.operation_type.";

/// Clients cut longer instructions.
const CHARS_MAX: usize = 2000;

/// Characters of the line of one server.
const LINE_CHARS_MAX: usize = 160;

/// Names of tools shown for a server without approved instructions.
const TOOLS_NAMED_MAX: usize = 5;

pub(super) fn instructions(catalog: &Catalog, caller: &Caller) -> String {
    let ready: Vec<String> = catalog.servers().filter_map(|server| line(server, caller)).collect();
    let mut text = USE.to_owned();
    if ready.is_empty() {
        return text;
    }
    text.push_str("\n\nServers that are ready:");
    let mut left = CHARS_MAX - text.len();
    for (place, line) in ready.iter().enumerate() {
        let size = line.chars().count();
        if size > left {
            text.push_str(&format!(
                "\n- and {} more; upstream_servers lists them",
                ready.len() - place
            ));
            break;
        }
        left -= size;
        text.push_str(line);
    }
    text
}

/// Returns one line about a server with tools that the caller can call now.
fn line(server: &Server, caller: &Caller) -> Option<String> {
    if server.state != UpstreamState::Ready || server.is_locked() || !caller.sees(&server.name) {
        return None;
    }
    let callable = |(tool, lock): &(&_, _)| {
        let tool: &domain::tool::Tool = tool;
        caller.sees_tool(&server.name, &tool.name)
            && !tool.is_for_apps
            && Obstacle::of(caller, TokenSurface::Discovery, *lock, tool.hints).is_none()
    };
    // A name with spaces could carry a message to the model.
    let names: Vec<Cow<'_, str>> = server
        .tools()
        .map(|(tool, lock)| (&**tool, lock))
        .filter(callable)
        .map(|(tool, _)| tool.safe_name())
        .collect();
    let about = match server.instructions.as_deref().map(signature::first_sentence) {
        Some(sentence) if !sentence.is_empty() => sentence,
        _ => {
            let more = if names.len() > TOOLS_NAMED_MAX { ", …" } else { "" };
            names[..names.len().min(TOOLS_NAMED_MAX)].join(", ") + more
        }
    };
    let count = match names.len() {
        0 => return None,
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    Some(signature::cut(&format!("\n- {} ({count}): {about}", server.name), LINE_CHARS_MAX))
}
