//! The generic rules, as tables and as properties.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::words::{self, words};
use super::super::{CallPlace, PlannedTargets, RESOURCE_BYTES_MAX, ToolShape};
use super::*;
use redact::Redactor;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::builtin);

const KEY: [u8; 32] = [7; 32];

fn find_in(tool: &str, arguments: &Value, root: Option<&str>) -> Option<PlannedTargets> {
    let properties = Map::new();
    let shape = ToolShape { server: "srv", info: None, tool, properties: &properties };
    let place = CallPlace { root, home: Some("/u/ada"), is_local: true, query_key: &KEY };
    GenericPlan::compile(&shape).find(arguments.as_object().unwrap(), &place, &mut false)
}

/// Reports whether the plan could not read all that the arguments may name.
fn is_partial(tool: &str, arguments: &Value) -> bool {
    let properties = Map::new();
    let shape = ToolShape { server: "srv", info: None, tool, properties: &properties };
    let place =
        CallPlace { root: Some("/w"), home: Some("/u/ada"), is_local: true, query_key: &KEY };
    let mut is_partial = false;
    GenericPlan::compile(&shape).find(arguments.as_object().unwrap(), &place, &mut is_partial);
    is_partial
}

/// Returns what a record of the call would name.
fn recordable(planned: PlannedTargets) -> Vec<(Target, Option<Access>)> {
    let named = |(target, access): (Target, Option<Access>)| {
        Some((target.recordable(&REDACTOR)?.into_owned(), access))
    };
    planned.found.into_iter().filter_map(named).collect()
}

/// Returns what is found as `system resource`, and a sign for the access that the arguments show.
fn found(tool: &str, arguments: &Value) -> Vec<String> {
    let found = find_in(tool, arguments, Some("/w")).map(recordable);
    let shown = |(target, access): (Target, Option<Access>)| {
        let sign = match access {
            Some(Access::Write) => "!",
            Some(Access::Read) => "?",
            _ => "",
        };
        format!("{} {}{sign}", target.system(), target.resource())
    };
    found.unwrap_or_default().into_iter().map(shown).collect()
}

fn check(rows: &[(&str, Value, &[&str])]) {
    for (tool, arguments, expected) in rows {
        assert_eq!(found(tool, arguments), *expected, "{tool} {arguments}");
    }
}

#[test]
fn names_are_split_into_words() {
    for (name, expected) in [
        ("issue_number", "issue number"),
        ("issueNumber", "issue number"),
        ("Issue-Number", "issue number"),
        ("fileIDs", "file ids"),
        ("HTTPServerURL", "http server url"),
        ("context7CompatibleLibraryID", "context7 compatible library id"),
        ("_id", "id"),
        ("", ""),
        ("größe", ""),
        ("a\nb", ""),
    ] {
        assert_eq!(words(name).join(" "), expected, "{name}");
    }
    assert!(words(&"a".repeat(97)).is_empty());
}

#[test]
fn lists_of_words_are_sorted() {
    for list in [
        words::ADDRESS_ENDS,
        words::ASPECTS,
        words::ATTRIBUTES,
        words::BARE_IDS,
        words::BASE_PATHS,
        words::CALLED_ADDRESSES,
        words::CONDITIONS,
        words::CONNECTS,
        words::CONTENTS,
        words::CONTENT_ADDRESSES,
        words::CONVERSATION,
        words::CREATES,
        words::DESTINATIONS,
        words::ENVELOPES,
        words::ID_ENDS,
        words::INNER_PATHS,
        words::JOINERS,
        words::KINDS,
        words::LISTS,
        words::MANIFESTS,
        words::MOVES,
        words::NAMED_ALONE,
        words::NUMBERED,
        words::OPTIONS,
        words::OTHER_VERBS,
        words::PARTS,
        words::PATH_ENDS,
        words::PLAIN_VALUES,
        words::QUALIFIERS,
        words::READS,
        words::REMOTE_STORES,
        words::SCREEN,
        words::SEARCHES,
        words::SOURCES,
        words::STATEMENTS,
        words::USES,
    ] {
        assert!(list.is_sorted(), "{list:?}");
    }
}

