//! `countersign receipt verify`: the source of the receipts, the trusted keys, and the report. It
//! only reads; `audit` decides whether a chain is intact.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use admin::view::{ChainReport, LedgerReport};
use domain::config::AnchorConfig;
use mcp::task;
use receipt::PublicKey;
use receipt::audit::{Audit, AuditDetail, AuditOutcome, AuditScope, Report};
use receipt::chain::ChainExpectation;
use receipt::checkpoint::HeadLine;
use serde::{Deserialize, Serialize};
use store::anchored::AnchorCheck;
use store::read::{
    AuditSource, IdKind, LedgerPlace, Reader, ReceiptStamp, SIGNING_TIME_MAX, StoredReceipt,
};

use super::export::KEYS_ENDING;
use super::overview::{Chains, Overview, OverviewFacts};
use super::proof::ReceiptProof;
use crate::cli::Verify;
use crate::command::export::with_ending;
use crate::command::{keys, ledger};
use crate::control::Control;
use crate::exit::Failure;
use crate::home::Home;
use crate::output::progress::Progress;
use crate::output::{self, note, table};
use crate::site::Site;

/// The maximum size of one line of an export: ten times the size limit of a receipt.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

const SQLITE: &[u8] = b"SQLite format 3\0";

pub(super) async fn run(site: &Site, args: Verify) -> Result<(), Failure> {
    let (format, is_verbose) = (args.output, args.verbose);
    let Verified { mut outcome, overview, known, receipt } = match (&args.file, &args.db) {
        (Some(file), _) => {
            let file = file.clone();
            off_thread(move || of_export(&args, &file)).await?
        }
        (None, Some(db)) => {
            let db = db.clone();
            let home = site.home().map_err(unchecked)?.clone();
            off_thread(move || of_ledger(&args, &home, &db, (LedgerPlace::Copy, None))).await?
        }
        (None, None) => of_home(site, args).await?,
    };
    let broken = broken(&outcome.reports);
    let proof = receipt.as_ref().map(|receipt| ReceiptProof::new(receipt, &mut outcome));
    let report =
        VerifyReport { ledger: LedgerReport::new(outcome), overview: overview.facts(&known) };
    output::print(format, &report, |report| {
        let all = summary(&report.ledger, &overview, &known, is_verbose);
        proof.iter().map(|proof| format!("{}\n\n", proof.shown())).chain([all]).collect()
    })?;
    let unproved = proof.and_then(|proof| proof.fault);
    match broken.or(unproved) {
        None => Ok(()),
        Some(words) => Err(Failure::broken(words)),
    }
}

/// The verdicts and the facts about all receipts, for programs.
#[derive(Serialize)]
struct VerifyReport {
    #[serde(flatten)]
    ledger: LedgerReport,
    #[serde(flatten)]
    overview: OverviewFacts,
}

/// The verdicts, and the facts for the summary.
struct Verified {
    outcome: AuditOutcome,
    overview: Overview,
    known: Vec<PublicKey>,
    /// The receipt to verify, if one was named.
    receipt: Option<StoredReceipt>,
}

/// Verifies the home's own ledger, which may be written meanwhile. Nothing is written here: what a
/// dead process left in its journal stays there until a gate starts.
async fn of_home(site: &Site, args: Verify) -> Result<Verified, Failure> {
    let home = site.home().map_err(unchecked)?;
    let file = home.path().join(store::FILE);
    if !file.exists() {
        let words = format!(
            "ledger '{}' does not exist yet: nothing has been recorded in this home",
            file.display()
        );
        return Err(Failure::not_checked(words));
    }
    let (args, anchor) = (std::sync::Arc::new(args), ledger::anchor(site));
    let mut patience = Some(SIGNING_TIME_MAX);
    loop {
        if let Err(failure) = settle(site).await {
            tracing::warn!(
                "verifying the ledger without waiting for pending writes: {}",
                failure.message()
            );
        }
        let (home, args, file) = (home.clone(), args.clone(), file.clone());
        let folder = home.path().to_owned();
        let verifying = {
            let (folder, anchor) = (folder.clone(), anchor.clone());
            move || {
                let place = (LedgerPlace::Home(&folder), anchor.as_ref());
                of_ledger(&args, &home, &file, place)
            }
        };
        let verified = off_thread(verifying).await?;
        let may_change = broken(&verified.outcome.reports).is_some()
            && !store::survey::living(&folder).is_empty();
        let Some(pause) = patience.take().filter(|_| may_change) else {
            return Ok(verified);
        };
        tokio::time::sleep(pause).await;
    }
}

/// Waits until a running gate has filed what it has recorded so far.
async fn settle(site: &Site) -> Result<(), Failure> {
    match Control::running(site).await? {
        Some(control) => control.get("/api/v1/chains").await.map(drop),
        None => Ok(()),
    }
}

