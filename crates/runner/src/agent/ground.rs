//! The start folder of an isolated program: an empty folder private to the step. The programs read
//! settings, variables and hooks from the folder they start in and from those above it, and a
//! repository may hold any of these. Their tools still work in the step's folder, since the tools
//! are the gate's. Of that folder, only the text of its instructions is passed on.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::agent::program::Provider;

/// The start folder's name within the step's private folder.
const FOLDER: &str = "start";

/// Maximum size of an instructions file, the same as in Codex itself.
const INSTRUCTIONS_BYTES_MAX: u64 = 32 * 1024;

/// Returns the start folder of an isolated program.
pub(super) fn folder(private: &Path) -> PathBuf {
    private.join(FOLDER)
}

/// Returns the path at which a program that searches for a repository upwards stops.
pub(super) fn boundary(private: &Path) -> PathBuf {
    folder(private).join(".git")
}

/// Returns the names of each program's instructions files; the first that exists counts.
fn names(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Claude => &["CLAUDE.md"],
        Provider::Gemini => &["GEMINI.md"],
        Provider::Codex => &["AGENTS.md"],
        Provider::OpenCode => &["AGENTS.md", "CLAUDE.md"],
    }
}

/// Adds to the prompt what the program would otherwise find itself: the folder its tools work in,
/// and the instructions of that folder.
pub(super) fn introduced(provider: Provider, root: &Path, prompt: &str) -> String {
    let mut text = format!(
        "Your tools work in the folder {}; relative paths are relative to it.\n\n",
        root.display()
    );
    if let Some((name, instructions)) = instructions(provider, root) {
        text.push_str(&format!(
            "<instructions file=\"{name}\">\n{}\n</instructions>\n\n",
            instructions.trim_end()
        ));
    }
    text.push_str(prompt);
    text
}

fn instructions(provider: Provider, root: &Path) -> Option<(&'static str, String)> {
    names(provider).iter().find_map(|name| Some((*name, read(root, name)?)))
}

/// Reads a file of the folder, following links only within it: a repository must not get other
/// files of the person's into the prompt.
fn read(root: &Path, name: &str) -> Option<String> {
    let root = root.canonicalize().ok()?;
    let path = root.join(name).canonicalize().ok()?;
    if !path.starts_with(&root) || !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(INSTRUCTIONS_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    let is_cut = bytes.len() as u64 > INSTRUCTIONS_BYTES_MAX;
    bytes.truncate(INSTRUCTIONS_BYTES_MAX as usize);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if is_cut {
        text.push_str(&format!(
            "\n[truncated after {INSTRUCTIONS_BYTES_MAX} bytes: read {name} for the rest]"
        ));
    }
    Some(text).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn prompt(provider: Provider, root: &Path) -> String {
        introduced(provider, root, "do it")
    }

    #[test]
    fn the_prompt_names_the_root_and_holds_the_programs_own_instructions() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let bare = format!(
            "Your tools work in the folder {}; relative paths are relative to it.\n\ndo it",
            root.display()
        );
        assert_eq!(prompt(Provider::Claude, root), bare);
        std::fs::write(root.join("AGENTS.md"), "Be brief.\n").unwrap();
        std::fs::write(root.join("CLAUDE.md"), " \n").unwrap();
        assert_eq!(prompt(Provider::Claude, root), bare, "an empty file says nothing");
        assert_eq!(prompt(Provider::Gemini, root), bare);
        for provider in [Provider::Codex, Provider::OpenCode] {
            let found = prompt(provider, root);
            let expected = "<instructions file=\"AGENTS.md\">\nBe brief.\n</instructions>\n\ndo it";
            assert!(found.ends_with(expected), "{found}");
        }
        std::fs::remove_file(root.join("CLAUDE.md")).unwrap();
        symlink("AGENTS.md", root.join("CLAUDE.md")).unwrap();
        assert!(prompt(Provider::Claude, root).contains("Be brief."));
    }

    #[test]
    fn the_prompt_holds_only_bounded_files_from_inside_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(dir.path().join("secret"), "hunter2").unwrap();
        for target in ["../secret", "/etc/passwd", "/dev/zero", "nothing"] {
            symlink(target, root.join("CLAUDE.md")).unwrap();
            assert!(!prompt(Provider::Claude, &root).contains("instructions"), "{target}");
            std::fs::remove_file(root.join("CLAUDE.md")).unwrap();
        }
        std::fs::create_dir(root.join("CLAUDE.md")).unwrap();
        assert!(!prompt(Provider::Claude, &root).contains("instructions"));
        std::fs::write(root.join("GEMINI.md"), "ä".repeat(100_000)).unwrap();
        let found = prompt(Provider::Gemini, &root);
        assert!(found.contains("[truncated after 32768 bytes: read GEMINI.md for the rest]"));
        assert!(found.len() < 34_000);
    }
}
