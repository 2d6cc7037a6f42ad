//! `countersign connect`: writes the gate into the settings of other programs, and takes it out again.

mod change;
mod client;
mod edit;
mod gate_config;
mod import;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use domain::ledger::redaction::Redactor;
use domain::trust::{DifferenceLine, LineChange};
use serde::Serialize;

use self::change::{FileChange, Journal, text_of};
pub(crate) use self::client::{Client, Scope};
use self::client::{ENTRY, Roots, Route};
use self::edit::EditFault;
use self::gate_config::GateConfig;
use crate::cli::{Connect, Format, Locations};
use crate::exit::Failure;
use crate::home::Home;
use crate::{folders, output};

/// The changes for one client.
struct ClientPlan {
    client: Client,
    changes: Vec<FileChange>,
    /// A change that is made only if the user agrees to it besides.
    offer: Option<FileChange>,
}

/// The outcome for one client, as `-o json` prints it.
#[derive(Serialize)]
struct ConnectedClient {
    client: String,
    status: &'static str,
    files: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    difference: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(crate) async fn run(place: &Locations, args: Connect) -> Result<(), Failure> {
    let home = Home::of(place)?;
    home.prepare()?;
    let done =
        if args.undo { undo(&home, &args).await? } else { connect(place, &home, &args).await? };
    report(args.output, &done)
}

async fn connect(
    place: &Locations,
    home: &Home,
    args: &Connect,
) -> Result<Vec<ConnectedClient>, Failure> {
    let roots = roots()?;
    let clients = chosen(args.client, &roots)?;
    let route = route(place, home, args.http)?;
    let mut journal = Journal::open(home.path())?;
    let (mut done, mut plans) = (Vec::new(), Vec::new());
    let mut config = if args.import { Some(GateConfig::read(home)?) } else { None };
    if let (Some(config), Some(file)) = (&mut config, &args.from) {
        config.import_file(file)?;
    }
    for client in clients {
        match plan(client, args, &roots, &route) {
            Err(fault) if args.client.is_none() => done.push(skipped(client, fault.message())),
            Err(fault) => return Err(fault),
            Ok(mut plan) => {
                if let Some(config) = &mut config {
                    config.import(&mut plan, args.replace)?;
                }
                plans.push(plan);
            }
        }
    }
    // The gate must have the servers before a client gives them up.
    if let Some(config) = config {
        done.push(config.settle(&mut journal, home, args).await?);
    }
    for plan in plans {
        done.push(settle(&mut journal, plan, args).await?);
    }
    Ok(done)
}

/// Returns the named client, or every one that is found.
fn chosen(named: Option<Client>, roots: &Roots) -> Result<Vec<Client>, Failure> {
    use clap::ValueEnum;
    if let Some(client) = named {
        return Ok(vec![client]);
    }
    let is_found =
        |client: &Client| client.is_found(roots, |program| folders::program(program).is_some());
    let found: Vec<Client> = Client::value_variants().iter().copied().filter(is_found).collect();
    if found.is_empty() {
        return Err(Failure::input(
            "NOT_FOUND: no client that can be connected was found here; name one, such as \
             'countersign connect claude', to write its settings all the same",
        ));
    }
    Ok(found)
}

fn roots() -> Result<Roots, Failure> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| Failure::system("no home directory: set HOME"))?;
    let config = folders::config().unwrap_or_else(|| home.join(".config"));
    let folder = std::env::current_dir()
        .map_err(|error| Failure::system(format!("cannot read the current folder: {error}")))?;
    Ok(Roots { home, config, folder, is_mac: cfg!(target_os = "macos") })
}

/// Returns how clients reach the gate of this home.
fn route(place: &Locations, home: &Home, is_http: bool) -> Result<Route, Failure> {
    if is_http {
        let listen = crate::source::load(place)?.config.listen;
        let token = home.agent_token()?.expose().to_owned();
        return Ok(Route::Http { url: format!("http://{listen}/mcp"), token });
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::system(format!("cannot find this program's file: {error}")))?;
    let (program, mut args) = client::launcher(&program);
    args.push("mcp".to_owned());
    for (flag, path) in [("--config", &place.config), ("--home", &place.home)] {
        if let Some(path) = path {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            args.extend([flag.to_owned(), path.to_string_lossy().into_owned()]);
        }
    }
    Ok(Route::Command { program, args })
}

