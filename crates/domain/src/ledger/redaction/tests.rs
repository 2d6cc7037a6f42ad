//! Tests of what is redacted and what is kept, and that redacting twice changes nothing.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const GITHUB: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
const AWS_ID: &str = "AKIAIOSFODNN7EXAMPLE";
const AWS_SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N";

static BUILTIN: LazyLock<Redactor> = LazyLock::new(Redactor::builtin);

#[test]
fn keys_that_name_secrets() {
    let keys = Keys::new(&["internal pin".to_owned(), "X-Tenant".to_owned()]);
    for key in [
        "password",
        "Password",
        "PASSWORD",
        "db_password",
        "dbPassword",
        "dbpassword",
        "passwd",
        "password_2",
        "password_hash",
        "secret",
        "client_secret",
        "clientSecret",
        "SecretString",
        "token",
        "github_token",
        "GITHUB_TOKEN",
        "githubToken",
        "githubtoken",
        "access-token",
        "api_key",
        "apiKey",
        "APIKey",
        "X-Api-Key",
        "apikey",
        "OPENAI_API_KEY",
        "authorization",
        "Proxy-Authorization",
        "cookie",
        "Set-Cookie",
        "private_key",
        "privateKey",
        "dsn",
        "SENTRY_DSN",
        "connection_string",
        "connectionString",
        "aws_secret_access_key",
        "AccessKey",
        "credentials",
        "passphrase",
        "PGPASSWORD",
        "MYSQL_PWD",
        "internal_pin",
        "InternalPin",
        "x-tenant",
    ] {
        assert!(keys.secret(key), "{key}");
    }
    for key in [
        "tokens_used",
        "max_tokens",
        "tokens",
        "total_tokens",
        "token_count",
        "token_type",
        "tokenizer",
        "next_page_token",
        "nextToken",
        "progressToken",
        "cookie_policy_url",
        "cookie_name",
        "secret_name",
        "secretary",
        "password_policy",
        "passwordless",
        "authorization_url",
        "api_key_id",
        "public_key",
        "key",
        "primary_key",
        "pin",
        "author",
        "compass",
        "string",
        "value",
        "",
        "_",
        "tenant",
    ] {
        assert!(!keys.secret(key), "{key}");
    }
}

