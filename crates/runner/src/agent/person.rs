//! The parts of the person's own setup that a step uses: the environment, Gemini's folder,
//! OpenCode's login, and the variables in Codex's folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use text::json;

use crate::agent::error::AgentError;
use crate::agent::program::Provider;

/// Settings and memory files of people are far smaller.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The environment the agent would inherit. It holds keys, so it is never shown.
#[derive(Clone, Default)]
pub struct Person {
    env: BTreeMap<String, String>,
}

impl Person {
    /// Takes `std::env::vars_os()`. Variables that are not UTF-8 are inherited but not inspected.
    pub fn new(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Person {
        let texts = vars.into_iter().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        });
        Person { env: texts.collect() }
    }

    pub(super) fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the variables for which `matches` is true.
    pub(super) fn names(&self, matches: impl Fn(&str) -> bool) -> Vec<String> {
        self.env.keys().filter(|name| matches(name)).cloned().collect()
    }
}

/// The content of Gemini's own folder.
#[derive(Default)]
pub(super) struct GeminiFolder {
    pub(super) path: PathBuf,
    /// The names of all entries in it.
    pub(super) entries: Vec<String>,
    pub(super) settings: Option<Value>,
    pub(super) memory: Option<String>,
    pub(super) env: Option<String>,
}

impl GeminiFolder {
    /// Reads the folder; a missing folder counts as empty.
    pub(super) fn read(path: &Path) -> Result<GeminiFolder, AgentError> {
        let unreadable = |cause: std::io::Error| AgentError::Unreadable {
            path: path.to_owned(),
            cause: cause.to_string(),
        };
        let listed = match std::fs::read_dir(path) {
            Ok(listed) => listed,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(GeminiFolder::default()),
            Err(error) => return Err(unreadable(error)),
        };
        let mut entries = Vec::new();
        for entry in listed {
            entries.extend(entry.map_err(unreadable)?.file_name().into_string().ok());
        }
        entries.sort();
        let settings = match text(&path.join("settings.json"))? {
            Some(text) => Some(settings(&path.join("settings.json"), &text)?),
            None => None,
        };
        let memory = text(&path.join("GEMINI.md"))?;
        let env = text(&path.join(".env"))?;
        Ok(GeminiFolder { path: path.to_owned(), entries, settings, memory, env })
    }
}

/// Reads a file that holds a JSON object; a missing file, or one that the program itself would
/// ignore, counts as empty.
pub(super) fn json_object(path: &Path) -> Result<Map<String, Value>, AgentError> {
    let value = text(path)?.and_then(|text| serde_json::from_str(&text).ok());
    Ok(value.and_then(|value: Value| value.as_object().cloned()).unwrap_or_default())
}

/// Checks the file of variables that Codex loads into its own process and into every program that
/// it starts, whatever its flags. Only logins and addresses may be in it.
pub(super) fn check_codex_variables(path: &Path) -> Result<(), AgentError> {
    let text = text(path)?.unwrap_or_default();
    let names = text.lines().filter_map(variable_name);
    let harmful: Vec<&str> = names.filter(|name| !is_login_variable(name)).collect();
    if harmful.is_empty() {
        return Ok(());
    }
    let (path, names) = (path.display(), harmful.join(", "));
    let reason = format!(
        "it would load {names} from {path} into every program that it starts; remove them from that \
         file"
    );
    Err(AgentError::CannotIsolate { provider: Provider::Codex, reason })
}

fn variable_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    let name = line.split(['=', ':']).next().unwrap_or_default().trim();
    Some(name).filter(|name| !name.is_empty() && !name.starts_with('#'))
}

/// Reports whether a variable holds a login or an address, and steers nothing else.
fn is_login_variable(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let endings = ["_KEY", "_TOKEN", "_URL", "_PROXY", "_SECRET", "_REGION", "_ENDPOINT"];
    endings.iter().any(|ending| upper.ends_with(ending))
        || ["OPENAI_ORGANIZATION", "OPENAI_PROJECT", "SSL_CERT_FILE"].contains(&upper.as_str())
}

fn text(path: &Path) -> Result<Option<String>, AgentError> {
    let unreadable = |cause: String| AgentError::Unreadable { path: path.to_owned(), cause };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(unreadable(format!("the file is larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(Some(text))
}

/// Parses the settings, in which Gemini allows comments.
fn settings(path: &Path, text: &str) -> Result<Value, AgentError> {
    serde_json::from_str(&without_comments(text)).map_err(|error| AgentError::Unreadable {
        path: path.to_owned(),
        cause: format!("not valid JSON, {}", json::explain_in_file(&error)),
    })
}

/// Replaces comments with blanks; strings stay unchanged.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = if first == '"' {
            string_length(rest)
        } else if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            rest = &rest[end..];
            continue;
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
            rest = &rest[end..];
            kept.push(' ');
            continue;
        } else {
            first.len_utf8()
        };
        kept.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    kept
}

/// Returns the length of the string at the start of the text, in bytes, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_left_out_and_strings_are_not() {
        for (text, expected) in [
            (r#"{"a": 1} // end"#, r#"{"a": 1} "#),
            ("{/* x */\"a\": \"//b\"}", "{ \"a\": \"//b\"}"),
            (r#"{"a\"//": "/*"}"#, r#"{"a\"//": "/*"}"#),
            ("// a\n{}", "\n{}"),
            ("{} /* open", "{}  "),
            ("\"open", "\"open"),
        ] {
            assert_eq!(without_comments(text), expected);
        }
    }

    #[test]
    fn codex_may_load_logins_and_addresses_from_its_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".env");
        assert!(check_codex_variables(&path).is_ok());
        for (text, named) in [
            (
                "# mine\nexport OPENAI_API_KEY=k\nhttps_proxy=http://x\nMY_BASE_URL=\"a=b\"\n\n",
                None,
            ),
            ("LD_PRELOAD=/x.so\n", Some("load LD_PRELOAD from")),
            ("A_KEY=k\n  export PATH=/x\nBASH_ENV: /x\n", Some("load PATH, BASH_ENV from")),
            ("GARBAGE", Some("load GARBAGE from")),
        ] {
            std::fs::write(&path, text).unwrap();
            let found = check_codex_variables(&path).err().map(|error| error.to_string());
            match named {
                None => assert_eq!(found, None, "{text}"),
                Some(named) => assert!(found.unwrap().contains(named), "{text}"),
            }
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let folder = GeminiFolder::read(&dir.path().join("none")).unwrap();
        assert!(folder.entries.is_empty() && folder.settings.is_none());
    }

    #[test]
    fn broken_settings_are_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("settings.json"), "{\"a\": ").unwrap();
        let error = GeminiFolder::read(dir.path()).err().unwrap().to_string();
        assert!(error.starts_with("cannot read "), "{error}");
        assert!(error.contains("settings.json: not valid JSON"), "{error}");
    }
}
