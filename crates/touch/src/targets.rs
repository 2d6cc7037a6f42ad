//! Determines the resource that a call touched, from its arguments. Two agents that touch the same
//! thing must get the same name for it, so nothing is guessed, shortened or dependent on map order.

mod canonical;
mod generic;
mod keys;
mod manifest;
mod mapping;
mod name;
mod plan;
mod shell;
mod sql;
mod table;
mod template;
mod touched;
mod uri;
mod verb;
mod words;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use canonical::WEB;
pub use keys::KnownKeys;
pub use mapping::{
    FitTool, MAPPING_RULES_MAX, RULE_TEMPLATES_MAX, RuleResource, TargetMapping, TargetRule,
    ToolPattern, UnfitTargetRule, glob, system_fault,
};
pub use name::{NameLosses, SecretTexts};
pub use plan::{CallPlace, ExplainedTargets, PlanStep, PlannedTargets, TargetPlan, ToolShape};
use redact::REDACTED;
pub use table::{KnownServer, known_servers};
pub use template::{TARGET_FILTERS, TargetTemplate, TargetTemplateFault};
use touched::FOUND_MAX;
pub use touched::{Access, TOUCHED_MAX, TargetBasis, Touched, Touches};

/// The limits of the receipt format.
pub const SYSTEM_BYTES_MAX: usize = 256;
pub const RESOURCE_BYTES_MAX: usize = 4096;

/// The system of files, whichever tool touches them.
pub const FILESYSTEM: &str = "filesystem";

const URI: [&str; 3] = ["url", "uri", "endpoint"];
const TABLE: [&str; 2] = ["table", "collection"];
const TABLE_HOME: [&str; 4] = ["database", "schema", "dataset", "keyspace"];
const GENERIC: [&str; 6] = ["path", "key", "bucket", "object", "resource", "resource_id"];

/// A system and a resource in it; neither is ever empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Target {
    system: String,
    resource: String,
}

impl Target {
    /// Returns `None` if either is empty, too long (a truncated resource would name something
    /// else), or not a valid name. Possible credentials are removed from an address.
    pub fn new(system: &str, resource: String) -> Option<Target> {
        // Userinfo may make an address longer than what is kept of it.
        let is_data = resource.len() > 4 * RESOURCE_BYTES_MAX || is_json(&resource);
        if is_data || [system, &resource].into_iter().any(|text| text.contains(is_break)) {
            return None;
        }
        let is_address = uri::is_address(&resource);
        Target::recorded(system, if is_address { uri::canonical(&resource)? } else { resource })
    }

    /// Returns a file of this machine by its absolute path on the disk, of any length and with any
    /// characters. `recordable` makes a name of it.
    pub fn of_path(path: String) -> Option<Target> {
        (!path.is_empty()).then(|| Target { system: FILESYSTEM.to_owned(), resource: path })
    }

    /// Returns a path in something other than this machine's disk, of any length and with any
    /// characters. `recordable` makes a name of it.
    fn of_server(system: &str, path: String) -> Option<Target> {
        if path.contains("://") || path.starts_with("//") {
            return Target::new(system, path);
        }
        (!path.is_empty()).then(|| Target { system: system.to_owned(), resource: path })
    }

    /// Returns a target from a record, whatever rules applied when the record was made.
    pub fn recorded(system: &str, resource: String) -> Option<Target> {
        let fits = |text: &str, bytes_max: usize| !text.is_empty() && text.len() <= bytes_max;
        let both = fits(system, SYSTEM_BYTES_MAX) && fits(&resource, RESOURCE_BYTES_MAX);
        both.then(|| Target { system: system.to_owned(), resource })
    }

    /// Reports whether it is a file whose name depends on the links in its path.
    pub fn is_unresolved(&self) -> bool {
        self.system == FILESYSTEM && self.resource.split('/').any(|segment| segment == "..")
    }

    pub fn system(&self) -> &str {
        &self.system
    }

    pub fn resource(&self) -> &str {
        &self.resource
    }
}

