//! Shows a run while it happens: a tree that is redrawn in place on a terminal, lines elsewhere, or
//! one JSON object a line. The calls of its steps come from the ledger, which has their targets and
//! outcomes.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcp::task;
use runner::environment::SessionList;
use store::Store;
use store::read::LedgerChange;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::moment::{Moment, SeenCall};
use super::recorder::Writes;
use super::tree::{Colour, Size, Tree};
use crate::cli::RunFormat;
use crate::output;

/// The interval between two frames when nothing happens.
const INTERVAL: Duration = Duration::from_millis(200);

/// The shortest time between two frames: a text may arrive word by word.
const APART: Duration = Duration::from_millis(50);

/// Changes of the ledger that are read at once.
const CHANGES_MAX: usize = 200;

/// Bytes of texts that wait to be shown. Later ones are left out while a terminal or reader stands
/// still; the record of the run has them.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The screen of a run.
pub(super) struct Live {
    news: Mutex<Option<mpsc::UnboundedSender<News>>>,
    waiting: Arc<AtomicUsize>,
    sessions: Sessions,
    showing: Mutex<Option<JoinHandle<()>>>,
}

enum News {
    Moment(Moment),
    Remark(String),
}

/// The sessions of running steps.
type Sessions = Arc<Mutex<BTreeMap<u32, StepSessions>>>;

struct StepSessions {
    run: String,
    list: SessionList,
    /// Those that the record of the step already has.
    known: Vec<String>,
}

impl Live {
    pub(super) fn start(format: RunFormat, store: &Store, writes: Writes) -> Live {
        let (sender, news) = mpsc::unbounded_channel();
        let (waiting, sessions) = (Arc::new(AtomicUsize::new(0)), Sessions::default());
        let tail = Tail { store: store.clone(), last: None, sessions: sessions.clone(), writes };
        let showing = Showing {
            screen: Screen::of(format),
            tail,
            waiting: waiting.clone(),
            start: Instant::now(),
        };
        let showing = task::spawn(showing.run(news));
        let (news, showing) = (Mutex::new(Some(sender)), Mutex::new(Some(showing)));
        Live { news, waiting, sessions, showing }
    }

    pub(super) fn show(&self, moment: Moment) {
        let bytes = text_bytes(&moment);
        let waiting = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        if bytes > 0 && waiting > WAITING_BYTES_MAX {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
            return;
        }
        self.send(News::Moment(moment));
    }

    pub(super) fn remark(&self, text: &str) {
        self.send(News::Remark(text.to_owned()));
    }

    fn send(&self, news: News) {
        if let Some(sender) = &*lock(&self.news) {
            let _ = sender.send(news);
        }
    }

    /// Shows the calls of a step from here on.
    pub(super) fn follow(&self, run: &str, step: u32, list: SessionList) {
        let sessions = StepSessions { run: run.to_owned(), list, known: Vec::new() };
        lock(&self.sessions).insert(step, sessions);
    }

    /// Waits until everything is shown.
    pub(super) async fn end(&self) {
        lock(&self.news).take();
        let showing = lock(&self.showing).take();
        if let Some(showing) = showing {
            let _ = showing.await;
        }
    }
}

fn text_bytes(moment: &Moment) -> usize {
    match moment {
        Moment::Text { text, .. } => text.len(),
        Moment::Error { message, .. } => message.len(),
        Moment::Run(_)
        | Moment::StepBegan(_)
        | Moment::Probe { .. }
        | Moment::Call(_)
        | Moment::Usage { .. }
        | Moment::StepEnded(_)
        | Moment::End(_) => 0,
    }
}

/// The task behind the screen.
struct Showing {
    screen: Screen,
    tail: Tail,
    waiting: Arc<AtomicUsize>,
    start: Instant,
}

impl Showing {
    async fn run(mut self, mut news: mpsc::UnboundedReceiver<News>) {
        let mut ticks = tokio::time::interval(INTERVAL);
        let mut changes = self.tail.store.changes();
        self.tail.begin().await;
        let mut drawn = None;
        loop {
            tokio::select! {
                next = news.recv() => match next {
                    Some(next) => self.take(next).await,
                    None => break,
                },
                Ok(()) = changes.changed() => self.calls().await,
                // The ledger may be written by another process.
                _ = ticks.tick() => self.calls().await,
            }
            let now = self.start.elapsed();
            if drawn.is_none_or(|last| now.saturating_sub(last) >= APART) {
                self.screen.draw(now);
                drawn = Some(now);
            }
        }
        self.screen.end();
    }

    async fn take(&mut self, news: News) {
        let moment = match news {
            News::Remark(text) => return self.screen.remark(&text),
            News::Moment(moment) => moment,
        };
        self.waiting.fetch_sub(text_bytes(&moment), Ordering::Relaxed);
        if let Moment::StepEnded(ended) = &moment {
            // The calls of a step are shown before its end.
            self.tail.writes.flushed().await;
            self.tail.store.settled().await;
            self.calls().await;
            lock(&self.tail.sessions).remove(&ended.step);
        }
        self.screen.show(&moment, self.start.elapsed());
    }

    async fn calls(&mut self) {
        for call in self.tail.calls().await {
            self.screen.show(&Moment::Call(call), self.start.elapsed());
        }
    }
}

/// The calls of running steps, from the ledger.
struct Tail {
    store: Store,
    /// The last change that was read.
    last: Option<i64>,
    sessions: Sessions,
    writes: Writes,
}

impl Tail {
    async fn begin(&mut self) {
        let reader = self.store.read().clone();
        let latest = task::spawn_blocking(move || reader.latest_change());
        self.last = latest.await.ok().and_then(Result::ok);
    }

