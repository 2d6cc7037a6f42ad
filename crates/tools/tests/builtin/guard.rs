//! The root is a boundary: for paths, for links, and for links that are swapped in the meantime.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use testkit::run::is_long_or_skipped;
use tools::builtin::{OffLimits, Permissions, Workspace};

use crate::rig::{ALL, Rig};

const OUTSIDE: &str = "is outside the workspace root";

#[tokio::test]
async fn no_path_leads_out_of_the_root() {
    let rig = Rig::new();
    let outside = rig.around.path().join("secret");
    std::fs::write(&outside, "secret").unwrap();
    rig.put("in/file", "inside");
    symlink(&outside, rig.root.join("absolute")).unwrap();
    symlink("../secret", rig.root.join("relative")).unwrap();
    symlink("..", rig.root.join("up")).unwrap();
    symlink("in/../../secret", rig.root.join("winding")).unwrap();
    symlink("../new", rig.root.join("dangling")).unwrap();
    let sibling = rig.root.with_file_name("inside-not");
    std::fs::create_dir(&sibling).unwrap();
    std::fs::write(sibling.join("f"), "secret").unwrap();
    let sibling = sibling.join("f");
    for path in [
        "../secret",
        "in/../../secret",
        "/etc/passwd",
        "/proc/self/environ",
        outside.to_str().unwrap(),
        sibling.to_str().unwrap(),
        "absolute",
        "relative",
        "winding",
        "up/secret",
        "up/inside/../secret",
        "dangling",
    ] {
        rig.call("Read", json!({"path": path})).await.refused(OUTSIDE);
        rig.call("Write", json!({"path": path, "content": "x"})).await.refused(OUTSIDE);
        let edit = json!({"path": path, "old": "secret", "new": "x"});
        rig.call("Edit", edit).await.refused(OUTSIDE);
        rig.call("Grep", json!({"path": path, "pattern": "."})).await.refused(OUTSIDE);
        rig.call("Glob", json!({"cwd": path, "pattern": "*"})).await.refused(OUTSIDE);
        rig.call("Bash", json!({"cwd": path, "command": "true"})).await.refused(OUTSIDE);
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "secret");
    assert!(!rig.around.path().join("new").exists());
    // Walks skip links.
    let found = rig.call("Grep", json!({"pattern": "secret|inside"})).await.ok();
    assert_eq!(found.text(), "in/file:1:inside");
    rig.call("Glob", json!({"pattern": "../*"})).await.refused("invalid glob");
}

#[tokio::test]
async fn links_that_stay_inside_are_followed() {
    let rig = Rig::new();
    rig.put("in/file", "inside");
    symlink("in", rig.root.join("folder")).unwrap();
    symlink("folder/file", rig.root.join("link")).unwrap();
    symlink(rig.root.join("in/file"), rig.root.join("absolute")).unwrap();
    symlink("made/here", rig.root.join("dangling")).unwrap();
    symlink("loop", rig.root.join("loop")).unwrap();
    for path in ["link", "folder/file", "absolute", "folder/../in/file"] {
        assert_eq!(rig.call("Read", json!({"path": path})).await.ok().text(), "inside", "{path}");
    }
    rig.call("Write", json!({"path": "link", "content": "new"})).await.ok();
    assert_eq!(rig.get("in/file"), "new");
    assert!(rig.root.join("link").is_symlink(), "the link itself stays");
    rig.call("Write", json!({"path": "dangling", "content": "made"})).await.ok();
    assert_eq!(rig.get("made/here"), "made");
    rig.call("Read", json!({"path": "loop"})).await.refused("too many symbolic links");
}

#[tokio::test]
async fn the_home_is_refused_inside_the_root_by_any_name() {
    let rig = Rig::new();
    rig.put("gate/agent-token", "token");
    rig.put("other", "no token");
    symlink("gate", rig.root.join("alias")).unwrap();
    symlink("gate/agent-token", rig.root.join("direct")).unwrap();
    for path in ["gate/agent-token", "alias/agent-token", "direct", "./x/../gate/agent-token"] {
        if path.contains("x/") {
            std::fs::create_dir(rig.root.join("x")).unwrap();
        }
        rig.call("Read", json!({"path": path})).await.refused("Countersign's own home");
        let write = json!({"path": path, "content": "x"});
        rig.call("Write", write).await.refused("Countersign's own home");
    }
    let bash = json!({"command": "true", "cwd": "gate"});
    rig.call("Bash", bash).await.refused("Countersign's own home");
    let found = rig.call("Grep", json!({"pattern": "token"})).await.ok();
    assert_eq!(found.text(), "other:1:no token");
    let found = rig.call("Glob", json!({"pattern": "**"})).await.ok();
    assert_eq!(found.text(), "other");
    for root in ["gate", "gate/below"] {
        std::fs::create_dir_all(rig.root.join(root)).unwrap();
        let folders = vec![rig.root.join("gate")];
        let off_limits = OffLimits { folders, ..OffLimits::default() };
        assert!(Workspace::new(&rig.root.join(root), ALL, off_limits).is_err(), "{root}");
    }
}

#[tokio::test]
async fn a_home_that_is_still_to_be_made_is_refused_too() {
    let rig = Rig::new();
    let write = json!({"path": "gate/keys/x", "content": "x"});
    rig.call("Write", write).await.refused("Countersign's own home");
    assert!(!rig.root.join("gate").exists());
}

