//! The repair of a ledger, on a person's order: makes a lost database again from what the home still
//! holds, adopts journals, sets damaged things aside, and signs an account of it. Nothing is
//! deleted.

mod database;
mod rebuild;
mod records;
mod salvage;
mod strangers;

use std::path::Path;

use domain::config::{AnchorConfig, Durability};
use receipt::checkpoint::Head;
use receipt::content::Termination;
use receipt::{PublicKey, Runtime};
use rusqlite::Connection;

use crate::acceptance;
use crate::database::aside::set_aside;
use crate::database::lock::Lock;
use crate::database::{FILE, WRITERS, settings, transaction};
use crate::error::StoreError;
use crate::evidence::Evidence;
use crate::evidence::finding::{Finding, FindingKind, words_of};
use crate::evidence::judge::{judge, untrusted_checkpoint};
use crate::keys::{self, Keys};
use crate::state::keeping::{self, Decided};
use crate::state::signed_log;
use crate::survey;
use crate::write::adoption::Adoption;
use crate::write::chain::OpenChain;
use crate::write::chain_row::{self, ChainRow, SignedEnds};
use crate::write::checkpoint_file::CHECKPOINT_FILE;
use crate::write::filing::{Consequence, Filer};
use crate::write::recovery::{self, Recovered};
use crate::write::row::JournalRow;
use crate::write::witnessed::WitnessedLengths;
use crate::write::{compose, heads, repair};
use database::RepairedDatabase;
use vault::{Space, Vault};

/// The files of a home that hold a token: the admin key, and the default token of agents.
const TOKEN_FILES: [&str; 2] = ["api-key", "agent-token"];

/// Repairs the ledger of a home, and returns each step in words; none if the ledger is sound. What its
/// anchor names and the home lacks counts as lost from here on.
pub fn repair(home: &Path, anchor: Option<&AnchorConfig>) -> Result<Vec<String>, StoreError> {
    repair_by_step(home, anchor, &|_| ())
}

/// Does the same; `reached` is called after each step, so that a test can end the process there.
#[doc(hidden)]
pub fn repair_by_step(
    home: &Path,
    anchor: Option<&AnchorConfig>,
    reached: &dyn Fn(&str),
) -> Result<Vec<String>, StoreError> {
    let writers = home.join(WRITERS);
    crate::create_writers(&writers)?;
    let _lock = Lock::maintenance(&writers)?;
    if let Some(chain) = survey::living(home).first() {
        let words = format!("a process writes chain {chain}: stop all gates of this home first");
        return Err(StoreError::Write(words));
    }
    let mut done = keys::complete(&home.join(keys::FOLDER))?;
    let mut evidence = Evidence::of_files(home, anchor);
    done.extend(words_of(&judge(&evidence), |kind| kind == FindingKind::DatabaseLost));
    let RepairedDatabase { mut db, is_new } = database::open(home, &mut done, reached)?;
    evidence.add_tables(&db)?;
    let findings = judge(&evidence);
    let doubts = words_of(&findings, |kind| kind == FindingKind::DatabaseOlder);
    let known = keys::all_public(&home.join(keys::FOLDER));
    let interrupted = database::unaccounted(&db, home, &known)?;
    done.extend(database::interrupted_words(home, &interrupted, &done)?);
    let is_doubtful = is_new || !doubts.is_empty() || !interrupted.is_empty();
    done.extend(receipts_again(&db, home)?);
    if !is_new {
        done.extend(doubts.iter().map(|doubt| format!("the database is older: {doubt}")));
    }
    done.extend(touches_again(&db, home)?);
    let mut keys = signing_keys(&db, &evidence, &mut done)?;
    done.extend(rebuild::lost_chains(&db, &keys.known())?);
    done.extend(correct_rows(&db, home, &keys.known())?);
    done.extend(list_checkpoints(&db, &keys.known())?);
    reached("read");
    let recovered = recovery::recover(&mut db, home, &keys, Adoption::All)?;
    reached("recovered");
    done.extend(words(&recovered));
    done.extend(strangers::remove(&db, home, &keys.known())?);
    done.extend(records::make(&db, &keys.known())?);
    done.extend(records::correct(&db, home, &keys.known())?);
    // What was filed between other receipts is not the end of its chain.
    done.extend(correct_rows(&db, home, &keys.known())?);
    done.extend(checkpoint_aside(&db, home, recovered.lost)?);
    let was_lost = Decided::read(&db, home)?.lost_at.is_some();
    done.extend(accept_older(&db, &evidence, &findings)?);
    let named = evidence.named_decisions();
    done.extend(keeping::repair(&db, (home, &evidence.decisions), (named, is_doubtful))?);
    match Decided::read(&db, home)?.lost_at {
        Some(_) if !was_lost => {
            let words = "operator decisions are lost: approvals and tokens are withdrawn, servers \
                         and tools wait for a review";
            done.push(words.to_owned());
        }
        Some(at) if done.is_empty() => {
            transaction::whole(&db, |db| signed_log::end_notice(db, home))?;
            signed_log::write_copy(&db, home)?;
            done.push(format!("ended the notice that decisions were lost on {at}"));
        }
        Some(_) | None => {}
    }
    reached("decided");
    if !done.is_empty() {
        sign(&db, home, &mut keys, &done)?;
        settings::remove(&db, database::UNSIGNED)?;
    }
    let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    Ok(done)
}