    /// Returns the calls that began or ended since the last time.
    async fn calls(&mut self) -> Vec<SeenCall> {
        self.keep_sessions();
        let mut seen = Vec::new();
        while let Some(last) = self.last {
            let reader = self.store.read().clone();
            let found = task::spawn_blocking(move || reader.changes_after(last, CHANGES_MAX));
            let Ok(Ok(found)) = found.await else { break };
            self.last = found.last().map_or(self.last, |(newest, _)| Some(*newest));
            let is_all = found.len() < CHANGES_MAX;
            for (_, change) in found {
                if let LedgerChange::Record(record) = change
                    && let Some(step) = self.step_of(record.session_id.as_deref())
                {
                    seen.push(SeenCall::of(step, &record));
                }
            }
            if is_all {
                break;
            }
        }
        seen
    }

    fn step_of(&self, session: Option<&str>) -> Option<u32> {
        let session = session?;
        let sessions = lock(&self.sessions);
        let mut steps = sessions.iter();
        steps.find_map(|(step, of)| of.known.iter().any(|it| it == session).then_some(*step))
    }

    /// Writes new sessions of running steps into their records, so that others see their calls.
    fn keep_sessions(&self) {
        for (number, step) in lock(&self.sessions).iter_mut() {
            let found = (step.list)();
            if found.len() > step.known.len() {
                step.known.clone_from(&found);
                let (run, number) = (step.run.clone(), *number);
                self.writes
                    .send(move |store, _| store.state().set_step_sessions(&run, number, &found));
            }
        }
    }
}

/// The place at which a run is shown.
enum Screen {
    Nothing,
    /// A terminal: a frame below what stays.
    Terminal {
        tree: Tree,
        drawn: Vec<String>,
    },
    Lines(Tree),
    Json,
}

impl Screen {
    fn of(format: RunFormat) -> Screen {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match format {
            RunFormat::Quiet | RunFormat::Json => Screen::Nothing,
            RunFormat::Jsonl => Screen::Json,
            RunFormat::Text if std::io::stderr().is_terminal() && !dumb => {
                let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let colour = if is_plain { Colour::No } else { Colour::Yes };
                Screen::Terminal { tree: Tree::new(colour), drawn: Vec::new() }
            }
            RunFormat::Text => Screen::Lines(Tree::new(Colour::No)),
        }
    }

    fn show(&mut self, moment: &Moment, now: Duration) {
        match self {
            Screen::Nothing => {}
            Screen::Json => {
                let _ = output::line(&json_line(moment));
            }
            Screen::Lines(tree) => tree.lines(moment, now).iter().for_each(|line| write_line(line)),
            Screen::Terminal { tree, drawn } => {
                let lines = tree.on(moment, size(), now);
                if !lines.is_empty() {
                    redraw(drawn, &lines, Vec::new());
                }
            }
        }
    }

    fn remark(&mut self, text: &str) {
        match self {
            Screen::Terminal { drawn, .. } => redraw(drawn, &[output::plain(text)], Vec::new()),
            Screen::Nothing | Screen::Json | Screen::Lines(_) => output::note(text),
        }
    }

    fn draw(&mut self, now: Duration) {
        if let Screen::Terminal { tree, drawn } = self {
            let frame = tree.frame(size(), now);
            if frame != *drawn {
                redraw(drawn, &[], frame);
            }
        }
    }

    fn end(&mut self) {
        if let Screen::Terminal { drawn, .. } = self {
            redraw(drawn, &[], Vec::new());
        }
    }
}

/// Formats a moment for programs; characters that a terminal would obey are escaped.
pub(crate) fn json_line(moment: &Moment) -> String {
    crate::json::escaped_json(&serde_json::to_string(moment).unwrap_or_default())
}

fn write_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Replaces the frame by lines that stay and a new frame.
fn redraw(drawn: &mut Vec<String>, lines: &[String], frame: Vec<String>) {
    let text = replacement(drawn.len(), lines, &frame);
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    *drawn = frame;
}

/// Returns the bytes that replace a frame of so many lines. Long lines do not wrap meanwhile, so
/// that each takes one row whatever the terminal makes of its characters.
fn replacement(drawn: usize, lines: &[String], frame: &[String]) -> String {
    let mut text = String::from("\x1b[?7l");
    if drawn > 0 {
        text.push_str(&format!("\x1b[{drawn}A"));
    }
    text.push_str("\r\x1b[J\x1b[?7h");
    for line in lines {
        text.push_str(&format!("{line}\r\n"));
    }
    text.push_str("\x1b[?7l");
    for line in frame {
        text.push_str(&format!("{line}\r\n"));
    }
    text + "\x1b[?7h"
}

/// Returns the size of the terminal on stderr.
fn size() -> Size {
    let found = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let side = |found: Option<u16>, usual: usize| {
        found.map(usize::from).filter(|side| *side > 0).unwrap_or(usual)
    };
    let columns = side(found.map(|found| found.ws_col), 80);
    Size { columns, rows: side(found.map(|found| found.ws_row), 24) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_replaces_the_one_before_it() {
        let [lines, frame] = [["ok  a".to_owned()], ["b  0.1 s".to_owned()]];
        let text = replacement(2, &lines, &frame);
        let expected = "\x1b[?7l\x1b[2A\r\x1b[J\x1b[?7hok  a\r\n\x1b[?7lb  0.1 s\r\n\x1b[?7h";
        assert_eq!(text, expected);
        assert_eq!(replacement(0, &[], &[]), "\x1b[?7l\r\x1b[J\x1b[?7h\x1b[?7l\x1b[?7h");
    }
}
