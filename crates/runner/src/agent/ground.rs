//! The surroundings of an isolated program: an empty start folder private to the step, its own home
//! if its login allows that, and none of the variables that steer it. The programs read settings,
//! variables and hooks from the folder they start in and from those above it, and a repository may
//! hold any of these. Their tools still work in the step's folder, since the tools are the gate's.
//! Of that folder, only the text of its instructions is passed on.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use workflow::ProgramRules;

use crate::agent::error::AgentError;
use crate::agent::launch::{Launch, LaunchInput, Symlink, path_text};
use crate::agent::program::Provider;

/// The start folder's name within the step's private folder.
const FOLDER: &str = "start";

/// Maximum size of an instructions file, the same as in Codex itself.
const INSTRUCTIONS_BYTES_MAX: u64 = 32 * 1024;

/// Returns the start folder of an isolated program.
pub(super) fn folder(private: &Path) -> PathBuf {
    private.join(FOLDER)
}

/// The person's logins at cloud providers, by their places in a home.
const CLOUD_LOGINS: [&str; 3] = [".aws", ".azure", ".config/gcloud"];

/// Adds what all isolated programs have in common to a launch.
pub(super) fn enclose(input: &LaunchInput, launch: &mut Launch) -> Result<(), AgentError> {
    let (provider, private) = (input.installed.provider(), &input.request.private);
    // Neither the program nor a git that it runs searches any further up.
    let boundary = folder(private).join(".git");
    match provider {
        // Only a repository that git itself accepts stops OpenCode.
        Provider::OpenCode => {
            launch.folders.extend(["objects", "refs"].map(|name| boundary.join(name)));
            launch.files.push((boundary.join("HEAD"), b"ref: refs/heads/main\n".to_vec()));
        }
        Provider::Claude | Provider::Gemini | Provider::Codex => launch.folders.push(boundary),
    }
    // A git config can name commands to run.
    for (name, value) in [
        ("GIT_CEILING_DIRECTORIES", path_text(private)?),
        ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
    ] {
        launch.env.push((name.to_owned(), value));
    }
    let rules = ProgramRules::of(provider.into());
    let steers = |name: &str| rules.governs(name) || name.starts_with("GIT_");
    launch.env_remove.extend(input.person.names(steers));
    Ok(())
}

/// Gives the program its own home, with links to the person's cloud logins. Node looks for modules
/// in the home, shells for their profiles, and programs for skills and plugins.
pub(super) fn rehome(
    input: &LaunchInput,
    home: PathBuf,
    launch: &mut Launch,
) -> Result<(), AgentError> {
    launch.env.push(("HOME".to_owned(), path_text(&home)?));
    if let Some(person) = input.var("HOME").map(Path::new) {
        let links =
            CLOUD_LOGINS.map(|name| Symlink { path: home.join(name), target: person.join(name) });
        launch.links.extend(links.into_iter().filter(|link| link.target.exists()));
    }
    launch.folders.push(home);
    Ok(())
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