/// Moves away receipts that are not as they were signed, and fills free places with receipts from copies
/// and from unused pages of the database; returns what was done, in words.
fn receipts_again(db: &Connection, home: &Path) -> Result<Vec<String>, StoreError> {
    let mut done: Vec<String> = strangers::remove_altered_receipts(db, home)?.into_iter().collect();
    done.extend(rebuild::from_copies(db, home)?);
    if acceptance::losses(home).is_ok_and(|losses| !losses.is_empty()) {
        // Rows that somebody deleted may still stand there.
        done.extend(rebuild::from_pages(db, home, (&home.join(FILE), FILE))?);
        heads::recount(db)?;
    }
    Ok(done)
}

/// Restores the touches of resources from the receipts; returns what was done, in words.
fn touches_again(db: &Connection, home: &Path) -> Result<Vec<String>, StoreError> {
    let mut done: Vec<String> = strangers::remove_lone_touches(db, home)?.into_iter().collect();
    if rebuild::lacks_touches(db)? {
        let made = rebuild::make_touches(db)?;
        done.push(format!("touches of resources were missing: made {made} again"));
    }
    Ok(done)
}

/// Sets the file of the newest checkpoint aside, if nothing can be made of it or if what it names is
/// still missing; says so.
fn checkpoint_aside(db: &Connection, home: &Path, lost: u64) -> Result<Vec<String>, StoreError> {
    let mut after = Evidence::of_files(home, None);
    after.add_tables(db)?;
    let is_behind = judge(&after).iter().any(|it| it.kind == FindingKind::DatabaseOlder);
    let untrusted = match &after.checkpoint {
        None => return Ok(Vec::new()),
        Some(Ok(_)) if !is_behind && lost == 0 => return Ok(Vec::new()),
        Some(Ok(_)) => None,
        Some(Err(why)) => Some(untrusted_checkpoint(why)),
    };
    let mut done: Vec<String> = untrusted.into_iter().collect();
    done.push(set_aside(home, CHECKPOINT_FILE)?);
    Ok(done)
}

/// Takes what the anchor names and the home lacks for lost; returns what that means, in words.
fn accept_older(
    db: &Connection,
    evidence: &Evidence,
    findings: &[Finding],
) -> Result<Vec<String>, StoreError> {
    let lost = words_of(findings, |kind| kind == FindingKind::HomeOlder);
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    let older = |words: &String| format!("the home is older than its anchor: {words}");
    let mut done: Vec<String> = lost.iter().map(older).collect();
    done.extend(revived(&evidence.home)?);
    evidence.anchored.as_ref().map_or(Ok(()), |anchor| anchor.accept(db))?;
    Ok(done)
}

/// Sets aside the tokens in files of a home that is older than its anchor, and names what else may
/// have been withdrawn since.
fn revived(home: &Path) -> Result<Vec<String>, StoreError> {
    let mut done = Vec::new();
    for name in TOKEN_FILES.iter().filter(|name| home.join(name).exists()) {
        done.push(format!("{}: a new one is made at the next start", set_aside(home, name)?));
    }
    let vault = Vault::of_home(home);
    for (space, what) in [(Space::Secret, "secrets"), (Space::Grant, "sign-ins to servers")] {
        match vault.names(space) {
            Ok(names) if names.is_empty() => {}
            Ok(names) => {
                let names: Vec<String> = names.into_iter().map(|entry| entry.name).collect();
                done.push(format!(
                    "these {what} are as old as the home, and may have been replaced or withdrawn \
                     since: {}",
                    names.join(", ")
                ));
            }
            Err(error) => done.push(format!("the {what} of the home cannot be listed: {error}")),
        }
    }
    Ok(done)
}