fn of_ledger(
    args: &Verify,
    home: &Home,
    file: &Path,
    (place, anchor): (LedgerPlace<'_>, Option<&AnchorConfig>),
) -> Result<Verified, Failure> {
    let known: Vec<PublicKey> = match &args.public_key {
        Some(file) => keys::in_file(file).map_err(unchecked)?,
        None => keys::in_home(home).map_err(unchecked)?.into_iter().map(|(_, key)| key).collect(),
    };
    let fail =
        |error: store::StoreError| Failure::not_checked(format!("'{}': {error}", file.display()));
    let reader = Reader::open(file).map_err(fail)?;
    let receipt = match &args.receipt {
        Some(id) => Some(one_receipt(&reader, id, file)?),
        None => None,
    };
    let chain = receipt.as_ref().map(|receipt| receipt.chain_id.clone());
    let args = &Verify { chain: chain.or_else(|| args.chain.clone()), ..args.clone() };
    let mut audit = audit(known.clone(), args)?;
    let anchored = match place {
        LedgerPlace::Home(folder) => store::anchored::check(folder, anchor).map_err(fail)?,
        LedgerPlace::Copy => AnchorCheck::default(),
    };
    let mut progress = Progress::new("receipts verified", None);
    reader.audit(&mut audit, AuditSource::on_all_cores(place), || progress.tick()).map_err(fail)?;
    progress.end();
    anchored.faults.into_iter().for_each(|fault| audit.fault_of_ledger(fault));
    anchored.notes.iter().for_each(|words| audit.note(format!("note: {words}")));
    let mut overview = Overview::default();
    reader.stamps(args.chain.as_deref(), |stamp| overview.add(stamp)).map_err(fail)?;
    let decisions = store::anchored::decisions(file, place).map_err(fail)?;
    require_head(&mut audit, args, decisions)?;
    let ended = |audit: Audit, expected| audit.finish(AuditScope::All, expected);
    Ok(Verified { outcome: finish(audit, args, file, ended)?, overview, known, receipt })
}

/// Returns the receipt that an id means, whole or in part.
fn one_receipt(reader: &Reader, id: &str, file: &Path) -> Result<StoredReceipt, Failure> {
    let fail = |words: &dyn std::fmt::Display| {
        Failure::not_checked(format!("'{}': {words}", file.display()))
    };
    let ids = reader.ids(IdKind::Receipt, id).map_err(|error| fail(&error))?;
    if ids.len() > 1 {
        let words = format!("'{id}' matches several receipts: {}", ids.join(", "));
        return Err(fail(&words));
    }
    let found = match ids.first() {
        Some(id) => reader.receipt(id).map_err(|error| fail(&error))?,
        None => None,
    };
    found.ok_or_else(|| fail(&format!("receipt '{id}' not found")))
}

/// Verifies an export: one receipt a line, in any order of chains.
fn of_export(args: &Verify, file: &Path) -> Result<Verified, Failure> {
    let fail = |error: &dyn std::fmt::Display| {
        Failure::not_checked(format!("cannot verify '{}': {error}", file.display()))
    };
    let mut lines = BufReader::new(File::open(file).map_err(|error| fail(&error))?);
    let start = lines.fill_buf().map_err(|error| fail(&error))?;
    if start.starts_with(SQLITE) {
        return Err(fail(&"the file is a ledger, not an export; pass it with --db"));
    }
    let known = export_keys(args, file)?;
    let mut audit = audit(known.clone(), args)?;
    let (mut progress, mut overview) =
        (Progress::new("receipts verified", None), Overview::default());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut lines).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        match read.map_err(|error| fail(&error))? as u64 {
            0 => break,
            LINE_BYTES_MAX => return Err(fail(&"a line is too long to be a receipt")),
            _ => {}
        }
        let text = match std::str::from_utf8(&line) {
            Ok(text) => Cow::Borrowed(text),
            // Must not pass for a receipt that differs from it.
            Err(_) => format!("(not UTF-8) {}", String::from_utf8_lossy(&line)).into(),
        };
        if let Some(stamp) = stamp(&text) {
            overview.add(stamp);
        }
        if !text.trim().is_empty() && audit.push(text.trim()).is_none() {
            return Err(fail(&"the file does not start with a receipt, so it is not an export"));
        }
        progress.tick();
    }
    progress.end();
    if audit.is_empty() {
        return Err(fail(&"the file contains no receipts"));
    }
    require_head(&mut audit, args, None)?;
    let outcome = finish(audit, args, file, Audit::finish_export)?;
    Ok(Verified { outcome, overview, known, receipt: None })
}

/// Reads what the overview needs of a receipt.
fn stamp(text: &str) -> Option<ReceiptStamp> {
    #[derive(Deserialize)]
    struct Glance {
        issuer: Issuer,
        #[serde(rename = "issuanceDate")]
        issued_at: String,
        #[serde(rename = "credentialSubject")]
        subject: Subject,
    }
    #[derive(Deserialize)]
    struct Issuer {
        id: String,
    }
    #[derive(Deserialize)]
    struct Subject {
        chain: Place,
    }
    #[derive(Deserialize)]
    struct Place {
        chain_id: String,
        sequence: u64,
    }
    let glance: Glance = serde_json::from_str(text).ok()?;
    let Place { chain_id, sequence } = glance.subject.chain;
    Some(ReceiptStamp { chain_id, sequence, issuer: glance.issuer.id, issued_at: glance.issued_at })
}

