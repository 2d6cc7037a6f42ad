//! The checked values of `oauth`: how the gate signs in to a server.

use super::template::ConfigTemplate;
use crate::choice;

/// The settings of the sign-in to a server. Without any, the gate finds everything out itself.
#[derive(Clone, Debug, PartialEq)]
pub struct OAuth {
    /// A registered client, or the https URL of its metadata document.
    pub client_id: Option<String>,
    pub client_secret: Option<ConfigTemplate>,
    /// A private key in PEM, for a client that signs its requests for tokens.
    pub private_key: Option<ConfigTemplate>,
    /// `None` uses one that the authorization server supports.
    pub auth_method: Option<TokenAuth>,
    pub scopes: Vec<String>,
    pub grant: OAuthGrant,
    /// `None` finds it as the protocol says.
    pub metadata_url: Option<String>,
    /// Names the server in requests for tokens (RFC 8707).
    pub resource: bool,
    /// Trusts that the authorization server supports PKCE though it does not say so.
    pub assume_pkce: bool,
}

impl Default for OAuth {
    fn default() -> OAuth {
        OAuth {
            client_id: None,
            client_secret: None,
            private_key: None,
            auth_method: None,
            scopes: Vec::new(),
            grant: OAuthGrant::Person,
            metadata_url: None,
            resource: true,
            assume_pkce: false,
        }
    }
}

impl OAuth {
    /// Returns every text that may have placeholders.
    pub fn templates(&self) -> impl Iterator<Item = &ConfigTemplate> {
        self.client_secret.iter().chain(&self.private_key)
    }
}

choice! {
    /// The party that a token is issued to.
    OAuthGrant {
        /// A person, who signs in.
        Person = "authorization_code",
        /// The gate itself.
        Machine = "client_credentials",
    }
}

choice! {
    /// The way to send a client's secret.
    TokenAuth {
        None = "none",
        Basic = "client_secret_basic",
        Post = "client_secret_post",
    }
}
