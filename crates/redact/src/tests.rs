//! Tests of what is redacted and what is kept, and that redacting twice changes nothing.

mod formats;
mod values;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const GITHUB: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
const AWS_ID: &str = "AKIAIOSFODNN7EXAMPLE";
const AWS_SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N";

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
        assert_eq!(keys.kind(key), Some(KeyKind::Secret), "{key}");
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
        assert_ne!(keys.kind(key), Some(KeyKind::Secret), "{key}");
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

/// Text that is random and the same in every run: letters and digits, or hex digits.
fn noise(alphabet: &str, length: usize) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        alphabet[usize::try_from(state >> 33).unwrap() % alphabet.len()]
    };
    (0..length).map(|_| next()).collect()
}

fn word(length: usize) -> String {
    noise("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", length)
}

fn hex(length: usize) -> String {
    noise("0123456789abcdef", length)
}

/// Tokens that nothing but their form gives away.
fn tokens() -> Vec<String> {
    vec![
        format!("SG.{}.{}", word(22), word(43)),
        format!("hvs.{}", word(24)),
        format!("hvb.{}", word(138)),
        format!("s.{}", word(24)),
        format!("ATATT3{}={}", word(180), hex(8)),
        format!("ntn_{}", word(46)),
        format!("secret_{}", word(43)),
        format!("lin_api_{}", word(40)),
        format!("dp.pt.{}", word(43)),
        format!("dp.st.prd.{}", word(43)),
        format!("dapi{}", hex(32)),
        format!("dapi{}-2", hex(32)),
        format!("MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{}", word(27)),
        format!("123456789:AA{}", word(33)),
        format!("SK{}", hex(32)),
        format!("key-{}", hex(32)),
        format!("{}-us12", hex(32)),
        format!("npm_{}", word(36)),
        format!("pypi-AgEIcHlwaS5vcmc{}", word(80)),
        format!("abc8Q~{}", word(34)),
        format!("{}.atlasv1.{}", word(14), word(64)),
        format!("glsa_{}_{}", word(32), hex(8)),
        format!("pat{}.{}", word(14), hex(64)),
        format!("sq0atp-{}", word(22)),
        format!("EAAA{}", word(60)),
        format!("HRKU-{}", word(60)),
        format!("dckr_pat_{}", word(27)),
        format!("figd_{}", word(40)),
        format!("gsk_{}", word(52)),
        format!("sntryu_{}", hex(64)),
        format!("tskey-auth-{}-{}", word(16), word(32)),
        format!("xkeysib-{}-{}", hex(64), word(16)),
        format!("rubygems_{}", hex(48)),
        format!("AAAA{}:APA91b{}", word(7), word(134)),
        format!("1//0{}", word(60)),
        format!("IQoJb3JpZ2lu{}", word(200)),
    ]
}

#[test]
fn tokens_are_known_by_their_form() {
    let redactor = Redactor::builtin();
    for token in tokens() {
        for text in [
            token.clone(),
            format!("it says {token}."),
            format!("\"{token}\","),
            format!("https://h.example/x?a=1&b={token}&c=2"),
            format!("<b>{token}</b>"),
        ] {
            let redacted = redactor.text(&text);
            let secret = &token[token.len() - 12..];
            assert!(!redacted.contains(secret), "{text}: {redacted}");
            assert_eq!(redactor.text(&redacted), redacted, "again: {text}");
        }
    }
}

