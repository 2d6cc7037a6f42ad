//! Canonical forms of ids, kinds, files and addresses; tables of statements; objects of manifests.

use super::super::{Access, CallPlace, canonical, manifest, sql};

const HERE: CallPlace<'_> =
    CallPlace { root: Some("/w"), home: Some("/u/ada"), is_local: true, query_key: &[7; 32] };

#[test]
fn one_spelling_for_an_id_and_a_kind() {
    for (text, expected) in [
        ("59833787-2CF9-4fdf-8782-e53db20768a5", "598337872cf94fdf8782e53db20768a5"),
        ("598337872cf94fdf8782e53db20768a5", "598337872cf94fdf8782e53db20768a5"),
        ("shop-231", "SHOP-231"),
        ("acme%2Fshop", "acme/shop"),
        ("100%", "100%"),
        ("a%0Ab", "a%0Ab"),
        ("a%ffb", "a%ffb"),
        (" secret/ ", "secret"),
        ("/", "/"),
        ("x-1-2", "x-1-2"),
        ("https://h/a%2Fb", "https://h/a%2Fb"),
    ] {
        assert_eq!(canonical::id(text), expected, "{text}");
    }
    for (text, expected) in [
        ("Pods", "pod"),
        ("po", "pod"),
        ("Ingresses", "ingress"),
        ("NetworkPolicies", "networkpolicy"),
        ("deployments", "deployment"),
        ("AWS::S3::Bucket", "AWS::S3::Bucket"),
    ] {
        assert_eq!(canonical::kind(text), expected, "{text}");
    }
    assert_eq!(canonical::value("api-0"), "api-0");
}

#[test]
fn files_of_this_machine_only() {
    let homeless = CallPlace { home: None, ..HERE };
    let elsewhere = CallPlace { is_local: false, ..HERE };
    let rootless = CallPlace { root: None, ..HERE };
    for (path, place, expected) in [
        ("a/../b", HERE, Some("/w/b")),
        ("/a//b/", HERE, Some("/a/b")),
        ("file:///a%20b", HERE, Some("/a b")),
        ("file://localhost/a", HERE, Some("/a")),
        ("FILE://u:p@localhost/a%2e/b?x#y", HERE, Some("/a./b")),
        ("file:///a/%2e%2E/b", HERE, Some("/b")),
        ("file:/a/b", HERE, Some("/a/b")),
        ("file:///a:%2F%2Fb", HERE, Some("/a:/b")),
        ("file:a", HERE, Some("/w/file:a")),
        ("file://elsewhere/a", HERE, None),
        ("file://../a", HERE, Some("/w/a")),
        ("https://h/../../a", HERE, Some("/w/a")),
        ("$x/../a", HERE, Some("/w/a")),
        ("~x/../a", HERE, Some("/w/a")),
        (" a ", HERE, Some("/w/ a ")),
        ("/a", rootless, Some("/a")),
        ("a", rootless, None),
        ("/a", elsewhere, None),
        ("~/a", HERE, Some("/u/ada/a")),
        ("~", HERE, Some("/u/ada")),
        ("~/../a", HERE, Some("/u/a")),
        ("~bob/a", HERE, None),
        ("~/a", homeless, None),
        ("$HOME/a", HERE, None),
        ("https://h/a", HERE, None),
        ("", HERE, None),
    ] {
        let target = canonical::file(path, &place);
        assert_eq!(target.as_ref().map(|target| target.resource()), expected, "{path}");
    }
}

#[test]
fn addresses_keep_apart_what_their_queries_keep_apart() {
    let web = |text: &str| canonical::web(text, &HERE).map(|target| target.resource().to_owned());
    for (text, expected) in [
        ("https://EXAMPLE.com:443/a/#x", Some("https://example.com/a")),
        ("https://h/%7Eada/%2f", Some("https://h/~ada/%2F")),
        ("https://h/a/../b/./c", Some("https://h/b/c")),
        ("https://u:p@h/x?token=abc&utm_source=y&X-Amz-Signature=z", Some("https://h/x")),
        ("https://h/cb?code=1&state=2", Some("https://h/cb")),
        ("mailto:a@b.c", None),
        ("memo://note", None),
        ("/v1/users", None),
        (
            "https://hooks.slack.com/services/T0/B0/secret",
            Some("https://hooks.slack.com/[redacted]"),
        ),
        ("https://api.telegram.org/bot1:abc/send", Some("https://api.telegram.org/[redacted]")),
        ("https://h/a\r\nb", Some("https://h/ab")),
        ("https://h/a b/\u{e4}", Some("https://h/a%20b/%C3%A4")),
    ] {
        assert_eq!(web(text).as_deref(), expected, "{text}");
    }
    let item = |query: &str| web(&format!("https://h/item?{query}")).unwrap();
    assert!(item("id=1").starts_with("https://h/item?~"));
    assert_ne!(item("id=1"), item("id=2"));
    assert_eq!(item("a=1&b=2"), item("b=2&sid=9&a=1"));
    assert_eq!(item("state=open"), item("state=%6Fpen"));
    let other = CallPlace { query_key: &[8; 32], ..HERE };
    let hashed = canonical::web("https://h/item?id=1", &other).unwrap();
    assert_ne!(hashed.resource(), item("id=1"), "the hash has a key");
    assert!(web(&format!("https://h/{}", "x".repeat(1 << 20))).is_none());
}

