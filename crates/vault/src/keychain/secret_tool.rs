//! The Secret Service by way of `secret-tool`, the command of libsecret. A locked keychain may ask the
//! person for its password.

use zeroize::Zeroizing;

use super::super::program::{ProgramFault, Programs};
use super::{Keychain, NOTHING};

const MISSING: &str = "'secret-tool' is not installed; install the package 'libsecret-tools' (Debian, \
                       Ubuntu) or 'libsecret' (Fedora, Arch)";

pub(crate) struct SecretTool(Programs);

impl SecretTool {
    pub(crate) fn new(programs: &Programs) -> SecretTool {
        SecretTool(programs.clone())
    }

    fn run(
        &self,
        verb: &[&str],
        id: &str,
        input: Option<&str>,
    ) -> Result<Zeroizing<Vec<u8>>, String> {
        let attributes = ["application", "countersign", "vault", id];
        let words = [&["secret-tool"][..], verb, &attributes].concat();
        self.0.run(&words, input).map_err(|fault| match fault {
            ProgramFault::Missing(_) => MISSING.to_owned(),
            // It gives no reason if there is no such key, nor if the keychain stays locked.
            ProgramFault::Failed { said: None, .. } => NOTHING.to_owned(),
            ProgramFault::Failed { said: Some(said), .. } => said,
            fault @ (ProgramFault::Io { .. }
            | ProgramFault::Late { .. }
            | ProgramFault::TooLong(_)) => fault.to_string(),
        })
    }
}

impl Keychain for SecretTool {
    fn get(&self, id: &str) -> Result<Zeroizing<String>, String> {
        let key = self.run(&["lookup"], id, None)?;
        let key = str::from_utf8(&key).map_err(|_| NOTHING.to_owned())?;
        Ok(Zeroizing::new(key.to_owned()))
    }

    fn set(&self, id: &str, key: &str) -> Result<(), String> {
        let label = format!("--label=Countersign: key of the secrets {id}");
        self.run(&["store", &label], id, Some(key)).map(drop)
    }

    fn remove(&self, id: &str) -> Result<(), String> {
        self.run(&["clear"], id, None).map(drop)
    }
}
