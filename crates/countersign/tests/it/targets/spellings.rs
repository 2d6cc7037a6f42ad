//! The spellings of a path, for each of the gate's own tools: what is opened is what the record
//! names.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::client::{Client, code};
use testkit::gate::Gate;
use testkit::program::{run, stdout};

use crate::health::doctor;
use crate::ledger::records_when;

use super::gate;

const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

/// The hosts of addresses of files, and the folders of these names as records name them.
const ADDRESS_HOSTS: [(&str, &str); 3] =
    [("", ""), ("localhost", "localhost"), ("u:p@localhost", "[redacted]")];

/// Returns the folder below this one to which the address of this one leads, taken as a path.
fn below_address(folder: &Path, host: &str) -> PathBuf {
    folder.join("file:").join(host).join(folder.strip_prefix("/").unwrap())
}

/// Spellings of `real/f.txt` in a folder, and one that leads elsewhere, where something else is named.
fn spellings(folder: &Path) -> Vec<(String, String)> {
    let (shown, mut list) = (|path: &str| folder.join(path).display().to_string(), Vec::new());
    let long = "./".repeat(3000);
    for path in [
        "real/f.txt",
        "./real/./f.txt",
        "real/../real/f.txt",
        "real//f.txt",
        "real/f.txt/",
        "link.txt",
        "linked/f.txt",
        "linked/../real/f.txt",
        "deep/up/f.txt",
        "deep/up/../real/f.txt",
        "password=hunter2hunter2/../real/f.txt",
        "u:p@h/../real/f.txt",
        "$HOME/../real/f.txt",
        "~/../real/f.txt",
        "x://../real/f.txt",
    ] {
        list.push((path.to_owned(), shown("real/f.txt")));
    }
    list.push((format!("{long}real/f.txt"), shown("real/f.txt")));
    list.push((shown("real/f.txt"), shown("real/f.txt")));
    list.push((format!("/{}", shown("linked/f.txt")), shown("real/f.txt")));
    list.push((format!("{TOKEN}/../real/f.txt"), shown("real/f.txt")));
    list.push((format!("{TOKEN}.lnk"), shown("real/f.txt")));
    // Distinct files.
    list.push((format!("{TOKEN}/f.txt"), shown("[redacted]/f.txt")));
    list.push((format!("{TOKEN}.txt"), shown("[redacted]")));
    list.push((" f.txt ".to_owned(), shown(" f.txt ")));
    list.push(("a\r\nb".to_owned(), shown("a⟨U+000D⟩⟨U+000A⟩b")));
    list.push(("F.TXT".to_owned(), shown("F.TXT")));
    list.push(("real%2Ff.txt".to_owned(), shown("real%2Ff.txt")));
    list.push(("fe\u{301}".to_owned(), shown("fe\u{301}")));
    list.push(("f\u{e9}".to_owned(), shown("f\u{e9}")));
    // To these tools an address is a path like any other.
    for (host, named) in ADDRESS_HOSTS {
        let path = format!("file://{host}{}", shown("real/f.txt"));
        let name = below_address(folder, named).join("real/f.txt");
        list.push((path, name.display().to_string()));
    }
    // None is opened.
    list.push(("real/f.txt\0".to_owned(), shown("real/f.txt⟨U+0000⟩")));
    list.push((format!("/etc/shadow?access_token={TOKEN}"), "/etc/[redacted]".to_owned()));
    list
}

/// A gate over a folder with links and files of odd names, and what its records must say.
struct Spelled {
    gate: Gate,
    folder: PathBuf,
    client: Client,
    /// The tool, the access and the name of each call.
    expected: Vec<(&'static str, &'static str, Option<String>)>,
}