#[test]
fn texts_that_hold_secrets() {
    let redactor = Redactor::builtin();
    for (text, expected) in [
        (format!("push with {GITHUB}."), "push with [redacted:github].".to_owned()),
        ("gho_0123456789abcdefghijABCDEFGHIJ012345".into(), "[redacted:github]".into()),
        (format!("github_pat_11AAAAAAA0{}", "a1_".repeat(20)), "[redacted:github]".into()),
        ("x glpat-abc12DEF34ghi56JKL78 y".into(), "x [redacted:gitlab] y".into()),
        (format!("{AWS_ID} {AWS_SECRET}"), "[redacted:aws] [redacted:aws]".into()),
        (format!("{AWS_SECRET},{AWS_ID}"), "[redacted:aws],[redacted:aws]".into()),
        ("xoxb-123456789012-abcdefGHIJ".into(), "[redacted:slack]".into()),
        (
            "https://hooks.slack.com/services/T000/B000/ABCD1234567890".into(),
            "https://[redacted:slack]".into(),
        ),
        ("sk-proj-abcDEF123456ghiJKL789".into(), "[redacted:openai]".into()),
        ("sk-0123456789abcdef0123456789abcdef".into(), "[redacted:openai]".into()),
        ("sk-ant-api03-abcdef".into(), "[redacted:anthropic]".into()),
        (format!("AIza{}", "Sy0-_aB".repeat(5)), "[redacted:google]".into()),
        (concat!("sk_", "live_0123456789abcdef").into(), "[redacted:stripe]".into()),
        (format!("npm_{}", "aB3".repeat(12)), "[redacted:npm]".into()),
        (format!("token {JWT} ok"), "token [redacted:jwt] ok".into()),
        (
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb".into(),
            "a\n[redacted:pem]\nb".into(),
        ),
        ("-----BEGIN PRIVATE KEY-----\\nMIIE cut".into(), "[redacted:pem]".into()),
        ("Bearer abc123def456".into(), "Bearer [redacted]".into()),
        ("basic dXNlcjpwYXNz".into(), "basic [redacted]".into()),
        (
            "Authorization: Basic dXNlcjpwYXNz\nAccept: x".into(),
            "Authorization: [redacted]\nAccept: x".into(),
        ),
        ("curl -H 'Cookie: a=b; c=d' x".into(), "curl -H 'Cookie: [redacted]' x".into()),
        ("postgres://bob:hunter2@db/x".into(), "postgres://bob:[redacted]@db/x".into()),
        ("https://u:p/w@h/x".into(), "https://u:[redacted]@h/x".into()),
        ("https://0123456789abcdef0123@h/".into(), "https://[redacted]@h/".into()),
        ("password=hunter2&x=1".into(), "password=[redacted]&x=1".into()),
        ("Server=h;Password=a b;".into(), "Server=h;Password=[redacted] b;".into()),
        ("password: hunter".into(), "password: [redacted]".into()),
        ("api_key = 'abc'".into(), "api_key = '[redacted]'".into()),
        ("DB_PASSWORD=x make".into(), "DB_PASSWORD=[redacted] make".into()),
        ("login --password hunter2 now".into(), "login --password [redacted] now".into()),
        ("<password>abc</password>".into(), "<password>[redacted]</password>".into()),
        (r#"{"password": "a\"b", "n": 1}"#.into(), r#"{"password": "[redacted]", "n": 1}"#.into()),
        (r#"{"password":12345,"n":1}"#.into(), r#"{"password":"[redacted]","n":1}"#.into()),
        (r#"{\"token\":\"x\",\"n\":1}"#.into(), r#"{\"token\":\"[redacted]\",\"n\":1}"#.into()),
        (r#"{"secret": "cut of"#.into(), r#"{"secret": "[redacted]"#.into()),
        ("password=[redacted]more".into(), "password=[redacted]".into()),
    ] {
        assert_eq!(redactor.text(&text), expected, "{text}");
        assert_eq!(redactor.text(&expected), expected, "again: {text}");
    }
}

#[test]
fn texts_that_hold_none_are_borrowed() {
    let redactor = Redactor::builtin();
    for text in [
        "",
        "unexpected token: comma at line 3",
        "let token = lexer.next();",
        "the secret: be kind",
        "tokens_used: 5, max_tokens=100",
        "the bearer of this letter, basic authentication and Basic Authentication",
        "task-force-one-and-a-half-is-here sk-learn-is-a-very-nice-library",
        "https://example.com:8080/a@b?x=1 and http://h:port/x",
        "npm_config_registry ghp_short AKIA AKIAshort eyJ.a.b",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "password=${DB_PASSWORD} token: {{ token }}",
        "PWD=/home/me",
        r#"{"has_password": true, "token": null, "token_type": "bearer"}"#,
        "if token == \"x\"",
        "0123456789abcdef0123456789abcdef01234567",
        "cookie_policy_url=https://h/cookies",
    ] {
        assert!(matches!(redactor.text(text), Cow::Borrowed(_)), "{text}: {}", redactor.text(text));
    }
}

#[test]
fn values_keep_their_shape() {
    let mut value = json!({
        "user": "bob", "password": "x", "pin_password": 1234, "has_password": true, "token": null,
        "tokens_used": 5, "credentials": {"user": "a", "pass": ["b", 1, false]},
        "env": [{"name": "DB_PASSWORD", "value": "x"}, {"name": "HOME", "value": "/h"}],
        "content": [{"type": "text", "text": "{\"api_key\":\"x\"}"}],
        "note": format!("use {GITHUB}"), "pwd": "/home/me", "empty_secret": "",
    });
    Redactor::builtin().value(&mut value);
    assert_eq!(
        value,
        json!({
            "user": "bob", "password": "[redacted]", "pin_password": "[redacted]",
            "has_password": true, "token": null, "tokens_used": 5,
            "credentials": {"user": "[redacted]", "pass": ["[redacted]", "[redacted]", false]},
            "env": [{"name": "DB_PASSWORD", "value": "[redacted]"}, {"name": "HOME", "value": "/h"}],
            "content": [{"type": "text", "text": "{\"api_key\":\"[redacted]\"}"}],
            "note": "use [redacted:github]", "pwd": "/home/me", "empty_secret": "",
        })
    );
}

#[test]
fn configured_keys_and_patterns_are_added() {
    let redactor =
        Redactor::new(&["internal_pin".to_owned()], &[r"ACME-\d{4}".to_owned(), "dact".to_owned()])
            .unwrap();
    assert_eq!(redactor.text("ACME-1234 InternalPin=77"), "[redacted] InternalPin=[redacted]");
    assert_eq!(
        redactor.text("[redacted] [redacted:ACME-1234]"),
        "[redacted] [re[redacted]ed:[redacted]]"
    );
    let glued = Redactor::new(&["userid".to_owned()], &[]).unwrap();
    assert_eq!(glued.text("user_id=5 UserId: 6"), "user_id=[redacted] UserId: [redacted]");
    let mut value = json!({"internalPin": "1", "password": "x"});
    redactor.value(&mut value);
    assert_eq!(value, json!({"internalPin": "[redacted]", "password": "[redacted]"}));
}

#[test]
fn all_patterns_that_cannot_be_used_are_named() {
    let patterns = ["(open", "a*", "fine", r"\w{1000}{1000}"].map(str::to_owned);
    let faults = Redactor::new(&[], &patterns).err().unwrap();
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 3);
    assert!(texts[0].contains("'(open'") && texts[1].contains("'a*'"), "{texts:?}");
    assert!(texts[2].contains("1000"), "{texts:?}");
    assert!(Redactor::new(&[], &vec!["x".to_owned(); 65]).is_err());
}

/// Generates text that combines secrets, their keys and punctuation in every order.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            GITHUB,
            AWS_ID,
            AWS_SECRET,
            JWT,
            "sk-",
            "sk-ant-",
            "eyJ",
            "password",
            "token",
            "api_key",
            "authorization",
            "cookie",
            "Bearer ",
            "basic ",
            "://",
            "user:pw@",
            "-----BEGIN ",
            "PRIVATE KEY-----",
            "-----END ",
            "[redacted]",
            "[redacted",
            "--",
            "pwd",
            "a1B2c3D4e5F6g7H8i9J0k1L2",
            "ghp_",
            "github_pat_",
            "xoxb-",
        ])
        .prop_map(str::to_owned),
        "[=:\"'\\\\ ,;&<>\\[\\]{}()\n@/_.-]{1,3}",
        "\\PC{0,3}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn shape(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(shape).collect::<Vec<_>>().join(","),
        Value::Object(members) => {
            members.iter().map(|(key, value)| format!("{key}({})", shape(value))).collect()
        }
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(_) | Value::String(_) => String::new(),
    }
}

proptest! {
    #[test]
    fn redaction_is_idempotent(text in text()) {
        let once = BUILTIN.text(&text).into_owned();
        prop_assert_eq!(BUILTIN.text(&once), once.clone());
    }

    #[test]
    fn known_secrets_never_stay(before in "[a-z =:\"\\PC]{0,8}", after in "[^A-Za-z0-9_]{0,4}") {
        let text = format!("{before} {GITHUB}{after}");
        prop_assert!(!BUILTIN.text(&text).contains(GITHUB));
    }

    #[test]
    fn json_keeps_its_shape(key in text(), inner in text(), number in any::<i64>()) {
        let mut value = json!({key.clone(): {"a": [inner, number, null, true]}, "password": {key: 1}});
        let before = shape(&value);
        BUILTIN.value(&mut value);
        prop_assert_eq!(shape(&value), before);
        let once = value.clone();
        BUILTIN.value(&mut value);
        prop_assert_eq!(value, once);
    }
}
