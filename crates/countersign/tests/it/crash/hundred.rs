//! A hundred rounds in which writers are killed, files are damaged, and `ledger repair` and `ledger
//! accept` are killed too and run again: what a file still holds of a confirmed call is in the ledger
//! once, and the rest is lost for a reason that the ledger states.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use receipt::canonical::Digest;
use serde_json::{Value, json};
use testkit::client::{PATIENCE, code};
use testkit::gate::Gate;
use testkit::program::{program, run, stderr, stdout};
use testkit::upstream::scripted;
use tokio_util::sync::CancellationToken;

use crate::ledger::{receipts, records};

use super::damage::Damage;
use super::random::{self, Random};
use super::remains::Remains;
use super::writers::{self, Confirmed, Work};

/// The rounds in one home: verification takes longer with each of them.
const ROUNDS_OF_HOME: usize = 6;

/// The longest that a command is left alive before it is killed; most have ended by then.
const LIFE_MS_MAX: u64 = 150;

/// The faults that a lost or cut database may leave for good: none is a loss that a person can accept.
const KNOWN_FAULTS: [&str; 2] =
    ["has changed since the checkpoint in", "another checkpoint follows the same one"];

/// The beginning of what a repair may do although the one before an acceptance did all that it could.
const KNOWN_LATE: &str = "corrected the row of chain ";

/// The times that a home is repaired and accepted. An acceptance may show more that is missing: a
/// checkpoint behind a gap counts only once the gap is accepted.
const PASSES_MAX: usize = 5;

const REPAIR: [&str; 3] = ["ledger", "repair", "--yes"];
const ACCEPT: [&str; 3] = ["ledger", "accept", "--yes"];

/// Counts of all rounds.
#[derive(Default)]
struct Figures {
    rounds: usize,
    killed: BTreeMap<&'static str, usize>,
    confirmed: usize,
    found: usize,
    without_payload: usize,
    lost: BTreeMap<String, usize>,
    damages: BTreeMap<Damage, usize>,
    aside: usize,
    /// Acceptances that had to be repeated.
    repeated: usize,
    /// Homes that stayed faulty.
    stuck: usize,
    /// Calls whose arguments and result were not brought back.
    bodies_lost: usize,
    /// Repairs that corrected rows after an acceptance.
    late_corrections: usize,
}

impl Figures {
    #[allow(clippy::print_stdout, reason = "the figures are for people")]
    fn print(&self) {
        let Figures { rounds, killed, damages, confirmed, found, without_payload, .. } = self;
        println!("{rounds} rounds; killed: {killed:?}; damaged: {damages:?}");
        println!(
            "{confirmed} calls confirmed; {found} found, {without_payload} of them without arguments \
             and result; lost: {:?}, {} of them named in a file that was set aside",
            self.lost, self.aside
        );
        println!(
            "{} acceptances repeated, {} homes stay faulty, {} bodies not brought back, {} late \
             corrections",
            self.repeated, self.stuck, self.bodies_lost, self.late_corrections
        );
    }
}

#[tokio::test]
async fn long_a_hundred_kills_with_repair_and_accept() {
    let rounds = if testkit::run::is_long() { 100 } else { 3 };
    let seed = random::seed();
    println!("COUNTERSIGN_TEST_SEED={seed}");
    let (mut random, mut figures) = (Random::new(seed), Figures::default());
    while figures.rounds < rounds {
        let mut home = KilledHome::new().await;
        while home.round < ROUNDS_OF_HOME && figures.rounds < rounds && !home.is_over {
            home.round(&mut random, &mut figures).await;
        }
        home.end(&mut figures);
    }
    figures.print();
}

/// A home through its rounds.
struct KilledHome {
    gate: Gate,
    round: usize,
    /// The calls that must be in the ledger, or in the spool.
    confirmed: HashMap<String, Confirmed>,
    /// Those whose arguments and result no file holds any more.
    bare: HashSet<String>,
    /// The repairs and acceptances that the ledger has stated so far.
    statements: HashSet<String>,
    highest: i64,
    /// The database was cut or deleted at least once.
    was_cut: bool,
    /// Faults stay that no repair and no acceptance ends, or nothing may be called any more.
    is_over: bool,
}

