//! `countersign token create|list|revoke`.

use gateway::plan::Reach;
use serde_json::{Value, json};

use crate::cli::{Create, Format, Place, SecretFormat, Token};
use crate::control::{Control, encode, get};
use crate::exit::Failure;
use crate::output::{self, entries, or_dash, table, text};

const PATH: &str = "/api/v1/tokens";

pub(crate) async fn run(place: &Place, verb: Token) -> Result<(), Failure> {
    match verb {
        Token::Create(args) => {
            let make = async |control: &Control| control.send_json(PATH, &body(&args)).await;
            let made = Control::with(place, Reach::Nothing, make).await?;
            show(args.output, &made)
        }
        Token::List { output } => {
            output::print(output, &get(place, Reach::Nothing, PATH).await?, list)
        }
        Token::Revoke { name } => {
            let path = format!("{PATH}/{}", encode(&name));
            let revoke = async |control: &Control| control.delete(&path).await;
            Control::with(place, Reach::Nothing, revoke).await?;
            output::line(&format!("revoked token '{name}'"))
        }
    }
}

fn body(args: &Create) -> Value {
    let mut body = json!({"name": args.name, "operations": args.operations});
    for (name, value) in [
        ("servers", json!(args.servers)),
        ("surfaces", json!(args.surfaces)),
        ("profile", json!(args.profile)),
        ("expires_in", json!(args.expires_in)),
        ("unannotated_tools", json!(args.unannotated_tools)),
    ] {
        if !value.is_null() {
            body[name] = value;
        }
    }
    body
}

/// The secret stands alone on stdout, so that a script can take it.
fn show(format: SecretFormat, made: &Value) -> Result<(), Failure> {
    match format {
        SecretFormat::Text => {
            output::note(&format!(
                "token '{}': {}; keep it now, it is shown this once",
                text(made, "name"),
                terms(made)
            ));
            output::line(&text(made, "token"))
        }
        SecretFormat::Json => output::print(Format::Json, made, |_| String::new()),
        SecretFormat::Yaml => output::print(Format::Yaml, made, |_| String::new()),
    }
}

fn terms(token: &Value) -> String {
    let until = match token["expires_at"].as_str() {
        Some(time) => format!("until {time}"),
        None => "until it is revoked".to_owned(),
    };
    let servers = match joined(token, "servers").as_str() {
        "*" => "all servers".to_owned(),
        names => format!("servers {names}"),
    };
    format!("{} on {servers} ({}), {until}", joined(token, "operations"), joined(token, "surfaces"))
}

fn list(answer: &Value) -> String {
    let row = |token: &Value| {
        vec![
            text(token, "name"),
            text(token, "state"),
            joined(token, "operations"),
            joined(token, "servers"),
            joined(token, "surfaces"),
            or_dash(&token["profile"]),
            or_dash(&token["expires_at"]),
        ]
    };
    let rows: Vec<Vec<String>> = entries(answer, "tokens").iter().map(row).collect();
    if rows.is_empty() {
        return "no tokens but the agent-token of the first start".to_owned();
    }
    let head = ["token", "state", "operations", "servers", "surfaces", "profile", "expires"];
    table(&head, &rows)
}

fn joined(token: &Value, name: &str) -> String {
    let words: Vec<&str> = entries(token, name).iter().filter_map(Value::as_str).collect();
    words.join(",")
}
