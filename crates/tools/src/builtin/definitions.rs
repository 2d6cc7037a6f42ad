//! The six tools as agents see them. Every tool and every parameter has a description: some models
//! reject tools without one.

use serde_json::{Value, json};

use super::tool::BuiltinTool;

/// Builds a tool's definition; `seconds_max` is the longest timeout a command may have.
pub(super) fn definition(tool: BuiltinTool, seconds_max: u64) -> Value {
    match tool {
        BuiltinTool::Read => read(),
        BuiltinTool::Write => write(),
        BuiltinTool::Edit => edit(),
        BuiltinTool::Bash => bash(seconds_max),
        BuiltinTool::Glob => glob(),
        BuiltinTool::Grep => grep(),
    }
}

const PATH: &str = "Path of the file, relative to the workspace's root or absolute. Required.";

fn read() -> Value {
    json!({
        "name": "Read",
        "description": "Reads a file of the workspace: text as it is, images as images. Gives at \
            most 5 MiB; a note then says with which offset to go on.",
        "inputSchema": {"type": "object", "properties": {
            "path": text(PATH),
            "file_path": text("Another name for path."),
            "offset": count("Lines to pass over before the first one that is read. Default 0."),
            "limit": count("How many lines to read. Default: as many as fit."),
        }},
        "annotations": {"title": "Read a file", "readOnlyHint": true, "openWorldHint": false},
    })
}

fn write() -> Value {
    json!({
        "name": "Write",
        "description": "Writes a whole file in the workspace, in place of what is there. Folders \
            above it are made. The file's mode is kept.",
        "inputSchema": {"type": "object", "required": ["content"], "properties": {
            "path": text(PATH),
            "file_path": text("Another name for path."),
            "content": text("All that the file is to hold."),
        }},
        "annotations": {"title": "Write a file", "readOnlyHint": false, "destructiveHint": false,
            "idempotentHint": true, "openWorldHint": false},
    })
}

fn edit() -> Value {
    json!({
        "name": "Edit",
        "description": "Replaces a text in a file of the workspace by another. The old text must \
            occur exactly once, unless replace_all is set.",
        "inputSchema": {"type": "object", "properties": {
            "path": text(PATH),
            "file_path": text("Another name for path."),
            "old": text("The text to replace, exactly as it stands in the file. Required."),
            "old_string": text("Another name for old."),
            "new": text("The text to put in its place. Required."),
            "new_string": text("Another name for new."),
            "replace_all": flag("Replace every occurrence. Default false."),
        }},
        "annotations": {"title": "Edit a file", "readOnlyHint": false, "destructiveHint": false,
            "idempotentHint": false, "openWorldHint": false},
    })
}

fn bash(seconds_max: u64) -> Value {
    json!({
        "name": "Bash",
        "description": "Runs a shell command in the workspace and gives its output and exit code. \
            When it ends, everything that it left running is killed. Output is cut in the middle \
            at 1 MiB. It is not confined to the workspace.",
        "inputSchema": {"type": "object", "required": ["command"], "properties": {
            "command": text("The command, for `sh -c`."),
            "cwd": text("Folder to run it in. Default: the workspace's root."),
            "timeout_seconds": {"type": "integer", "minimum": 1, "maximum": seconds_max,
                "description": "Seconds after which it is killed, unless the call itself may not take as \
                    long. Default 120."},
        }},
        "annotations": {"title": "Run a command", "readOnlyHint": false, "destructiveHint": true,
            "idempotentHint": false, "openWorldHint": true},
    })
}

fn glob() -> Value {
    json!({
        "name": "Glob",
        "description": "Finds files of the workspace by a pattern of their path, newest first. \
            What .gitignore names is left out.",
        "inputSchema": {"type": "object", "required": ["pattern"], "properties": {
            "pattern": text("Pattern relative to cwd, such as `src/**/*.{rs,toml}`; `*` stays \
                within one folder, `**` does not."),
            "cwd": text("Folder to look in. Default: the workspace's root."),
            "path": text("Another name for cwd."),
            "no_ignore": flag("Also find what .gitignore names. Default false."),
        }},
        "annotations": {"title": "Find files", "readOnlyHint": true, "openWorldHint": false},
    })
}

fn grep() -> Value {
    json!({
        "name": "Grep",
        "description": "Finds lines by a regular expression in the workspace's files, as \
            `file:line:text`. Binary files and what .gitignore names are left out. Gives at most \
            10,000 lines.",
        "inputSchema": {"type": "object", "required": ["pattern"], "properties": {
            "pattern": text("Regular expression, in Rust's syntax."),
            "path": text("File or folder to look in. Default: the workspace's root."),
            "glob": text("Look only in files that fit, such as `*.rs` or `src/**/*.toml`."),
            "output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"],
                "description": "Lines, names of files, or how many lines in each. Default content."},
            "case_insensitive": flag("Take upper and lower case as the same. Default false."),
            "context": count("Lines to show before and after each match, at most 100. Default 0."),
            "no_ignore": flag("Also look in what .gitignore names. Default false."),
        }},
        "annotations": {"title": "Search in files", "readOnlyHint": true, "openWorldHint": false},
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn count(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}
