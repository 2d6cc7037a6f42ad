//! What host and plugin agree on before the first message: variables of the environment in one
//! direction, one line on stdout in the other.

/// A plugin that is started without it is not started by a host.
pub const COOKIE_KEY: &str = "AWF_PLUGIN";
pub const COOKIE_VALUE: &str = "awf-plugin-v1";

/// Of go-plugin, and of what is spoken over it.
pub const CORE_VERSION: u32 = 1;
pub const PROTOCOL_VERSION: u32 = 1;

/// The versions that the host speaks, separated by commas.
pub const PROTOCOL_VERSIONS: &str = "PLUGIN_PROTOCOL_VERSIONS";

/// Where the plugin makes its socket.
pub const SOCKET_DIR: &str = "PLUGIN_UNIX_SOCKET_DIR";

/// Set by hosts that want mutual TLS.
pub const CLIENT_CERT: &str = "PLUGIN_CLIENT_CERT";

/// The name under which a plugin's health is asked for.
pub const HEALTH_SERVICE: &str = "plugin";

/// Where a plugin listens, as its line on stdout says:
/// `core|protocol|network|address|grpc|certificate`, of which the last may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeLine<'a> {
    pub core_version: u32,
    pub protocol_version: u32,
    pub network: &'a str,
    pub address: &'a str,
    /// `grpc`, or go-plugin's older `netrpc`, which it leaves out.
    pub protocol: &'a str,
    pub certificate: &'a str,
}

impl<'a> HandshakeLine<'a> {
    /// Nothing where the text is no such line at all.
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