impl Spelled {
    async fn new() -> Spelled {
        let gate = gate().await;
        let folder = gate.dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(folder.join("deep")).unwrap();
        symlink("../real", folder.join("deep/up")).unwrap();
        for made in [TOKEN, "password=hunter2hunter2", "u:p@h", "$HOME", "~", "x:"] {
            std::fs::create_dir_all(folder.join(made)).unwrap();
        }
        for (host, _) in ADDRESS_HOSTS {
            std::fs::create_dir_all(below_address(&folder, host).join("real")).unwrap();
        }
        symlink("real/f.txt", folder.join(format!("{TOKEN}.lnk"))).unwrap();
        let client = gate.http().await;
        Spelled { gate, folder, client, expected: Vec::new() }
    }

    /// Calls one of the gate's tools, declared as reading and as writing, and last as what it is;
    /// reports whether that succeeded. The record names the same each time, also of a call that is
    /// refused because its tool destroys.
    async fn call(&mut self, tool: &'static str, arguments: Value, name: Option<String>) -> bool {
        let (declared, access): (&[&str], _) = match tool {
            "Write" | "Edit" => (&["read", "write"], "write"),
            "Bash" if arguments["command"].as_str().is_some_and(|it| it.starts_with("cat ")) => {
                (&["read", "write", "destructive"], "read")
            }
            "Bash" => (&["read", "write", "destructive"], "write"),
            _ => (&["write", "read"], "read"),
        };
        let mut succeeds = false;
        for class in declared {
            let called = format!("workspace:{tool}");
            let answer = self.client.two_key_call(class, &called, arguments.clone()).await;
            let is_refused = tool == "Bash" && *class != "destructive";
            assert_eq!(code(&answer) == "SERVER_MISMATCH", is_refused, "{tool} {class}: {answer}");
            self.expected.push((tool, access, name.clone()));
            succeeds = answer["isError"] != true;
        }
        succeeds
    }

    fn real(&self) -> String {
        std::fs::read_to_string(self.folder.join("real/f.txt")).unwrap()
    }

    fn is_real(&self, name: &str) -> bool {
        Path::new(name) == self.folder.join("real/f.txt")
    }

    /// Asserts that the records of all calls name what they opened.
    async fn check(&self) {
        let Spelled { gate, expected, .. } = self;
        let all = |records: &[Value]| {
            records.len() == expected.len() && records.iter().all(|it| it["receipt"].is_object())
        };
        let found = records_when(&gate.home(), all).await;
        for (record, (tool, access, name)) in found.iter().zip(expected) {
            assert_eq!(record["tool"], *tool, "{record}");
            assert_eq!(record["resource"], json!(name), "{record}");
            assert_eq!(record["action"]["target"]["resource"], json!(name), "{record}");
            if name.is_some() {
                assert_eq!(record["runtime"]["target_access"], *access, "{record}");
            }
            assert!(!record.to_string().contains("hunter2hunter2") || *tool == "Bash", "{record}");
        }
    }
}

/// The file that a spelling opens is the one that the record and the receipt name, and no other one
/// changes.
#[tokio::test]
async fn every_spelling_of_a_path_names_the_file_that_is_opened() {
    let mut spelled = Spelled::new().await;
    for (n, (path, name)) in spellings(&spelled.folder).into_iter().enumerate() {
        let is_opened = !path.contains(['\0', '?']);
        let text = format!("text {n}");
        for (tool, arguments) in [
            ("Write", json!({"path": path, "content": text})),
            ("Edit", json!({"file_path": path, "old": text, "new": format!("{text}!")})),
            ("Read", json!({"path": path})),
            ("Grep", json!({"pattern": "text", "path": path})),
        ] {
            let succeeds = spelled.call(tool, arguments, Some(name.clone())).await;
            assert_eq!(succeeds, is_opened, "{tool} {path:.80}");
        }
        if is_opened && spelled.is_real(&name) {
            // It was edited twice.
            assert_eq!(spelled.real(), format!("{text}!!"), "{path:.80}");
        }
    }
    spelled.check().await;
    // Another agent meets the file under its own name.
    let Spelled { gate, folder, expected, .. } = &spelled;
    let other = gate.http().await;
    other.two_key_call("read", "workspace:Read", json!({"path": "real/f.txt"})).await;
    records_when(&gate.home(), |records| records.len() == expected.len() + 1).await;
    let shown = run(gate.dir.path(), ["contention", "-o", "json"]).await;
    let graph: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    let resources = graph["edges"][0]["resources"].to_string();
    assert!(resources.contains(&*folder.join("real/f.txt").display().to_string()), "{graph}");
    assert!(graph["losses"][0]["shortened"].as_u64().unwrap() >= 8, "{graph}");
}

