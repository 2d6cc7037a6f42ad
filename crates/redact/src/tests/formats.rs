//! Tests of secrets that their format gives away, of the gate's own keys, and of ordinary lines
//! near all rules.

use super::*;
use crate::Credential;

/// Redacts text, twice with the same result.
fn redacted(text: &str) -> String {
    let redacted = BUILTIN.text(text).into_owned();
    assert_eq!(BUILTIN.text(&redacted), redacted, "again: {text}");
    redacted
}

#[test]
fn every_kind_of_own_key_is_known_by_its_form() {
    for kind in Credential::ALL {
        let key = kind.text(&[0xa7; 32]);
        for text in [key.clone(), format!("key={key}"), format!("http://127.0.0.1/#code={key}")] {
            assert!(!redacted(&text).contains("a7a7"), "{kind:?}: {text}");
        }
        assert_eq!(redacted(&format!("'{key}'.")), "'[redacted:countersign]'.");
        let named = format!("{}_{}", kind.prefix(), "a_name_of_a_column");
        assert_eq!(redacted(&named), named, "a name with such a beginning");
        let encoded = {
            use base64::Engine;
            base64::engine::general_purpose::STANDARD.encode(&key)
        };
        assert_eq!(redacted(&encoded), REDACTED, "{kind:?} in base64");
    }
}

/// Texts with a secret, which is between `«` and `»`. The rest stays.
const FORMATS: &[&str] = &[
    "redis://:«hunter2»@db:6379/0",
    "rediss://:«hun/ter2»@db:6379/0",
    "amqp://:«s3cret»@mq",
    "mongodb+srv://:«s3cret»@cluster.example/db",
    "«tvly-abcdefGHIJ0123456789abcdefGHIJ12»",
    "«tvly-dev-abcdefGHIJ0123456789abcdefGHIJ12»",
    "«PMAK-0123456789abcdef01234567-0123456789abcdef0123456789abcdef01»",
    // "token Zone1234567890abc", "Bearer Zone1234567890abc", "password=hunter2"
    "x «dG9rZW4gWm9uZTEyMzQ1Njc4OTBhYmM=»",
    "Authorization=«dG9rZW4gWm9uZTEyMzQ1Njc4OTBhYmM»",
    "h: «QmVhcmVyIFpvbmUxMjM0NTY3ODkwYWJj»",
    "prompt/«QmVhcmVyIFpvbmUxMjM0NTY3ODkwYWJj»/x",
    "«cGFzc3dvcmQ9aHVudGVyMg==»",
    "kind: Secret\nmetadata:\n  name: a\ndata:\n  blob: «aGVsbG8K»\n  b: \"«d29y»\"\ntype: Opaque",
    "apiVersion: v1\ndata:\n  blob: «aGVsbG8K»\nkind: Secret\n---\napiVersion: v1\ndata:\n  a: b",
    "- kind: Secret\n  stringData:\n    conf: |\n      «a = one»\n      «b = two»\n    x: «y z»\n  c: d",
    "kind: Secret\ndata: {blob: «aGVsbG8K»}",
    r"kind: Secret\ndata:\n  blob: «aGVsbG8K»\n  c: «eHl6»",
    r#"{"apiVersion":"v1","kind":"Secret","data":{"a":"«aGVsbG8K»","b":"«eA»"},"c":{"d":"e"}}"#,
    r#"[{"apiVersion":"v1","data":{"a":"«aGVsbG8K»"},"kind":"Secret"},{"apiVersion":"v1","data":{"a":"b"}}]"#,
    r#"{\"kind\": \"Secret\", \"data\": {\"a\": \"«aGVsbG8K»\"}}"#,
    r#"{\\\"kind\\\":\\\"Secret\\\",\\\"data\\\":{\\\"a\\\":\\\"«aGVsbG8K»\\\"}}"#,
    r#""kind: Secret\\ndata:\\n  blob: «aGVsbG8K»\\n  c: «eHl6»\\n""#,
    "CREATE USER bob IDENTIFIED BY '«tiger»';",
    "create user 'bob'@'%' identified with mysql_native_password by \"«ti'ger»\"",
    "ALTER USER scott IDENTIFIED BY «tiger»",
    "GRANT ALL ON *.* TO bob IDENTIFIED BY '«it''s»'",
    "ALTER ROLE bob WITH LOGIN PASSWORD '«tiger»' VALID UNTIL 'infinity'",
    "SET PASSWORD FOR 'bob'@'h' = '«tiger»'",
    "SET PASSWORD = PASSWORD('«tiger»')",
    "CREATE LOGIN bob WITH PASSWORD = N'«tiger»'",
    "password = b'«hunter2»'",
    "    client-key-data: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlF»",
    "x: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlF»",
    "«00AbCdEf1234567890GhIjKlMnOpQrStUvWxYz1234»",
    "https://a.«webhook.office.com/webhookb2/0190f3e2-7a51@0190f3e2-7a51/IncomingWebhook/0123/7a51»",
    "https://h.example/invoke?sp=%2Ftriggers&sv=1.0&sig=«AbC1dEf2GhI3jKl4MnO5pQr6StU7vWx8»",
    "<a href=\"/f?sv=1&amp;sig=«AbC1dEf2GhI3jKl4MnO5pQr6StU7vWx8»\">",
    "bob:«$apr1$abcdefgh$0123456789ABCDEFGHIJ./»",
    "bob:«$2y$05$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234»",
    "bob:«{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=»",
    "root:«$y$j9T$/bcdefghij$0123456789ABCDEFGHIJabcdefghijabcdefghijabc»:19000:0:99999:7:::",
    "root:«$1$/salt$0123456789ABCDEFGHIJ./»:1",
    "«$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$0123456789ABCDEFGHIJabcdefghij»",
    "Admin:500:«aad3b435b51404eeaad3b435b51404ee:31d6cfe0d16ae931b73c59d7e0c089c0»:::",
    "PuTTY-User-Key-File-3: x\nPublic-Lines: 1\nAAAA\n«Private-Lines: 1\nBBBB\nPrivate-MAC: 01ef»\nc",
    "---- BEGIN SSH2 ENCRYPTED KEY ----",
    "«---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nP2/56wAAA\n---- END SSH2 ENCRYPTED PRIVATE KEY ----»",
    "ConvertTo-SecureString '«hunter2»' -AsPlainText -Force",
    "$p = ConvertTo-SecureString -String \"«hunter 2»\" -AsPlainText",
    "ConvertTo-SecureString -AsPlainText -Force «hunter2»",
    "«01000000d08c9ddf0115d1118c7a00c04fc297eb01000000abcdef0123456789abcdef»",
    "«01000000D08C9DDF0115D1118C7A00C04FC297EB01000000ABCDEF0123456789ABCDEF»",
    "~/.netrc: machine h.example login bob password «hunter2»",
    "/srv/app/.netrc:3:machine h.example login bob password «hunter2»",
    "~/.netrc:default login bob password «hunter2»",
    r#""machine h\n  login bob\n  password «hunter2»\n""#,
];