fn export_keys(args: &Verify, file: &Path) -> Result<Vec<PublicKey>, Failure> {
    let path: PathBuf = match &args.public_key {
        Some(path) => path.clone(),
        None => with_ending(file, KEYS_ENDING),
    };
    keys::in_file(&path).map_err(|failure| {
        let words = format!("{}; pass a file of public keys with --public-key", failure.message());
        Failure::not_checked(words)
    })
}

fn audit(trusted: Vec<PublicKey>, args: &Verify) -> Result<Audit, Failure> {
    let detail = match args.receipt {
        Some(_) => AuditDetail::Receipts,
        None => AuditDetail::Chains,
    };
    Audit::new(trusted, args.chain.clone(), detail).ok_or_else(|| {
        let words = "no public key to verify with: pass one with --public-key";
        Failure::not_checked(words)
    })
}

/// Requires the checkpoint that the user kept elsewhere, and as many decisions as it names if those
/// of the ledger are known.
fn require_head(audit: &mut Audit, args: &Verify, decisions: Option<u64>) -> Result<(), Failure> {
    let Some(head) = args.head.as_deref().map(str::trim) else {
        return Ok(());
    };
    if head.starts_with('{') {
        let named = audit.require("--head", head);
        if let (Some(named), Some(known)) = (named, decisions)
            && named > known
        {
            audit.fault_of_ledger(format!(
                "operators had made {named} decisions at the checkpoint of --head, and the ledger \
                 has {known} of them"
            ));
        }
        return Ok(());
    }
    let line: HeadLine =
        head.parse().map_err(|error| Failure::not_checked(format!("--head: {error}")))?;
    audit.require_digest(line.digest, Some(line.count));
    Ok(())
}

fn finish(
    audit: Audit,
    args: &Verify,
    file: &Path,
    ended: impl FnOnce(Audit, ChainExpectation) -> AuditOutcome,
) -> Result<AuditOutcome, Failure> {
    let fail = |words: String| Err(Failure::not_checked(words));
    let expected =
        ChainExpectation { length: args.expect_length, final_hash: args.expect_final_hash };
    if let Some(chain) = args.chain.as_ref().filter(|_| audit.is_empty()) {
        return fail(format!("chain '{chain}' not found in '{}'", file.display()));
    }
    if expected != ChainExpectation::default() && !audit.has_one_chain() {
        return fail(
            "--expect-length and --expect-final-hash apply to one chain: name it with --chain"
                .to_owned(),
        );
    }
    let outcome = ended(audit, expected);
    outcome.notes.iter().for_each(|words| note(words));
    Ok(outcome)
}

/// Returns one line about all chains, and a table of those that are broken, or of all.
fn summary(
    report: &LedgerReport,
    overview: &Overview,
    known: &[PublicKey],
    is_verbose: bool,
) -> String {
    if report.chains.is_empty() {
        return "no receipts yet".to_owned();
    }
    let chains = Chains {
        all: report.chains.len() as u64,
        broken: report.chains.iter().filter(|chain| !chain.valid).count() as u64,
        receipts: report.receipts,
    };
    let line = overview.line(chains, known);
    let shown = report.chains.iter().filter(|chain| is_verbose || !chain.valid);
    let rows = list(shown);
    if rows.is_empty() { line } else { format!("{line}\n{rows}") }
}

fn list<'a>(chains: impl Iterator<Item = &'a ChainReport>) -> String {
    let row = |chain: &ChainReport| {
        let status = match chain.status.as_str() {
            "unknown" => "not closed".to_owned(),
            known => known.to_owned(),
        };
        let result = match &chain.error {
            None => "intact".to_owned(),
            Some(error) if chain.faults > 1 => {
                format!("BROKEN: {error} (1 of {} faults)", chain.faults)
            }
            Some(error) => format!("BROKEN: {error}"),
        };
        vec![chain.chain_id.clone(), chain.length.to_string(), status, result]
    };
    let rows: Vec<Vec<String>> = chains.map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    table(&["chain", "receipts", "status", "result"], &rows)
}

fn broken(reports: &[Report]) -> Option<String> {
    let mut broken = reports.iter().filter(|report| !report.valid);
    let first = broken.next()?;
    let place = match (first.broken_at, &first.receipt_id) {
        (Some(index), Some(id)) => format!(" at receipt {} ({})", index + 1, output::plain(id)),
        (Some(index), None) => format!(" at receipt {}", index + 1),
        (None, _) => String::new(),
    };
    let more = match broken.count() {
        0 => String::new(),
        more => format!("; {more} more chains are broken"),
    };
    let reason = output::plain(first.error.as_deref().unwrap_or_default());
    let chain = output::plain(&first.chain_id);
    Some(format!("chain {chain} is broken{place}: {reason}{more}"))
}

fn unchecked(failure: Failure) -> Failure {
    Failure::not_checked(failure.message())
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let ended = task::spawn_blocking(work).await;
    ended.map_err(|error| Failure::system(format!("verification stopped early: {error}")))?
}