/// `Glob` opens a folder: that of each file, in the same spelling.
#[tokio::test]
async fn every_spelling_of_a_folder_names_the_folder_that_is_searched() {
    let mut spelled = Spelled::new().await;
    let folders = spellings(&spelled.folder).into_iter().filter_map(|(path, name)| {
        let folder = path.trim_end_matches('/').strip_suffix("f.txt")?;
        Some((folder.to_owned(), name.strip_suffix("/f.txt")?.to_owned()))
    });
    let root = spelled.folder.display().to_string();
    let own = [".", "linked/..", "deep/up/..", "real/../linked/.."]
        .map(|path| (path.to_owned(), root.clone()));
    let all: Vec<(String, String)> = folders.chain(own).collect();
    assert!(all.len() >= 21, "{}", all.len());
    for (n, (path, name)) in all.into_iter().enumerate() {
        let key = if n % 2 == 0 { "cwd" } else { "path" };
        let is_there = std::fs::metadata(spelled.folder.join(&path)).is_ok();
        let arguments = json!({"pattern": "*", key: path});
        let succeeds = spelled.call("Glob", arguments, Some(name)).await;
        assert_eq!(succeeds, is_there || path.len() > 4096, "{path:.80}");
    }
    spelled.check().await;
}

/// A shell resolves `..` behind links, and so does the record.
#[tokio::test]
async fn every_spelling_in_a_command_names_the_file_that_the_shell_opens() {
    let mut spelled = Spelled::new().await;
    let mut count = 0;
    for (n, (path, name)) in spellings(&spelled.folder).into_iter().enumerate() {
        if path.contains('\0') || path.starts_with("/etc/") {
            continue;
        }
        count += 1;
        let text = format!("text {n}");
        let write = json!({"command": format!("echo {text} > '{path}'")});
        let succeeds = spelled.call("Bash", write, Some(name.clone())).await;
        // Neither a file with a slash behind it nor a path of more than 4,096 bytes is opened.
        assert_eq!(succeeds, !path.ends_with('/') && path.len() < 4096, "{path:.80}");
        let read = json!({"command": format!("cat '{path}'")});
        assert_eq!(spelled.call("Bash", read, Some(name.clone())).await, succeeds, "{path:.80}");
        if succeeds && spelled.is_real(&name) {
            assert_eq!(spelled.real(), format!("{text}\n"), "{path:.80}");
        }
    }
    assert!(count >= 21, "{count}");
    spelled.check().await;
}

/// The operator sees which agents have records that lack a name.
#[tokio::test]
async fn what_a_record_leaves_out_is_shown_by_doctor_and_coverage() {
    let mut spelled = Spelled::new().await;
    let loops = spelled.folder.join("loop");
    symlink("loop", &loops).unwrap();
    let hidden = spelled.folder.join("[redacted]/f.txt").display().to_string();
    spelled
        .call("Write", json!({"path": format!("{TOKEN}/f.txt"), "content": "x"}), Some(hidden))
        .await;
    spelled.call("Bash", json!({"command": "rm -f loop/../f.txt"}), None).await;
    spelled.call("Bash", json!({"command": format!("rm -f '{}'", "x".repeat(5000))}), None).await;
    spelled.check().await;
    let dir = spelled.gate.dir.path();
    let told = "targets of 6 calls dropped, of 2 shortened";
    for args in [&["targets", "coverage"][..], &["contention"]] {
        let shown = stdout(&run(dir, args).await);
        assert!(shown.contains(told), "{args:?}: {shown}");
    }
    let config = dir.join("config.json");
    let shown = stdout(&doctor(dir, &["--config", config.to_str().unwrap()]).await);
    assert!(shown.contains(told), "{shown}");
}
