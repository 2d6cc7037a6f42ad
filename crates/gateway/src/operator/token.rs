//! Tokens for agents: issued with a scope, shown once, revoked.

use access::tokens::{digest, secret};
use domain::caller::{Scope, TokenId};
use domain::config::ServerOrigin;
use domain::{Code, Refusal, config};
use jiff::{SignedDuration, Timestamp};
use redact::Credential;
use serde_json::json;
use store::state::TokenRecord;
use text::near;

use crate::Gateway;
use crate::operator::decision::{DecisionSource, DecisionSubject};
use crate::operator::refusal::{conflict, unavailable};

/// Suggestions for a name that no token has.
const NEAR_MAX: usize = 3;

/// The parameters of a new token.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    pub name: String,
    pub scope: Scope,
    pub expires_in: Option<SignedDuration>,
}

/// A token and its secret, which is stored nowhere else.
pub struct IssuedToken {
    pub secret: String,
    pub record: TokenRecord,
}

impl Gateway {
    /// Returns every token ever issued, including revoked ones.
    pub async fn token_records(&self) -> Result<Vec<TokenRecord>, Refusal> {
        let records = self.with_store(|store| store.state().tokens()).await;
        records.map_err(|error| unavailable(&error))
    }

    pub async fn make_token(
        &self,
        by: &DecisionSource,
        request: TokenRequest,
    ) -> Result<IssuedToken, Refusal> {
        self.check_name(&request.name)?;
        self.check_scope(&request.scope)?;
        let is_taken =
            |record: &TokenRecord| record.name == request.name && record.revoked_at.is_none();
        if self.token_records().await?.iter().any(is_taken) {
            return Err(taken(&request.name));
        }
        let now = Timestamp::now();
        let expires_at = match request.expires_in {
            Some(span) => Some(now.checked_add(span).map_err(|_| too_long())?),
            None => None,
        };
        let secret = secret(Credential::AgentToken)?;
        let record = TokenRecord {
            name: request.name,
            hash: digest(&secret),
            scope: serde_json::to_string(&request.scope).unwrap_or_default(),
            created_at: now,
            expires_at,
            revoked_at: None,
        };
        let details = json!({"decision": "create", "name": record.name, "scope": request.scope,
            "expires_at": expires_at.map(|at| at.to_string())});
        self.record_decision(by, DecisionSubject::token(), details).await?;
        let kept = record.clone();
        if self.decide(move |state| state.create_token(&kept)).await? {
            Ok(IssuedToken { secret, record })
        } else {
            Err(taken(&record.name))
        }
    }

    pub async fn revoke_token(&self, by: &DecisionSource, name: &str) -> Result<(), Refusal> {
        let records = self.token_records().await?;
        let valid = || records.iter().filter(|record| record.revoked_at.is_none());
        let revoked = valid().find(|record| record.name == name);
        let Some(id) = revoked.map(|record| TokenId(record.hash)) else {
            let near = near::names(name, valid().map(|record| &*record.name), NEAR_MAX);
            let hint = near::hint(&near);
            let message = format!("token '{name}' does not exist or is already revoked{hint}");
            return Err(Refusal::new(Code::NotFound, message).with(json!({"near": near})));
        };
        let details = json!({"decision": "revoke", "name": name});
        self.record_decision(by, DecisionSubject::token(), details).await?;
        let owned = name.to_owned();
        self.decide(move |state| state.revoke_token(&owned, Timestamp::now()).map(|_| ())).await?;
        if let Err(reason) = self.forget_token(name, id).await {
            tracing::warn!("cannot remove what servers granted to a revoked token: {reason}");
        }
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), Refusal> {
        match config::name_fault(name) {
            Some(fault) => {
                let message = format!("'{name}' is not a valid token name: {fault}");
                Err(Refusal::new(Code::InvalidRequest, message).with(json!({"field": "name"})))
            }
            None if self.tokens().is_reserved(name) => {
                let message =
                    format!("'{name}' is reserved for a built-in token: choose another name");
                Err(conflict(message))
            }
            None => Ok(()),
        }
    }

    /// Rejects a scope that could never grant anything, as a mistake.
    fn check_scope(&self, scope: &Scope) -> Result<(), Refusal> {
        let settings = self.settings();
        // A profile from a file that merely lay in a folder cannot define a token's scope.
        let own =
            settings.profiles.iter().filter(|(_, profile)| profile.origin == ServerOrigin::Own);
        let mut names: Vec<&str> = own.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        match &scope.profile {
            Some(name) if !names.contains(&name.as_str()) => {
                let message = format!("there is no profile '{name}'");
                Err(Refusal::new(Code::InvalidRequest, message)
                    .with(json!({"field": "profile", "provided": name, "valid_values": names})))
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn taken(name: &str) -> Refusal {
    conflict(format!("token '{name}' already exists: revoke it first, or choose another name"))
}

fn too_long() -> Refusal {
    Refusal::new(Code::InvalidRequest, "expires_in is too long")
        .with(json!({"field": "expires_in"}))
}
