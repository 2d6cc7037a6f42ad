//! Errors of the vault. None of them holds a value or a part of one.

use std::path::Path;

use domain::Code;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("cannot use '{path}': {reason}")]
    File { path: String, reason: String },
    #[error(
        "the secrets in '{path}' are damaged: {reason}; restore the file from a backup, or delete it, \
         set the secrets again with 'countersign secret set NAME' and sign in to servers again"
    )]
    Damaged { path: String, reason: String },
    #[error("'{0}' was written by a newer version; upgrade Countersign")]
    Newer(String),
    #[error(
        "the key of the secrets {0}; restore it from a backup, or remove each secret with \
         'countersign secret remove NAME' and set it again"
    )]
    Key(String),
    #[error(
        "cannot use the OS keychain, in which the key of the secrets belongs: {0}; start Countersign \
         within the desktop session, or keep the key in a file: set \"secrets\": {{\"key\": \"file\"}} \
         in the config, then set one secret again within the session"
    )]
    Keychain(String),
    #[error(
        "cannot get the key of the secrets from the command in \"secrets.key\" of the config: {0}; \
         nothing was changed"
    )]
    Command(String),
    #[error("another process has locked '{0}' for too long; try again")]
    Busy(String),
    #[error("{0}")]
    Input(String),
}

impl VaultError {
    pub fn code(&self) -> Code {
        match self {
            VaultError::Input(_) => Code::InvalidRequest,
            VaultError::File { .. }
            | VaultError::Damaged { .. }
            | VaultError::Newer(_)
            | VaultError::Key(_)
            | VaultError::Keychain(_)
            | VaultError::Command(_)
            | VaultError::Busy(_) => Code::SecretsUnavailable,
        }
    }

    pub(super) fn file(path: &Path, reason: &dyn std::fmt::Display) -> VaultError {
        VaultError::File { path: path.display().to_string(), reason: reason.to_string() }
    }

    pub(super) fn damaged(path: &Path, reason: &str) -> VaultError {
        VaultError::Damaged { path: path.display().to_string(), reason: reason.to_owned() }
    }
}