impl KilledHome {
    async fn new() -> KilledHome {
        let servers = |dir: &Path| json!({"s": scripted(dir, "s", &writers::tools())});
        let mut gate = Gate::start(servers, json!({})).await;
        assert_eq!(gate.end().await, Some(0));
        KilledHome {
            gate,
            round: 0,
            confirmed: HashMap::new(),
            bare: HashSet::new(),
            statements: HashSet::new(),
            highest: 0,
            was_cut: false,
            is_over: false,
        }
    }

    #[allow(clippy::print_stdout, reason = "shown if the test fails")]
    async fn round(&mut self, random: &mut Random, figures: &mut Figures) {
        self.round += 1;
        let Work { confirmed, killed } = writers::work(&mut self.gate, self.round, random).await;
        *figures.killed.entry("writers").or_default() += killed;
        figures.rounds += 1;
        figures.confirmed += confirmed.len();
        self.confirmed.extend(confirmed.into_iter().map(|call| (call.resource.clone(), call)));
        let left = Remains::of(&self.gate.home(), self.highest);
        self.highest = left.highest;
        for resource in self.confirmed.keys() {
            let is_held = left.ended.contains_key(resource) || left.spooled.contains(resource);
            assert!(is_held, "round {}: no file holds {resource} after the kill", self.round);
        }
        let damages = Damage::of_round(random);
        println!("round {}: {killed} writers killed, {damages:?}", self.round);
        for damage in &damages {
            damage.inflict(&self.gate.home(), random);
            *figures.damages.entry(*damage).or_default() += 1;
            self.was_cut |= damage.is_of_database();
        }
        let held = Remains::of(&self.gate.home(), self.highest);
        let late = self.mend(&damages, random, figures).await;
        figures.confirmed += late.len();
        self.confirmed.extend(late.iter().map(|call| (call.resource.clone(), call.clone())));
        let found = self.found();
        let lost = self.lose((&left, &held), &late, &found);
        self.check_lost(&lost, &left, &damages, figures);
        figures.bodies_lost += self.lose_bodies(&found);
        self.check(&found, &held.spooled);
    }

    /// Lets the gate or a repair recover the home, and kills both and an acceptance meanwhile. Returns
    /// the calls that were answered then.
    async fn mend(
        &mut self,
        damages: &[Damage],
        random: &mut Random,
        figures: &mut Figures,
    ) -> Vec<Confirmed> {
        let dir = self.gate.dir.path().to_owned();
        let is_database_sound = !damages.iter().any(|damage| damage.is_of_database());
        let mut late = Vec::new();
        for n in 0..random.below(4) {
            let (name, arguments) = match random.below(10) {
                0..2 if is_database_sound => {
                    ("gates", &["serve", "--listen", "127.0.0.1:0", "--config", "config.json"][..])
                }
                0..7 => ("repairs", &REPAIR[..]),
                _ => ("acceptances", &ACCEPT[..]),
            };
            let life = Duration::from_millis(random.within(LIFE_MS_MAX));
            let killing = killed(&dir, arguments, life);
            let resource = format!("/{}-late/{n}", self.round);
            let was_killed = if random.is_in(20) {
                let never = CancellationToken::new();
                let (was_killed, answered) =
                    tokio::join!(killing, writers::command(&dir, &resource, &never));
                late.extend(answered);
                was_killed
            } else {
                killing.await
            };
            *figures.killed.entry(name).or_default() += usize::from(was_killed);
        }
        if is_database_sound && random.is_in(40) {
            self.gate.restart().await;
            assert_eq!(self.gate.end().await, Some(0));
        }
        self.settle(figures).await;
        late
    }

