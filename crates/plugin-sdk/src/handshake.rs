//! The handshake of host and plugin before the first message: environment variables in one
//! direction, one line on stdout in the other.

/// A plugin without this variable was not started by a host.
pub const COOKIE_KEY: &str = "AWF_PLUGIN";
pub const COOKIE_VALUE: &str = "awf-plugin-v1";

/// The versions of go-plugin's handshake, and of the protocol on top of it.
pub const CORE_VERSION: u32 = 1;
pub const PROTOCOL_VERSION: u32 = 1;

/// The protocol versions the host supports, separated by commas.
pub const PROTOCOL_VERSIONS: &str = "PLUGIN_PROTOCOL_VERSIONS";

/// The folder in which the plugin creates its socket.
pub const SOCKET_DIR: &str = "PLUGIN_UNIX_SOCKET_DIR";

/// Set by hosts that require mutual TLS.
pub const CLIENT_CERT: &str = "PLUGIN_CLIENT_CERT";

/// The service name for a plugin's health checks.
pub const HEALTH_SERVICE: &str = "plugin";

/// A plugin's address, as written in its line on stdout:
/// `core|protocol|network|address|grpc|certificate`, of which the last may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeLine<'a> {
    pub core_version: u32,
    pub protocol_version: u32,
    pub network: &'a str,
    pub address: &'a str,
    /// `grpc`, or go-plugin's older `netrpc`, which is the default.
    pub protocol: &'a str,
    pub certificate: &'a str,
}

impl<'a> HandshakeLine<'a> {
    /// Parses the line; `None` if the text is not one at all.
    pub fn parse(text: &'a str) -> Option<HandshakeLine<'a>> {
        let mut parts = text.trim_end().split('|');
        let core_version = parts.next()?.trim_start().parse().ok()?;
        let protocol_version = parts.next()?.parse().ok()?;
        let (network, address) = (parts.next()?, parts.next()?);
        let protocol = parts.next().unwrap_or("netrpc");
        let certificate = parts.next().unwrap_or_default();
        Some(HandshakeLine {
            core_version,
            protocol_version,
            network,
            address,
            protocol,
            certificate,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_the_plugin_listens() {
        let whole = HandshakeLine {
            core_version: 1,
            protocol_version: 1,
            network: "unix",
            address: "/x/plugin1",
            protocol: "grpc",
            certificate: "",
        };
        for (text, expected) in [
            ("1|1|unix|/x/plugin1|grpc", Some(whole)),
            ("1|1|unix|/x/plugin1|grpc|\r\n", Some(whole)),
            (
                "1|1|unix|/x/plugin1|grpc|MIIB|true",
                Some(HandshakeLine { certificate: "MIIB", ..whole }),
            ),
            ("1|7|unix|/x/plugin1|grpc|", Some(HandshakeLine { protocol_version: 7, ..whole })),
            ("1|1|unix|/x/plugin1", Some(HandshakeLine { protocol: "netrpc", ..whole })),
            ("starting…", None),
            ("", None),
            ("1|1|unix", None),
            ("a|b|unix|/x|grpc|", None),
        ] {
            assert_eq!(HandshakeLine::parse(text), expected, "{text}");
        }
    }
}
