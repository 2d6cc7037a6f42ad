//! A stream of HTTP/1 requests in which every line of a head ends with CRLF. The HTTP library also
//! takes a bare LF, which a proxy in front may read as part of a value: the two would then disagree
//! on where a header or a request ends. The first head, and any that has begun, must arrive in time;
//! the library cannot tell them from a connection that waits for its next request.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::HEAD_TIMEOUT;

/// Follows a bare LF: the library rejects the head once it looks complete.
const END: &[u8] = b"\r\n\r\n";

const LINE_END: &[u8] = b"\r\n";

/// The longest size line of a chunk that is followed.
const SIZE_LINE_BYTES_MAX: usize = 1024;

pub(super) struct StrictRequests<S> {
    stream: S,
    place: Place,
    /// The rest of the end after a bare LF.
    rejected: Option<&'static [u8]>,
    /// Runs while the rest of a head is awaited.
    patience: Option<Pin<Box<Sleep>>>,
}

/// A place in the stream.
enum Place {
    Head(HeadLines),
    /// Bytes of a body.
    Body(u64),
    /// The line with the size of a chunk.
    Size(Vec<u8>),
    /// Bytes of a chunk, with the line end after it.
    Chunk(u64),
    /// The lines after the last chunk.
    Trailer(HeadLines),
    /// Framing that the library rejects.
    Unknown,
}

#[derive(Default)]
struct HeadLines {
    line: Vec<u8>,
    length: u64,
    is_chunked: bool,
    has_lines: bool,
    is_first: bool,
}

impl Place {
    /// The start of a connection.
    fn first() -> Place {
        Place::Head(HeadLines { is_first: true, ..HeadLines::default() })
    }

    fn start() -> Place {
        Place::Head(HeadLines::default())
    }

    /// Reports whether the client owes a head, or the rest of one.
    fn is_in_head(&self) -> bool {
        match self {
            Place::Head(head) => head.is_first || head.has_lines || !head.line.is_empty(),
            _ => false,
        }
    }

    /// Follows some bytes; returns the position of a bare LF.
    fn follow(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self {
                Place::Body(left) | Place::Chunk(left) => {
                    let taken = (*left).min(rest.len() as u64);
                    *left -= taken;
                    at += usize::try_from(taken).unwrap_or(usize::MAX);
                }
                Place::Head(HeadLines { line, .. })
                | Place::Trailer(HeadLines { line, .. })
                | Place::Size(line) => match memchr::memchr(b'\n', rest) {
                    Some(end) => {
                        line.extend_from_slice(&rest[..=end]);
                        at += end + 1;
                        if !line.ends_with(LINE_END) {
                            return Some(at - 1);
                        }
                    }
                    None => {
                        line.extend_from_slice(rest);
                        at = bytes.len();
                    }
                },
                Place::Unknown => return None,
            }
            self.advance();
        }
        None
    }

    /// Moves on at the end of a line or of a body.
    fn advance(&mut self) {
        let next = match self {
            Place::Body(0) => Place::start(),
            Place::Chunk(0) => Place::Size(Vec::new()),
            Place::Size(line) if line.len() > SIZE_LINE_BYTES_MAX => Place::Unknown,
            Place::Size(line) if line.ends_with(LINE_END) => match chunk_size(line) {
                Some(0) => Place::Trailer(HeadLines::default()),
                Some(size) => Place::Chunk(size.saturating_add(2)),
                None => Place::Unknown,
            },
            Place::Head(head) if head.line.ends_with(LINE_END) => match head.finish_line() {
                false => return,
                true if head.is_chunked => Place::Size(Vec::new()),
                true if head.length > 0 => Place::Body(head.length),
                true => Place::start(),
            },
            Place::Trailer(trailer) if trailer.line == LINE_END => Place::start(),
            Place::Trailer(trailer) if trailer.line.ends_with(LINE_END) => {
                return trailer.line.clear();
            }
            _ => return,
        };
        *self = next;
    }
}

impl HeadLines {
    /// Reads a complete line; reports whether the head has ended.
    fn finish_line(&mut self) -> bool {
        if self.line == LINE_END {
            self.line.clear();
            // Empty lines before a request are skipped.
            return self.has_lines;
        }
        self.has_lines = true;
        if let Some(value) = value_of(&self.line, b"content-length:") {
            let length = std::str::from_utf8(value).ok().and_then(|text| text.trim().parse().ok());
            self.length = length.unwrap_or_default();
        } else if value_of(&self.line, b"transfer-encoding:").is_some() {
            self.is_chunked = true;
        }
        self.line.clear();
        false
    }
}

