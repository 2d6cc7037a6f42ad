//! Server-sent events, both ways: a parser for bytes as they arrive, and the writer.

use crate::id::Id;
use crate::overlong::OverlongMessage;

/// One event. `data` lines are joined with a line break, as the standard says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    pub event: Option<String>,
    pub data: String,
    pub id: Option<String>,
    pub retry_ms: Option<u64>,
    /// Its data was too long and is not here.
    pub skipped: Option<SkippedData>,
}

/// The data of an event that was too long to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedData {
    /// The request that it answers, if it is a message.
    pub answered: Option<Id>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the event exceeds {0} bytes")]
pub struct TooLong(usize);

/// Takes chunks of any size and yields whole events. Bytes of an incomplete event are kept.
pub struct Parser {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    size: usize,
    size_max: usize,
    after_cr: bool,
    at_start: bool,
    excess: Excess,
}

/// The treatment of an event that is too long.
enum Excess {
    Refused,
    Skipped(Option<Box<SkippedEvent>>),
}

/// The rest of an event that is being skipped. The start of each line is kept to find its data.
#[derive(Default)]
struct SkippedEvent {
    message: OverlongMessage,
    is_data: bool,
}

impl Parser {
    /// Creates a parser that fails at an event that is too long.
    pub fn new(size_max: usize) -> Self {
        Parser {
            line: Vec::new(),
            event: SseEvent::default(),
            has_data: false,
            size: 0,
            size_max,
            after_cr: false,
            at_start: true,
            excess: Excess::Refused,
        }
    }

    /// Creates a parser that skips the data of an event that is too long, and never fails.
    pub fn skipping(size_max: usize) -> Self {
        Parser { excess: Excess::Skipped(None), ..Parser::new(size_max) }
    }

    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<SseEvent>, TooLong> {
        let mut events = Vec::new();
        for &byte in chunk {
            let line_feed_of_pair = byte == b'\n' && std::mem::take(&mut self.after_cr);
            self.after_cr = byte == b'\r';
            match byte {
                b'\n' if line_feed_of_pair => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                other => self.take(other)?,
            }
        }
        Ok(events)
    }

    fn take(&mut self, byte: u8) -> Result<(), TooLong> {
        if let Excess::Skipped(Some(skipped)) = &mut self.excess {
            skipped.take(byte, &mut self.line);
            return Ok(());
        }
        self.size += 1;
        self.line.push(byte);
        if self.size <= self.size_max {
            return Ok(());
        }
        match &mut self.excess {
            Excess::Refused => Err(TooLong(self.size_max)),
            Excess::Skipped(skipped) => {
                let mut begun = Box::<SkippedEvent>::default();
                begun.message.push(self.event.data.as_bytes());
                for byte in std::mem::take(&mut self.line) {
                    begun.take(byte, &mut self.line);
                }
                self.event.data = String::new();
                *skipped = Some(begun);
                Ok(())
            }
        }
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        if let Excess::Skipped(Some(skipped)) = &mut self.excess {
            skipped.is_data = false;
            let is_last = std::mem::take(&mut self.line).is_empty();
            return if is_last { self.dispatch() } else { None };
        }
        let line = std::mem::take(&mut self.line);
        let mut text = String::from_utf8_lossy(&line).into_owned();
        if std::mem::take(&mut self.at_start) && text.starts_with('\u{feff}') {
            text.remove(0);
        }
        if text.is_empty() {
            return self.dispatch();
        }
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            "event" => self.event.event = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry_ms = value.parse().ok(),
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        self.size = 0;
        let mut event = std::mem::take(&mut self.event);
        if let Excess::Skipped(skipped) = &mut self.excess
            && let Some(skipped) = skipped.take()
        {
            self.has_data = false;
            event.skipped = Some(SkippedData { answered: skipped.message.answered() });
            return Some(event);
        }
        let whole = std::mem::take(&mut self.has_data) || event.retry_ms.is_some();
        whole.then_some(event)
    }
}

