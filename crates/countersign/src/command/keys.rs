//! `countersign keys show|rotate`.

use std::path::{Path, PathBuf};

use admin::view::{KeyEntry, KeyList};
use receipt::PublicKey;
use serde::Serialize;

use crate::cli::Keys;
use crate::control::{Control, get};
use crate::exit::Failure;
use crate::home::Home;
use crate::output::{self, fields, read};
use crate::site::Site;
use gateway::plan::Reach;

/// The suffix of public key files.
const PUBLIC_ENDING: &str = ".public.pem";
const PEM_END: &str = "-----END PUBLIC KEY-----";

pub(crate) async fn run(site: &Site, verb: Keys) -> Result<(), Failure> {
    match verb {
        Keys::Show { pem, output } => {
            site.home()?.must_exist()?;
            let answer: KeyList = read(&get(site, Reach::Nothing, "/api/v1/keys").await?)?;
            if pem {
                let current = answer.keys.iter().find(|key| key.current);
                let current = current
                    .ok_or_else(|| Failure::system("this home has no current signing key"))?;
                return output::line(current.pem.trim_end());
            }
            let files = in_home(site.home()?)?;
            let keys = answer.keys.into_iter().map(|key| HomeKey::new(key, &files)).collect();
            output::print(output, &HomeKeys { keys }, list)
        }
        Keys::Rotate { output } => {
            let rotate = async |control: &Control| control.post("/api/v1/keys/rotate").await;
            let key = read(&Control::with(site, Reach::Nothing, rotate).await?)?;
            output::print(output, &HomeKey::new(key, &in_home(site.home()?)?), one)
        }
    }
}

#[derive(Serialize)]
struct HomeKeys {
    keys: Vec<HomeKey>,
}

/// A key, and its file in this home.
#[derive(Serialize)]
struct HomeKey {
    #[serde(flatten)]
    key: KeyEntry,
    file: Option<String>,
}

impl HomeKey {
    fn new(key: KeyEntry, files: &[(PathBuf, PublicKey)]) -> HomeKey {
        let file = files.iter().find(|(_, found)| found.did() == key.did);
        HomeKey { key, file: file.map(|(path, _)| path.display().to_string()) }
    }
}

fn list(answer: &HomeKeys) -> String {
    answer.keys.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

fn one(HomeKey { key, file }: &HomeKey) -> String {
    let state = if key.current { "current" } else { "previous" };
    fields(&[
        ("key", key.fingerprint.clone()),
        ("state", state.to_owned()),
        ("did", key.did.clone()),
        ("file", file.clone().unwrap_or_default()),
    ])
}

/// Returns the public keys of a home with their files; none if there is no home yet.
pub(crate) fn in_home(home: &Home) -> Result<Vec<(PathBuf, PublicKey)>, Failure> {
    let folder = home.path().join("keys");
    let files = match std::fs::read_dir(&folder) {
        Ok(files) => files,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unread(&folder, &error)),
    };
    let mut keys = Vec::new();
    for file in files {
        let path = file.map_err(|error| unread(&folder, &error))?.path();
        if path.to_string_lossy().ends_with(PUBLIC_ENDING) {
            keys.extend(in_file(&path)?.into_iter().map(|key| (path.clone(), key)));
        }
    }
    Ok(keys)
}

/// Reads the public keys in a file, at least one.
pub(crate) fn in_file(path: &Path) -> Result<Vec<PublicKey>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| unread(path, &error))?;
    let keys: Result<Vec<PublicKey>, _> = text
        .split_inclusive(PEM_END)
        .map(str::trim)
        .filter(|pem| !pem.is_empty())
        .map(PublicKey::from_pem)
        .collect();
    match keys {
        Ok(keys) if !keys.is_empty() => Ok(keys),
        Ok(_) => Err(unread(path, &"the file is empty")),
        Err(error) => Err(unread(path, &error)),
    }
}

fn unread(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::system(format!("cannot read public keys from '{}': {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use receipt::SigningKey;

    use super::*;

    #[test]
    fn a_file_may_hold_several_keys_and_must_hold_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("keys.pem");
        let key = |seed| SigningKey::from_seed(&[seed; 32]).public();
        std::fs::write(&file, format!("{}\n{}", key(1).to_pem(), key(2).to_pem())).unwrap();
        assert_eq!(in_file(&file).unwrap(), [key(1), key(2)]);
        for bad in ["", "  \n", "no key", &format!("{}more", key(1).to_pem())] {
            std::fs::write(&file, bad).unwrap();
            assert!(in_file(&file).is_err(), "{bad}");
        }
    }
}