/// Anyone who can write the configuration can allow themselves anything.
#[tokio::test]
async fn countersigns_own_files_cannot_be_changed_under_any_name() {
    let rig = Rig::with(Permissions { allow_outside: true, ..ALL });
    let program = rig.root.parent().unwrap().join("program");
    std::fs::write(&program, "shell: false").unwrap();
    rig.put("own/config.json", "shell: false");
    rig.put("own/other.json", "shell: false");
    rig.put("elsewhere/config.json", "shell: false");
    std::fs::hard_link(rig.root.join("own/config.json"), rig.root.join("hard")).unwrap();
    symlink("own/config.json", rig.root.join("soft")).unwrap();
    symlink("own", rig.root.join("folder")).unwrap();
    let program = program.to_str().unwrap();
    for path in
        ["own/config.json", "own/../own/config.json", "hard", "soft", "folder/config.json", program]
    {
        let write = json!({"path": path, "content": "shell: true"});
        rig.call("Write", write).await.refused("which no tool can change");
        let edit = json!({"path": path, "old": "false", "new": "true"});
        rig.call("Edit", edit).await.refused("which no tool can change");
        rig.call("Read", json!({"path": path})).await.ok();
    }
    assert_eq!(rig.get("own/config.json"), "shell: false");
    for path in ["own/other.json", "elsewhere/config.json"] {
        rig.call("Write", json!({"path": path, "content": "x"})).await.ok();
    }
}

#[tokio::test]
async fn a_missing_configuration_file_cannot_be_created() {
    let rig = Rig::new();
    for path in ["own/config.json", "own/CONFIG.JSON"] {
        let write = json!({"path": path, "content": "shell: true"});
        rig.call("Write", write).await.refused("which no tool can change");
    }
    assert_eq!(std::fs::read_dir(rig.root.join("own")).unwrap().count(), 0);
}

#[tokio::test]
async fn nothing_is_changed_if_the_own_files_are_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let files = Arc::new(|| Err("the ledger cannot be read".to_owned()));
    let off_limits = OffLimits { files, ..OffLimits::default() };
    let workspace = Workspace::new(dir.path(), ALL, off_limits).unwrap();
    let root = dir.path().to_owned();
    let rig = Rig { around: dir, root, workspace };
    let write = json!({"path": "a", "content": "x"});
    rig.call("Write", write).await.refused("the ledger cannot be read");
    assert!(!rig.root.join("a").exists());
}

#[tokio::test]
async fn outside_can_be_allowed_but_never_the_home() {
    let rig = Rig::with(Permissions { allow_outside: true, ..ALL });
    let outside = rig.root.with_file_name("outside");
    std::fs::write(&outside, "outside").unwrap();
    rig.put("in", "inside");
    rig.put("gate/key", "key");
    symlink(&outside, rig.root.join("link")).unwrap();
    for path in [outside.to_str().unwrap(), "../outside", "link"] {
        assert_eq!(rig.call("Read", json!({"path": path})).await.ok().text(), "outside");
    }
    assert_eq!(rig.call("Read", json!({"path": "in"})).await.ok().text(), "inside");
    let home = rig.root.join("gate/key");
    for path in ["gate/key", "../inside/gate/key", home.to_str().unwrap()] {
        rig.call("Read", json!({"path": path})).await.refused("Countersign's own home");
    }
}

#[tokio::test]
async fn a_folder_swapped_for_a_link_never_lets_a_write_out() {
    swapped(1_000).await;
}

#[tokio::test]
async fn long_a_folder_swapped_for_a_link_never_lets_a_write_out() {
    if is_long_or_skipped() {
        swapped(10_000).await;
    }
}

/// Swaps a folder for a link that leads outside, and the file in it too, as fast as possible.
async fn swapped(rounds: usize) {
    let rig = Rig::new();
    let outside = rig.root.with_file_name("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("file"), "secret").unwrap();
    rig.put("folder/file", "inside");
    symlink(&outside, rig.root.join("evil")).unwrap();
    let (done, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let swapping = std::thread::spawn({
        let (root, done, swaps) = (rig.root.clone(), done.clone(), swaps.clone());
        move || swap_until(&root, &done, &swaps)
    });
    let (mut written, mut refused) = (0, 0);
    // Both outcomes must be frequent: otherwise there was no race. A busy machine needs more rounds.
    let least = rounds / 100;
    let raced = |written: usize, refused: usize| {
        written >= least && refused >= least && swaps.load(Ordering::Relaxed) >= rounds / 10
    };
    for round in 0..20 * rounds {
        if round >= rounds && raced(written, refused) {
            break;
        }
        let content = format!("round {round}");
        let said = rig.call("Write", json!({"path": "folder/file", "content": content})).await;
        if said.is_error {
            refused += 1;
        } else {
            written += 1;
        }
        let said = rig.call("Read", json!({"path": "folder/file"})).await;
        assert!(!said.text().contains("secret"), "round {round}: {}", said.text());
        let said = rig.call("Grep", json!({"pattern": "secret"})).await;
        assert_eq!(said.text(), "no matching lines", "round {round}");
    }
    done.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "something was left outside");
    assert!(raced(written, refused), "{written} written, {refused} refused, {swaps:?} swaps");
}

/// Counts how often the folder was a link. The two are exchanged in one step: if neither existed
/// for a moment, a write would create the folder anew and nothing would be swapped from then on.
fn swap_until(root: &Path, done: &AtomicBool, swaps: &AtomicUsize) {
    let at = |name: &str| root.join(name);
    let exchange = || {
        renameat_with(CWD, at("folder"), CWD, at("evil"), RenameFlags::EXCHANGE).unwrap();
    };
    while !done.load(Ordering::Relaxed) {
        exchange();
        std::thread::yield_now();
        exchange();
        swaps.fetch_add(1, Ordering::Relaxed);
        // For a moment the file is the link.
        symlink(root.with_file_name("outside").join("file"), at("bait")).unwrap();
        std::fs::rename(at("bait"), at("folder/file")).unwrap();
        std::thread::yield_now();
        let _ = std::fs::remove_file(at("folder/file"));
        std::thread::yield_now();
    }
}
