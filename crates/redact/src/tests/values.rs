//! Tests of JSON values: what is reported as changed, and what becomes of the names of members.

use super::*;

#[test]
fn a_change_is_reported_however_many_there_are() {
    for (value, is_changed) in [
        (json!({"password": "a1b2", "token": "c3d4"}), true),
        (json!({"password": ["a1b2", "c3d4"]}), true),
        (json!({"password": {"old": "a1b2", "new": "c3d4"}}), true),
        (json!([{"password": "a1b2"}, {"password": "c3d4"}]), true),
        (json!(["--password", "a1b2", "--token", "c3d4"]), true),
        (json!({"kind": "Secret", "data": {"a": "YTFiMg=="}, "stringData": {"b": "c3d4"}}), true),
        (
            json!({
                "kind": "Secret", "data": {"a": "YTFiMg=="},
                "command": "mysql", "args": ["-pa1b2"],
            }),
            true,
        ),
        (json!({"password": {GITHUB: "a1b2"}}), true),
        (json!({"has_password": true, "password": "", "token": null}), false),
        (json!({"password": ["[redacted]", {"of": "[redacted:github]"}]}), false),
        (json!({"kind": "Pod", "data": {"a": "YTFiMg=="}, "stringData": {"b": "c3d4"}}), false),
        (json!({"kind": "Secret", "data": "none"}), false),
        (json!(["--verbose", 1, {"path": "plan.md"}]), false),
    ] {
        let mut redacted = value.clone();
        assert_eq!(BUILTIN.value(&mut redacted), is_changed, "{value}");
        assert_eq!(redacted != value, is_changed, "{value} became {redacted}");
    }
}

#[test]
fn names_that_become_the_same_are_numbered() {
    let other = GITHUB.replace('0', "9");
    let third = GITHUB.replace('0', "8");
    let mut value = json!({ GITHUB: 1, other.as_str(): 2, third.as_str(): 3, "plain": 4 });
    assert!(BUILTIN.value(&mut value));
    let expected =
        r#"{"[redacted:github]":1,"[redacted:github] 2":2,"[redacted:github] 3":3,"plain":4}"#;
    assert_eq!(value.to_string(), expected);

    let mut value = json!({ "[redacted:github] 2": 1, GITHUB: 2, other.as_str(): 3 });
    assert!(BUILTIN.value(&mut value));
    let expected = r#"{"[redacted:github] 2":1,"[redacted:github]":2,"[redacted:github] 3":3}"#;
    assert_eq!(value.to_string(), expected);
}

#[test]
fn a_name_may_be_known_or_match_a_pattern() {
    let redactor = Redactor::new(&[], &["acme".to_owned()]).unwrap();
    let mut value = json!({"acme": 1, "other": 2});
    redactor.value(&mut value);
    assert_eq!(value, json!({"[redacted]": 1, "other": 2}));
    let redactor = Redactor::builtin();
    redactor.known().add("tuesday_lunch");
    let mut value = json!({"tuesday_lunch": 1, "other": 2});
    redactor.value(&mut value);
    assert_eq!(value, json!({"[redacted]": 1, "other": 2}));
}

#[test]
fn a_list_hides_alone_what_it_hides_without_its_key() {
    let sent = [json!("--password"), json!("a1b2")];
    assert!(BUILTIN.hides_alone(&sent, &[json!("--password"), json!(REDACTED)]));
    assert!(!BUILTIN.hides_alone(&sent, &[json!(REDACTED), json!(REDACTED)]));
    assert!(BUILTIN.hides_alone(&[json!("a1b2")], &[json!("a1b2")]));
}
