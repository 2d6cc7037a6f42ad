//! The identity of this client at an authorization server: registered before by a person, the URL of
//! a metadata document, or registered now.

use serde::Deserialize;
use serde_json::json;

use super::error::AuthorizationError;
use super::fetch::Fetcher;
use super::metadata::{AuthorizationServer, place};
use super::secret::SecretText;

/// The way to authenticate at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    None,
    Basic,
    Post,
    /// A signed assertion (RFC 7523).
    PrivateKeyJwt,
}

impl ClientAuth {
    pub fn as_str(self) -> &'static str {
        match self {
            ClientAuth::None => "none",
            ClientAuth::Basic => "client_secret_basic",
            ClientAuth::Post => "client_secret_post",
            ClientAuth::PrivateKeyJwt => "private_key_jwt",
        }
    }

    pub fn named(name: &str) -> Option<ClientAuth> {
        [ClientAuth::None, ClientAuth::Basic, ClientAuth::Post, ClientAuth::PrivateKeyJwt]
            .into_iter()
            .find(|auth| auth.as_str() == name)
    }

    /// Chooses a way that the server supports. A client with a secret uses it, if it can.
    fn chosen(server: &AuthorizationServer, has_secret: bool) -> ClientAuth {
        let offers = |auth: &ClientAuth| server.auth_methods.iter().any(|it| it == auth.as_str());
        let order: &[ClientAuth] = if has_secret {
            &[ClientAuth::Basic, ClientAuth::Post, ClientAuth::None]
        } else {
            &[ClientAuth::None]
        };
        let fallback = if has_secret { ClientAuth::Basic } else { ClientAuth::None };
        order.iter().copied().find(offers).unwrap_or(fallback)
    }
}

/// A client as an authorization server knows it.
#[derive(Clone)]
pub struct ClientIdentity {
    pub id: String,
    /// The secret, or the private key in PEM of a client that signs assertions.
    pub secret: Option<SecretText>,
    pub auth: ClientAuth,
}

/// The client that a person chose; without an id, one is registered.
#[derive(Clone, Default)]
pub struct ClientChoice {
    /// An id, or the https URL of a client ID metadata document.
    pub id: Option<String>,
    pub secret: Option<SecretText>,
    /// A private key in PEM, for `private_key_jwt`.
    pub private_key: Option<SecretText>,
    pub auth: Option<ClientAuth>,
}

#[derive(Deserialize)]
struct WireRegistration {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

const REGISTRATION: &str = "registration of the client";

impl ClientChoice {
    /// Returns the chosen client, if it can be used at this server.
    pub fn identity(&self, server: &AuthorizationServer) -> Option<ClientIdentity> {
        let id = self.id.clone()?;
        let is_document = id.starts_with("https://");
        let must_register = is_document
            && !server.takes_metadata_documents
            && server.registration_endpoint.is_some();
        if must_register {
            return None;
        }
        if let Some(key) = &self.private_key {
            let auth = ClientAuth::PrivateKeyJwt;
            return Some(ClientIdentity { id, secret: Some(key.clone()), auth });
        }
        let auth = self.auth.unwrap_or_else(|| {
            if is_document {
                ClientAuth::None
            } else {
                ClientAuth::chosen(server, self.secret.is_some())
            }
        });
        Some(ClientIdentity { id, secret: self.secret.clone(), auth })
    }
}

/// Registers this client (RFC 7591).
pub(super) async fn register(
    fetcher: Fetcher,
    server: &AuthorizationServer,
    name: &str,
    redirect: Option<&str>,
) -> Result<ClientIdentity, AuthorizationError> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(AuthorizationError::NoRegistration);
    };
    let wanted = if server.auth_methods.iter().any(|method| method == "none") {
        ClientAuth::None
    } else {
        ClientAuth::chosen(server, true)
    };
    let mut body = json!({
        "client_name": name,
        "application_type": "native",
        "token_endpoint_auth_method": wanted.as_str(),
    });
    match redirect {
        Some(redirect) => {
            body["redirect_uris"] = json!([redirect]);
            body["grant_types"] = json!(["authorization_code", "refresh_token"]);
            body["response_types"] = json!(["code"]);
        }
        None => {
            body["redirect_uris"] = json!([]);
            body["grant_types"] = json!([super::device::GRANT, "refresh_token"]);
            body["response_types"] = json!([]);
        }
    }
    let fetched = fetcher.post_json(REGISTRATION, endpoint, body.to_string().into_bytes()).await?;
    if !fetched.status.is_success() {
        return Err(super::exchange::refusal(REGISTRATION, endpoint, &fetched));
    }
    let made: WireRegistration = serde_json::from_slice(&fetched.body)
        .map_err(|error| AuthorizationError::invalid(REGISTRATION, place(&error)))?;
    if made.client_id.is_empty() {
        return Err(AuthorizationError::invalid(REGISTRATION, "it has no client_id"));
    }
    let stated = made.token_endpoint_auth_method.as_deref().and_then(ClientAuth::named);
    let secret = made.client_secret.filter(|secret| !secret.is_empty()).map(SecretText::new);
    let auth = stated.unwrap_or_else(|| ClientAuth::chosen(server, secret.is_some()));
    Ok(ClientIdentity { id: made.client_id, secret, auth })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::AddressRule;

    fn server(members: &str) -> AuthorizationServer {
        let text = format!(
            r#"{{"issuer":"https://a","token_endpoint":"https://a/t","registration_endpoint":"https://a/r"{members}}}"#
        );
        let fetcher = Fetcher { addresses: AddressRule::Public };
        AuthorizationServer::parse(fetcher, text.as_bytes(), None).unwrap()
    }

    fn chosen(id: &str, secret: Option<&str>, members: &str) -> Option<ClientAuth> {
        let secret = secret.map(SecretText::new);
        let choice = ClientChoice { id: Some(id.to_owned()), secret, ..ClientChoice::default() };
        choice.identity(&server(members)).map(|identity| identity.auth)
    }

    #[test]
    fn a_client_authenticates_in_a_way_that_the_server_supports() {
        const METHODS: &str = ",\"token_endpoint_auth_methods_supported\":";
        for (id, secret, members, expected) in [
            ("c", Some("s"), String::new(), Some(ClientAuth::Basic)),
            ("c", Some("s"), format!("{METHODS}[\"client_secret_post\"]"), Some(ClientAuth::Post)),
            ("c", Some("s"), format!("{METHODS}[\"none\"]"), Some(ClientAuth::None)),
            ("c", None, format!("{METHODS}[\"client_secret_basic\"]"), Some(ClientAuth::None)),
            ("https://c/m.json", None, String::new(), None),
            (
                "https://c/m.json",
                None,
                ",\"client_id_metadata_document_supported\":true".to_owned(),
                Some(ClientAuth::None),
            ),
        ] {
            assert_eq!(chosen(id, secret, &members), expected, "{id} {members}");
        }
    }
}
