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

const PATH: &str = "Path of the file, absolute or relative to the workspace root. Required.";

fn read() -> Value {
    json!({
        "name": "Read",
        "description": "Reads a file in the workspace: text unchanged, images as image content. \
            Returns at most 5 MiB, with a note that gives the offset for the next call.",
        "inputSchema": {"type": "object", "properties": {
            "path": text(PATH),
            "file_path": text("Alias of path."),
            "offset": count("Number of lines to skip before reading. Default 0."),
            "limit": count("Number of lines to read. Default: as many as fit."),
        }},
        "annotations": {"title": "Read a file", "readOnlyHint": true, "openWorldHint": false},
    })
}

fn write() -> Value {
    json!({
        "name": "Write",
        "description": "Writes a file in the workspace, replacing an existing one. Creates missing \
            parent folders. Keeps the mode of an existing file.",
        "inputSchema": {"type": "object", "required": ["content"], "properties": {
            "path": text(PATH),
            "file_path": text("Alias of path."),
            "content": text("The full content of the file."),
        }},
        "annotations": {"title": "Write a file", "readOnlyHint": false, "destructiveHint": false,
            "idempotentHint": true, "openWorldHint": false},
    })
}

fn edit() -> Value {
    json!({
        "name": "Edit",
        "description": "Replaces text in a file in the workspace. The old text must occur exactly \
            once, unless replace_all is set.",
        "inputSchema": {"type": "object", "properties": {
            "path": text(PATH),
            "file_path": text("Alias of path."),
            "old": text("The text to replace, exactly as it appears in the file. Required."),
            "old_string": text("Alias of old."),
            "new": text("The replacement text. Required."),
            "new_string": text("Alias of new."),
            "replace_all": flag("Replace every occurrence. Default false."),
        }},
        "annotations": {"title": "Edit a file", "readOnlyHint": false, "destructiveHint": false,
            "idempotentHint": false, "openWorldHint": false},
    })
}

fn bash(seconds_max: u64) -> Value {
    json!({
        "name": "Bash",
        "description": "Runs a shell command in the workspace and returns its output and exit \
            code. When it ends, processes that it left running are killed. Output over 1 MiB is \
            cut in the middle. The command is not confined to the workspace.",
        "inputSchema": {"type": "object", "required": ["command"], "properties": {
            "command": text("The command, run with `sh -c`."),
            "cwd": text("Working directory of the command. Default: the workspace root."),
            "timeout_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": seconds_max,
                "description": "Seconds after which the command is killed; a shorter timeout of \
                    the call itself takes precedence. Default 120."},
        }},
        "annotations": {"title": "Run a command", "readOnlyHint": false, "destructiveHint": true,
            "idempotentHint": false, "openWorldHint": true},
    })
}

fn glob() -> Value {
    json!({
        "name": "Glob",
        "description": "Finds files in the workspace whose path matches a glob pattern, newest \
            first. Skips what .gitignore excludes.",
        "inputSchema": {"type": "object", "required": ["pattern"], "properties": {
            "pattern": text("Glob pattern relative to cwd, such as `src/**/*.{rs,toml}`; `*` stays \
                within one folder, `**` crosses folders."),
            "cwd": text("Folder to search. Default: the workspace root."),
            "path": text("Alias of cwd."),
            "no_ignore": flag("Include what .gitignore excludes. Default false."),
        }},
        "annotations": {"title": "Find files", "readOnlyHint": true, "openWorldHint": false},
    })
}

fn grep() -> Value {
    json!({
        "name": "Grep",
        "description": "Searches the workspace's files for lines that match a regular expression \
            and returns them as `file:line:text`. Skips binary files and what .gitignore excludes. \
            Returns at most 10,000 lines.",
        "inputSchema": {"type": "object", "required": ["pattern"], "properties": {
            "pattern": text("Regular expression, in Rust syntax."),
            "path": text("File or folder to search. Default: the workspace root."),
            "cwd": text("Alias of path."),
            "glob": text("Search only files that match, such as `*.rs` or `src/**/*.toml`."),
            "output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"],
                "description": "Return lines, file names, or lines per file. Default content."},
            "case_insensitive": flag("Match upper and lower case alike. Default false."),
            "context": count("Lines to show before and after each match, at most 100. Default 0."),
            "no_ignore": flag("Search what .gitignore excludes too. Default false."),
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
