//! The programs that can be connected, with the files that they read and the form of their entries.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The name of our entry in every client's file.
pub const ENTRY: &str = "countersign";

/// The syntax of a client's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingsSyntax {
    /// JSON, in which comments and trailing commas are kept.
    Json,
    Toml,
}

/// The way from the client to the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientRoute {
    /// The client starts this command and talks to it over stdio.
    Command { program: String, args: Vec<String> },
    /// The client sends its token to a running gate.
    Http { url: String, token: String },
}

/// The folders in which clients' files are looked for.
#[derive(Clone, Debug)]
pub struct Roots {
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, or its default.
    pub config: PathBuf,
    pub folder: PathBuf,
    pub is_mac: bool,
}

/// A program that can be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum ClientProgram {
    Claude,
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
    Codex,
    Gemini,
    #[value(name = "opencode")]
    OpenCode,
    Windsurf,
    Zed,
}

/// The file to write: the person's own, or the one in the current folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SettingsScope {
    User,
    Project,
}

impl ClientProgram {
    /// The name that people type.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    pub fn title(self) -> &'static str {
        match self {
            ClientProgram::Claude => "Claude Code",
            ClientProgram::ClaudeDesktop => "Claude Desktop",
            ClientProgram::Cursor => "Cursor",
            ClientProgram::VsCode => "VS Code",
            ClientProgram::Codex => "Codex",
            ClientProgram::Gemini => "Gemini CLI",
            ClientProgram::OpenCode => "OpenCode",
            ClientProgram::Windsurf => "Windsurf",
            ClientProgram::Zed => "Zed",
        }
    }

    /// Returns the file that holds the client's servers, whether it exists or not.
    pub fn file(self, scope: SettingsScope, roots: &Roots) -> Option<PathBuf> {
        match scope {
            SettingsScope::User => Some(self.own_file(roots)),
            SettingsScope::Project => {
                let below = match self {
                    ClientProgram::Claude => ".mcp.json",
                    ClientProgram::Cursor => ".cursor/mcp.json",
                    ClientProgram::VsCode => ".vscode/mcp.json",
                    ClientProgram::Gemini => ".gemini/settings.json",
                    ClientProgram::OpenCode => "opencode.json",
                    ClientProgram::Zed => ".zed/settings.json",
                    ClientProgram::ClaudeDesktop
                    | ClientProgram::Codex
                    | ClientProgram::Windsurf => return None,
                };
                Some(roots.folder.join(below))
            }
        }
    }

    fn own_file(self, roots: &Roots) -> PathBuf {
        let application = roots.home.join("Library/Application Support");
        let settings = if roots.is_mac { &application } else { &roots.config };
        match self {
            ClientProgram::Claude => roots.home.join(".claude.json"),
            ClientProgram::ClaudeDesktop => settings.join("Claude/claude_desktop_config.json"),
            ClientProgram::Cursor => roots.home.join(".cursor/mcp.json"),
            ClientProgram::VsCode => settings.join("Code/User/mcp.json"),
            ClientProgram::Codex => roots.home.join(".codex/config.toml"),
            ClientProgram::Gemini => roots.home.join(".gemini/settings.json"),
            ClientProgram::OpenCode => {
                let folder = roots.config.join("opencode");
                let commented = folder.join("opencode.jsonc");
                if commented.exists() { commented } else { folder.join("opencode.json") }
            }
            ClientProgram::Windsurf => roots.home.join(".codeium/windsurf/mcp_config.json"),
            ClientProgram::Zed => roots.config.join("zed/settings.json"),
        }
    }

    /// Reports whether the client appears to be installed: its file or folder is there, or its
    /// program is on the `PATH`.
    pub fn is_found(self, roots: &Roots, is_on_path: impl Fn(&str) -> bool) -> bool {
        let file = self.own_file(roots);
        // The home itself is no evidence.
        let folder = file.parent().filter(|folder| *folder != roots.home);
        file.exists() || folder.is_some_and(Path::exists) || self.program().is_some_and(is_on_path)
    }

    fn program(self) -> Option<&'static str> {
        match self {
            ClientProgram::Claude => Some("claude"),
            ClientProgram::Codex => Some("codex"),
            ClientProgram::Gemini => Some("gemini"),
            ClientProgram::OpenCode => Some("opencode"),
            ClientProgram::ClaudeDesktop
            | ClientProgram::Cursor
            | ClientProgram::VsCode
            | ClientProgram::Windsurf
            | ClientProgram::Zed => None,
        }
    }

    pub fn syntax(self) -> SettingsSyntax {
        if self == ClientProgram::Codex { SettingsSyntax::Toml } else { SettingsSyntax::Json }
    }

    /// The member of the file that holds the servers, by name.
    pub fn container(self) -> &'static str {
        match self {
            ClientProgram::Claude
            | ClientProgram::ClaudeDesktop
            | ClientProgram::Cursor
            | ClientProgram::Gemini
            | ClientProgram::Windsurf => "mcpServers",
            ClientProgram::VsCode => "servers",
            ClientProgram::Codex => "mcp_servers",
            ClientProgram::OpenCode => "mcp",
            ClientProgram::Zed => "context_servers",
        }
    }

    /// Returns a reference to an environment variable, as the client writes it in the settings of a
    /// folder; `None` if it reads none there.
    pub fn variable(self, name: &str) -> Option<String> {
        match self {
            ClientProgram::Claude | ClientProgram::Gemini => Some(format!("${{{name}}}")),
            ClientProgram::Cursor | ClientProgram::VsCode => Some(format!("${{env:{name}}}")),
            ClientProgram::OpenCode => Some(format!("{{env:{name}}}")),
            ClientProgram::ClaudeDesktop
            | ClientProgram::Codex
            | ClientProgram::Windsurf
            | ClientProgram::Zed => None,
        }
    }

    /// Reports whether the program itself rewrites the file while it runs. Then an undo removes our
    /// entry and leaves everything else.
    pub fn rewrites_its_file(self) -> bool {
        self == ClientProgram::Claude
    }

    /// Returns our entry in the client's form; `None` if the client has no such route.
    pub fn entry(self, route: &ClientRoute) -> Option<Value> {
        let entry = match route {
            ClientRoute::Command { program, args } => match self {
                ClientProgram::OpenCode => {
                    let words: Vec<&str> =
                        std::iter::once(program).chain(args).map(String::as_str).collect();
                    json!({"type": "local", "command": words, "enabled": true})
                }
                ClientProgram::Zed => json!({"source": "custom", "command": program, "args": args}),
                ClientProgram::Claude | ClientProgram::VsCode => {
                    json!({"type": "stdio", "command": program, "args": args})
                }
                ClientProgram::ClaudeDesktop
                | ClientProgram::Cursor
                | ClientProgram::Codex
                | ClientProgram::Gemini
                | ClientProgram::Windsurf => json!({"command": program, "args": args}),
            },
            ClientRoute::Http { url, token } => {
                let headers = json!({"Authorization": format!("Bearer {token}")});
                match self {
                    ClientProgram::Claude | ClientProgram::VsCode => {
                        json!({"type": "http", "url": url, "headers": headers})
                    }
                    ClientProgram::Cursor | ClientProgram::Zed => {
                        json!({"url": url, "headers": headers})
                    }
                    ClientProgram::Gemini => json!({"httpUrl": url, "headers": headers}),
                    ClientProgram::Windsurf => json!({"serverUrl": url, "headers": headers}),
                    ClientProgram::OpenCode => {
                        json!({"type": "remote", "url": url, "headers": headers, "enabled": true})
                    }
                    ClientProgram::Codex => json!({"url": url, "http_headers": headers}),
                    ClientProgram::ClaudeDesktop => return None,
                }
            }
        };
        Some(entry)
    }
}

