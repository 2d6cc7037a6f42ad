//! The files and variables that Codex reads.

use super::{FileRead, ReadTable, VariableRead, harmless, kept, ours, removed, set, shut};
use crate::agent::program::Provider;

pub(super) const TABLE: ReadTable =
    ReadTable { provider: Provider::Codex, version: "0.166.0", files: FILES, variables: VARIABLES };

const FILES: &[FileRead] = &[
    ours("+/**", "the step's private folder"),
    harmless("^/", "a folder on the way to the private one"),
    harmless("^/.git", "whether there is a repository; nothing in it is used"),
    harmless(
        "^/.*-plugin/plugin.json",
        "whether a skill belongs to a plugin; plugins are disabled",
    ),
    harmless("~/.codex/.*-plugin/plugin.json", "the same"),
    ours("~/.codex", "the folder of the login"),
    ours("~/.codex/auth.json", "login"),
    shut("~/.codex/.env", "the step fails if more than logins is in it"),
    harmless("~/.codex/*.sqlite*", "state of the program"),
    harmless("~/.codex/installation_id", "a number"),
    harmless("~/.codex/sessions", "a folder; the session is not kept (`--ephemeral`)"),
    harmless("~/.codex/archived_sessions", "a folder"),
    harmless("~/.codex/AGENTS.md", "the person's own instructions, as text"),
    harmless("~/.codex/AGENTS.override.md", "the person's own instructions, as text"),
    harmless("~/.codex/skills", "descriptions, as text; there is no tool that runs a skill"),
    harmless("~/.codex/skills/**", "descriptions, as text; there is no tool that runs a skill"),
    harmless("~/.codex/agents", "there is no tool that starts another agent"),
];

const VARIABLES: &[VariableRead] = &[
    set("CODEX_HOME", "the person's folder, for the login"),
    set("HOME", "a private home"),
    kept("CODEX_ACCESS_TOKEN", "login"),
    kept("CODEX_API_KEY", "login"),
    kept("CODEX_CA_CERTIFICATE", "certificates"),
    removed("CODEX_*"),
    kept("OPENAI_*", "login and the endpoint"),
];
