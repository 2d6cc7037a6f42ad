//! Reads what SQLite cannot read of a damaged database: it makes a copy of the file that SQLite can open,
//! and finds the receipts on pages to which no table leads any more. Each receipt proves by its signature
//! what it is.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::database::receipts;
use crate::error::StoreError;
use crate::limits::PAGE_BYTES;

/// The copy of a damaged database, which is removed once its rows were read.
const COPY: &str = "ledger.db.read";

/// The size of the pages of our files.
const PAGE: usize = PAGE_BYTES as usize;

/// Members of a file's first page: the number of changes, that of pages, the list of free pages with
/// its length, and the number of changes at which that of pages was right.
const CHANGES: usize = 24;
const PAGES: usize = 28;
const FREE: usize = 32;
const VALID_FOR: usize = 92;

/// The columns of a receipt's row, and the types of values: of its number, which stands elsewhere, of
/// its hash, which is a blob of 32 bytes, and of the shortest blob.
const COLUMNS: usize = 7;
const NULL: u64 = 0;
const HASH: u64 = 76;
const BLOB: u64 = 12;

/// Far more than a receipt has.
const WIDTH_MAX: usize = 1 << 24;

/// The headers of a log, and of each page in it.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;

/// A damaged database that can be queried.
pub(super) struct Opened {
    pub(super) db: Connection,
    copy: Option<PathBuf>,
}

/// Opens a damaged database. If SQLite refuses it, opens a copy whose first page is mended, or if that
/// is not enough, replaced by that of the new database, which has the same tables.
pub(super) fn open(file: &Path, new: &Path) -> Result<Option<Opened>, StoreError> {
    let has_tables = |db: &Connection| {
        db.prepare("SELECT 1 FROM sqlite_schema").and_then(|mut tables| tables.exists([]))
    };
    let opened = |path: &Path, flags| {
        let db = Connection::open_with_flags(path, flags).ok()?;
        has_tables(&db).is_ok_and(|has| has).then_some(db)
    };
    if let Some(db) = opened(file, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        return Ok(Some(Opened { db, copy: None }));
    }
    let copy = file.with_file_name(COPY);
    let cannot = |error| StoreError::Write(format!("cannot copy '{}': {error}", file.display()));
    for template in [None, Some(new)] {
        mended_copy(file, &copy, template).map_err(cannot)?;
        if let Some(db) = opened(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE) {
            return Ok(Some(Opened { db, copy: Some(copy) }));
        }
    }
    remove(&copy);
    Ok(None)
}

impl Opened {
    pub(super) fn close(self) {
        drop(self.db);
        if let Some(copy) = self.copy {
            remove(&copy);
        }
    }
}

/// Removes the copy of a database, and what SQLite keeps next to it.
fn remove(copy: &Path) {
    for companion in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(companion_of(copy, companion));
    }
}

fn companion_of(file: &Path, companion: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(companion);
    name.into()
}

/// Copies a database and its log, so that the first page says how many pages there are.
fn mended_copy(file: &Path, copy: &Path, template: Option<&Path>) -> io::Result<()> {
    remove(copy);
    for companion in ["", "-wal"] {
        let from = companion_of(file, companion);
        if from.exists() {
            let mut options = OpenOptions::new();
            let options = options.write(true).create_new(true).mode(0o600);
            io::copy(&mut File::open(from)?, &mut options.open(companion_of(copy, companion))?)?;
        }
    }
    let mended = OpenOptions::new().read(true).write(true).open(copy)?;
    let pages = mended.metadata()?.len().div_ceil(PAGE as u64).max(1);
    mended.set_len(pages * PAGE as u64)?;
    let mut first = [0; PAGE];
    match template {
        Some(template) => File::open(template)?.read_exact_at(&mut first, 0)?,
        None => mended.read_exact_at(&mut first, 0)?,
    }
    first.copy_within(CHANGES..CHANGES + 4, VALID_FOR);
    let pages = u32::try_from(pages).unwrap_or(u32::MAX);
    first[PAGES..FREE].copy_from_slice(&pages.to_be_bytes());
    first[FREE..FREE + 8].fill(0);
    mended.write_all_at(&first, 0)
}

/// Passes the text of everything that looks like a receipt's row to `each`: in a database, whether a
/// table leads to the page or not, and in its log.
pub(super) fn receipts(
    file: &Path,
    mut each: impl FnMut(String) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let log = companion_of(file, "-wal");
    for (path, begin, header) in [(file, 0, 0), (&*log, LOG_HEADER, FRAME_HEADER)] {
        let Ok(opened) = File::open(path) else { continue };
        let (mut page, mut at) = (vec![0; PAGE], begin + header);
        while opened.read_exact_at(&mut page, at).is_ok() {
            for packed in rows(&page, (path == file).then_some(&opened)) {
                let text = receipts::text(rusqlite::types::ValueRef::Blob(&packed)).into_owned();
                if let Ok(text) = String::from_utf8(text) {
                    each(text)?;
                }
            }
            at += PAGE as u64 + header;
        }
    }
    Ok(())
}

/// Returns the texts of all receipts on a page, packed, wherever they begin: the headers of a page may
/// be damaged, and rows that were deleted leave most of their bytes.
fn rows(page: &[u8], file: Option<&File>) -> Vec<Vec<u8>> {
    (0..page.len()).filter_map(|at| last_column(&page[at..], file)).collect()
}

