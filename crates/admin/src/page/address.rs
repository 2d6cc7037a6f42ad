//! The origins of a gate: one for clients, and one for the page. A browser keeps what any earlier
//! holder of an origin left there: a service worker, a cached page, a tab. So the page has an
//! origin that no other server can have held: a name that is made up at each start, or one that the
//! operator configured.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use access::tokens::random_digits;
use domain::config::Config;
use domain::{Code, Refusal};
use mcp::http::names_this_machine;

/// The number of random bytes in the name of a start.
const LABEL_BYTES: usize = 16;

/// The origins of a listener.
#[derive(Clone, Default)]
pub struct GateAddress {
    /// The origin for clients, such as `http://127.0.0.1:7420`.
    clients: String,
    page: PagePlace,
    has_tls: bool,
}

#[derive(Clone, Default)]
enum PagePlace {
    /// The process has no listener that a browser could reach.
    #[default]
    Nowhere,
    /// An origin that the operator configured.
    Configured(String),
    /// A name of this start alone, with the port.
    Own(String),
    /// An own name would lead to somebody else's listener, or past this one.
    Unsafe(String),
}

/// Returns the address that this machine's browsers may try in addition to that of a listener: for
/// a name below `localhost`, they take whichever loopback address answers. A listener on every
/// address has none: it may be reached through a forwarder, such as a container's, that has only
/// one of the two.
pub fn other_loopback(listening: IpAddr) -> Option<IpAddr> {
    match listening {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => Some(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Some(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

impl GateAddress {
    /// Chooses the origins for a listener. `taken` is the other loopback address, if another program
    /// listens on it.
    pub fn of(
        config: &Config,
        listening: SocketAddr,
        taken: Option<SocketAddr>,
    ) -> Result<GateAddress, Refusal> {
        let has_tls = config.tls.is_some();
        let clients = clients_origin(config, listening, taken);
        let configured = allowed_origins(config, listening.port())
            .find(|(_, host)| !names_this_machine(host))
            .map(|(origin, _)| origin);
        let page = match (configured, taken) {
            (Some(origin), _) => PagePlace::Configured(origin),
            (None, _) if has_tls => PagePlace::Configured(clients.clone()),
            (None, Some(taken)) => PagePlace::Unsafe(format!(
                "another program listens on {taken}, which browsers try for the page's address \
                 too: stop it or choose another port with 'listen', and restart 'countersign serve'"
            )),
            (None, None) if other_loopback(listening.ip()).is_none() => PagePlace::Unsafe(format!(
                "a gate that listens on {} has no address for the page: listen on 127.0.0.1, set \
                 'tls', or set 'allowed_hosts' and 'allowed_origins' to the name under which \
                 browsers reach it",
                listening.ip()
            )),
            (None, None) => {
                let name = format!("gate-{}.localhost", random_digits::<LABEL_BYTES>()?);
                PagePlace::Own(config.authority(&name, listening.port()))
            }
        };
        Ok(GateAddress { clients, page, has_tls })
    }

    /// Returns the origin for clients, such as `http://127.0.0.1:7420`.
    pub fn clients(&self) -> &str {
        &self.clients
    }

    /// Returns the name of this start, with the port, which the listener must accept as its own.
    pub fn own_name(&self) -> Option<&str> {
        match &self.page {
            PagePlace::Own(name) => Some(name),
            PagePlace::Nowhere | PagePlace::Configured(_) | PagePlace::Unsafe(_) => None,
        }
    }

    /// Returns the origin of the page, for links.
    pub(crate) fn page(&self) -> Result<String, Refusal> {
        match &self.page {
            PagePlace::Own(name) => Ok(format!("http://{name}")),
            PagePlace::Configured(origin) => Ok(origin.clone()),
            PagePlace::Unsafe(reason) => Err(Refusal::new(Code::Conflict, reason.clone())),
            PagePlace::Nowhere => {
                let message = "no listener serves the page: start one with 'countersign serve'";
                Err(Refusal::new(Code::Conflict, message))
            }
        }
    }

    /// Reports whether the page is served to a request with this `Host`, which the guard has let
    /// pass. No one else can hold an origin under the gate's own certificate, nor the name of this
    /// start, nor, by the operator's word, a name of the config. A plain name of this machine
    /// belongs to whichever program has the port.
    pub(crate) fn serves_page(&self, host: &str) -> bool {
        self.has_tls
            || self.own_name().is_some_and(|name| name.eq_ignore_ascii_case(host))
            || !names_this_machine(host)
    }
}

/// Returns the origins that are allowed and whose hosts are, each with its host.
fn allowed_origins(config: &Config, port: u16) -> impl Iterator<Item = (String, String)> {
    let hosts = config.hosts(port);
    config.origins(port).into_iter().filter_map(move |origin| {
        let host = origin.split_once("://")?.1.to_owned();
        hosts.contains(&host).then_some((origin, host))
    })
}

/// Returns the address for clients: the listening address itself if it is allowed, otherwise one of
/// the allowed names that lead to it.
fn clients_origin(config: &Config, listening: SocketAddr, taken: Option<SocketAddr>) -> String {
    let address = listening.to_string();
    let name = address.rsplit_once(':').map_or("", |(name, _)| name);
    let own = format!("{}://{}", config.scheme(), config.authority(name, listening.port()));
    let mut allowed = allowed_origins(config, listening.port())
        .filter(|(_, host)| leads_to(listening.ip(), taken, host))
        .map(|(origin, _)| origin);
    let Some(first) = allowed.next() else { return own };
    if first == own || allowed.any(|origin| origin == own) { own } else { first }
}

/// Reports whether a name leads to a listener. One of another machine does, by the operator's word.
fn leads_to(listening: IpAddr, taken: Option<SocketAddr>, host: &str) -> bool {
    if !names_this_machine(host) {
        return true;
    }
    let other = other_loopback(listening).filter(|_| taken.is_none());
    let has = |address: IpAddr| {
        let has_all = listening.is_unspecified() && listening.is_ipv4() == address.is_ipv4();
        has_all || listening == address || other == Some(address)
    };
    let address = host.parse().map(|address: SocketAddr| address.ip());
    match address.or_else(|_| host.trim_matches(['[', ']']).parse()) {
        Ok(address) => has(address),
        // Clients try both.
        Err(_) => has(Ipv4Addr::LOCALHOST.into()) && has(Ipv6Addr::LOCALHOST.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use domain::config::TlsFiles;

    use super::*;

    const TLS: &str = "tls";

    /// Returns the address of a gate with these keys of the config.
    fn address(listening: &str, key: &str, hosts: &[&str], origins: &[&str]) -> GateAddress {
        let texts = |list: &[&str]| -> Option<Vec<String>> {
            (!list.is_empty()).then(|| list.iter().map(|text| (*text).to_owned()).collect())
        };
        let config = Config {
            tls: (key == TLS).then(|| TlsFiles { cert: "c".into(), key: "k".into() }),
            behind_proxy: key == "behind_proxy",
            allowed_hosts: texts(hosts),
            allowed_origins: texts(origins),
            ..Config::default()
        };
        GateAddress::of(&config, listening.parse().unwrap(), None).unwrap()
    }

    #[test]
    fn only_an_origin_that_nobody_else_can_have_held_serves_the_page() {
        let plain = address("127.0.0.1:7420", "", &[], &[]);
        let own = plain.own_name().unwrap().to_owned();
        let other = address("127.0.0.1:7420", "", &[], &[]);
        let tls = address("127.0.0.1:7420", TLS, &[], &[]);
        let named = ["gate.example"];
        let proxied = address("127.0.0.1:7420", "behind_proxy", &named, &["https://gate.example"]);
        for (host, by_plain, by_proxied, by_tls) in [
            (&*own, true, false, true),
            (&*own.to_uppercase(), true, false, true),
            (other.own_name().unwrap(), false, false, true),
            (own.trim_end_matches(":7420"), false, false, true),
            (&*own.replace(":7420", ":7421"), false, false, true),
            ("127.0.0.1:7420", false, false, true),
            ("127.0.0.1", false, false, true),
            ("127.0.0.2:7420", false, false, true),
            ("127.1:7420", false, false, true),
            ("[::1]:7420", false, false, true),
            ("0.0.0.0:7420", false, false, true),
            ("localhost:7420", false, false, true),
            ("localhost", false, false, true),
            ("gate.localhost:7420", false, false, true),
            ("", false, false, true),
            // The guard lets them pass only if the operator configured them.
            ("gate.example", true, true, true),
            ("192.168.1.5:7420", true, true, true),
        ] {
            let found = [&plain, &proxied, &tls].map(|address| address.serves_page(host));
            assert_eq!(found, [by_plain, by_proxied, by_tls], "{host}");
        }
    }

    #[test]
    fn links_lead_to_a_configured_name_or_to_one_of_this_start() {
        const OWN: &str = "http://gate-";
        const NONE: &str = "has no address for the page";
        let gate = &["gate.example"][..];
        let https = &["https://gate.example"][..];
        let local = &["localhost:7420", "gate.example"][..];
        for (listening, key, hosts, origins, clients, page) in [
            ("127.0.0.1:7420", "", &[][..], &[][..], "http://127.0.0.1:7420", OWN),
            ("[::1]:7420", "", &[], &[], "http://[::1]:7420", OWN),
            ("127.0.0.1:80", "", &[], &[], "http://127.0.0.1", OWN),
            ("127.0.0.1:443", TLS, &[], &[], "https://127.0.0.1", "https://127.0.0.1"),
            ("127.0.0.1:7420", "", &["localhost:7420"], &[], "http://localhost:7420", OWN),
            (
                "127.0.0.1:7420",
                "",
                &["a.localhost:1"],
                &["http://a.localhost:1"],
                "http://a.localhost:1",
                OWN,
            ),
            ("127.0.0.1:7420", "behind_proxy", gate, https, https[0], https[0]),
            (
                "127.0.0.1:7420",
                "behind_proxy",
                local,
                &["http://localhost:7420", https[0]],
                "http://localhost:7420",
                https[0],
            ),
            // The origin is not allowed, so a sign-in there would fail.
            ("127.0.0.1:7420", "behind_proxy", gate, &[], "http://127.0.0.1:7420", OWN),
            ("127.0.0.1:7420", TLS, &[], &[], "https://127.0.0.1:7420", "https://127.0.0.1:7420"),
            ("0.0.0.0:443", TLS, gate, https, https[0], https[0]),
            // A forwarder may have one of the two loopback addresses alone.
            ("0.0.0.0:7420", "behind_proxy", &[], &[], "http://127.0.0.1:7420", NONE),
            ("0.0.0.0:7420", "behind_proxy", gate, https, https[0], https[0]),
            ("[::]:7420", "behind_proxy", &[], &[], "http://[::1]:7420", NONE),
            // Somebody else may have the addresses that clients try by default.
            ("127.0.0.2:7420", "", &[], &[], "http://127.0.0.2:7420", NONE),
            ("192.168.1.5:7420", "behind_proxy", &[], &[], "http://192.168.1.5:7420", NONE),
            ("127.0.0.2:7420", "", &["localhost:7420"], &[], "http://127.0.0.2:7420", NONE),
        ] {
            let address = address(listening, key, hosts, origins);
            assert_eq!(address.clients(), clients, "{listening} {key} {hosts:?}");
            let link = address.page().unwrap_or_else(|refusal| refusal.message);
            let is_expected = if page.starts_with("http") && page != OWN {
                link == page
            } else {
                link.contains(page)
            };
            assert!(is_expected, "{listening} {key} {hosts:?}: {link}");
            assert_eq!(address.own_name().is_some(), page == OWN, "{listening} {key} {hosts:?}");
        }
    }

    #[test]
    fn a_name_of_its_own_is_a_valid_label_and_new_each_time() {
        let names = [(); 2].map(|()| address("127.0.0.1:7420", "", &[], &[]));
        let names = names.each_ref().map(|address| address.own_name().unwrap());
        assert_ne!(names[0], names[1]);
        let (label, rest) = names[0].split_once('.').unwrap();
        assert_eq!(rest, "localhost:7420");
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(label.len() == "gate-".len() + 32 && label.chars().all(is_plain), "{label}");
    }

    #[test]
    fn browsers_omit_the_default_port_and_so_does_the_name() {
        let address = address("127.0.0.1:80", "", &[], &[]);
        let name = address.own_name().unwrap();
        assert!(name.ends_with(".localhost") && address.serves_page(name), "{name}");
    }

    #[test]
    fn no_link_is_made_while_another_program_has_the_other_loopback_address() {
        let listening = "127.0.0.1:7420".parse().unwrap();
        let taken = Some("[::1]:7420".parse().unwrap());
        let address = GateAddress::of(&Config::default(), listening, taken).unwrap();
        assert!(address.own_name().is_none());
        let refusal = address.page().unwrap_err();
        assert_eq!(refusal.code, Code::Conflict);
        assert!(refusal.message.contains("another program listens on [::1]:7420"), "{refusal:?}");
        assert_eq!(address.clients(), "http://127.0.0.1:7420");
        let taken = Some("127.0.0.1:7420".parse().unwrap());
        let listening = "[::1]:7420".parse().unwrap();
        let address = GateAddress::of(&Config::default(), listening, taken).unwrap();
        assert_eq!(address.clients(), "http://[::1]:7420");
    }
}
