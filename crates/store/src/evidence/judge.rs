//! Judges the evidence. Pure: the same evidence always has the same findings.

#[cfg(test)]
mod tests;

use domain::config::AnchorConfig;
use receipt::checkpoint::Head;

use super::anchor::AnchoredState;
use super::finding::{Finding, FindingKind};
use super::{DatabaseState, Evidence, HeadState, UNFINISHED_FILE, UntrustedCheckpoint};
use crate::database::{FILE, WRITERS};
use crate::keys;
use crate::state::keeping::{self, Decided};
use crate::state::signed_log::DecisionsFile;
use crate::write::checkpoint_file::{CHECKPOINT_FILE, FILE_MISSING};
use crate::write::heads;
use crate::write::journal_state::{JournalState, lost_words, rewritten_words};

/// The note on a database of an older version.
pub(crate) const OUTDATED: &str =
    "it has the layout of an older version: start the gate once to migrate it";

/// Returns all that the evidence shows, in the order in which a check reports it.
pub(crate) fn judge(evidence: &Evidence) -> Vec<Finding> {
    let unfinished = evidence.is_unfinished.then(|| {
        FindingKind::DatabaseLost.says(format!(
            "a repair of the ledger did not finish, and left '{UNFINISHED_FILE}': run it again"
        ))
    });
    let mut findings: Vec<Finding> = unfinished.into_iter().chain(of_database(evidence)).collect();
    findings.extend(evidence.journals.iter().flat_map(of_journal));
    findings.extend(evidence.set_aside.iter().map(|name| {
        let words = format!("damaged lines of a journal are kept in '{WRITERS}/{name}'");
        FindingKind::Note.says(words)
    }));
    findings.extend(of_checkpoint(evidence));
    findings.extend(of_decisions(evidence));
    if evidence.decided.is_some() {
        findings.extend(of_tables(evidence));
    }
    findings.extend(of_missing_keys(evidence));
    let damaged = evidence.damaged.iter().map(|chain| heads::damaged_words(chain));
    let ends = damaged.chain(evidence.other_ends.iter().cloned());
    findings.extend(ends.map(|words| FindingKind::Alarm.says(words)));
    findings.extend(evidence.clock.iter().map(|words| FindingKind::Notice.says(words)));
    let lost_at = evidence.decided.iter().filter_map(|decided| decided.lost_at.as_deref());
    findings.extend(lost_at.map(|at| FindingKind::Note.says(keeping::lost_words(at))));
    findings.extend(evidence.unread.iter().map(|error| FindingKind::Fault.says(error.to_string())));
    findings.extend(of_anchor(evidence));
    findings
}

fn of_database(evidence: &Evidence) -> Option<Finding> {
    let state = match &evidence.database {
        DatabaseState::Missing => "is missing",
        DatabaseState::Empty => "is empty",
        DatabaseState::Present => return None,
        DatabaseState::Outdated => {
            let words = format!("the database was not examined: {OUTDATED}");
            return Some(FindingKind::Note.says(words));
        }
        DatabaseState::Unreadable(error) => {
            return Some(FindingKind::Fault.says(error.clone().of_reading().to_string()));
        }
    };
    let traces = traces(evidence);
    let file = evidence.home.join(FILE);
    (!traces.is_empty()).then(|| {
        FindingKind::DatabaseLost.says(format!(
            "the ledger '{}' {state}, but the home has been used before: it has {}",
            file.display(),
            traces.join(", ")
        ))
    })
}

/// Names the files that only a used home has.
fn traces(evidence: &Evidence) -> Vec<String> {
    let counted = |count: usize, word: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        more => Some(format!("{more} {word}s")),
    };
    let has_decisions = !matches!(evidence.decisions, DecisionsFile::Missing);
    let traces = [
        counted(evidence.key_files, "signing key"),
        counted(evidence.chains.len(), "journal"),
        evidence.checkpoint.is_some().then(|| "a checkpoint".to_owned()),
        has_decisions.then(|| "operator decisions".to_owned()),
    ];
    traces.into_iter().flatten().collect()
}

