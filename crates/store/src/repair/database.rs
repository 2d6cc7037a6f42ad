//! The database of a home under repair. A new one is filled under another name and is complete before
//! a damaged one is set aside, so that a repair that is killed at any moment can be repeated.

use std::fs::{self, File};
use std::path::Path;

use domain::config::Durability;
use receipt::verify::SignedReceipt;
use receipt::{Hash, PublicKey};
use rusqlite::Connection;

use super::rebuild;
use crate::database::aside::set_aside;
use crate::database::{FILE, WRITERS, settings, timestamp};
use crate::error::StoreError;
use crate::evidence::UNFINISHED_FILE;
use crate::survey;
use crate::write::repair::LEDGER_REPAIRED;

/// The beginning of the name of a database that was set aside.
const KEPT: &str = "ledger.db.damaged-";

/// The endings of the files that SQLite keeps next to a database.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// The setting of a new database until an account of the repair that made it is signed.
pub(super) const UNSIGNED: &str = "unsigned_repair";

/// The database of a home, and whether it was made by this repair, or by one that was killed.
pub(super) struct RepairedDatabase {
    pub(super) db: Connection,
    pub(super) is_new: bool,
}

/// Opens the database, after a damaged one was replaced. `reached` is called after each step.
pub(super) fn open(
    home: &Path,
    done: &mut Vec<String>,
    reached: &dyn Fn(&str),
) -> Result<RepairedDatabase, StoreError> {
    complete_set_aside(home, done)?;
    for companion in COMPANIONS.iter().chain(&[""]) {
        let name = format!("{UNFINISHED_FILE}{companion}");
        if home.join(&name).exists() {
            done.push(set_aside(home, &name)?);
        }
    }
    let is_absent = fs::metadata(home.join(FILE)).map_or(true, |found| found.len() == 0);
    let faults = if is_absent {
        Vec::new()
    } else {
        survey::integrity(home).unwrap_or_else(|error| vec![error.to_string()])
    };
    let mut is_new = is_absent || !faults.is_empty();
    if is_new {
        done.extend(faults.iter().map(|fault| format!("damaged: {fault}")));
        replace(home, is_absent, done, reached)?;
    }
    let db = crate::open_tables(&home.join(FILE), Durability::Disk)?;
    if !is_new && settings::get(&db, UNSIGNED)?.is_some() {
        done.push("a repair that did not finish had made a new database".to_owned());
        is_new = true;
    }
    Ok(RepairedDatabase { db, is_new })
}

/// Makes a new database from the present one, or if that is gone, from the last one that was set
/// aside.
fn replace(
    home: &Path,
    is_absent: bool,
    done: &mut Vec<String>,
    reached: &dyn Fn(&str),
) -> Result<(), StoreError> {
    // The log belongs to the file that is gone.
    for companion in COMPANIONS.iter().filter(|_| is_absent) {
        let name = format!("{FILE}{companion}");
        if home.join(&name).exists() {
            done.push(set_aside(home, &name)?);
        }
    }
    let mut sources = kept(home);
    let source = if is_absent { sources.pop() } else { Some(FILE.to_owned()) };
    let new = home.join(UNFINISHED_FILE);
    let db = crate::open_tables(&new, Durability::Disk)?;
    // Its first page may be needed to read the damaged file.
    let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    reached("begun");
    if let Some(source) = &source {
        done.extend(rebuild::from_damaged(&db, home, (&home.join(source), source))?);
    }
    for earlier in &sources {
        done.extend(rebuild::from_pages(&db, home, (&home.join(earlier), earlier))?);
    }
    done.extend(journals_again(&db, home)?);
    done.push("made a new database".to_owned());
    settings::set(&db, UNSIGNED, "")?;
    let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    db.close().map_err(|(_, error)| StoreError::from(error))?;
    let cannot = |error| StoreError::Write(format!("cannot write '{}': {error}", new.display()));
    File::open(&new).and_then(|file| file.sync_all()).map_err(cannot)?;
    reached("filled");
    if !is_absent {
        let name = format!("{KEPT}{}", timestamp::now().replace(':', ""));
        // The log before the file: a log that was set aside alone shows which file it belongs to.
        for companion in COMPANIONS.iter().chain(&[""]) {
            rename(home, (companion, &name), done)?;
            reached("set aside");
        }
    }
    let named = fs::rename(&new, home.join(FILE));
    named.and_then(|()| File::open(home)?.sync_all()).map_err(cannot)?;
    reached("made");
    Ok(())
}

