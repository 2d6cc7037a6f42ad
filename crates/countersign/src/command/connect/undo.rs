//! Takes back what was written: for each unit of changes everything or nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::change::{ChangedTexts, Journal, MadeChange};
use super::settings_file::{Access, SettingsFile};
use super::{ConnectedClient, gate_config, token};
use crate::cli::{ClientProgram, Connect};
use crate::exit::Failure;
use crate::home::Home;
use crate::output;
use crate::site::Site;
use clients::ENTRY;
use clients::Preview;

/// A change that is to be taken back.
struct Reverting<'a> {
    change: &'a MadeChange,
    texts: ChangedTexts,
    file: SettingsFile,
    /// The file as it is now.
    now: Option<String>,
    /// The reason that the change cannot be taken back.
    fault: Option<String>,
}

/// Takes back the units of the named client, or all of them, newest first.
pub(super) async fn run(
    site: &Site,
    home: &Home,
    args: &Connect,
) -> Result<Vec<ConnectedClient>, Failure> {
    let mut journal = Journal::open(home.path())?;
    let wanted = args.client.map(ClientProgram::name);
    let mut done: BTreeMap<String, ConnectedClient> = BTreeMap::new();
    let mut refused: Vec<PathBuf> = Vec::new();
    let mut units: Vec<u64> = journal.changes().iter().map(|change| change.unit).collect();
    units.dedup();
    for unit in units.into_iter().rev() {
        let changes: Vec<MadeChange> =
            journal.changes().iter().filter(|change| change.unit == unit).cloned().collect();
        let is_wanted = |change: &MadeChange| wanted.as_ref().is_none_or(|it| *it == change.client);
        // An older text of a file does not go past a newer one that stays.
        let is_blocked = |change: &MadeChange| refused.contains(&change.file);
        if !changes.iter().any(is_wanted) || changes.iter().any(is_blocked) {
            continue;
        }
        let reverting = changes.iter().rev().map(Reverting::of).collect::<Result<Vec<_>, _>>()?;
        let status = if reverting.iter().any(|it| it.fault.is_some()) {
            refused.extend(changes.iter().map(|change| change.file.clone()));
            "refused"
        } else if args.dry_run {
            "would undo"
        } else {
            revert(&reverting)?;
            journal.forget(unit)?;
            for change in &changes {
                gate_config::forget(home, &change.kept.secrets)?;
                if let Some(token) = &change.kept.token {
                    revoke(site, token).await;
                }
            }
            "undone"
        };
        let reason = reverting.iter().find_map(Reverting::refusal);
        for it in &reverting {
            it.tell(&mut done, status, reason.as_deref());
        }
    }
    if done.is_empty() {
        return Err(Failure::input("NOT_FOUND: there is nothing to undo"));
    }
    Ok(done.into_values().collect())
}

impl Reverting<'_> {
    fn of(change: &MadeChange) -> Result<Reverting<'_>, Failure> {
        let texts = change.texts()?;
        let file = SettingsFile::at(&change.file, None)?;
        let now = file.read()?.map(|(text, _)| text);
        let reverted = change.reverted(&texts, now.as_deref(), loose(change));
        let is_elsewhere = file.path() != change.target;
        let fault = reverted.err().or(is_elsewhere.then(|| "it is another file now".to_owned()));
        Ok(Reverting { change, texts, file, now, fault })
    }

    /// Puts the text without the change in place of what the file has by then.
    fn revert(&self) -> Result<(), Failure> {
        let access = self.change.mode.map_or(Access::Kept, Access::Mode);
        self.file.replace(access, &mut |now| {
            let reverted = self.change.reverted(&self.texts, now, loose(self.change));
            reverted.map_err(|fault| {
                Failure::call(format!("EDITED: '{}': {fault}", self.change.file.display()))
            })
        })
    }

    /// Puts the text back that the file had before this undo, if it has not changed since.
    fn restore(&self) {
        let reverted =
            self.change.reverted(&self.texts, self.now.as_deref(), loose(self.change)).ok();
        let restored = self.file.replace(Access::Kept, &mut |now| {
            let is_ours = reverted.as_ref().is_some_and(|text| text.as_deref() == now);
            Ok(if is_ours { self.now.clone() } else { now.map(str::to_owned) })
        });
        if let Err(failure) = restored {
            output::note(failure.message());
        }
    }

    fn refusal(&self) -> Option<String> {
        let fault = self.fault.as_ref()?;
        let backup = match &self.change.before {
            Some(copy) => format!("as it was, it is in '{}'", copy.display()),
            None => "it did not exist before".to_owned(),
        };
        Some(format!("'{}': {fault}; {backup}", self.change.file.display()))
    }

    fn tell(
        &self,
        done: &mut BTreeMap<String, ConnectedClient>,
        status: &'static str,
        reason: Option<&str>,
    ) {
        let client = &self.change.client;
        let entry = done
            .entry(client.clone())
            .or_insert_with(|| ConnectedClient::new(client.clone(), status));
        entry.files.push(self.change.file.clone());
        if status == "refused" {
            entry.status = status;
            entry.reason = reason.map(str::to_owned);
        }
        if self.fault.is_some() {
            let now = self.now.as_deref().unwrap_or_default();
            let texts = [now, &self.texts.after, self.texts.before.as_deref().unwrap_or_default()];
            let preview = Preview::new(&texts, self.change.syntax, &self.change.section);
            let title = format!("--- {}", self.change.file.display());
            entry.difference.extend(preview.lines(title, &self.texts.after, now));
        }
    }
}

/// Takes back all changes of a unit. If one cannot be taken back after all, the others are made
/// again.
fn revert(changes: &[Reverting<'_>]) -> Result<(), Failure> {
    for (index, change) in changes.iter().enumerate() {
        if let Err(failure) = change.revert() {
            changes[..index].iter().rev().for_each(Reverting::restore);
            let backup =
                change.change.before.as_ref().map(|copy| {
                    format!("; as it was before 'connect', it is in '{}'", copy.display())
                });
            let message = failure.message();
            return Err(Failure::call(format!("{message}{}", backup.unwrap_or_default())));
        }
    }
    Ok(())
}

/// Takes back what has been written of a unit that could not be written to its end.
pub(super) fn take_back(home: &Home, journal: &mut Journal, unit: u64) {
    let changes: Vec<MadeChange> =
        journal.changes().iter().filter(|change| change.unit == unit).cloned().collect();
    let taken_back = changes
        .iter()
        .rev()
        .map(Reverting::of)
        .collect::<Result<Vec<_>, _>>()
        .and_then(|reverting| revert(&reverting))
        .and_then(|()| journal.forget(unit))
        .and_then(|()| {
            changes.iter().try_for_each(|change| gate_config::forget(home, &change.kept.secrets))
        });
    if let Err(failure) = taken_back {
        output::note(failure.message());
    }
}

/// Revokes a token that no client uses any more.
pub(super) async fn revoke(site: &Site, name: &str) {
    if let Err(failure) = token::revoke(site, name).await {
        output::note(&format!(
            "the token '{name}' is still valid: run 'countersign token revoke {name}' ({})",
            failure.message()
        ));
    }
}

/// Returns the entry that is taken back even if it was edited: our own, in a file that the client
/// itself rewrites all the time.
fn loose(change: &MadeChange) -> Option<&'static str> {
    use clap::ValueEnum;
    let client = ClientProgram::from_str(&change.client, false).ok()?;
    client.rewrites_its_file().then_some(ENTRY)
}
