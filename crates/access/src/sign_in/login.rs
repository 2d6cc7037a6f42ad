//! The sign-in of a person: begins it in a browser or with a code, and stores what it was granted.

use std::sync::Arc;

use mcp::authorization::{
    AuthorizationError, AuthorizationRequest, CallbackParameters, DeviceCode, IssuedTokens,
    ProtectedServer, ServerAuthorization, TokenEndpoint,
};

use super::grant::{Grant, GrantClient, GrantTokens};
use super::{GrantHolder, LoginNeed, SignIn, SignInTarget};

/// The name under which the gate registers itself.
const CLIENT_NAME: &str = "Countersign";

/// A sign-in in a browser that waits for its response.
pub struct StartedLogin {
    sign_in: Arc<SignIn>,
    request: AuthorizationRequest,
    grant: Grant,
}

/// A sign-in with a code that a person enters on another machine.
pub struct DeviceLogin {
    sign_in: Arc<SignIn>,
    pub endpoint: TokenEndpoint,
    pub code: DeviceCode,
    grant: Grant,
}

impl StartedLogin {
    /// The address to open in a browser.
    pub fn address(&self) -> &str {
        self.request.url.as_str()
    }

    /// The holder of the grant.
    pub fn holder(&self) -> &GrantHolder {
        &self.sign_in.holder
    }

    pub fn state(&self) -> &str {
        &self.request.state
    }

    /// Checks the response, redeems its code and stores the tokens.
    pub async fn finish(self, response: &CallbackParameters) -> Result<(), String> {
        let issued = self.request.finish(response).await.map_err(|error| error.to_string())?;
        self.sign_in.accept(self.grant, issued).await
    }
}

impl DeviceLogin {
    /// The holder of the grant.
    pub fn holder(&self) -> &GrantHolder {
        &self.sign_in.holder
    }

    pub async fn finish(self, issued: IssuedTokens) -> Result<(), String> {
        self.sign_in.accept(self.grant, issued).await
    }
}

impl SignIn {
    /// Begins a sign-in in a browser, which is to return to this address.
    pub async fn begin(
        self: &Arc<Self>,
        redirect: &str,
    ) -> Result<StartedLogin, AuthorizationError> {
        let (target, server) = self.reached().await?;
        let found = self.discover(&server).await?;
        if found.server.authorization_endpoint.is_none() {
            return Err(AuthorizationError::Unsupported("sign-in in a browser"));
        }
        let (endpoint, grant) = self.as_client(&target, &server, &found, Some(redirect)).await?;
        let scopes = &grant.requested;
        let request = AuthorizationRequest::new(
            &found,
            endpoint,
            redirect,
            scopes,
            self.server.oauth.assume_pkce,
        )?;
        Ok(StartedLogin { sign_in: self.clone(), request, grant })
    }

    /// Begins a sign-in with a code.
    pub async fn begin_device(self: &Arc<Self>) -> Result<DeviceLogin, AuthorizationError> {
        let (target, server) = self.reached().await?;
        let found = self.discover(&server).await?;
        let unsupported = AuthorizationError::Unsupported("sign-in with a code (device flow)");
        let page = found.server.device_endpoint.clone().ok_or(unsupported)?;
        let (endpoint, grant) = self.as_client(&target, &server, &found, None).await?;
        let scope = grant.requested.join(" ");
        let scope = Some(&*scope).filter(|scope| !scope.is_empty());
        let code = endpoint.device_code(&page, scope).await?;
        Ok(DeviceLogin { sign_in: self.clone(), endpoint, code, grant })
    }

    /// Returns the redirect address that the gate is registered for, to use it again.
    pub async fn registered_redirect(&self) -> Option<String> {
        match self.place.read().await.ok()??.client {
            GrantClient::Registered { redirect, .. } => redirect,
            GrantClient::Configured { .. } => None,
        }
    }

    /// Forgets the grant, after revoking it where the authorization server allows that. Returns false
    /// if there was none.
    pub async fn forget(&self) -> Result<bool, String> {
        let _one_at_a_time = self.renewing.lock().await;
        let _one_process = self.place.lock().await?;
        let grant = self.place.read().await?;
        let was_there = self.place.remove().await?;
        self.adopt(None, None);
        if let GrantHolder::Token { .. } = self.holder {
            self.held().need = Some(LoginNeed::Token);
        }
        if let Some(grant) = &grant
            && let (Some(address), Some(tokens)) = (&grant.revocation_endpoint, &grant.tokens)
            && let Ok(endpoint) = self.endpoint(grant).await
        {
            let token = tokens.refresh.as_ref().unwrap_or(&tokens.access);
            endpoint.revoke(address, token).await;
        }
        Ok(was_there)
    }

