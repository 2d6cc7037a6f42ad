//! The plans of a server's tools, compiled when they are first needed: how the resources of their
//! calls are named, and what their names say about reading and writing.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::tool::Tool;
use touch::targets::{Access, TargetMapping, TargetPlan, ToolShape};

/// The longest input schema that a call waits for. Ordinary ones are shorter, and their plans are
/// compiled in microseconds.
const AT_ONCE_BYTES: usize = 8 * 1024;

/// Schemas within schemas whose properties are those of the tool.
const COMPOSITIONS_MAX: usize = 3;

/// The part of a server that its tools' plans depend on. None of it is a matter of trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanSource {
    /// The name in the config.
    pub server: Arc<str>,
    /// The name that the server gives itself, if it is known.
    pub info: Option<Arc<str>>,
    /// The operator's mapping.
    pub mapping: Option<Arc<TargetMapping>>,
}

/// The plan of one tool.
#[derive(Clone, Debug)]
pub struct ToolPlan {
    pub targets: TargetPlan,
    /// The access that the tool's name suggests.
    pub verb: Access,
}

/// The plans of all tools of a list, in its order. Most tools are never called, and their plans
/// would take more memory than their definitions.
#[derive(Default)]
pub(super) struct ToolPlans {
    source: PlanSource,
    plans: Box<[OnceLock<Box<ToolPlan>>]>,
}

impl PlanSource {
    pub fn new(server: &Arc<str>, info: Option<&str>) -> PlanSource {
        PlanSource { server: server.clone(), info: info.map(Into::into), mapping: None }
    }
}

impl ToolPlan {
    fn compile(source: &PlanSource, tool: &Tool) -> ToolPlan {
        ToolPlan::of(source, &tool.name, &properties(tool.input_schema_json()))
    }

    /// Returns the plan of a tool that is in no list, from its name and those of its arguments.
    pub fn by_names(source: &PlanSource, tool: &str, arguments: &Map<String, Value>) -> ToolPlan {
        let properties = arguments.keys().map(|name| (name.clone(), Value::Object(Map::new())));
        ToolPlan::of(source, tool, &properties.collect())
    }

    fn of(source: &PlanSource, tool: &str, properties: &Map<String, Value>) -> ToolPlan {
        let (server, info) = (&*source.server, source.info.as_deref());
        let shape = ToolShape { server, info, tool, properties };
        ToolPlan {
            targets: TargetPlan::compile(&shape, source.mapping.as_deref()),
            verb: Access::of_name(tool),
        }
    }
}

impl ToolPlans {
    /// Creates the plans of a list. Those that would take long to compile are compiled here.
    pub(super) fn new(source: &PlanSource, tools: &[Arc<Tool>]) -> ToolPlans {
        let plan = |tool: &Arc<Tool>| {
            let is_long = tool.input_schema_json().is_some_and(|text| text.len() > AT_ONCE_BYTES);
            if is_long { Box::new(ToolPlan::compile(source, tool)).into() } else { OnceLock::new() }
        };
        ToolPlans { source: source.clone(), plans: tools.iter().map(plan).collect() }
    }

    pub(super) fn source(&self) -> &PlanSource {
        &self.source
    }

    /// Returns the plan of the tool at this place of the list.
    pub(super) fn get(&self, place: usize, tool: &Tool) -> Option<&ToolPlan> {
        let plan = self.plans.get(place)?;
        Some(plan.get_or_init(|| Box::new(ToolPlan::compile(&self.source, tool))))
    }
}

/// Returns the properties of an input schema, with those of the schemas that it is composed of; none
/// if it has none that can be read.
pub(super) fn properties(schema: Option<&str>) -> Map<String, Value> {
    let mut found = Map::new();
    if let Some(schema) = schema.and_then(|schema| serde_json::from_str::<Value>(schema).ok()) {
        collect(&schema, &schema, COMPOSITIONS_MAX, &mut found);
    }
    found
}

