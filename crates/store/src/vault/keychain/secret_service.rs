//! The Secret Service of freedesktop.org: the few requests that one key needs. Values cross the
//! session bus as they are; a process that may read the bus may ask for the key, too.

use std::time::Duration;

use zeroize::Zeroizing;

use super::KeychainFault;
use super::bus::{BusFault, BusMethod, SessionBus, ValueReader, ValueWriter};

const SERVICE_PATH: &str = "/org/freedesktop/secrets";
const SERVICE: &str = "org.freedesktop.Secret.Service";
const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const ITEM: &str = "org.freedesktop.Secret.Item";
const PROMPT: &str = "org.freedesktop.Secret.Prompt";

const OPEN_SESSION: BusMethod = method(SERVICE, "OpenSession", "sv", "vo");
const SEARCH_ITEMS: BusMethod = method(SERVICE, "SearchItems", "a{ss}", "aoao");
const UNLOCK: BusMethod = method(SERVICE, "Unlock", "ao", "aoo");
const READ_ALIAS: BusMethod = method(SERVICE, "ReadAlias", "s", "o");
const CREATE_ITEM: BusMethod = method(COLLECTION, "CreateItem", "a{sv}(oayays)b", "oo");
const GET_SECRET: BusMethod = method(ITEM, "GetSecret", "o", "(oayays)");
const DELETE: BusMethod = method(ITEM, "Delete", "", "o");
const DISMISS: BusMethod = method(PROMPT, "Dismiss", "", "");

/// The path that stands for no object.
const NOTHING: &str = "/";

const fn method(
    interface: &'static str,
    name: &'static str,
    takes: &'static str,
    gives: &'static str,
) -> BusMethod {
    BusMethod { destination: "org.freedesktop.secrets", interface, name, takes, gives }
}

/// A session with the service.
pub(super) struct Service {
    bus: SessionBus,
    session: String,
}

impl Service {
    /// Opens a session, which must be over within `patience`.
    pub(super) fn connect(patience: Duration) -> Result<Service, KeychainFault> {
        let absent = |fault: BusFault| {
            if fault.is_late() {
                return KeychainFault::Late;
            }
            KeychainFault::Absent(format!("no session bus: {fault}"))
        };
        let bus = SessionBus::connect(patience).map_err(absent)?;
        let mut service = Service { bus, session: String::new() };
        let mut opened = service.call(SERVICE_PATH, &OPEN_SESSION, |body| {
            body.text("plain");
            body.variant("s", |value| value.text(""));
        })?;
        opened.text_variant()?;
        service.session = opened.text()?;
        Ok(service)
    }

    pub(super) fn get(&mut self, id: &str) -> Result<Zeroizing<String>, KeychainFault> {
        let item = self.item(id)?;
        let session = self.session.clone();
        let mut answer = self.call(&item, &GET_SECRET, |body| body.text(&session))?;
        answer.structure();
        let (_session, _parameters, value) = (answer.text()?, answer.bytes()?, answer.bytes()?);
        let key = str::from_utf8(&value).map_err(|_| KeychainFault::NoItem)?;
        Ok(Zeroizing::new(key.to_owned()))
    }

    pub(super) fn set(&mut self, id: &str, key: &str) -> Result<(), KeychainFault> {
        let collection =
            self.call(SERVICE_PATH, &READ_ALIAS, |body| body.text("default"))?.text()?;
        if collection == NOTHING {
            return Err(KeychainFault::Absent("no default keyring".to_owned()));
        }
        self.unlock(&collection)?;
        let session = self.session.clone();
        let mut made = self.call(&collection, &CREATE_ITEM, |body| {
            body.map(|properties| {
                properties.structure();
                properties.text("org.freedesktop.Secret.Item.Label");
                let label = format!("Countersign: key of the secrets {id}");
                properties.variant("s", |value| value.text(&label));
                properties.structure();
                properties.text("org.freedesktop.Secret.Item.Attributes");
                properties.variant("a{ss}", |value| value.texts(&attributes(id)));
            });
            body.structure();
            body.text(&session);
            body.bytes(&[]);
            body.bytes(key.as_bytes());
            body.text("text/plain");
            // Replaces the one that is there.
            body.boolean(true);
        })?;
        let (_item, prompt) = (made.text()?, made.text()?);
        self.without(&prompt)
    }

    pub(super) fn remove(&mut self, id: &str) -> Result<(), KeychainFault> {
        let item = self.item(id)?;
        let prompt = self.call(&item, &DELETE, |_| {})?.text()?;
        self.without(&prompt)
    }

    /// Returns the unlocked item of a key.
    fn item(&mut self, id: &str) -> Result<String, KeychainFault> {
        let mut found =
            self.call(SERVICE_PATH, &SEARCH_ITEMS, |body| body.texts(&attributes(id)))?;
        let (unlocked, locked) = (found.paths()?, found.paths()?);
        if let Some(item) = unlocked.into_iter().next() {
            return Ok(item);
        }
        let item = locked.into_iter().next().ok_or(KeychainFault::NoItem)?;
        self.unlock(&item)?;
        Ok(item)
    }

    fn unlock(&mut self, path: &str) -> Result<(), KeychainFault> {
        let mut answer = self.call(SERVICE_PATH, &UNLOCK, |body| body.paths(&[path]))?;
        let (_unlocked, prompt) = (answer.paths()?, answer.text()?);
        self.without(&prompt)
    }

    /// Fails if the service wants to ask the person: nobody may be there to answer.
    fn without(&mut self, prompt: &str) -> Result<(), KeychainFault> {
        if prompt == NOTHING {
            return Ok(());
        }
        if let Err(fault) = self.call(prompt, &DISMISS, |_| {}) {
            tracing::debug!("the keychain's question was not dismissed: {fault}");
        }
        Err(KeychainFault::Locked)
    }

    fn call(
        &mut self,
        path: &str,
        method: &BusMethod,
        arguments: impl FnOnce(&mut ValueWriter),
    ) -> Result<ValueReader, KeychainFault> {
        Ok(self.bus.call(path, method, arguments)?)
    }
}

fn attributes(id: &str) -> [(&str, &str); 2] {
    [("application", "countersign"), ("vault", id)]
}

impl From<BusFault> for KeychainFault {
    fn from(fault: BusFault) -> KeychainFault {
        match fault {
            fault if fault.is_late() => KeychainFault::Late,
            BusFault::Refused { name, message } => match name.as_str() {
                "org.freedesktop.DBus.Error.ServiceUnknown"
                | "org.freedesktop.DBus.Error.NameHasNoOwner"
                | "org.freedesktop.DBus.Error.Spawn.ServiceNotFound" => {
                    KeychainFault::Absent("no program offers org.freedesktop.secrets".to_owned())
                }
                "org.freedesktop.Secret.Error.IsLocked" => KeychainFault::Locked,
                _ => KeychainFault::Refused(format!("{name}: {message}")),
            },
            fault => KeychainFault::Refused(fault.to_string()),
        }
    }
}