#[test]
fn secrets_are_known_by_their_format_and_the_rest_stays() {
    for marked in FORMATS {
        let text = marked.replace(['«', '»'], "");
        let found = redacted(&text);
        for part in marked.split('«').skip(1) {
            let (secret, _) = part.split_once('»').unwrap();
            assert!(!found.contains(secret), "{text}: {found}");
        }
        for part in marked.split('»') {
            let kept = part.split('«').next().unwrap();
            assert!(found.contains(kept), "{text}: {found}");
        }
        assert_eq!(found.matches("[redacted").count(), marked.matches('«').count(), "{found}");
    }
}

#[test]
fn a_certificate_in_base64_is_no_secret_and_wrapped_lines_belong_together() {
    let certificate = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM=";
    assert_eq!(redacted(certificate), certificate);
    let key = format!("LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1J{}", "Q0F3".repeat(9));
    assert_eq!(key.len(), 76);
    let wrapped = format!("data\n{key}\n{}\nend", "SUNB".repeat(8));
    assert_eq!(redacted(&wrapped), "data\n[redacted]\nend");
}

/// Lines of documents, code, messages and logs that hold no secret.
const ORDINARY: &str = r##"
password: required
token: "next"
"token": "next"
Bearer authentication is used
password: must be at least 8 characters
Password: must contain a digit
{"errors": {"password": "required", "token": "missing"}}
{"password": "string", "token": "string"}
fetch(url, {credentials: "include"})
credentials: 'same-origin'
Authorization: required for every route
Authorization: none
Cookie: see the privacy policy
authorization: the caller must be an operator
password: optional
secret: "file"
api_key: not set
token: ","
"token": "EOF", "pos": 12
expected token: "identifier", found "comma"
Wrong password: try again
password = getpass.getpass()
const token = await getToken();
if (password === confirmPassword) {
password := os.Getenv("DB_PASSWORD")
export API_KEY=$(cat key)
| `password` | string | the password |
secrets: inherit
permissions: id-token: write
  uses: actions/checkout@692973e3d937129bcbf40652eb9f2f61becf3332
commit 94cb9b7c0ffee94cb9b7c0ffee94cb9b7c0ffee9
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
id: 0190f3e2-7a51-7c3e-9f5e-2a4b6c8d0e1f
0012345678 and 001234567890123456789012345678901234567890
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk
GET /v1/items?page_token=abc123def456ghi789&max=10 HTTP/1.1
kind: Secret is a resource of Kubernetes
kind: SecretStore
identified by "the reviewer"
the user is identified by 'id'
the password 'name' is no parameter
price: $1$ and $2$, echo "$1" "$2", awk '{print $1$2}'
Private-Lines are a part of a PuTTY key
redis://localhost:6379/0
mongodb+srv://cluster.example/db?retryWrites=true
ssh://git@github.com/acme/app.git
The session cookie is HttpOnly and SameSite=Lax
key: PROJ-1234, author: Ada Lovelace, auth: basic
https://login.example.com/oauth2/authorize?response_type=code&scope=openid
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGq8Yt1ZJQ bob@h
ETag: "33a64df551425fcc55e4d42a148795d9f25f89d4"
integrity="sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC"
machine learning with a login form and a password field
passed: 12, failed: 0
the secret of success: work
cookies: essential only
<label>Password:</label>
label: "Password", type: password
secretKeyRef: {name: db, key: password}
token_endpoint: https://login.example.com/token
--token-file /run/secrets/token
POSTGRES_PASSWORD_FILE=/run/secrets/pg
cst_timezone = "America/Chicago", css_class: header, csl_style: apa
ALTER TABLE users ADD COLUMN password text
UPDATE users SET password = ? WHERE token = $1 AND secret = :secret
def login(user: str, password: str = None) -> Token:
token?: string; password!: string
token => "number"
hf_hub_download(repo_id="x", token=True, use_auth_token=False)
password = "${DB_PASSWORD}"
password: "{{ vault_db_password }}"
password: your-password-here
token: xxxxxxxxxxxx
cGFzc3dvcmQgZmllbGQ is a word in base64
"##;

#[test]
fn ordinary_lines_stay_as_they_are() {
    let lines: Vec<&str> = ORDINARY.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines.len() >= 60, "{}", lines.len());
    for line in lines {
        assert_eq!(BUILTIN.text(line), line);
    }
    let plain = json!({"password": "required", "token": "next", "kind": "Secret", "errors":
        [{"secret": "must not be empty"}]});
    let mut value = plain.clone();
    assert!(!BUILTIN.value(&mut value), "{value}");
    assert_eq!(value, plain);
}

