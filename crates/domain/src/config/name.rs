//! Names of servers, plugins and profiles, and names that are near to a wrong one.

use super::report::Report;
use text::document::Member;
use text::near;

/// The limit that clients set on tool names.
const NAME_CHARS_MAX: usize = 64;

/// Returns the fault in the name of a server or profile. Names appear in URLs and tool ids, so only
/// plain characters are allowed.
pub fn name_fault(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let fault = if name.is_empty() {
        "a name must not be empty"
    } else if name.len() > NAME_CHARS_MAX {
        "a name must have at most 64 characters"
    } else if !name.chars().all(plain) {
        "a name may contain only letters, digits, '_', '.' and '-'"
    } else if matches!(name, "." | "..") {
        "a name must not be '.' or '..'"
    } else {
        return None;
    };
    Some(fault.to_owned())
}

pub(super) fn check_name(entry: &Member<'_>, report: &mut Report) {
    if let Some(fault) = name_fault(entry.name) {
        report.fault(&entry.key, fault);
    }
}

/// Returns `, did you mean 'command'?`, or nothing if no name is near.
pub(super) fn did_you_mean<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    match near::names(word, names, 1).first() {
        Some(name) => format!(", did you mean '{name}'?"),
        None => String::new(),
    }
}