/// Puts journals back that earlier repairs have kept: what they hold may be nowhere else now. Returns
/// which, in words.
fn journals_again(db: &Connection, home: &Path) -> Result<Vec<String>, StoreError> {
    let (writers, mut words) = (home.join(WRITERS), Vec::new());
    // The newest of a chain has all that the earlier ones had.
    for name in names(&writers, "").iter().rev() {
        let Some((chain, _)) = name.split_once(".journal.aside-") else { continue };
        let journal = writers.join(format!("{chain}.journal"));
        let is_ended = "SELECT 1 FROM chains WHERE chain_id = ?1 AND status = 'expired'";
        if journal.exists() || db.prepare(is_ended)?.exists([chain])? {
            continue;
        }
        let cannot = |error| StoreError::Write(format!("cannot copy '{name}': {error}"));
        // Whole or not at all, whenever this is killed.
        let copy = writers.join(format!("{chain}.copy"));
        let copied =
            fs::copy(writers.join(name), &copy).and_then(|_| File::open(&copy)?.sync_all());
        copied.and_then(|()| fs::rename(&copy, journal)).map_err(cannot)?;
        words.push(format!("read '{WRITERS}/{name}' again"));
    }
    Ok(words)
}

/// Sets the rest of a database aside whose log an earlier repair has set aside. Since then no gate has
/// started, so that they belong together.
fn complete_set_aside(home: &Path, done: &mut Vec<String>) -> Result<(), StoreError> {
    if !home.join(UNFINISHED_FILE).exists() || !home.join(FILE).exists() {
        return Ok(());
    }
    let databases = kept(home);
    let lone = names(home, KEPT).into_iter().find_map(|name| {
        let of = COMPANIONS.iter().find_map(|companion| name.strip_suffix(companion))?;
        (!databases.iter().any(|known| known == of)).then(|| of.to_owned())
    });
    if let Some(name) = lone {
        for companion in COMPANIONS.iter().chain(&[""]) {
            rename(home, (companion, &name), done)?;
        }
    }
    Ok(())
}

/// Renames the database or one of its companions, if it is there.
fn rename(
    home: &Path,
    (companion, kept): (&str, &str),
    done: &mut Vec<String>,
) -> Result<(), StoreError> {
    let (from, to) = (format!("{FILE}{companion}"), format!("{kept}{companion}"));
    if home.join(&from).exists() && !home.join(&to).exists() {
        let cannot = |error| StoreError::Write(format!("cannot set '{from}' aside: {error}"));
        let hash = File::open(home.join(&from)).and_then(Hash::of_all).map_err(cannot)?;
        fs::rename(home.join(&from), home.join(&to)).map_err(cannot)?;
        done.push(format!("set '{from}' aside as '{to}' ({hash})"));
    }
    Ok(())
}

/// Returns the names of the databases that repairs have set aside, the oldest first.
pub(super) fn kept(home: &Path) -> Vec<String> {
    let mut found = names(home, KEPT);
    found.retain(|name| !COMPANIONS.iter().any(|companion| name.ends_with(companion)));
    found
}

fn names(folder: &Path, beginning: &str) -> Vec<String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(beginning)).collect();
    names.sort_unstable();
    names
}

/// Returns the databases that a repair has set aside of which no account is signed, since it did not
/// finish.
pub(super) fn unaccounted(
    db: &Connection,
    home: &Path,
    keys: &[PublicKey],
) -> Result<Vec<String>, StoreError> {
    let mut kept: Vec<String> = names(home, KEPT);
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    let mut statement = db.prepare("SELECT receipt_json FROM receipts WHERE own = ?1")?;
    let texts = statement.query_map([LEDGER_REPAIRED], |row| row.get::<_, String>(0))?;
    for text in texts {
        let Ok(text) = text else { continue };
        let Ok(signed) = SignedReceipt::parse(&text) else { continue };
        if signed.key_among(keys).is_some_and(|key| signed.verify(key).is_ok()) {
            kept.retain(|name| !text.contains(&format!("'{name}'")));
        }
    }
    Ok(kept)
}

/// Says of databases that they were set aside by a repair that did not finish, unless this one did it.
pub(super) fn interrupted_words(
    home: &Path,
    interrupted: &[String],
    done: &[String],
) -> Result<Vec<String>, StoreError> {
    let mut words = Vec::new();
    for name in interrupted {
        if !done.iter().any(|done| done.contains(&format!("aside as '{name}'"))) {
            let cannot = |error| StoreError::Read(format!("'{name}': {error}"));
            let hash = File::open(home.join(name)).and_then(Hash::of_all).map_err(cannot)?;
            words.push(format!("'{name}' was set aside by a repair that did not finish ({hash})"));
        }
    }
    Ok(words)
}
