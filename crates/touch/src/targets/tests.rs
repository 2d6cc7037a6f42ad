//! The targets of calls, as tables and as properties.

mod forms;
mod scored;
mod spellings;
mod urls;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use redact::Redactor;
use text::json::Object;

fn resource(arguments: &str) -> Option<String> {
    let arguments = Object::parse(arguments).unwrap().unwrap();
    extract("srv", "tool", arguments.members()).map(|target| target.resource)
}

/// Returns the target as a record names it.
fn recordable(target: Target) -> Target {
    target.recordable(&Redactor::builtin()).unwrap().into_owned()
}

#[test]
fn built_in_tools_name_files_from_their_root() {
    for (tool, arguments, expected) in [
        ("Read", r#"{"path":"a/./b"}"#, Some("/w/a/b")),
        ("Read", r#"{"file_path":"/etc/../x"}"#, Some("/x")),
        ("Write", r#"{"path":"../out","content":"c"}"#, Some("/out")),
        ("Edit", r#"{"path":null,"file_path":"a"}"#, Some("/w/a")),
        ("Edit", r#"{"old":"a"}"#, None),
        ("Glob", r#"{"pattern":"*"}"#, Some("/w")),
        ("Glob", r#"{"pattern":"*","cwd":"src"}"#, Some("/w/src")),
        ("Grep", r#"{"pattern":"x","path":"src/a"}"#, Some("/w/src/a")),
        ("Bash", r#"{"command":"ls"}"#, None),
        ("Bash", r#"{"command":"echo x > f","cwd":"sub"}"#, Some("/w/sub/f")),
        ("Other", r#"{"path":"a"}"#, None),
    ] {
        let arguments = Object::parse(arguments).unwrap().unwrap();
        let target = of_builtin(tool, arguments.members(), "/w", Some("/u/ada"));
        let expected = expected.map(|path| Target::new(FILESYSTEM, path.to_owned()).unwrap());
        assert_eq!(target, expected, "{tool} {arguments:?}");
    }
}

#[test]
fn every_tier_precedence_and_guard() {
    for (arguments, expected) in [
        // tiers
        (r#"{"url":"https://api.example.com/v1/users"}"#, Some("https://api.example.com/v1/users")),
        (r#"{"uri":"https://h/a"}"#, Some("https://h/a")),
        (r#"{"endpoint":"/v1/users"}"#, Some("/v1/users")),
        (r#"{"table":"events"}"#, Some("events")),
        (r#"{"collection":"events"}"#, Some("events")),
        (r#"{"table":"events","database":"analytics"}"#, Some("analytics.events")),
        (r#"{"table":"t","schema":"s"}"#, Some("s.t")),
        (r#"{"table":"t","dataset":"d"}"#, Some("d.t")),
        (r#"{"collection":"c","keyspace":"k"}"#, Some("k.c")),
        (r#"{"table":"t","keyspace":"k","dataset":"d","schema":"s","database":"b"}"#, Some("b.t")),
        (r#"{"owner":"o","repo":"r"}"#, Some("o/r")),
        (r#"{"path":"/a"}"#, Some("/a")),
        (r#"{"key":"k"}"#, Some("k")),
        (r#"{"bucket":"b"}"#, Some("b")),
        (r#"{"object":"o"}"#, Some("o")),
        (r#"{"resource":"r"}"#, Some("r")),
        (r#"{"resource_id":"i"}"#, Some("i")),
        // precedence
        (r#"{"resource_id":"i","path":"p","bucket":"b"}"#, Some("p")),
        (r#"{"endpoint":"e","uri":"u","url":"l"}"#, Some("l")),
        (r#"{"path":"p","owner":"o","repo":"r"}"#, Some("o/r")),
        (r#"{"owner":"o","repo":"r","collection":"c","table":"t"}"#, Some("t")),
        (r#"{"table":"t","url":"https://h/u"}"#, Some("https://h/u")),
        // half a repository is not a target
        (r#"{"owner":"o","path":"p"}"#, Some("p")),
        (r#"{"repo":"r"}"#, None),
        // a qualifier alone is not a target
        (r#"{"database":"d"}"#, None),
        // never id or name
        (r#"{"id":"1","name":"n"}"#, None),
        // only usable strings at the top
        ("{}", None),
        (r#"{"url":5,"table":["t"],"path":null,"key":" k "}"#, Some("k")),
        (r#"{"url":"  ","path":"\t\n"}"#, None),
        (r#"{"nested":{"url":"https://h"}}"#, None),
        (r#"{"table":"t","database":7,"schema":" s "}"#, Some("s.t")),
        // exact spelling first, over all tiers
        (r#"{"URL":"https://h/upper","resource_id":"exact"}"#, Some("exact")),
        (r#"{"URL":"https://h/upper","url":""}"#, Some("https://h/upper")),
        (r#"{"Url":"https://h/b","URL":"https://h/a"}"#, Some("https://h/a")),
        (r#"{"URL":1,"Url":"https://h/b"}"#, Some("https://h/b")),
        (r#"{"Path":"p","Table":"t","DataBase":"d"}"#, Some("d.t")),
        (r#"{"Owner":"o","REPO":"r"}"#, Some("o/r")),
        (r#"{"owner":"o","REPO":"r"}"#, Some("o/r")),
        (r#"{"Resource_ID":"i"}"#, Some("i")),
        // the Kelvin sign is not a k
        ("{\"\u{212a}ey\":\"x\"}", None),
        // a match with an unusable value ends the search
        (r#"{"url":"?q=1","path":"p"}"#, None),
        (r##"{"uri":"#top"}"##, None),
        // a secret in a generic value
        (r#"{"resource":"postgres://u:pw@db/x"}"#, Some("postgres://db/x")),
        (r#"{"key":"alice@example.com/inbox"}"#, Some("alice@example.com/inbox")),
        (r#"{"path":"//user:pw@nas/share"}"#, Some("//nas/share")),
        (r#"{"path":"https://h/r?access_token=x"}"#, Some("https://h/r")),
        (r#"{"database":"postgres://u:pw@h/app","table":"t"}"#, Some("postgres://h/app.t")),
        (r#"{"table":"postgres://u:pw@h/app"}"#, Some("postgres://h/app")),
        (r#"{"owner":"https://tok@h/o","repo":"r"}"#, Some("https://h/o/r")),
        (r#"{"owner":"o","repo":"https://h:pw?x@h"}"#, None),
        // a document, or more than one line, is not a name
        (r#"{"resource":"kind: Secret\ndata: {}"}"#, None),
        (r#"{"resource":"a\u2028b"}"#, None),
        (r#"{"resource":"{\"kind\":\"Secret\"}"}"#, None),
        (r#"{"object":"[1]"}"#, None),
        (r#"{"resource":"[::1]:80"}"#, Some("[::1]:80")),
    ] {
        assert_eq!(resource(arguments).as_deref(), expected, "{arguments}");
    }
}

#[test]
fn names_and_resources_that_do_not_fit_give_no_target() {
    let arguments = Object::parse(r#"{"path":"p"}"#).unwrap().unwrap();
    let target = extract("srv", "tool", arguments.members()).unwrap();
    assert_eq!((target.system(), target.resource()), ("srv", "p"));
    assert!(extract("", "tool", arguments.members()).is_none());
    assert!(extract("  ", "tool", arguments.members()).is_none());
    assert!(extract(&"s".repeat(256), "tool", arguments.members()).is_some());
    assert!(extract(&"s".repeat(257), "tool", arguments.members()).is_none());
    for (length, expected) in [(4096, true), (4097, false)] {
        let long = format!(r#"{{"path":"{}","key":"short"}}"#, "x".repeat(length));
        assert_eq!(resource(&long).is_some(), expected, "{length}");
    }
}

#[test]
fn one_spelling_for_a_uri() {
    for (text, expected) in [
        ("HTTPS://API.Example.COM/V1/Users", Some("https://api.example.com/V1/Users")),
        ("https://h/p?q=1#f", Some("https://h/p")),
        ("https://h/p#f?x", Some("https://h/p")),
        ("https://h?q", Some("https://h")),
        ("https://h/", Some("https://h")),
        ("https://h/a//", Some("https://h/a")),
        ("https://h/a%2Fb", Some("https://h/a%2Fb")),
        ("https://h/a%2fB", Some("https://h/a%2fB")),
        ("https://user:pw@h/p", Some("https://h/p")),
        ("https://a@b@h/p", Some("https://h/p")),
        ("https://tok@h:8443/p@x", Some("https://h:8443/p@x")),
        ("http://h:80/p", Some("http://h/p")),
        ("http://h:443/p", Some("http://h:443/p")),
        ("https://h:443", Some("https://h")),
        ("https://h:0443", Some("https://h")),
        ("ws://h:80", Some("ws://h")),
        ("wss://h:443/s", Some("wss://h/s")),
        ("ftp://h:21/f", Some("ftp://h/f")),
        ("postgres://h:5432/db", Some("postgres://h:5432/db")),
        ("https://h:/p", Some("https://h/p")),
        ("https://[2001:DB8::1]:443/p", Some("https://[2001:db8::1]/p")),
        ("https://u:p@[::1]:8080/", Some("https://[::1]:8080")),
        ("https://h:p?w@x/", None),
        ("https://h/https://u:p@inner/x", Some("https://h/https://inner/x")),
        ("//user:pw@h/p", Some("//h/p")),
        ("//h/p?x", Some("//h/p")),
        ("user:pw@h/p", Some("h/p")),
        ("https:/user:pw@h/p", Some("https:/h/p")),
        ("https:///user:pw@h/p", Some("https:///h/p")),
        ("https://user:pw@/p", Some("https:///p")),
        ("file:///etc/hosts", Some("file:///etc/hosts")),
        ("/v1/users/", Some("/v1/users")),
        ("/v1/a@b", Some("/v1/a@b")),
        ("@scope/package", Some("@scope/package")),
        ("urn:isbn:1", Some("urn:isbn:1")),
        ("/", Some("/")),
        ("  https://h/p  ?x", Some("https://h/p")),
        ("?", None),
        ("", None),
    ] {
        assert_eq!(uri::canonical(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn files_are_absolute_and_clean() {
    for (path, cwd, expected) in [
        ("/a/b", "/w", Some("/a/b")),
        ("b", "/w", Some("/w/b")),
        ("../x/./y//z/", "/w/v", Some("/w/x/y/z")),
        ("../../../..", "/w", Some("/")),
        ("/a/../b", "", Some("/b")),
        ("b", "relative", None),
        ("b", "", None),
        ("", "/w", None),
        ("a\0b", "/w", Some("/w/a⟨U+0000⟩b")),
        ("a\nb", "/w", Some("/w/a⟨U+000A⟩b")),
        ("//user:pw@nas/share", "/w", Some("/[redacted]/share")),
        ("//user@etc/passwd", "/w", Some("/user@etc/passwd")),
        (" spaced ", "/w", Some("/w/ spaced ")),
    ] {
        let target = of_file(path, cwd).map(recordable);
        assert_eq!(target.as_ref().map(Target::resource), expected, "{path} in {cwd}");
        assert!(target.is_none_or(|target| target.system() == FILESYSTEM));
    }
}

#[test]
fn a_command_has_a_target_only_where_it_is_certain() {
    for (command, expected) in [
        ("rm x", Some("/w/x")),
        ("rm -rf ./build/", Some("/w/build")),
        ("rm --force -- -odd", Some("/w/-odd")),
        ("rm 'a b'", Some("/w/a b")),
        ("rm \"a b\"", Some("/w/a b")),
        ("rm a\\ b", Some("/w/a b")),
        ("  rm /tmp/x  ", Some("/tmp/x")),
        ("mv a b", Some("/w/b")),
        ("cp -r a ../b", Some("/w/../b")),
        ("rm link/.././x", Some("/w/link/../x")),
        ("echo hi > f", Some("/w/f")),
        ("echo hi >>f", Some("/w/f")),
        ("make 2> err.log", Some("/w/err.log")),
        ("rm x 2>/dev/null", Some("/w/x")),
        ("> f", Some("/w/f")),
        ("echo 'a > b' > f", Some("/w/f")),
        ("rm", None),
        ("rm a b", None),
        ("rm --no-preserve-root /", None),
        ("mv a b c", None),
        ("mv -t d a", None),
        ("rm *.log", None),
        ("rm $X", None),
        ("rm \"$X\"", None),
        ("rm `x`", None),
        ("rm ~/x", Some("/u/ada/x")),
        ("rm ~", Some("/u/ada")),
        ("rm ~bob/x", None),
        ("rm a~b", None),
        ("rm '~/x'", Some("/w/~/x")),
        ("rm {a,b}", None),
        ("rm x; ls", None),
        ("rm x && ls", None),
        ("cat f | tee g", None),
        ("rm x\nls", None),
        ("rm x > log", None),
        ("echo > a > b", None),
        ("echo >", None),
        ("echo > > a", None),
        ("echo >&2", None),
        ("cat < f", None),
        ("sudo rm x", None),
        ("rm 'open", None),
        ("rm \"\"", None),
        ("ls -la", None),
        ("", None),
        // The file of a redirect is certain, whatever the command does.
        ("sort *.txt | uniq -c > f", Some("/w/f")),
        ("echo \"$USER on $(date)\" > f", Some("/w/f")),
        ("echo `date` > ~/f", Some("/u/ada/f")),
        ("cat <in >f 2>&1", Some("/w/f")),
        ("make &> build.log", Some("/w/build.log")),
        ("make >| f", Some("/w/f")),
        ("make >& f", Some("/w/f")),
        ("make 2>/dev/null >f # all of it", Some("/w/f")),
        ("cat > f <<'EOF'\na > b\nrm $X\nEOF", Some("/w/f")),
        ("cat <<-EOF >> f\n\tx\n\tEOF\n", Some("/w/f")),
        ("tr a b <<< x > f", Some("/w/f")),
        ("echo a\\\n > f", Some("/w/f")),
        ("echo a#b > f", Some("/w/f")),
        ("echo \"a \\\" > b\" > f", Some("/w/f")),
        ("cat > f <<EOF\nx\nEOF\nrm y", None),
        ("echo x > $F", None),
        ("echo x > f*", None),
        ("echo x > f; ls", None),
        ("cd d && echo x > f", None),
        ("false || echo x > f", None),
        ("echo x > f &", None),
        ("echo x > >(tee f)", None),
        ("diff <(a > b) c", None),
        ("[[ a > b ]]", None),
        ("{ echo a > f", None),
        ("(echo a > f)", None),
        ("echo $(a '>' b) > f", None),
        ("echo <> f", None),
        ("rm x | tee > f", None),
        ("echo a > b | sort > c", None),
        // Edited in place.
        ("sed -i 's/a/b/' f", Some("/w/f")),
        ("sed -i \"s/a/$X/g\" f", Some("/w/f")),
        ("sed -i.bak -e s/a/b/ -e s/c/d/ f", Some("/w/f")),
        ("sed -i '' 's/a/b/' f", Some("/w/f")),
        ("sed -Ei 's/a/b/' ~/f", Some("/u/ada/f")),
        ("sed --in-place=.bak --expression=s/a/b/ f", Some("/w/f")),
        ("sed -i -f script f", Some("/w/f")),
        ("sed -n -i -- s/a/b/p -f", Some("/w/-f")),
        ("sed 's/a/b/' f", None),
        ("sed 's/a/b/' f > g", Some("/w/g")),
        ("sed -i 's/a/b/' f g", None),
        ("sed -i 's/a/b/' *.txt", None),
        ("sed -i 's/a/b/'", None),
        ("sed -i -l 5 s/a/b/ f", None),
        ("sed -ié f", None),
        ("sed -i s/a/b/ f | cat", None),
    ] {
        let target = of_shell(command, "/w", Some("/u/ada"));
        assert_eq!(target.as_ref().map(Target::resource), expected, "{command}");
        assert_eq!(
            target.is_some_and(|it| it.is_unresolved()),
            command.contains(".."),
            "{command}"
        );
    }
}

#[test]
fn a_command_that_only_reads_a_file_names_it() {
    for (command, expected) in [
        ("cat f", Some("/w/f")),
        ("cat -n 'a b' 2>/dev/null", Some("/w/a b")),
        ("head -n 5 ~/f", Some("/u/ada/f")),
        ("tail -n+2 f", Some("/w/f")),
        ("tail -20 -- -f", Some("/w/-f")),
        ("wc -l a/../f", Some("/w/a/../f")),
        ("tac /tmp/f", Some("/tmp/f")),
        ("cat", None),
        ("cat -", None),
        ("cat f g", None),
        ("cat *.txt", None),
        ("cat $F", None),
        ("cat f > g", None),
        ("cat f | sh", None),
        ("cat f; rm f", None),
        ("cat f && ls", None),
        ("tail -f f", None),
        ("head -n f", None),
        ("sed s/a/b/ f", None),
        ("sudo cat f", None),
        // Each of these runs another command.
        ("cat f <<< \"$(rm g)\"", None),
        ("cat f <<< `rm g`", None),
        ("cat f < $(rm g)", None),
        ("cat f <<EOF\n$(rm g)\nEOF", None),
        ("cat <(rm g)", None),
        ("cat \"$(rm g)\"", None),
        ("cat f 2>&$(rm g)", None),
        ("cat f 2> \"$(rm g)\"", None),
        ("cat f &", None),
        ("cat f & rm g", None),
        ("cat f\nrm g", None),
        ("(cat f)", None),
        ("! cat f", None),
        ("PATH=. cat f", None),
        ("head -n $(rm g) f", None),
        ("head -n5 -n \"`rm g`\" f", None),
    ] {
        let arguments = json!({"command": command});
        let members = arguments.as_object().unwrap();
        let target = read_by_builtin("Bash", members, "/w", Some("/u/ada"));
        assert_eq!(target.as_ref().map(Target::resource), expected, "{command}");
        assert_eq!(read_by_builtin("Read", members, "/w", None), None);
    }
}

/// Generates relevant keys in relevant spellings, with values of every kind.
fn arguments() -> impl Strategy<Value = Vec<(String, Value)>> {
    let key = prop_oneof![
        proptest::sample::select(vec![
            "url",
            "URL",
            "Url",
            "uri",
            "endpoint",
            "table",
            "Table",
            "database",
            "schema",
            "owner",
            "repo",
            "REPO",
            "path",
            "Path",
            "key",
            "resource_id",
            "id",
            "name",
        ])
        .prop_map(str::to_owned),
        "[a-zA-Z]{1,6}",
    ];
    let value = prop_oneof![
        "\\PC{0,12}".prop_map(Value::from),
        "(https?|ws)?:?//?(user:pw@)?[a-z@:/.?#]{0,12}".prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(Value::Null),
    ];
    proptest::collection::vec((key, value), 0..8)
}

fn object(members: impl IntoIterator<Item = (String, Value)>) -> Map<String, Value> {
    members.into_iter().collect()
}

proptest! {
    #[test]
    fn the_order_of_keys_never_matters(members in arguments(), turn in 0usize..8) {
        let unique = object(members);
        let mut turned: Vec<_> = unique.clone().into_iter().collect();
        let places = turned.len().max(1);
        turned.rotate_left(turn % places);
        prop_assert_eq!(extract("s", "t", &unique), extract("s", "t", &object(turned.clone())));
        turned.reverse();
        prop_assert_eq!(extract("s", "t", &unique), extract("s", "t", &object(turned)));
    }

    #[test]
    fn both_or_none(server in "\\PC{0,4}", members in arguments()) {
        if let Some(target) = extract(&server, "t", &object(members)) {
            prop_assert!(!target.system().is_empty() && !target.resource().is_empty());
        }
    }

    #[test]
    fn userinfo_never_gets_in(
        scheme in "[a-z]{0,5}",
        colon in prop_oneof![Just(""), Just(":")],
        slashes in "/{2,4}",
        host in "[a-z.]{1,8}",
        path in "(/[a-z@]{0,3}){0,3}",
        key in proptest::sample::select(vec!["url", "uri", "Endpoint"]),
        other in proptest::sample::select(vec!["path", "KEY", "table", "resource_id"]),
    ) {
        let text = format!("{scheme}://user:hunter2@{host}{path}?hunter2");
        let found = extract("s", "t", &object([(other.to_owned(), Value::from(text))]));
        prop_assert!(found.is_none_or(|target| !target.resource().contains("hunter2")));
        let text = format!("{scheme}{colon}{slashes}user:hunter2@{host}{path}");
        let found = extract("s", "t", &object([(key.to_owned(), Value::from(text))]));
        prop_assert!(found.is_none_or(|target| !target.resource().contains("hunter2")));
    }

    #[test]
    fn a_canonical_uri_is_its_own_canonical_form(text in "[a-zA-Z:/@.?#%0-9\\[\\]]{0,24}") {
        if let Some(once) = uri::canonical(&text) {
            prop_assert_eq!(uri::canonical(&once), Some(once));
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC*", shell in "[ rmvcp>'\"\\\\a-c/.-]{0,24}") {
        for key in ["url", "path", "table"] {
            extract("s", "t", &object([(key.to_owned(), Value::from(text.clone()))]));
        }
        of_file(&text, "/w");
        of_shell(&text, "/w", None);
        if let Some(target) = of_shell(&shell, "/w", Some("/h")) {
            prop_assert!(target.resource().starts_with('/'));
        }
    }
}
