//! `countersign connect`: writes the gate into the settings of other programs, and takes it out again.

mod change;
mod gate_config;
mod settings_file;
mod token;
mod undo;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mcp::task;
use serde::Serialize;

use self::change::{FileChange, Journal, JournalLock, KeptSecrets};
use self::gate_config::{GateConfig, Origin};
use self::settings_file::Access;
pub(super) use self::settings_file::move_to_free;
use crate::cli::{ClientProgram, Connect, Format, SettingsScope};
use crate::exit::Failure;
use crate::home::Home;
use crate::site::Site;
use crate::{folders, output};
use clients::edit::PERMISSIONS;
use clients::{ClientRoute, ENTRY, Roots, SettingsSyntax};

/// Placeholder for a token that is issued once the change is agreed to.
const NEW_TOKEN: &str = "a-new-token";

/// The changes for one client, which are made and taken back together.
struct ClientPlan {
    client: ClientProgram,
    route: ClientRoute,
    /// The client's file.
    settings: FileChange,
    permissions: Option<FileChange>,
    /// A change that is made only if the user agrees to it besides.
    offer: Option<FileChange>,
    /// The gate's config with the client's servers.
    config: Option<GateConfig>,
}

/// The outcome for one client, as `-o json` prints it.
#[derive(Serialize)]
struct ConnectedClient {
    client: String,
    status: &'static str,
    files: Vec<PathBuf>,
    /// The copies of the files as they were before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    backups: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    difference: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl ConnectedClient {
    fn new(client: String, status: &'static str) -> ConnectedClient {
        let (files, backups, difference) = (vec![], vec![], vec![]);
        ConnectedClient { client, status, files, backups, difference, reason: None }
    }
}

/// The request of a person, with the places that it concerns.
struct Order<'a> {
    site: &'a Site,
    home: &'a Home,
    args: &'a Connect,
    roots: Roots,
}

pub(crate) async fn run(site: &Site, args: Connect) -> Result<(), Failure> {
    let home = site.home()?;
    home.prepare()?;
    let folder = home.path().to_owned();
    let locked = task::spawn_blocking(move || JournalLock::take(&folder)).await;
    let _lock = locked.map_err(|error| Failure::system(format!("cannot wait: {error}")))??;
    let done = if args.undo {
        undo::run(site, home, &args).await?
    } else {
        let order = Order { site, home, args: &args, roots: roots()? };
        connect(&order).await?
    };
    report(args.output, &done)
}

async fn connect(order: &Order<'_>) -> Result<Vec<ConnectedClient>, Failure> {
    let args = order.args;
    let clients = chosen(args.client, &order.roots)?;
    let mut journal = Journal::open(order.home.path())?;
    let mut done = Vec::new();
    if let Some(file) = &args.from {
        done.push(import_file(order, &mut journal, file).await?);
    }
    for client in clients {
        match plan(order, &journal, client).await {
            Err(fault) if args.client.is_none() => done.push(skipped(client, fault.message())),
            Err(fault) => return Err(fault),
            Ok(plan) => done.extend(settle(order, &mut journal, plan).await?),
        }
    }
    Ok(done)
}

/// Adds the servers of a file to the gate's config.
async fn import_file(
    order: &Order<'_>,
    journal: &mut Journal,
    file: &Path,
) -> Result<ConnectedClient, Failure> {
    let args = order.args;
    let mut config = GateConfig::read(order.home)?;
    let origin = Origin { name: "imported", is_untrusted: true, allowed: &args.allow_reference };
    config.import_file(file, origin)?;
    let mut done = imported(&config);
    if config.change.is_empty() {
        return Ok(done);
    }
    show(&mut done, [&config.change], args.output)?;
    if args.dry_run {
        done.status = "would change";
    } else if args.yes || is_agreed("add these servers to the gate?").await? {
        let unit = journal.next_unit();
        add_servers(order.home, journal, unit, &config)?;
        done.status = "imported";
        done.backups = journal.backups(unit, ENTRY);
    } else {
        done.status = "skipped";
        done.reason = Some("not wanted".to_owned());
    }
    Ok(done)
}

