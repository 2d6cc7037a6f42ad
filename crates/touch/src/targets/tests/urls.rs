//! The spellings of one address: what a client opens is what the record names.

use serde_json::{Map, Value, json};

use super::super::{CallPlace, PlannedTargets, TargetPlan, ToolShape};
use super::recordable;

const VICTIM: &str = "https://h/victim";

fn find(arguments: &Value) -> PlannedTargets {
    let properties = Map::new();
    let shape = ToolShape { server: "browser", info: None, tool: "open", properties: &properties };
    let place = CallPlace { root: None, home: Some("/u/ada"), is_local: true, query_key: &[7; 32] };
    TargetPlan::compile(&shape, None).find(arguments.as_object().unwrap(), &place)
}

/// Spellings of the address, as browsers and other clients of the same standard open them.
fn spellings() -> Vec<String> {
    let own = |text: &str| text.to_owned();
    let (dots, leaps) = ("./".repeat(5000), "x/../".repeat(5000));
    vec![
        own(VICTIM),
        own("HTTPS://H/victim"),
        own(" https://h/victim\n"),
        own("\u{1}https://h/victim\u{0}"),
        own("ht\ntps:/\t/h/vic\rtim"),
        own("https://h:443/victim"),
        own("https://u:hunter2hunter2@h/victim"),
        own("https://u@evil@h/victim"),
        own("https:/h/victim"),
        own("https:h/victim"),
        own("https:///h/victim"),
        own("https:////h/victim"),
        own("https:\\\\h\\victim"),
        own("https:\\h/victim"),
        own("https://h\\x\\..\\victim"),
        own("https://h/./victim"),
        own("https://h/x/../victim"),
        own("https://h/%2e%2E/%76ictim"),
        own("https://h/../../victim"),
        format!("https://h/{dots}victim"),
        format!("https://h/{leaps}victim"),
        own("https://h/victim#x"),
        own("https://h/victim#\u{2028}"),
        own("https://h/victim#?x"),
        format!("https://h/victim#{}", "x".repeat(9000)),
        own("https://h/victim?utm_source=\u{2028}"),
        own("https://h/victim?utm_source=\0\u{85}"),
        format!("https://h/victim?utm_source={}", "x".repeat(9000)),
        own("https://h/victim?"),
        own("https://h/victim/"),
    ]
}

#[test]
fn every_spelling_of_an_address_names_what_is_opened() {
    for url in spellings() {
        for key in ["url", "uri", "page_url"] {
            for arguments in [json!({ key: url }), json!({ format!("{key}s"): [url] })] {
                let planned = find(&arguments);
                let found: Vec<_> =
                    planned.found.into_iter().map(|(target, _)| recordable(target)).collect();
                let found: Vec<_> = found.iter().map(|it| (it.system(), it.resource())).collect();
                let expected = (vec![("web", VICTIM)], false);
                assert_eq!((found, planned.is_partial), expected, "{key} {url:.80}");
            }
        }
    }
}

#[test]
fn another_address_is_named_and_what_is_none_is_told() {
    for (url, expected) in [
        ("https://h\\@evil/x", Some("https://h/@evil/x")),
        ("https://h/victim\u{2028}", Some("https://h/victim%E2%80%A8")),
        ("https://h/victim\u{a0}", Some("https://h/victim%C2%A0")),
        ("https://h/vi\0ctim\u{85}", Some("https://h/vi%00ctim%C2%85")),
        ("https://h/pl\u{e4}n", Some("https://h/pl%C3%A4n")),
        ("https://h/pl%c3%a4n", Some("https://h/pl%C3%A4n")),
        ("https://h/a//b", Some("https://h/a//b")),
        ("ws:/h/s", Some("ws://h/s")),
        ("https://h:p/victim", None),
        ("https://", None),
        ("ssh://h/a b\n#\u{2028}", Some("ssh://h/a%20b")),
        ("memo://no\u{2028}te", None),
    ] {
        let planned = find(&json!({ "url": url }));
        let found = planned.found.first().map(|(target, _)| target.resource());
        assert_eq!((found, planned.is_partial), (expected, expected.is_none()), "{url}");
    }
    let long = format!("https://h/{}", "x".repeat(5000));
    assert!(find(&json!({ "url": long })).is_partial);
    assert!(find(&json!({ "endpoint": format!("/v1/{}", "x".repeat(5000)) })).is_partial);
    let item = |query: &str| {
        let planned = find(&json!({ "url": format!("https://h/i?{query}") }));
        planned.found[0].0.resource().to_owned()
    };
    assert_eq!(item("q=\u{2028}"), item("q=%e2%80%a8"));
    assert_ne!(item("q=\u{2028}"), item("q="));
}