#[test]
fn files_are_named_by_their_paths() {
    check(&[
        ("read_file", json!({"path": "a/../b.txt"}), &["filesystem /w/b.txt"]),
        ("read_file", json!({"filePath": "/x/y"}), &["filesystem /x/y"]),
        ("read_file", json!({"uri": "file:///x/a%20b"}), &["filesystem /x/a b"]),
        ("read_many", json!({"paths": ["/a", "/b"]}), &["filesystem /a", "filesystem /b"]),
        (
            "copy_file",
            json!({"source": "/a", "destination": "/b"}),
            &["filesystem /b!", "filesystem /a?"],
        ),
        (
            "move_file",
            json!({"source": "/a", "destination": "/b"}),
            &["filesystem /b!", "filesystem /a!"],
        ),
        (
            "stage",
            json!({"repo_path": "/r", "files": ["a", "b"]}),
            &["filesystem /r/a", "filesystem /r/b"],
        ),
        ("create_branch", json!({"repo_path": "/r", "branch_name": "fix"}), &["srv /r@fix"]),
        (
            "save_pdf",
            json!({"outputPath": "/out", "filename": "a.pdf"}),
            &["filesystem /out/a.pdf!"],
        ),
        (
            "add_chart",
            json!({"filepath": "a.xlsx", "series_names": ["S"]}),
            &["filesystem /w/a.xlsx"],
        ),
        (
            "write_cells",
            json!({"filepath": "a.xlsx", "sheet_name": "S"}),
            &["filesystem /w/a.xlsx"],
        ),
        (
            "upload_attachment",
            json!({"page_id": "7", "file_path": "/a"}),
            &["srv page/7", "filesystem /a?"],
        ),
        (
            "download_attachment",
            json!({"message_id": "7", "save_path": "/in/a"}),
            &["filesystem /in/a!", "srv message/7?"],
        ),
        (
            "move_file",
            json!({"source": "a", "destination": "b"}),
            &["filesystem /w/b!", "filesystem /w/a!"],
        ),
        ("move", json!({"source": "a", "destination": "b"}), &[]),
        ("read_pdf", json!({"sources": [{"path": "a.pdf"}]}), &["filesystem /w/a.pdf"]),
        // what is no file
        ("run", json!({"command": "ls", "cwd": "/w"}), &[]),
        ("find_files", json!({"path": "src/**/*.ts"}), &[]),
        ("json_get", json!({"path": "$.title"}), &[]),
        ("replace", json!({"name_path": "Cart/total"}), &[]),
        ("convert_time", json!({"source_timezone": "A/B", "target_timezone": "C/D"}), &[]),
        ("call_api", json!({"method": "GET", "path": "/v1/users"}), &["srv /v1/users"]),
        // a text that could be a statement
        (
            "replace_in_file",
            json!({"path": "a", "query": "select * from notes", "replacement": "x"}),
            &["filesystem /w/a", "srv a:notes?"],
        ),
        ("run", json!({"db_path": "/a.db", "query": "select * from t"}), &["srv /a.db:t?"]),
        ("run", json!({"path": "/a.db", "sql": "drop table t"}), &["srv /a.db:t!"]),
    ]);
}

