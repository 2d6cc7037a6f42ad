//! A grant: the tokens that a server issued when a person signed in, with everything that is needed to
//! renew them. It is stored in the vault as JSON.

use http::HeaderValue;
use jiff::Timestamp;
use mcp::authorization::{ClientAuth, ClientIdentity, IssuedTokens, SecretText};
use redact::KnownSecrets;
use serde::{Deserialize, Serialize};
use vault::{NameLock, Secret, Space, Vault};

use crate::secrets::on_own_thread;

/// Tokens are renewed this long before they expire, or when a tenth of their time is left.
const MARGIN_MS: i64 = 60_000;

#[derive(Clone)]
pub(super) struct Grant {
    /// The address of the server. The tokens are sent to no other.
    pub(super) server: String,
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    pub(super) revocation_endpoint: Option<String>,
    pub(super) resource: Option<String>,
    pub(super) client: GrantClient,
    pub(super) tokens: Option<GrantTokens>,
    /// The scopes that the sign-in asked for.
    pub(super) requested: Vec<String>,
    /// The scopes that the server wanted since, for the next sign-in.
    pub(super) wanted: Vec<String>,
}

/// The client that the grant belongs to.
#[derive(Clone)]
pub(super) enum GrantClient {
    /// The gate registered it, for this redirect address.
    Registered { identity: ClientIdentity, redirect: Option<String> },
    /// The config has it; the secret stays there.
    Configured { id: String },
}

#[derive(Clone)]
pub(super) struct GrantTokens {
    pub(super) access: SecretText,
    pub(super) refresh: Option<SecretText>,
    /// The times in milliseconds at which the access token is to be renewed, and at which it expires;
    /// `None` if the server did not say.
    times: Option<(i64, i64)>,
}

