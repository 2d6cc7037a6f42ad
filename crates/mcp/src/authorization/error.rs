//! The reasons that no token was obtained. Texts name hosts and parameters, never a token or secret.

use crate::limits;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationError {
    #[error("the address of the {what} cannot be used: {reason}")]
    Address { what: &'static str, reason: &'static str },
    #[error("cannot reach {host} for the {what}: {cause}")]
    Unreachable { what: &'static str, host: String, cause: String },
    #[error("{host} redirects the request for the {what} to {to}; redirects are not followed")]
    Redirect { what: &'static str, host: String, to: String },
    #[error("{host} answered HTTP {status} for the {what}")]
    Status { what: &'static str, host: String, status: u16 },
    #[error("the {0} exceeds {max} bytes", max = limits::AUTHORIZATION_BYTES_MAX)]
    TooLong(&'static str),
    #[error("the {what} is not valid: {reason}")]
    Invalid { what: &'static str, reason: String },
    #[error(
        "the server publishes no authorization metadata, so it offers no sign-in; if it takes a \
         fixed token, set it in 'headers'"
    )]
    NoMetadata,
    #[error("the metadata is of the resource '{found}', not of this server")]
    Resource { found: String },
    #[error("the metadata of the authorization server '{expected}' names the issuer '{found}'")]
    Issuer { expected: String, found: String },
    #[error(
        "the authorization server does not support PKCE with S256, which is required; if it does \
         without saying so, set 'assume_pkce' in 'oauth'"
    )]
    NoPkce,
    #[error(
        "the authorization server registers no clients: register one there and set 'client_id' in \
         'oauth'"
    )]
    NoRegistration,
    #[error("the authorization server offers no {0}")]
    Unsupported(&'static str),
    #[error("the authorization server refused: {error}{}", words(.description))]
    Refused { error: String, description: Option<String> },
    #[error("the response of the sign-in came from another authorization server")]
    ForeignResponse,
    #[error("{0}")]
    Key(&'static str),
}

fn words(description: &Option<String>) -> String {
    description.as_ref().map_or(String::new(), |text| format!(" ({text})"))
}

impl AuthorizationError {
    pub(super) fn invalid(what: &'static str, reason: impl Into<String>) -> AuthorizationError {
        AuthorizationError::Invalid { what, reason: reason.into() }
    }

    /// Returns a refusal in the authorization server's own words, which are cut and made printable.
    pub(super) fn refused(error: &str, description: Option<&str>) -> AuthorizationError {
        let description = description.map(printable).filter(|text| !text.is_empty());
        AuthorizationError::Refused { error: printable(error), description }
    }

    /// Reports whether the server offers no sign-in at all.
    pub fn is_lack(&self) -> bool {
        matches!(self, AuthorizationError::NoMetadata)
    }

    /// Reports whether the grant or the client is not valid any more, so that only another sign-in
    /// helps.
    pub fn ends_grant(&self) -> bool {
        match self {
            AuthorizationError::Refused { error, .. } => matches!(
                error.as_str(),
                "invalid_grant" | "invalid_client" | "unauthorized_client" | "invalid_token"
            ),
            _ => false,
        }
    }

    /// Reports whether the client itself is not valid any more: another must be registered.
    pub fn ends_client(&self) -> bool {
        match self {
            AuthorizationError::Refused { error, .. } => {
                matches!(error.as_str(), "invalid_client" | "unauthorized_client")
            }
            _ => false,
        }
    }
}

fn printable(text: &str) -> String {
    let fit = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(limits::AUTHORIZATION_WORDS_MAX).map(fit).collect::<String>().trim().into()
}
