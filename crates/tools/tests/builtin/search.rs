//! Glob and Grep.

use std::time::Duration;

use provider::{CallContext, ProviderError};
use serde_json::json;

use crate::rig::Rig;

fn forest() -> Rig {
    let rig = Rig::new();
    for (path, content) in [
        ("Cargo.toml", "[package]\n"),
        ("src/main.rs", "fn main() {\n    helper();\n}\n"),
        ("src/deep/er/lib.rs", "pub fn helper() {}\npub fn Helper() {}\n"),
        ("src/note.md", "helper\n"),
        (".hidden/x.rs", "helper\n"),
        ("target/out.rs", "helper\n"),
        (".git/config.rs", "helper\n"),
        (".gitignore", "target/\n*.log\n"),
        ("src/a.log", "helper\n"),
        ("src/keep.log", "helper\n"),
        ("src/.gitignore", "!keep.log\n"),
    ] {
        rig.put(path, content);
    }
    rig.put("bin.rs", b"helper\0\n");
    rig
}

#[tokio::test]
async fn glob_finds_by_pattern() {
    let rig = forest();
    let root = rig.root.to_str().unwrap().to_owned();
    for (arguments, expected) in [
        (json!({"pattern": "*.rs"}), "bin.rs"),
        (json!({"pattern": "**/*.rs"}), ".hidden/x.rs bin.rs src/deep/er/lib.rs src/main.rs"),
        (json!({"pattern": "src/**/*.{rs,md}"}), "src/deep/er/lib.rs src/main.rs src/note.md"),
        (json!({"pattern": "**/*.rs", "cwd": "src"}), "src/deep/er/lib.rs src/main.rs"),
        (json!({"pattern": "./src/*.rs"}), "src/main.rs"),
        (json!({"pattern": format!("{root}/src/*.rs")}), "src/main.rs"),
        (json!({"pattern": "**/*.log"}), "src/keep.log"),
        (json!({"pattern": "*.log", "cwd": "src"}), "src/keep.log"),
        (json!({"pattern": "*.log", "cwd": "src", "no_ignore": true}), "src/a.log src/keep.log"),
        (json!({"pattern": "target/*", "no_ignore": true}), "target/out.rs"),
        (json!({"pattern": "[cC]argo.t?ml"}), "Cargo.toml"),
        (json!({"pattern": "*.java"}), "no matching files"),
    ] {
        let said = rig.call("Glob", arguments.clone()).await.ok();
        let mut paths: Vec<&str> = said.text().lines().collect();
        paths.sort_unstable();
        assert_eq!(paths.join(" "), expected, "{arguments}");
    }
    for (arguments, words) in [
        (json!({"pattern": "src/[a"}), "invalid glob 'src/[a': unclosed character class"),
        (json!({"pattern": "{a"}), "invalid glob '{a'"),
        (json!({"pattern": "/etc/*"}), "invalid glob '/etc/*': must be relative"),
        (json!({"pattern": ""}), "the pattern is empty"),
        (json!({"pattern": "*", "cwd": "no"}), "no' does not exist"),
        (json!({"pattern": "*", "cwd": "bin.rs"}), "is not a directory"),
    ] {
        rig.call("Glob", arguments).await.refused(words);
    }
}

#[tokio::test]
async fn glob_gives_the_newest_first() {
    let rig = Rig::new();
    for (name, age) in [("old", 300), ("new", 0), ("middle", 100)] {
        rig.put(name, "");
        let file = std::fs::OpenOptions::new().write(true).open(rig.root.join(name)).unwrap();
        let made = file.metadata().unwrap().modified().unwrap();
        file.set_modified(made - Duration::from_secs(age)).unwrap();
    }
    let said = rig.call("Glob", json!({"pattern": "*"})).await.ok();
    assert_eq!(said.text(), "new\nmiddle\nold");
}

#[tokio::test]
async fn grep_prints_lines_files_and_counts() {
    let rig = forest();
    for (arguments, expected) in [
        (
            json!({"pattern": "helper"}),
            ".hidden/x.rs:1:helper|src/deep/er/lib.rs:1:pub fn helper() {}|\
             src/keep.log:1:helper|src/main.rs:2:    helper();|src/note.md:1:helper",
        ),
        (
            json!({"pattern": "helper", "glob": "*.rs", "path": "src", "case_insensitive": true,
                "output_mode": "count"}),
            "src/deep/er/lib.rs:2|src/main.rs:1",
        ),
        (
            json!({"pattern": "helper", "glob": "*.{rs,md}", "output_mode": "files_with_matches"}),
            ".hidden/x.rs|src/deep/er/lib.rs|src/main.rs|src/note.md",
        ),
        (
            json!({"pattern": "helper", "glob": "deep/**/*.rs", "path": "src"}),
            "src/deep/er/lib.rs:1:pub fn helper() {}",
        ),
        (
            json!({"pattern": "helper", "path": "src/main.rs", "context": 1}),
            "src/main.rs-1-fn main() {|src/main.rs:2:    helper();|src/main.rs-3-}",
        ),
        (json!({"pattern": "^fn", "path": "src/main.rs"}), "src/main.rs:1:fn main() {"),
        (json!({"pattern": "helper", "path": "bin.rs"}), "no matching lines"),
        (json!({"pattern": "absent"}), "no matching lines"),
        (
            json!({"pattern": "helper", "glob": "*.log", "no_ignore": true}),
            "src/a.log:1:helper|src/keep.log:1:helper",
        ),
    ] {
        let said = rig.call("Grep", arguments.clone()).await.ok();
        assert_eq!(said.text().lines().collect::<Vec<_>>().join("|"), expected, "{arguments}");
    }
    for (arguments, words) in [
        (json!({"pattern": "a(b"}), "invalid regular expression 'a(b': unclosed group"),
        (
            json!({"pattern": "a[z-a]"}),
            "invalid regular expression 'a[z-a]': invalid character class range, the start must \
             be <= the end, at character 3",
        ),
        (json!({"pattern": "x", "glob": "["}), "invalid glob"),
        (json!({"pattern": "x", "output_mode": "all"}), "invalid output_mode 'all'"),
        (json!({"pattern": "x", "path": "no"}), "no' does not exist"),
        (json!({}), "'pattern' is missing"),
    ] {
        rig.call("Grep", arguments).await.refused(words);
    }
}