    /// Repairs and accepts until the ledger is sound, and checks that nothing is left to do then.
    async fn settle(&mut self, figures: &mut Figures) {
        let (dir, round) = (self.gate.dir.path().to_owned(), self.round);
        for pass in 1.. {
            self.repair().await;
            let accepted = run(&dir, ACCEPT).await;
            let words = format!("{}{}", stdout(&accepted), stderr(&accepted));
            let is_sound = accepted.status.success();
            let faults: Vec<&str> =
                words.lines().filter(|line| line.contains(" is broken: ")).collect();
            let is_known = |fault: &&str| KNOWN_FAULTS.iter().any(|known| fault.contains(known));
            assert!(is_sound || !faults.is_empty(), "round {round}: {words}");
            if !is_sound && pass == PASSES_MAX {
                assert!(self.was_cut && faults.iter().all(is_known), "round {round}: {faults:#?}");
                figures.stuck += 1;
                self.is_over = true;
                return;
            }
            if is_sound {
                figures.repeated += usize::from(pass > 1);
                break;
            }
        }
        good(&dir, &["receipt", "verify"]).await;
        good(&dir, &["ledger", "check"]).await;
        let mut again = good(&dir, &REPAIR).await;
        if again.lines().all(|line| line.starts_with(KNOWN_LATE)) {
            figures.late_corrections += 1;
            again = good(&dir, &REPAIR).await;
        }
        if again.starts_with("ended the notice that decisions were lost") {
            // Every tool waits for a review now.
            self.is_over = self.was_cut;
            again = good(&dir, &REPAIR).await;
        }
        assert_eq!(again, "there was nothing to repair\n", "round {round}");
        let again = good(&dir, &ACCEPT).await;
        assert_eq!(again, "nothing is missing that was not accepted before\n", "round {round}");
    }

    /// Repairs the ledger. What is missing is a fault until it is accepted.
    async fn repair(&self) {
        let output = run(self.gate.dir.path(), REPAIR).await;
        let has_ended = matches!(output.status.code(), Some(0 | 1));
        assert!(has_ended, "round {}: {}", self.round, stderr(&output));
    }

    /// Takes the calls out that no file held after the damage and that are not in the ledger; returns
    /// them. A repair may find more than is read here, such as on the pages of a cut file.
    fn lose(
        &mut self,
        (left, held): (&Remains, &Remains),
        late: &[Confirmed],
        found: &HashMap<String, Value>,
    ) -> Vec<String> {
        let late: HashSet<&str> = late.iter().map(|call| &*call.resource).collect();
        let is_lost = |resource: &String| {
            let is_held = held.ended.contains_key(resource) || held.spooled.contains(resource);
            let is_whole = |it: &Value| it["receipt"].is_object() && it["status"] != "interrupted";
            let is_found = found.get(resource).is_some_and(is_whole);
            !is_held && !is_found && !late.contains(&**resource)
        };
        let lost: Vec<String> = self.confirmed.keys().filter(|it| is_lost(it)).cloned().collect();
        for resource in &lost {
            self.confirmed.remove(resource);
        }
        self.bare.extend(left.kept.difference(&held.kept).cloned());
        lost
    }

    /// Notes the records of which a repair of a cut database brought back the receipt alone, although a
    /// file held more. Returns their number.
    fn lose_bodies(&mut self, found: &HashMap<String, Value>) -> usize {
        let is_bare = |resource: &&String| {
            found.get(*resource).is_some_and(|record| record["arguments"].is_null())
        };
        let bare: Vec<String> = self.confirmed.keys().filter(is_bare).cloned().collect();
        let noted = bare.into_iter().filter(|it| self.was_cut && self.bare.insert(it.clone()));
        noted.count()
    }

    /// Checks that what was signed in this round states the loss of each of these calls: it names their
    /// chain, or says that the database was lost.
    fn check_lost(
        &mut self,
        lost: &[String],
        left: &Remains,
        damages: &[Damage],
        figures: &mut Figures,
    ) {
        let new = self.new_statements();
        let reason = damages.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
        let is_damaged = damages.iter().any(|damage| damage.is_of_database());
        let is_anew = ["made a new database", "'ledger.db.damaged-", "the database is older"]
            .iter()
            .any(|words| new.iter().any(|text| text.contains(words)));
        for resource in lost {
            let chain = &left.ended[resource];
            let is_named = new.iter().any(|text| text.contains(&**chain));
            let words = format!("nothing states the loss of {resource} in chain {chain}: {new:#?}");
            assert!(is_named || is_damaged && is_anew, "{words}");
            *figures.lost.entry(reason.clone()).or_default() += 1;
        }
        figures.aside += in_files_aside(&self.gate.home(), lost);
    }

