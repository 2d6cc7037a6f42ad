//! The sign-in of a person in a browser: the address to open, and the check of the response. PKCE
//! with S256 and a `state` of 256 bits are always sent.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use url::{Host, Url, form_urlencoded};

use super::discovery::{ProtectedServer, ServerAuthorization};
use super::error::AuthorizationError;
use super::exchange::{IssuedTokens, TokenEndpoint};
use super::identity::{self, ClientIdentity};
use super::secret::SecretText;
use crate::limits;

/// A sign-in that waits for its response.
pub struct AuthorizationRequest {
    /// The address to open in a browser.
    pub url: Url,
    /// Identifies the response.
    pub state: String,
    redirect: String,
    verifier: SecretText,
    issuer: String,
    names_issuer: bool,
    pub endpoint: TokenEndpoint,
}

/// The parameters of a response, as the browser brought them.
#[derive(Default)]
pub struct CallbackParameters {
    pub state: Option<String>,
    code: Option<String>,
    issuer: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

impl CallbackParameters {
    /// Reads a query. A parameter that is given twice is not valid (RFC 6749).
    pub fn parse(query: &str) -> Result<CallbackParameters, AuthorizationError> {
        let mut found = CallbackParameters::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let slot = match &*name {
                "state" => &mut found.state,
                "code" => &mut found.code,
                "iss" => &mut found.issuer,
                "error" => &mut found.error,
                "error_description" => &mut found.description,
                _ => continue,
            };
            if slot.replace(value.into_owned()).is_some() {
                return Err(AuthorizationError::invalid("response", "a parameter occurs twice"));
            }
        }
        Ok(found)
    }
}

impl ProtectedServer {
    /// Registers this client for one redirect address; for the device flow, without one.
    pub async fn register(
        &self,
        discovery: &ServerAuthorization,
        name: &str,
        redirect: Option<&str>,
    ) -> Result<ClientIdentity, AuthorizationError> {
        identity::register(self.authority(), &discovery.server, name, redirect).await
    }

    /// Returns the token endpoint for a client.
    pub fn endpoint(
        &self,
        discovery: &ServerAuthorization,
        client: ClientIdentity,
        resource: Option<String>,
    ) -> TokenEndpoint {
        TokenEndpoint::found(self, discovery, client, resource)
    }
}

impl AuthorizationRequest {
    /// Prepares a sign-in. `assume_pkce`: a person says that the server supports PKCE.
    pub fn new(
        discovery: &ServerAuthorization,
        endpoint: TokenEndpoint,
        redirect: &str,
        scopes: &[String],
        assume_pkce: bool,
    ) -> Result<AuthorizationRequest, AuthorizationError> {
        let server = &discovery.server;
        if !server.has_pkce && !assume_pkce {
            return Err(AuthorizationError::NoPkce);
        }
        let page = server.authorization_endpoint.clone();
        let mut url = page.ok_or(AuthorizationError::Unsupported("sign-in in a browser"))?;
        let (state, verifier) = (random()?, random()?);
        let challenge = BASE64.encode(digest(&SHA256, verifier.as_bytes()));
        let scope = scopes.join(" ");
        let mut ours = vec![
            ("response_type", "code"),
            ("client_id", &endpoint.client.id),
            ("redirect_uri", redirect),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        if !scope.is_empty() {
            ours.push(("scope", &scope));
        }
        if scopes.iter().any(|scope| scope == OFFLINE) {
            // OpenID Connect grants it only with the person's consent.
            ours.push(("prompt", "consent"));
        }
        if let Some(resource) = &endpoint.resource {
            ours.push(("resource", resource));
        }
        ask(&mut url, &ours);
        Ok(AuthorizationRequest {
            url,
            state,
            redirect: redirect.to_owned(),
            verifier: SecretText::new(verifier),
            issuer: server.issuer.clone(),
            names_issuer: server.names_issuer,
            endpoint,
        })
    }

    /// Checks the response and redeems its code. The caller has found this request by its `state`.
    pub async fn finish(
        &self,
        response: &CallbackParameters,
    ) -> Result<IssuedTokens, AuthorizationError> {
        let code = self.code(response)?;
        self.endpoint.redeem(code, &self.verifier, &self.redirect).await
    }

    fn code<'a>(&self, response: &'a CallbackParameters) -> Result<&'a str, AuthorizationError> {
        let is_ours = match &response.issuer {
            // Compared as it is written (RFC 9207).
            Some(issuer) => *issuer == self.issuer,
            None => !self.names_issuer,
        };
        if !is_ours || response.state.as_deref() != Some(&self.state) {
            return Err(AuthorizationError::ForeignResponse);
        }
        if let Some(error) = &response.error {
            return Err(AuthorizationError::refused(error, response.description.as_deref()));
        }
        let code = response.code.as_deref().filter(|code| !code.is_empty());
        code.ok_or_else(|| AuthorizationError::invalid("response", "it has no code"))
    }
}