/// Returns the last column of the row whose list of types begins here, if they are those of a receipt.
fn last_column(page: &[u8], file: Option<&File>) -> Option<Vec<u8>> {
    let (mut rest, mut types) = (page, [0; COLUMNS]);
    for kind in &mut types {
        *kind = number(&mut rest)?;
    }
    let [number, _, _, _, _, hash, packed] = types;
    if number != NULL || hash != HASH || packed < BLOB {
        return None;
    }
    // The list begins with its length, which is one byte.
    let header = 1 + page.len() - rest.len();
    let content = types.into_iter().try_fold(0, |sum, kind| width(kind).map(|one| sum + one))?;
    let content = payload(rest, (header, content), file)?;
    Some(content[content.len() - width(packed)?..].to_vec())
}

/// Returns how many bytes a value of this type has, unless it is far longer than a receipt.
fn width(kind: u64) -> Option<usize> {
    let bytes = match kind {
        1..=4 => kind,
        5 => 6,
        6 | 7 => 8,
        BLOB.. => (kind - BLOB) / 2,
        0 | 8..BLOB => 0,
    };
    usize::try_from(bytes).ok().filter(|bytes| *bytes < WIDTH_MAX)
}

/// Returns the content of a row. The lengths are those of its header, which ends here, and of the
/// content; what does not fit on the page continues on pages of its own.
fn payload(page: &[u8], (header, length): (usize, usize), file: Option<&File>) -> Option<Vec<u8>> {
    let within = length_within(header + length).checked_sub(header)?;
    let mut content = page.get(..within)?.to_vec();
    let mut next = page.get(within..within + 4).map(page_number);
    while content.len() < length {
        let mut page = vec![0; PAGE];
        let at = u64::from(next?.checked_sub(1)?) * PAGE as u64;
        file?.read_exact_at(&mut page, at).ok()?;
        next = Some(page_number(&page[..4]));
        let rest = (length - content.len()).min(PAGE - 4);
        content.extend_from_slice(&page[4..4 + rest]);
    }
    Some(content)
}

fn page_number(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_be_bytes)
}

/// Returns how many bytes of a row of this length stand on the page of its table.
fn length_within(length: usize) -> usize {
    let (most, least) = (PAGE - 35, (PAGE - 12) * 32 / 255 - 23);
    if length <= most {
        return length;
    }
    let within = least + (length - least) % (PAGE - 4);
    if within <= most { within } else { least }
}

/// Takes a number of one to nine bytes, in the form in which SQLite writes them.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in 0..9 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        if place == 8 {
            return Some(value << 8 | u64::from(*first));
        }
        value = value << 7 | u64::from(first & 0x7f);
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use domain::config::Durability;
    use rusqlite::params;

    use super::*;
    use crate::database::FILE;

    /// Makes a ledger with receipts whose texts have these lengths; returns its file.
    fn ledger(home: &Path, lengths: impl Iterator<Item = usize>) -> PathBuf {
        let file = home.join(FILE);
        let db = crate::open_tables(&file, Durability::Disk).unwrap();
        for (number, length) in lengths.enumerate() {
            db.execute(
                "INSERT INTO signed_receipts (id, chain_id, sequence, own, hash, packed)
                 VALUES (?1, 'c', ?2, NULL, ?3, ?4)",
                params![number.to_string(), number, [7_u8; 32], text(number, length).as_bytes()],
            )
            .unwrap();
        }
        let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        file
    }

    fn text(number: usize, length: usize) -> String {
        format!("{number:0length$}")
    }

    #[test]
    fn receipts_are_found_on_pages_that_no_table_has() {
        let lengths = || (0..300).map(|number| 1 + number * 37 % 20_000);
        let home = tempfile::tempdir().unwrap();
        let file = ledger(home.path(), lengths());
        let db = Connection::open(&file).unwrap();
        db.execute_batch("DROP TABLE signed_receipts").unwrap();
        drop(db);
        let mut found = Vec::new();
        receipts(&file, |text| {
            found.push(text);
            Ok(())
        })
        .unwrap();
        // Rows that moved to another page left their bytes.
        found.sort_unstable();
        found.dedup();
        let mut all: Vec<String> =
            lengths().enumerate().map(|(at, length)| text(at, length)).collect();
        all.sort_unstable();
        assert_eq!(found.len(), all.len());
        assert!(found == all);
    }

    #[test]
    fn a_file_that_is_cut_or_has_no_first_page_is_read() {
        let home = tempfile::tempdir().unwrap();
        let file = ledger(home.path(), (0..100).map(|_| 500));
        let new = home.path().join("new.db");
        drop(crate::open_tables(&new, Durability::Disk).unwrap());
        let whole = fs::read(&file).unwrap();
        for cut in [false, true] {
            let mut bytes = whole.clone();
            if cut {
                bytes.truncate(whole.len() - 3 * PAGE - 100);
            } else {
                bytes[..PAGE].fill(0x5a);
            }
            fs::write(&file, bytes).unwrap();
            let opened = open(&file, &new).unwrap().expect("it can be read");
            let count = "SELECT count(*) FROM signed_receipts WHERE number < 10";
            let count: i64 = opened.db.query_row(count, [], |row| row.get(0)).unwrap();
            assert_eq!(count, 9, "cut: {cut}");
            opened.close();
            assert!(!home.path().join(COPY).exists());
        }
        for path in [&file, &new] {
            fs::write(path, [0x5a; PAGE]).unwrap();
        }
        assert!(open(&file, &new).unwrap().is_none());
        assert!(!home.path().join(COPY).exists(), "nothing is left behind");
    }
}