    /// Returns the texts of the repairs and acceptances that were signed since the last round.
    fn new_statements(&mut self) -> Vec<String> {
        let rows = receipts(&self.gate.home()).into_iter();
        let texts = rows.map(|row| row["receipt_json"].as_str().unwrap().to_owned());
        let is_statement =
            |text: &String| text.contains("accepted_losses") || text.contains("ledger_repaired");
        texts.filter(is_statement).filter(|text| self.statements.insert(text.clone())).collect()
    }

    /// Returns the record of each call by its resource; no call has two.
    fn found(&self) -> HashMap<String, Value> {
        let mut found: HashMap<String, Value> = HashMap::new();
        for record in records(&self.gate.home()) {
            assert_ne!(record["status"], "pending", "{record}");
            let Some(resource) = record["resource"].as_str().map(str::to_owned) else { continue };
            let second = found.insert(resource, record);
            assert!(second.is_none(), "round {}: {second:?} is doubled", self.round);
        }
        found
    }

    /// Checks that the calls that were confirmed are in the ledger as they were made. A gate has not
    /// taken the events in the spool yet.
    fn check(&self, found: &HashMap<String, Value>, spooled: &HashSet<String>) {
        for (resource, confirmed) in &self.confirmed {
            match found.get(resource) {
                Some(record) => self.check_equal(record, confirmed),
                None => assert!(spooled.contains(resource), "round {}: {resource}", self.round),
            }
        }
    }

    /// Checks that a record has the arguments and the result of a call, or at least their hashes.
    fn check_equal(&self, record: &Value, confirmed: &Confirmed) {
        let Confirmed { resource, arguments, answer } = confirmed;
        let text = |name: &str| -> Option<Value> {
            record[name].as_str().map(|text| serde_json::from_str(text).unwrap())
        };
        let place = format!("round {}: {record}", self.round);
        assert!(record["receipt"].is_object(), "{place}");
        if !self.bare.contains(resource) || text("arguments").is_some() {
            assert_eq!(text("arguments").as_ref(), Some(arguments), "{place}");
        }
        let Some(answer) = answer else { return };
        let hash = Digest::of_value(arguments).hash().to_string();
        assert_eq!(record["action"]["parameters_hash"], hash, "{place}");
        if code(answer) != "ok" {
            assert_eq!(
                (&record["status"], &record["error_code"]),
                (&json!("blocked"), &json!(code(answer))),
                "{place}"
            );
            return;
        }
        assert_eq!(record["status"], "success", "{place}");
        if !self.bare.contains(resource) || text("response").is_some() {
            let response = text("response").unwrap_or_else(|| panic!("{place}"));
            assert_eq!(response["content"], answer["content"], "{place}");
        }
    }

    /// Counts what is in the ledger after the last round.
    fn end(&self, figures: &mut Figures) {
        figures.found += self.confirmed.len();
        let bare = self.confirmed.keys().filter(|resource| self.bare.contains(*resource));
        figures.without_payload += bare.count();
    }
}

/// Runs a command to its end, and returns what it printed; it must succeed.
async fn good(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments).await;
    let (printed, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {printed}{said}");
    printed
}

/// Starts a command and kills it after this time; reports whether it was still at work.
async fn killed(dir: &Path, arguments: &[&str], life: Duration) -> bool {
    let mut child = program(dir)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let is_late = tokio::time::timeout(life, child.wait()).await.is_err();
    if is_late {
        tokio::time::timeout(PATIENCE, child.kill()).await.unwrap().unwrap();
    }
    is_late
}

/// Returns how many of these calls are named in files that a repair has set aside.
fn in_files_aside(home: &Path, lost: &[String]) -> usize {
    let folders = [home.to_owned(), home.join("writers")];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten());
    let is_aside = |name: &str| name.contains(".aside-") || name.contains("damaged");
    let files = files.filter(|file| file.file_name().to_str().is_some_and(is_aside));
    let texts: Vec<Vec<u8>> = files.map(|file| std::fs::read(file.path()).unwrap()).collect();
    let is_named = |resource: &&String| {
        let words = format!("\"{resource}\"");
        texts.iter().any(|text| text.windows(words.len()).any(|part| part == words.as_bytes()))
    };
    lost.iter().filter(is_named).count()
}
