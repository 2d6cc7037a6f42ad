//! Read, Write and Edit.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::run::is_long;
use tools::builtin::Permissions;

use crate::rig::Rig;

#[tokio::test]
async fn read_gives_the_lines_that_were_asked_for() {
    let rig = Rig::new();
    rig.put("a.txt", "one\r\ntwo\nthree");
    rig.put("empty", "");
    let root = rig.root.to_str().unwrap();
    for (arguments, texts) in [
        (json!({"path": "a.txt"}), vec!["one\r\ntwo\nthree"]),
        (json!({"file_path": "./a.txt"}), vec!["one\r\ntwo\nthree"]),
        (json!({"path": format!("{root}/a.txt")}), vec!["one\r\ntwo\nthree"]),
        (json!({"path": "no/../a.txt"}), vec!["!'"]),
        (json!({"path": "a.txt", "offset": 1}), vec!["two\nthree"]),
        (json!({"path": "a.txt", "offset": 1, "limit": 2}), vec!["two\nthree"]),
        (
            json!({"path": "a.txt", "limit": 1}),
            vec!["one\r\n", "[there is more: continue with offset 1]"],
        ),
        (json!({"path": "a.txt", "offset": 3}), vec!["!has 3 lines; offset 3 is past"]),
        (json!({"path": "empty"}), vec![""]),
        (json!({"path": "b.txt"}), vec!["!b.txt' does not exist"]),
        (json!({"path": "x/y/b.txt"}), vec!["!x/y/b.txt' does not exist"]),
        (json!({"path": "a.txt/b"}), vec!["!is not a directory"]),
        (json!({"path": "."}), vec!["!is a directory"]),
        (json!({}), vec!["!'path' is missing"]),
        (json!({"path": ""}), vec!["!'path' is empty"]),
        (json!({"path": 7}), vec!["!'path' must be a string"]),
        (json!({"path": "a.txt", "offset": -1}), vec!["!'offset' must be a whole number"]),
        (json!({"path": "a\u{0}b"}), vec!["!NUL"]),
        (json!({"path": "n".repeat(300)}), vec!["!too long"]),
    ] {
        let said = rig.call("Read", arguments.clone()).await;
        match texts[0].strip_prefix('!') {
            Some(words) => said.refused(words),
            None => assert_eq!(said.ok().texts, texts, "{arguments}"),
        }
    }
}

#[tokio::test]
async fn read_tells_binary_images_and_other_encodings_apart() {
    let rig = Rig::new();
    rig.put("b.bin", b"abc\0def");
    rig.put("latin", b"caf\xe9\n");
    let png = [b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 20]].concat();
    rig.put("image", &png);
    rig.call("Read", json!({"path": "b.bin"})).await.refused("is a binary file of 7 bytes");
    let said = rig.call("Read", json!({"path": "latin"})).await.ok();
    assert_eq!(said.text(), "caf\u{fffd}\n");
    assert!(said.texts[1].contains("not all UTF-8"), "{said:?}");
    let said = rig.call("Read", json!({"path": "image"})).await.ok();
    let block = &said.result["content"][0];
    assert_eq!((&block["type"], &block["mimeType"]), (&json!("image"), &json!("image/png")));
    assert!(block["data"].as_str().unwrap().starts_with("iVBORw0KGgo"), "{block}");
}

#[tokio::test]
async fn a_pipe_is_refused_and_holds_nothing_up() {
    let rig = Rig::new();
    let made = std::process::Command::new("mkfifo").arg(rig.root.join("pipe")).status().unwrap();
    assert!(made.success());
    rig.call("Read", json!({"path": "pipe"})).await.refused("is not a regular file");
    rig.call("Write", json!({"path": "pipe", "content": ""})).await.refused("not a regular file");
}

#[tokio::test]
async fn a_big_file_is_read_page_by_page() {
    let rig = Rig::new();
    let line = format!("{}\n", "x".repeat(1023));
    rig.put("big", line.repeat(50 * 1024));
    let (mut offset, mut bytes) = (0, 0);
    loop {
        let said = rig.call("Read", json!({"path": "big", "offset": offset})).await.ok();
        assert!(said.text().len() <= 5 * 1024 * 1024);
        bytes += said.text().len();
        let Some(note) = said.texts.get(1) else { break };
        let next = note.trim_end_matches(']').rsplit(' ').next().unwrap();
        let next: u64 = next.parse().unwrap();
        assert!(next > offset, "{note}");
        offset = next;
    }
    assert_eq!(bytes, 50 * 1024 * 1024);
}

#[tokio::test]
async fn a_line_that_does_not_fit_is_cut_and_passed() {
    let rig = Rig::new();
    rig.put("long", format!("{}\nend\n", "é".repeat(3 * 1024 * 1024)));
    let said = rig.call("Read", json!({"path": "long"})).await.ok();
    assert!(said.text().len() <= 5 * 1024 * 1024 && said.text().ends_with('é'));
    assert!(said.texts[1].contains("continue after it with offset 1"), "{:?}", said.texts[1]);
    let said = rig.call("Read", json!({"path": "long", "offset": 1})).await.ok();
    assert_eq!(said.texts, ["end\n"]);
}

