//! The values of `${secret:NAME}` in the definition of a server. They are read from the vault when a
//! connection is made, so that a changed secret applies to the next one.

use std::collections::BTreeMap;

use domain::config::{ConfigTemplate, MissingValue};
use domain::ledger::redaction::KnownSecrets;
use domain::upstream::UpstreamFailure;
use store::vault::{Secret, Space, Vault};
use tokio::sync::oneshot;

use crate::spec::ServerEndpoint;

/// The value that stands for a secret whose value does not matter.
const ASSUMED: &str = "secret";

/// The source of the secrets of servers.
#[derive(Clone)]
pub(crate) struct SecretSupply {
    vault: Vault,
    /// The values that were handed out, which records and logs must not have.
    known: KnownSecrets,
}

impl SecretSupply {
    pub(crate) fn new(vault: &Vault, known: &KnownSecrets) -> SecretSupply {
        SecretSupply { vault: vault.clone(), known: known.clone() }
    }

    /// Removes what was handed out from the words of a failure.
    pub(crate) fn redacted(&self, failure: UpstreamFailure) -> UpstreamFailure {
        let redacted = |text: String| self.known.redact(&text).unwrap_or(text);
        UpstreamFailure { reason: redacted(failure.reason), said: failure.said.map(redacted) }
    }
}

/// The secrets that one server may use.
#[derive(Debug, Default)]
pub(crate) struct SecretValues(BTreeMap<String, Secret>);

impl SecretValues {
    /// Reads the secrets that an endpoint refers to; those that are not set are missing. Without
    /// any, neither the vault nor the keychain is opened.
    pub(crate) async fn of(
        supply: &SecretSupply,
        endpoint: &ServerEndpoint,
    ) -> Result<Self, String> {
        let names: Vec<String> = endpoint.secrets().into_iter().map(str::to_owned).collect();
        if names.is_empty() {
            return Ok(SecretValues::default());
        }
        let supply = supply.clone();
        let (done, read) = oneshot::channel();
        // A keychain may take seconds, and the blocking threads are few.
        let reading = std::thread::Builder::new().name("secrets".to_owned()).spawn(move || {
            let _ = done.send(SecretValues::read(&supply, names));
        });
        reading.map_err(|error| format!("cannot start a thread to read secrets: {error}"))?;
        read.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn read(supply: &SecretSupply, names: Vec<String>) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        for name in names {
            let value = supply.vault.get(Space::Secret, &name);
            if let Some(value) = value.map_err(|error| error.to_string())? {
                supply.known.add(value.expose());
                values.insert(name, value);
            }
        }
        Ok(SecretValues(values))
    }

    /// Returns a value for each secret of an endpoint that is set, without reading it. Blocks.
    pub(crate) fn assumed(vault: &Vault, endpoint: &ServerEndpoint) -> Result<Self, String> {
        let wanted = endpoint.secrets();
        if wanted.is_empty() {
            return Ok(SecretValues::default());
        }
        let known = vault.names(Space::Secret).map_err(|error| error.to_string())?;
        let set = known.into_iter().filter(|known| wanted.contains(&*known.name));
        Ok(SecretValues(set.map(|known| (known.name, Secret::from(ASSUMED))).collect()))
    }

    /// Returns a text with its variables, from this process's environment, and its secrets.
    pub(crate) fn expand(&self, template: &ConfigTemplate) -> Result<String, MissingValue> {
        let secret = |name: &str| self.0.get(name).map(|secret| secret.expose().to_owned());
        template.expand(&|name| std::env::var(name).ok(), &secret)
    }
}
