//! The acceptance of losses, on a person's order: a signed receipt names exactly what is missing, a
//! checkpoint covers it, and verification no longer reports it. Anything beyond it is a new fault.

use std::path::Path;

use domain::config::Durability;
use receipt::audit::loss::{self, Loss};
use receipt::audit::{Audit, AuditDetail};
use receipt::content::Termination;
use receipt::{PublicKey, RiskLevel};
use rusqlite::{Connection, params};

use crate::database::lock::Lock;
use crate::database::{FILE, WRITERS};
use crate::error::StoreError;
use crate::keys::{self, Keys};
use crate::read::{LedgerPlace, Reader, accepted};
use crate::survey;
use crate::write::chain::OpenChain;
use crate::write::chain_row::{SignedEnds, ended};
use crate::write::filing::{self, Consequence};
use crate::write::heads::SignedHeads;
use crate::write::row::JournalRow;
use crate::write::{checkpoint_file, compose, heads, journal};

/// Returns everything that the ledger of a home lacks and that no person has accepted.
pub fn losses(home: &Path) -> Result<Vec<Loss>, StoreError> {
    let reader = Reader::open(&home.join(FILE))?;
    let trusted = keys::all_public(&home.join(keys::FOLDER));
    let audit = Audit::new(trusted, None, AuditDetail::Chains);
    let mut audit =
        audit.ok_or_else(|| StoreError::Key("the home has no public key".to_owned()))?;
    reader.audit(&mut audit, LedgerPlace::Home(home), || ())?;
    Ok(audit.losses())
}

/// Accepts just these losses. Refuses if the ledger lacks anything else by now, while a process writes
/// it, and while journals could bring something back.
pub fn accept(home: &Path, expected: &[Loss]) -> Result<(), StoreError> {
    let writers = home.join(WRITERS);
    crate::create_writers(&writers)?;
    let _lock = Lock::maintenance(&writers)?;
    if let Some(chain) = survey::living(home).first() {
        let words = format!("a process writes chain {chain}: stop all gates of this home first");
        return Err(StoreError::Write(words));
    }
    // A writer that was killed before its first entry leaves an empty one.
    let is_unfiled = |chain: &&String| {
        let scan = journal::scan(&writers, chain);
        scan.is_some_and(|scan| !scan.rows.is_empty() || !scan.damaged.is_empty())
    };
    if let Some(chain) = journal::chains(&writers).iter().find(is_unfiled) {
        return Err(StoreError::Incomplete(format!(
            "the journal of chain {chain} is not filed, and may bring back what is missing"
        )));
    }
    if losses(home)? != expected {
        let words = "the ledger lacks something else by now: nothing was accepted; run the command \
                     again";
        return Err(StoreError::Write(words.to_owned()));
    }
    let db = crate::open_tables(&home.join(FILE), Durability::Disk)?;
    let mut keys = Keys::open(&home.join(keys::FOLDER), &db)?;
    heads::list_again(&db, &keys.known())?;
    sign(&db, home, &keys, expected)?;
    keys.mark_used();
    let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    Ok(())
}

/// Signs what is accepted in a separate chain, whose last receipt is a checkpoint.
fn sign(db: &Connection, home: &Path, keys: &Keys, losses: &[Loss]) -> Result<(), StoreError> {
    let chain = OpenChain::open(db, &home.join(WRITERS), keys.current(), Durability::Disk)?;
    let (mut end, known) = (chain.end, keys.known());
    filing::file_own(db, chain.by_ref(), Consequence::Nothing, |db| {
        let issuance = chain.issuance(&mut end);
        let mut runtime = issuance.beginning.map(compose::beginning).unwrap_or_default();
        runtime.insert(loss::MEMBER, losses.iter().map(Loss::runtime).collect::<Vec<_>>());
        let risk = (RiskLevel::High, runtime);
        let mut row =
            JournalRow::of_link(compose::own(issuance, loss::ACTION_TYPE, risk, None, None));
        row.sign(&chain.key);
        for loss in losses {
            correct_row(db, &known, loss)?;
        }
        // The checkpoints that named the others may be among what is lost.
        db.execute("UPDATE chains SET named = 0", [])?;
        // What records that are gone touched is no longer known of anything.
        db.execute_batch(
            "DELETE FROM touches WHERE NOT EXISTS
               (SELECT 1 FROM activity WHERE activity.number = touches.number)",
        )?;
        let id = row.link.as_ref().map_or("", |link| &*link.id);
        accepted::list(db, id)?;
        Ok(row)
    })?;
    let ended = Consequence::Closed(Termination::Complete);
    let (_, row) = filing::file_own(db, chain.by_ref(), ended, |db| {
        let checkpoint = heads::checkpoint(db, &known, &mut SignedHeads::default())?;
        let link =
            compose::closing(chain.issuance(&mut end), Termination::Complete, Some(&checkpoint));
        heads::remember(db, &checkpoint, &chain.id, &link)?;
        let mut row = JournalRow::of_link(link);
        row.sign(&chain.key);
        Ok(row)
    })?;
    let text = row.link.and_then(|link| link.signed).unwrap_or_default();
    checkpoint_file::replace(home, &text, Durability::Disk);
    Ok(())
}

/// Makes the row of a chain repeat what is left of it.
fn correct_row(db: &Connection, known: &[PublicKey], loss: &Loss) -> Result<(), StoreError> {
    let ends = SignedEnds::read(db, known, &loss.chain_id)?.unwrap_or_default();
    let status = ends.last.as_ref().and_then(ended).unwrap_or("unclosed");
    let left = loss.left.as_ref();
    let words = "UPDATE chains SET status = ?2, length = ?3, last_hash = ?4, named = 0
                 WHERE chain_id = ?1";
    let (length, hash) = (left.map_or(0, |it| it.length), left.map(|it| it.hash.to_string()));
    db.execute(words, params![loss.chain_id, status, length, hash])?;
    Ok(())
}
