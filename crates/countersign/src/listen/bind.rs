//! Binds the ports and sockets of a gate.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use admin::page::other_loopback;
use rustix::io::Errno;
use tokio::net::{TcpListener, TcpSocket, UnixListener};

use crate::exit::Failure;

/// Connections that the system queues until they are accepted; its settings may allow fewer. One
/// that finds the queue full is dropped, and its client tries again only after a second.
const ACCEPT_QUEUE_MAX: u32 = 4096;

/// The number of ports tried for one that is free on both loopback addresses.
const PORTS_MAX: usize = 32;

/// Unread bytes that the system buffers for each connection. Its default grows to megabytes.
const UNREAD_BYTES_MAX: u32 = 64 * 1024;

/// The listeners of a gate.
pub(crate) struct Bound {
    pub(crate) address: SocketAddr,
    pub(crate) listeners: Vec<TcpListener>,
    /// The other loopback address, if it cannot be had.
    pub(crate) taken: Option<SocketAddr>,
}

/// Listens on an address, and with the same port on the other one that browsers may try.
pub(crate) fn bind_tcp(listen: SocketAddr) -> Result<Bound, Failure> {
    let mut attempt = 1;
    loop {
        let first = bind_one(listen)?;
        let address = first.local_addr().map_err(|error| {
            Failure::system(format!("cannot read the listening address: {error}"))
        })?;
        let mut listeners = vec![first];
        let mut taken = None;
        if let Some(other) = other_loopback(address.ip()) {
            let other = SocketAddr::new(other, address.port());
            match open_port(other) {
                Ok(second) => listeners.push(second),
                // The machine has no such address, so no process can listen there.
                Err(error) if is_missing(&error) => {}
                Err(_) if listen.port() == 0 && attempt < PORTS_MAX => {
                    attempt += 1;
                    continue;
                }
                Err(_) => taken = Some(other),
            }
        }
        return Ok(Bound { address, listeners, taken });
    }
}

/// Reports whether an address cannot be listened on because the machine lacks it, or its family.
fn is_missing(error: &std::io::Error) -> bool {
    let family = Some(Errno::AFNOSUPPORT);
    error.kind() == ErrorKind::AddrNotAvailable || Errno::from_io_error(error) == family
}

fn bind_one(address: SocketAddr) -> Result<TcpListener, Failure> {
    open_port(address).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => {
                "; another program is using the port: stop it, or use --listen 127.0.0.1:0"
            }
            _ => "",
        };
        Failure::system(format!("cannot listen on {address}: {error}{hint}"))
    })
}

fn open_port(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A port can be used again at once after the gate has ended.
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit it.
    socket.set_send_buffer_size(UNREAD_BYTES_MAX)?;
    socket.bind(address)?;
    socket.listen(ACCEPT_QUEUE_MAX)
}

/// Binds a socket. The lock on the home is held, so an existing socket is a leftover.
pub(crate) fn bind_socket(path: &Path) -> Result<UnixListener, Failure> {
    let fail = |error: std::io::Error| {
        Failure::system(format!("cannot listen on '{}': {error}", path.display()))
    };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(fail)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
    Ok(listener)
}
