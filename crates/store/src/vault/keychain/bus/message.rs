//! Messages of D-Bus with the few types that the Secret Service uses. All that may hold a key is
//! overwritten when it is dropped.

use zeroize::Zeroizing;

use super::BusFault;

/// The part of a message that says how long the rest is.
pub(super) const PREFIX_BYTES: usize = 16;

/// The most bytes of a message: an answer has a few hundred.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// Room for a call, so that no copy of a key is left behind when it grows.
const CALL_BYTES: usize = 4096;

const LITTLE_ENDIAN: u8 = b'l';
const BIG_ENDIAN: u8 = b'B';
const VERSION: u8 = 1;

/// Kinds of messages.
const CALL: u8 = 1;
const RETURN: u8 = 2;
const ERROR: u8 = 3;

/// Fields of a head.
const PATH: u8 = 1;
const INTERFACE: u8 = 2;
const MEMBER: u8 = 3;
const ERROR_NAME: u8 = 4;
const REPLY_SERIAL: u8 = 5;
const DESTINATION: u8 = 6;
const SIGNATURE: u8 = 8;

/// Structures, entries of maps and bodies begin at a multiple of this.
const STRUCTURE_ALIGNMENT: usize = 8;

/// A method of a program on the bus, with the types of its arguments and its answer.
pub(in super::super) struct BusMethod {
    pub(in super::super) destination: &'static str,
    pub(in super::super) interface: &'static str,
    pub(in super::super) name: &'static str,
    pub(in super::super) takes: &'static str,
    pub(in super::super) gives: &'static str,
}

/// Writes the message that calls a method.
pub(super) fn call(
    serial: u32,
    path: &str,
    method: &BusMethod,
    arguments: impl FnOnce(&mut ValueWriter),
) -> Zeroizing<Vec<u8>> {
    let mut body = ValueWriter::new();
    arguments(&mut body);
    let mut whole = ValueWriter::new();
    whole.bytes.extend([LITTLE_ENDIAN, CALL, 0, VERSION]);
    whole.number(length(body.bytes.len()));
    whole.number(serial);
    whole.list(STRUCTURE_ALIGNMENT, |fields| {
        let texts = [
            (PATH, "o", path),
            (DESTINATION, "s", method.destination),
            (INTERFACE, "s", method.interface),
            (MEMBER, "s", method.name),
        ];
        for (field, kind, text) in texts {
            fields.structure();
            fields.bytes.push(field);
            fields.signature(kind);
            fields.text(text);
        }
        if !method.takes.is_empty() {
            fields.structure();
            fields.bytes.push(SIGNATURE);
            fields.signature("g");
            fields.signature(method.takes);
        }
    });
    whole.structure();
    whole.bytes.extend_from_slice(&body.bytes);
    whole.bytes
}

/// Values as they are written in a message.
pub(in super::super) struct ValueWriter {
    bytes: Zeroizing<Vec<u8>>,
}

impl ValueWriter {
    fn new() -> ValueWriter {
        ValueWriter { bytes: Zeroizing::new(Vec::with_capacity(CALL_BYTES)) }
    }

    fn align(&mut self, to: usize) {
        let end = self.bytes.len().next_multiple_of(to);
        self.bytes.resize(end, 0);
    }

    fn number(&mut self, number: u32) {
        self.align(size_of::<u32>());
        self.bytes.extend(number.to_le_bytes());
    }

    fn signature(&mut self, signature: &str) {
        self.bytes.push(u8::try_from(signature.len()).unwrap_or(u8::MAX));
        self.bytes.extend_from_slice(signature.as_bytes());
        self.bytes.push(0);
    }

    /// Begins a structure or an entry of a map.
    pub(in super::super) fn structure(&mut self) {
        self.align(STRUCTURE_ALIGNMENT);
    }

    pub(in super::super) fn boolean(&mut self, value: bool) {
        self.number(value.into());
    }

    /// Writes a string or a path.
    pub(in super::super) fn text(&mut self, text: &str) {
        self.number(length(text.len()));
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
    }

    pub(in super::super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(length(bytes.len()));
        self.bytes.extend_from_slice(bytes);
    }

    pub(in super::super) fn paths(&mut self, paths: &[&str]) {
        self.list(size_of::<u32>(), |list| paths.iter().for_each(|path| list.text(path)));
    }

    /// Writes a map of names to texts.
    pub(in super::super) fn texts(&mut self, entries: &[(&str, &str)]) {
        self.map(|map| {
            for (name, text) in entries {
                map.structure();
                map.text(name);
                map.text(text);
            }
        });
    }

    /// Writes a map; each entry begins with [`ValueWriter::structure`].
    pub(in super::super) fn map(&mut self, entries: impl FnOnce(&mut ValueWriter)) {
        self.list(STRUCTURE_ALIGNMENT, entries);
    }

    /// Writes a value together with its type.
    pub(in super::super) fn variant(&mut self, kind: &str, value: impl FnOnce(&mut ValueWriter)) {
        self.signature(kind);
        value(self);
    }

    fn list(&mut self, alignment: usize, elements: impl FnOnce(&mut ValueWriter)) {
        self.number(0);
        let length_end = self.bytes.len();
        self.align(alignment);
        let start = self.bytes.len();
        elements(self);
        let written = length(self.bytes.len() - start).to_le_bytes();
        self.bytes[length_end - written.len()..length_end].copy_from_slice(&written);
    }
}

