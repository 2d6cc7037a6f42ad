//! The files and variables that OpenCode reads.

use super::{FileRead, ReadTable, VariableRead, harmless, kept, ours, removed, set};
use crate::agent::program::Provider;

pub(super) const TABLE: ReadTable = ReadTable {
    provider: Provider::OpenCode,
    version: "1.18.33",
    files: FILES,
    variables: VARIABLES,
};

const FILES: &[FileRead] = &[
    ours("+/**", "the step's private folder"),
    harmless("^/", "a folder on the way to the private one"),
    ours(
        "~/.local/share/opencode/auth.json",
        "login; entries of the type `wellknown` are taken out",
    ),
    harmless("^/.git", "whether there is a repository; the start folder is one"),
    harmless("^/.git/info/exclude", "names of files to ignore"),
    harmless("^/.gitignore", "names of files to ignore"),
    harmless("^/.ignore", "names of files to ignore"),
    harmless("^/.jj", "whether there is a repository; the start folder is one"),
    harmless("^/node_modules", "whether a package is above its config folder; nothing is loaded"),
    harmless("^/package.json", "whether a package is above its config folder; nothing is loaded"),
    harmless("~/.local/share/opencode", "a folder"),
    harmless("~/.local/share/opencode/log", "its log"),
    harmless("~/.local/share/opencode/log/**", "its log"),
    harmless("~/.local/share/opencode/repos", "a folder"),
    harmless("~/.local/state/opencode", "a folder"),
    harmless("~/.local/state/opencode/locks", "locks between its processes"),
    harmless("~/.local/state/opencode/locks/**", "locks between its processes"),
    harmless("~/.cache", "a folder"),
    harmless("~/.cache/opencode", "a folder"),
    harmless("~/.local/state", "a folder"),
    harmless("~/.cache/opencode/**", "programs and the list of models that it downloaded itself"),
];

const VARIABLES: &[VariableRead] = &[
    set("HOME", "a private home"),
    set("OPENCODE_CONFIG_CONTENT", "our config"),
    set("OPENCODE_DB", "a private database"),
    set("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    set("OPENCODE_DISABLE_CLAUDE_CODE", "1"),
    set("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
    set("OPENCODE_DISABLE_EXTERNAL_SKILLS", "1"),
    set("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    set("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    set("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
    set("OPENCODE_TEST_HOME", "a private home"),
    set("XDG_CACHE_HOME", "the person's folder"),
    set("XDG_CONFIG_HOME", "a private folder"),
    set("XDG_DATA_HOME", "the person's folder, for the login"),
    set("XDG_STATE_HOME", "the person's folder"),
    kept("OPENCODE_API_KEY", "login"),
    kept("OPENCODE_AUTH_CONTENT", "login; entries of the type `wellknown` are taken out"),
    kept("OPENCODE_CONSOLE_TOKEN", "login"),
    kept("OPENCODE_LOG_LEVEL", "logging"),
    kept("OPENCODE_PRINT_LOGS", "logging"),
    removed("OPENCODE_*"),
    removed("XDG_CONFIG_DIRS"),
    removed("BABEL_*"),
    removed("BROWSERSLIST*"),
    removed("CLAUDE_CODE_SSE_PORT"),
    removed("OTUI_*"),
];
