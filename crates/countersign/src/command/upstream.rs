//! `countersign upstream list|get|add|remove|enable|disable|review|approve|quarantine|login|logout|
//! restart|logs`.

mod login;
mod signpost;

use std::collections::BTreeMap;

use admin::view::{
    GateStatus, ItemChoice, NewServer, ReviewItem, ServerApproval, ServerEntry, ServerList,
    ServerLog, ServerReviewEntry,
};
use domain::config::{ConfigTemplate, VISIBLE_SECRET, is_secret_in_args};
use gateway::plan::Reach;
use serde_json::Value;

use super::review;
use crate::cli::{Add, Format, Upstream};
use crate::control::{Control, encode, get};
use crate::exit::Failure;
use crate::output::{self, fields, plain, table};
use crate::site::Site;

const PATH: &str = "/api/v1/servers";

/// The number of lines of a server's stderr that the gate keeps.
const LINES_KEPT: u32 = mcp::limits::STDERR_LINES_MAX as u32;

pub(crate) async fn run(site: &Site, verb: Upstream) -> Result<(), Failure> {
    match verb {
        Upstream::List { output } => list_all(site, output).await,
        Upstream::Get { name, output } => {
            let path = format!("{PATH}/{}", encode(&name));
            let answer = get(site, Reach::Only(name), &path).await?;
            output::answer(output, &answer, show).map(|_| ())
        }
        Upstream::Add(args) => add(site, args).await,
        Upstream::Remove { name } => remove(site, name).await,
        Upstream::Enable { name } => switch(site, name, "enable").await,
        Upstream::Disable { name } => switch(site, name, "disable").await,
        Upstream::Quarantine { name } => switch(site, name, "quarantine").await,
        Upstream::Review { name, output } => review(site, name, output).await,
        Upstream::Approve { name, inspect: true, output, .. } => inspect(site, name, output).await,
        Upstream::Approve { name, inspect: false, yes, output } => {
            approve(site, name, yes, output).await
        }
        Upstream::Login(args) => login::login(site, args).await,
        Upstream::Logout { name, token } => login::logout(site, name, token).await,
        Upstream::Restart { name } => restart(site, name).await,
        Upstream::Logs { name, lines, output } => {
            // A larger number gets all lines that are kept.
            let lines = lines.min(LINES_KEPT);
            let path = format!("{PATH}/{}/logs?limit={lines}", encode(&name));
            let answer = get(site, Reach::Only(name), &path).await?;
            output::answer(output, &answer, logs).map(|_| ())
        }
    }
}

/// Lists the servers, after the notices of the ledger: lost decisions explain why servers wait.
async fn list_all(site: &Site, format: Format) -> Result<(), Failure> {
    let asking = async |control: &Control| {
        Ok((control.get("/api/v1/status").await?, control.get(PATH).await?))
    };
    let (status, answer) = Control::with(site, Reach::All, asking).await?;
    let status: GateStatus = output::read(&status)?;
    status.ledger.notices.iter().for_each(|notice| output::note(notice));
    output::answer(format, &answer, list).map(|_| ())
}

async fn add(site: &Site, args: Add) -> Result<(), Failure> {
    let name = args.name.clone();
    let words = args.command.iter().filter_map(|word| ConfigTemplate::parse(word).ok());
    if is_secret_in_args(&words.collect::<Vec<_>>()) {
        output::note(&format!("server '{name}': {VISIBLE_SECRET}"));
    }
    let body = entry(args);
    let add = async |control: &Control| control.send_json(PATH, &body).await;
    Control::with(site, Reach::Only(name.clone()), add).await?;
    output::note(&format!(
        "not started yet; run 'countersign upstream approve {name} --inspect' to see what it lists"
    ));
    output::line(&format!("added server '{name}', quarantined"))
}

fn entry(args: Add) -> NewServer {
    let mut command = args.command.into_iter();
    let new = NewServer { name: args.name, ..NewServer::default() };
    match args.url {
        Some(_) => NewServer { url: args.url, headers: Some(map(args.header)), ..new },
        None => NewServer {
            command: command.next(),
            args: Some(command.collect()),
            env: Some(map(args.env)),
            pin: args.pin.then_some(true),
            ..new
        },
    }
}

fn map(pairs: Vec<(String, String)>) -> BTreeMap<String, String> {
    pairs.into_iter().collect()
}

async fn remove(site: &Site, name: String) -> Result<(), Failure> {
    let path = format!("{PATH}/{}", encode(&name));
    let remove = async |control: &Control| control.delete(&path).await;
    Control::with(site, Reach::Only(name.clone()), remove).await?;
    output::line(&format!("removed server '{name}'"))
}

