//! The Rust in `generated` is what the files in `proto` compile to. `UPDATE_GENERATED=1` rewrites it.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

use std::fs;
use std::path::Path;

#[test]
fn the_generated_code_matches_the_protocol() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fresh = tempfile::tempdir().unwrap();
    generate(&folder.join("proto"), fresh.path());
    let mut names: Vec<_> =
        fs::read_dir(fresh.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["grpc.health.v1.rs", "plugin.rs", "plugin.v1.rs"]);
    for name in names {
        let (expected, kept) = (fresh.path().join(&name), folder.join("generated").join(&name));
        if std::env::var_os("UPDATE_GENERATED").is_some() {
            fs::copy(&expected, &kept).unwrap();
        }
        let (expected, kept) = (fs::read(expected).unwrap(), fs::read(kept).unwrap());
        assert!(expected == kept, "{name:?} is out of date: run with UPDATE_GENERATED=1");
    }
}

fn generate(protocol: &Path, folder: &Path) {
    let described =
        protox::compile(["plugin.proto", "go_plugin.proto", "health.proto"], [protocol]).unwrap();
    tonic_prost_build::configure()
        // A fixed order, so that the same response is the same text.
        .btree_map(".")
        .build_transport(false)
        .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
        .out_dir(folder)
        .compile_fds(described)
        .unwrap();
}
