//! Shows a run while it happens: a tree that is redrawn in place on a terminal, lines elsewhere, or
//! one JSON object a line.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcp::task;
use runner::environment::SessionList;
use store::Store;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::calls::{Sessions, StepCalls};
use super::moment::{Moment, SeenCall};
use super::screen::Screen;
use super::writes::Writes;
use crate::cli::RunFormat;

/// The interval between two frames when nothing happens.
const INTERVAL: Duration = Duration::from_millis(200);

/// The shortest time between two frames: a text may arrive word by word.
const APART: Duration = Duration::from_millis(50);

/// Bytes of texts that wait to be shown. Later ones are left out while a terminal or reader stands
/// still; the record of the run has them.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The way to the task behind the screen, and the task.
type ShowingTask = (mpsc::UnboundedSender<News>, JoinHandle<()>);

/// The display of a run.
pub(super) struct Live {
    waiting: Arc<AtomicUsize>,
    sessions: Sessions,
    /// None after the end.
    showing: Mutex<Option<ShowingTask>>,
}

enum News {
    Moment(Moment),
    Remark(String),
}

impl Live {
    pub(super) fn start(format: RunFormat, store: &Store, writes: Writes) -> Live {
        let (sender, news) = mpsc::unbounded_channel();
        let (waiting, sessions) = (Arc::new(AtomicUsize::new(0)), Sessions::default());
        let (store, followed, shown) = (store.clone(), sessions.clone(), waiting.clone());
        let showing = task::spawn(async move {
            let calls = StepCalls::from_now(store.clone(), followed, writes).await;
            let (screen, start) = (Screen::of(format), Instant::now());
            Showing { screen, store, calls, waiting: shown, start }.run(news).await;
        });
        Live { waiting, sessions, showing: Mutex::new(Some((sender, showing))) }
    }

    pub(super) fn show(&self, moment: Moment) {
        let bytes = moment.text_bytes();
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

    /// Shows the calls of a step from here on.
    pub(super) fn follow(&self, run: &str, step: u32, list: SessionList) {
        self.sessions.follow(run, step, list);
    }

    /// Waits until everything is shown.
    pub(super) async fn end(&self) {
        let showing = self.showing().take();
        if let Some((news, shown)) = showing {
            drop(news);
            let _ = shown.await;
        }
    }

    fn send(&self, news: News) {
        if let Some((sender, _)) = &*self.showing() {
            let _ = sender.send(news);
        }
    }

    fn showing(&self) -> MutexGuard<'_, Option<ShowingTask>> {
        self.showing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task behind the screen.
struct Showing {
    screen: Screen,
    store: Store,
    calls: StepCalls,
    waiting: Arc<AtomicUsize>,
    start: Instant,
}

impl Showing {
    async fn run(mut self, mut news: mpsc::UnboundedReceiver<News>) {
        let mut ticks = tokio::time::interval(INTERVAL);
        let mut changes = self.store.changes();
        let mut drawn = None;
        loop {
            tokio::select! {
                next = news.recv() => match next {
                    Some(next) => self.take(next).await,
                    None => break,
                },
                Ok(()) = changes.changed() => self.new_calls().await,
                // The ledger may be written by another process.
                _ = ticks.tick() => self.new_calls().await,
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
        self.waiting.fetch_sub(moment.text_bytes(), Ordering::Relaxed);
        if let Moment::StepEnded(ended) = &moment {
            // The calls of a step are shown before its end.
            let last = self.calls.last_of(ended.step).await;
            self.show_calls(last);
        }
        self.screen.show(&moment, self.start.elapsed());
    }

    async fn new_calls(&mut self) {
        let new = self.calls.news().await;
        self.show_calls(new);
    }

    fn show_calls(&mut self, calls: Vec<SeenCall>) {
        for call in calls {
            self.screen.show(&Moment::Call(call), self.start.elapsed());
        }
    }
}
