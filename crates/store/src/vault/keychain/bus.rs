//! A client of the D-Bus session bus, as far as the Secret Service needs it: one call at a time, all
//! of them by one deadline.

mod message;

use std::env;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use percent_encoding::percent_decode_str;

use self::message::{BusMessage, MessageKind, PREFIX_BYTES};
pub(super) use self::message::{BusMethod, ValueReader, ValueWriter};

/// The address of the bus, set by the session.
const ADDRESS: &str = "DBUS_SESSION_BUS_ADDRESS";

/// The longest line of the bus while it admits us.
const LINE_BYTES_MAX: usize = 1024;

const HELLO: BusMethod = BusMethod {
    destination: "org.freedesktop.DBus",
    interface: "org.freedesktop.DBus",
    name: "Hello",
    takes: "",
    gives: "s",
};
const HELLO_PATH: &str = "/org/freedesktop/DBus";

#[derive(Debug, thiserror::Error)]
pub(super) enum BusFault {
    #[error("{ADDRESS} has no address of a Unix socket: {0}")]
    Address(String),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the bus sent something that is not an answer")]
    Malformed,
    #[error("the bus does not admit us: {0}")]
    NotAdmitted(String),
    #[error("{name}: {message}")]
    Refused { name: String, message: String },
}

impl BusFault {
    /// Reports whether the deadline has passed.
    pub(super) fn is_late(&self) -> bool {
        let BusFault::Io(error) = self else { return false };
        matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
    }
}

pub(super) struct SessionBus {
    stream: UnixStream,
    deadline: Instant,
    serial: u32,
}

impl SessionBus {
    /// Connects to the bus of this session. All answers must arrive within `patience` from now.
    pub(super) fn connect(patience: Duration) -> Result<SessionBus, BusFault> {
        let stream = UnixStream::connect_addr(&session_address()?)?;
        let mut bus = SessionBus { stream, deadline: Instant::now() + patience, serial: 0 };
        bus.enter()?;
        bus.call(HELLO_PATH, &HELLO, |_| {})?;
        Ok(bus)
    }

    /// Names our user, which the bus compares with the one that the system names.
    fn enter(&mut self) -> Result<(), BusFault> {
        let uid = rustix::process::getuid().as_raw().to_string();
        let hex: String = uid.bytes().map(|digit| format!("{digit:02x}")).collect();
        self.send(format!("\0AUTH EXTERNAL {hex}\r\n").as_bytes())?;
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            if line.len() >= LINE_BYTES_MAX {
                return Err(BusFault::Malformed);
            }
            let mut byte = [0];
            self.receive(&mut byte)?;
            line.push(byte[0]);
        }
        if !line.starts_with(b"OK ") {
            return Err(BusFault::NotAdmitted(String::from_utf8_lossy(&line).trim().to_owned()));
        }
        self.send(b"BEGIN\r\n")
    }

    /// Calls a method of an object and waits for the answer.
    pub(super) fn call(
        &mut self,
        path: &str,
        method: &BusMethod,
        arguments: impl FnOnce(&mut ValueWriter),
    ) -> Result<ValueReader, BusFault> {
        self.serial += 1;
        self.send(&message::call(self.serial, path, method, arguments))?;
        loop {
            let message = self.message()?;
            // Signals come too, such as the one that we have a name.
            if message.kind != MessageKind::Other && message.reply_to == Some(self.serial) {
                return answer(message, method);
            }
        }
    }

    fn message(&mut self) -> Result<BusMessage, BusFault> {
        let mut prefix = [0; PREFIX_BYTES];
        self.receive(&mut prefix)?;
        let mut whole = message::space(prefix)?;
        self.receive(&mut whole[PREFIX_BYTES..])?;
        BusMessage::read(whole)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), BusFault> {
        self.stream.set_write_timeout(Some(self.remaining()?))?;
        Ok(self.stream.write_all(bytes)?)
    }

    fn receive(&mut self, mut bytes: &mut [u8]) -> Result<(), BusFault> {
        while !bytes.is_empty() {
            self.stream.set_read_timeout(Some(self.remaining()?))?;
            match self.stream.read(bytes) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(count) => bytes = &mut bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn remaining(&self) -> io::Result<Duration> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(remaining) }
    }
}

fn answer(message: BusMessage, method: &BusMethod) -> Result<ValueReader, BusFault> {
    let BusMessage { kind, signature, error_name, mut body, .. } = message;
    match kind {
        MessageKind::Return if signature == method.gives => Ok(body),
        MessageKind::Error => {
            let text = if signature.starts_with('s') { body.text()? } else { String::new() };
            Err(BusFault::Refused { name: error_name, message: text })
        }
        _ => Err(BusFault::Malformed),
    }
}

/// Returns the address of the session's bus: the first one that is a Unix socket.
fn session_address() -> Result<SocketAddr, BusFault> {
    if let Some(addresses) = env::var(ADDRESS).ok().filter(|addresses| !addresses.is_empty()) {
        let mut found = addresses.split(';').filter_map(unix_address);
        return Ok(found.next().ok_or(BusFault::Address(addresses))??);
    }
    let runtime = env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let usual = || format!("/run/user/{}", rustix::process::getuid().as_raw()).into();
    let runtime = runtime.unwrap_or_else(usual);
    Ok(SocketAddr::from_pathname(Path::new(&runtime).join("bus"))?)
}

/// Reads an address such as `unix:path=/run/user/1000/bus,guid=…`; `None` if it is of another kind.
fn unix_address(address: &str) -> Option<io::Result<SocketAddr>> {
    let keys = address.strip_prefix("unix:")?;
    keys.split(',').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let value = percent_decode_str(value).collect::<Vec<u8>>();
        match key {
            "path" => Some(SocketAddr::from_pathname(str::from_utf8(&value).ok()?)),
            "abstract" => Some(SocketAddr::from_abstract_name(&value)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests;
