//! Templates over arguments, as tables and as properties.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const PLACE: CallPlace<'_> =
    CallPlace { root: Some("/w"), home: Some("/u/ada"), is_local: true, query_key: &[1; 32] };

fn apply(template: &str, arguments: &Value) -> Vec<String> {
    let mut found = Found::default();
    let template = TargetTemplate::parse(template).unwrap_or_else(|fault| panic!("{fault}"));
    template.apply(arguments.as_object().unwrap(), "srv", &PLACE, &mut found);
    let shown = |(target, access): &(Target, Option<Access>)| {
        let access = access.map_or(String::new(), |access| format!(" {}", access.as_str()));
        format!("{} {}{access}", target.system(), target.resource())
    };
    found.targets.iter().map(shown).collect()
}

#[test]
fn fields_choices_lists_defaults_and_filters() {
    let manifest = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  namespace: n\n";
    for (template, arguments, expected) in [
        // Literals and fields.
        ("{a}", json!({"a": " x "}), vec!["srv x"]),
        ("{a}/{b}#{n}", json!({"a": "x", "b": "y", "n": 12}), vec!["srv x/y#12"]),
        ("a{{{a}}}", json!({"a": "x"}), vec!["srv a{x}"]),
        ("fixed", json!({}), vec!["srv fixed"]),
        ("{a.b.c}", json!({"a": {"b": {"c": "x"}}}), vec!["srv x"]),
        ("{a.b}", json!({"a": "x"}), vec![]),
        // The first choice with a usable value.
        ("{a|b}", json!({"b": "y", "a": null}), vec!["srv y"]),
        ("{a|b.c}", json!({"a": "", "b": {"c": "z"}}), vec!["srv z"]),
        ("{a|b}", json!({"a": "x", "b": "y"}), vec!["srv x"]),
        // Every field must have a value.
        ("{a}/{b}", json!({"a": "x"}), vec![]),
        ("{a}/{b=main}", json!({"a": "x"}), vec!["srv x/main"]),
        ("{a=x:y|z}", json!({}), vec!["srv x:y|z"]),
        // Only strings and whole numbers are names.
        ("{a}", json!({"a": 7}), vec!["srv 7"]),
        ("{a}", json!({"a": -7}), vec!["srv -7"]),
        ("{a}", json!({"a": 7.0}), vec!["srv 7"]),
        ("{a}", json!({"a": 7.5}), vec![]),
        ("{a}", json!({"a": 1e300}), vec![]),
        ("{a}", json!({"a": true}), vec![]),
        ("{a}", json!({"a": {"b": 1}}), vec![]),
        ("{a}", json!({"a": ["x"]}), vec![]),
        ("{a}", json!({"a": "  "}), vec![]),
        ("{a}", json!({"a": "x\ny"}), vec![]),
        ("k/{a}", json!({"a": "{\"kind\": 1}"}), vec![]),
        // One resource for each element.
        (
            "{o}:{f[].path:path}",
            json!({"o": "r", "f": [{"path": "./a"}, {"path": "/b/"}, {}]}),
            vec!["srv r:a", "srv r:b"],
        ),
        ("{ids[]}", json!({"ids": ["a", 2, null, "a b"]}), vec!["srv a", "srv 2", "srv a b"]),
        ("{ids[]}", json!({"ids": "a"}), vec!["srv a"]),
        ("{ids[]}", json!({"ids": []}), vec![]),
        ("{a.ids[]}", json!({"a": {"ids": ["x"]}}), vec!["srv x"]),
        ("{r[].t}/{r[].id}", json!({"r": [{"t": "T", "id": 1}, {"t": "U"}]}), vec!["srv T/1"]),
        // Filters.
        ("{a:lower}", json!({"a": "AbÉ"}), vec!["srv abé"]),
        ("{a:upper}", json!({"a": "shop-1z"}), vec!["srv SHOP-1Z"]),
        ("{a:id}", json!({"a": "acme%2FShop"}), vec!["srv acme/Shop"]),
        ("{a:id}", json!({"a": "shop-12"}), vec!["srv SHOP-12"]),
        ("{a:id:lower}", json!({"a": "Acme%2FShop"}), vec!["srv acme/shop"]),
        (
            "{a:uuid}",
            json!({"a": "59833787-2CF9-4fdf-8782-e53db20768a5"}),
            vec!["srv 598337872cf94fdf8782e53db20768a5"],
        ),
        (
            "{a:uuid}",
            json!({"a": "https://x.so/My-page-598337872cf94fdf8782e53db20768a5?v=1"}),
            vec!["srv 598337872cf94fdf8782e53db20768a5"],
        ),
        ("{a:uuid}", json!({"a": "da39a3ee5e6b4b0d3255bfef95601890afd80709"}), vec![]),
        ("{a:uuid}", json!({"a": "other"}), vec![]),
        ("{a:path}", json!({"a": "x/../y//z/"}), vec!["srv y/z"]),
        ("{a:number}", json!({"a": "12"}), vec!["srv 12"]),
        ("{a:number}", json!({"a": "new"}), vec![]),
        ("{a:path}", json!({"a": "/"}), vec![]),
        ("{a:kind}/{b}", json!({"a": "Pods", "b": "x"}), vec!["srv pod/x"]),
        ("{a:ident}", json!({"a": "\"s\".`t`"}), vec!["srv s.t"]),
        ("{a:table}", json!({"a": "select * from t"}), vec!["srv t read"]),
        ("{a:table(public)}", json!({"a": "delete from t"}), vec!["srv public.t write"]),
        ("{a:table(public)}", json!({"a": "delete from s.t"}), vec!["srv s.t write"]),
        ("p/{a:table}", json!({"a": "select now()"}), vec![]),
        ("{a:manifest}", json!({"a": manifest}), vec!["srv n/pod/p"]),
        ("{a:object}", json!({"a": manifest}), vec!["srv pod/p"]),
        ("{a:manifest}", json!({"a": "kind: Pod"}), vec![]),
        // Files of this machine and addresses, whatever the system of the rule.
        ("{a:file}", json!({"a": "x/../y"}), vec!["filesystem /w/y"]),
        ("{a:file}@{b}", json!({"a": "/r", "b": "fix/1"}), vec!["filesystem /r@fix/1"]),
        (
            "{d}/{f[]:file}",
            json!({"d": "/r", "f": ["a", "/b"]}),
            vec!["filesystem /r/a", "filesystem /b"],
        ),
        ("{a:url}", json!({"a": "HTTPS://H/p#f"}), vec!["web https://h/p"]),
        ("{a:url}", json!({"a": "mailto:a@b.c"}), vec![]),
        // Credentials in an address are removed.
        ("x/{a}", json!({"a": "https://u:pw@h/p?token=t"}), vec!["srv x/https://h/p"]),
    ] {
        assert_eq!(apply(template, &arguments), expected, "{template} {arguments}");
    }
}