/// Returns the target of a call to a server's tool. The tool's name is ignored: names are the
/// server's choice, and two tools that reach one table must yield one target.
pub fn extract(server: &str, _tool: &str, arguments: &Map<String, Value>) -> Option<Target> {
    if server.trim().is_empty() {
        return None;
    }
    let exact = Arguments { map: arguments, spelling: Spelling::Exact };
    let any_case = Arguments { map: arguments, spelling: Spelling::AnyCase };
    let Finding::Resource(resource) = exact.find().or_else(|| any_case.find())? else {
        return None;
    };
    Target::new(server, resource)
}

/// Returns the target of a built-in tool: its file or folder, or for a command the one file that it
/// certainly changes. `root` is the tools' working directory; only a shell knows a `home`.
pub fn of_builtin(
    tool: &str,
    arguments: &Map<String, Value>,
    root: &str,
    home: Option<&str>,
) -> Option<Target> {
    let text = |names: &[&str]| {
        let given = names.iter().filter_map(|name| arguments.get(*name));
        given.into_iter().find(|value| !value.is_null()).and_then(Value::as_str)
    };
    match tool {
        "Read" | "Write" | "Edit" => of_file(text(&["path", "file_path"])?, root),
        "Glob" => of_file(text(&["cwd", "path"]).unwrap_or("."), root),
        "Grep" => of_file(text(&["path", "cwd"]).unwrap_or("."), root),
        "Bash" => {
            let cwd = absolute(text(&["cwd"]).unwrap_or("."), root, Parents::Kept)?;
            of_shell(text(&["command"])?, &cwd, home)
        }
        _ => None,
    }
}

/// Returns the target for a file of this machine; a relative path needs an absolute `cwd`.
pub fn of_file(path: &str, cwd: &str) -> Option<Target> {
    Target::of_path(clean(path, cwd)?)
}

/// Returns the target for a file that a program of this user names, to which `~` is its home.
pub fn of_own_file(path: &str, cwd: &str, home: Option<&str>) -> Option<Target> {
    of_file(&canonical::from_home(path, home), cwd)
}

/// Returns the target for a server's resource: a file of this machine, an address that means the same
/// to everyone, or something of the server's own.
pub fn of_resource(server: &str, uri: &str, place: &CallPlace<'_>) -> Option<Target> {
    let here = || canonical::is_file_address(uri).then(|| canonical::file(uri, place)).flatten();
    let own = || Target::new(server, uri.to_owned());
    here().or_else(|| canonical::web(uri, place)).or_else(own)
}

/// Returns the one file that a shell command certainly changes, if there is exactly one. Its path
/// keeps each `..`, which leads out of the folder that a link before it leads to: only once the links
/// are followed is it the name of a file. `home` is the folder that `~` means to the shell.
pub fn of_shell(command: &str, cwd: &str, home: Option<&str>) -> Option<Target> {
    Target::of_path(absolute(&shell::changed_file(command, home)?, cwd, Parents::Kept)?)
}

/// Returns the one file that a command of the built-in shell reads, if that is all that it does. Its
/// path is that of [`of_shell`].
pub fn read_by_builtin(
    tool: &str,
    arguments: &Map<String, Value>,
    root: &str,
    home: Option<&str>,
) -> Option<Target> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let command = text("command").filter(|_| tool == "Bash")?;
    let cwd = absolute(text("cwd").unwrap_or("."), root, Parents::Kept)?;
    Target::of_path(absolute(&shell::read_file(command, home)?, &cwd, Parents::Kept)?)
}

/// The result of the first key that applies. A match ends the search even if its value is unusable.
enum Finding {
    Resource(String),
    Nothing,
}

impl Finding {
    fn of(resource: Option<String>) -> Finding {
        resource.map_or(Finding::Nothing, Finding::Resource)
    }

    fn joined(first: &str, sign: char, second: &str) -> Finding {
        let parts = [first, second].map(uri::without_credentials);
        Finding::of(match parts {
            [Some(first), Some(second)] => Some(format!("{first}{sign}{second}")),
            _ => None,
        })
    }
}