#[test]
fn the_tables_of_simple_statements() {
    let all = |tables: &str, access| -> Vec<(String, Access)> {
        tables.split(' ').map(|table| (table.to_owned(), access)).collect()
    };
    let read = |tables: &str| all(tables, Access::Read);
    let write = |tables: &str| all(tables, Access::Write);
    let both = |written: &str, others: &str| [write(written), read(others)].concat();
    let none = Vec::new();
    for (statement, expected) in [
        ("SELECT id FROM orders WHERE total > 100 LIMIT 5", read("orders")),
        ("select * from public.\"Orders\" o", read("public.Orders")),
        ("select * from `proj.set.table`", read("proj.set.table")),
        ("select * from [dbo].[t];", read("dbo.t")),
        ("-- why\nselect /* from x */ 'from y' from t", read("t")),
        ("select extract(year from ts) from t", read("t")),
        ("select * from t where a is distinct from b", read("t")),
        ("select * from (select * from t) x", read("t")),
        ("with x as (select * from t) select * from x", read("t")),
        ("select * from t join t b on t.a = b.a", read("t")),
        ("select * from t for update", read("t")),
        ("select * from generate_series(1, 3), t", read("t")),
        ("select * from a join b on a.x = b.x", read("a b")),
        ("select * from a, b", read("a b")),
        ("select * from a where x in (select y from b)", read("a b")),
        // joins
        ("select * from (a join b on a.x = b.x) join c on c.y = a.y", read("a b c")),
        ("select * from a join (b join c using (x)) on a.y = b.y", read("a b c")),
        ("select * from a, b join c on b.x = c.x, d where 1 = 1", read("a b c d")),
        ("select * from a join b on f(a.x, 3) = b.y", read("a b")),
        ("select * from a straight_join b", read("a b")),
        ("select straight_join x from a", read("a")),
        ("select * from a cross apply b", read("a b")),
        ("select * from a natural left outer join s.b as x", read("a s.b")),
        ("update a join b on a.x = b.x set a.y = 1, a.z = 2", both("a", "b")),
        ("update a inner join b on a.x = b.x set b.y = f(1, 2)", both("b", "a")),
        ("update a x, b y set y.z = x.z where x.i = y.i", both("b", "a")),
        ("update o set y = 1 from a o join b on o.x = b.x", both("a", "b")),
        ("delete o from a o join b on o.x = b.x", both("a", "b")),
        ("delete a, b from a join b on a.x = b.x", write("a b")),
        ("delete from a using b where a.x = b.x", both("a", "b")),
        ("merge into a using b on a.x = b.x when matched then update set y = 1", both("a", "b")),
        ("insert into a select * from b join c using (x) on conflict (x, y) do nothing", {
            let mut tables = both("a", "b");
            tables.extend(read("c"));
            tables
        }),
        ("insert into a select * from b on duplicate key update x = 1, y = 2", both("a", "b")),
        ("select now()", none.clone()),
        ("select * into b from a", both("b", "a")),
        ("select * into outfile '/tmp/x' from a", read("a")),
        ("insert into t (a) values ('x; y')", write("t")),
        ("INSERT OR REPLACE INTO t VALUES (1)", write("t")),
        ("insert into a select * from b", both("a", "b")),
        ("with x as (delete from t returning *) select * from x", write("t")),
        ("with x as (select * from b) update a set c = 1", both("a", "b")),
        ("update only t set a = 1 from b", both("t", "b")),
        ("delete from T where id = 1", write("t")),
        ("delete from t where id in (select id from b)", both("t", "b")),
        ("create table if not exists s.t (id int)", write("s.t")),
        ("alter table t add column x int", write("t")),
        ("drop table if exists t", write("t")),
        ("drop table a, b", write("a b")),
        ("truncate a, b", write("a b")),
        ("create unique index i on t (a)", write("t")),
        ("truncate t", write("t")),
        ("explain analyze delete from t", write("t")),
        ("explain delete from t", read("t")),
        ("explain (analyze, verbose) select * from t", read("t")),
        ("describe t", read("t")),
        ("FROM logs-* | WHERE x", read("logs-*")),
        ("update a set x = 1; update b set x = 1", write("a b")),
        ("select * from a; drop table b;", both("b", "a")),
        ("select * from a; drop table a", write("a")),
        ("begin; delete from a; commit", write("a")),
        ("update the docs, please", none.clone()),
        ("who likes tea", none.clone()),
        ("who can select from the list", none.clone()),
        // several in one, as some dialects allow
        ("select * from notes drop table users", both("users", "notes")),
        ("select 1 truncate table a insert b values (1) delete c where 1 = 1", write("a b c")),
        ("select * from a merge b using a on a.x = b.x", both("b", "a")),
        ("if 1 = 1 begin delete from a end", write("a")),
        ("alter table a add x int drop table b", write("a b")),
        ("rename table a to b, c to d", write("a b c d")),
        ("copy a from '/x'", write("a")),
        ("copy a (x) to '/x'", read("a")),
        ("(select * from a) union (select * from b)", read("a b")),
        ("insert into a values (1) on conflict do update set x = 1", write("a")),
        ("insert into a values (1) on duplicate key update x = 1", write("a")),
        ("create table a (b int references c on delete cascade on update set null)", write("a")),
        ("create trigger x after insert or update on a for each row execute f()", write("a")),
        ("alter table a drop column b", write("a")),
        ("select replace(a, 'x', 'y'), truncate(b, 2), insert(c, 1, 2, 'x') from t", read("t")),
        // what dialects read differently
        ("select 1--1; drop table users", write("users")),
        ("select 1--'\n; drop table users; --'", write("users")),
        ("select 1 #'\n; drop table users; #'", write("users")),
        ("select 'a\\''; drop table users", write("users")),
        ("select 'a\\'; drop table users; --'", write("users")),
        ("/*!50000 drop table users */", write("users")),
        ("select 1 /* /* */ ' */; drop table users; --'", write("users")),
        ("select $$ ' $$; drop table users; --'", write("users")),
        ("select a #>> '{x}' from t -- why", read("t")),
        ("select a from t --why", read("t")),
        ("", none.clone()),
        ("select 'open from t", none.clone()),
    ] {
        assert_eq!(sql::read(statement).tables, expected, "{statement}");
    }
    assert_eq!(sql::read(&format!("select * from t -- {}", "x".repeat(1 << 20))).tables, none);
    let joins = "select * from t".to_owned() + &" join t on 1".repeat(2000);
    assert_eq!(sql::read(&joins).tables, read("t"));
}