#[test]
fn ids_stand_inside_their_containers() {
    check(&[
        (
            "get_issue",
            json!({"owner": "Octo", "repo": "Shop", "issue_number": 12}),
            &["srv octo/shop/issue/12"],
        ),
        (
            "get_file",
            json!({"owner": "o", "repo": "r", "path": "/src/a.ts", "ref": "main"}),
            &["srv o/r:src/a.ts"],
        ),
        ("create_branch", json!({"owner": "o", "repo": "r", "branch": "x"}), &["srv o/r@x"]),
        (
            "update_issue",
            json!({"project_id": "a%2Fb", "issue_iid": 7}),
            &["srv project/a/b/issue/7"],
        ),
        ("find", json!({"database": "shop", "collection": "orders"}), &["srv shop.orders"]),
        ("describe", json!({"schema_name": "public", "object_name": "t"}), &["srv public.t"]),
        (
            "get_record",
            json!({"baseId": "b", "tableId": "t", "recordId": "r"}),
            &["srv base/b/t/record/r"],
        ),
        ("get_object", json!({"Bucket": "b", "Key": "a/c"}), &["srv b/a/c", "web s3://b/a/c"]),
        (
            "get_note",
            json!({"merge_request_iid": 9, "note_id": 5, "project_id": 1}),
            &["srv project/1/request/9/note/5"],
        ),
        ("delete_emails", json!({"messageIds": ["1", "2"]}), &["srv message/1", "srv message/2"]),
        ("delete_emails", json!({"messageIds": "1, 2"}), &["srv message/1", "srv message/2"]),
        ("add_issues_to_sprint", json!({"sprint_id": 1, "issue_keys": "A-1"}), &["srv sprint/1"]),
        ("rename", json!({"old_key": "a", "new_key": "b"}), &["srv b!", "srv a!"]),
        ("update_record", json!({"records": [{"id": "r1"}], "table": "t"}), &["srv t/record/r1"]),
        ("update_dashboard", json!({"dashboard": {"uid": "u"}}), &["srv dashboard/u"]),
        ("create_page", json!({"parent": {"page_id": "p"}}), &["srv page/p"]),
        ("get_issue", json!({"id": "eng-12"}), &["srv issue/ENG-12"]),
        ("get_pod", json!({"name": "api-0", "namespace": "prod"}), &["srv prod/pod/api-0"]),
        ("get", json!({"kind": "Pods", "name": "api", "namespace": "prod"}), &["srv prod/pod/api"]),
        ("cancel_subscription", json!({"subscription": "sub_1"}), &["srv subscription/sub_1"]),
        ("update_issue", json!({"id": "AB-1", "projectId": "p"}), &["srv issue/AB-1"]),
        ("add_task_dependencies", json!({"task_id": 1, "dependencies": [2, 3]}), &["srv task/1"]),
        ("set_texture", json!({"object_name": "Cube", "texture_id": "t"}), &["srv object/Cube"]),
        ("list_issues", json!({"assigneeId": "me", "teamId": "t"}), &["srv team/t"]),
        ("play", json!({"uri": "spotify:track:4", "deviceId": "d"}), &["srv spotify:track:4"]),
        (
            "manage_incidents",
            json!({"manage_request": {"incident_ids": ["P1"]}}),
            &["srv incident/P1"],
        ),
        ("move_card", json!({"card_id": 1, "from_list_id": 2, "to_list_id": 3}), &["srv card/1"]),
        ("update_project", json!({"project_id": 1, "name": "new"}), &["srv project/1"]),
        ("get_file", json!({"remote_path": "/etc/hosts"}), &["srv /etc/hosts"]),
    ]);
}

/// Two things in one container are two things, whatever the key that tells them apart.
#[test]
fn what_a_container_holds_is_not_the_container() {
    check(&[
        ("put", json!({"bucket": "b", "object": "a/x.csv"}), &["srv b/a/x.csv"]),
        ("put_object", json!({"bucket": "b", "object_name": "x"}), &["srv b/x"]),
        ("put", json!({"bucket": "b", "blob": "x"}), &["srv b/x"]),
        ("get", json!({"collection": "c", "document": "d"}), &["srv c/document/d"]),
        ("get_job", json!({"namespace": "prod", "job": "db"}), &["srv prod/job/db"]),
        ("get_job", json!({"namespace": "prod", "job_name": "db"}), &["srv prod/job/db"]),
        ("get", json!({"schema": "public", "object": "orders"}), &["srv public.orders"]),
        ("get", json!({"namespace": "prod", "resource": "web"}), &["srv prod/web"]),
        ("get", json!({"resource": "pods", "name": "api"}), &["srv pod/api"]),
        ("get", json!({"resource": "invoices/7", "name": "new"}), &["srv invoices/7"]),
        ("put", json!({"collection": "c", "document": "a new text"}), &["srv c"]),
        ("insert", json!({"collection": "c", "document": "d"}), &["srv c"]),
        ("search", json!({"resource": "r"}), &[]),
    ]);
}

#[test]
fn an_object_of_a_bucket_has_an_address() {
    let check = |server: &str, tool: &str, arguments: Value, expected: &[&str]| {
        let properties = Map::new();
        let shape = ToolShape { server, info: None, tool, properties: &properties };
        let place = CallPlace { root: None, home: None, is_local: false, query_key: &KEY };
        let plan = crate::targets::TargetPlan::compile(&shape, None);
        let found = plan.find(arguments.as_object().unwrap(), &place).found;
        let shown =
            |(target, _): &(Target, _)| format!("{} {}", target.system(), target.resource());
        assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), expected, "{server} {arguments}");
    };
    let key = json!({"bucket": "b", "key": "a/x y"});
    let object = json!({"bucket": "b", "object": "x"});
    let address = ["web s3://b/a/x%20y", "lake b/a/x y"];
    check("lake", "read", json!({"uri": "s3://b/a/x%20y"}), &address);
    check("lake", "read", json!({"path": "S3://b/a/x y"}), &address);
    check("lake", "read", key.clone(), &["lake b/a/x y", "web s3://b/a/x%20y"]);
    check("lake", "read", json!({"url": "gs://b/x"}), &["web gs://b/x", "lake b/x"]);
    check("gcs", "read", object.clone(), &["gcs b/x", "web gs://b/x"]);
    check("aws-s3", "read", object.clone(), &["aws-s3 b/x", "web s3://b/x"]);
    check("lake", "s3_read", object.clone(), &["lake b/x", "web s3://b/x"]);
    // A store of one's own has its own buckets.
    check("lake", "read", object, &["lake b/x"]);
    check("minio", "read", key, &["minio b/a/x y"]);
    check("lake", "read", json!({"bucket": "b"}), &["lake b"]);
    check("lake", "read", json!({"bucket": "b", "key": "a?b"}), &["lake b/a?b"]);
}

