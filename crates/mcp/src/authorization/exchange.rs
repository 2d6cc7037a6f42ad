//! Requests to the token endpoint, and what it issues.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use http::HeaderValue;
use serde::Deserialize;
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::discovery::{ProtectedServer, ServerAuthorization};
use super::error::AuthorizationError;
use super::fetch::{Fetched, Fetcher};
use super::identity::{ClientAuth, ClientIdentity};
use super::jwt;
use super::metadata::place;
use super::secret::SecretText;
use crate::limits;

const TOKEN: &str = "token";

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The token endpoint of an authorization server, used by one client for one protected server.
#[derive(Clone)]
pub struct TokenEndpoint {
    fetcher: Fetcher,
    pub url: Url,
    pub issuer: String,
    pub client: ClientIdentity,
    /// The identifier that tokens are requested for; `None` if it is not to be sent.
    pub resource: Option<String>,
}

/// The tokens of a successful response.
#[derive(Clone)]
pub struct IssuedTokens {
    pub access: SecretText,
    pub refresh: Option<SecretText>,
    /// The lifetime of the access token, if the server states one that can be true.
    pub lifetime: Option<Duration>,
    pub scope: Option<String>,
}

#[derive(Deserialize)]
struct WireTokens {
    access_token: String,
    token_type: Option<String>,
    refresh_token: Option<String>,
    expires_in: Option<Value>,
    scope: Option<String>,
}

#[derive(Deserialize)]
struct WireRefusal {
    error: String,
    error_description: Option<String>,
}

impl TokenEndpoint {
    pub(super) fn found(
        server: &ProtectedServer,
        discovery: &ServerAuthorization,
        client: ClientIdentity,
        resource: Option<String>,
    ) -> TokenEndpoint {
        TokenEndpoint {
            fetcher: server.authority(),
            url: discovery.server.token_endpoint.clone(),
            issuer: discovery.server.issuer.clone(),
            client,
            resource,
        }
    }

    /// Returns an endpoint that was found before.
    pub fn known(
        server: &ProtectedServer,
        (url, issuer): (&str, &str),
        client: ClientIdentity,
        resource: Option<String>,
    ) -> Result<TokenEndpoint, AuthorizationError> {
        let fetcher = server.authority();
        let url = fetcher.address("token endpoint", url)?;
        Ok(TokenEndpoint { fetcher, url, issuer: issuer.to_owned(), client, resource })
    }

