//! Converts a hook event of Claude Code into a frame for the events socket. The agent waits for the
//! hook, so only the event itself is examined.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::frame::{Decision, FRAME_BYTES_MAX, IDENTITY_BYTES_MAX, TOOL_BYTES_MAX, VERSION};
use super::targets::{self, Target};
use redact::Redactor;
use text::json::{self, Object};

pub const CHANNEL: &str = "claude-code";
const CAPTURE_METHOD: &str = "hook";

/// The name of the target among the omitted fields: it was too long.
pub const TARGET: &str = "target";

/// The name of the links of the target's path among the omitted fields: there was no time to follow
/// them.
pub const LINKS: &str = "links";

/// Replaces a missing session in the event; a frame needs one.
pub const NO_SESSION: &str = "unknown";

/// The length kept of an error message if the frame is too large even without input and output.
const ERROR_BYTES_KEPT: usize = 64 << 10;

#[derive(Debug, thiserror::Error)]
#[error("not a valid hook event: {}", json::explain(.0))]
pub struct HookFault(#[from] serde_json::Error);

/// The real name of a file, if it could be resolved in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RealName {
    /// It is the given one.
    Same,
    Other(Target),
    /// There was no time to follow the links.
    Unknown,
}

/// Returns the frame as JSON text without likely secrets, or `None` for an event that is not
/// recorded. A field that would invalidate the frame is omitted rather than losing the event. `home`
/// is the folder that `~` means to the agent, and `real` follows the links of a file.
pub fn frame(
    event: &str,
    now: Timestamp,
    redactor: &Redactor,
    home: Option<&str>,
    real: impl FnOnce(&Target) -> RealName,
) -> Result<Option<String>, HookFault> {
    let Some(checked) = Object::parse(event)? else {
        return Ok(None);
    };
    // The other members of an unknown event may be anything.
    let is_known = |name: &str| decision(Some(name)).is_some();
    if checked.members().get(EVENT_NAME).and_then(Value::as_str).is_some_and(|it| !is_known(it)) {
        return Ok(None);
    }
    let mut event: Event<'_> = serde_json::from_str(checked.text().get())?;
    let Some(decision) = decision(event.hook_event_name.as_deref()) else {
        return Ok(None);
    };
    let Some(name) = event.tool_name.as_deref().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let name = redactor.text(name).into_owned();
    let tool = tool(&name);
    let cwd = event.cwd.take().unwrap_or_default();
    let (input, output) =
        (redacted(event.tool_input, redactor)?, redacted(event.tool_response, redactor)?);
    event.redact(redactor);
    let mut omitted = Vec::new();
    let named = touched(&tool, event.tool_input, &cwd, home).map(|given| match real(&given) {
        RealName::Same => given,
        RealName::Other(real) => real,
        RealName::Unknown => {
            omitted.push(LINKS);
            given
        }
    });
    let target = named.as_ref().and_then(|named| named.recordable(redactor));
    if named.is_some() && target.is_none() {
        omitted.push(TARGET);
    }
    let outgoing = Outgoing {
        v: VERSION,
        ts_emit: now.to_string(),
        session_id: fitting(event.session_id.as_deref()).unwrap_or(NO_SESSION),
        channel: CHANNEL,
        tool,
        decision: decision.as_str(),
        target_system: target.as_deref().map(Target::system),
        target_resource: target.as_deref().map(Target::resource),
        input: input.as_deref().or(event.tool_input),
        output: output.as_deref().or(event.tool_response),
        error: event.error.as_deref().filter(|error| !error.is_empty()),
        correlation_id: fitting(event.tool_use_id.as_deref()),
        agent_id: fitting(event.agent_id.as_deref()),
        agent_type: fitting(event.agent_type.as_deref()),
        capture_method: CAPTURE_METHOD,
        omitted,
    };
    Ok(Some(outgoing.within_limit()?))
}

const EVENT_NAME: &str = "hook_event_name";

#[derive(Deserialize)]
struct Event<'a> {
    hook_event_name: Option<String>,
    session_id: Option<String>,
    cwd: Option<String>,
    tool_name: Option<String>,
    #[serde(borrow)]
    tool_input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_response: Option<&'a RawValue>,
    tool_use_id: Option<String>,
    agent_id: Option<String>,
    agent_type: Option<String>,
    error: Option<String>,
}

