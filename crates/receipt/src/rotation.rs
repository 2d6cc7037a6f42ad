//! Rotation from one signing key to the next: an event in a receipt that the old key signs and that
//! carries the new key, so that a verifier can follow it without a registry.

use serde_json::{Map, Value};

use super::canonical::write_text;
use super::key::KeyError;
use super::{Hash, PublicKey};

/// The type of the action whose receipt carries a rotation.
pub const ACTION_TYPE: &str = "agent.key.rotate";
const ALGORITHM: &str = "ed25519";
const MEMBERS: usize = 7;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    old_fingerprint: Hash,
    new_key: PublicKey,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RotationError {
    #[error("keyRotation must be an object with exactly its seven members")]
    Shape,
    #[error("keyRotation.{0} must be \"{1}\"")]
    Constant(&'static str, &'static str),
    #[error("keyRotation.{0}: {1}")]
    Key(&'static str, KeyError),
    #[error("keyRotation.new_key_fingerprint does not match new_public_key")]
    NewFingerprint,
    #[error("keyRotation.old_key_fingerprint does not match the key in use")]
    OldFingerprint,
}

impl Rotation {
    pub fn new(old: &PublicKey, new: &PublicKey) -> Rotation {
        Rotation { old_fingerprint: old.fingerprint(), new_key: new.clone() }
    }

    /// Parses the event. `follow` checks whether it continues the active key.
    pub fn parse(event: &Value) -> Result<Rotation, RotationError> {
        let event = event.as_object().ok_or(RotationError::Shape)?;
        for (name, expect) in [
            ("event_type", "key_rotated"),
            ("signed_with", "old"),
            ("old_algorithm", ALGORITHM),
            ("new_algorithm", ALGORITHM),
        ] {
            if text(event, name)? != expect {
                return Err(RotationError::Constant(name, expect));
            }
        }
        let new_key = PublicKey::from_multibase(text(event, "new_public_key")?)
            .map_err(|error| RotationError::Key("new_public_key", error))?;
        if text(event, "new_key_fingerprint")? != new_key.fingerprint().to_string() {
            return Err(RotationError::NewFingerprint);
        }
        let old_fingerprint = text(event, "old_key_fingerprint")?
            .parse()
            .map_err(|_| RotationError::OldFingerprint)?;
        if event.len() != MEMBERS {
            return Err(RotationError::Shape);
        }
        Ok(Rotation { old_fingerprint, new_key })
    }

    /// Returns the key that signs from here on, if `active` is the one being replaced.
    pub fn follow(&self, active: &PublicKey) -> Result<&PublicKey, RotationError> {
        if active.fingerprint() != self.old_fingerprint {
            return Err(RotationError::OldFingerprint);
        }
        Ok(&self.new_key)
    }

    pub(super) fn write(&self, out: &mut String) {
        out.push_str(
            r#"{"event_type":"key_rotated","new_algorithm":"ed25519","new_key_fingerprint":""#,
        );
        self.new_key.fingerprint().write(out);
        out.push_str(r#"","new_public_key":"#);
        write_text(out, &self.new_key.to_multibase());
        out.push_str(r#","old_algorithm":"ed25519","old_key_fingerprint":""#);
        self.old_fingerprint.write(out);
        out.push_str(r#"","signed_with":"old"}"#);
    }
}

fn text<'a>(event: &'a Map<String, Value>, name: &str) -> Result<&'a str, RotationError> {
    event.get(name).and_then(Value::as_str).ok_or(RotationError::Shape)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::SigningKey;

    fn key(seed: u8) -> PublicKey {
        SigningKey::from_seed(&[seed; 32]).public()
    }

    fn event() -> Value {
        let mut text = String::new();
        Rotation::new(&key(1), &key(2)).write(&mut text);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_rotation_leads_from_its_old_key_to_its_new_one_only() {
        let rotation = Rotation::parse(&event()).unwrap();
        assert_eq!(rotation, Rotation::new(&key(1), &key(2)));
        assert_eq!(rotation.follow(&key(1)), Ok(&key(2)));
        assert_eq!(rotation.follow(&key(3)), Err(RotationError::OldFingerprint));
    }

    #[test]
    fn every_changed_or_missing_member_is_refused() {
        for (name, value) in [
            ("event_type", json!("rotated")),
            ("signed_with", json!("new")),
            ("old_algorithm", json!("rsa")),
            ("new_algorithm", json!("ed448")),
            ("new_public_key", json!(key(3).to_multibase())),
            ("new_public_key", json!("zabc")),
            ("new_key_fingerprint", json!(key(3).fingerprint())),
            ("old_key_fingerprint", json!("sha256:00")),
            ("more", json!(1)),
        ] {
            let mut changed = event();
            changed[name] = value;
            assert!(Rotation::parse(&changed).is_err(), "{name}");
            let mut missing = event();
            if missing.as_object_mut().unwrap().remove(name).is_some() {
                assert_eq!(Rotation::parse(&missing), Err(RotationError::Shape), "{name}");
            }
        }
        assert_eq!(Rotation::parse(&json!([])), Err(RotationError::Shape));
    }
}