#[test]
fn an_address_beside_a_file_or_a_table_is_named_too() {
    let (page, file) = ("web https://h/x", "filesystem /w/f");
    check(&[
        (
            "download",
            json!({"url": "https://h/x", "path": "f"}),
            &["filesystem /w/f!", "web https://h/x?"],
        ),
        (
            "upload",
            json!({"url": "https://h/x", "path": "f"}),
            &["web https://h/x", "filesystem /w/f?"],
        ),
        ("create_pdf", json!({"url": "https://h/x", "path": "f"}), &[page, file]),
        ("load", json!({"url": "https://h/x", "table": "t"}), &[page, "srv t"]),
        (
            "get_row",
            json!({"url": "https://h/x", "table": "t", "row_id": 1}),
            &[page, "srv t/row/1"],
        ),
        // One address, whose path is given apart.
        (
            "call_api",
            json!({"method": "GET", "url": "https://h/?x", "path": "/v1/users"}),
            &["web https://h/v1/users"],
        ),
        // The address is a new value.
        ("update_hook", json!({"hook_id": 1, "url": "https://h/x"}), &["srv hook/1"]),
        ("create_bookmark", json!({"url": "https://h/x"}), &[]),
    ]);
}

#[test]
fn a_bare_id_without_a_noun_names_nothing() {
    let uuid = "59833787-2cf9-4fdf-8782-e53db20768a5";
    check(&[
        ("get", json!({"id": 7}), &[]),
        ("get", json!({"id": uuid}), &[]),
        ("get", json!({"ids": [7, 8]}), &[]),
        ("get", json!({"project_id": 1, "id": 7}), &[]),
        ("link", json!({"source_id": 1, "target_id": 2}), &[]),
        ("link_issues", json!({"source_id": 1, "target_id": 2}), &["srv issue/2!", "srv issue/1?"]),
        ("get", json!({"kind": "pod", "id": 7}), &["srv pod/7"]),
        ("get_issue", json!({"id": 7}), &["srv issue/7"]),
    ]);
}

#[test]
fn nothing_is_named_where_there_is_doubt() {
    for (tool, arguments) in [
        ("search_issues", json!({"query": "cart", "user_id": "7"})),
        ("list_users", json!({"cursor": "abc", "limit": 5, "name": "ada"})),
        ("create_customer", json!({"name": "Ada", "email": "a@b.c"})),
        ("send_email", json!({"to": ["a@b.c"], "subject": "s"})),
        ("press_key", json!({"key": "Enter"})),
        ("click", json!({"uid": "1_2"})),
        ("end_session", json!({"session_id": "s1"})),
        ("connect", json!({"url": "https://h", "token": "t"})),
        ("open_link", json!({"url": "mailto:a@b.c"})),
        ("open_link", json!({"url": "data:text/plain,x"})),
        ("open_link", json!({"url": "javascript:x()"})),
        ("get_weather", json!({"city_name": "Oslo", "country": "NO"})),
        ("think", json!({"thoughtNumber": 3})),
        ("get_thing", json!({"thing_id": {"a": 1}, "other_id": [["x"]], "key": null})),
        ("get_thing", json!({"thing_id": "a\nb"})),
        ("read_secret", json!({"api_key": "k", "password": "p"})),
        ("generate_image", json!({"model_name": "m", "voice_id": "v"})),
        ("create_slide_from_template", json!({"template_id": "t"})),
        ("get_session", json!({"id": "s"})),
        ("do", json!({"a_id": 1, "b_id": 2, "c_id": 3, "d_id": 4, "e_id": 5})),
        ("ping", json!({})),
    ] {
        assert_eq!(found(tool, &arguments), Vec::<String>::new(), "{tool} {arguments}");
    }
}

