//! The addresses that a connection may go to. Metadata of a server names further hosts, and must not
//! lead to services that only this machine, its link or its private network can reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// The reason for refusing an address that is nearer than its rule allows.
pub(crate) const TOO_NEAR: &str =
    "it is on this machine, its link or a private network, and the server is not";

/// The addresses that the hosts of a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressRule {
    /// None of this machine, its link and private networks.
    Public,
    /// Private networks too.
    Private,
    /// Any, but never in clear text.
    AnyOverTls,
    Any,
}

impl AddressRule {
    /// Returns the rule for the hosts that a server names: they may be as near as the server is.
    pub async fn around(server: &Url) -> AddressRule {
        let addresses: Vec<IpAddr> = match server.host() {
            Some(Host::Domain(_)) if is_loopback(server) => return AddressRule::Any,
            Some(Host::Domain(name)) => {
                let port = server.port_or_known_default().unwrap_or(443);
                let found = tokio::net::lookup_host((name, port)).await;
                found.map(|found| found.map(|it| it.ip()).collect()).unwrap_or_default()
            }
            Some(Host::Ipv4(address)) if is_local(address.into()) => return AddressRule::Any,
            Some(Host::Ipv6(address)) if is_local(address.into()) => return AddressRule::Any,
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            None => Vec::new(),
        };
        AddressRule::of_name(&addresses)
    }

    /// Returns the rule around a name by its addresses, which count only if they all agree. The
    /// name's DNS server can claim any address, so that lifts only a part of the rule: without a
    /// certificate, no service there gets a request.
    fn of_name(addresses: &[IpAddr]) -> AddressRule {
        let all = |is: fn(IpAddr) -> bool| {
            !addresses.is_empty() && addresses.iter().all(|address| is(*address))
        };
        if all(is_local) {
            AddressRule::AnyOverTls
        } else if all(|address| is_local(address) || is_private(address)) {
            AddressRule::Private
        } else {
            AddressRule::Public
        }
    }

    pub(crate) fn allows(self, address: IpAddr) -> bool {
        match self {
            AddressRule::Any | AddressRule::AnyOverTls => true,
            AddressRule::Private => !is_local(address),
            AddressRule::Public => !is_local(address) && !is_private(address),
        }
    }

    /// Reports whether a URL may be used, judged by its text: names are judged by their addresses,
    /// once a connection is made.
    pub(crate) fn allows_host(self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Ipv4(address)) => self.allows(address.into()),
            Some(Host::Ipv6(address)) => self.allows(address.into()),
            Some(Host::Domain(_)) => self >= AddressRule::AnyOverTls || !is_loopback(url),
            None => false,
        }
    }
}