/// Small files are read whole, others in chunks.
#[tokio::test]
async fn grep_finds_the_same_in_files_of_any_size() {
    for bytes in [0, 100, (1 << 16) - 8, (1 << 16) - 7, (1 << 16) - 6, 1 << 18] {
        let rig = Rig::new();
        let filler = "filler\n".repeat(bytes / 7) + &"x".repeat(bytes % 7);
        let last = bytes / 7 + 1;
        rig.put("binary", format!("{filler}needle\n\0"));
        rig.put("text", format!("{filler}needle\n"));
        let wide = format!("\u{feff}{filler}needle\n");
        rig.put("wide", wide.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
        let line = format!("{}needle", "x".repeat(bytes % 7));
        let said = rig.call("Grep", json!({"pattern": "needle"})).await.ok();
        assert_eq!(said.texts, [format!("text:{last}:{line}\nwide:{last}:{line}")], "{bytes}");
    }
}

#[tokio::test]
async fn grep_keeps_to_the_order_of_the_walk_however_many_search() {
    let rig = Rig::new();
    for number in 0..2_000 {
        rig.put(&format!("{:02}/{:04}", number % 40, number), "x\n".repeat(number % 90));
    }
    let said = rig.call("Grep", json!({"pattern": "x", "output_mode": "count"})).await.ok();
    let mut expected: Vec<_> = (0..2_000)
        .filter(|number| number % 90 > 0)
        .map(|number| format!("{:02}/{:04}:{}", number % 40, number, number % 90))
        .collect();
    expected.sort();
    assert_eq!(said.text().lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn grep_stops_at_ten_thousand_lines_with_a_note() {
    let rig = Rig::new();
    rig.put("a", "x\n".repeat(6_000));
    rig.put("b", "x\n".repeat(6_000));
    let said = rig.call("Grep", json!({"pattern": "x"})).await.ok();
    assert_eq!(said.text().lines().count(), 10_000);
    assert!(said.texts[1].contains("cut at 10000 lines"), "{:?}", said.texts[1]);
    let said = rig.call("Grep", json!({"pattern": "x", "output_mode": "count"})).await.ok();
    assert_eq!(said.texts, ["a:6000\nb:6000"]);
}

#[tokio::test]
async fn unreadable_files_are_noted_and_the_rest_is_searched() {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::new();
    rig.put("good", "x\n");
    rig.put("long", vec![b'y'; 20 * 1024 * 1024]);
    rig.put("shut", "x\n");
    let shut = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(rig.root.join("shut"), shut).unwrap();
    let may_all = std::fs::File::open(rig.root.join("shut")).is_ok();
    let said = rig.call("Grep", json!({"pattern": "x"})).await.ok();
    assert!(said.text().starts_with("good:1:x"), "{}", said.text());
    assert!(said.texts[1].contains("long: "), "{:?}", said.texts[1]);
    // The superuser can open everything.
    if !may_all {
        assert!(said.texts[1].contains("permission denied"), "{:?}", said.texts[1]);
    }
}

#[tokio::test]
async fn a_search_ends_when_it_is_cancelled_or_late() {
    let rig = Rig::new();
    let file = std::fs::File::create(rig.root.join("huge")).unwrap();
    file.set_len(1 << 36).unwrap();
    rig.put("huge-text", "");
    for _ in 0..2 {
        let ctx = CallContext::within(Duration::from_secs(60));
        ctx.cancel.cancel();
        let said = rig.call_with("Grep", json!({"pattern": "x"}), &ctx).await;
        assert!(matches!(said, Err(ProviderError::Cancelled { .. })), "{said:?}");
    }
    let line = "y\n".repeat(512 * 1024);
    for number in 0..40 {
        rig.put(&format!("many/{number}"), &line);
    }
    let ctx = CallContext::within(Duration::from_millis(30));
    let said = rig.call_with("Grep", json!({"pattern": "(x+x+)+z"}), &ctx).await;
    assert!(matches!(said, Err(ProviderError::Timeout { .. })), "{said:?}");
}
