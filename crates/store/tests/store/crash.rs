//! Processes that are killed while they write. Every acknowledged entry must be there.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use domain::tool::Class;
use receipt::chain::ChainStatus;
use store::{Entry, Store};

use super::support::{Home, Look, ended, rules, started};

/// The variable that gives a child the home it writes to.
const CHILD_HOME: &str = "COUNTERSIGN_TEST_CHILD_HOME";
const CALLERS: usize = 8;

/// The words that the child prints, one per line.
const STARTED: &str = "started";
const ENDED: &str = "ended";

/// The body of a child, which this test runs as itself; part of the other tests, not a separate
/// one.
#[test]
fn child_that_writes() {
    let Some(home) = std::env::var_os(CHILD_HOME) else {
        return testkit::run::skipped("it is what the others start, no test of its own");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(Path::new(&home), &rules()).unwrap();
        let callers: Vec<_> =
            (0..CALLERS).map(|number| tokio::spawn(keep_calling(store.clone(), number))).collect();
        let until = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
        until.await.unwrap().unwrap();
        callers.iter().for_each(tokio::task::JoinHandle::abort);
        store.close().await.unwrap();
        say("closed", "");
    });
}

async fn keep_calling(store: Store, number: usize) {
    for turn in number.. {
        let class = [Class::Read, Class::Write, Class::Destructive][turn % 3];
        let call = started(class);
        let (id, end) = (call.id.clone(), ended(&call));
        store.append(Entry::Started(Box::new(call))).await.unwrap();
        if class > Class::Read {
            say(STARTED, &id);
        }
        tokio::task::yield_now().await;
        store.append(Entry::Ended(Box::new(end))).await.unwrap();
        say(ENDED, &id);
    }
}

fn say(what: &str, id: &str) {
    // The parent may be gone; then the line is not needed.
    let _ = writeln!(std::io::stdout(), "\n@{what} {id}");
}

fn spawn(home: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::crash::child_that_writes", "--nocapture", "--test-threads=1"])
        .env(CHILD_HOME, home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// Calls that were acknowledged as safe.
#[derive(Default)]
struct Acknowledged {
    started: Vec<String>,
    ended: Vec<String>,
    closed: bool,
}

impl Acknowledged {
    /// Reads until this many calls have ended, or the child has.
    fn read(&mut self, output: &mut BufReader<ChildStdout>, calls: usize) {
        let mut line = String::new();
        while self.ended.len() < calls {
            line.clear();
            if output.read_line(&mut line).unwrap() == 0 {
                return;
            }
            let Some((what, id)) = line.trim().strip_prefix('@').and_then(|l| l.split_once(' '))
            else {
                self.closed |= line.trim() == "@closed";
                continue;
            };
            match what {
                STARTED => self.started.push(id.to_owned()),
                ENDED => self.ended.push(id.to_owned()),
                other => panic!("'{other}' is not a word of the child"),
            }
        }
    }

    fn assert_kept(&self, look: &Look) {
        assert!(!self.ended.is_empty(), "the child did nothing");
        self.ended.iter().for_each(|id| look.assert_recorded(id));
        for id in &self.started {
            let status = look.status(id);
            // The end may have been committed but not acknowledged.
            assert!(status == "success" || status == "interrupted", "{id} is {status}");
            assert!(look.receipt(id).is_some(), "{id} has no receipt");
        }
    }
}

fn random(below: usize) -> usize {
    let mut bytes = [0; 2];
    getrandom::fill(&mut bytes).unwrap();
    usize::from(u16::from_le_bytes(bytes)) % below
}

/// Returns the number of rounds. Each examines the results of all earlier ones, so many take very
/// long.
fn rounds(long: bool) -> usize {
    if long && testkit::run::is_long() { 12 } else { 3 }
}

async fn assert_recovers(home: &Home) -> Look {
    let store = home.open();
    store.close().await.unwrap();
    let look = home.look();
    assert_eq!(look.journal, 0);
    for chain in &look.chains {
        assert_ne!(chain.status, ChainStatus::Unknown, "chain {} was left open", chain.id);
        for receipt in &chain.receipts {
            assert!(
                !receipt.to_string().contains("promised_hash"),
                "another than was committed: {receipt}"
            );
        }
    }
    for status in look.calls.values() {
        assert_ne!(status, "pending");
    }
    look
}

#[tokio::test]
async fn long_killed_process_loses_nothing_it_answered() {
    let home = Home::new();
    let mut all = Acknowledged::default();
    for round in 0..rounds(true) {
        let (mut child, mut output) = spawn(home.path());
        let mut known = Acknowledged::default();
        known.read(&mut output, 1 + random(400));
        child.kill().unwrap();
        child.wait().unwrap();
        known.read(&mut output, usize::MAX);
        let look = assert_recovers(&home).await;
        known.assert_kept(&look);
        assert_eq!(look.chains.len(), round + 1, "one chain for each process");
        assert_eq!(look.chains[round].status, ChainStatus::Interrupted);
        all.ended.append(&mut known.ended);
    }
    all.assert_kept(&home.look());
}

#[tokio::test]
async fn long_killed_process_among_five_harms_none_of_the_others() {
    const PROCESSES: usize = 5;
    let home = Home::new();
    for _ in 0..rounds(true).div_ceil(3) {
        let mut children: Vec<_> = (0..PROCESSES).map(|_| spawn(home.path())).collect();
        let mut known: Vec<_> = children
            .iter_mut()
            .map(|(_, output)| {
                let mut known = Acknowledged::default();
                known.read(output, 20 + random(50));
                known
            })
            .collect();
        children[0].0.kill().unwrap();
        // The pipes are read concurrently, or the children would block on them.
        let readers: Vec<_> = children
            .into_iter()
            .zip(known.drain(..))
            .map(|((mut child, mut output), mut known)| {
                std::thread::spawn(move || {
                    known.read(&mut output, known.ended.len() + 100);
                    drop(child.stdin.take());
                    known.read(&mut output, usize::MAX);
                    (child.wait().unwrap().success(), known)
                })
            })
            .collect();
        let results: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        let look = assert_recovers(&home).await;
        for (number, (success, known)) in results.iter().enumerate() {
            assert_eq!((*success, known.closed), (number > 0, number > 0), "child {number}");
            known.assert_kept(&look);
        }
        let interrupted = look.chains.iter().filter(|chain| chain.row_status == "interrupted");
        assert_eq!(interrupted.count() * PROCESSES, look.chains.len());
    }
}
