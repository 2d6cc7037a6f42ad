//! The reviewer's view of a change, and that nothing is lost in it.

use proptest::prelude::*;

use super::*;

/// Formats a difference as `diff` does.
fn shown(old: Option<&str>, new: &str) -> Vec<String> {
    let sign = |mark| match mark {
        LineChange::Same => ' ',
        LineChange::Removed => '-',
        LineChange::Added => '+',
        LineChange::Skipped(_) => '~',
    };
    let lines = difference(old, new).into_iter();
    lines.map(|line| format!("{}{}", sign(line.mark), line.text)).collect()
}

#[test]
fn one_member_a_line_and_one_line_of_text_a_line() {
    let old = r#"{"name":"t","description":"Reads.\nSecond line.","inputSchema":{"required":["a"],"properties":{}}}"#;
    let new = r#"{"name":"t","description":"Reads.\n\u200bOther \"line\".","inputSchema":{"required":["a",1e400],"properties":{}}}"#;
    assert_eq!(
        shown(Some(old), new),
        [
            " {",
            r#"   "name": "t""#,
            r#"   "description": "Reads."#,
            r#"-  │ Second line.""#,
            r#"+  │ ⟨U+200B⟩Other \"line\".""#,
            r#"   "inputSchema": {"#,
            r#"     "required": ["#,
            r#"       "a""#,
            "+      1e400",
            "     ]",
            r#"     "properties": {}"#,
            "   }",
            " }",
        ]
    );
}

#[test]
fn the_order_of_members_is_no_change() {
    let old = r#"{"name":"t","old":1,"description":"Reads.","inputSchema":{"type":"object","properties":{"a":{"type":"string","description":"A"},"b":{}},"anyOf":[{"x":1,"y":2}]}}"#;
    let new = r#"{"inputSchema":{"properties":{"b":{},"a":{"description":"B","type":"string"}},"type":"object","anyOf":[{"y":2,"x":1},3]},"description":"Reads.","name":"t"}"#;
    let changed = |old, new| {
        let lines = shown(Some(old), new);
        lines.into_iter().filter(|line| line.starts_with(['-', '+'])).collect::<Vec<_>>()
    };
    let lines = [r#"-        "description": "A""#, r#"+        "description": "B""#, "+      3"];
    assert_eq!(changed(old, new), [&lines[..], &[r#"-  "old": 1"#]].concat());
    // Where it counts for the fingerprint, it is shown.
    assert_eq!(changed(r#"{"a":1e400,"b":1}"#, r#"{"b":1,"a":1e400}"#).len(), 2);
}

#[test]
fn the_same_change_in_the_same_place_has_the_same_hash() {
    let tool = |name: &str, param: &str, says: &str| {
        format!(r#"{{"name":"{name}","inputSchema":{{"{param}":{{"description":"{says}"}}}}}}"#)
    };
    let change =
        |name, param, says| change_fingerprint(&tool(name, param, "old"), &tool(name, param, says));
    let one = change("a", "path", "new");
    assert_eq!(change("b", "path", "new"), one);
    assert_ne!(change("a", "path", "newer"), one);
    assert_ne!(change("a", "folder", "new"), one, "another place");
}

#[test]
fn duplicate_keys_exact_numbers_and_deep_nesting_are_shown() {
    assert_eq!(
        shown(None, r#"{"a":1,"a":12345678901234567890123}"#),
        ["+{", r#"+  "a": 1"#, r#"+  "a": 12345678901234567890123"#, "+}"]
    );
    assert_eq!(shown(None, r#"{"a\nb":1}"#), ["+{", r#"+  "a⟨U+000A⟩b": 1"#, "+}"]);
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    assert_eq!(difference(None, &deep).len(), 99_999);
}

#[test]
fn plain_text_is_compared_by_its_lines() {
    assert_eq!(shown(Some("one\ntwo"), "one\nthree"), [" one", "-two", "+three"]);
    assert_eq!(shown(None, "one\r\ntwo"), ["+one⟨U+000D⟩", "+two"]);
}

#[test]
fn long_runs_without_a_change_are_folded() {
    let text = |lines: &[u32]| lines.iter().map(u32::to_string).collect::<Vec<_>>().join("\n");
    let old: Vec<u32> = (0..30).collect();
    let mut new = old.clone();
    new[10] = 100;
    new.push(30);
    assert_eq!(
        shown(Some(&text(&old)), &text(&new)),
        [
            "~… 7 unchanged lines",
            " 7",
            " 8",
            " 9",
            "-10",
            "+100",
            " 11",
            " 12",
            " 13",
            "~… 13 unchanged lines",
            " 27",
            " 28",
            " 29",
            "+30",
        ]
    );
    assert_eq!(difference(Some(&text(&old)), &text(&old)).len(), 30);
}

#[test]
fn too_many_lines_are_all_removed_and_all_added() {
    let text = |from: usize| {
        let lines: Vec<String> = (from..from + LINES_MAX + 1).map(|n| n.to_string()).collect();
        format!("first\n{}\nlast", lines.join("\n"))
    };
    let lines = difference(Some(&text(0)), &text(1));
    let count = |mark| lines.iter().filter(|line| line.mark == mark).count();
    assert_eq!(
        (count(LineChange::Removed), count(LineChange::Added), count(LineChange::Same)),
        (LINES_MAX + 1, LINES_MAX + 1, 2)
    );
    let short = difference(Some(&text(0)), &text(0).replace("\n5\n", "\nfive\n"));
    assert_eq!(short.iter().filter(|line| line.mark == LineChange::Added).count(), 1);
}

/// Returns the lines of one side, with folded ones taken from its layout.
fn side(lines: &[DifferenceLine], whole: &[String], left_out: LineChange) -> Vec<String> {
    let mut side: Vec<String> = Vec::new();
    for line in lines.iter().filter(|line| line.mark != left_out) {
        match line.mark {
            LineChange::Skipped(count) => {
                let from = side.len();
                side.extend_from_slice(&whole[from..from + count]);
            }
            LineChange::Same | LineChange::Removed | LineChange::Added => {
                side.push(line.text.clone())
            }
        }
    }
    side
}

proptest! {
    #[test]
    fn a_difference_leads_from_the_old_lines_to_the_new(
        old in "([abc]\n){0,30}", new in "([abc]\n){0,30}",
    ) {
        let lines = difference(Some(&old), &new);
        prop_assert_eq!(side(&lines, &lay_out(&new), LineChange::Removed), lay_out(&new));
        prop_assert_eq!(side(&lines, &lay_out(&old), LineChange::Added), lay_out(&old));
    }

    #[test]
    fn equal_texts_have_no_difference(text in "\\PC*|([abc\u{200b}]{0,3}\n){0,30}|[\\[\\]{}:,\"a1 \\\\]{0,20}") {
        let lines = difference(Some(&text), &text);
        prop_assert!(lines.iter().all(|line| line.mark == LineChange::Same));
        prop_assert_eq!(lines.len(), lay_out(&text).len());
    }
}
