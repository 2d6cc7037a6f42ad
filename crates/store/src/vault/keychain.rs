//! The keychain of the operating system, which holds the key of the vault: the Secret Service on
//! Linux (GNOME Keyring, KWallet, KeePassXC), the Keychain on macOS. No call takes longer than
//! [`KEYCHAIN_WAIT`], and none asks a person for a password: a locked keychain is an error.

#[cfg(target_os = "linux")]
mod bus;
#[cfg(target_os = "linux")]
mod secret_service;

use std::sync::mpsc;
use std::time::Duration;

use zeroize::Zeroizing;

/// The longest wait for the keychain. It answers in milliseconds; one that has to be started first
/// takes a second.
const KEYCHAIN_WAIT: Duration = Duration::from_secs(5);

/// The reason that the keychain cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum KeychainFault {
    #[error("there is none ({0})")]
    Absent(String),
    #[error("it is locked; unlock it and try again")]
    Locked,
    #[error("it does not have the key")]
    NoItem,
    #[error("it does not answer")]
    Late,
    #[error("{0}")]
    Refused(String),
}

/// A place for keys outside the home.
pub(super) trait Keychain: Send + Sync {
    fn get(&self, id: &str) -> Result<Zeroizing<String>, KeychainFault>;
    fn set(&self, id: &str, key: &str) -> Result<(), KeychainFault>;
    fn remove(&self, id: &str) -> Result<(), KeychainFault>;
}

/// The keychain of this system.
pub(super) struct SystemKeychain;

impl Keychain for SystemKeychain {
    fn get(&self, id: &str) -> Result<Zeroizing<String>, KeychainFault> {
        let id = id.to_owned();
        within(move || system::get(&id))
    }

    fn set(&self, id: &str, key: &str) -> Result<(), KeychainFault> {
        let (id, key) = (id.to_owned(), Zeroizing::new(key.to_owned()));
        within(move || system::set(&id, &key))
    }

    fn remove(&self, id: &str) -> Result<(), KeychainFault> {
        let id = id.to_owned();
        within(move || system::remove(&id))
    }
}

/// Runs a request on a thread of its own and waits for it, but not for ever.
fn within<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeychainFault> + Send + 'static,
) -> Result<T, KeychainFault> {
    let (done, result) = mpsc::sync_channel(1);
    let spawned = std::thread::Builder::new().name("keychain".to_owned()).spawn(move || {
        // The caller may have stopped waiting.
        let _ = done.send(work());
    });
    spawned.map_err(|error| KeychainFault::Refused(format!("cannot start a thread: {error}")))?;
    result.recv_timeout(KEYCHAIN_WAIT).unwrap_or(Err(KeychainFault::Late))
}

#[cfg(target_os = "linux")]
mod system {
    //! The Secret Service, over D-Bus.

    use zeroize::Zeroizing;

    use super::secret_service::Service;
    use super::{KEYCHAIN_WAIT, KeychainFault};

    pub(super) fn get(id: &str) -> Result<Zeroizing<String>, KeychainFault> {
        Service::connect(KEYCHAIN_WAIT)?.get(id)
    }

    pub(super) fn set(id: &str, key: &str) -> Result<(), KeychainFault> {
        Service::connect(KEYCHAIN_WAIT)?.set(id, key)
    }

    pub(super) fn remove(id: &str) -> Result<(), KeychainFault> {
        Service::connect(KEYCHAIN_WAIT)?.remove(id)
    }
}

#[cfg(target_os = "macos")]
mod system {
    //! The login keychain.

    use security_framework::base::Error;
    use security_framework::passwords::{
        delete_generic_password, get_generic_password, set_generic_password,
    };
    use zeroize::Zeroizing;

    use super::KeychainFault;

    const SERVICE: &str = "countersign";

    /// `errSecItemNotFound` of the system.
    const NOT_FOUND: i32 = -25300;
    /// `errSecInteractionNotAllowed` of the system.
    const NO_INTERACTION: i32 = -25308;

    pub(super) fn get(id: &str) -> Result<Zeroizing<String>, KeychainFault> {
        let key = Zeroizing::new(get_generic_password(SERVICE, id).map_err(fault)?);
        let key = str::from_utf8(&key).map_err(|_| KeychainFault::NoItem)?;
        Ok(Zeroizing::new(key.to_owned()))
    }

    pub(super) fn set(id: &str, key: &str) -> Result<(), KeychainFault> {
        set_generic_password(SERVICE, id, key.as_bytes()).map_err(fault)
    }

    pub(super) fn remove(id: &str) -> Result<(), KeychainFault> {
        delete_generic_password(SERVICE, id).map_err(fault)
    }

    fn fault(error: Error) -> KeychainFault {
        match error.code() {
            NOT_FOUND => KeychainFault::NoItem,
            NO_INTERACTION => KeychainFault::Locked,
            _ => KeychainFault::Refused(error.to_string()),
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod system {
    //! No keychain that is known here.

    use zeroize::Zeroizing;

    use super::KeychainFault;

    pub(super) fn get(_: &str) -> Result<Zeroizing<String>, KeychainFault> {
        Err(absent())
    }

    pub(super) fn set(_: &str, _: &str) -> Result<(), KeychainFault> {
        Err(absent())
    }

    pub(super) fn remove(_: &str) -> Result<(), KeychainFault> {
        Err(absent())
    }

    fn absent() -> KeychainFault {
        KeychainFault::Absent("this system is not supported".to_owned())
    }
}