impl SkippedEvent {
    /// Takes a byte of a line, of which no more than the name of the field is kept.
    fn take(&mut self, byte: u8, line: &mut Vec<u8>) {
        if self.is_data {
            self.message.push(&[byte]);
        } else if line.len() < DATA.len() {
            line.push(byte);
            self.is_data = line.as_slice() == DATA;
        }
    }
}

/// The start of a line that holds data.
const DATA: &[u8] = b"data:";

/// Formats a message event with an id, from which the stream can be resumed. `json` must be one line.
pub fn message_event(id: &str, json: &[u8]) -> Vec<u8> {
    [format!("id: {id}\nevent: message\ndata: ").as_bytes(), json, b"\n\n"].concat()
}

/// Formats an event without data: it only tells the client from where the stream can be resumed, and
/// after which time.
pub fn empty_event(id: &str, retry_ms: u128) -> Vec<u8> {
    format!("id: {id}\nretry: {retry_ms}\ndata: \n\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(chunks: &[&[u8]]) -> Vec<SseEvent> {
        let mut parser = Parser::new(1000);
        chunks.iter().flat_map(|chunk| parser.push(chunk).unwrap()).collect()
    }

    #[test]
    fn fields_comments_and_line_ends() {
        let stream = "\u{feff}: hello\r\nevent: message\r\nid: 7\r\ndata: a\r\ndata:b\r\n\r\n\
                      data\n\nretry: 500\n\nignored: x\n\ndata: \u{20ac}\r\r";
        let events = parse(&[stream.as_bytes()]);
        let data: Vec<&str> = events.iter().map(|event| event.data.as_str()).collect();
        assert_eq!(data, ["a\nb", "", "", "\u{20ac}"]);
        assert_eq!(events[0].id.as_deref(), Some("7"));
        assert_eq!(events[2].retry_ms, Some(500));
    }

    #[test]
    fn written_events_are_read_back() {
        let events = parse(&[&empty_event("1-2-0", 1000), &message_event("1-2-1", b"{}")]);
        let [empty, message] = &events[..] else { panic!("{events:?}") };
        assert_eq!((empty.id.as_deref(), empty.retry_ms), (Some("1-2-0"), Some(1000)));
        assert_eq!(empty.data, "");
        assert_eq!((message.id.as_deref(), &*message.data), (Some("1-2-1"), "{}"));
    }

    #[test]
    fn the_data_of_an_event_that_is_too_long_is_skipped() {
        let long = "x".repeat(100);
        let stream = format!(
            "id: 1\ndata: {{\"jsonrpc\":\"2.0\",\r\ndata:\"result\":\"{long}\",\n: data:{long}\n\
             data: \"id\":7}}\n\ndata: small\n\n{long}\n\n"
        );
        for size in [1, 7, stream.len()] {
            let mut parser = Parser::skipping(40);
            let events: Vec<SseEvent> =
                stream.as_bytes().chunks(size).flat_map(|it| parser.push(it).unwrap()).collect();
            let [skipped, small, nameless] = &events[..] else { panic!("{events:?}") };
            let answered = Some(Id::Number(7));
            assert_eq!(skipped.skipped, Some(SkippedData { answered }), "{size}");
            assert_eq!((skipped.id.as_deref(), &*skipped.data), (Some("1"), ""));
            assert_eq!((&*small.data, &small.skipped), ("small", &None));
            assert_eq!(nameless.skipped, Some(SkippedData::default()));
            assert!(parser.line.capacity() <= 64, "{}", parser.line.capacity());
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut parser = Parser::new(10);
        assert_eq!(parser.push(b"data: 0123456789"), Err(TooLong(10)));
    }

    proptest! {
        #[test]
        fn chunking_does_not_affect_events(cuts in proptest::collection::vec(0usize..60, 0..8)) {
            let stream = "id: 1\r\ndata: {\"\u{20ac}\": 1}\r\n\r\n: c\n\ndata: x\ndata: y\n\n".as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&stream[from..cut]);
                from = cut;
            }
            chunks.push(&stream[from..]);
            prop_assert_eq!(parse(&chunks), parse(&[stream]));
        }
    }
}
