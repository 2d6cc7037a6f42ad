//! Black-box tests of the configuration: text in; faults, notes and values out.

mod pasted;

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::declare::Section;
use super::*;

/// Parses the text and compares its faults as shown to a person; if none are expected, it must
/// parse.
fn check(text: &str, expect: &[&str]) {
    let faults: Vec<String> = match parse(text) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.list.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(faults, expect, "{text}");
}

fn parsed(text: &str) -> (Config, Vec<String>) {
    let parsed = parse(text).unwrap_or_else(|faults| panic!("{faults}\nin {text}"));
    (parsed.config, parsed.notes.iter().map(ToString::to_string).collect())
}

/// Checks a config of one server `s` with these members.
fn check_server(members: &str, expect: &[&str]) {
    check(&format!("{{\"mcpServers\":{{\"s\":{{\n{members}}}}}}}"), expect);
}

fn server(members: &str) -> (ServerConfig, Vec<String>) {
    let (config, notes) = parsed(&format!("{{\"mcpServers\":{{\"s\":{{\n{members}}}}}}}"));
    (config.servers[0].clone(), notes)
}

#[test]
fn sign_in_settings_that_cannot_work_are_faults() {
    let place = "mcpServers.s.oauth";
    for (oauth, expected) in [
        (r#"{"client_secret": "x"}"#, format!("{place}.client_secret: needs 'client_id'")),
        (
            r#"{"grant": "client_credentials", "client_id": "c"}"#,
            format!("{place}.grant: \"client_credentials\" needs"),
        ),
        (
            r#"{"metadata_url": "file:///etc/passwd"}"#,
            format!("{place}.metadata_url: expected an https URL"),
        ),
        (r#"{"scopes": ["a b"]}"#, format!("{place}.scopes: a scope is one word")),
        (r#"{"auth_method": "tls", "client_id": "c"}"#, format!("{place}.auth_method: ")),
    ] {
        let text =
            format!(r#"{{"mcpServers": {{"s": {{"url": "https://h", "oauth": {oauth}}}}}}}"#);
        let faults = parse(&text).map(|_| ()).unwrap_err().to_string();
        assert!(faults.contains(&expected), "{faults}");
    }
    let both = r#"{"mcpServers": {"s": {"url": "https://h", "headers": {"AUTHORIZATION": "x"}, "oauth": {}}}}"#;
    let faults = parse(both).map(|_| ()).unwrap_err().to_string();
    assert!(faults.contains("cannot be combined with the header"), "{faults}");
    for (members, expected) in [
        (r#""command": "x""#, "\"per_token\" needs 'url'"),
        (
            r#""url": "https://h", "headers": {"Authorization": "x"}"#,
            "\"per_token\" cannot be combined with the header 'Authorization'",
        ),
        (
            r#""url": "https://h", "oauth": {"grant": "client_credentials", "client_id": "c", "client_secret": "x"}"#,
            "\"per_token\" cannot be combined with grant \"client_credentials\"",
        ),
        (
            r#""url": "https://h", "sharing": "shared""#,
            "\"per_token\" cannot be combined with sharing \"shared\"",
        ),
    ] {
        let text = format!(r#"{{"mcpServers": {{"s": {{{members}, "login": "per_token"}}}}}}"#);
        let faults = parse(&text).map(|_| ()).unwrap_err().to_string();
        assert!(faults.contains(&format!("mcpServers.s.login: {expected}")), "{faults}");
    }
}

#[test]
fn an_empty_object_is_the_defaults() {
    let (config, notes) = parsed("{}");
    assert_eq!(config, Config::default());
    assert_eq!(notes, [""; 0]);
    assert_eq!(config.hosts(81), ["127.0.0.1:81", "localhost:81", "[::1]:81"]);
    assert_eq!(config.origins(443)[1], "http://localhost:443");
    // Browsers omit the default port of a scheme.
    assert_eq!(config.hosts(80), ["127.0.0.1", "localhost", "[::1]"]);
    assert_eq!(config.origins(80)[1], "http://localhost");
}

#[test]
fn five_mistakes_are_five_faults_in_their_places() {
    let text = r#"{
  "listn": "127.0.0.1:1",
  "tools_limit": "many",
  "mcpServers": {
    "a": { "comand": "x", "url": "https://a/mcp" },
    "ü b": { "command": "x", "args": ["ok", 5] }, // one name, one argument
  },
}"#;
    check(
        text,
        &[
            "line 2, column 3: listn: unknown key, did you mean 'listen'?",
            "line 3, column 18: tools_limit: expected a number, found a string",
            "line 5, column 12: mcpServers.a.comand: unknown key, did you mean 'command'?",
            "line 6, column 5: mcpServers[\"ü b\"]: a name may contain only letters, digits, '_', \
             '.' and '-'",
            "line 6, column 45: mcpServers[\"ü b\"].args[1]: expected a string, found a number",
        ],
    );
}

#[test]
fn invalid_config_texts_are_rejected() {
    check("", &["line 1, column 1: the file is empty; write {} to use the defaults"]);
    let empty = "line 1, column 1: the file is empty; write {} to use the defaults";
    check("// only a comment", &[empty]);
    check("[]", &["line 1, column 1: expected an object, found a list"]);
    check("{\n \"a\": 'x'}", &["line 2, column 7: single-quoted strings are not allowed"]);
    check(
        "{\"listen\" \"x\"}",
        &["line 1, column 11: expected colon after the string or word in object property"],
    );
    check("{} {}", &["line 1, column 4: text cannot contain more than one JSON value"]);
}

#[test]
fn comments_trailing_commas_and_a_byte_order_mark_are_accepted() {
    let (config, _) = parsed("\u{feff}// top\n{ /* in */ \"tools_limit\": 3, }");
    assert_eq!(config.tools_limit, 3);
    check("\u{feff}{\"x\":1}", &["line 1, column 2: x: unknown key"]);
}

#[test]
fn a_key_given_twice_is_a_fault() {
    check(
        "{\"tools_limit\": 3,\n\"tools_limit\": 4}",
        &["line 2, column 1: tools_limit: duplicate key; keep one"],
    );
    check_server(
        "\"command\":\"x\",\n\"env\":{\"A\":\"1\",\"A\":\"2\"}",
        &["line 3, column 16: mcpServers.s.env.A: duplicate key; keep one"],
    );
}

#[test]
fn wrong_types_say_what_was_expected_and_found() {
    for (member, expect) in [
        (r#""listen": 7420"#, "listen: expected a string, found a number"),
        (
            r#""listen": ":7420""#,
            "listen: expected ip:port or localhost:port, such as 127.0.0.1:7420, found \":7420\"",
        ),
        (r#""allowed_hosts": "x""#, "allowed_hosts: expected a list of strings, found a string"),
        (
            r#""allowed_hosts": ["*"]"#,
            "allowed_hosts[0]: expected host or host:port, such as localhost:7420, found \"*\"",
        ),
        (
            r#""allowed_origins": ["null"]"#,
            "allowed_origins[0]: expected scheme://host or scheme://host:port, without a path, found \"null\"",
        ),
        (
            r#""mcpServers": null"#,
            "mcpServers: expected an object of servers by name, or a list, found null",
        ),
        (r#""workspace": true"#, "workspace: expected an object, found true"),
        (
            r#""intent_declaration": {"strict": 1}"#,
            "intent_declaration.strict: unknown key, did you mean 'strict_server_validation'?",
        ),
        (r#""tools_limit": 0"#, "tools_limit: expected a whole number from 1 to 100, found 0"),
        (r#""tools_limit": 1.5"#, "tools_limit: expected a whole number from 1 to 100, found 1.5"),
        (
            r#""tool_response_limit": 99"#,
            "tool_response_limit: expected 0 or a whole number from 100 to 100000000, found 99",
        ),
        (
            r#""call_timeout": "2 m""#,
            "call_timeout: expected a duration such as \"30s\", \"2m\", \"500ms\" or a number of seconds",
        ),
        (
            r#""call_timeout": "48h""#,
            "call_timeout: expected a duration from 10ms to 24h, found 48h",
        ),
        (
            r#""call_timeout": -1"#,
            "call_timeout: expected a duration such as \"30s\", \"2m\", \"500ms\" or a number of seconds",
        ),
        (
            r#""ledger": {"durability": "dsk"}"#,
            "ledger.durability: expected \"process\" or \"disk\", found \"dsk\", did you mean 'disk'?",
        ),
        (
            r#""ledger": {"anchor": []}"#,
            "ledger.anchor: expected a file, or a command and its arguments",
        ),
        (
            r#""ledger": {"anchor": ""}"#,
            "ledger.anchor: expected a file, or a command and its arguments",
        ),
        (r#""ledger": {"anchor": true}"#, "ledger.anchor: expected a string, found true"),
        (r#""store": """#, "store: unknown key"),
        (
            r#""secrets": {"key": "keyring"}"#,
            "secrets.key: expected \"auto\" or \"file\" or \"keychain\", found \"keyring\"",
        ),
        (
            r#""secrets": {"key": {}}"#,
            "secrets.key: expected \"command\" with a program in PATH or an absolute path, and its arguments",
        ),
        (
            r#""secrets": {"key": {"command": ["./key"]}}"#,
            "secrets.key: expected \"command\" with a program in PATH or an absolute path, and its arguments",
        ),
        (r#""profiles": {"p": {}}"#, "profiles.p: a profile needs 'servers'"),
        (
            r#""plugins": {"p": {"sha256": "ab"}}"#,
            "plugins.p.sha256: expected a SHA-256 of 64 hex digits",
        ),
        (
            r#""telemetry": {"exporter": "here"}"#,
            "telemetry.exporter: expected an http or https URL, or \"\"",
        ),
    ] {
        let faults = parse(&format!("{{{member}}}")).expect_err(member);
        let told: Vec<String> = faults
            .list
            .iter()
            .map(|fault| format!("{}: {}", fault.location.path, fault.message))
            .collect();
        assert_eq!(told, [expect], "{member}");
    }
}

#[test]
fn durations_are_written_with_a_unit_or_as_seconds() {
    for (text, expect) in [
        ("\"500ms\"", Duration::from_millis(500)),
        ("\"30s\"", Duration::from_secs(30)),
        ("\"2m\"", Duration::from_mins(2)),
        ("\"1h\"", Duration::from_hours(1)),
        ("90", Duration::from_secs(90)),
        ("0.5", Duration::from_millis(500)),
    ] {
        let (config, _) = parsed(&format!("{{\"call_timeout\": {text}}}"));
        assert_eq!(config.call_timeout, expect, "{text}");
    }
}

#[test]
fn listen_takes_ip_or_localhost() {
    assert_eq!(parsed(r#"{"listen": "localhost:80"}"#).0.listen.to_string(), "127.0.0.1:80");
    assert_eq!(parsed(r#"{"listen": "[::1]:80"}"#).0.listen.to_string(), "[::1]:80");
    assert_eq!(
        parsed(r#"{"listen": "0.0.0.0:80"}"#).1,
        ["line 1, column 2: listen: other machines can reach this address; it is refused without \
         'tls' or 'behind_proxy'; add the host name they use to 'allowed_hosts'",]
    );
    let proxied = r#"{"listen": "0.0.0.0:80", "behind_proxy": true, "allowed_hosts": ["g"]}"#;
    assert_eq!(
        parsed(proxied).1,
        ["line 1, column 2: listen: other machines can reach this address"]
    );
}

#[test]
fn tls_needs_both_files_and_makes_the_origins_https() {
    let fault = "line 1, column 9: tls: needs 'cert' and 'key', both PEM files";
    check(r#"{"tls": {"cert": "c"}}"#, &[fault]);
    let config = parsed(r#"{"tls": {"cert": "c", "key": "k"}}"#).0;
    assert_eq!(config.origins(80)[0], "https://127.0.0.1:80");
    assert_eq!(
        (&*config.origins(443)[0], &*config.hosts(443)[0]),
        ("https://127.0.0.1", "127.0.0.1")
    );
}

#[test]
fn a_server_is_stdio_or_remote() {
    let place = "mcpServers.s";
    check_server(
        "",
        &[&format!("line 1, column 20: {place}: a server needs 'command' (stdio) or 'url' (http)")],
    );
    check_server(
        "\"command\":\"x\",\n\"url\":\"http://x\"",
        &[&format!(
            "line 3, column 1: {place}.url: a server takes 'command' or 'url', not both; \
                    remove one"
        )],
    );
    check_server(
        "\"command\":\"x\",\"transport\":\"http\"",
        &[&format!(
            "line 2, column 1: {place}.command: 'command' requires transport \"stdio\"; use 'url' \
             for other transports"
        )],
    );
    check_server(
        "\"url\":\"file:///etc\"",
        &[&format!("line 2, column 7: {place}.url: expected an http or https URL")],
    );
    check_server(
        "\"type\":\"sse\",\"transport\":\"http\",\"url\":\"http://x\"",
        &[&format!("line 2, column 1: {place}.type: contradicts 'transport'; keep one of them")],
    );
}

#[test]
fn the_transport_is_guessed_from_the_url() {
    for (members, expect) in [
        (r#""url": "https://h/mcp""#, "http"),
        (r#""url": "https://h/sse""#, "sse"),
        (r#""url": "https://h/sse/?a=1""#, "sse"),
        (r#""url": "https://h/sse", "type": "streamable-http""#, "http"),
        (r#""httpUrl": "https://h/sse""#, "http"),
        (r#""httpUrl": "https://h/x", "type": "sse""#, "sse"),
        (r#""serverUrl": "https://h/sse""#, "sse"),
        (r#""url": "https://h/mcp", "transport": "streamableHttp""#, "http"),
        (r#""url": "${env:URL}""#, "http"),
        (r#""command": "x", "type": "stdio""#, "stdio"),
    ] {
        let (server, _) = server(members);
        assert_eq!(server.transport.name(), expect, "{members}");
    }
}

#[test]
fn invalid_members_of_a_server_are_rejected() {
    for (members, expect) in [
        (r#""command": """#, ".command: the command must not be empty"),
        (
            r#""command": "countersign", "args": ["mcp"]"#,
            ".command: this command is Countersign itself, which would call itself endlessly",
        ),
        (
            r#""url": "http://localhost:7420/mcp""#,
            ".url: this is Countersign's own address; it would call itself endlessly",
        ),
        (
            r#""command": "x", "env": {"COUNTERSIGN_HOME": "/"}"#,
            ".env.COUNTERSIGN_HOME: COUNTERSIGN_ variables are never passed to servers; remove it",
        ),
        (
            r#""command": "x", "env": {"A=B": "c"}"#,
            ".env[\"A=B\"]: not a valid environment variable name",
        ),
        (r#""command": "x", "args": ["${env:A"]"#, ".args[0]: '${env:' has no closing '}'"),
        (
            r#""command": "x", "enabled_tools": [], "disabled_tools": []"#,
            ".disabled_tools: cannot be combined with 'enabled_tools'; keep one of them",
        ),
        (
            r#""command": "x", "enabled": true, "disabled": true"#,
            ".disabled: contradicts 'enabled': true; keep one of them",
        ),
        (
            r#""command": "x", "max_concurrent": 0"#,
            ".max_concurrent: expected a whole number from 1 to 10000, found 0",
        ),
        (
            r#""url": "http://h", "headers": {"a b": "c"}"#,
            ".headers[\"a b\"]: not a valid header name",
        ),
        (
            r#""url": "http://h", "headers": {"a": "b\r\nc"}"#,
            ".headers.a: a header value must not contain control characters",
        ),
        (
            r#""url": "http://h", "headers": {"a": "b", "A": "c"}"#,
            ".headers.A: duplicate header; keep one",
        ),
        (
            r#""command": "x", "disabledTools": []"#,
            ".disabledTools: unknown key, did you mean 'disabled_tools'?",
        ),
    ] {
        let text = format!("{{\"mcpServers\":{{\"s\":{{{members}}}}}}}");
        let faults = parse(&text).expect_err(members);
        let told: Vec<String> = faults
            .list
            .iter()
            .map(|fault| format!("{}: {}", fault.location.path, fault.message))
            .collect();
        assert_eq!(told, [format!("mcpServers.s{expect}")], "{members}");
    }
}

#[test]
fn names_of_servers_are_checked() {
    let long = "x".repeat(65);
    for (name, expect) in [
        ("", "a name must not be empty"),
        ("a:b", "a name may contain only letters, digits, '_', '.' and '-'"),
        ("a/b", "a name may contain only letters, digits, '_', '.' and '-'"),
        (long.as_str(), "a name must have at most 64 characters"),
        ("..", "a name must not be '.' or '..'"),
        ("workspace", "this name is reserved for the built-in tools; choose another"),
    ] {
        for text in [
            format!("{{\"mcpServers\":{{\"{name}\":{{\"command\":\"x\"}}}}}}"),
            format!("{{\"mcpServers\":[{{\"name\":\"{name}\",\"command\":\"x\"}}]}}"),
        ] {
            let faults = parse(&text).expect_err(name);
            assert_eq!(faults.list.len(), 1, "{faults}");
            assert_eq!(faults.list[0].message, expect, "{text}");
        }
    }
    parsed(&format!("{{\"mcpServers\":{{\"{}\":{{\"command\":\"x\"}}}}}}", &long[1..]));
}

#[test]
fn servers_may_be_a_list_and_keep_its_order() {
    let text =
        r#"{"mcpServers": [{"name": "b", "command": "x"}, {"name": "a", "url": "http://h"}]}"#;
    let (config, notes) = parsed(text);
    let names: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(notes, [""; 0]);
    assert!(config.server("a").is_some() && config.server("c").is_none());
    check(
        "{\"mcpServers\":[{\"name\":\"a\",\"command\":\"x\"},\n{\"name\":\"a\",\"command\":\"x\"},\n{\"command\":\"x\"}]}",
        &[
            "line 2, column 9: mcpServers[1].name: another server is already named \"a\"",
            "line 3, column 1: mcpServers[2]: a server in a list needs a 'name'",
        ],
    );
}

#[test]
fn risky_settings_are_noted() {
    for (members, expect) in [
        (
            r#""command": "x", "env": {"LD_PRELOAD": "/x.so"}"#,
            "makes the server load extra code; make sure that you trust its source",
        ),
        (
            r#""command": "npx -y thing""#,
            "expected a program, not a command line; put its arguments in 'args'",
        ),
        (
            r#""command": "a; b""#,
            "no shell runs this command, so shell characters are taken literally",
        ),
        (
            r#""command": "./server""#,
            "a relative path depends on the directory Countersign is started from",
        ),
        (r#""command": "x", "oauth": {}"#, "ignored: has no effect with 'command'"),
        (r#""command": "x", "disabled_tools": ["a", ""]"#, "ignored: a tool name cannot be empty"),
        (r#""command": "x", "enabled_tools": ["a", "a"]"#, "\"a\" is listed twice"),
        (r#""command": "x", "targets": {}"#, "has no effect: set 'system' or 'rules'"),
    ] {
        let (_, notes) = server(members);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].ends_with(expect), "{notes:?}");
    }
}

#[test]
fn profiles_are_checked_against_the_servers() {
    let servers = r#""mcpServers": {"github": {"command": "x"}, "files": {"command": "x"}}"#;
    let with = |profile: &str| format!("{{{servers},\n\"profiles\": {{\"p\": {{{profile}}}}}}}");
    let (config, notes) = parsed(&with(
        r#""servers": ["github", "workspace"], "tools": ["github: a ", "github:b"], "exclude": ["github:b"]"#,
    ));
    assert_eq!(notes, [""; 0]);
    let profile = config.profile("p").unwrap();
    let tools: Vec<String> = profile.tools.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(
        (profile.origin, tools),
        (ServerOrigin::Own, vec!["github:a".into(), "github:b".into()])
    );
    let place = "line 2, column";
    for (profile, expect) in [
        (
            r#""servers": ["gihub", "x"]"#,
            vec![
                format!(
                    "{place} 32: profiles.p.servers[0]: no server is named \"gihub\", did you mean 'github'?"
                ),
                format!("{place} 41: profiles.p.servers[1]: no server is named \"x\""),
            ],
        ),
        (
            r#""servers": ["github"], "tools": ["files:a"], "exclude": ["x:y"]"#,
            vec![
                format!(
                    "{place} 53: profiles.p.tools[0]: \"files\" is not listed in the profile's \
                     'servers'"
                ),
                format!(
                    "{place} 77: profiles.p.exclude[0]: \"x\" is not listed in the profile's \
                     'servers'"
                ),
            ],
        ),
    ] {
        assert_eq!(parsed(&with(profile)).1, expect, "{profile}");
    }
    check(
        &with(r#""servers": "github", "tools": ["a", 1], "exclude": [":a", "files:"]"#),
        &[
            "line 2, column 31: profiles.p.servers: expected a list of strings, found a string",
            "line 2, column 51: profiles.p.tools[0]: expected 'server:tool', found \"a\"",
            "line 2, column 56: profiles.p.tools[1]: expected a string, found a number",
            "line 2, column 72: profiles.p.exclude[0]: expected 'server:tool', found \":a\"",
            "line 2, column 78: profiles.p.exclude[1]: expected 'server:tool', found \"files:\"",
        ],
    );
}

/// Every key of the file, with a value other than its default.
const FULL: &str = r#"{
  "$schema": "https://example.com/schema.json",
  "listen": "127.0.0.2:1",
  "allowed_hosts": ["Gate.example:443"],
  "allowed_origins": ["https://gate.example"],
  "tls": {"cert": "/c.pem", "key": "/k.pem"}, "behind_proxy": true, "agent_token": false,
  "mcpServers": {
    "a": {
      "command": "/bin/a", "args": ["--token", "t0p", "x"], "env": {"API_KEY": "t0p", "B": "c"},
      "inherit_env": true, "cwd": "/tmp", "enabled": false, "quarantined": true,
      "untrusted": true, "enabled_tools": ["t"],
      "auto_approve": "new", "sharing": "per_client", "start": "lazy", "call_timeout": "1500ms",
      "arguments": "warn",
      "max_concurrent": 4,
      "pin": true,
      "targets": {"system": "a.example", "rules": [
        {"tools": "copy", "resource": ["{to:file}"], "reads": "{from:file}"},
        {"tools": "list_*|search", "resource": null},
      ]},
    },
    "b": {"url": "https://u:t0p@h/sse?key=t0p", "headers": {"X-Api-Key": "t0p"}, "disabled_tools": ["t"],
      "oauth": {"client_id": "c", "client_secret": "t0p", "auth_method": "client_secret_post",
        "scopes": ["s"], "grant": "client_credentials", "metadata_url": "https://as/m",
        "resource": false, "assume_pkce": true}},
    "c": {"url": "https://h/mcp", "login": "per_token", "oauth": {"client_id": "c", "private_key": "t0p"}},
  },
  "profiles": {"p": {"servers": ["a"], "tools": ["a:t"], "exclude": ["a:u"]}},
  "workspace": {"enabled": true, "root": "/w", "write": true, "shell": true, "allow_outside": true},
  "plugins": {"p": {"path": "/p", "config": {"password": "t0p", "n": [1, 2.5, null]}, "env": {"TOKEN": "t0p"}, "sha256":
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}},
  "intent_declaration": {"strict_server_validation": false}, "search": {"learned": false},
  "tools_limit": 3, "tool_response_limit": 0,
  "call_timeout": "3m", "connect_timeout": 5, "shutdown_timeout": 0, "refresh_interval": "1h",
  "ledger": {"durability": "disk", "payloads": "none", "on_failure": "refuse",
    "activity_retention_days": 1, "max_records": 1000, "max_size_mb": 16, "receipt_retention_days": 7,
    "anchor": ["stamp", "--token", "t0p"]},
  "redact": {"keys": ["k"], "patterns": ["p"]},
  "secrets": {"key": {"command": ["/bin/key", "--token", "t0p"]}},
  "telemetry": {"exporter": "http://o:4317", "service_name": "s", "protocol": "http"},
  "rate_limit": 60,
}"#;

#[test]
fn every_key_reaches_the_rendering_and_no_secret_does() {
    let (config, _) = parsed(FULL);
    let hidden = "…";
    let expect = json!({
        "listen": "127.0.0.2:1",
        "allowed_hosts": ["gate.example:443"],
        "allowed_origins": ["https://gate.example"],
        "tls": {"cert": "/c.pem", "key": "/k.pem"}, "behind_proxy": true, "agent_token": false,
        "mcpServers": {
            "a": {
                "transport": "stdio", "command": "/bin/a", "args": ["--token", hidden, "x"],
                "env": {"API_KEY": hidden, "B": "c"}, "inherit_env": true, "cwd": "/tmp", "enabled": false,
                "quarantined": true, "untrusted": true, "enabled_tools": ["t"], "auto_approve": "new",
                "sharing": "per_client", "start": "lazy", "call_timeout": "1500ms",
                "arguments": "warn",
                "max_concurrent": 4, "login": "shared",
                "pin": true,
                "targets": {"system": "a.example", "rules": [
                    {"tools": "copy", "resource": "{to:file}", "reads": "{from:file}"},
                    {"tools": "list_*|search", "resource": null},
                ]},
            },
            "b": {
                "transport": "sse", "url": "https://…@h/sse?key=…",
                "headers": {"X-Api-Key": hidden}, "enabled": true, "quarantined": false,
                "untrusted": false,
                "disabled_tools": ["t"], "auto_approve": "none", "sharing": "auto",
                "start": "eager", "pin": false, "login": "shared",
                "oauth": {"client_id": "c", "client_secret": hidden,
                    "auth_method": "client_secret_post", "scopes": ["s"],
                    "grant": "client_credentials", "metadata_url": "https://as/m",
                    "resource": false, "assume_pkce": true},
            },
            "c": {
                "transport": "http", "url": "https://h/mcp", "headers": {}, "enabled": true,
                "quarantined": false, "untrusted": false, "disabled_tools": [], "auto_approve": "none",
                "sharing": "auto", "start": "eager", "pin": false, "login": "per_token",
                "oauth": {"client_id": "c", "private_key": hidden, "scopes": [],
                    "grant": "authorization_code", "resource": true, "assume_pkce": false},
            },
        },
        "profiles": {"p": {"servers": ["a"], "tools": ["a:t"], "exclude": ["a:u"]}},
        "workspace": {"enabled": true, "root": "/w", "write": true, "shell": true, "allow_outside": true},
        "plugins": {"p": {
            "path": "/p", "config": {"password": hidden, "n": [1, 2.5, null]}, "env": {"TOKEN": hidden},
            "sha256": "a".repeat(64),
        }},
        "intent_declaration": {"strict_server_validation": false},
        "search": {"learned": false},
        "tools_limit": 3, "tool_response_limit": 0,
        "call_timeout": "3m", "connect_timeout": "5s", "shutdown_timeout": "0s",
        "refresh_interval": "1h",
        "ledger": {
            "durability": "disk", "payloads": "none", "on_failure": "refuse",
            "activity_retention_days": 1, "max_records": 1000, "max_size_mb": 16,
            "receipt_retention_days": 7, "anchor": ["stamp", "--token", hidden],
        },
        "redact": {"keys": ["k"], "patterns": ["p"]},
        "secrets": {"key": {"command": ["/bin/key", "--token", hidden]}},
        "telemetry": {"exporter": "http://o:4317", "service_name": "s", "protocol": "http"},
        "rate_limit": 60,
    });
    assert_contained(&expect, &render(&config), "");
    assert!(!format!("{config:?}").contains("t0p"));
}

/// Checks that an object has these members, with these values.
fn assert_contained(expect: &Value, found: &Value, path: &str) {
    let Some(members) = expect.as_object().filter(|_| found.is_object()) else {
        assert_eq!(found, expect, "{path}");
        return;
    };
    for (name, value) in members {
        assert_contained(value, &found[name], &format!("{path}.{name}"));
    }
}

#[test]
fn each_plain_key_is_read_and_shown() {
    for key in Config::TABLE.keys().filter(|key| key.name != "$schema") {
        let Some(value) = sample::value(Config::TABLE, key) else { continue };
        let text = json!({key.name: value});
        assert_contained(&text, &render(&parsed(&text.to_string()).0), "");
    }
    // These are not plain: they depend on others, or are not shown.
    let others = ["name", "login", "oauth", "targets"];
    let is_plain = |name: &str| !transport::is_part(name) && !others.contains(&name);
    for key in ServerConfig::TABLE.keys().filter(|key| is_plain(key.name)) {
        let Some(value) = sample::value(ServerConfig::TABLE, key) else { continue };
        let text = json!({"mcpServers": {"s": {"command": "x", key.name: value}}});
        assert_contained(&text, &render(&parsed(&text.to_string()).0), "");
    }
}

#[test]
fn the_rendering_of_the_defaults_is_a_config_of_the_same_meaning() {
    let (config, _) = parsed(r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    let (again, _) = parsed(&render(&config).to_string());
    assert_eq!(render(&again), render(&config));
}

#[test]
fn faults_beyond_the_bound_are_counted() {
    let text = format!("{{\"allowed_hosts\": [{}]}}", "1,".repeat(1_500));
    let faults = parse(&text).expect_err("numbers are no hosts");
    assert_eq!((faults.list.len(), faults.left_out), (1_000, 500));
    assert!(faults.to_string().ends_with("\nand 500 more"));
}

#[test]
fn docs_config_md_matches_the_generated_reference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(path, reference()).expect("docs/config.md is writable");
    }
    let document = std::fs::read_to_string(path).expect("docs/config.md is readable");
    assert!(document == reference(), "docs/config.md is not the reference: run with UPDATE_DOCS=1");
}

proptest! {
    #[test]
    fn parsing_never_panics(text in "\\PC*") {
        let _ = parse(&text);
    }

    #[test]
    fn parsing_never_panics_on_mangled_configs(at in 0..FULL.len(), insert in "[\\[\\]{}\",:/*\\\\0-9a-zü$ \n]{0,6}", cut in 0..40_usize) {
        let end = (at + cut).min(FULL.len());
        let text = format!("{}{insert}{}", &FULL[..at], &FULL[end..]);
        if let Ok(parsed) = parse(&text) {
            render(&parsed.config);
        }
    }
}

#[test]
fn target_rules_are_checked_with_their_places() {
    let (config, notes) = parsed(
        r#"{"mcpServers": {"g": {"command": "x", "targets": {"system": "github.com", "rules": [
          {"tools": "*issue*", "resource": "{owner:lower}/{repo:lower}#{issue_number}"},
          {"tools": "search_*", "resource": null}]}}}}"#,
    );
    assert_eq!(notes, [""; 0]);
    let targets = config.server("g").unwrap().targets.as_ref().unwrap();
    assert_eq!((targets.system.as_deref(), targets.rules.len()), (Some("github.com"), 2));
    let rule = |rule: &str| format!(r#"{{"rules": [{rule}]}}"#);
    let template = |text: &str| rule(&format!(r#"{{"tools": "t", "resource": {text}}}"#));
    let long = "s".repeat(257);
    for (targets, expect) in [
        (r#"{"rule": []}"#.to_owned(), "targets.rule: unknown key, did you mean 'rules'?"),
        (r#"{"system": ""}"#.to_owned(), "expected the name of a system, such as"),
        (format!(r#"{{"system": "{long}"}}"#), "a system has at most 256 bytes"),
        (r#"{"system": "filesystem"}"#.to_owned(), "'filesystem' is reserved; use the filters"),
        (r#"{"rules": {}}"#.to_owned(), "expected a list of rules, found an object"),
        (rule("{}"), "a rule needs 'tools'"),
        (rule(r#"{"tools": "t"}"#), "a rule needs 'resource'"),
        (rule(r#"{"tools": "a||b", "resource": "x"}"#), "expected names of tools, such as"),
        (rule(r#"{"tools": "t", "resource": null, "reads": "x"}"#), "has no effect with"),
        (template("7"), "expected a template or a list of templates, found a number"),
        (template("[]"), "expected 1 to 9 templates, found 0"),
        (template(r#""""#), "a template must not be empty"),
        (template(r#""{a""#), "resource: '{' at character 1 has no closing '}'"),
        (template(r#""a}""#), "'}' at character 2 has no opening '{'"),
        (template(r#""{}""#), "'{}' names no argument"),
        (template(r#""{a b}""#), "'a b' is not the name of an argument"),
        (template(r#""{a:lowr}""#), "unknown filter 'lowr'; did you mean 'lower'?"),
        (template(r#""{a:lower(x)}""#), "only 'table' takes a value in brackets"),
        (template(r#""{a=}""#), "'{a=}' has an empty default"),
        (template(r#""{a[].b[]}""#), "'a[].b[]' goes through more than one list"),
        (template(r#""{a[]}{b[]}""#), "'b[]' goes through more than one list"),
        (template(r#""{a:file}{b:url}""#), "a template names a file or an address, not both"),
        (template(r#"["x", 1]"#), "rules[0].resource[1]: expected a string, found a number"),
    ] {
        let text = format!(
            "{{\"mcpServers\": {{\"g\": {{\"command\": \"x\",\n\"targets\": {targets}}}}}}}"
        );
        let faults = parse(&text).unwrap_err().to_string();
        assert!(faults.starts_with("line 2, column "), "{faults}");
        assert!(faults.contains(expect), "{faults}");
    }
}
