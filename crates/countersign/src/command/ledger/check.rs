//! `countersign ledger check`: everything that can be wrong with a home's ledger, from its files
//! alone. It reads only; `survey` and `audit` decide what is a fault.

use std::path::Path;
use std::thread;

use domain::config::AnchorConfig;
use mcp::task;
use receipt::audit::{Audit, AuditDetail, AuditScope, Report};
use receipt::chain::ChainExpectation;
use serde::Serialize;
use store::read::{AuditSource, LedgerPlace, Reader, SIGNING_TIME_MAX};
use store::survey::{self, FileState, JournalState, Survey};

use crate::cli::Format;
use crate::command::keys;
use crate::exit::Failure;
use crate::home::Home;
use crate::output::progress::Progress;
use crate::output::{self, fields};
use crate::site::Site;

/// The result of a check.
#[derive(Serialize)]
struct CheckReport {
    sound: bool,
    database: FileReport,
    journals: Vec<JournalReport>,
    /// Files with damaged lines of journals.
    set_aside: Vec<String>,
    keys: usize,
    checkpoint: FileReport,
    decisions: FileReport,
    chains: ChainsReport,
    faults: Vec<String>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct FileReport {
    /// `valid`, `invalid` or `missing`.
    state: &'static str,
    detail: Option<String>,
}

#[derive(Serialize)]
struct JournalReport {
    chain_id: String,
    in_use: bool,
    entries: usize,
    damaged: usize,
    unfiled: Option<usize>,
    lost: u64,
}

#[derive(Default, Serialize)]
struct ChainsReport {
    intact: usize,
    broken: usize,
    receipts: u64,
}

pub(super) async fn run(site: &Site, format: Format) -> Result<(), Failure> {
    let home = site.home()?.clone();
    if !home.path().is_dir() {
        let words = format!("the home '{}' does not exist", home.path().display());
        return Err(Failure::not_checked(words));
    }
    let anchor = super::anchor(site);
    let checking = task::spawn_blocking(move || check(&home, anchor.as_ref()));
    let report = checking
        .await
        .map_err(|error| Failure::system(format!("the check stopped early: {error}")))?;
    output::print(format, &report, shown)?;
    match report.faults.len() {
        0 => Ok(()),
        1 => Err(Failure::broken("the ledger has a fault")),
        count => Err(Failure::broken(format!("the ledger has {count} faults"))),
    }
}

/// Returns the number of receipts that were verified, or the faults.
pub(super) fn verdict(home: &Home) -> Result<u64, Vec<String>> {
    let report = check(home, None);
    if report.sound { Ok(report.chains.receipts) } else { Err(report.faults) }
}

fn check(home: &Home, anchor: Option<&AnchorConfig>) -> CheckReport {
    let survey = Survey::of(home.path(), anchor);
    let (mut faults, mut notes) = (survey.faults.clone(), survey.notes.clone());
    if survey.is_new() {
        notes.push("nothing has been recorded in this home".to_owned());
    }
    let mut chains = ChainsReport::default();
    if matches!(survey.database, FileState::Valid(_)) {
        // The structure of the file and the signatures are checked at the same time.
        let (structure, audited) = thread::scope(|scope| {
            let structure = scope.spawn(|| survey::integrity(home.path()));
            let audited = audit(home, &survey);
            (structure.join(), audited)
        });
        match structure {
            Ok(Ok(found)) => faults.extend(found.into_iter().map(damage)),
            Ok(Err(error)) => faults.push(error.to_string()),
            Err(_) => faults.push("the check of the database file stopped early".to_owned()),
        }
        match audited {
            Ok(reports) => chains = judge(&reports, &survey, &mut faults, &mut notes),
            Err(failure) => faults.push(failure.message().to_owned()),
        }
    }
    CheckReport {
        sound: faults.is_empty(),
        database: FileReport::from(&survey.database),
        journals: survey.journals.iter().map(JournalReport::from).collect(),
        set_aside: survey.set_aside,
        keys: survey.keys,
        checkpoint: FileReport::from(&survey.checkpoint),
        decisions: FileReport::from(&survey.decisions),
        chains,
        faults,
        notes,
    }
}

fn damage(words: String) -> String {
    format!("the database file is damaged: {words}")
}

/// Verifies every chain. If living processes have not filed all yet, verifies once more.
fn audit(home: &Home, survey: &Survey) -> Result<Vec<Report>, Failure> {
    let file = home.path().join(store::FILE);
    let reports = audit_once(home, &file)?;
    let is_written = survey.journals.iter().any(|journal| journal.is_alive);
    if is_written && reports.iter().any(|report| !report.valid) {
        thread::park_timeout(SIGNING_TIME_MAX);
        return audit_once(home, &file);
    }
    Ok(reports)
}

fn audit_once(home: &Home, file: &Path) -> Result<Vec<Report>, Failure> {
    let fail = |error: store::StoreError| Failure::system(error.to_string());
    let trusted = keys::in_home(home)?.into_iter().map(|(_, key)| key).collect();
    let Some(mut audit) = Audit::new(trusted, None, AuditDetail::Chains) else {
        return Err(Failure::system("there is no public key to verify receipts with"));
    };
    let reader = Reader::open(file).map_err(fail)?;
    let total = reader.chains().map_err(fail)?.iter().map(|chain| chain.length).sum();
    let mut progress = Progress::new("receipts verified", Some(total));
    let source = AuditSource::on_all_cores(LedgerPlace::Home(home.path()));
    reader.audit(&mut audit, source, || progress.tick()).map_err(fail)?;
    progress.end();
    Ok(audit.finish(AuditScope::All, ChainExpectation::default()).reports)
}

/// Counts the chains, and adds what is wrong with them to the faults.
fn judge(
    reports: &[Report],
    survey: &Survey,
    faults: &mut Vec<String>,
    notes: &mut Vec<String>,
) -> ChainsReport {
    let mut chains = ChainsReport::default();
    for report in reports {
        chains.receipts += report.length;
        let Some(error) = report.error.as_ref().filter(|_| !report.valid) else {
            chains.intact += 1;
            continue;
        };
        // The end of the chain may be in its journal, which the next start files.
        let unfiled = survey.journals.iter().find(|journal| journal.chain_id == report.chain_id);
        let may_follow =
            unfiled.is_some_and(|journal| journal.unfiled.is_some_and(|rows| rows > 0));
        if report.broken_at.is_none() && may_follow {
            chains.intact += 1;
            notes.push(format!("chain {} is not filed to its end", report.chain_id));
        } else {
            chains.broken += 1;
            faults.push(format!("chain {} is broken: {error}", report.chain_id));
        }
    }
    chains
}

impl From<&FileState> for FileReport {
    fn from(state: &FileState) -> FileReport {
        match state {
            FileState::Missing => FileReport { state: "missing", detail: None },
            FileState::Invalid(why) => FileReport { state: "invalid", detail: Some(why.clone()) },
            FileState::Valid(what) => FileReport { state: "valid", detail: Some(what.clone()) },
        }
    }
}

impl From<&JournalState> for JournalReport {
    fn from(journal: &JournalState) -> JournalReport {
        let JournalState { chain_id, is_alive, entries, damaged, unfiled, lost, .. } = journal;
        JournalReport {
            chain_id: chain_id.clone(),
            in_use: *is_alive,
            entries: *entries,
            damaged: *damaged,
            unfiled: *unfiled,
            lost: *lost,
        }
    }
}

fn shown(report: &CheckReport) -> String {
    let file = |file: &FileReport| match &file.detail {
        Some(detail) => format!("{}, {detail}", file.state),
        None => file.state.to_owned(),
    };
    let in_use = report.journals.iter().filter(|journal| journal.in_use).count();
    let damaged: usize = report.journals.iter().map(|journal| journal.damaged).sum();
    let ChainsReport { intact, broken, receipts } = &report.chains;
    let count = report.journals.len();
    let mut lines = vec![fields(&[
        ("database", file(&report.database)),
        ("journals", format!("{count}, {in_use} in use, {damaged} damaged lines")),
        ("keys", report.keys.to_string()),
        ("checkpoint", file(&report.checkpoint)),
        ("decisions", file(&report.decisions)),
        ("chains", format!("{intact} intact, {broken} broken, {receipts} receipts")),
        ("result", if report.sound { "sound".to_owned() } else { "FAULTS".to_owned() }),
    ])];
    lines.extend(report.faults.iter().map(|fault| format!("fault: {}", output::plain(fault))));
    lines.extend(report.notes.iter().map(|note| format!("note: {}", output::plain(note))));
    lines.join("\n")
}
