//! One message per line over a pair of byte streams: stdio, a child's pipes, a socket, memory. A
//! line that is too long or not a message gets an error response if a client sent it, and is
//! skipped if a server did, whose stdout may hold noise; the connection continues either way. If a
//! response is too long, its request fails.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::delivery::{Delivery, Dispatch};
use crate::error::INVALID_REQUEST;
use crate::id::Id;
use crate::limits;
use crate::message::{BATCH_FORBIDDEN, BadFrame, Frame, Message, Response};
use crate::overlong::OverlongMessage;
use crate::peer::{ConnectionClosed, MessageRoute, Outbox, Peer, RequestError, Service};
use crate::task;

/// Streams are boxed, so that a connection's code is compiled once for all kinds of them.
type BoxReader = Box<dyn AsyncRead + Unpin + Send>;
type BoxWriter = Box<dyn AsyncWrite + Unpin + Send>;

/// Serves the other side until it closes its end or the peer is closed, then answers the requests
/// still in flight. `started` receives the peer before the first message is read.
pub fn serve(
    reader: impl AsyncRead + Unpin + Send + 'static,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    service: Arc<dyn Service>,
    started: impl FnOnce(Peer),
) -> BoxFuture<'static, ()> {
    let (peer, outgoing) = open(service);
    started(peer.clone());
    serve_peer(Box::new(reader), Box::new(writer), peer, outgoing).boxed()
}

async fn serve_peer(
    reader: BoxReader,
    writer: BoxWriter,
    peer: Peer,
    outgoing: mpsc::Receiver<OutgoingLine>,
) {
    let writing = task::spawn(write_lines(writer, outgoing, peer.clone()));
    let mut reader = LineReader::new(reader);
    read_lines(&mut reader, &peer, BadFrames::Answer).await;
    let _ = tokio::time::timeout(limits::DRAIN, peer.idle()).await;
    peer.close("the other side closed its end");
    let _ = tokio::time::timeout(limits::DRAIN, writing).await;
}

/// A connection that lives until the peer is closed or the other side ends it.
pub fn connect(
    reader: impl AsyncRead + Unpin + Send + 'static,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    service: Arc<dyn Service>,
) -> Peer {
    let (peer, outgoing) = open(service);
    task::spawn(write_lines(Box::new(writer), outgoing, peer.clone()));
    task::spawn(read_answers(Box::new(reader), peer.clone()));
    peer
}

async fn read_answers(reader: BoxReader, peer: Peer) {
    let mut reader = LineReader::new(reader);
    read_lines(&mut reader, &peer, BadFrames::PassOver).await;
    peer.close("the other side closed its end");
}

fn open(service: Arc<dyn Service>) -> (Peer, mpsc::Receiver<OutgoingLine>) {
    let (sender, outgoing) = mpsc::channel(limits::OUTBOX_MESSAGES_MAX);
    let room = Arc::new(Semaphore::new(limits::OUTBOX_BYTES_MAX));
    (Peer::new(Arc::new(LineOutbox { sender, room }), service), outgoing)
}

struct LineOutbox {
    sender: mpsc::Sender<OutgoingLine>,
    /// The bytes that may still wait to be written.
    room: Arc<Semaphore>,
}

/// A line that waits to be written, and the room it takes until then.
struct OutgoingLine {
    text: Bytes,
    delivery: Option<Arc<Delivery>>,
    _room: OwnedSemaphorePermit,
}

impl OutgoingLine {
    /// Writes the line, unless it was withdrawn before its first byte was taken.
    async fn write(&self, writer: &mut BoxWriter) -> io::Result<()> {
        let Some(taken) = poll_fn(|cx| self.poll_first_bytes(writer, cx)).await? else {
            return Ok(());
        };
        writer.write_all(&self.text[taken..]).await?;
        writer.write_all(b"\n").await
    }

