//! `countersign upstream list|get|add|remove|enable|disable|approve|quarantine|restart|logs`.

use gateway::plan::Reach;
use serde_json::{Map, Value, json};

use super::review;
use crate::cli::{Add, Format, Place, Upstream};
use crate::control::{Control, encode, get};
use crate::exit::Failure;
use crate::output::{self, entries, fields, plain, table, text};

const PATH: &str = "/api/v1/servers";

/// Lines of a server's stderr that the gate keeps.
const LINES_KEPT: u32 = mcp::limits::STDERR_LINES_MAX as u32;

pub(crate) async fn run(place: &Place, verb: Upstream) -> Result<(), Failure> {
    match verb {
        Upstream::List { output } => {
            output::print(output, &get(place, Reach::All, PATH).await?, list)
        }
        Upstream::Get { name, output } => {
            let path = format!("{PATH}/{}", encode(&name));
            output::print(output, &get(place, Reach::Only(name), &path).await?, show)
        }
        Upstream::Add(args) => add(place, args).await,
        Upstream::Remove { name } => remove(place, name).await,
        Upstream::Enable { name } => switch(place, name, "enable").await,
        Upstream::Disable { name } => switch(place, name, "disable").await,
        Upstream::Quarantine { name } => switch(place, name, "quarantine").await,
        Upstream::Approve { name, inspect: true, output } => inspect(place, name, output).await,
        Upstream::Approve { name, inspect: false, output } => approve(place, name, output).await,
        Upstream::Restart { name } => restart(place, name).await,
        Upstream::Logs { name, lines, output } => {
            // Whoever wants more gets all that is kept.
            let lines = lines.min(LINES_KEPT);
            let path = format!("{PATH}/{}/logs?limit={lines}", encode(&name));
            output::print(output, &get(place, Reach::Only(name), &path).await?, logs)
        }
    }
}

async fn add(place: &Place, args: Add) -> Result<(), Failure> {
    let name = args.name.clone();
    let body = entry(args);
    let add = async |control: &Control| control.send_json(PATH, &body).await;
    Control::with(place, Reach::Only(name.clone()), add).await?;
    output::note(&format!(
        "it is not started; see what it lists with 'countersign upstream approve {name} --inspect'"
    ));
    output::line(&format!("added server '{name}', quarantined"))
}

/// As an entry of `mcpServers`, with the name.
fn entry(args: Add) -> Value {
    let map = |pairs: Vec<(String, String)>| {
        let pairs = pairs.into_iter().map(|(name, value)| (name, Value::from(value)));
        Value::Object(pairs.collect::<Map<_, _>>())
    };
    let mut command = args.command.into_iter();
    match (args.url, command.next()) {
        (Some(url), _) => json!({"name": args.name, "url": url, "headers": map(args.header)}),
        (None, program) => {
            let rest: Vec<String> = command.collect();
            json!({"name": args.name, "command": program, "args": rest, "env": map(args.env)})
        }
    }
}

async fn remove(place: &Place, name: String) -> Result<(), Failure> {
    let path = format!("{PATH}/{}", encode(&name));
    let remove = async |control: &Control| control.delete(&path).await;
    Control::with(place, Reach::Only(name.clone()), remove).await?;
    output::line(&format!("removed server '{name}'"))
}

async fn switch(place: &Place, name: String, verb: &str) -> Result<(), Failure> {
    let path = format!("{PATH}/{}/{verb}", encode(&name));
    let switch = async |control: &Control| control.post(&path).await;
    let server = Control::with(place, Reach::Only(name.clone()), switch).await?;
    output::line(&format!("{verb}d server '{name}': {}", text(&server, "state")))
}

async fn approve(place: &Place, name: String, output: Format) -> Result<(), Failure> {
    let path = format!("{PATH}/{}/approve", encode(&name));
    let approve = async |control: &Control| control.post(&path).await;
    let answer = Control::with(place, Reach::Only(name.clone()), approve).await?;
    output::print(output, &answer, |answer| {
        format!("approved server '{name}'\n{}", review::approved(&name, answer))
    })
}