#[test]
fn files_of_a_server_elsewhere_are_not_named() {
    let place = CallPlace { is_local: false, ..PLACE };
    let template = TargetTemplate::parse("{a:file}").unwrap();
    let arguments = json!({"a": "/etc/hosts"});
    let mut found = Found::default();
    assert!(!template.apply(arguments.as_object().unwrap(), "srv", &place, &mut found));
}

#[test]
fn work_and_results_are_bounded() {
    let many = json!({"ids": (0..1000).collect::<Vec<i32>>()});
    assert_eq!(apply("{ids[]}", &many).len(), FOUND_MAX);
    for (length, count) in [(RESOURCE_BYTES_MAX, 1), (RESOURCE_BYTES_MAX + 1, 0)] {
        assert_eq!(apply("{a}", &json!({"a": "x".repeat(length)})).len(), count, "{length}");
    }
    assert!(apply("{a}{b}", &json!({"a": "x".repeat(4000), "b": "y".repeat(4000)})).is_empty());
    assert!(TargetTemplate::parse(&"x".repeat(501)).is_err());
    assert!(TargetTemplate::parse(&"{a}".repeat(17)).is_err());
}

#[test]
fn members_are_the_arguments_that_a_template_reads() {
    let template = TargetTemplate::parse("{a|b.c}/{d[].e:lower=x}").unwrap();
    let members: Vec<Vec<&str>> = template.members().map(Iterator::collect).collect();
    assert_eq!(members, [vec!["a", "b"], vec!["d"]]);
    let schema = json!({"b": {}, "d": {}});
    assert!(template.fitted(schema.as_object().unwrap()).is_some());
    assert!(template.fitted(json!({"b": {}}).as_object().unwrap()).is_some(), "d has a default");
    assert!(template.fitted(json!({"d": {}}).as_object().unwrap()).is_none());
}

proptest! {
    #[test]
    fn no_text_makes_reading_or_applying_fail(text in "[{}a-c|.:=\\[\\]() lowerfilurt]{0,40}") {
        if let Ok(template) = TargetTemplate::parse(&text) {
            let arguments = json!({"a": "x", "b": [{"c": "y\n"}], "c": {"a": 7}});
            template.apply(arguments.as_object().unwrap(), "s", &PLACE, &mut Found::default());
        }
    }

    #[test]
    fn no_value_makes_a_filter_fail(value in "\\PC{0,40}", filter in 0..TARGET_FILTERS.len()) {
        let text = format!("{{a:{}}}", TARGET_FILTERS[filter]);
        for target in apply(&text, &json!({"a": value})) {
            prop_assert!(!target.contains('\n'));
        }
    }
}
