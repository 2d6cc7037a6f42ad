//! Tokens of agents. The store knows only their hashes, and does not interpret scopes.

use jiff::Timestamp;
use rusqlite::{Row, params};

use super::OperatorState;
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
        self.ask(|db| {
            let mut statement = db.prepare_cached(
                "SELECT name, hash, scope, created_us, expires_us, revoked_us FROM tokens
                 ORDER BY number",
            )?;
            let mut rows = statement.query([])?;
            let mut tokens = Vec::new();
            while let Some(row) = rows.next()? {
                tokens.push(read(row)?);
            }
            Ok(tokens)
        })
    }

    /// Creates a token, unless an unrevoked one has its name; returns whether it did.
    pub fn create_token(&self, token: &TokenRecord) -> Result<bool, StoreError> {
        self.decide(|db| {
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
        self.decide(|db| {
            let words = "UPDATE tokens SET revoked_us = ?2 WHERE name = ?1 AND revoked_us IS NULL";
            Ok(db.execute(words, (name, at.as_microsecond()))? > 0)
        })
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