impl Event<'_> {
    fn redact(&mut self, redactor: &Redactor) {
        let texts = [&mut self.session_id, &mut self.tool_use_id, &mut self.agent_id];
        let texts = texts.into_iter().chain([&mut self.agent_type, &mut self.error]);
        for text in texts.flatten() {
            redactor.line(text);
        }
    }
}

/// Returns the value without its secrets; `None` if it has none, so that it stays as it was sent.
fn redacted(
    value: Option<&RawValue>,
    redactor: &Redactor,
) -> Result<Option<Box<RawValue>>, serde_json::Error> {
    let Some(value) = value else { return Ok(None) };
    let Ok(mut parsed) = serde_json::from_str::<Value>(value.get()) else {
        // Nested too deeply to parse; the text is JSON all the same, and stays so.
        let text = redactor.text(value.get()).into_owned();
        return RawValue::from_string(text).map(Some);
    };
    let changed = redactor.value(&mut parsed);
    changed.then(|| serde_json::value::to_raw_value(&parsed)).transpose()
}

#[derive(Serialize)]
struct Outgoing<'a> {
    v: &'static str,
    ts_emit: String,
    session_id: &'a str,
    channel: &'static str,
    tool: Tool<'a>,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_system: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_resource: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_type: Option<&'a str>,
    capture_method: &'static str,
    /// Not part of the published form: names the omitted fields, which also explains missing
    /// hashes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    omitted: Vec<&'static str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    name: &'a str,
}

impl Outgoing<'_> {
    fn within_limit(mut self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string(&self)?;
        if text.len() > FRAME_BYTES_MAX && self.output.take().is_some() {
            self.omitted.push("output");
            text = serde_json::to_string(&self)?;
        }
        if text.len() > FRAME_BYTES_MAX && self.input.take().is_some() {
            self.omitted.push("input");
            text = serde_json::to_string(&self)?;
        }
        if text.len() > FRAME_BYTES_MAX {
            self.error = self.error.map(|error| start(error, ERROR_BYTES_KEPT));
            self.omitted.push("error");
            text = serde_json::to_string(&self)?;
        }
        Ok(text)
    }
}

fn decision(event: Option<&str>) -> Option<Decision> {
    match event? {
        "PreToolUse" => Some(Decision::Pending),
        "PostToolUse" | "PostToolUseFailure" => Some(Decision::Allowed),
        _ => None,
    }
}

/// Splits `mcp__server__tool`. A name that is too long is truncated: it is displayed, not looked
/// up.
fn tool(name: &str) -> Tool<'_> {
    let parts = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    match parts {
        Some((server, name)) if !server.is_empty() && !name.is_empty() => {
            Tool { server: Some(start(server, TOOL_BYTES_MAX)), name: start(name, TOOL_BYTES_MAX) }
        }
        _ => Tool { server: None, name: start(name, TOOL_BYTES_MAX) },
    }
}

/// Returns the file or folder that one of the agent's own tools touches. The gate names what a
/// server's tool touches, by the tool's plan.
fn touched(
    tool: &Tool<'_>,
    input: Option<&RawValue>,
    cwd: &str,
    home: Option<&str>,
) -> Option<Target> {
    if tool.server.is_some() {
        return None;
    }
    let input = Object::parse(input?.get()).ok()??;
    let text = |name: &str| input.members().get(name)?.as_str();
    let path = match tool.name {
        "Bash" => return targets::of_shell(text("command")?, cwd, home),
        "Glob" | "Grep" | "LS" => text("path")?,
        _ => text("file_path").or_else(|| text("notebook_path"))?,
    };
    targets::of_own_file(path, cwd, home)
}

fn fitting(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty() && text.len() <= IDENTITY_BYTES_MAX)
}