async fn switch(site: &Site, name: String, verb: &str) -> Result<(), Failure> {
    let path = format!("{PATH}/{}/{verb}", encode(&name));
    let switch = async |control: &Control| control.post(&path).await;
    let server = Control::with(site, Reach::Only(name.clone()), switch).await?;
    let server: ServerEntry = output::read(&server)?;
    output::line(&format!("{verb}d server '{name}': {}", server.state))
}

async fn approve(site: &Site, name: String, yes: bool, output: Format) -> Result<(), Failure> {
    let approve = async |control: &Control| {
        let review = review::read(control, &name).await?;
        if review.quarantined && !yes {
            // The only text on stdout of a program's reader is the answer.
            match output {
                Format::Table => output::line(&review::whole(&review))?,
                Format::Json | Format::Yaml => output::note(&review::whole(&review)),
            }
            review::confirm(&format!("server '{name}'")).await?;
        }
        let items = review.items.iter().map(ItemChoice::from).collect();
        approve_as_read(control, &review, items).await
    };
    let answer = Control::with(site, Reach::Only(name.clone()), approve).await?;
    let told = |server: &ServerEntry| {
        let approved = server.approved.as_deref().unwrap_or_default();
        format!("approved server '{name}'\n{}", review::approved(&name, approved))
    };
    output::answer(output, &answer, told).map(|_| ())
}

async fn approve_as_read(
    control: &Control,
    review: &ServerReviewEntry,
    items: Vec<ItemChoice>,
) -> Result<Value, Failure> {
    let path = format!("{PATH}/{}/approve", encode(&review.name));
    let fingerprint = Some(review.fingerprint.clone());
    let body = ServerApproval { fingerprint, items: Some(items), inspect: None };
    review::send(control, &path, &body).await
}

/// Walks through the pending items of a server, and at last the server itself.
async fn review(site: &Site, name: String, output: Format) -> Result<(), Failure> {
    if output != Format::Table {
        let path = format!("{PATH}/{}/review", encode(&name));
        let answer = get(site, Reach::Only(name), &path).await?;
        return output::print(output, &answer, |_| String::new());
    }
    let walk = async |control: &Control| {
        let review = review::read(control, &name).await?;
        if review.items.is_empty() && !review.quarantined {
            return output::line(&format!("nothing of server '{name}' waits for approval"));
        }
        if review.quarantined {
            output::line(&review::server(&review))?;
        }
        for items in review::groups(&review.items) {
            output::line(&review::group(&name, &items))?;
            match choose("approve, skip or quit?").await? {
                Answer::Approve => {
                    let items = items.into_iter().map(ItemChoice::from).collect();
                    review::approve_items(control, &name, items).await?;
                }
                Answer::Skip => {}
                Answer::Quit => return Ok(()),
            }
        }
        if !review.quarantined || choose("approve the server itself?").await? != Answer::Approve {
            return Ok(());
        }
        approve_as_read(control, &review, Vec::new()).await?;
        output::line(&format!("approved server '{name}'"))
    };
    Control::with(site, Reach::Only(name.clone()), walk).await
}

/// The answer of a reviewer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Approve,
    Skip,
    Quit,
}

/// Asks until the answer is one of the three; the end of stdin means to quit.
async fn choose(question: &str) -> Result<Answer, Failure> {
    loop {
        let answer = output::ask(&format!("{question} [a/s/q]")).await?;
        match answer.as_deref() {
            Some("a") => return Ok(Answer::Approve),
            Some("s") => return Ok(Answer::Skip),
            Some("q") | None => return Ok(Answer::Quit),
            Some(_) => {}
        }
    }
}

async fn inspect(site: &Site, name: String, output: Format) -> Result<(), Failure> {
    let path = format!("{PATH}/{}/approve", encode(&name));
    let body = ServerApproval { inspect: Some(true), ..ServerApproval::default() };
    let inspect = async |control: &Control| control.send_json(&path, &body).await;
    let answer = Control::with(site, Reach::Only(name), inspect).await?;
    output::answer(output, &answer, inspected)?;
    match output::read::<ServerEntry>(&answer)?.error {
        Some(reason) => {
            Err(Failure::call(format!("cannot list what the server offers: {}", plain(&reason))))
        }
        None => Ok(()),
    }
}

