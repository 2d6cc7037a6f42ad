//! Values written as one string or number: counts, durations, addresses, hosts and origins.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use super::keys::Kind;
use super::report::Report;
use text::document::{Node, shown};
use text::duration::spell;
use text::near;

const DURATION: &str = "a duration such as \"30s\", \"2m\", \"500ms\" or a number of seconds";
const ADDRESS: &str = "expected ip:port or localhost:port, such as 127.0.0.1:7420";

/// The limit that clients set on tool names.
const NAME_CHARS_MAX: usize = 64;

/// Enough of a number to recognize it.
const NUMBER_CHARS_MAX: usize = 24;

pub(super) fn count(node: &Node<'_>, kind: Kind, report: &mut Report) -> Option<u32> {
    let (or_zero, min, max) = match kind {
        Kind::CountOrZero { min, max } => (true, min, max),
        Kind::Count { min, max } => (false, min, max),
        _ => (false, 0, u32::MAX),
    };
    let digits = report.take(node.digits())?;
    match digits.parse::<u32>() {
        Ok(0) if or_zero => Some(0),
        Ok(count) if (min..=max).contains(&count) => Some(count),
        _ => {
            let zero = if or_zero { "0 or " } else { "" };
            let found: String = digits.chars().take(NUMBER_CHARS_MAX).collect();
            let expected = format!("expected {zero}a whole number from {min} to {max}");
            report.fault(&node.location, format!("{expected}, found {found}"));
            None
        }
    }
}

pub(super) fn span(
    node: &Node<'_>,
    range: RangeInclusive<Duration>,
    report: &mut Report,
) -> Option<Duration> {
    let Some(span) = report.take(node.duration(DURATION))? else {
        report.fault(&node.location, format!("expected {DURATION}"));
        return None;
    };
    if !range.contains(&span) {
        let (min, max) = (spell(*range.start()), spell(*range.end()));
        report.fault(
            &node.location,
            format!("expected a duration from {min} to {max}, found {}", spell(span)),
        );
        return None;
    }
    Some(span)
}

pub(super) fn texts(node: &Node<'_>, report: &mut Report) -> Option<Vec<String>> {
    let items = report.take(node.items("a list of strings"))?;
    Some(items.filter_map(|item| report.take(item.text())).map(str::to_owned).collect())
}

pub(super) fn no_choice<T>(
    node: &Node<'_>,
    word: &str,
    names: &[&str],
    report: &mut Report,
) -> Option<T> {
    let list: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let near = did_you_mean(word, names.iter().copied());
    let message = format!("expected {}, found {}{near}", list.join(" or "), shown(word));
    report.fault(&node.location, message);
    None
}

pub(super) fn listen(node: &Node<'_>, report: &mut Report) -> Option<SocketAddr> {
    let text = report.take(node.text())?;
    let address = match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into()),
        None => text.parse().ok(),
    };
    if address.is_none() {
        report.fault(&node.location, format!("{ADDRESS}, found {}", shown(text)));
    }
    address
}

pub(super) fn hosts(node: &Node<'_>, report: &mut Report) -> Option<Vec<String>> {
    each(node, report, |text| {
        if is_host(text) {
            Ok(text)
        } else {
            Err("expected host or host:port, such as localhost:7420")
        }
    })
}

pub(super) fn origins(node: &Node<'_>, report: &mut Report) -> Option<Vec<String>> {
    each(node, report, |text| match text.split_once("://") {
        Some((scheme, host)) if is_scheme(scheme) && is_host(host) => Ok(text),
        _ => Err("expected scheme://host or scheme://host:port, without a path"),
    })
}

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

fn each(
    node: &Node<'_>,
    report: &mut Report,
    check: impl Fn(&str) -> Result<&str, &'static str>,
) -> Option<Vec<String>> {
    let mut list = Vec::new();
    for item in report.take(node.items("a list of strings"))? {
        let Some(text) = report.take(item.text()) else { continue };
        match check(text) {
            Ok(text) => list.push(text.to_ascii_lowercase()),
            Err(expected) => {
                report.fault(&item.location, format!("{expected}, found {}", shown(text)))
            }
        }
    }
    Some(list)
}

/// Rejects `*` too: it would disable the check.
fn is_host(text: &str) -> bool {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    };
    let v6 = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let named = |name: &str| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
    };
    let is_name = v6.map_or_else(|| named(name), |v6| v6.parse::<std::net::Ipv6Addr>().is_ok());
    is_name && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-'))
}

/// Returns `, did you mean 'command'?`, or nothing if no name is near.
pub(super) fn did_you_mean<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    match near::names(word, names, 1).first() {
        Some(name) => format!(", did you mean '{name}'?"),
        None => String::new(),
    }
}