#[tokio::test]
async fn long_a_sparse_gigabyte_is_passed_over_in_bounded_memory() {
    let rig = Rig::new();
    let bytes = if is_long() { 1 << 30 } else { 100 << 20 };
    rig.put("sparse", "first\n");
    let file = std::fs::OpenOptions::new().write(true).open(rig.root.join("sparse")).unwrap();
    file.set_len(bytes).unwrap();
    let before = peak_kib();
    // The head is text up to the hole, which begins after the inspected bytes.
    rig.put("text", "line\n".repeat(4096));
    let text = std::fs::OpenOptions::new().write(true).open(rig.root.join("text")).unwrap();
    text.set_len(bytes).unwrap();
    rig.call("Read", json!({"path": "text", "offset": 5000})).await.refused("has 4097 lines");
    rig.call("Read", json!({"path": "sparse"})).await.refused("binary");
    let grown = peak_kib() - before;
    // In a short run, other tests use memory at the same time.
    if is_long() {
        assert!(grown < 64 * 1024, "{grown} KiB more");
    }
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or_default()
}

#[tokio::test]
async fn write_makes_folders_and_keeps_the_mode() {
    let rig = Rig::new();
    let said = rig.call("Write", json!({"path": "a/b/c.txt", "content": "héllo"})).await.ok();
    assert_eq!(said.text(), "OK: 6 bytes written to a/b/c.txt");
    assert_eq!(rig.get("a/b/c.txt"), "héllo");
    let path = rig.root.join("a/b/c.txt");
    for mode in [0o600, 0o755, 0o444] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let content = format!("{mode:o}");
        rig.call("Write", json!({"file_path": "a/b/c.txt", "content": content})).await.ok();
        assert_eq!(rig.get("a/b/c.txt"), content);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode);
    }
    let names: Vec<_> = std::fs::read_dir(rig.root.join("a/b")).unwrap().collect();
    assert_eq!(names.len(), 1, "a temporary file is left: {names:?}");
    rig.call("Write", json!({"path": "a", "content": ""})).await.refused("is a directory");
    rig.call("Write", json!({"path": "a/b/c.txt/d", "content": ""})).await.refused("directory");
    rig.call("Write", json!({"path": "n"})).await.refused("'content' is missing");
}

#[tokio::test]
async fn edit_replaces_what_it_finds_and_says_where() {
    let rig = Rig::new();
    let text = "fn a() {}\nfn b() {}\nfn a() {}\n";
    for (old, new, all, expected) in [
        ("fn b", "fn c", false, Ok("fn a() {}\nfn c() {}\nfn a() {}\n")),
        ("fn a", "fn d", true, Ok("fn d() {}\nfn b() {}\nfn d() {}\n")),
        ("{}\nfn b", "{}", false, Ok("fn a() {}() {}\nfn a() {}\n")),
        ("fn a", "fn d", false, Err("was found 2 times in 'f.rs', at lines 1, 3")),
        ("fn z", "fn d", false, Err("was not found in 'f.rs'")),
        ("", "fn d", false, Err("'old' is empty")),
        ("fn a", "fn a", false, Err("are the same")),
    ] {
        rig.put("f.rs", text);
        let arguments = json!({"path": "f.rs", "old": old, "new": new, "replace_all": all});
        let said = rig.call("Edit", arguments).await;
        match expected {
            Ok(expected) => {
                said.ok();
                assert_eq!(rig.get("f.rs"), expected, "{old}");
            }
            Err(words) => {
                said.refused(words);
                assert_eq!(rig.get("f.rs"), text, "{old}");
            }
        }
    }
    rig.put("f.rs", text);
    let aliases = json!({"file_path": "f.rs", "old_string": "fn b", "new_string": "fn c"});
    let said = rig.call("Edit", aliases).await.ok();
    assert_eq!(said.text(), "OK: 1 replacement in f.rs\n@@ line 2 @@\n-fn b\n+fn c");
    rig.call("Edit", json!({"path": "no", "old": "a", "new": "b"})).await.refused("does not exist");
}

#[tokio::test]
async fn only_what_is_allowed_is_listed_and_runs() {
    for (write, shell, expected) in [
        (false, false, "Read Glob Grep"),
        (true, false, "Read Write Edit Glob Grep"),
        (false, true, "Read Bash Glob Grep"),
        (true, true, "Read Write Edit Bash Glob Grep"),
    ] {
        let rig = Rig::with(Permissions { write, shell, allow_outside: false });
        let definitions = rig.workspace.definitions();
        let tools: Vec<Value> =
            definitions.iter().map(|raw| serde_json::from_str(raw.get()).unwrap()).collect();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names.join(" "), expected);
        for name in ["Write", "Edit", "Bash"] {
            if !names.contains(&name) {
                rig.call(name, json!({"command": "touch x"})).await.refused("has no tool");
            }
        }
        for tool in &tools {
            assert!(tool["description"].as_str().unwrap().len() > 20, "{tool}");
            for (name, parameter) in tool["inputSchema"]["properties"].as_object().unwrap() {
                assert!(parameter["description"].is_string(), "{name} of {tool}");
            }
            let hints = &tool["annotations"];
            let (read_only, destructive) = match tool["name"].as_str().unwrap() {
                "Write" | "Edit" => (false, Some(false)),
                "Bash" => (false, Some(true)),
                _ => (true, None),
            };
            assert_eq!(hints["readOnlyHint"], read_only, "{tool}");
            assert_eq!(hints["destructiveHint"].as_bool(), destructive, "{tool}");
        }
    }
}