fn start(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use serde_json::json;

    use super::super::frame::EventFrame;
    use super::*;

    static BUILTIN: LazyLock<Redactor> = LazyLock::new(Redactor::builtin);

    fn event(members: Value) -> Value {
        let mut event = json!({
            "hook_event_name": "PostToolUse", "session_id": "s1", "cwd": "/w",
            "transcript_path": "/t", "permission_mode": "default",
            "tool_name": "Read", "tool_input": {"file_path": "a.rs"},
            "tool_response": {"ok": true}, "tool_use_id": "toolu_1",
        });
        for (name, value) in members.as_object().unwrap() {
            event[name] = value.clone();
        }
        event
    }

    fn text(members: Value) -> Option<String> {
        let event = event(members).to_string();
        frame(&event, Timestamp::UNIX_EPOCH, &BUILTIN, Some("/u/ada"), |_| RealName::Same).unwrap()
    }

    fn read(members: Value) -> EventFrame {
        EventFrame::parse(text(members).unwrap().as_bytes()).unwrap()
    }

    #[test]
    fn an_event_becomes_a_frame() {
        assert_eq!(
            text(json!({"agent_id": "a1", "agent_type": "Explore"})).unwrap(),
            r#"{"v":"1","ts_emit":"1970-01-01T00:00:00Z","session_id":"s1","channel":"claude-code","tool":{"name":"Read"},"decision":"allowed","target_system":"filesystem","target_resource":"/w/a.rs","input":{"file_path":"a.rs"},"output":{"ok":true},"correlation_id":"toolu_1","agent_id":"a1","agent_type":"Explore","capture_method":"hook"}"#
        );
        let before = read(json!({"hook_event_name": "PreToolUse"}));
        assert_eq!(before.decision, Decision::Pending);
        let failed =
            read(json!({"hook_event_name": "PostToolUseFailure", "error": "no such file"}));
        assert_eq!(
            (failed.decision, failed.error.as_deref()),
            (Decision::Allowed, Some("no such file"))
        );
    }

    #[test]
    fn targets_follow_the_tool() {
        for (tool, input, expected) in [
            ("Edit", json!({"file_path": "/x/../y"}), Some(("filesystem", "/y"))),
            (
                "NotebookEdit",
                json!({"notebook_path": "n.ipynb"}),
                Some(("filesystem", "/w/n.ipynb")),
            ),
            ("Bash", json!({"command": "rm x"}), Some(("filesystem", "/w/x"))),
            ("Bash", json!({"command": "rm x; ls", "file_path": "no"}), None),
            (
                "MultiEdit",
                json!({"file_path": "m.rs", "edits": []}),
                Some(("filesystem", "/w/m.rs")),
            ),
            ("mcp__db__query", json!({"table": "t", "database": "d"}), None),
            ("mcp__db__query", json!({"file_path": "/x"}), None),
            ("Grep", json!({"pattern": "x"}), None),
            ("Grep", json!({"pattern": "x", "path": "src/"}), Some(("filesystem", "/w/src"))),
            ("LS", json!({"path": "/w/.."}), Some(("filesystem", "/"))),
            ("WebFetch", json!({"url": "https://example.com", "prompt": "x"}), None),
            ("Write", json!({"file_path": "a\u{0}b"}), Some(("filesystem", "/w/a⟨U+0000⟩b"))),
            ("Write", json!({"file_path": "x".repeat(1 << 20)}), None),
            ("Write", json!({"file_path": "~/a"}), Some(("filesystem", "/u/ada/a"))),
            ("Bash", json!({"command": "sort x | uniq > ~/a"}), Some(("filesystem", "/u/ada/a"))),
            ("Write", json!({"file_path": 7}), None),
            ("Read", json!("text"), None),
        ] {
            let frame = read(json!({"tool_name": tool, "tool_input": input}));
            let found = frame.target.as_ref().map(|it| (it.system(), it.resource()));
            assert_eq!(found, expected, "{tool} {input}");
        }
    }

    #[test]
    fn a_frame_holds_no_secret_and_hides_the_segment_of_a_target_with_one() {
        let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let text = text(json!({
            "tool_name": "Write", "tool_input": {"file_path": secret, "n": [1, secret]},
            "tool_response": {"password": "hunter2"}, "error": format!("bad {secret}"),
            "session_id": secret, "agent_id": secret, "tool_use_id": secret,
        }))
        .unwrap();
        assert!(!text.contains("ghp_") && !text.contains("hunter2"), "{text}");
        let frame = EventFrame::parse(text.as_bytes()).unwrap();
        assert_eq!(frame.target.as_ref().map(Target::resource), Some("/w/[redacted]"));
        assert!(frame.omitted.is_empty());
        let left = read(json!({"tool_input": {"file_path": format!("{secret}/../a.rs")}}));
        assert_eq!(left.target.as_ref().map(Target::resource), Some("/w/a.rs"));
        let long = read(json!({"tool_input": {"file_path": "x".repeat(5000)}}));
        assert_eq!((long.target, long.omitted), (None, vec![TARGET.to_owned()]));
    }

    #[test]
    fn a_file_has_its_real_name_if_that_is_known_in_time() {
        let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let other = |path: &str| RealName::Other(Target::of_path(path.to_owned()).unwrap());
        for (real, resource, omitted) in [
            (RealName::Same, Some("/w/a.rs"), vec![]),
            (other("/real/a.rs"), Some("/real/a.rs"), vec![]),
            (RealName::Unknown, Some("/w/a.rs"), vec![LINKS]),
            (other(&format!("/real/{secret}/b")), Some("/real/[redacted]/b"), vec![]),
            (other(&format!("/{}", "x".repeat(5000))), None, vec![TARGET]),
        ] {
            let event = event(json!({})).to_string();
            let text =
                frame(&event, Timestamp::UNIX_EPOCH, &BUILTIN, Some("/u/ada"), |_| real.clone());
            let frame = EventFrame::parse(text.unwrap().unwrap().as_bytes()).unwrap();
            let found = frame.target.as_ref().map(Target::resource);
            assert_eq!(
                (found, frame.omitted),
                (resource, omitted.iter().map(|it| it.to_string()).collect()),
                "{real:?}"
            );
        }
    }

    #[test]
    fn names_of_mcp_tools_are_split() {
        for (name, server, tool) in [
            ("mcp__git__push", Some("git"), "push"),
            ("mcp__git__a__b", Some("git"), "a__b"),
            ("mcp__git", None, "mcp__git"),
            ("mcp____x", None, "mcp____x"),
            ("Read", None, "Read"),
        ] {
            let frame = read(json!({"tool_name": name}));
            assert_eq!((frame.server.as_deref(), frame.tool.as_str()), (server, tool), "{name}");
        }
    }

    #[test]
    fn other_events_record_nothing() {
        for members in [
            json!({"hook_event_name": "SessionStart"}),
            json!({"hook_event_name": "PostSomething", "tool_name": 1, "cwd": [], "tool_use_id": {}}),
            json!({"hook_event_name": null}),
            json!({"tool_name": null}),
            json!({"tool_name": ""}),
        ] {
            assert_eq!(text(members.clone()), None, "{members}");
        }
        let frame = |text| frame(text, Timestamp::UNIX_EPOCH, &BUILTIN, None, |_| RealName::Same);
        assert!(frame("[]").unwrap().is_none());
        assert!(frame("{").is_err());
    }

    #[test]
    fn oversized_fields_are_dropped_and_listed_as_omitted() {
        let big = "x".repeat(FRAME_BYTES_MAX);
        for (members, omitted) in [
            (json!({"tool_response": big}), vec!["output"]),
            (json!({"tool_input": {"file_path": "a", "content": big}}), vec!["output", "input"]),
            (json!({"error": big}), vec!["output", "input", "error"]),
        ] {
            let frame = read(members);
            assert_eq!(frame.omitted, omitted);
            assert_eq!(frame.output.is_none(), omitted.contains(&"output"));
            assert_eq!(frame.input.is_none(), omitted.contains(&"input"));
            assert!(frame.target.is_some());
        }
        let long = "x".repeat(257);
        let frame = read(json!({"session_id": long, "agent_type": long, "tool_use_id": long}));
        assert_eq!(frame.session_id, NO_SESSION);
        assert_eq!(frame.identity.agent_type, None);
    }

    proptest! {
        #[test]
        fn every_frame_that_a_hook_makes_can_be_parsed(
            tool in "(mcp__)?\\PC{0,12}", cwd in "\\PC{0,8}", path in "\\PC{0,12}", session in "\\PC{0,4}",
        ) {
            let members = json!({"tool_name": tool, "cwd": cwd, "session_id": session,
                "tool_input": {"file_path": path, "command": path, "url": path}});
            if let Some(text) = text(members) {
                prop_assert!(EventFrame::parse(text.as_bytes()).is_ok());
            }
        }
    }
}