#[test]
fn what_looks_like_a_secret_is_hidden_and_the_rest_is_named() {
    let token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    check(&[
        ("get_thing", json!({"thing_id": token}), &["srv thing/[redacted]"]),
        (
            "get_things",
            json!({"thing_ids": [token, "7"]}),
            &["srv thing/[redacted]", "srv thing/7"],
        ),
    ]);
}

#[test]
fn what_cannot_be_read_hides_nothing_beside_it_and_is_told() {
    let many = |count: usize| -> Map<String, Value> {
        (0..count).map(|at| (format!("x{at}"), json!(at))).collect()
    };
    let with = |mut members: Map<String, Value>, key: &str, value: Value| {
        members.insert(key.to_owned(), value);
        Value::Object(members)
    };
    let padded = |count: usize, value: Value| {
        let mut items = vec![json!({"text": "x"}); count];
        items.push(value);
        json!({ "records": items })
    };
    let (plan, odd) = ("filesystem /w/plan.md", true);
    for (tool, arguments, expected, is_told) in [
        ("read", json!({"paths": ["plan.md", ""]}), vec![plan], odd),
        ("read", json!({"paths": ["plan.md", null]}), vec![plan], odd),
        ("read", json!({"paths": [{}, "plan.md"]}), vec![plan], odd),
        ("read", json!({"paths": ["*", "plan.md"]}), vec![plan], false),
        ("read", json!({"files": [{"path": "plan.md"}, 7]}), vec!["filesystem /w/7", plan], false),
        ("read", json!({"files": [{"path": "plan.md"}, null]}), vec![plan], odd),
        ("read", json!({"paths": vec!["plan.md"; 11]}), vec![plan], odd),
        ("read", json!({"paths": vec!["plan.md"; 10]}), vec![plan], false),
        ("read", json!({"path": "  "}), vec![], odd),
        ("read", json!({"path": {"x": 1}}), vec![], odd),
        ("get_thing", json!({"thing_id": "a\nb"}), vec![], odd),
        ("get_things", json!({"thing_ids": ["a", "b\u{2028}c"]}), vec!["srv thing/a"], odd),
        (
            "get_things",
            json!({"thing_ids": format!("{}b", "a,".repeat(10))}),
            vec!["srv thing/a"],
            odd,
        ),
        ("update_records", with(many(3), "data", Value::Object(many(33))), vec![], odd),
        ("update_records", with(many(3), "data", Value::Object(many(32))), vec![], false),
        ("update_records", with(many(256), "path", json!("plan.md")), vec![], odd),
        ("update_records", with(many(255), "path", json!("plan.md")), vec![plan], false),
        ("update_records", padded(20, json!({"id": 7})), vec![], odd),
        ("update_records", padded(20, json!({"note": 7})), vec![], false),
        ("update_records", padded(19, Value::Object(many(33))), vec![], odd),
        // Nothing is given, or it is content.
        ("read", json!({"path": null, "thing_id": "", "paths": [], "data": {}}), vec![], false),
        ("write", json!({"path": "plan.md", "value": "a\nb", "title": "a\nb"}), vec![plan], false),
        ("query", json!({"query": "please drop the idea; select a better one"}), vec![], false),
        ("open", json!({"url": "mailto:a@b.c", "link_url": "see https://h/x"}), vec![], false),
    ] {
        assert_eq!(found(tool, &arguments), expected, "{tool} {arguments:.200}");
        assert_eq!(is_partial(tool, &arguments), is_told, "{tool} {arguments:.200}");
    }
}

#[test]
fn the_basis_is_the_key_that_decides() {
    for (tool, arguments, expected) in [
        (
            "get_issue",
            json!({"owner": "o", "repo": "r", "issue_number": 1}),
            "generic:issue_number",
        ),
        ("create_page", json!({"parent": {"page_id": "p"}}), "generic:parent.page_id"),
        ("update_records", json!({"records": [{"id": 1}]}), "generic:records[].id"),
        ("press_key", json!({"key": "Enter"}), "no resource in the arguments"),
    ] {
        let planned = find_in(tool, &arguments, None).unwrap();
        assert_eq!(planned.basis.as_str(), expected, "{tool} {arguments}");
    }
    assert!(find_in("do", &json!({"words": "none of them"}), None).is_none());
}