    /// Redeems the code of a sign-in.
    pub async fn redeem(
        &self,
        code: &str,
        verifier: &SecretText,
        redirect: &str,
    ) -> Result<IssuedTokens, AuthorizationError> {
        self.issue(vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.to_owned()),
            ("code_verifier", verifier.expose().to_owned()),
            ("redirect_uri", redirect.to_owned()),
        ])
        .await
    }

    pub async fn refresh(&self, token: &SecretText) -> Result<IssuedTokens, AuthorizationError> {
        self.issue(vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", token.expose().to_owned()),
        ])
        .await
    }

    /// Requests a token for this client itself, without a person.
    pub async fn client_credentials(
        &self,
        scope: Option<&str>,
    ) -> Result<IssuedTokens, AuthorizationError> {
        let mut fields = vec![("grant_type", "client_credentials".to_owned())];
        fields.extend(scope.map(|scope| ("scope", scope.to_owned())));
        self.issue(fields).await
    }

    /// Revokes a token. The server's answer does not matter: the token is forgotten here.
    pub async fn revoke(&self, endpoint: &str, token: &SecretText) {
        if let Ok(url) = self.fetcher.address("revocation endpoint", endpoint) {
            let fields = vec![("token", token.expose().to_owned())];
            let _ = self.post("revocation", &url, fields).await;
        }
    }

    pub(super) async fn issue(
        &self,
        mut fields: Vec<(&'static str, String)>,
    ) -> Result<IssuedTokens, AuthorizationError> {
        fields.extend(self.resource.clone().map(|resource| ("resource", resource)));
        let fetched = self.post(TOKEN, &self.url, fields).await?;
        if !fetched.status.is_success() {
            return Err(refusal(TOKEN, &self.url, &fetched));
        }
        IssuedTokens::parse(&fetched.body)
    }

    pub(super) async fn post(
        &self,
        what: &'static str,
        url: &Url,
        mut fields: Vec<(&'static str, String)>,
    ) -> Result<Fetched, AuthorizationError> {
        let ClientIdentity { id, secret, auth } = &self.client;
        let secret = secret.as_ref().map(SecretText::expose);
        let mut login = None;
        match (auth, secret) {
            (ClientAuth::Basic, Some(secret)) => login = Some(basic(id, secret)?),
            (ClientAuth::Post, Some(secret)) => {
                fields.push(("client_id", id.clone()));
                fields.push(("client_secret", secret.to_owned()));
            }
            (ClientAuth::PrivateKeyJwt, Some(key)) => {
                fields.push(("client_id", id.clone()));
                fields.push(("client_assertion_type", ASSERTION_TYPE.to_owned()));
                fields.push(("client_assertion", jwt::assertion(id, &self.issuer, key)?));
            }
            (ClientAuth::None, _)
            | (ClientAuth::Basic | ClientAuth::Post | ClientAuth::PrivateKeyJwt, None) => {
                fields.push(("client_id", id.clone()));
            }
        }
        self.fetcher.post_form(what, url, &fields, login).await
    }
}

fn basic(id: &str, secret: &str) -> Result<HeaderValue, AuthorizationError> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let login = BASE64.encode(format!("{}:{}", encoded(id), encoded(secret)));
    let mut value = HeaderValue::from_str(&format!("Basic {login}"))
        .map_err(|_| AuthorizationError::Key("the client secret cannot be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns the error for a response that is no success.
pub(super) fn refusal(what: &'static str, url: &Url, fetched: &Fetched) -> AuthorizationError {
    match serde_json::from_slice::<WireRefusal>(&fetched.body) {
        Ok(wire) => AuthorizationError::refused(&wire.error, wire.error_description.as_deref()),
        Err(_) => {
            let host = url.host_str().unwrap_or("?").to_owned();
            AuthorizationError::Status { what, host, status: fetched.status.as_u16() }
        }
    }
}

impl IssuedTokens {
    fn parse(body: &[u8]) -> Result<IssuedTokens, AuthorizationError> {
        let invalid = |reason: &str| AuthorizationError::invalid(TOKEN, reason);
        let wire: WireTokens =
            serde_json::from_slice(body).map_err(|error| invalid(&place(&error)))?;
        let is_bearer = |kind: &str| kind.eq_ignore_ascii_case("bearer");
        if !wire.token_type.as_deref().is_none_or(is_bearer) {
            return Err(invalid("it is not a bearer token"));
        }
        let is_fit = |token: &str| {
            let is_sendable = token.bytes().all(|byte| byte.is_ascii_graphic());
            !token.is_empty() && token.len() <= limits::TOKEN_BYTES_MAX && is_sendable
        };
        if !is_fit(&wire.access_token) {
            return Err(invalid("it cannot be sent in a header"));
        }
        let refresh = wire.refresh_token.filter(|token| !token.is_empty());
        if refresh.as_ref().is_some_and(|token| token.len() > limits::TOKEN_BYTES_MAX) {
            return Err(invalid("its refresh token is too long"));
        }
        Ok(IssuedTokens {
            access: SecretText::new(wire.access_token),
            refresh: refresh.map(SecretText::new),
            lifetime: wire.expires_in.as_ref().and_then(lifetime),
            scope: wire.scope,
        })
    }
}

/// The longest lifetime that is believed; a longer one makes no difference.
const LIFETIME_MAX: Duration = Duration::from_hours(24 * 365);

/// Reads `expires_in`: a number, or digits in a string. Zero or less cannot be meant: such a token is
/// used until it is refused.
fn lifetime(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    let is_real = seconds.is_finite() && seconds >= 1.0;
    is_real.then(|| Duration::from_secs_f64(seconds.min(LIFETIME_MAX.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_read_as_far_as_they_can_be_true() {
        for (text, expected) in [
            ("3600", Some(3600)),
            ("\"3600\"", Some(3600)),
            ("3600.5", Some(3600)),
            ("0", None),
            ("-1", None),
            ("1e300", Some(LIFETIME_MAX.as_secs())),
            ("99999999999999999999", Some(LIFETIME_MAX.as_secs())),
            ("\"soon\"", None),
            ("null", None),
            ("[1]", None),
        ] {
            let found = lifetime(&serde_json::from_str(text).unwrap());
            assert_eq!(found.map(|found| found.as_secs()), expected, "{text}");
        }
    }

    #[test]
    fn only_bearer_tokens_that_fit_a_header_are_taken() {
        let long = format!(r#"{{"access_token":"{}"}}"#, "x".repeat(limits::TOKEN_BYTES_MAX + 1));
        for (body, expected) in [
            (r#"{"access_token":"a","token_type":"Bearer"}"#, true),
            (r#"{"access_token":"a","token_type":"bEARER","expires_in":"x","scope":"s"}"#, true),
            (r#"{"access_token":"a"}"#, true),
            (r#"{"access_token":"","token_type":"Bearer"}"#, false),
            (r#"{"access_token":"a b","token_type":"Bearer"}"#, false),
            ("{\"access_token\":\"a\\nX: y\"}", false),
            (r#"{"access_token":"a","token_type":"DPoP"}"#, false),
            (r#"{"token_type":"Bearer"}"#, false),
            ("[]", false),
            (&long, false),
        ] {
            assert_eq!(IssuedTokens::parse(body.as_bytes()).is_ok(), expected, "{body:.60}");
        }
    }

    #[test]
    fn a_login_is_encoded_before_it_is_joined() {
        let login = basic("a:b", "c d%").unwrap();
        let expected = BASE64.encode("a%3Ab:c+d%25");
        assert_eq!(login.to_str().unwrap(), format!("Basic {expected}"));
    }
}