/// Lengths over the limit do not occur: the texts are our own.
fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Return,
    Error,
    /// A signal, or a call of ours.
    Other,
}

/// A message that has arrived.
pub(super) struct BusMessage {
    pub(super) kind: MessageKind,
    pub(super) reply_to: Option<u32>,
    pub(super) error_name: String,
    /// The types of the body.
    pub(super) signature: String,
    pub(super) body: ValueReader,
}

/// Returns room for the message that begins with this prefix.
pub(super) fn space(prefix: [u8; PREFIX_BYTES]) -> Result<Zeroizing<Vec<u8>>, BusFault> {
    let mut reader = ValueReader::new(Zeroizing::new(prefix.to_vec()))?;
    let body = reader.size()?;
    let _serial = reader.number()?;
    let head = (PREFIX_BYTES + reader.size()?).next_multiple_of(STRUCTURE_ALIGNMENT);
    let mut whole = Zeroizing::new(vec![0; head + body]);
    whole[..PREFIX_BYTES].copy_from_slice(&prefix);
    Ok(whole)
}

impl BusMessage {
    pub(super) fn read(whole: Zeroizing<Vec<u8>>) -> Result<BusMessage, BusFault> {
        let kind = match whole[1] {
            RETURN => MessageKind::Return,
            ERROR => MessageKind::Error,
            _ => MessageKind::Other,
        };
        let mut reader = ValueReader::new(whole)?;
        reader.at = PREFIX_BYTES - size_of::<u32>();
        let end = reader.size()? + PREFIX_BYTES;
        let (mut reply_to, mut error_name, mut signature) = (None, String::new(), String::new());
        while reader.at < end {
            reader.structure();
            let field = reader.byte()?;
            match (reader.signature()?.as_str(), field) {
                ("u", REPLY_SERIAL) => reply_to = Some(reader.number()?),
                ("s", ERROR_NAME) => error_name = reader.text()?,
                ("g", SIGNATURE) => signature = reader.signature()?,
                ("u", _) => drop(reader.number()?),
                ("s" | "o", _) => drop(reader.text()?),
                _ => return Err(BusFault::Malformed),
            }
        }
        reader.structure();
        Ok(BusMessage { kind, reply_to, error_name, signature, body: reader })
    }
}

/// Reads values of a message in their order.
pub(in super::super) struct ValueReader {
    bytes: Zeroizing<Vec<u8>>,
    at: usize,
    is_big_endian: bool,
}

impl ValueReader {
    /// Reads a message after its first four bytes.
    fn new(bytes: Zeroizing<Vec<u8>>) -> Result<ValueReader, BusFault> {
        let is_big_endian = match bytes.first() {
            Some(&LITTLE_ENDIAN) => false,
            Some(&BIG_ENDIAN) => true,
            _ => return Err(BusFault::Malformed),
        };
        Ok(ValueReader { bytes, at: size_of::<u32>(), is_big_endian })
    }

    fn take(&mut self, count: usize) -> Result<&[u8], BusFault> {
        let end = self.at + count;
        let taken = self.bytes.get(self.at..end).ok_or(BusFault::Malformed)?;
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, BusFault> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u32, BusFault> {
        self.at = self.at.next_multiple_of(size_of::<u32>());
        let is_big_endian = self.is_big_endian;
        let bytes = self.take(size_of::<u32>())?.try_into().map_err(|_| BusFault::Malformed)?;
        Ok(if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Reads a length, which no message exceeds.
    fn size(&mut self) -> Result<usize, BusFault> {
        let size = usize::try_from(self.number()?).ok();
        size.filter(|size| *size <= MESSAGE_BYTES_MAX).ok_or(BusFault::Malformed)
    }

    fn signature(&mut self) -> Result<String, BusFault> {
        let length = self.byte()?.into();
        self.terminated(length)
    }

    fn terminated(&mut self, length: usize) -> Result<String, BusFault> {
        let text = str::from_utf8(self.take(length)?).map_err(|_| BusFault::Malformed)?.to_owned();
        match self.byte()? {
            0 => Ok(text),
            _ => Err(BusFault::Malformed),
        }
    }

    /// Begins a structure.
    pub(in super::super) fn structure(&mut self) {
        self.at = self.at.next_multiple_of(STRUCTURE_ALIGNMENT);
    }

    /// Reads a string or a path.
    pub(in super::super) fn text(&mut self) -> Result<String, BusFault> {
        let length = self.size()?;
        self.terminated(length)
    }

    pub(in super::super) fn bytes(&mut self) -> Result<Zeroizing<Vec<u8>>, BusFault> {
        let length = self.size()?;
        Ok(Zeroizing::new(self.take(length)?.to_vec()))
    }

    pub(in super::super) fn paths(&mut self) -> Result<Vec<String>, BusFault> {
        let end = self.size()? + self.at;
        let mut paths = Vec::new();
        while self.at < end {
            paths.push(self.text()?);
        }
        Ok(paths)
    }

    /// Reads a string that comes with its type.
    pub(in super::super) fn text_variant(&mut self) -> Result<String, BusFault> {
        match self.signature()?.as_str() {
            "s" => self.text(),
            _ => Err(BusFault::Malformed),
        }
    }
}
