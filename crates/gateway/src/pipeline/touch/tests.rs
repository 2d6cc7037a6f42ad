//! The resources of calls as they are stamped on records: name, access and basis.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::Caller;
use domain::caller::Servers;
use domain::method::Method;
use domain::tool::ToolName;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::message::{Raw, raw, to_raw};
use provider::{CallContext, Gate, ProviderError, Reply, Surface, ToolProvider};
use serde_json::{Value, json};
use store::Store;
use text::json::Object;

use super::*;
use crate::links::Links;
use crate::payload::CallArguments;
use crate::pipeline::intake;
use crate::plan::{Builtin, PlannedBuiltin};
use crate::{GateSettings, Gateway};

/// A list of tools, and the file that their calls open; without one they never end.
struct Listed(Value, Option<&'static str>);

impl ToolProvider for Listed {
    fn tools(&self) -> BoxFuture<'_, Result<Vec<Raw>, ProviderError>> {
        let tools = self.0.as_array().unwrap().iter().map(to_raw).collect();
        async { Ok(tools) }.boxed()
    }

    fn call<'a>(
        &'a self,
        _: &'a Call,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        match self.1 {
            Some(opened) => {
                let result = raw(r#"{"content":[]}"#.to_owned());
                async { Ok(Reply { result, opened: Some(opened.into()) }) }.boxed()
            }
            None => std::future::pending().boxed(),
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

async fn gateway() -> Gateway {
    let schema = json!({"type": "object", "properties": {"table": {"type": "string"}}});
    let gateway = Gateway::new(GateSettings::default(), Store::nowhere());
    let tools = json!([
        {"name": "get_row", "inputSchema": schema},
        {"name": "delete_row", "inputSchema": schema},
        {"name": "thing", "inputSchema": schema},
        {"name": "get_all", "inputSchema": schema, "annotations": {"destructiveHint": true}},
        {"name": "set_all", "inputSchema": schema, "annotations": {"readOnlyHint": true}},
    ]);
    gateway.add_provider("db", Arc::new(Listed(tools, None))).await;
    gateway
}

fn call(caller: Caller, tool: &str, declared: Option<Class>, arguments: &Value) -> Call {
    let declared = declared.map_or(Declared::Nothing, |class| {
        let text = json!({"name": "db:x", "intent": {"operation_type": class.as_str()}});
        let parsed = intake::two_key_call(class, &raw(text.to_string())).unwrap();
        Declared::Variant(class, Box::new(parsed.declaration))
    });
    Call {
        id: "0193".to_owned(),
        caller: Arc::new(caller),
        client: None,
        session: None,
        request_id: None,
        surface: Surface::Discovery,
        method: Method::ToolCall,
        tool: ToolName { server: "db".to_owned(), tool: tool.to_owned() },
        arguments: Object::parse(&arguments.to_string()).unwrap().unwrap(),
        declared,
        other: Vec::new(),
    }
}

async fn touched(gateway: &Gateway, call: &Call) -> NamedTouches {
    let ctx = CallContext::within(Duration::from_secs(60));
    let snapshot = Snapshot::take(gateway, call, &ctx).await;
    let arguments = CallArguments::of(snapshot.settings(), &call.arguments);
    named(call, &snapshot, arguments.redacted())
}

#[tokio::test]
async fn the_access_is_that_of_the_annotation_the_intent_or_the_verb() {
    let gateway = gateway().await;
    for (tool, declared, access) in [
        ("get_row", None, Access::Read),
        ("delete_row", None, Access::Write),
        ("thing", None, Access::Unknown),
        ("thing", Some(Class::Read), Access::Read),
        ("get_row", Some(Class::Write), Access::Write),
        ("delete_row", Some(Class::Read), Access::Write),
        ("get_all", Some(Class::Read), Access::Write),
        ("set_all", Some(Class::Destructive), Access::Read),
    ] {
        let call = call(Caller::agent("a"), tool, declared, &json!({"table": "t"}));
        let NamedTouches { touches, warnings } = touched(&gateway, &call).await;
        let found: Vec<Access> = touches.all().iter().map(|touched| touched.access).collect();
        assert_eq!((found, warnings), (vec![access], vec![]), "{tool} {declared:?}");
        assert!(touches.basis().is_some(), "{tool}");
    }
}

#[tokio::test]
async fn a_hidden_tool_has_its_plan_and_an_unknown_one_none() {
    let gateway = gateway().await;
    let nobody = Caller { servers: Servers::Only(BTreeSet::new()), ..Caller::agent("a") };
    let arguments = json!({"table": "t"});
    let hidden = touched(&gateway, &call(nobody, "delete_row", None, &arguments)).await;
    assert_eq!(hidden.touches.main().map(Target::resource), Some("t"));
    assert_eq!(hidden.touches.all()[0].access, Access::Write, "by the verb alone");
    let unknown = call(Caller::agent("a"), "no_such_tool", None, &arguments);
    let unknown = touched(&gateway, &unknown).await.touches;
    assert_eq!((unknown.main(), unknown.basis()), (None, Some(&TargetBasis::UNKNOWN_TOOL)));
    let empty = touched(&gateway, &call(Caller::agent("a"), "thing", None, &json!({}))).await;
    assert_eq!(empty.touches.basis(), Some(&TargetBasis::NO_RESOURCE));
}

#[tokio::test]
async fn unknown_keys_and_what_is_left_out_are_on_the_record() {
    let gateway = gateway().await;
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let long = "x".repeat(4097);
    for (arguments, target, basis, warnings) in [
        (json!({"table": "t"}), Some("t"), None, vec![]),
        (
            json!({"table": "t", "id": 1, "owner": "alice", "repo": "hers", secret: 1, "Table": "u"}),
            Some("t"),
            None,
            vec![
                "arguments that the tool does not have: 'Table', '[redacted:github]', 'id', \
                  'owner' and 1 more"
                    .to_owned(),
            ],
        ),
        (
            json!({"table": long}),
            None,
            Some(TargetBasis::TOO_LONG),
            vec![TARGET_OMITTED.to_owned()],
        ),
        (json!({"table": ["t", ""]}), Some("t"), None, vec![TARGET_OMITTED.to_owned()]),
        (
            json!({"table": ["t\u{2028}u"]}),
            None,
            Some(TargetBasis::UNREAD),
            vec![TARGET_OMITTED.to_owned()],
        ),
        (
            json!({"table": "t", "x".repeat(100): 1}),
            Some("t"),
            None,
            vec![format!("arguments that the tool does not have: '{}'", "x".repeat(64))],
        ),
    ] {
        let call = call(Caller::agent("a"), "get_row", None, &arguments);
        let named = touched(&gateway, &call).await;
        assert_eq!(named.touches.main().map(Target::resource), target, "{arguments:.80}");
        assert!(basis.is_none_or(|basis| named.touches.basis() == Some(&basis)));
        assert_eq!(named.warnings, warnings, "{arguments:.80}");
    }
}

#[test]
fn more_resources_than_a_record_holds_are_told() {
    let planned = |count: usize| {
        let target = |at: usize| (Target::new("s", at.to_string()).unwrap(), None);
        PlannedTargets::of((0..count).map(target).collect(), TargetBasis::fixed("config"))
    };
    for (count, warnings) in [(9, vec![]), (10, vec![TARGETS_OMITTED.to_owned()])] {
        let named = NamedTouches::new(planned(count), &SecretTexts::default(), Access::Read);
        assert_eq!((named.touches.all().len(), named.warnings), (9, warnings));
    }
}

/// Registers the gate's own tools over `/w`, which open this file.
fn set_builtin(gateway: &Gateway, opened: Option<&'static str>) {
    let properties = json!({"path": {}, "file_path": {}, "content": {}});
    let tool = |name: &str, read_only: bool| {
        to_raw(&json!({"name": name, "annotations": {"readOnlyHint": read_only},
            "inputSchema": {"type": "object", "properties": properties}}))
    };
    let builtin = Builtin {
        name: "db".into(),
        root: "/w".into(),
        definitions: vec![tool("Read", true), tool("Write", false)],
        provider: Arc::new(Listed(json!([]), opened)),
        names: domain::exposed::Names::Own,
        call_timeout: Duration::from_secs(60),
    };
    let planned = PlannedBuiltin { builtin: Arc::new(builtin), rules: Default::default() };
    gateway.shared.registry.set_builtin(Some(planned));
}

/// The tools of the gate have no plan; the keys of a call are compared with their schemas.
#[tokio::test]
async fn a_key_that_an_own_tool_does_not_have_is_told_and_names_nothing() {
    let gateway = Gateway::new(GateSettings::default(), Store::nowhere());
    set_builtin(&gateway, None);
    let framing = json!({"path": "p", "content": "c", "owner": "alice", "repo": "hers", "id": 1});
    let told = "arguments that the tool does not have: 'id', 'owner', 'repo'";
    for (arguments, warnings) in [
        (framing, vec![told.to_owned()]),
        (json!({"path": "p", "content": "c"}), vec![]),
        (json!({"file_path": "p", "content": {"owner": "alice"}}), vec![]),
    ] {
        let call = call(Caller::agent("a"), "Write", None, &arguments);
        let named = touched(&gateway, &call).await;
        let found: Vec<(&str, Access)> =
            named.touches.all().iter().map(|it| (it.target.resource(), it.access)).collect();
        assert_eq!(found, [("/w/p", Access::Write)], "{arguments}");
        assert_eq!(named.warnings, warnings, "{arguments}");
    }
    let unknown = call(Caller::agent("a"), "NoSuchTool", None, &json!({"owner": "alice"}));
    assert!(touched(&gateway, &unknown).await.warnings.is_empty(), "its keys are not known");
}

/// A link may be swapped after it was followed and before the tool opens the file.
#[tokio::test]
async fn the_file_that_a_tool_opened_is_on_the_record() {
    for (tool, access) in [("Read", Access::Read), ("Write", Access::Write)] {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path(), &domain::config::Config::default().ledger).unwrap();
        let gateway = Gateway::new(GateSettings::default(), store.clone());
        set_builtin(&gateway, Some("/w/ghp_0123456789abcdefghijklmnopqrstuvwxyz/victim"));
        let ctx = CallContext::within(Duration::from_secs(60));
        let call = call(Caller::agent("a"), tool, None, &json!({"path": "decoy"}));
        gateway.call(call, &ctx).await;
        store.settled().await;
        let page = store::read::Page::first(10);
        let found = store.read().activity(&Default::default(), &page).unwrap().records;
        let target = found[0].target.as_ref().map(|target| target.resource.as_str());
        assert_eq!((found.len(), target), (1, Some("/w/[redacted]/victim")), "{tool}");
        let record = store.read().record(&found[0].id).unwrap().unwrap();
        assert_eq!(record.targets[0].access, access);
    }
}

/// Calls are given up at any moment: one whose real names are not known yet is recorded under the
/// names that it gave.
#[tokio::test]
async fn a_call_that_is_given_up_while_links_are_followed_is_recorded() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), &domain::config::Config::default().ledger).unwrap();
    let mut gateway = Gateway::new(GateSettings::default(), store.clone());
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let hang = move |_: &Target| {
        let _ = released.lock().unwrap().recv();
        None
    };
    let links = Links::new(Box::new(hang), Duration::from_secs(3600));
    Arc::get_mut(&mut gateway.shared).unwrap().links = links;
    set_builtin(&gateway, None);
    let ctx = CallContext::within(Duration::from_secs(60));
    let call = call(Caller::agent("a"), "Read", None, &json!({"path": "x"}));
    let mut calling = gateway.call(call, &ctx);
    assert!((&mut calling).now_or_never().is_none(), "neither links nor provider answer");
    drop(calling);
    drop(release);
    let page = store::read::Page::first(10);
    let found = loop {
        store.settled().await;
        let found = store.read().activity(&Default::default(), &page).unwrap().records;
        if !found.is_empty() {
            break found;
        }
    };
    let target = found[0].target.as_ref().map(|target| target.resource.as_str());
    assert_eq!((found.len(), target), (1, Some("/w/x")));
}
