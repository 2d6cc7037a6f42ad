//! The addresses that a connection may go to. Metadata of a server names further hosts, and must not
//! lead to services that only listen on this machine.

use std::net::IpAddr;

use url::{Host, Url};

/// The addresses that the hosts of a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressRule {
    Any,
    /// Any, but never in clear text.
    AnyOverTls,
    /// None of this machine and its link.
    Remote,
}

impl AddressRule {
    /// Returns the rule for the hosts that a server names: they may be on this machine only if the
    /// server is.
    pub async fn around(server: &Url) -> AddressRule {
        let is_near = match server.host() {
            Some(Host::Domain(_)) if is_loopback(server) => true,
            Some(Host::Domain(name)) => {
                let port = server.port_or_known_default().unwrap_or(443);
                let found = tokio::net::lookup_host((name, port)).await;
                let is_near = found.is_ok_and(|found| is_all_local(found.map(|it| it.ip())));
                return if is_near { AddressRule::AnyOverTls } else { AddressRule::Remote };
            }
            Some(Host::Ipv4(address)) => is_local(address.into()),
            Some(Host::Ipv6(address)) => is_local(address.into()),
            None => false,
        };
        if is_near { AddressRule::Any } else { AddressRule::Remote }
    }
}

/// Reports whether a name leads to this machine or its link and nowhere else. Whoever answers for the
/// name can claim that, so it lifts only a part of the rule: without a certificate, no service here
/// gets a request.
fn is_all_local(addresses: impl Iterator<Item = IpAddr>) -> bool {
    let mut addresses = addresses.peekable();
    addresses.peek().is_some() && addresses.all(is_local)
}

/// Reports whether an address is of this machine or its link.
pub(super) fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_loopback()
                || address.is_link_local()
                || address.is_unspecified()
                || address.is_broadcast()
                || address.is_multicast()
        }
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unicast_link_local()
                || address.is_unspecified()
                || address.is_multicast()
        }
    }
}

/// Reports whether a URL names this machine by its loopback address or name.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_and_its_link_are_local() {
        for (address, expected) in [
            ("127.0.0.1", true),
            ("127.8.9.1", true),
            ("0.0.0.0", true),
            ("169.254.169.254", true),
            ("::1", true),
            ("::", true),
            ("fe80::1", true),
            ("::ffff:127.0.0.1", true),
            ("::ffff:169.254.169.254", true),
            ("224.0.0.1", true),
            ("93.184.216.34", false),
            ("10.0.0.1", false),
            ("2606:4700::1", false),
        ] {
            assert_eq!(is_local(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn a_name_is_near_only_if_all_its_addresses_are() {
        for (addresses, expected) in [
            (&["127.0.0.1", "::1"][..], true),
            (&["127.0.0.1", "93.184.216.34"], false),
            (&["93.184.216.34", "169.254.169.254"], false),
            (&[], false),
        ] {
            let parsed = addresses.iter().map(|address| address.parse().unwrap());
            assert_eq!(is_all_local(parsed), expected, "{addresses:?}");
        }
    }

    #[tokio::test]
    async fn hosts_may_be_near_only_if_the_server_is() {
        for (server, expected) in [
            ("http://127.0.0.1:1/mcp", AddressRule::Any),
            ("http://localhost:1/mcp", AddressRule::Any),
            ("http://[::1]/mcp", AddressRule::Any),
            ("https://93.184.216.34/mcp", AddressRule::Remote),
        ] {
            assert_eq!(AddressRule::around(&Url::parse(server).unwrap()).await, expected);
        }
    }
}
