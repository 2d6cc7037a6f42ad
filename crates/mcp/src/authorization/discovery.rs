//! Finds the authorization server of a protected server: by the server's challenge, else at the
//! well-known addresses of RFC 9728, else on the server itself, as before 2025-06-18.

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use url::Url;

use super::error::AuthorizationError;
use super::fetch::{Fetched, Fetcher};
use super::metadata::{AuthorizationServer, place, shortened};
use crate::http::address::is_loopback;
use crate::http::{AddressRule, Challenge};
use crate::limits;

const RESOURCE_METADATA: &str = "metadata of the protected server";
const SERVER_METADATA: &str = "metadata of the authorization server";

/// A server that requires tokens.
pub struct ProtectedServer {
    url: Url,
    fetcher: Fetcher,
    /// The address of the authorization server's metadata, if a person set it.
    metadata: Option<Url>,
    /// Fetches what the authorization server names.
    authority: Fetcher,
}

/// The way to tokens for a protected server.
#[derive(Clone, Debug)]
pub struct ServerAuthorization {
    /// The identifier of the protected server, as it publishes it.
    pub resource: String,
    /// The scopes that the protected server names.
    pub scopes: Vec<String>,
    pub server: AuthorizationServer,
}

#[derive(Deserialize)]
struct WireResource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

impl ProtectedServer {
    /// Checks that tokens can be sent to the server: not in clear text over a network. `metadata` is
    /// the address of its authorization server's metadata, if a person set it.
    pub async fn new(
        url: &str,
        metadata: Option<&str>,
    ) -> Result<ProtectedServer, AuthorizationError> {
        let unfit = |reason| AuthorizationError::Address { what: "server", reason };
        let url = Url::parse(url).map_err(|_| unfit("it is not a URL"))?;
        if url.scheme() != "https" && !is_loopback(&url) {
            return Err(unfit("it is plain http, so that everybody on the way could read tokens"));
        }
        let fetcher = Fetcher { addresses: AddressRule::around(&url).await };
        let (metadata, authority) = match metadata {
            Some(address) => {
                let unfit = |_| AuthorizationError::Address {
                    what: SERVER_METADATA,
                    reason: "it is not a URL",
                };
                let near = AddressRule::around(&Url::parse(address).map_err(unfit)?).await;
                let authority = Fetcher { addresses: near.max(fetcher.addresses) };
                (Some(authority.address(SERVER_METADATA, address)?), authority)
            }
            None => (None, fetcher),
        };
        Ok(ProtectedServer { url, fetcher, metadata, authority })
    }

    pub(super) fn authority(&self) -> Fetcher {
        self.authority
    }

    /// Finds the authorization server.
    pub async fn discover(
        &self,
        challenge: &Challenge,
    ) -> Result<ServerAuthorization, AuthorizationError> {
        let resource = self.resource(challenge).await?;
        let server = match (&self.metadata, &resource) {
            (Some(url), _) => {
                let fetched = self.authority.get(SERVER_METADATA, url).await?;
                let body = succeeded(SERVER_METADATA, url, fetched)?;
                AuthorizationServer::parse(self.authority, &body, None)?
            }
            (None, Some(resource)) => self.first_server(&resource.authorization_servers).await?,
            (None, None) => {
                let origin = self.url.origin().ascii_serialization();
                self.server(&origin).await?.ok_or(AuthorizationError::NoMetadata)?
            }
        };
        let (resource, scopes) = match resource {
            Some(found) => (found.resource, found.scopes_supported),
            None => (self.canonical(), Vec::new()),
        };
        Ok(ServerAuthorization { resource, scopes, server })
    }

    /// Returns the metadata of the protected server; `None` if it publishes none.
    async fn resource(
        &self,
        challenge: &Challenge,
    ) -> Result<Option<WireResource>, AuthorizationError> {
        if let Some(address) = &challenge.resource_metadata {
            let url = self.fetcher.address(RESOURCE_METADATA, address)?;
            let fetched = self.fetcher.get(RESOURCE_METADATA, &url).await?;
            let body = succeeded(RESOURCE_METADATA, &url, fetched)?;
            return self.checked(&body).map(Some);
        }
        let mut candidates = vec![well_known(&self.url, "oauth-protected-resource")];
        if !matches!(self.url.path(), "" | "/") {
            candidates.push(self.url.join("/.well-known/oauth-protected-resource").ok());
        }
        for url in candidates.into_iter().flatten() {
            if let Some(body) = self.optional(RESOURCE_METADATA, &url).await? {
                return self.checked(&body).map(Some);
            }
        }
        Ok(None)
    }

