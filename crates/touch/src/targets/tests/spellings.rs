//! The spellings of one path, for every kind of tool that touches files: the name is that of the file,
//! however the path is written.

use serde_json::{Map, Value, json};

use super::super::{CallPlace, TargetPlan, ToolShape, of_builtin};
use super::recordable;

const ROOT: &str = "/w/shop";

/// Spellings of a path in the folder `/w/shop`, and the file that each opens.
fn spellings() -> Vec<(String, &'static str)> {
    let token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
    let own = |text: &str| text.to_owned();
    vec![
        (own("plan.md"), "/w/shop/plan.md"),
        (own("./plan.md"), "/w/shop/plan.md"),
        (own("a/../plan.md"), "/w/shop/plan.md"),
        (own("../shop/plan.md"), "/w/shop/plan.md"),
        (own("docs//plan.md"), "/w/shop/docs/plan.md"),
        (own("plan.md/"), "/w/shop/plan.md"),
        (own("/w/shop/plan.md"), "/w/shop/plan.md"),
        (own("//w/shop//./plan.md"), "/w/shop/plan.md"),
        (own("password=hunter2hunter2/../plan.md"), "/w/shop/plan.md"),
        (format!("{token}/../plan.md"), "/w/shop/plan.md"),
        (format!("{token}/plan.md"), "/w/shop/[redacted]/plan.md"),
        (format!("{jwt}/plan.md"), "/w/shop/[redacted]/plan.md"),
        (format!("/etc/shadow?access_token={token}"), "/etc/[redacted]"),
        (own("u:p@h/../plan.md"), "/w/shop/plan.md"),
        (format!("{}plan.md", "./".repeat(3000)), "/w/shop/plan.md"),
        (format!("{}plan.md", "x/../".repeat(3000)), "/w/shop/plan.md"),
        (own("$x/../plan.md"), "/w/shop/plan.md"),
        (own("{x}/../*/../plan.md"), "/w/shop/plan.md"),
        (own("~x/../plan.md"), "/w/shop/plan.md"),
        (own("x://../plan.md"), "/w/shop/plan.md"),
        (own("PLAN.md"), "/w/shop/PLAN.md"),
        (own("pl\u{e4}n.md"), "/w/shop/pl\u{e4}n.md"),
        (own("pla\u{308}n.md"), "/w/shop/pla\u{308}n.md"),
        (own(" plan.md "), "/w/shop/ plan.md "),
        (own("pl%61n.md"), "/w/shop/pl%61n.md"),
        (own("plan.md\r\nx"), "/w/shop/plan.md⟨U+000D⟩⟨U+000A⟩x"),
        (own("plan\0.md"), "/w/shop/plan⟨U+0000⟩.md"),
    ]
}

/// Addresses, which only some servers resolve.
const ADDRESSES: [&str; 3] = [
    "file:///w/shop/plan.md",
    "file://u:hunter2hunter2@localhost/w/shop/plan.md",
    "FILE:///w/shop/x/%2e%2e/pl%61n.md?token=hunter2hunter2#x",
];

fn by_builtin(tool: &str, arguments: &Value) -> Option<String> {
    let target = of_builtin(tool, arguments.as_object().unwrap(), ROOT, None)?;
    Some(recordable(target).resource().to_owned())
}

fn by_server(info: Option<&str>, tool: &str, arguments: &Value) -> Option<String> {
    let arguments = arguments.as_object().unwrap();
    let properties: Map<String, Value> =
        arguments.keys().map(|key| (key.clone(), json!({}))).collect();
    let shape = ToolShape { server: "files", info, tool, properties: &properties };
    let place =
        CallPlace { root: Some(ROOT), home: Some("/u/ada"), is_local: true, query_key: &[7; 32] };
    let (target, _) =
        TargetPlan::compile(&shape, None).find(arguments, &place).found.swap_remove(0);
    Some(recordable(target).resource().to_owned())
}

#[test]
fn every_spelling_names_the_file_for_every_tool() {
    let spellings = spellings();
    assert!(spellings.len() >= 21);
    for (path, expected) in spellings {
        for tool in ["Read", "Write", "Edit", "Glob", "Grep"] {
            let found = by_builtin(tool, &json!({ "path": path }));
            assert_eq!(found.as_deref(), Some(expected), "{tool} {path:.80}");
        }
        // A shell leaves `..` to the disk.
        let is_quotable = !path.contains(['\0', '\r']) && !path.contains("..");
        for command in [format!("echo x > '{path}'"), format!("rm -f '{path}'")] {
            if is_quotable {
                let found = by_builtin("Bash", &json!({"command": command}));
                assert_eq!(found.as_deref(), Some(expected), "{command:.80}");
            }
        }
        for info in [None, Some("secure-filesystem-server")] {
            for tool in ["read_file", "write_file", "edit_file", "list_directory", "get_file_info"]
            {
                let found = by_server(info, tool, &json!({ "path": path }));
                assert_eq!(found.as_deref(), Some(expected), "{tool} {path:.80}");
            }
        }
    }
    for address in ADDRESSES {
        for tool in ["read_file", "write_file"] {
            let found = by_server(None, tool, &json!({ "path": address }));
            assert_eq!(found.as_deref(), Some("/w/shop/plan.md"), "{tool} {address}");
        }
    }
}
