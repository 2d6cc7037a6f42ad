//! A stream of HTTP/1 requests in which every line of a head ends with CRLF. The HTTP library also
//! takes a bare LF, which a proxy in front may read as part of a value: the two would then disagree
//! on where a header or a request ends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Follows a bare LF: the library rejects the head once it looks complete.
const END: &[u8] = b"\r\n\r\n";

/// The longest size line of a chunk that is followed.
const SIZE_LINE_BYTES_MAX: usize = 1024;

pub(super) struct StrictRequests<S> {
    stream: S,
    place: Place,
    /// The rest of the end after a bare LF.
    rejected: Option<&'static [u8]>,
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
}

impl Place {
    fn start() -> Place {
        Place::Head(HeadLines::default())
    }

    /// Follows some bytes; returns the position of a bare LF.
    fn follow(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            match self {
                Place::Body(left) | Place::Chunk(left) => {
                    let taken = (*left).min((bytes.len() - at) as u64);
                    *left -= taken;
                    at += usize::try_from(taken).unwrap_or(usize::MAX);
                }
                Place::Head(HeadLines { line, .. })
                | Place::Trailer(HeadLines { line, .. })
                | Place::Size(line) => {
                    if bytes[at] == b'\n' && line.last() != Some(&b'\r') {
                        return Some(at);
                    }
                    line.push(bytes[at]);
                    at += 1;
                }
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
            Place::Size(line) if line.ends_with(b"\r\n") => match chunk_size(line) {
                Some(0) => Place::Trailer(HeadLines::default()),
                Some(size) => Place::Chunk(size.saturating_add(2)),
                None => Place::Unknown,
            },
            Place::Size(line) if line.len() > SIZE_LINE_BYTES_MAX => Place::Unknown,
            Place::Head(head) if head.line.ends_with(b"\r\n") => match head.finish_line() {
                false => return,
                true if head.is_chunked => Place::Size(Vec::new()),
                true if head.length > 0 => Place::Body(head.length),
                true => Place::start(),
            },
            Place::Trailer(trailer) if trailer.line == b"\r\n" => Place::start(),
            Place::Trailer(trailer) if trailer.line.ends_with(b"\r\n") => {
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
        let line = std::mem::take(&mut self.line);
        if line == b"\r\n" {
            // Empty lines before a request are skipped.
            return self.has_lines;
        }
        self.has_lines = true;
        let text = String::from_utf8_lossy(&line);
        if let Some((name, value)) = text.split_once(':') {
            if name.eq_ignore_ascii_case("content-length") {
                self.length = value.trim().parse().unwrap_or_default();
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                self.is_chunked = true;
            }
        }
        false
    }
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    u64::from_str_radix(text.split(';').next()?.trim(), 16).ok()
}

impl<S> StrictRequests<S> {
    pub(super) fn new(stream: S) -> StrictRequests<S> {
        StrictRequests { stream, place: Place::start(), rejected: None }
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
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if let Some(at) = self.place.follow(&buffer.filled()[before..]) {
            // No head may hold a NUL.
            buffer.filled_mut()[before + at] = 0;
            buffer.set_filled(before + at + 1);
            self.rejected = Some(END);
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
}