/// Collects the properties of a schema, which may be a part of another.
fn collect(root: &Value, schema: &Value, depth: usize, found: &mut Map<String, Value>) {
    for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        if !found.contains_key(key) {
            found.insert(key.clone(), property.clone());
        }
    }
    if depth == 0 {
        return;
    }
    let parts =
        ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|name| schema.get(name)?.as_array());
    parts.flatten().for_each(|part| collect(root, part, depth - 1, found));
    let place = schema.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#'));
    if let Some(referred) = place.and_then(|place| root.pointer(place)) {
        collect(root, referred, depth - 1, found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::super::Listing;
    use super::*;
    use crate::policy::ApprovalState;
    use crate::tool::Source;

    fn listing(definitions: &[&str]) -> Listing {
        let raw = |text: &&str| RawValue::from_string((*text).to_owned()).unwrap();
        let definitions = definitions.iter().map(raw).collect();
        Listing::reviewed(&Source::Mcp("s".into()), definitions, |_| ApprovalState::Pending)
    }

    #[test]
    fn every_listed_tool_has_a_plan_whatever_its_schema_and_approval() {
        let source = PlanSource::new(&"s".into(), Some("info"));
        let planned = listing(&[
            r#"{"name":"get_a","inputSchema":{"type":"object","properties":{"id":{}}}}"#,
            r#"{"name":"b","inputSchema":true}"#,
            r#"{"name":"delete_c","inputSchema":{"properties":[1]}}"#,
            r#"{"name":"d"}"#,
        ])
        .planned(&source);
        for (name, verb) in [
            ("get_a", Access::Read),
            ("b", Access::Unknown),
            ("delete_c", Access::Write),
            ("d", Access::Unknown),
        ] {
            assert_eq!(planned.plan(name).map(|plan| plan.verb), Some(verb), "{name}");
        }
        assert!(planned.plan("e").is_none());
        let reviewed = planned.review(|_| ApprovalState::Approved).unwrap();
        assert!(reviewed.plan("d").is_some(), "an approval keeps the plans");
    }

    #[test]
    fn a_tool_has_the_properties_of_all_schemas_that_its_own_is_composed_of() {
        for (schema, expected) in [
            (r#"{"properties":{"a":{},"b":{}}}"#, "a b"),
            (r#"{"properties":{"a":{}},"oneOf":[{"properties":{"b":{}}},true]}"#, "a b"),
            (r##"{"$ref":"#/$defs/T","$defs":{"T":{"properties":{"a":{}}}}}"##, "a"),
            (r##"{"allOf":[{"$ref":"#/$defs/T"}],"$defs":{"T":{"$ref":"#/$defs/T"}}}"##, ""),
            (r#"{"properties":[1]}"#, ""),
            ("true", ""),
        ] {
            let found = properties(Some(schema));
            let keys: Vec<&str> = found.keys().map(String::as_str).collect();
            assert_eq!(keys.join(" "), expected, "{schema}");
        }
    }

    #[test]
    fn a_call_compiles_only_plans_of_short_schemas() {
        let long = format!(r#"{{"name":"l","inputSchema":{{"title":"{}"}}}}"#, "a".repeat(8192));
        let tools = [r#"{"name":"s","inputSchema":{"properties":{"id":{}}}}"#, &long];
        let listing = listing(&tools);
        let plans = ToolPlans::new(&PlanSource::new(&"s".into(), None), listing.tools());
        let compiled = || plans.plans.iter().map(|plan| plan.get().is_some()).collect::<Vec<_>>();
        assert_eq!(compiled(), [false, true]);
        plans.get(0, &listing.tools()[0]).unwrap();
        assert_eq!(compiled(), [true, true]);
    }

    #[test]
    fn plans_are_compiled_anew_only_for_another_source() {
        let (server, other): (Arc<str>, Arc<str>) = ("s".into(), "t".into());
        let source = PlanSource::new(&server, None);
        let planned = listing(&[r#"{"name":"d"}"#]).planned(&source);
        assert!(planned.planned_anew(&source).is_none());
        for changed in [PlanSource::new(&server, Some("x")), PlanSource::new(&other, None)] {
            let anew = planned.planned_anew(&changed).unwrap();
            assert_eq!((anew.plan_source(), anew.hash()), (&changed, planned.hash()));
            assert_eq!(anew.approval("d"), Some(ApprovalState::Pending));
        }
        assert!(listing(&[r#"{"name":"d"}"#]).plan("d").is_none(), "not planned yet");
    }
}