#[test]
fn what_a_script_may_do_is_never_a_read() {
    for (statement, access, leaves_doubt) in [
        ("select * from t", Access::Read, false),
        ("select * from t; commit; set x = 'it''s'; show tables", Access::Read, false),
        ("select * from t -- it's", Access::Read, false),
        ("select a->'x' #>> '{y}' from t where a = any(array['a', 'b'])", Access::Read, false),
        ("select * from t --it's", Access::Unknown, true),
        ("select * from t; do $$ begin drop table users; end $$", Access::Unknown, true),
        ("select * from t exec('drop table users')", Access::Unknown, true),
        ("select * from t; exec('drop table users')", Access::Unknown, true),
        ("select * from t; call clear()", Access::Unknown, true),
        ("select * from t; drop database shop", Access::Unknown, true),
        ("select * from t; frobnicate users", Access::Unknown, true),
        ("select * from t where a = 'x\\'", Access::Unknown, true),
        ("select * from t where a = 'open", Access::Unknown, true),
        ("select * from t /* open", Access::Unknown, true),
        ("select * from t -- a\r; drop table users", Access::Unknown, true),
        ("select [']; drop table users --'] from t", Access::Unknown, true),
    ] {
        let script = sql::read(statement);
        let found = script.tables.iter().find(|(table, _)| table == "t").map(|(_, access)| *access);
        assert_eq!(found, (Some(access)), "{statement}");
        assert_eq!(script.leaves_doubt("query"), leaves_doubt, "{statement}");
    }
    // Alone, they are no more understood.
    for statement in ["do $$ drop table t $$", "exec('drop table t')", "x".repeat(40_000).as_str()]
    {
        assert!(sql::read(statement).leaves_doubt("query"), "{statement:.40}");
    }
    assert!(!sql::read("what is new?").leaves_doubt("query"), "most texts are no statements");
    assert!(sql::read("frobnicate users").leaves_doubt("sql"));
}

#[test]
fn the_object_of_a_manifest() {
    let labels = "apiVersion: v1\nkind: ConfigMap # c\nmetadata:\n  labels:\n    name: no\n  \
                  name: \"flags\"\n  namespace: prod\nspec:\n  name: other\n";
    for (text, expected) in [
        (labels, Some("prod/configmap/flags")),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: a", Some("pod/a")),
        (r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#, Some("pod/a")),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n---\nkind: Pod\n", None),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}", None),
        ("kind: Pod\nmetadata:\n  name: a", None),
        ("name: a", None),
        ("", None),
    ] {
        let object = manifest::read(text).map(|object| object.resource(None));
        assert_eq!(object.as_deref(), expected, "{text}");
    }
}