#[test]
fn large_calls_are_bounded() {
    let many: Map<String, Value> =
        (0..10_000).map(|at| (format!("thing{at}_id"), json!(at))).collect();
    assert!(found("get_thing", &Value::Object(many)).is_empty());
    let ids: Vec<usize> = (0..100_000).collect();
    assert_eq!(found("get_things", &json!({"thing_ids": ids})).len(), FOUND_MAX);
    let long = "x".repeat(1 << 20);
    for key in ["path", "url", "thing_id", "sql", "manifest", "name", "key"] {
        assert!(found("get_thing", &json!({ key: long })).is_empty(), "{key}");
    }
}

/// Generates arguments as tools have them, and of every kind.
fn arguments() -> impl Strategy<Value = Vec<(String, Value)>> {
    let key = prop_oneof![
        4 => proptest::sample::select(vec![
            "path", "filePath", "source", "destination", "url", "owner", "repo", "project_id",
            "issue_number", "issueId", "id", "ids", "name", "title", "key", "value", "kind",
            "namespace", "query", "sql", "manifest", "data", "records", "parent", "database",
            "table", "old_key", "new_key", "file_name", "outputDir", "branch", "user_id", "index",
        ])
        .prop_map(str::to_owned),
        1 => "\\PC{0,12}",
    ];
    let text = prop_oneof![
        "\\PC{0,16}",
        "[a-z0-9/.:?&=%#@-]{0,24}",
        "(select|update|delete) [a-z *]{0,12}(from|set) [a-z.\"`,()]{0,16}",
        "apiVersion: v1\nkind: [a-zA-Z]{1,8}\nmetadata:\n  name: [a-z]{1,6}",
    ];
    let scalar = prop_oneof![
        4 => text.prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
    ];
    let value = scalar.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec(("[a-z_]{1,8}|id|path|name", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    proptest::collection::vec((key, value), 0..10)
}

fn tools() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "get_issue",
        "search_items",
        "update_records",
        "create_page",
        "move_file",
        "press_key",
        "set",
        "list_tables",
        "add_tag_to_image",
        "execute_sql",
        "apply",
        "",
        "download_file",
    ])
}

proptest! {
    #[test]
    fn the_order_of_arguments_never_matters(tool in tools(), members in arguments(), turn in 0usize..10) {
        let unique: Map<String, Value> = members.into_iter().collect();
        let mut turned: Vec<_> = unique.clone().into_iter().collect();
        let places = turned.len().max(1);
        turned.rotate_left(turn % places);
        let expected = find_in(tool, &Value::Object(unique), Some("/w"));
        let rotated = turned.iter().cloned().collect();
        prop_assert_eq!(&find_in(tool, &Value::Object(rotated), Some("/w")), &expected);
        turned.reverse();
        let reversed = turned.into_iter().collect();
        prop_assert_eq!(find_in(tool, &Value::Object(reversed), Some("/w")), expected);
    }

    #[test]
    fn what_is_found_fits_a_record(tool in tools(), members in arguments(), root in any::<bool>()) {
        let members = Value::Object(members.into_iter().collect());
        let planned = find_in(tool, &members, root.then_some("/w"));
        let found = planned.map(recordable).unwrap_or_default();
        prop_assert!(found.len() <= FOUND_MAX);
        for (target, _) in &found {
            let resource = target.resource();
            prop_assert!(!resource.is_empty() && resource.len() <= RESOURCE_BYTES_MAX);
            prop_assert!(!resource.contains('\n'), "{resource}");
        }
    }

    #[test]
    fn a_number_is_its_text(tool in tools(), key in "(issue|project|thing|user)(_id|Number)|id", number in any::<i64>()) {
        let as_number = find_in(tool, &json!({ key.as_str(): number }), None);
        let as_text = find_in(tool, &json!({ key.as_str(): number.to_string() }), None);
        prop_assert_eq!(as_number, as_text);
    }

    #[test]
    fn dashes_and_case_of_a_uuid_mean_nothing(key in "(page|project)_id|id", uuid in "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}") {
        let dashed = find_in("get_page", &json!({ key.as_str(): uuid }), None);
        let bare = uuid.replace('-', "").to_uppercase();
        let plain = find_in("get_page", &json!({ key.as_str(): bare }), None);
        prop_assert!(dashed.as_ref().is_some_and(|planned| planned.found.len() == 1));
        prop_assert_eq!(dashed, plain);
    }
}
