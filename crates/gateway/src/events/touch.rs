//! The resources of an event: those that its sender names, else those that the plan of the tool
//! finds, so that one thing has one name whether a call passed the gate or not.

use domain::Caller;
use domain::catalog::{PlanSource, ToolPlan};
use domain::policy::Lock;
use domain::tool::{Class, Hints, ToolName};
use serde_json::{Map, Value};
use store::record::TARGET_OMITTED;
use touch::frame::EventFrame;
use touch::hook;
use touch::targets::{Access, CallPlace, SecretTexts, Target, TargetBasis, Touches};

use crate::pipeline::touch::NamedTouches;
use crate::{Gateway, place};

/// The agent's own tool that reads an address.
const WEB_FETCH: &str = "WebFetch";

/// Names the resources of an event; `class` is that of its action, if it is known.
pub(super) async fn named(
    gateway: &Gateway,
    frame: &EventFrame,
    class: Option<Class>,
) -> NamedTouches {
    let has = |part: &str| frame.omitted.iter().any(|omitted| omitted == part);
    if let Some(target) = frame.target.clone() {
        let touches = Touches::reported(Some(target), Access::of(class));
        // The hook had no time for it; other senders name files as they like.
        let is_unresolved = touches.main().is_some_and(Target::is_unresolved);
        let is_open = has(hook::LINKS) || is_unresolved;
        let touches = match is_open {
            true => real(gateway, touches).await,
            false => gateway.shared.links.identify(touches).known().await,
        };
        return NamedTouches { touches, warnings: Vec::new() };
    }
    if has(hook::TARGET) {
        let touches = Touches::nothing(TargetBasis::TOO_LONG);
        return NamedTouches { touches, warnings: vec![TARGET_OMITTED.to_owned()] };
    }
    let mut named = match arguments(frame) {
        Some(input) => found(gateway, frame, class, input).await,
        None => nothing(),
    };
    named.touches = real(gateway, named.touches).await;
    named
}

async fn real(gateway: &Gateway, touches: Touches) -> Touches {
    gateway.shared.links.follow(touches).known().await
}

fn nothing() -> NamedTouches {
    NamedTouches { touches: Touches::nothing(TargetBasis::NO_RESOURCE), warnings: Vec::new() }
}

fn arguments(frame: &EventFrame) -> Option<Value> {
    let input: Value = serde_json::from_str(frame.input.as_deref()?.get()).ok()?;
    input.is_object().then_some(input)
}

async fn found(
    gateway: &Gateway,
    frame: &EventFrame,
    class: Option<Class>,
    mut input: Value,
) -> NamedTouches {
    let Some(server) = frame.server.as_deref() else {
        // Of an agent's own tools, the sender names the files.
        if frame.tool != WEB_FETCH {
            return nothing();
        }
        return by_names(gateway, &frame.channel, frame, class, input).await;
    };
    let Some(known) = ListedTool::of(gateway, server, frame, &mut input) else {
        return by_names(gateway, server, frame, class, input).await;
    };
    let catalog = gateway.catalog();
    let listed = catalog.server(&known.name.server);
    let Some(plan) = listed.and_then(|server| server.listing.plan(&known.name.tool)) else {
        return nothing();
    };
    let place = gateway.shared.registry.place(&known.name.server, None);
    // An agent may run the same server itself, in another folder.
    let place = CallPlace {
        root: None,
        home: place.home.as_deref(),
        is_local: place.is_local,
        query_key: &gateway.shared.query_key,
    };
    let hints = hints(gateway, &known.name);
    let access = Access::of_call(hints, known.declared.or(class), plan.verb);
    planned(gateway, plan, &place, access, &input)
}

/// Returns what the names of the tool and its arguments tell. The server is not known here, so its
/// files are those of this machine only if they exist.
async fn by_names(
    gateway: &Gateway,
    server: &str,
    frame: &EventFrame,
    class: Option<Class>,
    input: Value,
) -> NamedTouches {
    let (source, empty) = (PlanSource::new(&server.into(), None), Map::new());
    let plan = ToolPlan::by_names(&source, &frame.tool, input.as_object().unwrap_or(&empty));
    let access = Access::of_call(None, class, plan.verb);
    let home = place::home();
    let place = CallPlace {
        root: None,
        home: home.as_deref(),
        is_local: true,
        query_key: &gateway.shared.query_key,
    };
    let named = planned(gateway, &plan, &place, access, &input);
    if gateway.shared.links.are_here(&named.touches).await {
        return named;
    }
    planned(gateway, &plan, &CallPlace { is_local: false, ..place }, access, &input)
}

fn planned(
    gateway: &Gateway,
    plan: &ToolPlan,
    place: &CallPlace<'_>,
    access: Access,
    input: &Value,
) -> NamedTouches {
    let (settings, mut redacted) = (gateway.settings(), input.clone());
    let empty = Map::new();
    let sent = input.as_object().unwrap_or(&empty);
    let given = match settings.redactor.value(&mut redacted) {
        true => redacted.as_object().map(|it| SecretTexts::of(sent, it, &settings.redactor)),
        false => None,
    };
    let (secrets, arguments) = match &given {
        Some((secrets, arguments)) => (secrets, arguments),
        None => (&SecretTexts::default(), sent),
    };
    let found = plan.targets.find(arguments, place);
    let named = NamedTouches::new(found, secrets, access);
    named.with_faults(&plan.targets, sent, &settings.redactor)
}

/// The annotations of a tool, if they are trusted.
fn hints(gateway: &Gateway, name: &ToolName) -> Option<Hints> {
    let catalog = gateway.catalog();
    let (server, tool) = catalog.tool(name)?;
    match server.lock(&tool.name) {
        Lock::Callable => Some(tool.hints),
        Lock::Locked(status) => (!status.distrusts_text()).then_some(tool.hints),
    }
}

/// A tool in the gate's catalog that an agent used.
struct ListedTool {
    name: ToolName,
    /// The class that the agent declared, if it called the tool through the gate.
    declared: Option<Class>,
}

impl ListedTool {
    /// Finds the tool: a server of the config under its own name, or a tool that the agent called
    /// through the gate, whose arguments then replace those of the gate's tool.
    fn of(
        gateway: &Gateway,
        server: &str,
        frame: &EventFrame,
        input: &mut Value,
    ) -> Option<ListedTool> {
        let catalog = gateway.catalog();
        let name = ToolName { server: server.to_owned(), tool: frame.tool.clone() };
        if catalog.tool(&name).is_some() {
            return Some(ListedTool { name, declared: None });
        }
        if let Some(declared) = Class::from_variant(&frame.tool) {
            let name = ToolName::parse(input.get("name")?.as_str()?).ok()?;
            catalog.tool(&name)?;
            let given = ["args", "args_json"].iter().find_map(|name| input.get(*name)).cloned();
            *input = match given {
                Some(Value::String(text)) => serde_json::from_str(&text).ok()?,
                Some(args) => args,
                None => Value::Object(Map::new()),
            };
            return Some(ListedTool { name, declared: Some(declared) });
        }
        let exposed = catalog.all(&Caller::admin());
        let name = exposed.tool(&frame.tool)?.clone();
        Some(ListedTool { name, declared: None })
    }
}
