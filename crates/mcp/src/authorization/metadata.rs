//! The metadata of an authorization server (RFC 8414, OpenID Connect Discovery), checked.

use serde::Deserialize;
use url::Url;

use super::error::AuthorizationError;
use super::fetch::Fetcher;

/// An authorization server with the endpoints that may be used.
#[derive(Clone, Debug)]
pub struct AuthorizationServer {
    pub issuer: String,
    pub authorization_endpoint: Option<Url>,
    pub token_endpoint: Url,
    pub registration_endpoint: Option<Url>,
    pub device_endpoint: Option<Url>,
    pub revocation_endpoint: Option<Url>,
    pub scopes: Vec<String>,
    /// The ways to authenticate at the token endpoint.
    pub auth_methods: Vec<String>,
    pub has_pkce: bool,
    /// Its responses name the issuer (RFC 9207).
    pub names_issuer: bool,
    /// It accepts the URL of a client's metadata as its id.
    pub takes_metadata_documents: bool,
}

#[derive(Deserialize)]
struct WireMetadata {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: String,
    registration_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    client_id_metadata_document_supported: bool,
}

/// The only method if the metadata names none (RFC 8414).
const DEFAULT_METHOD: &str = "client_secret_basic";

impl AuthorizationServer {
    /// Reads metadata. The issuer must be the one that it was requested for, if any: a trailing
    /// slash may differ.
    pub(super) fn parse(
        fetcher: Fetcher,
        body: &[u8],
        expected: Option<&str>,
    ) -> Result<AuthorizationServer, AuthorizationError> {
        const WHAT: &str = "metadata of the authorization server";
        let wire: WireMetadata = serde_json::from_slice(body)
            .map_err(|error| AuthorizationError::invalid(WHAT, place(&error)))?;
        let bare = |issuer: &str| issuer.strip_suffix('/').unwrap_or(issuer).to_owned();
        if let Some(expected) = expected
            && bare(expected) != bare(&wire.issuer)
        {
            let (expected, found) = (expected.to_owned(), shortened(&wire.issuer));
            return Err(AuthorizationError::Issuer { expected, found });
        }
        let optional =
            |what, text: Option<String>| text.map(|text| fetcher.address(what, &text)).transpose();
        let methods = wire.token_endpoint_auth_methods_supported;
        Ok(AuthorizationServer {
            authorization_endpoint: optional(
                "authorization endpoint",
                wire.authorization_endpoint,
            )?,
            token_endpoint: fetcher.address("token endpoint", &wire.token_endpoint)?,
            registration_endpoint: optional("registration endpoint", wire.registration_endpoint)?,
            device_endpoint: optional("device endpoint", wire.device_authorization_endpoint)?,
            revocation_endpoint: optional("revocation endpoint", wire.revocation_endpoint)?,
            issuer: wire.issuer,
            scopes: wire.scopes_supported,
            auth_methods: methods.unwrap_or_else(|| vec![DEFAULT_METHOD.to_owned()]),
            has_pkce: wire.code_challenge_methods_supported.iter().any(|method| method == "S256"),
            names_issuer: wire.authorization_response_iss_parameter_supported,
            takes_metadata_documents: wire.client_id_metadata_document_supported,
        })
    }
}

/// Returns where JSON is wrong, without its content.
pub(super) fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

/// Cuts a text of a server that is shown in a message.
pub(super) fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 200;
    text.chars().filter(|c| !c.is_control()).take(CHARS_MAX).collect()
}
