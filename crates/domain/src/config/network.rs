//! The addresses at which the gate is reached: the listener's, and the `Host` and `Origin` values that
//! it accepts.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;

use super::Config;
use super::kind::{Shape, as_json};
use super::report::Report;
use text::document::{Node, shown};

pub(super) const DEFAULT_LISTEN: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 7420);

const LOOPBACK_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

const HTTP_PORT: u16 = 80;

const HTTPS_PORT: u16 = 443;

impl Config {
    /// Returns the `Host` values to accept when listening on `port`, which may differ from the
    /// configured one (port 0, a flag).
    pub fn hosts(&self, port: u16) -> Vec<String> {
        let default = || LOOPBACK_NAMES.map(|name| self.authority(name, port)).to_vec();
        self.allowed_hosts.clone().unwrap_or_else(default)
    }

    /// Returns the `Origin` values to accept when listening on `port`.
    pub fn origins(&self, port: u16) -> Vec<String> {
        let scheme = self.scheme();
        let origin = |name| format!("{scheme}://{}", self.authority(name, port));
        self.allowed_origins.clone().unwrap_or_else(|| LOOPBACK_NAMES.map(origin).to_vec())
    }

    /// Returns a name with a port as browsers write it: without the default port of the listener's
    /// scheme.
    pub fn authority(&self, name: &str, port: u16) -> String {
        let default = if self.tls.is_some() { HTTPS_PORT } else { HTTP_PORT };
        if port == default { name.to_owned() } else { format!("{name}:{port}") }
    }

    /// Returns the scheme of the listener's URLs.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// Returns the `Host` values of a loopback listener on `port`, with the port.
pub(super) fn hosts(port: u16) -> Vec<String> {
    LOOPBACK_NAMES.map(|name| format!("{name}:{port}")).to_vec()
}

/// The address to listen on.
pub(super) const ADDRESS: Shape<SocketAddr> = Shape {
    words: "`ip:port` or `localhost:port`",
    read: |node, report| {
        let text = report.take(node.text())?;
        let address = match text.strip_prefix("localhost:") {
            Some(port) => port.parse().ok().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into()),
            None => text.parse().ok(),
        };
        if address.is_none() {
            let expected = "expected ip:port or localhost:port, such as 127.0.0.1:7420";
            report.fault(&node.location, format!("{expected}, found {}", shown(text)));
        }
        address
    },
    show: |value| Some(json!(value.to_string())),
};

pub(super) const HOSTS: Shape<Vec<String>> = Shape {
    words: "list of `host` or `host:port`",
    read: |node, report| {
        each(node, report, |text| {
            is_host(text)
                .then_some(text)
                .ok_or("expected host or host:port, such as localhost:7420")
        })
    },
    show: as_json,
};

pub(super) const ORIGINS: Shape<Vec<String>> = Shape {
    words: "list of `scheme://host:port`",
    read: |node, report| {
        each(node, report, |text| match text.split_once("://") {
            Some((scheme, host)) if is_scheme(scheme) && is_host(host) => Ok(text),
            _ => Err("expected scheme://host or scheme://host:port, without a path"),
        })
    },
    show: as_json,
};

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
