//! The bus as a peer that we script.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use zeroize::Zeroizing;

use super::*;

const METHOD: BusMethod =
    BusMethod { destination: "a.b", interface: "a.b.C", name: "M", takes: "as", gives: "s" };

/// A message to us, of this kind and in reply to this call.
fn message(kind: u8, reply_to: u32, signature: &str, body: &[u8]) -> Vec<u8> {
    let mut fields = vec![5, 1, b'u', 0];
    fields.extend(reply_to.to_le_bytes());
    fields.extend([8, 1, b'g', 0, u8::try_from(signature.len()).unwrap()]);
    fields.extend(signature.as_bytes());
    fields.push(0);
    fields.resize(fields.len().next_multiple_of(8), 0);
    fields.extend([4, 1, b's', 0, 3, 0, 0, 0]);
    fields.extend(b"x.Y\0");
    let mut bytes = vec![b'l', kind, 0, 1];
    bytes.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
    bytes.extend(77_u32.to_le_bytes());
    bytes.extend(u32::try_from(fields.len()).unwrap().to_le_bytes());
    bytes.extend(&fields);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend(body);
    bytes
}

/// Calls the method on a bus that sends these bytes.
fn called(bytes: &[u8], patience: Duration) -> Result<String, BusFault> {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(bytes).unwrap();
    let mut bus = SessionBus { stream: ours, deadline: Instant::now() + patience, serial: 0 };
    bus.call("/p", &METHOD, |_| {})?.text()
}

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn the_answer_to_the_call_is_taken_and_nothing_else() {
    let mut bytes = message(4, 1, "s", b"\x02\0\0\0no\0");
    bytes.extend(message(2, 9, "s", b"\x02\0\0\0no\0"));
    bytes.extend(message(2, 1, "s", b"\x03\0\0\0yes\0"));
    assert_eq!(called(&bytes, PATIENCE).unwrap(), "yes");
    let refused = called(&message(3, 1, "s", b"\x04\0\0\0why?\0"), PATIENCE).unwrap_err();
    assert_eq!(refused.to_string(), "x.Y: why?");
    let refused = called(&message(3, 1, "u", b"\x04\0\0\0"), PATIENCE).unwrap_err();
    assert_eq!(refused.to_string(), "x.Y: ");
}

#[test]
fn an_answer_of_a_big_endian_program_is_read() {
    let mut bytes = vec![b'B', 2, 0, 1, 0, 0, 0, 7, 0, 0, 0, 77, 0, 0, 0, 15];
    bytes.extend([5, 1, b'u', 0, 0, 0, 0, 1, 8, 1, b'g', 0, 1, b's', 0, 0]);
    bytes.extend(b"\0\0\0\x02ok\0");
    assert_eq!(called(&bytes, PATIENCE).unwrap(), "ok");
}

#[test]
fn what_is_no_answer_fails() {
    let good = message(2, 1, "s", b"\x03\0\0\0yes\0");
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    for (bytes, because) in [
        (message(2, 1, "o", b"\x03\0\0\0yes\0"), "another type"),
        (message(2, 1, "s", b"\x04\0\0\0yes\0"), "a longer text"),
        (message(2, 1, "s", b"\x02\0\0\0yes\0"), "a text without end"),
        (message(2, 1, "s", b"\x02\0\0\0\xff\xff\0"), "not UTF-8"),
        (message(2, 1, "s", b"\xff\xff\xff\xff"), "a length beyond any message"),
        (changed(0, b'?'), "no byte order"),
        (changed(7, 0x7f), "a body beyond the limit"),
        (changed(15, 0x7f), "a head beyond the limit"),
        (changed(18, b'x'), "a field of an unknown type"),
    ] {
        let result = called(&bytes, PATIENCE);
        assert!(matches!(result, Err(BusFault::Malformed)), "{because}: {result:?}");
    }
}

#[test]
fn a_bus_that_is_silent_or_slow_is_left_at_the_deadline() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let patience = Duration::from_millis(200);
    let mut bus = SessionBus { stream: ours, deadline: Instant::now() + patience, serial: 0 };
    let (end, ended) = mpsc::channel::<()>();
    let drip = thread::spawn(move || {
        while ended.recv_timeout(patience / 10) == Err(RecvTimeoutError::Timeout) {
            theirs.write_all(b"x").unwrap();
        }
    });
    assert!(bus.enter().unwrap_err().is_late());
    drop(end);
    drip.join().unwrap();
    assert!(called(b"", patience).unwrap_err().is_late());
}

#[test]
fn a_bus_that_does_not_admit_us_is_quoted() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let mut bus = SessionBus { stream: ours, deadline: Instant::now() + PATIENCE, serial: 0 };
    theirs.write_all(b"REJECTED EXTERNAL\r\n").unwrap();
    let fault = bus.enter().unwrap_err();
    assert_eq!(fault.to_string(), "the bus does not admit us: REJECTED EXTERNAL");
    drop(bus);
    let mut sent = String::new();
    theirs.read_to_string(&mut sent).unwrap();
    assert!(sent.starts_with("\0AUTH EXTERNAL 3") && sent.ends_with("\r\n"), "{sent:?}");
}

#[test]
fn addresses_of_unix_sockets_are_read() {
    let address = |text: &str| unix_address(text).map(Result::unwrap);
    let path = |address: SocketAddr| address.as_pathname().map(Path::to_owned);
    let found = address("unix:path=/tmp/a%20b,guid=00").and_then(path);
    assert_eq!(found.as_deref(), Some(Path::new("/tmp/a b")));
    let found = address("unix:guid=00,abstract=/tmp/dbus-x").unwrap();
    assert_eq!(found.as_abstract_name(), Some(&b"/tmp/dbus-x"[..]));
    for other in ["tcp:host=localhost,port=1", "unix:tmpdir=/tmp", "unix:", "autolaunch:", ""] {
        assert!(unix_address(other).is_none(), "{other}");
    }
    assert!(unix_address(&format!("unix:path=/{}", "x".repeat(200))).unwrap().is_err());
}

proptest! {
    #[test]
    fn any_message_is_read_or_refused(start: [u8; 12], fields in 0_u32..64, rest: Vec<u8>) {
        let mut whole = start.to_vec();
        let is_big_endian = start[0].is_multiple_of(2);
        whole[0] = if is_big_endian { b'B' } else { b'l' };
        whole.extend(if is_big_endian { fields.to_be_bytes() } else { fields.to_le_bytes() });
        whole.extend(rest);
        if let Ok(mut message) = BusMessage::read(Zeroizing::new(whole)) {
            let _ = message.body.text_variant();
            let _ = message.body.paths();
            let _ = message.body.bytes();
        }
    }
}
