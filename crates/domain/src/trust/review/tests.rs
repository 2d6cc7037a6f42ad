//! Tables of the changes that need a review; the one for hints is complete.

use super::*;

const HINT: [Option<bool>; 3] = [None, Some(false), Some(true)];

fn check(kind: ItemKind, old: Option<&str>, new: &str, auto: AutoApprove) -> ReviewState {
    let approved = old.map(|definition| ApprovedDefinition {
        fingerprint: kind.fingerprint(definition),
        definition,
    });
    review_state(kind, new, approved.as_ref(), auto)
}

fn tool(annotations: &str) -> String {
    format!(r#"{{"name":"t","annotations":{annotations}}}"#)
}

/// Returns a tool with these hints; those that are `None` are absent.
fn hinted(hints: &[(&str, Option<bool>)]) -> String {
    let given = hints.iter().filter_map(|(name, value)| value.map(|value| (*name, value)));
    let given: Vec<String> = given.map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
    tool(&format!("{{{}}}", given.join(",")))
}

#[test]
fn new_and_changed_items_wait_unless_the_config_says_otherwise() {
    use AutoApprove::{All, New, None as Never};
    let (old, new) = (r#"{"name":"t"}"#, r#"{"name":"t","description":"x"}"#);
    for kind in ItemKind::ALL {
        for (before, listed, auto, expected) in [
            (Some(old), old, Never, ReviewState::Same),
            (None, new, Never, ReviewState::Pending(ReviewChange::New)),
            (None, new, New, ReviewState::Accepted(AcceptanceReason::AutoNew)),
            (None, new, All, ReviewState::Accepted(AcceptanceReason::AutoNew)),
            (Some(old), new, Never, ReviewState::Pending(ReviewChange::Changed)),
            (Some(old), new, New, ReviewState::Pending(ReviewChange::Changed)),
            (Some(old), new, All, ReviewState::Accepted(AcceptanceReason::AutoChanged)),
        ] {
            assert_eq!(check(kind, before, listed, auto), expected, "{kind:?} {listed} {auto:?}");
        }
        assert_eq!(ItemKind::parse(kind.as_str()), Some(kind));
    }
}

#[test]
fn formatting_and_meta_count_only_in_instructions() {
    let (old, new) = (r#"{"name":"t","_meta":"be kind"}"#, r#"{ "name": "t", "_meta": "obey" }"#);
    for kind in ItemKind::ALL {
        let expected = match kind {
            ItemKind::Instructions => ReviewState::Pending(ReviewChange::Changed),
            ItemKind::Tool | ItemKind::Prompt | ItemKind::Template => ReviewState::Same,
        };
        assert_eq!(check(kind, Some(old), new, AutoApprove::None), expected, "{kind:?}");
    }
}

#[test]
fn equal_text_counts_as_unchanged_whatever_its_fingerprint() {
    let approved = ApprovedDefinition { fingerprint: Fingerprint::of("another"), definition: "{}" };
    let state = review_state(ItemKind::Tool, "{}", Some(&approved), AutoApprove::None);
    assert_eq!(state, ReviewState::Same);
}

/// Rows: the approved version; columns: the listed version; each as `readOnlyHint` and
/// `destructiveHint`, `-` absent, `f` false, `t` true. `=` unchanged, `s` stricter, `.` pending.
const TRANSITIONS: [(&str, &str); 9] = [
    //      -- -f -t f- ff ft t- tf tt
    ("--", "=  .  s  s  .  s  .  .  ."),
    ("-f", ".  =  s  s  s  s  .  .  ."),
    ("-t", ".  .  =  .  .  s  .  .  ."),
    ("f-", ".  .  s  =  .  s  .  .  ."),
    ("ff", ".  s  s  s  =  s  .  .  ."),
    ("ft", ".  .  s  .  .  =  .  .  ."),
    ("t-", "s  .  s  s  .  s  =  .  s"),
    ("tf", "s  s  s  s  s  s  s  =  s"),
    ("tt", ".  .  s  .  .  s  .  .  ="),
];

fn hints(word: &str) -> Hints {
    let hint = |letter: u8| match letter {
        b'f' => Some(false),
        b't' => Some(true),
        _ => None,
    };
    let letters = word.as_bytes();
    Hints { read_only: hint(letters[0]), destructive: hint(letters[1]), open_world: None }
}

#[test]
fn every_change_of_the_class_hints_is_stricter_or_waits() {
    for (old, row) in TRANSITIONS {
        for ((new, _), expected) in TRANSITIONS.into_iter().zip(row.split_whitespace()) {
            let (was, is) = (hints(old), hints(new));
            let text = |hints: Hints| {
                hinted(&[(READ_ONLY, hints.read_only), (DESTRUCTIVE, hints.destructive)])
            };
            let state = check(ItemKind::Tool, Some(&text(was)), &text(is), AutoApprove::None);
            let got = match state {
                ReviewState::Same => "=",
                ReviewState::Accepted(AcceptanceReason::Stricter) => "s",
                ReviewState::Accepted(_) | ReviewState::Pending(_) => ".",
            };
            assert_eq!(got, expected, "{old} -> {new}");
            if got == "s" {
                assert!(is.class() >= was.class(), "{old} -> {new}: the gate's class is milder");
                assert!(protocol(is) >= protocol(was), "{old} -> {new}: milder by the protocol");
            }
            if is.class() < was.class() {
                assert_eq!(got, ".", "{old} -> {new}");
            }
        }
    }
}

/// Returns the class of a tool by the protocol's own defaults.
fn protocol(hints: Hints) -> Class {
    match (hints.read_only.unwrap_or(false), hints.destructive.unwrap_or(true)) {
        (true, _) => Class::Read,
        (false, false) => Class::Write,
        (false, true) => Class::Destructive,
    }
}

#[test]
fn open_world_and_idempotent_loosen_in_one_direction() {
    for (name, mild) in [(OPEN_WORLD, false), (IDEMPOTENT, true)] {
        for old in HINT {
            for new in HINT {
                let text = |hint| hinted(&[(READ_ONLY, Some(false)), (name, hint)]);
                let expected = if old == new {
                    ReviewState::Same
                } else if new == Some(mild) {
                    ReviewState::Pending(ReviewChange::Changed)
                } else {
                    ReviewState::Accepted(AcceptanceReason::Stricter)
                };
                let got = check(ItemKind::Tool, Some(&text(old)), &text(new), AutoApprove::None);
                assert_eq!(got, expected, "{name}: {old:?} -> {new:?}");
            }
        }
    }
}

#[test]
fn only_hints_that_are_certain_can_make_a_tool_stricter() {
    let strict = r#"{"readOnlyHint":false,"destructiveHint":true}"#;
    let plain = r#"{"name":"t"}"#;
    for (old, new, stricter) in [
        (plain.to_owned(), tool(strict), true),
        (plain.to_owned(), tool("{}"), true),
        (plain.to_owned(), tool("null"), false),
        (plain.to_owned(), tool(r#"{"title":"T"}"#), false),
        (tool(r#"{"title":"A"}"#), tool(r#"{"title":"B","destructiveHint":true}"#), false),
        (tool(r#"{"title":"A"}"#), tool(r#"{"title":"A","destructiveHint":true}"#), true),
        (tool(r#"{"x":1}"#), tool(r#"{"x":1.0,"destructiveHint":true}"#), true),
        (tool(r#"{"x":1}"#), tool(r#"{"destructiveHint":true}"#), false),
        (plain.to_owned(), tool(r#"{"destructiveHint":"true"}"#), false),
        (tool(r#"{"readOnlyHint":"yes"}"#), tool(strict), false),
        (plain.to_owned(), tool(r#"{"destructiveHint":true,"destructiveHint":true}"#), false),
        (plain.to_owned(), r#"{"name":"u","annotations":{"destructiveHint":true}}"#.into(), false),
        // Numbers that round to the same double are not the same text.
        (
            r#"{"name":"t","n":9007199254740993}"#.into(),
            r#"{"name":"t","n":9007199254740992,"annotations":{"destructiveHint":true}}"#.into(),
            false,
        ),
        (
            r#"{"name":"t","_meta":{"v":1}}"#.into(),
            r#"{"icons":[],"annotations":{"destructiveHint":true},"name":"t"}"#.into(),
            true,
        ),
    ] {
        let got = check(ItemKind::Tool, Some(&old), &new, AutoApprove::None);
        let expected = if stricter {
            ReviewState::Accepted(AcceptanceReason::Stricter)
        } else {
            ReviewState::Pending(ReviewChange::Changed)
        };
        assert_eq!(got, expected, "{old} -> {new}");
        // Only tools have hints.
        let prompt = check(ItemKind::Prompt, Some(&old), &new, AutoApprove::None);
        assert_eq!(prompt, ReviewState::Pending(ReviewChange::Changed));
    }
}
