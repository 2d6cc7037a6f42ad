//! The results of probes, each in a file named after the hash of the program. A file counts only if
//! no other user can have written it.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mcp::task;
use rustix::fs::OFlags;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::agent::installed::InstalledAgent;
use crate::agent::known::KnownFacts;
use crate::agent::program::Provider;

/// Changes whenever probes or launches change, so that older results no longer count.
const REVISION: u32 = 2;

/// A result names some tools.
const RECORD_BYTES_MAX: u64 = 16 * 1024;

/// Bounds of what is read of the administrator's settings.
const ENFORCED_DEPTH_MAX: usize = 3;
const ENFORCED_FILES_MAX: usize = 100;
const ENFORCED_BYTES_MAX: u64 = 1024 * 1024;

/// Older results are removed.
const RECORDS_MAX: usize = 64;

/// Tools that a result names.
const TOOLS_MAX: usize = 50;

/// Hashes of programs, some of which are hundreds of MiB.
static HASHES: KnownFacts<Sha256> = KnownFacts::new();

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// It offers our tools and no others.
    Isolated,
    /// It offers these tools as well.
    Offers(Vec<String>),
    /// It did something on its own, as these words say.
    Reads(String),
}

/// Returns the hash of a program and of everything else that the result depends on. A script may
/// start another program, so the version counts as well.
pub(super) async fn key(installed: &InstalledAgent) -> std::io::Result<String> {
    let (program, folder) = (installed.program(), enforced(installed.provider()));
    let mut hash = HASHES.get(program, "", hash_of(program.to_owned())).await?;
    let hashing = task::spawn_blocking(move || {
        add_folder(&mut hash, Path::new(folder), ENFORCED_DEPTH_MAX)?;
        Ok::<_, std::io::Error>(hash)
    });
    let mut hash = hashing.await.map_err(std::io::Error::other)??;
    let (provider, version) = (installed.provider().as_str(), installed.version());
    let ours = env!("CARGO_PKG_VERSION");
    hash.update(format!("\0{provider}\0{version}\0{ours}\0{REVISION}"));
    hash.update(installed.catalogue());
    Ok(text::hex::encode(&hash.finalize()))
}

async fn hash_of(program: PathBuf) -> std::io::Result<Sha256> {
    let hashing = task::spawn_blocking(move || {
        let mut hash = Sha256::new();
        let mut file = File::open(program)?;
        let mut buffer = vec![0; 1024 * 1024];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                return Ok(hash);
            }
            hash.update(&buffer[..read]);
        }
    });
    hashing.await.map_err(std::io::Error::other)?
}

/// Returns the folder of settings that the administrator of the machine enforces. They cannot be shut
/// off; when they change, the program is probed again.
fn enforced(provider: Provider) -> &'static str {
    match (provider, cfg!(target_os = "macos")) {
        (Provider::Claude, false) => "/etc/claude-code",
        (Provider::Claude, true) => "/Library/Application Support/ClaudeCode",
        (Provider::Gemini, false) => "/etc/gemini-cli",
        (Provider::Gemini, true) => "/Library/Application Support/GeminiCli",
        (Provider::Codex, _) => "/etc/codex",
        (Provider::OpenCode, false) => "/etc/opencode",
        (Provider::OpenCode, true) => "/Library/Application Support/opencode",
    }
}

/// Adds the names and contents of a folder's files to a hash; a missing folder adds nothing.
fn add_folder(hash: &mut Sha256, folder: &Path, depth: usize) -> std::io::Result<()> {
    let mut paths: Vec<PathBuf> = match std::fs::read_dir(folder) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    paths.sort();
    for path in paths.iter().take(ENFORCED_FILES_MAX) {
        hash.update(format!("\0{}\0", path.display()));
        if path.is_dir() && depth > 0 {
            add_folder(hash, path, depth - 1)?;
        } else if path.is_file() {
            let mut bytes = Vec::new();
            File::open(path)?.take(ENFORCED_BYTES_MAX).read_to_end(&mut bytes)?;
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(&bytes);
        }
    }
    Ok(())
}

/// The folder of results.
pub(super) struct Records {
    folder: PathBuf,
}

impl Records {
    pub(super) fn new(folder: &Path) -> Records {
        Records { folder: folder.to_owned() }
    }

    /// Returns an earlier result, if there is one that can be trusted.
    pub(super) fn read(&self, key: &str) -> Option<Finding> {
        let folder = self.folder.symlink_metadata().ok()?;
        if !folder.is_dir() || !is_ours_alone(&folder) {
            return None;
        }
        let mut options = std::fs::OpenOptions::new();
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = options.read(true).custom_flags(flags).open(self.path(key)).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || !is_ours_alone(&metadata) {
            return None;
        }
        let mut text = String::new();
        file.take(RECORD_BYTES_MAX).read_to_string(&mut text).ok()?;
        parse(key, &text)
    }

    /// Keeps a result. A result that cannot be kept is found again by the next probe.
    pub(super) fn write(&self, key: &str, finding: &Finding) {
        if let Err(error) = self.try_write(key, finding) {
            tracing::debug!("the result of a probe cannot be kept: {error}");
        }
    }

