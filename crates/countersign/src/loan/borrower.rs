//! The side of `run`, which hands its records over.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::config;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use mcp::lines::{Line, LineReader};
use mcp::task;
use store::{CommitReply, Entry, EntryForm, Lender, Safety, Store, StoreError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use super::{LOAN_PATH, LOAN_PROTOCOL, LoanAnswer, LoanRequest, write_lines};
use crate::control::{self, Upgrade};
use crate::exit::Failure;
use crate::home::Home;

/// The time for an answer, after which the lender counts as gone: a stopped process never answers.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// Opens the ledger of a home: on loan from the gate that runs there, or else to write it.
pub(crate) async fn store(home: &Home, rules: &config::Ledger) -> Result<Store, Failure> {
    match connection(home).await {
        Some(Ok(connection)) => {
            let (reader, writer) = tokio::io::split(connection);
            Ok(Store::borrow(home.path(), rules, Box::new(Borrower::start(reader, writer))))
        }
        other => {
            if let Some(Err(reason)) = other {
                tracing::warn!("the running gate keeps no records for this process: {reason}");
            }
            Store::open(home.path(), rules).map_err(Failure::store)
        }
    }
}

/// Asks the gate that runs in a home, if there is one, for a loan.
async fn connection(home: &Home) -> Option<Result<TokioIo<Upgraded>, String>> {
    let stream = UnixStream::connect(home.control_socket()).await.ok()?;
    let upgrade = async {
        let key = home.api_key()?;
        control::upgrade(home, stream, (LOAN_PATH, LOAN_PROTOCOL), Some(&key)).await
    };
    Some(match upgrade.await {
        Ok(Upgrade::Done(connection)) => Ok(connection),
        Ok(Upgrade::Refused(answer)) => Err(control::words(&answer)),
        Err(failure) => Err(failure.message().to_owned()),
    })
}

/// The connection to the gate that writes.
struct Borrower {
    shared: Arc<LoanState>,
    lines: mpsc::UnboundedSender<LoanRequest>,
    next: AtomicU64,
}

#[derive(Default)]
struct LoanState {
    /// Requests without an answer; none once the connection has ended.
    waiting: Mutex<Waiting>,
    fault: Mutex<Option<StoreError>>,
    is_closing: AtomicBool,
}

struct Waiting(Option<HashMap<u64, Reply>>);

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting(Some(HashMap::new()))
    }
}

enum Reply {
    Commit(CommitReply),
    Settled(oneshot::Sender<()>),
}

impl Reply {
    /// Answers that the lender is gone.
    fn fail(self) {
        match self {
            Reply::Commit(reply) => {
                let reason = "the gate that kept the records has ended or does not respond";
                let _ = reply.send(Err(StoreError::Write(reason.to_owned())));
            }
            Reply::Settled(done) => drop(done),
        }
    }
}

impl Borrower {
    fn start(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Borrower {
        let (lines, outbox) = mpsc::unbounded_channel();
        let shared = Arc::new(LoanState::default());
        let state = shared.clone();
        task::spawn(async move {
            tokio::select! {
                () = write_lines(outbox, writer) => {}
                () = state.hear(LineReader::new(reader)) => {}
                () = state.silence() => {}
            }
            state.end();
        });
        Borrower { shared, lines, next: AtomicU64::new(0) }
    }

    fn ask(&self, entry: Option<Entry>, reply: Reply) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        match &mut lock(&self.shared.waiting).0 {
            Some(waiting) => drop(waiting.insert(number, reply)),
            None => return reply.fail(),
        }
        let _ = self.lines.send(LoanRequest { number, entry: entry.map(EntryForm::from) });
    }
}

impl Lender for Borrower {
    fn append(&self, entry: Entry, reply: CommitReply) {
        self.ask(Some(entry), Reply::Commit(reply));
    }

    fn settle(&self, done: oneshot::Sender<()>) {
        self.ask(None, Reply::Settled(done));
    }

    fn is_gone(&self) -> bool {
        self.shared.is_closing.load(Ordering::Acquire)
    }

    fn fault(&self) -> Option<StoreError> {
        lock(&self.shared.fault).clone()
    }
}

impl LoanState {
    /// Passes answers on until the connection ends.
    async fn hear<R: AsyncRead + Unpin>(&self, mut lines: LineReader<R>) {
        while let Ok(Some(Line::Whole(line))) = lines.next().await {
            let Ok(answer) = serde_json::from_slice(&line) else { return };
            match answer {
                LoanAnswer::Committed(number) => self.answer(number, Ok(Safety::Committed)),
                LoanAnswer::Queued(number) => self.answer(number, Ok(Safety::Queued)),
                LoanAnswer::Failed(number, reason) => {
                    self.answer(number, Err(StoreError::Write(reason)));
                }
                LoanAnswer::Settled(number) => {
                    if let Some(Reply::Settled(done)) = self.take(number) {
                        let _ = done.send(());
                    }
                }
                LoanAnswer::Closing => self.is_closing.store(true, Ordering::Release),
            }
        }
    }

    fn answer(&self, number: u64, result: Result<Safety, StoreError>) {
        *lock(&self.fault) = result.as_ref().err().cloned();
        if let Some(Reply::Commit(reply)) = self.take(number) {
            let _ = reply.send(result);
        }
    }

    fn take(&self, number: u64) -> Option<Reply> {
        lock(&self.waiting).0.as_mut()?.remove(&number)
    }

    /// Ends once a request has waited too long.
    async fn silence(&self) {
        let mut oldest = None;
        loop {
            tokio::time::sleep(ANSWER_TIME).await;
            let waiting = lock(&self.waiting);
            let now = waiting.0.as_ref().and_then(|waiting| waiting.keys().min().copied());
            drop(waiting);
            if now.is_some() && now == oldest {
                return;
            }
            oldest = now;
        }
    }

    /// Fails what waits, and everything from here on.
    fn end(&self) {
        self.is_closing.store(true, Ordering::Release);
        let waiting = lock(&self.waiting).0.take();
        waiting.into_iter().flatten().for_each(|(_, reply)| reply.fail());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