fn of_journal(journal: &JournalState) -> Vec<Finding> {
    let JournalState { chain_id, damaged, lost, .. } = journal;
    let mut findings = Vec::new();
    if *damaged > 0 {
        let end = match lost {
            0 => "all of them are in the database already".to_owned(),
            lost => format!("{lost} entries are lost, the rest will be recovered"),
        };
        findings.push(
            FindingKind::Fault.says(format!(
                "the journal of chain {chain_id} has {damaged} damaged lines: {end}"
            )),
        );
    }
    if journal.is_rewritten {
        let words = rewritten_words();
        findings.push(FindingKind::Fault.says(format!("chain {chain_id}: {words}")));
    }
    // What an unknown chain lacks is told with that.
    if *damaged == 0 && *lost > 0 && journal.filed.is_some() {
        let words = lost_words(*lost);
        findings.push(FindingKind::Fault.says(format!("chain {chain_id}: {words}")));
    }
    if let (false, Some(unfiled @ 1..)) = (journal.is_alive, journal.unfiled) {
        findings.push(FindingKind::Note.says(format!(
            "the journal of chain {chain_id} has {unfiled} entries of a process that ended \
             abruptly; the next start files them"
        )));
    }
    findings
}

/// Says that the text in the file of the newest checkpoint is none.
pub(crate) fn untrusted_checkpoint(why: &UntrustedCheckpoint) -> String {
    format!("the checkpoint is not trusted: {why}")
}

fn of_checkpoint(evidence: &Evidence) -> Option<Finding> {
    match (&evidence.checkpoint, &evidence.newer_checkpoint) {
        (Some(Err(why)), _) => Some(FindingKind::Fault.says(untrusted_checkpoint(why))),
        (Some(Ok(_)), Some(Head { chain_id, length, .. })) => {
            Some(FindingKind::Notice.says(format!(
                "{CHECKPOINT_FILE} is older than the newest checkpoint, which is receipt {length} \
                 of chain {chain_id}"
            )))
        }
        (None, _) if evidence.has_checkpoints => Some(FindingKind::Notice.says(FILE_MISSING)),
        (Some(Ok(_)) | None, _) => None,
    }
}

/// Returns what is wrong with the decisions and their copy.
pub(crate) fn of_decisions(evidence: &Evidence) -> Vec<Finding> {
    let fault = evidence.decided.iter().filter_map(Decided::fault);
    let fault = fault.map(|words| FindingKind::Fault.says(words));
    fault.chain(of_copy(evidence)).collect()
}

fn of_copy(evidence: &Evidence) -> Option<Finding> {
    let decided = evidence.decided.as_ref().map(|decided| decided.number);
    let (kind, words) = match &evidence.decisions {
        DecisionsFile::Missing if decided > Some(0) => {
            let words = "the copy of the operators' decisions is missing; the next start writes it \
                         anew";
            (FindingKind::Note, words.to_owned())
        }
        DecisionsFile::Invalid(why) => {
            let words = format!("the copy of the operators' decisions is not trusted: {why}");
            (FindingKind::Fault, words)
        }
        DecisionsFile::Valid(kept, _) if decided.is_some_and(|number| kept.number > number) => {
            let words = "the database has older decisions than their copy; the next start restores \
                         them";
            (FindingKind::Fault, words.to_owned())
        }
        DecisionsFile::Missing | DecisionsFile::Valid(..) => return None,
    };
    Some(kind.says(words))
}

/// Returns the signs that the tables are older than other files.
fn of_tables(evidence: &Evidence) -> Vec<Finding> {
    let mut words: Vec<String> = of_key(evidence).into_iter().collect();
    let unknown = evidence.journals.iter().filter(|journal| journal.is_unknown());
    words.extend(unknown.filter_map(|journal| {
        let (id, missing) = (&journal.chain_id, journal.missing()?);
        Some(format!("the journal of chain {id} is not in it: {missing}"))
    }));
    words.extend(evidence.journals.iter().filter_map(|journal| {
        let (id, filed) = (&journal.chain_id, journal.filed?);
        let beyond = journal.header.as_ref().map(|header| header.filed).filter(|it| *it > filed)?;
        Some(format!("chain {id} is filed up to entry {filed}, but {beyond} were filed before"))
    }));
    words.extend(evidence.heads.iter().filter_map(|head| lacking(head, "at the last checkpoint")));
    let checkpoint = evidence.checkpoint.iter().flatten();
    words.extend(
        checkpoint
            .filter_map(|it| lacking_decisions(evidence, it.decisions, "at the last checkpoint")),
    );
    words.into_iter().map(|words| FindingKind::DatabaseOlder.says(words)).collect()
}

