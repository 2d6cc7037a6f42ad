//! Compares a home with the checkpoints that its anchor keeps. If the whole home is replaced by an
//! earlier copy, nothing in it shows that; what was kept outside does.

use std::path::Path;

use domain::config::AnchorConfig;

use crate::database::connection::ReadOnlyFile;
use crate::database::{FILE, schema};
use crate::error::StoreError;
use crate::evidence::Evidence;
use crate::evidence::finding::{FindingKind, words_of};
use crate::evidence::judge::{of_anchor, of_decisions};
use crate::keys;
use crate::read::LedgerPlace;
use crate::state::signed_log;

/// The result of comparing a home with its anchor, and its decisions with their signed log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnchorCheck {
    /// Everything that the anchor names and the home lacks, and faults of its decisions, in words.
    pub faults: Vec<String>,
    /// Matters that could not be compared, in words.
    pub notes: Vec<String>,
    /// The number of checkpoints that were compared.
    pub compared: usize,
}

/// Compares a home, without changing anything.
pub fn check(home: &Path, anchor: Option<&AnchorConfig>) -> Result<AnchorCheck, StoreError> {
    let mut evidence = Evidence::of_files(home, anchor);
    let file = home.join(FILE);
    if file.exists() {
        let db = ReadOnlyFile::at(&file)?.connect()?;
        if schema::is_current(&db)? {
            evidence.add_anchor(&db)?;
        }
    }
    let mut findings = of_decisions(&evidence);
    findings.extend(of_anchor(&evidence));
    Ok(AnchorCheck {
        faults: words_of(&findings, FindingKind::is_fault),
        notes: words_of(&findings, |kind| !kind.is_fault()),
        compared: evidence.anchored.map_or(0, |state| state.checkpoints),
    })
}

/// Returns the number of decisions that a ledger has; `None` if this program cannot read its tables.
pub fn decisions(file: &Path, place: LedgerPlace<'_>) -> Result<Option<u64>, StoreError> {
    let db = ReadOnlyFile::at(file)?.connect()?;
    if !schema::is_ledger(&db)? || !schema::is_current(&db)? {
        return Ok(None);
    }
    let number = match place {
        LedgerPlace::Home(home) => {
            let in_tables =
                signed_log::signed_number(&db, &keys::all_public(&home.join(keys::FOLDER)))?
                    .unwrap_or_default();
            Evidence::of_files(home, None).known_decisions(in_tables)
        }
        LedgerPlace::Copy => signed_log::number(&db)?,
    };
    Ok(u64::try_from(number).ok())
}
