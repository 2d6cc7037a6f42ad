//! Authenticated encryption of one value: AES-256-GCM with a random nonce. The space, the name, the
//! time and the key's id are bound to it, so that no value can be passed off as another.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64ct::{Base64, Encoding};
use zeroize::Zeroizing;

use super::error::VaultError;
use super::file::VaultEntry;
use super::key::Key;
use super::secret::Secret;

/// Returns the entry with its encrypted value: the nonce, the text and the tag.
pub(super) fn close(
    key: &Key,
    key_id: &str,
    entry: VaultEntry,
    value: &Secret,
) -> Result<VaultEntry, VaultError> {
    let failed = |_| VaultError::Key("cannot encrypt".to_owned());
    // With room for the tag, so that no copy of the text is left where the vector was before.
    let mut text = Zeroizing::new(Vec::with_capacity(value.expose().len() + AES_256_GCM.tag_len()));
    text.extend_from_slice(value.expose().as_bytes());
    let cipher = RandomizedNonceKey::new(&AES_256_GCM, &key[..]).map_err(failed)?;
    let bound = Aad::from(bound(key_id, &entry));
    let nonce = cipher.seal_in_place_append_tag(bound, &mut *text).map_err(failed)?;
    let sealed = [&nonce.as_ref()[..], &text[..]].concat();
    Ok(VaultEntry { sealed: Base64::encode_string(&sealed), ..entry })
}

/// Returns the value; `None` if the key is not its key, or the entry was changed.
pub(super) fn open(key: &Key, key_id: &str, entry: &VaultEntry) -> Option<Secret> {
    let mut sealed = Zeroizing::new(Base64::decode_vec(&entry.sealed).ok()?);
    let (nonce, text) = sealed.split_at_mut_checked(NONCE_LEN)?;
    let cipher = RandomizedNonceKey::new(&AES_256_GCM, &key[..]).ok()?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let text = cipher.open_in_place(nonce, Aad::from(bound(key_id, entry)), text).ok()?;
    Some(Secret::from(str::from_utf8(text).ok()?))
}

/// Returns what a value is bound to. Only the name, which comes last, can be any text.
fn bound(key_id: &str, entry: &VaultEntry) -> Vec<u8> {
    let VaultEntry { space, name, set_at, .. } = entry;
    format!("countersign vault 1\n{key_id}\n{space}\n{set_at}\n{name}").into_bytes()
}