    /// Writes the first bytes and returns their number; `None` if the line must not be sent.
    fn poll_first_bytes(
        &self,
        writer: &mut BoxWriter,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<usize>>> {
        let Some(delivery) = &self.delivery else { return Poll::Ready(Ok(Some(0))) };
        if !delivery.begin() {
            return Poll::Ready(Ok(None));
        }
        let taken = Pin::new(writer).poll_write(cx, &self.text);
        if !matches!(taken, Poll::Ready(Ok(_))) {
            delivery.undo();
        }
        taken.map_ok(Some)
    }
}

impl LineOutbox {
    async fn write(
        &self,
        line: Vec<u8>,
        delivery: Option<Arc<Delivery>>,
    ) -> Result<(), ConnectionClosed> {
        let closed = || ConnectionClosed("the other side no longer reads".to_owned());
        let size = u32::try_from(line.len().min(limits::OUTBOX_BYTES_MAX)).unwrap_or(u32::MAX);
        let waiting = self.room.clone().acquire_many_owned(size);
        let room = tokio::select! {
            biased;
            room = waiting => room.map_err(|_| closed())?,
            () = self.sender.closed() => return Err(closed()),
        };
        let line = OutgoingLine { text: Bytes::from(line), delivery, _room: room };
        self.sender.send(line).await.map_err(|_| closed())
    }
}

impl Outbox for LineOutbox {
    fn send(
        &self,
        message: Message,
        _route: MessageRoute,
    ) -> BoxFuture<'_, Result<(), ConnectionClosed>> {
        self.write(message.to_line(), None).boxed()
    }

    fn dispatch<'a>(
        &'a self,
        message: Message,
        _route: MessageRoute,
        dispatch: Dispatch<'a>,
    ) -> BoxFuture<'a, Result<(), ConnectionClosed>> {
        self.write(message.to_line(), Some(dispatch.delivery.clone())).boxed()
    }

    fn send_batch(&self, responses: Vec<Response>) -> BoxFuture<'_, Result<(), ConnectionClosed>> {
        self.write(batch_line(responses), None).boxed()
    }
}

/// Formats responses as one array, without the newline.
pub(crate) fn batch_line(responses: Vec<Response>) -> Vec<u8> {
    let lines: Vec<Vec<u8>> =
        responses.into_iter().map(|response| Message::from(response).to_line()).collect();
    [b"[".as_slice(), &lines.join(&b','), b"]"].concat()
}

async fn write_lines(
    mut writer: BoxWriter,
    mut outgoing: mpsc::Receiver<OutgoingLine>,
    peer: Peer,
) {
    loop {
        let line = tokio::select! {
            biased;
            Some(line) = outgoing.recv() => line,
            _ = peer.closed() => break,
        };
        if let Err(error) = write_line(&mut writer, &mut outgoing, line).await {
            peer.close(&format!("cannot write: {error}"));
            return;
        }
    }
    let _ = writer.shutdown().await;
}

/// Writes a line and all others that are ready, then flushes once.
async fn write_line(
    writer: &mut BoxWriter,
    outgoing: &mut mpsc::Receiver<OutgoingLine>,
    first: OutgoingLine,
) -> io::Result<()> {
    let mut next = Some(first);
    while let Some(line) = next {
        line.write(writer).await?;
        next = outgoing.try_recv().ok();
    }
    writer.flush().await
}

#[derive(Clone, Copy)]
enum BadFrames {
    Answer,
    PassOver,
}

impl BadFrames {
    fn is_of_server(self) -> bool {
        matches!(self, BadFrames::PassOver)
    }

    async fn take(self, bad: BadFrame, peer: &Peer) {
        peer.reject(&bad);
        match self {
            BadFrames::Answer => peer.refuse(bad).await,
            BadFrames::PassOver => {
                tracing::debug!(error = %bad.error, "ignored a line that is not a message")
            }
        }
    }
}

