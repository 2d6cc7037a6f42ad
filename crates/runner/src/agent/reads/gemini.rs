//! The files and variables that Gemini CLI reads.

use super::{FileRead, ReadTable, VariableRead, harmless, kept, ours, removed, set, shut};
use crate::agent::program::Provider;

pub(super) const TABLE: ReadTable =
    ReadTable { provider: Provider::Gemini, version: "0.61.0", files: FILES, variables: VARIABLES };

const FILES: &[FileRead] = &[
    ours("+/**", "the step's private folder"),
    harmless("^/", "a folder on the way to the private one"),
    harmless("^/.git", "whether there is a repository; nothing in it is used"),
    shut("^/.env", "`ignoreLocalEnv`, and a file in the start folder that ends the search"),
];

const VARIABLES: &[VariableRead] = &[
    set("GEMINI_CLI_HOME", "a private home"),
    set("GEMINI_CLI_NO_RELAUNCH", "true"),
    set("GEMINI_SANDBOX", "false"),
    set("HOME", "a private home"),
    kept("GEMINI_API_KEY", "login"),
    kept("GEMINI_API_KEY_AUTH_MECHANISM", "login"),
    kept("GEMINI_CLI_CUSTOM_HEADERS", "headers of requests to the model"),
    kept("GEMINI_CLI_SURFACE", "a name in requests to the model"),
    kept("GEMINI_CLI_USE_COMPUTE_ADC", "login"),
    kept("GEMINI_DEFAULT_AUTH_TYPE", "login"),
    kept("GEMINI_MODEL", "the name of a model"),
    removed("GEMINI_*"),
    removed("SANDBOX*"),
    removed("SEATBELT_PROFILE"),
    removed("BUILD_SANDBOX"),
    removed("ANTIGRAVITY_CLI_ALIAS"),
    removed("DOTENV_KEY"),
    kept("GOOGLE_*", "login and the endpoint"),
];
