//! Tokens of agents. The store knows only their hashes, and does not interpret scopes.

use jiff::Timestamp;
use rusqlite::{Row, params};
use text::hex;

use super::OperatorState;
use super::decision::{Decisions, Scope};
use crate::database::timestamp;
use crate::error::StoreError;

/// A token. Times have microsecond precision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRecord {
    pub name: String,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// The scope as JSON, which the store does not interpret.
    pub scope: String,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl OperatorState {
    /// Returns all tokens, including revoked ones, in order of creation. At most one of each name
    /// is not revoked.
    pub fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        self.ask_decided(|db, signed| {
            let mut statement = db.prepare_cached(
                "SELECT name, hash, scope, created_us, expires_us, revoked_us FROM tokens
                 ORDER BY number",
            )?;
            let mut rows = statement.query([])?;
            let mut tokens = Vec::new();
            while let Some(row) = rows.next()? {
                let token = read(row)?;
                tokens.push(match signed {
                    Some(signed) => token.stricter(signed),
                    None => token,
                });
            }
            Ok(tokens)
        })
    }

    /// Creates a token, unless an unrevoked one has its name; returns whether it did.
    pub fn create_token(&self, token: &TokenRecord) -> Result<bool, StoreError> {
        self.decide(Scope::TOKENS, |db| {
            let made = db.execute(
                "INSERT INTO tokens (name, hash, scope, created_us, expires_us, revoked_us)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (name) WHERE revoked_us IS NULL DO NOTHING",
                params![
                    token.name,
                    token.hash,
                    token.scope,
                    token.created_at.as_microsecond(),
                    token.expires_at.map(Timestamp::as_microsecond),
                    token.revoked_at.map(Timestamp::as_microsecond),
                ],
            )?;
            Ok(made > 0)
        })
    }

    /// Revokes a token; returns whether there was an unrevoked one of this name.
    pub fn revoke_token(&self, name: &str, at: Timestamp) -> Result<bool, StoreError> {
        self.decide(Scope::TOKENS, |db| {
            let words = "UPDATE tokens SET revoked_us = ?2 WHERE name = ?1 AND revoked_us IS NULL";
            Ok(db.execute(words, (name, at.as_microsecond()))? > 0)
        })
    }
}

impl TokenRecord {
    /// Returns a token that is not what was decided as one that was revoked.
    fn stricter(self, signed: &Decisions) -> TokenRecord {
        let decided = signed.token(&hex::encode(&self.hash));
        let is_decided = decided.is_some_and(|decided| decided.is(&self));
        let revoked_at =
            if is_decided { self.revoked_at } else { self.revoked_at.or(Some(self.created_at)) };
        TokenRecord { revoked_at, ..self }
    }
}

fn read(row: &Row<'_>) -> Result<TokenRecord, StoreError> {
    Ok(TokenRecord {
        name: row.get(0)?,
        hash: row.get(1)?,
        scope: row.get(2)?,
        created_at: timestamp::read(row.get(3)?)?,
        expires_at: row.get::<_, Option<i64>>(4)?.map(timestamp::read).transpose()?,
        revoked_at: row.get::<_, Option<i64>>(5)?.map(timestamp::read).transpose()?,
    })
}