#[test]
fn command_lines_addresses_and_files_lose_their_secrets() {
    let redactor = Redactor::builtin();
    let code = word(40);
    for (text, secret) in [
        ("curl -u bob:hunter2 https://h/".to_owned(), "hunter2"),
        ("curl -s -X POST -ubob:hunter2 h".into(), "hunter2"),
        ("curl \\\n  --user 'bob:hunter 2' h".into(), "hunter 2"),
        ("run: curl --user=bob:hunter2 h".into(), "hunter2"),
        (r#"{"cmd":"curl -u \"bob:hunter2\" h"}"#.into(), "hunter2"),
        ("/usr/bin/mysql -h db -phunter2 app".into(), "hunter2"),
        ("mysqldump -u root -phunter2".into(), "hunter2"),
        ("sshpass -p hunter2 ssh h".into(), "hunter2"),
        ("redis-cli -h h -a hunter2 ping".into(), "hunter2"),
        ("docker login -u me -p hunter2 r".into(), "hunter2"),
        ("psql --password hunter2".into(), "hunter2"),
        (r#"["--password", "hunter2"]"#.into(), "hunter2"),
        (r#"[\"--password\",\"hunter2\"]"#.into(), "hunter2"),
        ("[\n  \"--api-key\",\n  \"hunter2\"\n]".into(), "hunter2"),
        ("keytool -storepassword hunter2".into(), "hunter2"),
        ("machine h.example login bob password hunter2".into(), "hunter2"),
        (r#"{\"note\":\"machine h login bob password hunter2\"}"#.into(), "hunter2"),
        ("machine h\n  login bob\n  password hunter2\n".into(), "hunter2"),
        (r#"{"auths":{"h":{"auth":"Ym9iOmh1bnRlcjI="}}}"#.into(), "Ym9iOmh1"),
        ("auth = bob:hunter2".into(), "hunter2"),
        ("DB_PASS=hunter2".into(), "hunter2"),
        (r#"<add key="ClearTextPassword" value="hunter2" />"#.into(), "hunter2"),
        (format!("cloudflare: {}", hex(37)), &hex(37)),
        (format!("HF=hf_{}", "abcdefgHIJKLMNopqrstuvwxyzabcdefgh"), "HIJKLMN"),
        (r#""pass": "hunter2""#.into(), "hunter2"),
        ("openssl rsa -passin pass:hunter2".into(), "hunter2"),
        ("bearer: abc123def456".into(), "abc123def456"),
        ("Cookie: a=1; sessionid=x1".into(), "x1"),
        (format!("sessionid={code}"), &code),
        (format!("x-session-id: {code}"), &code),
        ("otp=123456 cvv: 123".into(), "123"),
        (format!("https://h/f?sv=2022&sig={code}%3D&se=1"), &code),
        (format!("https://h/f?X-Amz-Signature={}", hex(64)), &hex(64)),
        (format!("https://h/f?X-Amz-Security-Token={code}"), &code),
        (format!("https://h/f?key={code}"), &code),
        (format!("https://h/cb?state=1&code={code}"), &code),
        (format!("signing_cert_key: {code}"), &code),
        (format!("DefaultEndpointsProtocol=https;AccountKey={code}==;"), &code),
    ] {
        let redacted = redactor.text(&text);
        assert!(!redacted.contains(secret), "{text}: {redacted}");
        assert_eq!(redactor.text(&redacted), redacted, "again: {text}");
    }
}

#[test]
fn ordinary_texts_near_the_new_rules_are_borrowed() {
    let redactor = Redactor::builtin();
    for text in [
        "author: Ada, authority=root, passenger: 12, compass=north, bypass: all2nd",
        r#"{"auth": "none", "oauth": "oauth2", "auth": "basic", "pass": 12, "pass": "yes"}"#,
        r#"{"key": "PROJ-1234", "session_id": "0190f3e2-7a51-7c3e-9f5e-2a4b6c8d0e1f"}"#,
        "commit 94cb9b7c0ffee94cb9b7c0ffee94cb9b7c0ffee9 key=value cache_key: a1b2c3d4e5f6a7b8",
        "GET /a?key=title&code=200 HTTP/1.1",
        "cargo test --pass check; first_pass = 1; render_pass: shadow_map2",
        "curl -u bob https://h; mysql -p app; mysql -P 3306; curl.md -u a:b",
        "fn login(user: &str, password: &str, token: String) -> bool",
        "Client(password=password, token=args.token, secret=config.client_secret)",
        "by_token: Mutex<String>, cookie: Option<&str>, let is_token = |c: char| c == 'x';",
        "SigningKey::from_pem(x), fn key() -> Arc<SigningKey> { Result<Secret, Failure> }",
        "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK; token = ?6; token=$TOKEN",
        "send 'Authorization: Bearer <token>' or \"Authorization: Bearer $(cat key)\"",
        "password: ****, password=*****, is_secret: impl Fn",
        "the machine needs a password then; login to set a password again",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "key-value-store key-0 task SKU-12 sku patterns. paths. its.a.b ends.",
        "session: opened; sig: fn(a: u8); signature=verify_v2; sid=12; jwt: HS256",
        "OTP 26, otp: off, cvv required; the security code is checked",
    ] {
        assert!(matches!(redactor.text(text), Cow::Borrowed(_)), "{text}: {}", redactor.text(text));
    }
}

#[test]
fn a_reference_stays_and_its_default_does_not() {
    let references = ["PASSWORD=${env:DB_2}", "--key ${secret:KEY-2}", "TOKEN=${T:-}"];
    for text in references.into_iter().chain([r#""API_KEY": "${secret:KEY-2}""#]) {
        assert_eq!(BUILTIN.text(text), text);
    }
    let defaults = ["PASSWORD=${DB:-hunter22}", "${secret:-hunter22}", "${secret:K:-hunter22}"];
    for text in defaults.into_iter().chain([r#""API_KEY": "${env:KEY:-hunter22}""#]) {
        let shown = BUILTIN.text(text);
        assert!(!shown.contains("hunter22"), "{shown}");
    }
}

#[test]
fn clues_are_found_in_any_case_and_place() {
    let words = ["key", "://", "token", "to", "tokens"];
    for (text, from, found) in [
        ("a KEY=1", 0, Some((0, 2..5))),
        ("a Tokens", 0, Some((4, 2..8))),
        ("token.", 1, None),
        ("h://x", 0, Some((1, 1..4))),
        ("ke", 0, None),
    ] {
        let words = &words[..if text.contains("Tokens") { 5 } else { 3 }];
        let clue = Clues::new(words.iter().copied()).find(text, from);
        assert_eq!(clue.map(|clue| (clue.number, clue.start..clue.end)), found, "{text}");
    }
    let hints = Clues::new(words);
    for (key, any) in [("a_key", true), ("tokens", true), ("at", false), ("auto", true)] {
        assert_eq!(hints.any(key), any, "{key}");
    }
}

#[test]
fn lists_of_arguments_lose_their_secrets() {
    let mut value = json!({
        "argv": ["psql", "--password", "x", "-v", "--token=y", "-h", "db"],
        "curl": ["/usr/bin/curl", "-u", "bob:x y", "https://h"],
        "login": ["docker", "login", "-p", "x"],
        "server": {"command": "mysql", "args": ["-px", "app"]},
        "flags": ["--password", "--verbose"],
        "cvv": 123, "pass": 7, "otp": "123456", "auth": "none",
    });
    Redactor::builtin().value(&mut value);
    assert_eq!(
        value,
        json!({
            "argv": ["psql", "--password", "[redacted]", "-v", "--token=[redacted]", "-h", "db"],
            "curl": ["/usr/bin/curl", "-u", "bob:[redacted]", "https://h"],
            "login": ["docker", "login", "-p", "[redacted]"],
            "server": {"command": "mysql", "args": ["-p[redacted]", "app"]},
            "flags": ["--password", "--verbose"],
            "cvv": "[redacted]", "pass": 7, "otp": "[redacted]", "auth": "none",
        })
    );
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
            "curl -u ",
            "mysql -p",
            "?key=",
            "auth",
            "pass",
            "otp",
            "machine h login u password ",
            "cst_",
            "kind: Secret\n",
            "data:\n ",
            "\"data\":{",
            "identified by ",
            "SET PASSWORD FOR ",
            "ConvertTo-SecureString ",
            "Private-Lines: 1",
            "$apr1$",
            "dG9rZW4g",
            ":AA",
            "SG.",
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
            let member = |(key, value): (&String, &Value)| {
                format!("{}({})", BUILTIN.text(key), shape(value))
            };
            members.iter().map(member).collect()
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

#[test]
fn a_token_is_known_by_its_key_when_something_is_joined_to_it() {
    const TOKEN: &str = "GmjExNZkZ60Sbvo95aCnEx1IKy1sloqLokg57K77";
    for (text, shown) in [
        (format!("jwt={TOKEN}#jwt={TOKEN}"), "jwt=[redacted]#jwt=[redacted]"),
        (format!("jwt={TOKEN}#2"), "jwt=[redacted]"),
        (format!("bearer: {TOKEN}#bearer: {TOKEN}"), "bearer: [redacted]#bearer: [redacted]"),
        ("bearer: none".to_owned(), "bearer: none"),
    ] {
        assert_eq!(BUILTIN.text(&text), shown);
    }
}

#[test]
fn a_name_that_lost_its_secret_may_hide_its_value() {
    let name = format!("{AWS_SECRET}Bearer {JWT}machine h login u password ");
    let mut value = json!({ name: {"a": 0} });
    BUILTIN.value(&mut value);
    let once = value.to_string();
    BUILTIN.value(&mut value);
    assert_eq!(value.to_string(), once);
}

#[test]
fn an_operand_that_is_redacted_hides_nothing_after_it() {
    let line =
        "ConvertTo-SecureString hunter2 -AsPlainText and nine more words that stay as they are";
    let shown =
        "ConvertTo-SecureString [redacted] -AsPlainText and nine more words that stay as they are";
    assert_eq!(BUILTIN.text(line), shown);
}
