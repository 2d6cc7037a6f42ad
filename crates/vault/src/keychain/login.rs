//! The login keychain of macOS. No call takes longer than [`WAIT`], and none asks for a password.

use std::sync::mpsc;
use std::time::Duration;

use security_framework::base::Error;
use security_framework::passwords::{
    delete_generic_password, get_generic_password, set_generic_password,
};
use zeroize::Zeroizing;

use super::super::program::Programs;
use super::{Keychain, NOTHING};

/// The longest wait for the keychain, which answers in milliseconds.
const WAIT: Duration = Duration::from_secs(5);

const SERVICE: &str = "countersign";

/// `errSecItemNotFound` of the system.
const NOT_FOUND: i32 = -25300;
/// `errSecInteractionNotAllowed` of the system.
const NO_INTERACTION: i32 = -25308;

pub(crate) struct LoginKeychain;

impl LoginKeychain {
    /// Returns the keychain, which needs no program.
    pub(crate) fn new(_: &Programs) -> LoginKeychain {
        LoginKeychain
    }
}

impl Keychain for LoginKeychain {
    fn get(&self, id: &str) -> Result<Zeroizing<String>, String> {
        let id = id.to_owned();
        within(move || {
            let key = Zeroizing::new(get_generic_password(SERVICE, &id).map_err(words)?);
            let key = str::from_utf8(&key).map_err(|_| NOTHING.to_owned())?;
            Ok(Zeroizing::new(key.to_owned()))
        })
    }

    fn set(&self, id: &str, key: &str) -> Result<(), String> {
        let (id, key) = (id.to_owned(), Zeroizing::new(key.to_owned()));
        within(move || set_generic_password(SERVICE, &id, key.as_bytes()).map_err(words))
    }

    fn remove(&self, id: &str) -> Result<(), String> {
        let id = id.to_owned();
        within(move || delete_generic_password(SERVICE, &id).map_err(words))
    }
}

/// Runs a request on a separate thread and waits for it, but not for ever.
fn within<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (done, result) = mpsc::sync_channel(1);
    let spawned = std::thread::Builder::new().name("keychain".to_owned()).spawn(move || {
        // The caller may have stopped waiting.
        let _ = done.send(work());
    });
    spawned.map_err(|error| format!("cannot start a thread: {error}"))?;
    result.recv_timeout(WAIT).unwrap_or_else(|_| Err("it does not answer".to_owned()))
}

fn words(error: Error) -> String {
    match error.code() {
        NOT_FOUND | NO_INTERACTION => NOTHING.to_owned(),
        _ => error.to_string(),
    }
}