    fn checked(&self, body: &[u8]) -> Result<WireResource, AuthorizationError> {
        let found: WireResource = serde_json::from_slice(body)
            .map_err(|error| AuthorizationError::invalid(RESOURCE_METADATA, place(&error)))?;
        if !self.is_ours(&found.resource) {
            return Err(AuthorizationError::Resource { found: shortened(&found.resource) });
        }
        Ok(found)
    }

    /// Reports whether a published identifier covers this server: the same origin, and a path that
    /// the server's path continues.
    fn is_ours(&self, resource: &str) -> bool {
        let Ok(resource) = Url::parse(resource) else { return false };
        let whole = |url: &Url| format!("{}/", url.path().trim_end_matches('/'));
        resource.origin() == self.url.origin()
            && resource.fragment().is_none()
            && whole(&self.url).starts_with(&whole(&resource))
    }

    fn canonical(&self) -> String {
        let mut url = self.url.clone();
        url.set_fragment(None);
        url.set_query(None);
        url.as_str().trim_end_matches('/').to_owned()
    }

    async fn first_server(
        &self,
        issuers: &[String],
    ) -> Result<AuthorizationServer, AuthorizationError> {
        let mut failure = AuthorizationError::NoMetadata;
        for issuer in issuers.iter().take(limits::AUTHORIZATION_SERVERS_MAX) {
            match self.server(issuer).await {
                Ok(Some(server)) => return Ok(server),
                Ok(None) => {}
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Returns an authorization server by its issuer; `None` if it publishes no metadata.
    async fn server(
        &self,
        issuer: &str,
    ) -> Result<Option<AuthorizationServer>, AuthorizationError> {
        let url = self.fetcher.address("authorization server", issuer)?;
        let has_path = !matches!(url.path(), "" | "/");
        let appended =
            format!("{}/.well-known/openid-configuration", url.path().trim_end_matches('/'));
        let candidates = [
            well_known(&url, "oauth-authorization-server"),
            well_known(&url, "openid-configuration"),
            url.join(&appended).ok().filter(|_| has_path),
        ];
        for candidate in candidates.into_iter().flatten() {
            if let Some(body) = self.optional(SERVER_METADATA, &candidate).await? {
                return AuthorizationServer::parse(self.fetcher, &body, Some(issuer)).map(Some);
            }
        }
        Ok(None)
    }

    /// Fetches a document that may not exist: servers answer many statuses for what they lack.
    async fn optional(
        &self,
        what: &'static str,
        url: &Url,
    ) -> Result<Option<Bytes>, AuthorizationError> {
        let fetched = self.fetcher.get(what, url).await?;
        match fetched.status {
            StatusCode::OK => Ok(Some(fetched.body)),
            status if status.is_server_error() => Err(status_of(what, url, status)),
            _ => Ok(None),
        }
    }
}

/// Returns the body of a document that must exist.
fn succeeded(what: &'static str, url: &Url, fetched: Fetched) -> Result<Bytes, AuthorizationError> {
    match fetched.status {
        StatusCode::OK => Ok(fetched.body),
        status => Err(status_of(what, url, status)),
    }
}

fn status_of(what: &'static str, url: &Url, status: StatusCode) -> AuthorizationError {
    let host = url.host_str().unwrap_or("?").to_owned();
    AuthorizationError::Status { what, host, status: status.as_u16() }
}

/// Inserts a well-known name before the path of a URL.
fn well_known(url: &Url, name: &str) -> Option<Url> {
    let path = url.path().trim_end_matches('/');
    let mut at = url.join(&format!("/.well-known/{name}{path}")).ok()?;
    at.set_query(url.query());
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn server(url: &str) -> ProtectedServer {
        ProtectedServer::new(url, None).await.unwrap()
    }

    #[tokio::test]
    async fn a_published_identifier_must_cover_the_server() {
        let server = server("http://127.0.0.1:1/a/mcp?x=1").await;
        for (resource, expected) in [
            ("http://127.0.0.1:1/a/mcp", true),
            ("http://127.0.0.1:1/a/mcp/", true),
            ("http://127.0.0.1:1", true),
            ("http://127.0.0.1:1/a", true),
            ("http://127.0.0.1:1/a/m", false),
            ("http://127.0.0.1:1/a/mcp/more", false),
            ("http://127.0.0.1:2/a/mcp", false),
            ("https://127.0.0.1:1/a/mcp", false),
            ("http://127.0.0.1:1/a/mcp#x", false),
            ("https://evil.example/a/mcp", false),
            ("mcp", false),
        ] {
            assert_eq!(server.is_ours(resource), expected, "{resource}");
        }
        assert_eq!(server.canonical(), "http://127.0.0.1:1/a/mcp");
    }

    #[tokio::test]
    async fn tokens_do_not_travel_in_clear_text() {
        for url in ["http://example.test/mcp", "ftp://127.0.0.1x/", "nonsense"] {
            assert!(ProtectedServer::new(url, None).await.is_err(), "{url}");
        }
    }

    #[tokio::test]
    async fn addresses_that_a_server_names_are_checked() {
        // From far to near; `AnyOverTls` is that of a name that somebody lets resolve to this machine.
        let rules = [
            AddressRule::Public,
            AddressRule::Private,
            AddressRule::AnyOverTls,
            server("http://127.0.0.1:1/mcp").await.authority().addresses,
        ];
        for (address, expected) in [
            ("https://as.example/token", [true, true, true, true]),
            ("https://10.0.0.1/token", [false, true, true, true]),
            ("https://[fd00::1]/token", [false, true, true, true]),
            ("https://127.0.0.1:9/token", [false, false, true, true]),
            ("https://2130706433/token", [false, false, true, true]),
            ("https://169.254.169.254/token", [false, false, true, true]),
            ("https://[::ffff:127.0.0.1]/token", [false, false, true, true]),
            ("https://localhost./token", [false, false, true, true]),
            ("http://127.0.0.1:9/token", [false, false, false, true]),
            ("http://localhost/token", [false, false, false, true]),
            ("http://10.0.0.1/token", [false; 4]),
            ("http://as.example/token", [false; 4]),
            ("javascript:alert(1)", [false; 4]),
            ("file:///etc/passwd", [false; 4]),
            ("data:text/html,x", [false; 4]),
            ("https://user@as.example/", [false; 4]),
            ("https://as.example/#x", [false; 4]),
            ("/token", [false; 4]),
            ("", [false; 4]),
        ] {
            let found = rules.map(|addresses| Fetcher { addresses }.address("x", address).is_ok());
            assert_eq!(found, expected, "{address}");
        }
    }

    /// Each address that metadata names is checked, and a person's own setting widens the rule for
    /// the authorization server alone.
    #[tokio::test]
    async fn every_endpoint_of_a_public_server_is_public() {
        let far = Fetcher { addresses: AddressRule::Public };
        let plain = serde_json::json!({"issuer": "https://as", "token_endpoint": "https://as/t"});
        for name in [
            "authorization_endpoint",
            "token_endpoint",
            "registration_endpoint",
            "device_authorization_endpoint",
            "revocation_endpoint",
        ] {
            for (address, expected) in [
                ("https://as/x", true),
                ("https://192.168.0.1/x", false),
                ("https://[::1]/", false),
            ] {
                let mut metadata = plain.clone();
                metadata[name] = address.into();
                let parsed = AuthorizationServer::parse(far, metadata.to_string().as_bytes(), None);
                assert_eq!(parsed.is_ok(), expected, "{name} {address}");
            }
        }
        let own = ProtectedServer::new("https://93.184.216.34/mcp", Some("https://10.0.0.1/as"));
        let own = own.await.unwrap();
        assert_eq!(own.authority().addresses, AddressRule::Private);
        assert_eq!(own.fetcher.addresses, AddressRule::Public);
    }
}
