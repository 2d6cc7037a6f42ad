//! The connections of a listener, bounded so that one client cannot use them up: those without a
//! valid token so far by their address, the others by the token.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::{Extensions, HeaderMap, HeaderName};
use domain::{Code, Refusal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::fairness::share;
use crate::limits::{ADDRESS_CONNECTIONS_MAX, CONNECTIONS_MAX};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The connections of one listener. Clones are handles to the same connections.
#[derive(Clone)]
pub struct Visitors {
    table: Arc<VisitorTable>,
}

struct VisitorTable {
    room: Arc<Semaphore>,
    /// All connections come from a proxy, which names their addresses in a header.
    behind_proxy: bool,
    state: Mutex<VisitorState>,
}

#[derive(Default)]
struct VisitorState {
    next: u64,
    /// Connections without a valid token, oldest first.
    unknown: BTreeMap<u64, UnknownVisitor>,
    by_token: HashMap<Arc<str>, usize>,
}

struct UnknownVisitor {
    address: Option<IpAddr>,
    evicted: CancellationToken,
}

/// One connection. It leaves the table when the last clone is dropped.
#[derive(Clone)]
pub struct Visitor {
    address: Option<IpAddr>,
    behind_proxy: bool,
    evicted: CancellationToken,
    place: Option<Arc<VisitorPlace>>,
}

struct VisitorPlace {
    table: Arc<VisitorTable>,
    id: u64,
    token: Mutex<Option<Arc<str>>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Visitors {
    pub fn new(behind_proxy: bool) -> Visitors {
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let table = VisitorTable { room, behind_proxy, state: Mutex::default() };
        Visitors { table: Arc::new(table) }
    }

    /// Takes in a new connection; `address` is `None` on a Unix socket. If there are too many
    /// without a token, the oldest of them ends; if all have one, this waits.
    pub async fn enter(&self, address: Option<IpAddr>) -> Visitor {
        let address = address.map(network);
        let (id, evicted) = self.table.insert(address);
        let permit = self.table.room.clone().acquire_owned().await.ok();
        let table = self.table.clone();
        let place = VisitorPlace { table, id, token: Mutex::default(), _permit: permit };
        let behind_proxy = self.table.behind_proxy;
        Visitor { address, behind_proxy, evicted, place: Some(Arc::new(place)) }
    }
}

impl VisitorTable {
    fn insert(&self, address: Option<IpAddr>) -> (u64, CancellationToken) {
        let mut state = self.lock();
        let same = |visitor: &UnknownVisitor| visitor.address == address;
        let of_address = state.unknown.values().filter(|visitor| same(visitor)).count();
        let is_crowded = of_address >= ADDRESS_CONNECTIONS_MAX && !self.behind_proxy;
        if is_crowded || self.room.available_permits() == 0 {
            let mut unknown = state.unknown.iter();
            let oldest = unknown.find(|(_, visitor)| same(visitor) || !is_crowded);
            if let Some(id) = oldest.map(|(id, _)| *id)
                && let Some(visitor) = state.unknown.remove(&id)
            {
                visitor.evicted.cancel();
            }
        }
        let id = state.next;
        state.next += 1;
        let evicted = CancellationToken::new();
        state.unknown.insert(id, UnknownVisitor { address, evicted: evicted.clone() });
        (id, evicted)
    }

    fn lock(&self) -> MutexGuard<'_, VisitorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VisitorState {
    fn leave(&mut self, token: &Arc<str>) {
        if let Some(count) = self.by_token.get_mut(token) {
            *count -= 1;
            if *count == 0 {
                self.by_token.remove(token);
            }
        }
    }
}

impl Visitor {
    /// Returns the connection that a request came on; without one, the request comes from this
    /// process.
    pub fn of(extensions: &Extensions) -> Visitor {
        let local = || Visitor {
            address: None,
            behind_proxy: false,
            evicted: CancellationToken::new(),
            place: None,
        };
        extensions.get::<Visitor>().cloned().unwrap_or_else(local)
    }

    /// Waits until the connection must end to make room.
    pub async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Returns the client's address, or its network for IPv6; `None` on a Unix socket.
    pub fn address(&self, headers: &HeaderMap) -> Option<IpAddr> {
        if !self.behind_proxy {
            return self.address;
        }
        // The proxy appends the address it saw; what precedes it is the client's claim.
        let last = headers.get_all(FORWARDED_FOR).iter().next_back()?.to_str().ok()?;
        let last = last.rsplit(',').next().unwrap_or_default().trim();
        last.parse().ok().map(network).or(self.address)
    }

    /// Charges the connection to the token that was shown on it last.
    pub fn admit(&self, token: &Arc<str>) -> Result<(), Refusal> {
        let Some(place) = &self.place else { return Ok(()) };
        let mut holder = place.token.lock().unwrap_or_else(PoisonError::into_inner);
        if holder.as_ref() == Some(token) {
            return Ok(());
        }
        let mut state = place.table.lock();
        let count = state.by_token.get(token).copied().unwrap_or_default();
        if count >= share(CONNECTIONS_MAX) {
            let message = format!("token '{token}' has {count} connections: close some of them");
            return Err(Refusal::new(Code::TooManyRequests, message));
        }
        state.unknown.remove(&place.id);
        if let Some(before) = holder.replace(token.clone()) {
            state.leave(&before);
        }
        *state.by_token.entry(token.clone()).or_default() += 1;
        Ok(())
    }
}

impl Drop for VisitorPlace {
    fn drop(&mut self) {
        let mut state = self.table.lock();
        state.unknown.remove(&self.id);
        let holder = self.token.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = holder.take() {
            state.leave(&token);
        }
    }
}

/// A host has a whole IPv6 network of addresses, so they count as one.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            const HOST_BITS: u32 = 64;
            Ipv6Addr::from_bits(address.to_bits() >> HOST_BITS << HOST_BITS).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use axum::http::HeaderValue;

    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    async fn many(visitors: &Visitors, from: &str, count: usize) -> Vec<Visitor> {
        let mut entered = Vec::new();
        for _ in 0..count {
            entered.push(visitors.enter(address(from)).await);
        }
        entered
    }

    #[tokio::test]
    async fn the_oldest_stranger_of_an_address_makes_room() {
        let visitors = Visitors::new(false);
        let other = visitors.enter(address("192.0.2.2")).await;
        let first = visitors.enter(address("192.0.2.1")).await;
        first.admit(&"t".into()).unwrap();
        let crowd = many(&visitors, "192.0.2.1", ADDRESS_CONNECTIONS_MAX + 1).await;
        let evicted: Vec<bool> = crowd.iter().map(|one| one.evicted.is_cancelled()).collect();
        assert!(evicted[0] && !evicted[1..].contains(&true));
        assert!(!first.evicted.is_cancelled() && !other.evicted.is_cancelled());
    }

    #[tokio::test]
    async fn a_full_house_loses_its_oldest_stranger() {
        let visitors = Visitors::new(true);
        let mut crowd = many(&visitors, "192.0.2.1", CONNECTIONS_MAX).await;
        assert!(!crowd.iter().any(|one| one.evicted.is_cancelled()));
        let entering = tokio::spawn({
            let visitors = visitors.clone();
            async move { visitors.enter(address("192.0.2.1")).await }
        });
        crowd[0].evicted().await;
        crowd.remove(0);
        entering.await.unwrap();
    }

    #[tokio::test]
    async fn a_token_holds_half_of_the_connections() {
        let visitors = Visitors::new(true);
        let crowd = many(&visitors, "192.0.2.1", share(CONNECTIONS_MAX) + 1).await;
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        let (last, held) = crowd.split_last().unwrap();
        held.iter().for_each(|visitor| visitor.admit(&one).unwrap());
        assert_eq!(last.admit(&one).unwrap_err().code, Code::TooManyRequests);
        last.admit(&two).unwrap();
        held[0].admit(&two).unwrap();
        last.admit(&one).unwrap();
        drop(crowd);
        assert!(visitors.table.lock().by_token.is_empty());
    }

    #[tokio::test]
    async fn a_proxy_names_the_client() {
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED_FOR, HeaderValue::from_static("192.0.2.9, 198.51.100.7"));
        let direct = Visitors::new(false).enter(address("192.0.2.1")).await;
        assert_eq!(direct.address(&headers), address("192.0.2.1"));
        let proxied = Visitors::new(true).enter(address("192.0.2.1")).await;
        assert_eq!(proxied.address(&headers), address("198.51.100.7"));
        headers.append(FORWARDED_FOR, HeaderValue::from_static("2001:db8::1:2"));
        assert_eq!(proxied.address(&headers), address("2001:db8::"));
    }
}