/// Returns what follows a name, with its colon, at the start of a line.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then_some(value)
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    u64::from_str_radix(text.split(';').next()?.trim(), 16).ok()
}

impl<S> StrictRequests<S> {
    pub(super) fn new(stream: S) -> StrictRequests<S> {
        StrictRequests { stream, place: Place::first(), rejected: None, patience: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StrictRequests<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(end) = &mut self.rejected {
            let (now, later) = end.split_at(end.len().min(buffer.remaining()));
            buffer.put_slice(now);
            *end = later;
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Ready(read) => read?,
            Poll::Pending if self.place.is_in_head() => {
                let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(HEAD_TIMEOUT)));
                ready!(patience.as_mut().poll(cx));
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            Poll::Pending => return Poll::Pending,
        }
        if let Some(at) = self.place.follow(&buffer.filled()[before..]) {
            // No head may hold a NUL.
            buffer.filled_mut()[before + at] = 0;
            buffer.set_filled(before + at + 1);
            self.rejected = Some(END);
        }
        if !self.place.is_in_head() {
            self.patience = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StrictRequests<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Follows the text in pieces of every size; returns the position of a bare LF.
    fn bare(text: &str) -> Option<usize> {
        let whole = Place::start().follow(text.as_bytes());
        for size in 1..=text.len() {
            let mut place = Place::start();
            let mut pieces = text.as_bytes().chunks(size).enumerate();
            let found = pieces.find_map(|(n, piece)| Some(n * size + place.follow(piece)?));
            assert_eq!(found, whole, "in pieces of {size}");
        }
        whole
    }

    #[test]
    fn lines_of_a_head_end_with_crlf() {
        for (text, expected) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", None),
            ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n", None),
            ("GET / HTTP/1.1\n\n", Some(14)),
            ("\nGET / HTTP/1.1\r\n", Some(0)),
            ("GET / HTTP/1.1\r\nX: a\nHost: b\r\n\r\n", Some(20)),
            ("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n\n\n\nGET / HTTP/1.1\r\n\r\n", None),
            ("POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\n\n\n\nGET /\n", Some(46)),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n\n\n\n\r\n0\r\n\r\nG\r\n",
                None,
            ),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: a\n", Some(54)),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG\n", Some(53)),
        ] {
            assert_eq!(bare(text), expected, "{text:?}");
        }
    }

    const REQUEST: &[u8] = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";

    /// Sends each piece after a pause; returns the number of bytes that were read, and the error.
    async fn read(pieces: &[(Duration, &[u8])]) -> (usize, Option<io::ErrorKind>) {
        let (mut theirs, ours) = tokio::io::duplex(1024);
        let mut ours = StrictRequests::new(ours);
        let reading = tokio::spawn(async move {
            let (mut read, mut buffer) = (0, [0; 1024]);
            loop {
                match ours.read(&mut buffer).await {
                    Ok(0) => return (read, None),
                    Ok(more) => read += more,
                    Err(error) => return (read, Some(error.kind())),
                }
            }
        });
        for (pause, piece) in pieces {
            tokio::time::sleep(*pause).await;
            // The other side may have stopped reading.
            let _ = theirs.write_all(piece).await;
        }
        drop(theirs);
        reading.await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_must_arrive_in_time_and_the_next_request_need_not() {
        let (soon, late) = (HEAD_TIMEOUT / 3, HEAD_TIMEOUT * 2);
        let all = REQUEST.len();
        let (start, rest) = REQUEST.split_at(20);
        let (head, body) = REQUEST.split_at(all - 2);
        for (pieces, expected) in [
            (vec![(soon, REQUEST), (late, REQUEST), (late, REQUEST)], (3 * all, None)),
            (vec![(soon, start), (soon, rest)], (all, None)),
            // Bodies have their own limit.
            (vec![(soon, head), (late, body), (late, REQUEST)], (2 * all, None)),
            (vec![(late, REQUEST)], (0, Some(io::ErrorKind::TimedOut))),
            (vec![(soon, b"\r\n"), (late, REQUEST)], (2, Some(io::ErrorKind::TimedOut))),
            (
                vec![(soon, start), (soon, b"X"), (soon * 2, rest)],
                (21, Some(io::ErrorKind::TimedOut)),
            ),
            (
                vec![(soon, REQUEST), (late, start), (late, rest)],
                (all + 20, Some(io::ErrorKind::TimedOut)),
            ),
        ] {
            assert_eq!(read(&pieces).await, expected, "{pieces:?}");
        }
    }
}