fn imported(config: &GateConfig) -> ConnectedClient {
    let mut done = ConnectedClient::new(ENTRY.to_owned(), "unchanged");
    done.files.push(config.change.file.clone());
    done
}

/// Returns the named client, or every one that is found.
fn chosen(named: Option<ClientProgram>, roots: &Roots) -> Result<Vec<ClientProgram>, Failure> {
    use clap::ValueEnum;
    if let Some(client) = named {
        return Ok(vec![client]);
    }
    let is_found = |client: &ClientProgram| {
        client.is_found(roots, |program| folders::program(program).is_some())
    };
    let found: Vec<ClientProgram> =
        ClientProgram::value_variants().iter().copied().filter(is_found).collect();
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

/// Returns how a client reaches the gate of this home.
fn route(order: &Order<'_>, client: ClientProgram) -> Result<ClientRoute, Failure> {
    let place = order.site.place();
    if order.args.http {
        let listen = order.site.source()?.config.listen;
        let token = match order.args.scope {
            SettingsScope::User => NEW_TOKEN.to_owned(),
            SettingsScope::Project => client.variable(token::VARIABLE).ok_or_else(|| {
                Failure::input(format!(
                    "{} reads no environment variable there, so the token would be in a file of the \
                     folder: leave out --http or --scope",
                    client.title()
                ))
            })?,
        };
        return Ok(ClientRoute::Http { url: format!("http://{listen}/mcp"), token });
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::system(format!("cannot find this program's file: {error}")))?;
    let (program, mut args) = clients::launcher(&program);
    args.push("mcp".to_owned());
    for (flag, path) in [("--config", &place.config), ("--home", &place.home)] {
        if let Some(path) = path {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            args.extend([flag.to_owned(), path.to_string_lossy().into_owned()]);
        }
    }
    Ok(ClientRoute::Command { program, args })
}

async fn plan(
    order: &Order<'_>,
    journal: &Journal,
    client: ClientProgram,
) -> Result<ClientPlan, Failure> {
    let Order { home, args, roots, .. } = order;
    let file = client.file(args.scope, roots).ok_or_else(|| {
        Failure::input(format!(
            "{} has no settings for one folder: leave out --scope",
            client.title()
        ))
    })?;
    let mut route = route(order, client)?;
    let within = within(args.scope, roots);
    let mut settings = FileChange::of(file, within, client.syntax(), client.container())?;
    if let ClientRoute::Http { token, .. } = &mut route
        && token == NEW_TOKEN
    {
        settings.access = Access::Private;
        if let Some(present) = token::present(order.site, journal, &settings).await? {
            *token = present;
        }
    }
    let entry = client.entry(&route).ok_or_else(|| {
        Failure::input(format!("{} can only start a command: leave out --http", client.title()))
    })?;
    settings.set(ENTRY, Some(entry))?;
    let (mut wanted, mut offer) = (None, None);
    if client == ClientProgram::Claude {
        if args.permissions {
            wanted = Some(permissions(args.scope, roots)?);
        } else if !args.yes && !args.dry_run {
            // Not worth refusing the client for.
            offer = permissions(args.scope, roots).ok().filter(|change| !change.is_empty());
        }
    }
    let mut config = None;
    if args.import && args.from.is_none() {
        let mut gate = GateConfig::read(home)?;
        let name = client.name();
        let is_untrusted = args.scope == SettingsScope::Project;
        let origin = Origin { name: &name, is_untrusted, allowed: &args.allow_reference };
        gate.import(&mut settings, origin, args.replace)?;
        config = Some(gate);
    }
    Ok(ClientPlan { client, route, settings, permissions: wanted, offer, config })
}

/// Returns the folder whose files links must not lead out of: somebody else may have made it.
fn within(scope: SettingsScope, roots: &Roots) -> Option<&Path> {
    match scope {
        SettingsScope::User => None,
        SettingsScope::Project => Some(&roots.folder),
    }
}

/// Returns the change that lets Claude Code call what only reads without asking.
fn permissions(scope: SettingsScope, roots: &Roots) -> Result<FileChange, Failure> {
    let file = match scope {
        SettingsScope::User => roots.home.join(".claude/settings.json"),
        SettingsScope::Project => roots.folder.join(".claude/settings.json"),
    };
    let mut change = FileChange::of(file, within(scope, roots), SettingsSyntax::Json, PERMISSIONS)?;
    change.extend(clients::claude_permissions())?;
    Ok(change)
}

/// Shows the changes for a client, asks, and makes them.
async fn settle(
    order: &Order<'_>,
    journal: &mut Journal,
    mut plan: ClientPlan,
) -> Result<Vec<ConnectedClient>, Failure> {
    let (args, title) = (order.args, plan.client.title());
    let mut done = ConnectedClient::new(plan.client.name(), "unchanged");
    let own = [Some(&plan.settings), plan.permissions.as_ref()];
    done.files.extend(own.iter().flatten().map(|change| change.file.clone()));
    let mut added = plan.config.as_ref().map(imported);
    let changes = own.into_iter().flatten().filter(|change| !change.is_empty());
    let changes: Vec<&FileChange> = changes.collect();
    let config = plan.config.as_ref().filter(|config| !config.change.is_empty());
    let (is_importing, is_connecting) = (config.is_some(), !changes.is_empty());
    if let (Some(added), Some(config)) = (&mut added, config) {
        show(added, [&config.change], args.output)?;
    }
    show(&mut done, changes, args.output)?;
    let question = match is_importing {
        true => format!("add these servers to the gate, and connect {title}?"),
        false => format!("connect {title}?"),
    };
    let (of_config, of_client) = if !is_importing && !is_connecting {
        ("unchanged", "unchanged")
    } else if args.dry_run {
        ("would change", "would change")
    } else if args.yes || is_agreed(&question).await? {
        let unit = make(order, journal, &mut plan).await?;
        done.backups = journal.backups(unit, &done.client);
        if let Some(added) = &mut added {
            added.backups = journal.backups(unit, ENTRY);
        }
        ("imported", "connected")
    } else {
        done.reason = Some("not wanted".to_owned());
        ("skipped", "skipped")
    };
    if let Some(added) = added.as_mut().filter(|_| is_importing) {
        added.status = of_config;
    }
    if is_connecting {
        done.status = of_client;
    }
    if done.status == "connected" {
        note_variable(order, &plan);
        if let Some(offer) = &plan.offer {
            settle_offer(journal, offer, &mut done, args.output).await?;
        }
    }
    Ok(added.into_iter().chain([done]).collect())
}

/// Notes how the client gets the token that its file only names.
fn note_variable(order: &Order<'_>, plan: &ClientPlan) {
    if matches!(plan.route, ClientRoute::Http { .. }) && order.args.scope == SettingsScope::Project
    {
        let (title, name, variable) = (plan.client.title(), plan.client.name(), token::VARIABLE);
        output::note(&format!(
            "{title} reads its token from {variable}; before you start it: export \
             {variable}=\"$(countersign token create {name} --operations read,write,destructive)\""
        ));
    }
}

/// Makes the changes for a client as a unit, and returns its number. If one fails, those before it
/// are taken back.
async fn make(
    order: &Order<'_>,
    journal: &mut Journal,
    plan: &mut ClientPlan,
) -> Result<u64, Failure> {
    let unit = journal.next_unit();
    let mut kept = KeptSecrets::default();
    if let ClientRoute::Http { token, .. } = &mut plan.route
        && token == NEW_TOKEN
    {
        let issued = token::issue(order.site, plan.client).await?;
        *token = issued.secret;
        kept.token = Some(issued.name);
        plan.settings.set(ENTRY, plan.client.entry(&plan.route))?;
    }
    let token = kept.token.clone();
    let made = write(order.home, journal, unit, (plan, kept));
    if made.is_err() {
        undo::take_back(order.home, journal, unit);
        if let Some(token) = token {
            undo::revoke(order.site, &token).await;
        }
    }
    made.map(|()| unit)
}

fn write(
    home: &Home,
    journal: &mut Journal,
    unit: u64,
    (plan, kept): (&ClientPlan, KeptSecrets),
) -> Result<(), Failure> {
    // The gate must have the servers before a client gives them up.
    if let Some(config) = &plan.config {
        add_servers(home, journal, unit, config)?;
    }
    let name = plan.client.name();
    journal.make(unit, &name, &plan.settings, kept)?;
    match &plan.permissions {
        Some(change) => journal.make(unit, &name, change, KeptSecrets::default()),
        None => Ok(()),
    }
}

/// Stores the secrets of imported servers and writes the gate's config.
fn add_servers(
    home: &Home,
    journal: &mut Journal,
    unit: u64,
    config: &GateConfig,
) -> Result<(), Failure> {
    let secrets = config.keep_secrets()?;
    let kept = KeptSecrets { secrets: secrets.clone(), token: None };
    let made = journal.make(unit, ENTRY, &config.change, kept);
    if made.is_err() {
        gate_config::forget(home, &secrets)?;
    }
    made
}

async fn settle_offer(
    journal: &mut Journal,
    offer: &FileChange,
    done: &mut ConnectedClient,
    format: Format,
) -> Result<(), Failure> {
    let mut offered = ConnectedClient::new(done.client.clone(), "connected");
    show(&mut offered, [offer], format)?;
    let question = "let it call what only reads without asking, and ask for the rest?";
    // The client is connected whatever the answer.
    if is_agreed(question).await.unwrap_or(false) {
        journal.make(journal.next_unit(), &done.client, offer, KeptSecrets::default())?;
        done.files.push(offer.file.clone());
        done.difference.extend(offered.difference);
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

/// Shows changes, the secrets in them hidden.
fn show<'a>(
    done: &mut ConnectedClient,
    changes: impl IntoIterator<Item = &'a FileChange>,
    format: Format,
) -> Result<(), Failure> {
    for change in changes {
        done.difference.extend(change.shown());
    }
    match format {
        Format::Table if !done.difference.is_empty() => output::line(&done.difference.join("\n")),
        Format::Table | Format::Json | Format::Yaml => Ok(()),
    }
}

fn skipped(client: ClientProgram, reason: &str) -> ConnectedClient {
    let reason = Some(reason.to_owned());
    ConnectedClient { reason, ..ConnectedClient::new(client.name(), "skipped") }
}

/// Returns the clients whose settings name the gate of this home.
pub(super) fn connected(home: &Path) -> Result<Vec<String>, Failure> {
    let journal = Journal::open(home)?;
    let ours = |client: &String| client != ENTRY;
    let clients = journal.changes().iter().map(|change| change.client.clone()).filter(ours);
    Ok(clients.collect::<BTreeSet<_>>().into_iter().collect())
}

fn report(format: Format, done: &[ConnectedClient]) -> Result<(), Failure> {
    let is_refused = done.iter().any(|client| client.status == "refused");
    let lines = |done: &&[ConnectedClient]| {
        let line = |client: &ConnectedClient| {
            let files: Vec<String> =
                client.files.iter().map(|file| file.display().to_string()).collect();
            let reason = client.reason.as_ref().map(|reason| format!(" ({reason})"));
            let backups = client.backups.iter().map(|copy| format!("; before: {}", copy.display()));
            let line = format!(
                "{}: {}{} {}{}",
                client.client,
                client.status,
                reason.unwrap_or_default(),
                files.join(", "),
                backups.collect::<String>()
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
            "EDITED: an entry that 'connect' wrote or removed was changed since, so nothing of that \
             import was taken back: settle the entry by hand and undo again, or use the copy",
        ));
    }
    Ok(())
}
