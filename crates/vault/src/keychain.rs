//! The keychain of the operating system, which can hold the key of the vault: the login keychain on
//! macOS, elsewhere the Secret Service (GNOME Keyring, KWallet, KeePassXC) by way of `secret-tool`.

#[cfg(target_os = "macos")]
mod login;
#[cfg(not(target_os = "macos"))]
mod secret_tool;

use zeroize::Zeroizing;

#[cfg(target_os = "macos")]
pub(super) use login::LoginKeychain as SystemKeychain;
#[cfg(not(target_os = "macos"))]
pub(super) use secret_tool::SecretTool as SystemKeychain;

/// The reason for a key that the keychain does not give.
const NOTHING: &str = "it is locked, or no longer has the key (if that is lost, remove each secret \
                       with 'countersign secret remove NAME' and set it again)";

/// A place for keys outside the home. An error says why it cannot be used.
pub(super) trait Keychain: Send + Sync {
    fn get(&self, id: &str) -> Result<Zeroizing<String>, String>;
    fn set(&self, id: &str, key: &str) -> Result<(), String>;
    fn remove(&self, id: &str) -> Result<(), String>;
}
