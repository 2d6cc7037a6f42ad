//! The steps of the scripted agents, and the reasons they give.

use serde_json::{Value, json};

use crate::output;

pub(super) const PLANNER: &str = "planner";
pub(super) const REVIEWER: &str = "reviewer";

/// The note that both agents work on.
const PLAN: &str = "plans/release.md";
const REVIEW: &str = "reviews/release.md";

/// The number of notes that the rounds use before reusing the first.
const ROUNDS: u32 = 3;

/// One action of an agent.
pub(super) struct Step {
    pub(super) agent: &'static str,
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
}

impl Step {
    fn call(
        agent: &'static str,
        (tool, operation): (&'static str, &str),
        name: &str,
        (args, reason): (Value, &str),
    ) -> Step {
        let intent = json!({"operation_type": operation, "reason": reason});
        Step { agent, tool, arguments: json!({"name": name, "args": args, "intent": intent}) }
    }

    fn read(agent: &'static str, name: &str, args: Value, reason: &str) -> Step {
        Step::call(agent, ("call_tool_read", "read"), name, (args, reason))
    }

    fn write(agent: &'static str, name: &str, args: Value, reason: &str) -> Step {
        Step::call(agent, ("call_tool_write", "write"), name, (args, reason))
    }

    /// Returns a line for people who read along.
    pub(super) fn told(&self, result: &Value) -> String {
        let what = self.arguments["name"].as_str().or(self.arguments["query"].as_str());
        let what = what.unwrap_or_default();
        format!("  {:<9} {:<22} {:<20} {}", self.agent, self.tool, what, words(result))
    }
}

fn note(path: &str, text: &str) -> Value {
    json!({"path": path, "text": text})
}

/// Returns the steps that are complete before the user looks. The reviewer changes the plan after
/// the planner has read it, and the planner then writes from its stale copy.
pub(super) fn opening() -> Vec<Step> {
    let at = |path: &str| json!({"path": path});
    let mail = json!({"to": "team", "text": "The plan is ready for review."});
    let tagged = note(PLAN, "1. test\n2. tag");
    vec![
        Step::read(PLANNER, "clock:current_time", json!({}), "to date the plan"),
        Step::write(PLANNER, "notes:write_note", note(PLAN, "1. test"), "to draft the plan"),
        Step::write(PLANNER, "mail:send_mail", mail, "to ask for a review"),
        Step::read(PLANNER, "notes:read_note", at(PLAN), "to continue the plan"),
        Step::read(REVIEWER, "notes:read_note", at(PLAN), "to review the plan"),
        Step::write(REVIEWER, "notes:write_note", tagged, "to add the missing tag"),
        Step::write(REVIEWER, "notes:write_note", note(REVIEW, "good"), "to record the review"),
        Step::write(
            PLANNER,
            "notes:write_note",
            note(PLAN, "1. test\n2. ship"),
            "to add the last step",
        ),
        Step::read(PLANNER, "notes:read_note", at(REVIEW), "to read the review"),
    ]
}

/// Returns the steps that repeat, slowly.
pub(super) fn round(round: u32) -> Vec<Step> {
    // A few notes are reused, so that the contention graph stays readable.
    let path = format!("round {}", (round - 1) % ROUNDS + 1);
    let at = |path: &str| json!({"path": path});
    vec![
        Step {
            agent: PLANNER,
            tool: "retrieve_tools",
            arguments: json!({"query": "write down a note", "limit": 3}),
        },
        Step::read(PLANNER, "clock:current_time", json!({}), "to date the note"),
        Step::write(PLANNER, "notes:write_note", note(&path, "hello"), "to keep a note"),
        Step::read(REVIEWER, "notes:read_note", at(&path), "to read the new note"),
        Step::write(
            REVIEWER,
            "notes:write_note",
            note(&path, "hello, world"),
            "to extend the note",
        ),
        // A mistake: deleting is not reading, and the gate refuses it.
        Step::read(PLANNER, "notes:delete_note", at(&path), "to tidy up"),
        Step::call(
            REVIEWER,
            ("call_tool_write", "read"),
            "notes:list_notes",
            (json!({}), "to list all notes"),
        ),
        Step::write(
            PLANNER,
            "mail:send_mail",
            json!({"to": "team", "text": "done"}),
            "to inform the team",
        ),
        Step::call(
            PLANNER,
            ("call_tool_destructive", "destructive"),
            "notes:delete_note",
            (at(&path), "to remove an old note"),
        ),
    ]
}

fn words(result: &Value) -> String {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let code = result["structuredContent"]["error"]["code"].as_str();
    let words = match (code, serde_json::from_str::<Value>(text)) {
        (Some(code), _) => format!("refused: {code}: {text}"),
        (None, Ok(Value::Object(found))) => {
            let tools = found.get("tools").and_then(Value::as_array);
            let names = tools.into_iter().flatten().filter_map(|tool| tool["name"].as_str());
            format!("found: {}", names.collect::<Vec<_>>().join(", "))
        }
        (None, _) => format!("ok: {text}"),
    };
    output::plain(&words)
}