/// The permissions of Claude Code that fit the gate's tools: what only reads needs no question.
pub fn claude_permissions() -> Map<String, Value> {
    let tools = |names: &[&str]| -> Value {
        names.iter().map(|name| format!("mcp__{ENTRY}__{name}")).collect()
    };
    let allow =
        ["retrieve_tools", "describe_tool", "call_tool_read", "read_cache", "upstream_servers"];
    let ask = ["call_tool_write", "call_tool_destructive"];
    Map::from_iter([("allow".to_owned(), tools(&allow)), ("ask".to_owned(), tools(&ask))])
}

/// Returns the command that starts this program again from a client. A program that `uvx` or `npx`
/// unpacked for one run may be gone tomorrow, so these start it themselves.
pub fn launcher(program: &Path) -> (String, Vec<String>) {
    let path = program.to_string_lossy();
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    if path.contains("/uv/") && path.contains("/archive-v") {
        ("uvx".to_owned(), words(&["countersign"]))
    } else if path.contains("/_npx/") {
        ("npx".to_owned(), words(&["--yes", "countersign"]))
    } else {
        (path.into_owned(), Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(is_mac: bool) -> Roots {
        Roots {
            home: "/h/ann".into(),
            config: "/h/ann/.config".into(),
            folder: "/project".into(),
            is_mac,
        }
    }

    #[test]
    fn every_client_has_a_file_and_an_entry_for_a_command() {
        let route =
            ClientRoute::Command { program: "/bin/countersign".into(), args: vec!["mcp".into()] };
        for client in ClientProgram::value_variants() {
            assert!(client.file(SettingsScope::User, &roots(false)).is_some(), "{client:?}");
            let entry = client.entry(&route).expect("a command works everywhere");
            assert!(entry.to_string().contains("/bin/countersign"), "{entry}");
        }
    }

    #[test]
    fn files_are_where_each_system_keeps_them() {
        for (client, is_mac, path) in [
            (ClientProgram::Claude, false, "/h/ann/.claude.json"),
            (ClientProgram::VsCode, false, "/h/ann/.config/Code/User/mcp.json"),
            (ClientProgram::VsCode, true, "/h/ann/Library/Application Support/Code/User/mcp.json"),
            (ClientProgram::Zed, true, "/h/ann/.config/zed/settings.json"),
        ] {
            assert_eq!(client.file(SettingsScope::User, &roots(is_mac)), Some(PathBuf::from(path)));
        }
        assert_eq!(ClientProgram::Codex.file(SettingsScope::Project, &roots(false)), None);
    }

    #[test]
    fn a_program_unpacked_for_one_run_is_started_by_its_launcher() {
        for (program, command) in [
            ("/h/ann/.cache/uv/archive-v0/x/bin/countersign", "uvx countersign"),
            ("/h/ann/.npm/_npx/1f/node_modules/c/countersign", "npx --yes countersign"),
            ("/usr/bin/countersign", "/usr/bin/countersign"),
        ] {
            let (first, rest) = launcher(Path::new(program));
            let words: Vec<String> = std::iter::once(first).chain(rest).collect();
            assert_eq!(words.join(" "), command);
        }
    }
}
