//! The resources of calls as they are stamped on records: name, access and basis.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::Caller;
use domain::caller::Servers;
use domain::json::Object;
use domain::method::Method;
use domain::tool::ToolName;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::message::{Raw, raw, to_raw};
use provider::{CallContext, Gate, ProviderError, Reply, Surface, ToolProvider};
use serde_json::{Value, json};
use store::Store;

use super::*;
use crate::links::Links;
use crate::pipeline::intake;
use crate::pipeline::payload::CallArguments;
use crate::plan::{Builtin, PlannedBuiltin};
use crate::{GateSettings, Gateway};

struct Listed(Value);

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
        std::future::pending().boxed()
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
    gateway.add_provider("db", Arc::new(Listed(tools))).await;
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
        ("delete_row", Some(Class::Read), Access::Read),
        ("get_all", Some(Class::Read), Access::Write),
        ("set_all", Some(Class::Destructive), Access::Read),
    ] {
        let call = call(Caller::agent("a"), tool, declared, &json!({"table": "t"}));
        let NamedTouches { touches, has_omitted } = touched(&gateway, &call).await;
        let found: Vec<Access> = touches.all().iter().map(|touched| touched.access).collect();
        assert_eq!((found, has_omitted), (vec![access], false), "{tool} {declared:?}");
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

#[test]
fn what_the_redactor_changes_is_left_out() {
    let planned = |resources: &[&str]| PlannedTargets {
        found: resources
            .iter()
            .map(|resource| (Target::new("s", (*resource).to_owned()).unwrap(), None))
            .collect(),
        basis: TargetBasis::fixed("config"),
    };
    for (found, redacted, expected, basis) in [
        (vec!["a", "b"], None, vec!["a", "b"], TargetBasis::fixed("config")),
        (vec!["a", "b"], Some(vec!["a", "b"]), vec!["a", "b"], TargetBasis::fixed("config")),
        (vec!["a", "b"], Some(vec!["a", "x"]), vec!["a"], TargetBasis::fixed("config")),
        (vec!["a", "b"], Some(vec!["x", "b"]), vec![], TargetBasis::SECRET),
        (vec!["a"], Some(vec![]), vec![], TargetBasis::SECRET),
        (vec![], Some(vec![]), vec![], TargetBasis::fixed("config")),
    ] {
        let omits = expected.len() < found.len();
        let redacted = redacted.map(|resources| planned(&resources));
        let named = NamedTouches::new(planned(&found), redacted, Access::Read);
        let left: Vec<&str> =
            named.touches.all().iter().map(|touched| touched.target.resource()).collect();
        assert_eq!((left, named.has_omitted), (expected, omits), "{found:?}");
        assert_eq!(named.touches.basis(), Some(&basis), "{found:?}");
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
    let read = json!({"name": "Read", "annotations": {"readOnlyHint": true}});
    let builtin = Builtin {
        name: "db".into(),
        root: "/w".into(),
        definitions: vec![to_raw(&read)],
        provider: Arc::new(Listed(json!([]))),
        names: domain::exposed::Names::Own,
        call_timeout: Duration::from_secs(60),
    };
    let planned = PlannedBuiltin { builtin: Arc::new(builtin), rules: Default::default() };
    gateway.shared.registry.set_builtin(Some(planned));
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