async fn restart(site: &Site, name: String) -> Result<(), Failure> {
    let path = format!("{PATH}/{}/restart", encode(&name));
    let restart = async |control: &Control| {
        if control.is_running() {
            control.post(&path).await
        } else {
            Err(Failure::input("no 'serve' is running in this home: there is nothing to restart"))
        }
    };
    Control::with(site, Reach::Only(name.clone()), restart).await?;
    output::line(&format!("restarting '{name}'"))
}

fn list(answer: &ServerList) -> String {
    if answer.servers.is_empty() {
        return "no servers: add one with 'countersign upstream add' or in the config".to_owned();
    }
    let row = |server: &ServerEntry| {
        vec![
            server.name.clone(),
            server.state.clone(),
            server.transport.clone(),
            counts(server),
            server.warned.map_or("-".to_owned(), |warned| warned.to_string()),
            server.error.clone().unwrap_or_else(|| logins(server)),
        ]
    };
    let rows: Vec<Vec<String>> = answer.servers.iter().map(row).collect();
    table(&["server", "state", "transport", "tools", "warnings", "error"], &rows)
}

fn show(server: &ServerEntry) -> String {
    let mut lines = vec![
        ("server", server.name.clone()),
        ("state", server.state.clone()),
        ("origin", server.origin.clone().unwrap_or_default()),
        ("transport", server.transport.clone()),
    ];
    for (name, words) in [
        ("command", command(server)),
        ("env", joined(server.env.as_deref())),
        ("url", server.url.clone().unwrap_or_default()),
        ("headers", joined(server.headers.as_deref())),
        ("sign-ins", logins(server)),
    ] {
        if !words.is_empty() {
            lines.push((name, words));
        }
    }
    lines.extend([("tools", counts(server)), ("pending", waiting(server))]);
    if let Some(warned) = server.warned.filter(|warned| *warned > 0) {
        let see = format!("'countersign upstream approve {} --inspect'", server.name);
        lines.push(("warnings", format!("about {warned} of its items; see {see}")));
    }
    if let Some(error) = &server.error {
        lines.push(("error", error.clone()));
    }
    let warnings = server.warnings.iter().map(|warning| (&*warning.kind, &*warning.text));
    format!("{}{}", review::warnings(warnings), fields(&lines))
}

/// Names the agent tokens that have signed in and those that have not, where each has its own.
fn logins(server: &ServerEntry) -> String {
    let Some(logins) = &server.logins else { return String::new() };
    let named = |is_signed_in: bool| {
        let fits = logins.iter().filter(|login| login.signed_in == is_signed_in);
        fits.map(|login| login.token.as_str()).collect::<Vec<_>>().join(", ")
    };
    let parts = [("signed in", named(true)), ("not signed in", named(false))];
    let parts = parts.iter().filter(|(_, names)| !names.is_empty());
    parts.map(|(words, names)| format!("{words}: {names}")).collect::<Vec<_>>().join("; ")
}

fn command(server: &ServerEntry) -> String {
    let program = server.command.as_deref().unwrap_or_default();
    format!("{program} {}", joined(server.args.as_deref())).trim().to_owned()
}

fn joined(words: Option<&[String]>) -> String {
    words.unwrap_or_default().join(" ")
}

fn waiting(server: &ServerEntry) -> String {
    let count = server.pending.map_or("null".to_owned(), |count| count.to_string());
    match server.instructions_pending {
        Some(true) => format!("{count} (including the instructions)"),
        _ => count,
    }
}

/// Formats each item of the server, as a person should see it before approval.
fn inspected(server: &ServerEntry) -> String {
    let item = |item: &ReviewItem| {
        let waits = item.change.as_deref().unwrap_or("approved");
        let head = match item.kind.as_str() {
            "instructions" => format!("instructions ({waits})"),
            kind => format!("{kind} {} ({waits})", item.name),
        };
        let text: Vec<String> =
            item.visible.lines().map(|line| format!("  {}", plain(line))).collect();
        let warnings = review::text_warnings(&item.warnings);
        format!("{}\n{warnings}{}", plain(&head), text.join("\n"))
    };
    let items: Vec<String> = server.items.iter().flatten().map(item).collect();
    format!("{}\n\n{}", show(server), items.join("\n\n"))
}

fn logs(answer: &ServerLog) -> String {
    answer.lines.iter().map(|line| plain(line)).collect::<Vec<_>>().join("\n")
}

/// Formats `12`, or `12 (9 callable, 3 disabled_by_config)` if some are locked.
fn counts(server: &ServerEntry) -> String {
    let total = server.tool_count;
    match &server.tools {
        Some(counts) => {
            let parts: Vec<String> =
                counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
            format!("{total} ({})", parts.join(", "))
        }
        None => total.to_string(),
    }
}