/// Parameters that only this client may set, in addition to those that it sets in each request. The
/// last three would replace the others, or lead the response elsewhere.
const RESERVED: [&str; 5] = ["scope", "resource", "request", "request_uri", "response_mode"];

/// Adds our parameters to the query of an authorization endpoint. What the query already says under
/// one of their names, in any case, is dropped: servers disagree on which of two counts.
fn ask(url: &mut Url, ours: &[(&str, &str)]) {
    let is_ours = |name: &str| {
        let mut reserved = RESERVED.into_iter().chain(ours.iter().map(|(name, _)| *name));
        reserved.any(|known| known.eq_ignore_ascii_case(name))
    };
    let pairs = url.query_pairs().into_owned();
    let kept: Vec<(String, String)> = pairs.filter(|(name, _)| !is_ours(name)).collect();
    url.query_pairs_mut().clear().extend_pairs(kept).extend_pairs(ours);
}

/// The scope that asks for a refresh token.
const OFFLINE: &str = "offline_access";

impl ServerAuthorization {
    /// Returns the scopes to request: those that a person chose, else those of the challenge, else
    /// those that the server publishes. Scopes of an earlier sign-in are kept.
    pub fn scopes(
        &self,
        chosen: &[String],
        challenged: Option<&str>,
        earlier: &[String],
    ) -> Vec<String> {
        let split = |text: &str| text.split_ascii_whitespace().map(str::to_owned).collect();
        let wanted: Vec<String> = match (chosen, challenged) {
            ([], Some(challenged)) => split(challenged),
            ([], None) if earlier.is_empty() => self.scopes.clone(),
            ([], None) => Vec::new(),
            (chosen, _) => chosen.to_vec(),
        };
        let mut all: Vec<String> = Vec::new();
        let is_refreshable = self.server.scopes.iter().any(|scope| scope == OFFLINE);
        let offline = is_refreshable.then(|| OFFLINE.to_owned());
        for scope in earlier.iter().cloned().chain(wanted).chain(offline) {
            if !all.contains(&scope) && all.len() < limits::SCOPES_MAX {
                all.push(scope);
            }
        }
        all
    }
}

/// Returns the port of a redirect address on this machine.
pub fn redirect_port(redirect: &str) -> Option<u16> {
    let url = Url::parse(redirect).ok()?;
    let is_own = matches!(url.host(), Some(Host::Ipv4(address)) if address.is_loopback());
    url.port().filter(|_| is_own)
}

/// Returns 256 random bits as text.
pub(super) fn random() -> Result<String, AuthorizationError> {
    let mut bytes = [0; 32];
    let failed = AuthorizationError::Key("the system gives no random numbers");
    getrandom::fill(&mut bytes).map_err(|_| failed)?;
    Ok(BASE64.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_brings_no_parameter_of_ours() {
        let ours = [("client_id", "me"), ("redirect_uri", "http://127.0.0.1:1/c"), ("state", "s")];
        let asked = "client_id=me&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fc&state=s";
        for (brought, kept) in [
            ("", ""),
            ("?", ""),
            ("?tenant=a&p=b%26c", "tenant=a&p=b%26c&"),
            ("?redirect_uri=https%3A%2F%2Fevil%2F&client_id=x&state=y", ""),
            ("?p=1&Redirect_URI=https://evil/&STATE=y&p=2", "p=1&p=2&"),
            ("?redirect%5Furi=https://evil/", ""),
            ("?state=y&state=z&prompt=login", "prompt=login&"),
            ("?request=jwt&request_uri=https://evil/&response_mode=form_post", ""),
            ("?scope=all&resource=https://other/", ""),
        ] {
            let mut url = Url::parse(&format!("https://as.example/authorize{brought}")).unwrap();
            ask(&mut url, &ours);
            assert_eq!(url.query(), Some(&*format!("{kept}{asked}")), "{brought}");
        }
    }
}
