//! Two small servers inside the program, for `demo`: one that keeps notes in memory, one that tells
//! the time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use gateway::upstream::ServerSpec;
use mcp::ErrorObject;
use mcp::message::Raw;
use mcp::server::{Server, ToolCall, text_result};
use serde_json::{Value, json};

/// Notes kept; a demo must not grow without bound.
const NOTES_MAX: usize = 1000;

pub(crate) fn servers() -> Vec<ServerSpec> {
    let notes = Notes::default();
    vec![
        ServerSpec::embedded("notes", Arc::new(move || notes_server(&notes))),
        ServerSpec::embedded("clock", Arc::new(clock_server)),
    ]
}

#[derive(Clone, Default)]
struct Notes(Arc<Mutex<BTreeMap<String, String>>>);

impl Notes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn notes_server(notes: &Notes) -> Server {
    let mut server = Server::new("notes", env!("CARGO_PKG_VERSION"));
    let title = || json!({"title": {"type": "string", "description": "The note's title"}});
    let read_only = json!({"readOnlyHint": true, "openWorldHint": false});
    add(
        &mut server,
        &json!({"name": "list_notes", "description": "Lists the titles of all notes.",
                "inputSchema": {"type": "object", "properties": {}}, "annotations": read_only}),
        notes,
        |notes, _| Ok(notes.lock().keys().map(String::as_str).collect::<Vec<_>>().join("\n")),
    );
    add(
        &mut server,
        &json!({"name": "read_note", "description": "Reads one note.",
                "inputSchema": {"type": "object", "properties": title(), "required": ["title"]},
                "annotations": read_only}),
        notes,
        |notes, arguments| {
            let title = text(arguments, "title");
            notes.lock().get(title).cloned().ok_or_else(|| format!("there is no note '{title}'"))
        },
    );
    add(
        &mut server,
        &json!({"name": "write_note", "description": "Writes a note, or replaces it.",
                "inputSchema": {"type": "object", "properties": {
                    "title": {"type": "string", "description": "The note's title"},
                    "text": {"type": "string", "description": "What to remember"}},
                    "required": ["title", "text"]},
                "annotations": {"readOnlyHint": false, "destructiveHint": false, "openWorldHint": false}}),
        notes,
        |notes, arguments| {
            let mut notes = notes.lock();
            let title = text(arguments, "title");
            if notes.len() >= NOTES_MAX && !notes.contains_key(title) {
                return Err(format!("there are {NOTES_MAX} notes already: delete one first"));
            }
            notes.insert(title.to_owned(), text(arguments, "text").to_owned());
            Ok(format!("wrote '{title}'"))
        },
    );
    add(
        &mut server,
        &json!({"name": "delete_note", "description": "Deletes a note for good.",
                "inputSchema": {"type": "object", "properties": title(), "required": ["title"]},
                "annotations": {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": false}}),
        notes,
        |notes, arguments| match notes.lock().remove(text(arguments, "title")) {
            Some(_) => Ok("deleted".to_owned()),
            None => Err(format!("there is no note '{}'", text(arguments, "title"))),
        },
    );
    server
}

fn clock_server() -> Server {
    let mut server = Server::new("clock", env!("CARGO_PKG_VERSION"));
    add(
        &mut server,
        &json!({"name": "current_time", "description": "Tells the current date and time in UTC.",
                "inputSchema": {"type": "object", "properties": {}},
                "annotations": {"readOnlyHint": true, "openWorldHint": false}}),
        &Notes::default(),
        |_, _| Ok(jiff::Timestamp::now().to_string()),
    );
    server
}

fn add(
    server: &mut Server,
    definition: &Value,
    notes: &Notes,
    run: fn(&Notes, &Value) -> Result<String, String>,
) {
    let notes = notes.clone();
    server.register_tool(definition, move |call: ToolCall| {
        let result = answer(&call.arguments, |arguments| run(&notes, arguments));
        async move { result }.boxed()
    });
}

fn answer(
    arguments: &Raw,
    run: impl FnOnce(&Value) -> Result<String, String>,
) -> Result<Raw, ErrorObject> {
    let arguments: Value = serde_json::from_str(arguments.get())
        .map_err(|error| ErrorObject::invalid_params(error.to_string()))?;
    Ok(match run(&arguments) {
        Ok(text) => text_result(&text),
        Err(text) => {
            let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
            mcp::message::to_raw(&result)
        }
    })
}

fn text<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments[name].as_str().unwrap_or_default()
}