fn plan(
    client: Client,
    args: &Connect,
    roots: &Roots,
    route: &Route,
) -> Result<ClientPlan, Failure> {
    let file = client.file(args.scope, roots).ok_or_else(|| {
        Failure::input(format!(
            "{} has no settings for one folder: leave out --scope",
            client.title()
        ))
    })?;
    let entry = client.entry(route).ok_or_else(|| {
        Failure::input(format!("{} can only start a command: leave out --http", client.title()))
    })?;
    let before = text_of(&file)?;
    let text = before.as_deref().unwrap_or_default();
    let after = edit::set(text, client.syntax(), client.container(), (ENTRY, &entry))
        .map_err(|fault| unreadable(&file, &fault))?;
    let mut changes = vec![FileChange { file, before, after }];
    let mut offer = None;
    if client == Client::Claude {
        if args.permissions {
            changes.push(permissions(args.scope, roots)?);
        } else if !args.yes && !args.dry_run {
            // Not worth refusing the client for.
            offer = permissions(args.scope, roots).ok().filter(|change| !change.is_empty());
        }
    }
    Ok(ClientPlan { client, changes, offer })
}

/// Returns the change that lets Claude Code call what only reads without asking.
fn permissions(scope: Scope, roots: &Roots) -> Result<FileChange, Failure> {
    let file = match scope {
        Scope::User => roots.home.join(".claude/settings.json"),
        Scope::Project => roots.folder.join(".claude/settings.json"),
    };
    let before = text_of(&file)?;
    let text = before.as_deref().unwrap_or_default();
    let after = edit::extend_lists(text, "permissions", &client::claude_permissions())
        .map_err(|fault| unreadable(&file, &fault))?;
    Ok(FileChange { file, before, after })
}

fn unreadable(file: &Path, EditFault(fault): &EditFault) -> Failure {
    Failure::input(format!(
        "'{}' is left alone, because it cannot be read: {fault}",
        file.display()
    ))
}

/// Shows the changes of a client, asks, and makes them.
async fn settle(
    journal: &mut Journal,
    plan: ClientPlan,
    args: &Connect,
) -> Result<ConnectedClient, Failure> {
    let title = plan.client.title();
    let name = plan.client.name();
    let changes: Vec<&FileChange> =
        plan.changes.iter().filter(|change| !change.is_empty()).collect();
    let files = plan.changes.iter().map(|change| change.file.clone()).collect();
    let mut done = ConnectedClient {
        client: name,
        status: "unchanged",
        files,
        difference: vec![],
        reason: None,
    };
    if changes.is_empty() {
        return Ok(done);
    }
    done.difference = changes.iter().flat_map(|change| shown(change)).collect();
    if args.output == Format::Table {
        output::line(&done.difference.join("\n"))?;
    }
    if args.dry_run {
        done.status = "would change";
        return Ok(done);
    }
    if !args.yes && !is_agreed(&format!("connect {title}?")).await? {
        done.status = "skipped";
        done.reason = Some("not wanted".to_owned());
        return Ok(done);
    }
    for change in changes {
        journal.make(&done.client, change, Vec::new())?;
    }
    done.status = "connected";
    if let Some(offer) = &plan.offer {
        settle_offer(journal, offer, &mut done, args.output).await?;
    }
    Ok(done)
}

async fn settle_offer(
    journal: &mut Journal,
    offer: &FileChange,
    done: &mut ConnectedClient,
    format: Format,
) -> Result<(), Failure> {
    let difference = shown(offer);
    if format == Format::Table {
        output::line(&difference.join("\n"))?;
    }
    let question = "let it call what only reads without asking, and ask for the rest?";
    // The client is connected whatever the answer.
    if is_agreed(question).await.unwrap_or(false) {
        journal.make(&done.client, offer, Vec::new())?;
        done.files.push(offer.file.clone());
        done.difference.extend(difference);
    }
    Ok(())
}

async fn is_agreed(question: &str) -> Result<bool, Failure> {
    match output::ask(&format!("{question} [y/N]")).await?.as_deref() {
        Some("y" | "Y" | "yes") => Ok(true),
        Some(_) => Ok(false),
        None => Err(Failure::input("nothing was changed: answer y, or pass --yes")),
    }
}

/// Formats a change as lines with signs, secrets hidden.
fn shown(change: &FileChange) -> Vec<String> {
    let redactor = Redactor::builtin();
    let sign = |line: &DifferenceLine| {
        let sign = match line.mark {
            LineChange::Added => '+',
            LineChange::Removed => '-',
            LineChange::Same | LineChange::Skipped(_) => ' ',
        };
        format!("{sign} {}", redactor.text(&line.text))
    };
    let title = format!("--- {}", change.file.display());
    std::iter::once(title).chain(change.difference().iter().map(sign)).collect()
}

