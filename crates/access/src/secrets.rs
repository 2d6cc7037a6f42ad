//! The values of `${secret:NAME}` in the definition of a server. They are read from the vault when a
//! connection is made, so that a changed secret applies to the next one.

use std::collections::{BTreeMap, BTreeSet};

use domain::config::{ConfigTemplate, MissingValue};
use domain::upstream::UpstreamFailure;
use redact::KnownSecrets;
use tokio::sync::oneshot;
use vault::{Secret, Space, Vault};

/// The placeholder for a secret whose value does not matter.
const ASSUMED: &str = "secret";

/// The schemes of headers, before the credential.
const SCHEMES: [&str; 4] = ["Bearer", "Basic", "Token", "token"];

/// A shorter value without a digit may be a word, which ordinary text has too.
const LONG_BYTES_MIN: usize = 16;

/// The source of the secrets of servers.
#[derive(Clone)]
pub struct SecretSupply {
    vault: Vault,
    /// The values that were handed out, which records and logs must not have.
    known: KnownSecrets,
}

impl SecretSupply {
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    pub fn known(&self) -> &KnownSecrets {
        &self.known
    }

    pub fn new(vault: &Vault, known: &KnownSecrets) -> SecretSupply {
        SecretSupply { vault: vault.clone(), known: known.clone() }
    }

    /// Adds a value that a server gets under a name that names a secret, as a variable or a header.
    pub fn hide(&self, name: &str, value: &str) {
        let scheme = value.split_once(' ').filter(|(scheme, _)| SCHEMES.contains(scheme));
        let credential = scheme.map_or(value, |(_, credential)| credential);
        let is_word = credential.len() < LONG_BYTES_MIN
            && !credential.bytes().any(|byte| byte.is_ascii_digit());
        if redact::hides(name, &value.into()) && !is_word {
            self.known.add(credential);
        }
    }

    /// Removes what was handed out from the words of a failure.
    pub fn redacted(&self, failure: UpstreamFailure) -> UpstreamFailure {
        let redacted = |text: String| self.known.redact(&text).unwrap_or(text);
        UpstreamFailure { reason: redacted(failure.reason), said: failure.said.map(redacted) }
    }
}

/// Works with the vault on a separate thread: a keychain may take seconds, and the blocking threads
/// are few.
pub async fn on_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (done, result) = oneshot::channel();
    start_thread(Box::new(move || {
        let _ = done.send(work());
    }))?;
    result.await.unwrap_or_else(|error| Err(error.to_string()))
}

fn start_thread(work: Box<dyn FnOnce() + Send>) -> Result<(), String> {
    let started = std::thread::Builder::new().name("secrets".to_owned()).spawn(work);
    started.map_err(|error| format!("cannot start a thread to read secrets: {error}"))?;
    Ok(())
}

/// The secrets that one server may use.
#[derive(Debug, Default)]
pub struct SecretValues(BTreeMap<String, Secret>);

impl SecretValues {
    /// Reads secrets by their names; those that are not set are missing. Without
    /// any, neither the vault nor the keychain is opened.
    pub async fn of(supply: &SecretSupply, needed: BTreeSet<&str>) -> Result<Self, String> {
        let names: Vec<String> = needed.into_iter().map(str::to_owned).collect();
        if names.is_empty() {
            return Ok(SecretValues::default());
        }
        let supply = supply.clone();
        on_own_thread(move || SecretValues::read(&supply, names)).await
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

    /// Returns a value for each of these secrets that is set, without reading it. Blocks.
    pub fn assumed(vault: &Vault, wanted: BTreeSet<&str>) -> Result<Self, String> {
        if wanted.is_empty() {
            return Ok(SecretValues::default());
        }
        let known = vault.names(Space::Secret).map_err(|error| error.to_string())?;
        let set = known.into_iter().filter(|known| wanted.contains(&*known.name));
        Ok(SecretValues(set.map(|known| (known.name, Secret::from(ASSUMED))).collect()))
    }

    /// Returns a text with its variables, from this process's environment, and its secrets.
    pub fn expand(&self, template: &ConfigTemplate) -> Result<String, MissingValue> {
        let secret = |name: &str| self.0.get(name).map(|secret| secret.expose().to_owned());
        template.expand(&|name| std::env::var(name).ok(), &secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_gets_under_the_name_of_a_secret_is_known() {
        let supply = SecretSupply::new(
            &Vault::of_home(std::path::Path::new("/nowhere")),
            &KnownSecrets::default(),
        );
        for (name, value) in [
            ("DB_PASSWORD", "monday-lunch-7"),
            ("Authorization", "Bearer tuesday-lunch-8"),
            ("X-Api-Key", "a-word-and-three-more"),
            ("NODE_ENV", "production-1"),
            ("PASSWORD", "postgres"),
        ] {
            supply.hide(name, value);
        }
        let text = "monday-lunch-7 tuesday-lunch-8 a-word-and-three-more production-1 postgres";
        let expected = "[redacted] [redacted] [redacted] production-1 postgres";
        assert_eq!(supply.known.redact(text).as_deref(), Some(expected));
    }
}
