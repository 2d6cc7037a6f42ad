//! Neighbours that watch files while they are written.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;
use testkit::gate::Gate;

#[derive(Default)]
struct Signs {
    seen: AtomicUsize,
    has_ended: AtomicBool,
}

/// Watches for temporary files with content until the test ends; returns their modes.
fn watch(folder: &Path, signs: &Signs) -> Vec<u32> {
    let mut modes = Vec::new();
    while !signs.has_ended.load(Ordering::SeqCst) {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let temporary =
            entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "tmp"));
        for found in temporary.filter_map(|entry| entry.metadata().ok()) {
            if found.len() > 0 {
                modes.push(found.permissions().mode() & 0o777);
                signs.seen.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
    modes
}

/// The file in which new content is prepared is as closed as the target, from its first byte on.
#[tokio::test]
async fn a_neighbour_cannot_read_what_is_being_written() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().canonicalize().unwrap().join("project");
    std::fs::create_dir(&folder).unwrap();
    let secret = folder.join("secret.txt");
    std::fs::write(&secret, "old").unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    let config = json!({"mcpServers": {}, "workspace": {"root": folder, "write": true}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let gate = Gate::open(dir).await;
    let client = gate.http().await;
    let signs = Arc::new(Signs::default());
    let watched = signs.clone();
    let watching = tokio::task::spawn_blocking(move || watch(&folder, &watched));
    let arguments = json!({"file_path": secret, "content": "secret ".repeat(200_000)});
    // Often enough that some are seen before the end of a write.
    while signs.seen.load(Ordering::SeqCst) < 25 {
        let answer = client.two_key_call("write", "workspace:Write", arguments.clone()).await;
        assert_ne!(answer["isError"], true, "{answer}");
    }
    signs.has_ended.store(true, Ordering::SeqCst);
    let modes = watching.await.unwrap();
    assert!(modes.iter().all(|mode| *mode == 0o600), "{modes:?}");
}