fn of_key(evidence: &Evidence) -> Option<String> {
    let (used, last) = (&evidence.used_keys, evidence.used_keys.last()?);
    match &evidence.key {
        Some(named) if named != last && used.contains(named) => {
            Some(format!("it names the key {named}, which was replaced by {last}"))
        }
        Some(_) => None,
        None => Some(format!("it names no signing key, but {last} has signed")),
    }
}

/// Returns what the ledger lacks of a head that a chain had then.
fn lacking(state: &HeadState, when: &str) -> Option<String> {
    let Head { chain_id, length, hash } = &state.head;
    match (&state.found, state.reached) {
        (Some(found), _) if *found == hash.to_string() => None,
        (Some(_), _) => {
            Some(format!("receipt {length} of chain {chain_id} was another one {when}"))
        }
        (None, Some(reached)) if reached + state.damaged < *length => {
            Some(format!("chain {chain_id} has {reached} receipts, but {length} {when}"))
        }
        (None, _) => None,
    }
}

/// Returns how many decisions the home lacks of those that there were then.
fn lacking_decisions(evidence: &Evidence, named: u64, when: &str) -> Option<String> {
    let (named, known) = evidence.lost_decisions(named)?;
    Some(format!("operators had made {named} decisions {when}, and the home has {known} of them"))
}

fn of_missing_keys(evidence: &Evidence) -> Vec<Finding> {
    let known: Vec<String> =
        evidence.keys.iter().map(|key| key.fingerprint().to_string()).collect();
    let unknown = evidence.signers.iter().filter(|key| !known.contains(key));
    let public =
        unknown.map(|key| format!("the public key {key}, which signed chains, is missing"));
    let secret = evidence.key.iter().filter(|_| !evidence.has_secret);
    let secret = secret.map(|key| FindingKind::Fault.says(keys::secret_missing(key)));
    public.map(|words| FindingKind::Alarm.says(words)).chain(secret).collect()
}

/// Returns what the ledger lacks of what its anchor names, and what cannot be compared.
pub(crate) fn of_anchor(evidence: &Evidence) -> Vec<Finding> {
    if let Some(AnchorConfig::Command(_)) = evidence.anchor {
        let words = "the anchor is a command, so that what it keeps cannot be compared here: pass \
                     its newest checkpoint to 'countersign receipt verify --head'";
        return vec![FindingKind::Note.says(words)];
    }
    let Some(state) = &evidence.anchored else { return Vec::new() };
    let (shown, mut lost) = (&state.shown, Vec::new());
    let when = format!("at a checkpoint in {shown}");
    if state.foreign > 0 {
        lost.push(format!(
            "{shown} has checkpoints that no key of this home signed: they are of later keys, or of \
             another home"
        ));
    }
    lost.extend(state.heads.iter().filter_map(|head| lacking(head, &when)));
    lost.extend(lacking_decisions(evidence, state.decisions, &when));
    let notices = uncompared(state, evidence.has_checkpoints).into_iter();
    let lost = lost.into_iter().map(|words| FindingKind::HomeOlder.says(words));
    notices.map(|words| FindingKind::Notice.says(words)).chain(lost).collect()
}

/// Returns what cannot be compared with an anchor, and what the anchor could not show.
fn uncompared(state: &AnchoredState, has_checkpoints: bool) -> Vec<String> {
    let (shown, mut words) = (&state.shown, Vec::new());
    if state.is_within {
        words.push(format!(
            "{shown} lies in the home, so that an earlier copy of the home has an earlier anchor \
             too: keep it elsewhere"
        ));
    }
    match &state.error {
        Some(error) if has_checkpoints => words.push(format!(
            "{shown} cannot be read ({error}), so that it would not show if this home had been \
             replaced by an earlier copy"
        )),
        None if has_checkpoints && state.checkpoints == 0 && !state.was_accepted => {
            words.push(format!(
                "{shown} has no checkpoint of this home, so that it would not show if the home had \
                 been replaced by an earlier copy"
            ));
        }
        Some(_) | None => {}
    }
    if state.unreadable > 0 {
        let count = state.unreadable;
        words.push(format!("{shown} has {count} lines near its end that are no checkpoints"));
    }
    words
}
