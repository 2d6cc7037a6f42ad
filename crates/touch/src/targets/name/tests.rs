//! The names of resources in records, as tables and as properties.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::super::{Access, FILESYSTEM, of_file};
use super::*;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::builtin);

const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

fn named(path: &str) -> Option<String> {
    let target = of_file(path, "/w")?;
    Some(target.recordable(&REDACTOR)?.resource().to_owned())
}

#[test]
fn a_path_is_resolved_before_its_secrets_are_hidden() {
    let long = "./".repeat(3000);
    for (path, expected) in [
        ("plan.md".to_owned(), "/w/plan.md"),
        ("password=hunter2hunter2/../plan.md".to_owned(), "/w/plan.md"),
        (format!("{TOKEN}/../plan.md"), "/w/plan.md"),
        (format!("{long}plan.md"), "/w/plan.md"),
        (format!("{TOKEN}/plan.md"), "/w/[redacted]/plan.md"),
        (format!("a/x-{TOKEN}.txt/b"), "/w/a/[redacted]/b"),
        (format!("/etc/shadow?access_token={TOKEN}"), "/etc/[redacted]"),
        (format!("a/{TOKEN}/b/{TOKEN}/c"), "/w/a/[redacted]/[redacted]/[redacted]/c"),
        // A slash may be a part of the secret.
        ("jwt=GmjExNZkZ60Sbvo95aCnEx1IKy1sloqLokg57K77/x".to_owned(), "/w/[redacted]/[redacted]"),
        ("postgres://bob:sdARK3gtEDk7@db/app".to_owned(), "/w/postgres:/[redacted]/app"),
        ("//user:pw@nas/share".to_owned(), "/[redacted]/share"),
        ("a=b/c: d/git@host:repo/x".to_owned(), "/w/a=b/c: d/git@host:repo/x"),
        ("a\r\nb".to_owned(), "/w/a⟨U+000D⟩⟨U+000A⟩b"),
        ("a\0b".to_owned(), "/w/a⟨U+0000⟩b"),
        ("a%0Ab".to_owned(), "/w/a%0Ab"),
        ("größe/\u{1f600}".to_owned(), "/w/größe/\u{1f600}"),
    ] {
        assert_eq!(named(&path).as_deref(), Some(expected), "{path:.80}");
    }
}

#[test]
fn a_name_that_is_too_long_is_left_out_and_that_is_told() {
    let path = |bytes: usize| Target::of_path(format!("/{}", "x".repeat(bytes - 1))).unwrap();
    let touches = |targets: &[Target]| {
        let touched =
            targets.iter().map(|target| Touched { target: target.clone(), access: Access::Write });
        Touches::new(touched, TargetBasis::WORKSPACE)
    };
    let (fits, long) = (path(RESOURCE_BYTES_MAX), path(RESOURCE_BYTES_MAX + 1));
    for (all, kept, basis, is_omitted) in [
        (vec![fits.clone()], 1, TargetBasis::WORKSPACE, false),
        (vec![long.clone()], 0, TargetBasis::TOO_LONG, true),
        (vec![long, fits], 1, TargetBasis::WORKSPACE, true),
        (vec![], 0, TargetBasis::WORKSPACE, false),
    ] {
        let (left, losses) = touches(&all).recordable(&REDACTOR);
        assert_eq!((left.all().len(), left.basis()), (kept, Some(&basis)));
        assert_eq!(losses, NameLosses { is_redacted: false, is_omitted });
    }
    let hidden = Target::of_path(format!("/{TOKEN}/x")).unwrap();
    let (left, losses) = touches(&[hidden]).recordable(&REDACTOR);
    assert_eq!(left.main().map(Target::resource), Some("/[redacted]/x"));
    assert_eq!(losses, NameLosses { is_redacted: true, is_omitted: false });
}

#[test]
fn a_secret_is_hidden_in_any_case_and_what_only_follows_a_word_is_not() {
    let sent = json!({
        "owner": TOKEN,
        "text": "password=plan.md ",
        "api_key": "kept-elsewhere",
        "key": "plan.md",
        "list": [{"token": 7}, "x"],
    });
    let mut redacted = sent.clone();
    assert!(REDACTOR.value(&mut redacted));
    let object = |value: &Value| value.as_object().unwrap().clone();
    let (secrets, given) = SecretTexts::of(&object(&sent), &object(&redacted), &REDACTOR);
    assert_eq!(given["owner"], TOKEN, "a path is resolved before anything is hidden");
    assert_eq!(
        (given["text"].as_str(), given["key"].as_str()),
        (Some("password=plan.md "), Some("plan.md"))
    );
    assert_eq!(
        (given["api_key"].as_str(), given["list"][0]["token"].as_str()),
        (Some("[redacted]"), Some("[redacted]"))
    );
    let hide = |system: &str, name: &str| {
        secrets.hide(Target::recorded(system, name.to_owned()).unwrap()).resource().to_owned()
    };
    assert_eq!(hide("s", &format!("{}/shop", TOKEN.to_uppercase())), "[redacted]/shop");
    assert_eq!(hide("s", "octo/plan.md"), "octo/plan.md");
    assert_eq!(hide(FILESYSTEM, &format!("/{TOKEN}")), format!("/{TOKEN}"));
}

#[test]
fn a_neighbour_in_a_list_hides_a_name_only_in_a_command() {
    for (sent, expected) in [
        (json!({"paths": ["--password", "plan.md"]}), json!(["--password", "plan.md"])),
        (json!({"ids": ["mysql", "-pplan.md", TOKEN]}), json!(["mysql", "-pplan.md", TOKEN])),
        (json!({"args": ["--password", "plan.md"]}), json!(["--password", "[redacted]"])),
        (json!({"passwords": ["plan.md", 7]}), json!(["[redacted]", "[redacted]"])),
        (json!({"paths": [{"password": "x1y2z3"}]}), json!([{"password": "[redacted]"}])),
    ] {
        let mut redacted = sent.clone();
        assert!(REDACTOR.value(&mut redacted), "{sent}");
        let object = |value: &Value| value.as_object().unwrap().clone();
        let (_, named) = SecretTexts::of(&object(&sent), &object(&redacted), &REDACTOR);
        assert_eq!(named.values().next(), Some(&expected), "{sent}");
    }
}

proptest! {
    #[test]
    fn a_recorded_name_is_its_own_name(path in "(/(\\PC{0,8}|ghp_[a-z0-9]{36}|password=[a-z0-9]{8,12}|\n)){1,4}") {
        if let Some(target) = Target::of_path(path) {
            let once = target.recordable(&REDACTOR).unwrap().into_owned();
            prop_assert!(!once.resource().contains(is_break));
            prop_assert_eq!(once.recordable(&REDACTOR).unwrap().into_owned(), once.clone());
        }
    }
}
