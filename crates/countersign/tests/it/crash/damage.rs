//! Damage as a crash or a bad disk leaves it in the files of a home.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::path::Path;

use super::random::Random;
use super::remains::journals;

/// A kind of damage to a home in which no process is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Damage {
    CutDatabase,
    DeletedDatabase,
    FlippedBit,
    DeletedJournal,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Damage::CutDatabase => "the database was cut",
            Damage::DeletedDatabase => "the database was deleted",
            Damage::FlippedBit => "a bit of a journal was flipped",
            Damage::DeletedJournal => "a journal was deleted",
        })
    }
}

impl Damage {
    /// Returns what happens in a round: often nothing, sometimes two things.
    pub(super) fn of_round(random: &mut Random) -> Vec<Damage> {
        const KINDS: [Damage; 6] = [
            Damage::CutDatabase,
            Damage::CutDatabase,
            Damage::DeletedDatabase,
            Damage::FlippedBit,
            Damage::FlippedBit,
            Damage::DeletedJournal,
        ];
        match random.below(10) {
            0..4 => Vec::new(),
            4..9 => vec![*random.pick(&KINDS)],
            _ => vec![*random.pick(&KINDS), *random.pick(&KINDS)],
        }
    }

    pub(super) fn is_of_database(self) -> bool {
        matches!(self, Damage::CutDatabase | Damage::DeletedDatabase)
    }

    /// Damages the home; without the file in question, nothing.
    pub(super) fn inflict(self, home: &Path, random: &mut Random) {
        match self {
            Damage::CutDatabase => cut(&home.join("ledger.db"), random),
            Damage::DeletedDatabase => delete_database(home, random),
            Damage::FlippedBit => flip(home, random),
            Damage::DeletedJournal => delete_journal(home, random),
        }
    }
}

fn cut(file: &Path, random: &mut Random) {
    let Ok(found) = fs::metadata(file) else { return };
    let length = random.within(found.len().max(1));
    OpenOptions::new().write(true).open(file).unwrap().set_len(length).unwrap();
}

/// Deletes the file, with its log or without.
fn delete_database(home: &Path, random: &mut Random) {
    let names = ["ledger.db", "ledger.db-wal", "ledger.db-shm"];
    let count = *random.pick(&[1, 3]);
    for name in &names[..count] {
        let _ = fs::remove_file(home.join(name));
    }
}

fn flip(home: &Path, random: &mut Random) {
    let journals = journals(home);
    if journals.is_empty() {
        return;
    }
    let journal = random.pick(&journals);
    let mut text = fs::read(journal).unwrap();
    if text.is_empty() {
        return;
    }
    // The last entries are those that no table has yet.
    let from = if random.is_in(60) { text.len() - text.len().min(4_000) } else { 0 };
    let at = from + random.below(text.len() - from);
    text[at] ^= 1 << random.below(8);
    fs::write(journal, text).unwrap();
}

/// Deletes a journal. The lock file of its chain stays, and says what the journal held.
fn delete_journal(home: &Path, random: &mut Random) {
    let journals = journals(home);
    if !journals.is_empty() {
        fs::remove_file(random.pick(&journals)).unwrap();
    }
}