/// Opens the key that signed last. If its secret half is gone, makes another.
fn signing_keys(
    db: &Connection,
    evidence: &Evidence,
    done: &mut Vec<String>,
) -> Result<Keys, StoreError> {
    let folder = evidence.home.join(keys::FOLDER);
    let last = evidence.used_keys.last().or(evidence.key.as_ref());
    // A repair that did not finish may have made a key that has signed nothing yet.
    let is_newer =
        |key: &&String| !evidence.used_keys.contains(key) && keys::has_secret(&folder, key);
    match evidence.key.as_ref().filter(is_newer).or(last) {
        Some(last) if keys::has_secret(&folder, last) => keys::remember(db, last)?,
        Some(last) => {
            let new = keys::succeed(&folder, db)?;
            let gone = keys::secret_missing(last);
            done.push(format!("{gone}: made the new key {new}, which signs from here on"));
        }
        None => {}
    }
    Keys::open(&folder, db)
}

/// Makes the rows of chains repeat what their receipts say; returns what was corrected, in words.
fn correct_rows(
    db: &Connection,
    home: &Path,
    keys: &[PublicKey],
) -> Result<Vec<String>, StoreError> {
    let lengths = WitnessedLengths::read(db, home, keys)?;
    let mut statement = db.prepare("SELECT chain_id FROM chains ORDER BY chain")?;
    let chains = statement.query_map([], |row| row.get(0))?;
    let chains: Vec<String> = chains.collect::<Result<_, _>>()?;
    let mut done = Vec::new();
    for chain in chains {
        let (Ok(signed), Some(row)) =
            (SignedEnds::read(db, keys, &chain)?, ChainRow::read(db, &chain)?)
        else {
            continue;
        };
        let differing = row.differing(&signed);
        if !differing.is_empty() {
            transaction::whole(db, |db| ChainRow::correct(db, &chain, &signed, &differing))?;
            let columns = differing.join(", ");
            done.push(format!(
                "corrected the row of chain {chain} in the table of chains: {columns}"
            ));
        }
        if ChainRow::leave_open(db, &chain)? {
            done.push(format!(
                "chain {chain} has no receipts, and is no longer said to have ended"
            ));
        }
        if let Some(head) = chain_row::signed_head(db, keys, &chain)? {
            done.extend(transaction::whole(db, |db| lengths.correct(db, &head))?);
        }
    }
    Ok(done)
}

/// Makes the table of checkpoints list those that are signed; returns what was corrected, in words.
fn list_checkpoints(db: &Connection, keys: &[PublicKey]) -> Result<Vec<String>, StoreError> {
    let (lacked, wrong) = heads::list_again(db, keys)?;
    let words = |head: &Head, what: &str| {
        let Head { chain_id, length, hash } = head;
        format!("the table of checkpoints {what} receipt {length} of chain {chain_id} ({hash})")
    };
    let wrong = wrong.iter().map(|head| words(head, "no longer lists, since it is not there,"));
    Ok(wrong.chain(lacked.iter().map(|head| words(head, "lists again"))).collect())
}

fn words(recovered: &Recovered) -> Vec<String> {
    let mut words = Vec::new();
    for chain in &recovered.adopted {
        words.push(format!("adopted chain {chain} from its journal"));
    }
    words.extend(recovered.faults.iter().chain(&recovered.notes).cloned());
    words
}

/// Signs an account of the repair, in a separate chain.
fn sign(db: &Connection, home: &Path, keys: &mut Keys, done: &[String]) -> Result<(), StoreError> {
    let chain = OpenChain::open(db, &home.join(WRITERS), keys.current(), Durability::Disk)?;
    let mut account = Runtime::new();
    account.insert("subject", "ledger");
    let texts: Vec<&str> = done.iter().map(String::as_str).collect();
    account.insert("done", texts.as_slice());
    let mut end = chain.end;
    let links = [
        repair::repaired(chain.issuance(&mut end), account),
        compose::closing(chain.issuance(&mut end), Termination::Complete, None),
    ];
    let mut rows: Vec<JournalRow> = links.into_iter().map(JournalRow::of_link).collect();
    rows.iter_mut().for_each(|row| row.sign(&chain.key));
    let ended = Consequence::Closed(Termination::Complete);
    Filer::default().file(db, chain.by_ref(), &rows, ended)?;
    keys.mark_used();
    Ok(())
}