async fn inspect(place: &Place, name: String, output: Format) -> Result<(), Failure> {
    let path = format!("{PATH}/{}/approve", encode(&name));
    let body = json!({"inspect": true});
    let inspect = async |control: &Control| control.send_json(&path, &body).await;
    let answer = Control::with(place, Reach::Only(name), inspect).await?;
    output::print(output, &answer, inspected)?;
    match answer["error"].as_str() {
        Some(reason) => {
            Err(Failure::call(format!("the server could not be asked: {}", plain(reason))))
        }
        None => Ok(()),
    }
}

async fn restart(place: &Place, name: String) -> Result<(), Failure> {
    let path = format!("{PATH}/{}/restart", encode(&name));
    let restart = async |control: &Control| {
        if control.is_running() {
            control.post(&path).await
        } else {
            Err(Failure::input("no 'serve' runs in this home: nothing to restart"))
        }
    };
    Control::with(place, Reach::Only(name.clone()), restart).await?;
    output::line(&format!("restarting '{name}'"))
}

fn list(answer: &Value) -> String {
    let row = |server: &Value| {
        vec![
            text(server, "name"),
            text(server, "state"),
            text(server, "transport"),
            counts(server),
            text(server, "error"),
        ]
    };
    let rows: Vec<Vec<String>> = entries(answer, "servers").iter().map(row).collect();
    if rows.is_empty() {
        return "no servers; add one with 'countersign upstream add', or name it in the config"
            .to_owned();
    }
    table(&["server", "state", "transport", "tools", "error"], &rows)
}

fn show(server: &Value) -> String {
    let mut lines = vec![
        ("server", text(server, "name")),
        ("state", text(server, "state")),
        ("origin", text(server, "origin")),
        ("transport", text(server, "transport")),
    ];
    for (name, words) in [
        ("command", command(server)),
        ("env", joined(server, "env")),
        ("url", text(server, "url")),
        ("headers", joined(server, "headers")),
    ] {
        if !words.is_empty() {
            lines.push((name, words));
        }
    }
    lines.extend([("tools", counts(server)), ("pending", waiting(server))]);
    if server["error"].is_string() {
        lines.push(("error", text(server, "error")));
    }
    format!("{}{}", review::warnings(server), fields(&lines))
}

fn command(server: &Value) -> String {
    format!("{} {}", text(server, "command"), joined(server, "args")).trim().to_owned()
}

fn joined(server: &Value, name: &str) -> String {
    let words: Vec<&str> = entries(server, name).iter().filter_map(Value::as_str).collect();
    words.join(" ")
}

fn waiting(server: &Value) -> String {
    match server["instructions_pending"].as_bool() {
        Some(true) => format!("{} (with the instructions)", server["pending"]),
        _ => server["pending"].to_string(),
    }
}

/// Each thing that the server lists, as a person should see it before it is approved.
fn inspected(server: &Value) -> String {
    let item = |item: &Value| {
        let waits =
            if item["change"].is_string() { text(item, "change") } else { "approved".into() };
        let head = match text(item, "kind").as_str() {
            "instructions" => format!("instructions ({waits})"),
            kind => format!("{kind} {} ({waits})", text(item, "name")),
        };
        let text: Vec<String> =
            text(item, "visible").lines().map(|line| format!("  {}", plain(line))).collect();
        format!("{}\n{}{}", plain(&head), review::warnings(item), text.join("\n"))
    };
    let items: Vec<String> = entries(server, "items").iter().map(item).collect();
    format!("{}\n\n{}", show(server), items.join("\n\n"))
}

fn logs(answer: &Value) -> String {
    entries(answer, "lines")
        .iter()
        .filter_map(Value::as_str)
        .map(plain)
        .collect::<Vec<_>>()
        .join("\n")
}

/// `12`, or `12 (9 callable, 3 disabled_by_config)` where some are locked.
fn counts(server: &Value) -> String {
    let total = server["tool_count"].to_string();
    match server["tools"].as_object() {
        Some(counts) => {
            let parts: Vec<String> =
                counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
            format!("{total} ({})", parts.join(", "))
        }
        None => total,
    }
}
