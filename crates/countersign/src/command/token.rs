//! `countersign token create|list|revoke`.

use admin::view::{NewToken, TokenEntry, TokenList};
use gateway::plan::Reach;
use serde_json::Value;

use crate::cli::{Create, Format, SecretFormat, Token};
use crate::control::{Control, encode, get};
use crate::exit::Failure;
use crate::output::{self, or_dash, table};
use crate::site::Site;

const PATH: &str = "/api/v1/tokens";

pub(crate) async fn run(site: &Site, verb: Token) -> Result<(), Failure> {
    match verb {
        Token::Create(args) => {
            let make = async |control: &Control| control.send_json(PATH, &body(&args)).await;
            let made = Control::with(site, Reach::Nothing, make).await?;
            show(args.output, &made)
        }
        Token::List { output } => {
            let answer = get(site, Reach::Nothing, PATH).await?;
            output::answer(output, &answer, list).map(|_| ())
        }
        Token::Revoke { name } => {
            let path = format!("{PATH}/{}", encode(&name));
            let revoke = async |control: &Control| control.delete(&path).await;
            Control::with(site, Reach::Nothing, revoke).await?;
            output::line(&format!("revoked token '{name}'"))
        }
    }
}

fn body(args: &Create) -> NewToken {
    NewToken {
        name: args.name.clone(),
        operations: args.operations.clone(),
        servers: args.servers.clone(),
        surfaces: args.surfaces.clone(),
        profile: args.profile.clone(),
        expires_in: args.expires_in.clone(),
        unannotated_tools: args.unannotated_tools.clone(),
    }
}

/// Prints only the secret on stdout, so that a script can capture it.
fn show(format: SecretFormat, made: &Value) -> Result<(), Failure> {
    match format {
        SecretFormat::Text => {
            let made: TokenEntry = output::read(made)?;
            output::note(&format!(
                "token '{}': {}; save the secret now, it is not shown again",
                made.name,
                terms(&made)
            ));
            output::line(made.token.as_deref().unwrap_or_default())
        }
        SecretFormat::Json => output::print(Format::Json, made, |_| String::new()),
        SecretFormat::Yaml => output::print(Format::Yaml, made, |_| String::new()),
    }
}

fn terms(token: &TokenEntry) -> String {
    let until = match &token.expires_at {
        Some(time) => format!("until {time}"),
        None => "until revoked".to_owned(),
    };
    let servers = match joined(token.servers.as_deref()).as_str() {
        "*" => "all servers".to_owned(),
        names => format!("servers {names}"),
    };
    let operations = joined(token.operations.as_deref());
    format!("{operations} on {servers} ({}), {until}", joined(token.surfaces.as_deref()))
}

fn list(answer: &TokenList) -> String {
    if answer.tokens.is_empty() {
        return "no tokens except the agent-token created at the first start".to_owned();
    }
    let row = |token: &TokenEntry| {
        vec![
            token.name.clone(),
            token.state.clone(),
            joined(token.operations.as_deref()),
            joined(token.servers.as_deref()),
            joined(token.surfaces.as_deref()),
            or_dash(token.profile.as_ref().and_then(Option::as_deref)),
            or_dash(token.expires_at.as_deref()),
        ]
    };
    let rows: Vec<Vec<String>> = answer.tokens.iter().map(row).collect();
    let head = ["token", "state", "operations", "servers", "surfaces", "profile", "expires"];
    table(&head, &rows)
}

fn joined(words: Option<&[String]>) -> String {
    words.unwrap_or_default().join(",")
}
