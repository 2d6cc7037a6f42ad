//! The agent token of a client that connects over HTTP: issued for it alone, so that it can be
//! revoked alone.

use admin::view::{NewToken, TokenEntry, TokenList};
use gateway::plan::Reach;
use serde_json::Value;

use super::change::{FileChange, Journal, MadeChange};
use crate::cli::ClientProgram;
use crate::control::{Control, encode};
use crate::exit::Failure;
use crate::output;
use crate::site::Site;
use clients::ENTRY;
use clients::edit;

const PATH: &str = "/api/v1/tokens";

/// The state of a token that is accepted.
const VALID: &str = "valid";

/// The state of a token whose name may be used again.
const REVOKED: &str = "revoked";

/// The variable from which a client reads the token where its settings belong to a folder.
pub(super) const VARIABLE: &str = "COUNTERSIGN_TOKEN";

/// A token that was just issued.
pub(super) struct IssuedToken {
    pub(super) name: String,
    pub(super) secret: String,
}

/// Issues a token named after the client, which may use everything that an agent may.
pub(super) async fn issue(site: &Site, client: ClientProgram) -> Result<IssuedToken, Failure> {
    let make = async |control: &Control| {
        let is_taken = |token: &TokenEntry| token.state != REVOKED;
        let taken = list(control).await?.into_iter().filter(is_taken);
        let names: Vec<String> = taken.map(|token| token.name).collect();
        let first = client.name();
        let mut others = (2..).map(|number| format!("{}-{number}", client.name()));
        let other = others.find(|name| !names.contains(name)).filter(|_| names.contains(&first));
        let name = other.unwrap_or(first);
        let wanted = NewToken {
            name: name.clone(),
            operations: words(&["read", "write", "destructive"]),
            servers: None,
            surfaces: Some(words(&["discovery", "passthrough"])),
            profile: None,
            expires_in: None,
            unannotated_tools: None,
        };
        let made: TokenEntry = output::read(&control.send_json(PATH, &wanted).await?)?;
        Ok(IssuedToken { name, secret: made.token.unwrap_or_default() })
    };
    Control::with(&site.afresh(), Reach::Nothing, make).await
}

pub(super) async fn revoke(site: &Site, name: &str) -> Result<(), Failure> {
    let path = format!("{PATH}/{}", encode(name));
    Control::with(&site.afresh(), Reach::Nothing, async |control| control.delete(&path).await)
        .await?;
    Ok(())
}

/// Returns the token in a client's file, if it was issued for it and is still accepted.
pub(super) async fn present(
    site: &Site,
    journal: &Journal,
    change: &FileChange,
) -> Result<Option<String>, Failure> {
    let before = change.before.as_deref().unwrap_or_default();
    let entry = |text: &str, made: &MadeChange| {
        edit::servers(text, made.syntax, &made.section).ok()?.remove(ENTRY)
    };
    let issued = journal.changes().iter().rev().filter(|made| made.file == change.file);
    for made in issued {
        let Some(name) = &made.kept.token else { continue };
        let token = entry(before, made).as_ref().and_then(bearer);
        if token.is_none() || token != entry(&made.texts()?.after, made).as_ref().and_then(bearer) {
            continue;
        }
        let tokens =
            Control::with(&site.afresh(), Reach::Nothing, async |control| list(control).await)
                .await?;
        let is_valid = |known: &TokenEntry| known.name == *name && known.state == VALID;
        return Ok(token.filter(|_| tokens.iter().any(is_valid)));
    }
    Ok(None)
}

async fn list(control: &Control) -> Result<Vec<TokenEntry>, Failure> {
    Ok(output::read::<TokenList>(&control.get(PATH).await?)?.tokens)
}

fn bearer(entry: &Value) -> Option<String> {
    let headers = ["headers", "http_headers"].iter().find_map(|name| entry.get(*name))?;
    Some(headers.get("Authorization")?.as_str()?.strip_prefix("Bearer ")?.to_owned())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
