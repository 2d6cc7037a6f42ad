//! The Secret Service of freedesktop.org: the few requests that one key needs. Values cross the
//! session bus as they are; a process that may read the bus may ask for the key, too.

use std::collections::HashMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use zbus::{
    Connection, DynamicType, Error, ObjectPath, OwnedObjectPath, OwnedVariant, Type, Variant, fdo,
};
use zeroize::{Zeroize, Zeroizing};

use super::KeychainFault;

const BUS_NAME: &str = "org.freedesktop.secrets";
const SERVICE_PATH: &str = "/org/freedesktop/secrets";
const SERVICE: &str = "org.freedesktop.Secret.Service";
const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const ITEM: &str = "org.freedesktop.Secret.Item";
const PROMPT: &str = "org.freedesktop.Secret.Prompt";

/// The path that stands for no object.
const NOTHING: &str = "/";

/// A session with the service.
pub(super) struct Service {
    bus: Connection,
    session: OwnedObjectPath,
}

impl Service {
    pub(super) async fn connect() -> Result<Service, KeychainFault> {
        let absent = |error: Error| KeychainFault::Absent(format!("no session bus: {error}"));
        let bus = Connection::session().await.map_err(absent)?;
        let body = ("plain", Variant::from(""));
        let opened: (OwnedVariant, OwnedObjectPath) =
            call(&bus, SERVICE_PATH, SERVICE, "OpenSession", &body).await?;
        Ok(Service { bus, session: opened.1 })
    }

    pub(super) async fn get(&self, id: &str) -> Result<Zeroizing<String>, KeychainFault> {
        let item = self.item(id).await?;
        let answer: (OwnedObjectPath, Vec<u8>, Vec<u8>, String) =
            call(&self.bus, item.as_str(), ITEM, "GetSecret", &(&self.session,)).await?;
        let (_, _, mut value, _) = answer;
        let key = str::from_utf8(&value).map(|key| Zeroizing::new(key.to_owned()));
        value.zeroize();
        key.map_err(|_| KeychainFault::NoItem)
    }

    pub(super) async fn set(&self, id: &str, key: &str) -> Result<(), KeychainFault> {
        let collection: OwnedObjectPath =
            call(&self.bus, SERVICE_PATH, SERVICE, "ReadAlias", &("default",)).await?;
        if collection.as_str() == NOTHING {
            return Err(KeychainFault::Absent("no default keyring".to_owned()));
        }
        self.unlock(&collection).await?;
        let properties = HashMap::from([
            (
                "org.freedesktop.Secret.Item.Label",
                Variant::from(format!("Countersign: key of the secrets {id}")),
            ),
            ("org.freedesktop.Secret.Item.Attributes", Variant::from(attributes(id))),
        ]);
        let parameters: Vec<u8> = Vec::new();
        let secret = (&self.session, parameters, key.as_bytes(), "text/plain");
        let body = (properties, secret, true);
        let (_, prompt): (OwnedObjectPath, OwnedObjectPath) =
            call(&self.bus, collection.as_str(), COLLECTION, "CreateItem", &body).await?;
        self.without(&prompt).await
    }

    pub(super) async fn remove(&self, id: &str) -> Result<(), KeychainFault> {
        let item = self.item(id).await?;
        let prompt: OwnedObjectPath = call(&self.bus, item.as_str(), ITEM, "Delete", &()).await?;
        self.without(&prompt).await
    }

    /// Returns the unlocked item of a key.
    async fn item(&self, id: &str) -> Result<OwnedObjectPath, KeychainFault> {
        let found: (Vec<OwnedObjectPath>, Vec<OwnedObjectPath>) =
            call(&self.bus, SERVICE_PATH, SERVICE, "SearchItems", &(attributes(id),)).await?;
        let (unlocked, locked) = found;
        if let Some(item) = unlocked.into_iter().next() {
            return Ok(item);
        }
        let item = locked.into_iter().next().ok_or(KeychainFault::NoItem)?;
        self.unlock(&item).await?;
        Ok(item)
    }

    async fn unlock(&self, path: &ObjectPath<'_>) -> Result<(), KeychainFault> {
        let (_, prompt): (Vec<OwnedObjectPath>, OwnedObjectPath) =
            call(&self.bus, SERVICE_PATH, SERVICE, "Unlock", &(vec![path],)).await?;
        self.without(&prompt).await
    }

    /// Fails if the service wants to ask the person: nobody may be there to answer.
    async fn without(&self, prompt: &OwnedObjectPath) -> Result<(), KeychainFault> {
        if prompt.as_str() == NOTHING {
            return Ok(());
        }
        let dismissed: Result<(), _> =
            call(&self.bus, prompt.as_str(), PROMPT, "Dismiss", &()).await;
        if let Err(fault) = dismissed {
            tracing::debug!("the keychain's question was not dismissed: {fault}");
        }
        Err(KeychainFault::Locked)
    }
}

fn attributes(id: &str) -> HashMap<&str, &str> {
    HashMap::from([("application", "countersign"), ("vault", id)])
}

async fn call<Answer: DeserializeOwned + Type>(
    bus: &Connection,
    path: &str,
    interface: &str,
    method: &str,
    body: &(impl Serialize + DynamicType),
) -> Result<Answer, KeychainFault> {
    let answer = bus.call_method(Some(BUS_NAME), path, Some(interface), method, body).await;
    let answer = answer.map_err(fault)?;
    answer.body().deserialize().map_err(fault)
}

fn fault(error: Error) -> KeychainFault {
    match error {
        Error::FDO(error) => match *error {
            fdo::Error::ServiceUnknown(_)
            | fdo::Error::NameHasNoOwner(_)
            | fdo::Error::SpawnServiceNotFound(_) => {
                KeychainFault::Absent("no program offers org.freedesktop.secrets".to_owned())
            }
            error => KeychainFault::Refused(error.to_string()),
        },
        Error::MethodError(name, _, _)
            if name.as_str() == "org.freedesktop.Secret.Error.IsLocked" =>
        {
            KeychainFault::Locked
        }
        error => KeychainFault::Refused(error.to_string()),
    }
}