fn skipped(client: Client, reason: &str) -> ConnectedClient {
    let name = client.name();
    let reason = Some(reason.to_owned());
    ConnectedClient { client: name, status: "skipped", files: vec![], difference: vec![], reason }
}

/// Returns the clients whose settings name the gate of this home.
pub(super) fn connected(home: &Path) -> Result<Vec<String>, Failure> {
    let journal = Journal::open(home)?;
    let ours = |client: &String| client != ENTRY;
    let clients = journal.changes().iter().map(|change| change.client.clone()).filter(ours);
    Ok(clients.collect::<BTreeSet<_>>().into_iter().collect())
}

/// Takes back what was written, newest first.
async fn undo(home: &Home, args: &Connect) -> Result<Vec<ConnectedClient>, Failure> {
    let mut journal = Journal::open(home.path())?;
    let wanted = args.client.map(Client::name);
    let is_wanted = |client: &str| wanted.as_deref().is_none_or(|wanted| wanted == client);
    let mut done: BTreeMap<String, ConnectedClient> = BTreeMap::new();
    let mut refused = Vec::new();
    for index in (0..journal.changes().len()).rev() {
        let change = journal.changes()[index].clone();
        if !is_wanted(&change.client) || refused.contains(&change.file) {
            continue;
        }
        let now = text_of(&change.file)?;
        let written = text_of(&change.after)?;
        let before = change.before.as_deref().map(text_of).transpose()?.flatten();
        let restored = match (&now, &written) {
            (Some(now), Some(written)) if now == written => Some(before),
            (Some(now), _) => merged(&change.client, now, before.as_deref()).map(Some),
            (None, _) => None,
        };
        let entry = done.entry(change.client.clone()).or_insert_with(|| ConnectedClient {
            client: change.client.clone(),
            status: "undone",
            files: vec![],
            difference: vec![],
            reason: None,
        });
        entry.files.push(change.file.clone());
        let Some(restored) = restored else {
            refused.push(change.file.clone());
            entry.status = "refused";
            entry.reason = Some("the file was edited since; this is what changed".to_owned());
            let edited = FileChange {
                file: change.file.clone(),
                before: written,
                after: now.unwrap_or_default(),
            };
            entry.difference.extend(shown(&edited));
            continue;
        };
        if args.dry_run {
            entry.status = "would undo";
            continue;
        }
        journal.restore(index, now.as_deref(), restored.as_deref())?;
        gate_config::forget(home, &change.secrets)?;
    }
    if done.is_empty() {
        return Err(Failure::input("NOT_FOUND: there is nothing to undo"));
    }
    Ok(done.into_values().collect())
}

/// Returns the text without our entry and with the servers it had before, for a client that
/// rewrites its file all the time.
fn merged(client: &str, now: &str, before: Option<&str>) -> Option<String> {
    use clap::ValueEnum;
    let client = Client::from_str(client, false).ok()?;
    let (syntax, container) = (client.syntax(), client.container());
    let mut text = edit::remove(now, syntax, container, ENTRY).ok()?;
    // Another file of the client does not have the entry.
    if !client.rewrites_its_file() || text == now {
        return None;
    }
    let there = edit::servers(&text, syntax, container).ok()?;
    for (name, server) in edit::servers(before.unwrap_or_default(), syntax, container).ok()? {
        if name != ENTRY && !there.contains_key(&name) {
            text = edit::set(&text, syntax, container, (&name, &server)).ok()?;
        }
    }
    Some(text)
}

fn report(format: Format, done: &[ConnectedClient]) -> Result<(), Failure> {
    let is_refused = done.iter().any(|client| client.status == "refused");
    let lines = |done: &&[ConnectedClient]| {
        let line = |client: &ConnectedClient| {
            let files: Vec<String> =
                client.files.iter().map(|file| file.display().to_string()).collect();
            let reason = client.reason.as_ref().map(|reason| format!(" ({reason})"));
            let line = format!(
                "{}: {}{} {}",
                client.client,
                client.status,
                reason.unwrap_or_default(),
                files.join(", ")
            );
            match client.status {
                "refused" => format!("{line}\n{}", client.difference.join("\n")),
                _ => line,
            }
        };
        done.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    output::print(format, &done, lines)?;
    if is_refused {
        return Err(Failure::call(
            "EDITED: files that were edited since are left alone: remove the entry 'countersign' by \
             hand",
        ));
    }
    Ok(())
}