    pub(super) async fn discover(
        &self,
        server: &ProtectedServer,
    ) -> Result<ServerAuthorization, AuthorizationError> {
        let challenge = self.challenge().clone();
        server.discover(&challenge).await
    }

    /// Returns the scopes to request. After the server wanted more, those of the last sign-in stay.
    pub(super) fn scopes(
        &self,
        found: &ServerAuthorization,
        earlier: Option<&Grant>,
    ) -> Vec<String> {
        let challenged = self.challenge().scope.clone();
        let stepped_up = earlier.filter(|grant| !grant.wanted.is_empty());
        let earlier = stepped_up
            .map(|grant| [&grant.requested[..], &grant.wanted[..]].concat())
            .unwrap_or_default();
        found.scopes(&self.server.oauth.scopes, challenged.as_deref(), &earlier)
    }

    /// Returns a grant without tokens.
    pub(super) fn begun(
        &self,
        target: &SignInTarget,
        found: &ServerAuthorization,
        client: GrantClient,
    ) -> Grant {
        Grant {
            server: target.url.clone(),
            issuer: found.server.issuer.clone(),
            token_endpoint: found.server.token_endpoint.to_string(),
            revocation_endpoint: found.server.revocation_endpoint.as_ref().map(ToString::to_string),
            resource: self.server.oauth.resource.then(|| found.resource.clone()),
            client,
            tokens: None,
            requested: Vec::new(),
            wanted: Vec::new(),
        }
    }

    async fn reached(&self) -> Result<(Arc<SignInTarget>, ProtectedServer), AuthorizationError> {
        let unready = |_| AuthorizationError::Unsupported("sign-in before a connection was tried");
        let target = self.target().map_err(unready)?;
        let server = self.protected(&target.url).await?;
        Ok((target, server))
    }

    /// Identifies the gate: by the configured client, by the one it registered before for the same
    /// address, or by a new one.
    async fn as_client(
        &self,
        target: &SignInTarget,
        server: &ProtectedServer,
        found: &ServerAuthorization,
        redirect: Option<&str>,
    ) -> Result<(TokenEndpoint, Grant), AuthorizationError> {
        // A vault that cannot be read is reported when the grant is stored.
        let earlier = self.place.read().await.ok().flatten();
        let earlier = earlier.filter(|grant| grant.server == target.url);
        let (identity, client) = match target.choice.identity(&found.server) {
            Some(identity) => {
                let id = identity.id.clone();
                (identity, GrantClient::Configured { id })
            }
            None => {
                let registered = earlier.as_ref().and_then(|grant| match &grant.client {
                    GrantClient::Registered { identity, redirect: known }
                        if grant.issuer == found.server.issuer && known.as_deref() == redirect =>
                    {
                        Some(identity.clone())
                    }
                    GrantClient::Registered { .. } | GrantClient::Configured { .. } => None,
                });
                let identity = match registered {
                    Some(identity) => identity,
                    None => server.register(found, CLIENT_NAME, redirect).await?,
                };
                let redirect = redirect.map(str::to_owned);
                (identity.clone(), GrantClient::Registered { identity, redirect })
            }
        };
        let requested = self.scopes(found, earlier.as_ref());
        let grant = Grant { requested, ..self.begun(target, found, client) };
        Ok((server.endpoint(found, identity, grant.resource.clone()), grant))
    }

    /// Stores the tokens of a sign-in.
    async fn accept(&self, grant: Grant, issued: IssuedTokens) -> Result<(), String> {
        let _one_at_a_time = self.renewing.lock().await;
        let _one_process = self.place.lock().await?;
        let tokens = Some(GrantTokens::issued(issued, None));
        if let GrantHolder::Token { .. } = self.holder {
            // Open connections may be those of another person, and end with what they were granted.
            return self.place.write(&Grant { tokens, ..grant }).await;
        }
        self.keep(Grant { tokens, ..grant }).await?;
        self.held().need = None;
        Ok(())
    }
}