async fn read_lines(reader: &mut LineReader<BoxReader>, peer: &Peer, bad_frames: BadFrames) {
    loop {
        peer.has_room().await;
        let line = tokio::select! {
            line = reader.next() => line,
            _ = peer.closed() => return,
        };
        match line {
            Ok(Some(Line::Whole(line))) => {
                if let Err(bad) = take_line(&line, peer) {
                    bad_frames.take(bad, peer).await;
                }
            }
            Ok(Some(Line::TooLong(Some(Id::Number(id))))) if bad_frames.is_of_server() => {
                peer.fail(id, RequestError::TooLarge);
            }
            Ok(Some(Line::TooLong(_))) => {
                let message = format!("the frame exceeds {} bytes", limits::FRAME_BYTES_MAX);
                bad_frames.take(BadFrame::new(INVALID_REQUEST, message), peer).await;
            }
            Ok(None) | Err(_) => return,
        }
    }
}

fn take_line(line: &[u8], peer: &Peer) -> Result<(), BadFrame> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    match Frame::parse(line)? {
        Frame::Single(message) => peer.receive(message),
        Frame::Batch(batch) if peer.version().is_some_and(|v| v.allows_batches()) => {
            peer.receive_batch(batch);
        }
        Frame::Batch(batch) => {
            peer.reject_batch(&batch);
            return Err(BadFrame::new(INVALID_REQUEST, BATCH_FORBIDDEN));
        }
    }
    Ok(())
}

/// A line with its line break, or a marker for one that was too long to keep, with the id of the
/// request that it answers, if it does.
pub enum Line {
    Whole(BytesMut),
    TooLong(Option<Id>),
}

/// Splits a stream into lines of bounded length.
pub struct LineReader<R> {
    reader: R,
    buffer: BytesMut,
    /// Bytes of the buffer known to hold no line break.
    scanned: usize,
    /// The line being skipped, which is too long.
    skipped: Option<OverlongMessage>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    const READ_BYTES: usize = 16 * 1024;

    pub fn new(reader: R) -> Self {
        LineReader { reader, buffer: BytesMut::new(), scanned: 0, skipped: None }
    }