/// Reports whether an address is of this machine or its link.
fn is_local(address: IpAddr) -> bool {
    match embedded(address) {
        IpAddr::V4(address) => {
            address.is_loopback()
                || address.is_link_local()
                || address.octets()[0] == 0
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

/// Reports whether an address is of a network that the internet does not reach (RFC 1918, 4193,
/// 6598 and the other reserved ranges).
fn is_private(address: IpAddr) -> bool {
    match embedded(address) {
        IpAddr::V4(address) => match address.octets() {
            [100, second, ..] => second & 0xc0 == 64,
            [198, second, ..] => second & 0xfe == 18,
            [192, 0, 0, _] => true,
            [first, ..] => first >= 240 || address.is_private(),
        },
        // Unique local addresses, and site-local ones before them.
        IpAddr::V6(address) => {
            address.is_unique_local() || address.segments()[0] & 0xffc0 == 0xfec0
        }
    }
}

/// Returns the IPv4 address that an IPv6 address leads to: a mapped or compatible one, or one behind
/// a translator (64:ff9b::/96) or a 6to4 relay (2002::/16).
fn embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let at = |high: u16, low: u16| {
        let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match v6.segments() {
        _ if v6 == Ipv6Addr::LOCALHOST || v6 == Ipv6Addr::UNSPECIFIED => address,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => at(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => at(high, low),
        [0x2002, high, low, ..] => at(high, low),
        _ => address,
    }
}

/// Reports whether a URL names this machine by its loopback address or name.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_localhost(name),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// Reports whether a `Host` header names this machine in a way that every program on it can serve:
/// by a loopback, wildcard or link-local address, or below `localhost`. What is no host counts as such.
pub fn names_this_machine(host: &str) -> bool {
    let Ok(url) = Url::parse(&format!("http://{host}/")) else { return true };
    match url.host() {
        Some(Host::Domain(name)) => is_localhost(name),
        Some(Host::Ipv4(address)) => is_local(address.into()),
        Some(Host::Ipv6(address)) => is_local(address.into()),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_local_private_or_public() {
        const LOCAL: AddressRule = AddressRule::AnyOverTls;
        const PRIVATE: AddressRule = AddressRule::Private;
        const PUBLIC: AddressRule = AddressRule::Public;
        for (address, nearest) in [
            ("127.0.0.1", LOCAL),
            ("127.8.9.1", LOCAL),
            ("0.0.0.0", LOCAL),
            ("0.1.2.3", LOCAL),
            ("169.254.169.254", LOCAL),
            ("::1", LOCAL),
            ("::", LOCAL),
            ("fe80::1", LOCAL),
            ("::ffff:127.0.0.1", LOCAL),
            ("::127.0.0.1", LOCAL),
            ("::ffff:169.254.169.254", LOCAL),
            ("64:ff9b::169.254.169.254", LOCAL),
            ("2002:7f00:1::1", LOCAL),
            ("224.0.0.1", LOCAL),
            ("10.0.0.1", PRIVATE),
            ("172.16.0.1", PRIVATE),
            ("172.31.255.255", PRIVATE),
            ("192.168.1.1", PRIVATE),
            ("100.64.0.1", PRIVATE),
            ("100.127.255.255", PRIVATE),
            ("198.18.0.1", PRIVATE),
            ("198.19.0.1", PRIVATE),
            ("192.0.0.1", PRIVATE),
            ("240.0.0.1", PRIVATE),
            ("fd00::1", PRIVATE),
            ("fc00::1", PRIVATE),
            ("fec0::1", PRIVATE),
            ("::ffff:10.0.0.1", PRIVATE),
            ("64:ff9b::10.0.0.1", PRIVATE),
            ("2002:a00:1::1", PRIVATE),
            ("93.184.216.34", PUBLIC),
            ("172.32.0.1", PUBLIC),
            ("100.63.0.1", PUBLIC),
            ("100.128.0.1", PUBLIC),
            ("198.17.0.1", PUBLIC),
            ("192.0.1.1", PUBLIC),
            ("2606:4700::1", PUBLIC),
            ("64:ff9b::93.184.216.34", PUBLIC),
        ] {
            let address = address.parse().unwrap();
            for rule in [PUBLIC, PRIVATE, LOCAL, AddressRule::Any] {
                assert_eq!(rule.allows(address), rule >= nearest, "{address} {rule:?}");
            }
            assert_eq!(AddressRule::of_name(&[address]), nearest, "{address}");
        }
    }

    #[test]
    fn a_name_is_near_only_if_all_its_addresses_are() {
        for (addresses, expected) in [
            (&["127.0.0.1", "::1"][..], AddressRule::AnyOverTls),
            (&["127.0.0.1", "10.0.0.1"], AddressRule::Private),
            (&["127.0.0.1", "93.184.216.34"], AddressRule::Public),
            (&["10.0.0.1", "93.184.216.34"], AddressRule::Public),
            (&["93.184.216.34", "169.254.169.254"], AddressRule::Public),
            (&[], AddressRule::Public),
        ] {
            let parsed: Vec<IpAddr> = addresses.iter().map(|it| it.parse().unwrap()).collect();
            assert_eq!(AddressRule::of_name(&parsed), expected, "{addresses:?}");
        }
    }

    #[tokio::test]
    async fn hosts_may_be_as_near_as_the_server_is() {
        for (server, expected) in [
            ("http://127.0.0.1:1/mcp", AddressRule::Any),
            ("http://localhost:1/mcp", AddressRule::Any),
            ("http://[::1]/mcp", AddressRule::Any),
            ("https://10.1.2.3/mcp", AddressRule::Private),
            ("https://[fd00::1]/mcp", AddressRule::Private),
            ("https://93.184.216.34/mcp", AddressRule::Public),
        ] {
            assert_eq!(AddressRule::around(&Url::parse(server).unwrap()).await, expected);
        }
    }

    #[test]
    fn a_host_that_any_program_of_the_machine_can_serve_is_recognised() {
        for (host, expected) in [
            ("127.0.0.1:7420", true),
            ("127.9.9.9", true),
            ("127.1:7420", true),
            ("2130706433:7420", true),
            ("0.0.0.0:7420", true),
            ("[::1]:7420", true),
            ("[::]:7420", true),
            ("[::ffff:127.0.0.1]:7420", true),
            ("localhost", true),
            ("LOCALHOST:7420", true),
            ("localhost.:7420", true),
            ("gate.localhost:7420", true),
            ("gate.localhost.:7420", true),
            ("", true),
            ("a b", true),
            ("gate.example", false),
            ("gate.example:7420", false),
            ("localhost.example", false),
            ("notlocalhost:7420", false),
            ("192.168.1.5:7420", false),
        ] {
            assert_eq!(names_this_machine(host), expected, "{host}");
        }
    }
}
