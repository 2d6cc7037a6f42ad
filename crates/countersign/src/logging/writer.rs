//! Writes log lines from a separate thread, so that no call waits for the reader of the log. A
//! reader that does not keep up loses lines, and the log states how many.

use std::io::{self, Write};
use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// The maximum size of all waiting lines; at a kilobyte a line, a thousand calls.
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// The time for which lines are gathered. The first line after a quiet time is written at once;
/// gathering the next ones wakes the thread of a busy gate a hundred times a second instead of with
/// every call.
const GATHERING: Duration = Duration::from_millis(10);

/// The time that shutdown waits for lines to be written to a reader that may have stopped.
const FLUSH_WAIT: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signals work for the thread.
    wake: Condvar,
    /// Signals that everything has been written.
    written: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: Vec<u8>,
    lost: u64,
    thread: Thread,
    is_flushing: bool,
    has_ended: bool,
}

#[derive(Default, PartialEq, Eq)]
enum Thread {
    /// Waits for the next line, which must wake it.
    #[default]
    Asleep,
    /// Writes, or gathers lines and then checks without being woken.
    Awake,
}

impl Writer {
    pub(super) fn start(out: impl Write + Send + 'static) -> Writer {
        let shared = Arc::new(Shared::default());
        let writing = shared.clone();
        let started = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || writing.write_lines(out));
        if started.is_err() {
            // Without a thread, each line is written by its caller.
            shared.lock().has_ended = true;
        }
        Writer(shared)
    }

    /// Waits until everything has been written, within a time limit.
    pub(super) fn flush(&self) {
        let mut queue = self.0.lock();
        if queue.has_ended {
            return;
        }
        queue.is_flushing = true;
        self.0.wake.notify_one();
        let waiting = |queue: &mut Queue| queue.is_flushing;
        drop(self.0.written.wait_timeout_while(queue, FLUSH_WAIT, waiting));
    }

    /// Flushes for the last time. Later lines are written by their callers.
    pub(super) fn end(&self) {
        self.flush();
        self.0.lock().has_ended = true;
        self.0.wake.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, line: &[u8]) {
        let mut queue = self.lock();
        if queue.has_ended {
            let _ = io::stderr().write_all(&redacted(line));
            return;
        }
        if queue.lines.len() + line.len() > WAITING_BYTES_MAX {
            queue.lost += 1;
            return;
        }
        queue.lines.extend_from_slice(line);
        if queue.thread == Thread::Asleep {
            queue.thread = Thread::Awake;
            self.wake.notify_one();
        }
    }

    fn write_lines(&self, mut out: impl Write) {
        let mut written = Vec::new();
        while let Some(lost) = self.take(&mut written) {
            // stderr may be closed; then the lines are lost.
            let _ = out.write_all(&redacted(&written));
            if lost > 0 {
                let _ = writeln!(
                    out,
                    "countersign: {lost} log lines were dropped because stderr was not read"
                );
            }
            written.clear();
            self.gather();
        }
    }

    /// Waits for lines and takes them all; returns none at the end. The given empty buffer is
    /// filled next.
    fn take(&self, written: &mut Vec<u8>) -> Option<u64> {
        let mut queue = self.lock();
        loop {
            if !queue.lines.is_empty() || queue.lost > 0 {
                std::mem::swap(&mut queue.lines, written);
                return Some(take(&mut queue.lost));
            }
            if take(&mut queue.is_flushing) {
                self.written.notify_all();
            }
            if queue.has_ended {
                return None;
            }
            queue.thread = Thread::Asleep;
            queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.thread = Thread::Awake;
        }
    }

    fn gather(&self) {
        let idle = |queue: &mut Queue| !queue.is_flushing && !queue.has_ended;
        drop(self.wake.wait_timeout_while(self.lock(), GATHERING, idle));
    }
}

/// Removes secrets from lines: messages of servers and of the system end up in them.
fn redacted(lines: &[u8]) -> Vec<u8> {
    let redactor = super::redactor();
    let mut clean = Vec::with_capacity(lines.len());
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        clean.extend_from_slice(redactor.text(&String::from_utf8_lossy(line)).as_bytes());
    }
    clean
}

/// One line, written in one piece.
pub(super) struct Line<'a>(&'a Shared);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.add(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Writer {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Passes on each write once it is permitted.
    struct Pipe {
        let_through: mpsc::Receiver<()>,
        written: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.let_through.recv();
            let _ = self.written.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn pipe() -> (Writer, mpsc::Sender<()>, mpsc::Receiver<Vec<u8>>) {
        let (let_sender, let_through) = mpsc::channel();
        let (written, received) = mpsc::channel();
        (Writer::start(Pipe { let_through, written }), let_sender, received)
    }

    #[test]
    fn ending_the_writer_loses_no_line_and_keeps_the_order() {
        let (writer, open, received) = pipe();
        drop(open);
        for number in 0..1000 {
            writeln!(writer.make_writer(), "line {number}").unwrap();
        }
        writer.end();
        let all: Vec<u8> = received.try_iter().flatten().collect();
        let text = String::from_utf8(all).unwrap();
        let expected: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        assert_eq!(text, expected);
    }

    #[test]
    fn a_slow_reader_is_told_how_many_lines_were_lost() {
        let (writer, open, received) = pipe();
        let long = vec![b'x'; WAITING_BYTES_MAX];
        // The thread takes the first line and is held; the second fills the queue.
        writer.make_writer().write_all(b"first").unwrap();
        while !writer.0.lock().lines.is_empty() {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            writer.make_writer().write_all(&long).unwrap();
        }
        drop(open);
        writer.end();
        let all: Vec<u8> = received.try_iter().flatten().collect();
        let text = String::from_utf8(all).unwrap();
        assert!(text.starts_with("firstx"), "the order is kept");
        assert!(
            text.ends_with("xcountersign: 2 log lines were dropped because stderr was not read\n")
        );
    }
}