    /// Returns the next line; `None` at the end. An incomplete last line is dropped.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.take() {
                return Ok(Some(line));
            }
            self.buffer.reserve(Self::READ_BYTES);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn take(&mut self) -> Option<Line> {
        let found = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n');
        let Some(offset) = found else {
            self.scanned = self.buffer.len();
            if self.skipped.is_some() || self.scanned > limits::FRAME_BYTES_MAX {
                self.skipped.get_or_insert_default().push(&self.buffer);
                self.buffer.clear();
                self.scanned = 0;
            }
            return None;
        };
        let line = self.buffer.split_to(self.scanned + offset + 1);
        self.scanned = 0;
        if self.skipped.is_none() && line.len() <= limits::FRAME_BYTES_MAX + 1 {
            return Some(Line::Whole(line));
        }
        let mut message = self.skipped.take().unwrap_or_default();
        message.push(&line);
        Some(Line::TooLong(message.answered()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::error::ErrorObject;
    use crate::message::{Notification, Raw, Request, raw};
    use crate::peer::{Ask, RequestContext};

    async fn lines(chunks: &[&[u8]]) -> Vec<Option<usize>> {
        let (mut writer, reader) = tokio::io::duplex(1024);
        let chunks: Vec<Vec<u8>> = chunks.iter().map(|chunk| chunk.to_vec()).collect();
        let writing = tokio::spawn(async move {
            for chunk in chunks {
                writer.write_all(&chunk).await.unwrap();
            }
        });
        let mut reader = LineReader::new(reader);
        let mut lengths = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            lengths.push(match line {
                Line::Whole(line) => Some(line.len()),
                Line::TooLong(_) => None,
            });
        }
        writing.await.unwrap();
        lengths
    }

    #[tokio::test]
    async fn frames_are_lines_however_they_are_cut() {
        assert_eq!(lines(&[b"ab\ncd\n"]).await, [Some(3), Some(3)]);
        assert_eq!(lines(&[b"a", b"b\nc", b"d\nhalf"]).await, [Some(3), Some(3)]);
    }

    /// Answers every request.
    struct Pong;

    impl Service for Pong {
        fn request(
            &self,
            _request: Request,
            _incoming: RequestContext,
        ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
            async { Ok(raw("{}".to_owned())) }.boxed()
        }

        fn notification(&self, _notification: Notification, _peer: Peer) {}
    }

    /// The paused clock moves only when nothing else can run.
    #[tokio::test(start_paused = true)]
    async fn nothing_is_read_from_a_side_that_reads_no_responses() {
        const PINGS: usize = 3000;
        let (ours, theirs) = tokio::io::duplex(16 * 1024);
        let (reader, writer) = tokio::io::split(ours);
        let peer = connect(reader, writer, Arc::new(Pong));
        let (reader, mut writer) = tokio::io::split(theirs);
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = taken.clone();
        let sending = tokio::spawn(async move {
            for n in 0..PINGS {
                let id = format!("{n}{}", "x".repeat(4000));
                let ping = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ping\"}}\n");
                writer.write_all(ping.as_bytes()).await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let read = taken.load(Ordering::Relaxed);
        assert!(read < 2 * limits::OUTBOX_MESSAGES_MAX, "{read} pings were read");
        let mut reader = LineReader::new(reader);
        for _ in 0..PINGS {
            assert!(matches!(reader.next().await, Ok(Some(Line::Whole(_)))));
        }
        sending.await.unwrap();
        peer.close("done");
    }

    /// Asks over a pipe of this capacity, whose other side reads nothing, and is closed or not.
    async fn unanswered(capacity: usize, is_closed: bool) -> (bool, RequestError) {
        let (ours, theirs) = tokio::io::duplex(capacity);
        let (reader, writer) = tokio::io::split(ours);
        let theirs = (!is_closed).then_some(theirs);
        let peer = connect(reader, writer, Arc::new(Pong));
        // What fills the pipe, so that no byte of the request is taken.
        let _ = peer.notify(&"x".repeat(capacity), None).await;
        let asked = Ask::new("m", None, Duration::from_secs(1));
        let delivery = asked.delivery.clone();
        let error = peer.request(asked).await.unwrap_err();
        drop(theirs);
        (delivery.is_sent(), error)
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_of_which_no_byte_was_taken_is_not_sent() {
        let (is_sent, error) = unanswered(64, false).await;
        assert!(matches!(error, RequestError::Timeout(_)) && !is_sent, "{error}");
        let (is_sent, error) = unanswered(64, true).await;
        assert!(matches!(error, RequestError::Closed(_)) && !is_sent, "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_was_withdrawn_is_never_written() {
        let (ours, theirs) = tokio::io::duplex(64);
        let (reader, writer) = tokio::io::split(ours);
        let peer = connect(reader, writer, Arc::new(Pong));
        peer.notify(&"x".repeat(64), None).await.unwrap();
        let late = Ask::new("late", None, Duration::from_secs(1));
        assert!(matches!(peer.request(late).await, Err(RequestError::Timeout(_))));
        let answered = Ask::new("sent", None, Duration::from_secs(1));
        let delivery = answered.delivery.clone();
        let (mut theirs, mut line) = (LineReader::new(theirs), Vec::new());
        let reading = async {
            while let Ok(Some(Line::Whole(next))) = theirs.next().await {
                line.push(String::from_utf8(next.to_vec()).unwrap());
            }
        };
        tokio::select! {
            answer = peer.request(answered) => assert!(answer.is_err()),
            () = reading => {}
        }
        assert!(delivery.is_sent());
        assert!(line.iter().any(|line| line.contains(r#""method":"sent""#)), "{line:?}");
        assert!(!line.iter().any(|line| line.contains("late")), "{line:?}");
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_skipped_and_the_next_one_read() {
        let long = vec![b'x'; limits::FRAME_BYTES_MAX + 10];
        assert_eq!(lines(&[&long, b"\nok\n"]).await, [None, Some(3)]);
    }
}