#[test]
fn names_of_members_lose_their_secrets_and_no_member_is_lost() {
    let other = GITHUB.replace("0123456789", "9876543210");
    let mut value = json!({GITHUB: 1, "a": {other.clone(): 2, GITHUB: 3, "b": [{GITHUB: 4}]},
        "password": {GITHUB: "x"}, "token=hunter2": true});
    assert!(BUILTIN.value(&mut value));
    assert_eq!(
        value,
        json!({"[redacted:github]": 1,
            "a": {"[redacted:github]": 2, "[redacted:github] 2": 3, "b": [{"[redacted:github]": 4}]},
            "password": {"[redacted:github]": "[redacted]"}, "token=[redacted]": true})
    );
    assert!(!BUILTIN.value(&mut value), "again");
    let redactor = Redactor::new(&[], &["acme".to_owned()]).unwrap();
    redactor.known().add("tuesday");
    let mut value = json!({"acme": 1, "tuesday": 2});
    redactor.value(&mut value);
    assert_eq!(value, json!({"[redacted]": 1, "[redacted] 2": 2}), "short names too");
}

#[test]
fn values_of_a_kubernetes_secret_are_removed() {
    let mut value = json!({"kind": "Secret", "data": {"a": "eA=="}, "stringData": {"b": "x", "c": ""},
        "metadata": {"name": "n"}});
    assert!(BUILTIN.value(&mut value));
    assert_eq!(
        value,
        json!({"kind": "Secret", "data": {"a": "[redacted]"},
            "stringData": {"b": "[redacted]", "c": ""}, "metadata": {"name": "n"}})
    );
    let mut map = json!({"kind": "ConfigMap", "data": {"a": "x"}});
    assert!(!BUILTIN.value(&mut map));
}

#[test]
fn private_keys_are_removed_line_by_line() {
    for lines in [
        &["-----BEGIN PRIVATE KEY-----", "MIIE", "-----END PRIVATE KEY-----"][..],
        &["Private-Lines: 2", "AAAA", "BBBB", "Private-MAC: 01ef"],
    ] {
        let mut redaction = LineRedaction::default();
        for line in lines {
            assert_eq!(redaction.next(&BUILTIN, (*line).to_owned()), "[redacted:pem]");
        }
        assert_eq!(redaction.next(&BUILTIN, "after".to_owned()), "after");
    }
}

#[test]
fn text_that_repeats_a_beginning_is_searched_in_time_that_grows_with_it() {
    // Hangs if a run, or what surrounds a kind, is read again from each of its clues.
    for piece in
        ["Z2hwX", "kind: Secret\n", "kind: Secret data:\n a: ", "/Z2hwX", "identified ", "$1$a"]
    {
        BUILTIN.text(&piece.repeat(200_000 / piece.len()));
    }
}