enum Spelling {
    Exact,
    AnyCase,
}

struct Arguments<'a> {
    map: &'a Map<String, Value>,
    spelling: Spelling,
}

impl<'a> Arguments<'a> {
    fn find(&self) -> Option<Finding> {
        if let Some(text) = self.first(&URI) {
            return Some(Finding::of(uri::canonical(text)));
        }
        self.table().or_else(|| self.repository()).or_else(|| self.generic())
    }

    fn table(&self) -> Option<Finding> {
        let table = self.first(&TABLE)?;
        Some(match self.first(&TABLE_HOME) {
            Some(home) => Finding::joined(home, '.', table),
            None => Finding::of(uri::without_credentials(table)),
        })
    }

    fn repository(&self) -> Option<Finding> {
        Some(Finding::joined(self.get("owner")?, '/', self.get("repo")?))
    }

    fn generic(&self) -> Option<Finding> {
        Some(Finding::of(uri::without_credentials(self.first(&GENERIC)?)))
    }

    fn first(&self, keys: &[&str]) -> Option<&'a str> {
        keys.iter().find_map(|key| self.get(key))
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        match self.spelling {
            Spelling::Exact => self.map.get(key).and_then(usable),
            Spelling::AnyCase => self
                .map
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case(key))
                .filter_map(|(name, value)| Some((name, usable(value)?)))
                .min_by_key(|(name, _)| *name)
                .map(|(_, text)| text),
        }
    }
}

/// Reports whether a character ends a line or a text; a name is one line.
fn is_break(char: char) -> bool {
    matches!(char, '\0' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Reports whether text is a document passed as a value, not the name of one.
fn is_json(text: &str) -> bool {
    let within = |open, close| text.starts_with(open) && text.ends_with(close);
    (within('{', '}') || within('[', ']')) && text != REDACTED
}

fn usable(value: &Value) -> Option<&str> {
    value.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// The treatment of each `..` in a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parents {
    Resolved,
    Kept,
}

/// Makes a path absolute, without `.`, `..`, and doubled or trailing slashes. Links are not
/// followed: that would need the disk, and the result could differ the next time.
fn clean(path: &str, cwd: &str) -> Option<String> {
    absolute(path, cwd, Parents::Resolved)
}

fn absolute(path: &str, cwd: &str, parents: Parents) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    let start = if path.starts_with('/') { "/" } else { cwd };
    if !start.starts_with('/') {
        return None;
    }
    let mut whole = String::with_capacity(start.len() + path.len() + 1);
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parents == Parents::Resolved || whole.is_empty() => {
                whole.truncate(whole.rfind('/').unwrap_or(0))
            }
            part => {
                whole.push('/');
                whole.push_str(part);
            }
        }
    }
    if whole.is_empty() {
        whole.push('/');
    }
    Some(whole)
}

/// Removes `.`, `..` and doubled or trailing slashes from a path that may be relative. An address
/// stays, unless its `..` lead out of it: `x://../a` is a path.
fn tidy(path: &str) -> Cow<'_, str> {
    let is_odd = path.contains("//")
        || path.contains("/.")
        || path.starts_with("./")
        || path.starts_with("../")
        || (path.len() > 1 && path.ends_with('/'));
    if !is_odd {
        return Cow::Borrowed(path);
    }
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match (part, parts.last().copied()) {
            ("" | ".", _) => {}
            ("..", None) if is_absolute => {}
            // The meaning of `~` is not known here.
            ("..", None | Some(".." | "~")) => parts.push(part),
            ("..", Some(_)) => drop(parts.pop()),
            (part, _) => parts.push(part),
        }
    }
    if path.contains("://") && parts.first() == path.split('/').next().as_ref() {
        return Cow::Borrowed(path);
    }
    let inner = parts.join("/");
    Cow::Owned(match (is_absolute, inner.is_empty()) {
        (true, _) => format!("/{inner}"),
        (false, true) => ".".to_owned(),
        (false, false) => inner,
    })
}
