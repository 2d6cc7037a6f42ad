//! The file that a server's command starts, found as the child's own lookup would find it, with the
//! hash of its content. Blocks.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use access::secrets::SecretValues;
use sha2::{Digest, Sha256};

use super::ChildCommand;

/// Bits of a mode that let somebody execute the file.
const EXECUTABLE: u32 = 0o111;

/// Bytes read at a time: programs can be larger than memory should hold at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// A program file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    /// Absolute, without links.
    pub path: PathBuf,
    pub sha256: String,
}

/// Metadata that changes with the content of a file, without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramVersion {
    path: PathBuf,
    place: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl ProgramFile {
    /// Finds and hashes the program; `None` if the command is not a readable file.
    pub(crate) fn of(command: &ChildCommand) -> Option<ProgramFile> {
        let path = find(command)?;
        let sha256 = digest(&mut File::open(&path).ok()?).ok()?;
        Some(ProgramFile { path, sha256 })
    }
}

impl fmt::Display for ProgramFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.sha256, self.path.display())
    }
}

impl ProgramVersion {
    pub(crate) fn of(command: &ChildCommand) -> Option<ProgramVersion> {
        let path = find(command)?;
        let metadata = path.metadata().ok()?;
        Some(ProgramVersion {
            path,
            place: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// Returns the SHA-256 of the content as hex digits.
fn digest(file: &mut File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    Ok(text::hex::encode(&hasher.finalize()))
}

/// Finds the program: a path from the child's folder, or a name in the folders of the child's
/// `PATH`.
pub(super) fn find(command: &ChildCommand) -> Option<PathBuf> {
    let folder = match &command.cwd {
        Some(cwd) => cwd.clone(),
        None => std::env::current_dir().ok()?,
    };
    if command.command.contains('/') {
        return folder.join(&command.command).canonicalize().ok().filter(|path| is_program(path));
    }
    let own = command.env.iter().rfind(|(name, _)| name == "PATH");
    let path = match own {
        Some((_, value)) => SecretValues::default().expand(value).ok()?.into(),
        None => std::env::var_os("PATH")?,
    };
    let named = std::env::split_paths(&path).map(|dir| folder.join(dir).join(&command.command));
    named.filter_map(|path| path.canonicalize().ok()).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    let is_executable = |found: Metadata| found.permissions().mode() & EXECUTABLE != 0;
    path.metadata().is_ok_and(|found| found.is_file() && is_executable(found))
}

#[cfg(test)]
mod tests {
    use domain::config::ConfigTemplate;

    use super::*;

    fn program(path: &Path, content: &str) {
        std::fs::write(path, content).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_program_is_found_as_its_child_would_find_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (one, two) = (root.join("one"), root.join("two"));
        std::fs::create_dir(&one).unwrap();
        std::fs::create_dir(&two).unwrap();
        std::fs::write(one.join("tool"), "not executable").unwrap();
        program(&two.join("tool"), "abc");
        std::os::unix::fs::symlink(two.join("tool"), root.join("link")).unwrap();
        let path = format!("{}:two", one.display());
        let env = vec![("PATH".to_owned(), ConfigTemplate::parse(&path).unwrap())];
        let command = |name: &str| ChildCommand {
            command: name.to_owned(),
            args: Vec::new(),
            env: env.clone(),
            inherit_env: false,
            cwd: Some(root.clone()),
            supervisor: None,
            pinned: None,
        };
        let expected = ProgramFile {
            path: two.join("tool"),
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned(),
        };
        for name in ["tool", "two/tool", "./link"] {
            assert_eq!(ProgramFile::of(&command(name)), Some(expected.clone()), "{name}");
        }
        for name in ["one/tool", "two", "absent", "./absent"] {
            assert_eq!(ProgramFile::of(&command(name)), None, "{name}");
        }
        let before = ProgramVersion::of(&command("tool"));
        program(&two.join("tool"), "abcd");
        assert_ne!(ProgramVersion::of(&command("tool")), before);
    }
}
