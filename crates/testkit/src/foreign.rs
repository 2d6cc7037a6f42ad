//! Foreign programs, which `./test --setup` installs: real MCP servers and clients, agents, a model
//! server, a verifier, a browser. A test that needs one begins with [`are_here_or_skipped`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use crate::run;

/// The pinned versions of the agent programs.
const AGENTS: &str = include_str!("../../../tests-setup/agents/package-lock.json");

/// Returns the folder that they are installed in.
pub fn folder() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    folder("COUNTERSIGN_TEST_TOOLS")
        .or_else(|| Some(cache()?.join("countersign-test")))
        .expect("HOME is set")
}

/// Returns the path of a foreign program below that folder.
pub fn program(path: &str) -> PathBuf {
    let program = folder().join(path);
    assert!(program.exists(), "{} does not exist: run ./test --setup", program.display());
    program
}

/// Reports whether the test may use foreign programs; the quick run skips it.
pub fn are_here_or_skipped() -> bool {
    if run::is_quick() {
        run::skipped("needs foreign programs: only with ./test");
    }
    !run::is_quick()
}

/// Runs the control of a test: an attack that works when nothing protects against it. As it depends on
/// the agent programs and on the attack alone, one that has passed is remembered with their versions
/// and the attack's text.
pub async fn control(name: &str, attack: &str, control: impl Future<Output = ()>) {
    let mut hash = DefaultHasher::new();
    (AGENTS, attack).hash(&mut hash);
    let folder = folder().join("controls");
    let passed = folder.join(format!("{name}-{:016x}", hash.finish()));
    if run::is_quick() || passed.exists() {
        return;
    }
    control.await;
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(passed, "").unwrap();
}