    fn try_write(&self, key: &str, finding: &Finding) -> std::io::Result<()> {
        self.make_room()?;
        let temporary = self.folder.join(format!("{key}.{}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&temporary)?;
        let written = file.write_all(render(key, finding).to_string().as_bytes());
        let placed = written.and_then(|()| std::fs::rename(&temporary, self.path(key)));
        if placed.is_err() {
            // The first error is the one that matters.
            let _ = std::fs::remove_file(&temporary);
        }
        placed
    }

    fn make_room(&self) -> std::io::Result<()> {
        let mut kept: Vec<(i64, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "json") {
                kept.push((path.symlink_metadata()?.mtime(), path));
            }
        }
        kept.sort();
        let excess = (kept.len() + 1).saturating_sub(RECORDS_MAX);
        kept.iter().take(excess).try_for_each(|(_, path)| std::fs::remove_file(path))
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

fn is_ours_alone(metadata: &std::fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

fn render(key: &str, finding: &Finding) -> Value {
    match finding {
        Finding::Isolated => json!({"program": key, "isolated": true}),
        Finding::Offers(tools) => {
            let tools: Vec<&String> = tools.iter().take(TOOLS_MAX).collect();
            json!({"program": key, "isolated": false, "offers": tools})
        }
        Finding::Reads(what) => json!({"program": key, "isolated": false, "reads": what}),
    }
}

fn parse(key: &str, text: &str) -> Option<Finding> {
    let value: Value = serde_json::from_str(text).ok()?;
    if value["program"] != key {
        return None;
    }
    match (value["isolated"].as_bool()?, &value["offers"], &value["reads"]) {
        (true, Value::Null, Value::Null) => Some(Finding::Isolated),
        (false, Value::Array(tools), Value::Null) if !tools.is_empty() => {
            let tools = tools.iter().map(|tool| tool.as_str().map(str::to_owned));
            Some(Finding::Offers(tools.collect::<Option<_>>()?))
        }
        (false, Value::Null, Value::String(what)) => Some(Finding::Reads(what.clone())),
        _ => None,
    }
}

/// Removes the folders of probes whose process is gone.
pub(super) fn remove_stale(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.split_once('-')?.0.parse().ok());
        let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else { continue };
        let is_gone = rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
        if is_gone && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // Another process may be removing it too.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn records() -> (tempfile::TempDir, Records) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("probes");
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        (dir, Records::new(&folder))
    }

    fn allow(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn results_are_kept_by_program() {
        let (_dir, records) = records();
        for finding in [
            Finding::Isolated,
            Finding::Offers(vec!["Bash".to_owned()]),
            Finding::Reads("reads".to_owned()),
        ] {
            records.write("k", &finding);
            assert_eq!(records.read("k"), Some(finding));
        }
        assert_eq!(records.read("other"), None);
        std::fs::rename(records.path("k"), records.path("other")).unwrap();
        assert_eq!(records.read("other"), None, "the result of another program");
    }

    #[test]
    fn a_change_of_enforced_settings_asks_for_another_probe() {
        let dir = tempfile::tempdir().unwrap();
        let hash = |folder: &Path| {
            let mut hash = Sha256::new();
            add_folder(&mut hash, folder, ENFORCED_DEPTH_MAX).unwrap();
            hash.finalize()
        };
        let mut seen = vec![hash(&dir.path().join("missing"))];
        std::fs::create_dir(dir.path().join("managed.d")).unwrap();
        for (name, text) in [("a.json", "{}"), ("managed.d/b.json", "{}"), ("a.json", "{ }")] {
            std::fs::write(dir.path().join(name), text).unwrap();
            seen.push(hash(dir.path()));
        }
        assert_eq!(hash(dir.path()), seen[3], "unchanged");
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 4);
    }

    #[test]
    fn what_others_can_write_does_not_count() {
        let (dir, records) = records();
        records.write("k", &Finding::Isolated);
        allow(&records.path("k"), 0o620);
        assert_eq!(records.read("k"), None, "the file is open to a group");
        allow(&records.path("k"), 0o600);
        allow(&records.folder, 0o702);
        assert_eq!(records.read("k"), None, "the folder is open to all");
        allow(&records.folder, 0o700);
        assert_eq!(records.read("k"), Some(Finding::Isolated));
        let elsewhere = dir.path().join("elsewhere");
        std::fs::rename(records.path("k"), &elsewhere).unwrap();
        symlink(&elsewhere, records.path("k")).unwrap();
        assert_eq!(records.read("k"), None, "a link");
    }

    #[test]
    fn anything_but_a_whole_result_is_ignored() {
        let (_dir, records) = records();
        for text in [
            "",
            "{}",
            "{\"program\":\"k\"}",
            "{\"program\":\"x\",\"isolated\":true}",
            "{\"program\":\"k\",\"isolated\":\"true\"}",
            "{\"program\":\"k\",\"isolated\":true,\"offers\":[\"Bash\"]}",
            "{\"program\":\"k\",\"isolated\":false,\"offers\":[1]}",
            "{\"program\":\"k\",\"isolated\":false}",
        ] {
            std::fs::write(records.path("k"), text).unwrap();
            allow(&records.path("k"), 0o600);
            assert_eq!(records.read("k"), None, "{text}");
        }
    }

    #[test]
    fn only_so_many_results_are_kept() {
        let (_dir, records) = records();
        for number in 0..RECORDS_MAX + 10 {
            records.write(&format!("{number}"), &Finding::Isolated);
        }
        assert_eq!(std::fs::read_dir(&records.folder).unwrap().count(), RECORDS_MAX);
    }

    #[test]
    fn folders_of_ended_probes_are_removed() {
        let (_dir, records) = records();
        let own = records.folder.join(format!("{}-0", std::process::id()));
        // Above every process id that Linux and macOS use.
        let gone = records.folder.join("99999999-0");
        for folder in [&own, &gone] {
            std::fs::create_dir(folder).unwrap();
        }
        remove_stale(&records.folder);
        assert!(own.exists() && !gone.exists());
    }
}