#[derive(Serialize, Deserialize)]
struct WireGrant {
    server: String,
    issuer: String,
    token_endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    revocation_endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    client_id: String,
    /// Only of a client that the gate registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    registration: Option<WireClient>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<WireGrantTokens>,
    requested: Vec<String>,
    wanted: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct WireClient {
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    auth_method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_uri: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct WireGrantTokens {
    access: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renew_at_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<i64>,
}

impl GrantTokens {
    /// Takes tokens that were just issued. A server that issues no new refresh token means the old
    /// one to be used again.
    pub(super) fn issued(issued: IssuedTokens, earlier: Option<&SecretText>) -> GrantTokens {
        let times = issued.lifetime.map(|lifetime| {
            let now = now_ms();
            let lifetime = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX / 2);
            (now + lifetime - MARGIN_MS.min(lifetime / 10), now + lifetime)
        });
        let refresh = issued.refresh.or_else(|| earlier.cloned());
        GrantTokens { access: issued.access, refresh, times }
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.times.is_none_or(|(renew_at, _)| now_ms() < renew_at)
    }

    pub(super) fn is_expired(&self) -> bool {
        self.times.is_some_and(|(_, expires_at)| now_ms() >= expires_at)
    }

    /// Returns the value of `Authorization`.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.access.expose())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl Grant {
    /// Returns every secret in it.
    pub(super) fn secrets(&self) -> Vec<&str> {
        let client = match &self.client {
            GrantClient::Registered { identity, .. } => identity.secret.as_ref(),
            GrantClient::Configured { .. } => None,
        };
        let tokens =
            self.tokens.iter().flat_map(|tokens| [Some(&tokens.access), tokens.refresh.as_ref()]);
        tokens.flatten().chain(client).map(SecretText::expose).collect()
    }

    pub(super) fn client_id(&self) -> &str {
        match &self.client {
            GrantClient::Registered { identity, .. } => &identity.id,
            GrantClient::Configured { id } => id,
        }
    }

    fn to_json(&self) -> String {
        let text = |secret: &SecretText| secret.expose().to_owned();
        let registration = match &self.client {
            GrantClient::Registered { identity, redirect } => Some(WireClient {
                secret: identity.secret.as_ref().map(text),
                auth_method: identity.auth.as_str().to_owned(),
                redirect_uri: redirect.clone(),
            }),
            GrantClient::Configured { .. } => None,
        };
        let tokens = self.tokens.as_ref().map(|tokens| WireGrantTokens {
            access: text(&tokens.access),
            refresh: tokens.refresh.as_ref().map(text),
            renew_at_ms: tokens.times.map(|(renew_at, _)| renew_at),
            expires_at_ms: tokens.times.map(|(_, expires_at)| expires_at),
        });
        let wire = WireGrant {
            server: self.server.clone(),
            issuer: self.issuer.clone(),
            token_endpoint: self.token_endpoint.clone(),
            revocation_endpoint: self.revocation_endpoint.clone(),
            resource: self.resource.clone(),
            client_id: self.client_id().to_owned(),
            registration,
            tokens,
            requested: self.requested.clone(),
            wanted: self.wanted.clone(),
        };
        serde_json::to_string(&wire).expect("plain data serialises")
    }

    /// Reads a stored grant; `None` if it is of another form.
    fn parse(text: &str) -> Option<Grant> {
        let wire: WireGrant = serde_json::from_str(text).ok()?;
        let client = match wire.registration {
            Some(client) => GrantClient::Registered {
                identity: ClientIdentity {
                    id: wire.client_id,
                    secret: client.secret.map(SecretText::new),
                    auth: ClientAuth::named(&client.auth_method)?,
                },
                redirect: client.redirect_uri,
            },
            None => GrantClient::Configured { id: wire.client_id },
        };
        let tokens = wire.tokens.map(|tokens| GrantTokens {
            access: SecretText::new(tokens.access),
            refresh: tokens.refresh.map(SecretText::new),
            times: tokens.renew_at_ms.zip(tokens.expires_at_ms),
        });
        Some(Grant {
            server: wire.server,
            issuer: wire.issuer,
            token_endpoint: wire.token_endpoint,
            revocation_endpoint: wire.revocation_endpoint,
            resource: wire.resource,
            client,
            tokens,
            requested: wire.requested,
            wanted: wire.wanted,
        })
    }
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// The place of one server's grant in the vault.
#[derive(Clone)]
pub(super) struct GrantPlace {
    pub(super) vault: Vault,
    pub(super) known: KnownSecrets,
    /// The name of the server.
    pub(super) name: String,
}

impl GrantPlace {
    /// Returns the grant. What it holds is redacted everywhere from here on.
    pub(super) async fn read(&self) -> Result<Option<Grant>, String> {
        let place = self.clone();
        on_own_thread(move || {
            let secret = place.vault.get(Space::Grant, &place.name);
            let secret = secret.map_err(|error| error.to_string())?;
            let grant = secret.and_then(|secret| Grant::parse(secret.expose()));
            Ok(grant.inspect(|grant| place.know(grant)))
        })
        .await
    }

    pub(super) async fn write(&self, grant: &Grant) -> Result<(), String> {
        self.know(grant);
        let (place, text) = (self.clone(), Secret::new(grant.to_json()));
        on_own_thread(move || {
            let set = place.vault.set(Space::Grant, &place.name, &text);
            set.map(|_| ()).map_err(|error| error.to_string())
        })
        .await
    }

    pub(super) async fn remove(&self) -> Result<bool, String> {
        let place = self.clone();
        let remove = move || place.vault.remove(Space::Grant, &place.name);
        on_own_thread(move || remove().map_err(|error| error.to_string())).await
    }

    /// Waits for the right to change the grant, which one process at a time has.
    pub(super) async fn lock(&self) -> Result<NameLock, String> {
        let place = self.clone();
        let lock = move || place.vault.lock(Space::Grant, &place.name);
        on_own_thread(move || lock().map_err(|error| error.to_string())).await
    }

    /// Returns the time at which the grant was stored; `None` if there is none.
    pub(super) async fn stored_at(&self) -> Result<Option<Timestamp>, String> {
        let place = self.clone();
        on_own_thread(move || {
            let names = place.vault.names(Space::Grant).map_err(|error| error.to_string())?;
            Ok(names.into_iter().find(|it| it.name == place.name).map(|it| it.set_at))
        })
        .await
    }

    fn know(&self, grant: &Grant) {
        grant.secrets().into_iter().for_each(|secret| self.known.add(secret));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn issued(lifetime_s: Option<u64>, refresh: Option<&str>) -> IssuedTokens {
        IssuedTokens {
            access: SecretText::new("at"),
            refresh: refresh.map(SecretText::new),
            lifetime: lifetime_s.map(Duration::from_secs),
            scope: None,
        }
    }

    fn grant(client: GrantClient, tokens: Option<GrantTokens>) -> Grant {
        Grant {
            server: "https://h/mcp".to_owned(),
            issuer: "https://as".to_owned(),
            token_endpoint: "https://as/token".to_owned(),
            revocation_endpoint: None,
            resource: Some("https://h/mcp".to_owned()),
            client,
            tokens,
            requested: vec!["a".to_owned()],
            wanted: vec!["b".to_owned()],
        }
    }

    #[test]
    fn a_grant_survives_its_stored_form() {
        let identity = ClientIdentity {
            id: "c".to_owned(),
            secret: Some(SecretText::new("s")),
            auth: ClientAuth::Post,
        };
        let redirect = Some("http://127.0.0.1:1/callback".to_owned());
        let tokens = GrantTokens::issued(issued(Some(3600), Some("rt")), None);
        for grant in [
            grant(GrantClient::Registered { identity, redirect }, Some(tokens)),
            grant(GrantClient::Configured { id: "c".to_owned() }, None),
        ] {
            let again = Grant::parse(&grant.to_json()).unwrap();
            assert_eq!(again.to_json(), grant.to_json());
        }
        assert!(Grant::parse("{}").is_none());
    }

    #[test]
    fn tokens_are_fresh_as_long_as_their_lifetime_says() {
        for (lifetime, is_fresh) in [(None, true), (Some(3600), true), (Some(100), true)] {
            let tokens = GrantTokens::issued(issued(lifetime, None), None);
            assert_eq!((tokens.is_fresh(), tokens.is_expired()), (is_fresh, false), "{lifetime:?}");
        }
        let times = Some((now_ms() - 1, now_ms() + 60_000));
        let due = GrantTokens { times, ..GrantTokens::issued(issued(None, None), None) };
        assert!(!due.is_fresh() && !due.is_expired());
    }

    #[test]
    fn a_refresh_token_stays_unless_another_is_issued() {
        let old = SecretText::new("old");
        let kept = GrantTokens::issued(issued(None, None), Some(&old));
        let rotated = GrantTokens::issued(issued(None, Some("new")), Some(&old));
        assert_eq!(kept.refresh.unwrap().expose(), "old");
        assert_eq!(rotated.refresh.unwrap().expose(), "new");
    }
}
