//! Estimates the work that a schema can cause. References let a small schema check the same value
//! over and over, or twice as often with each level of nesting, and a pattern may try every part of
//! a text. Before arguments are checked, a dry run counts the work that the check would do.

use std::collections::HashMap;

use serde_json::Value;
use text::percent;

use super::pattern;

/// Subschemas applied to the same value; real schemas stay below a hundred.
const STEPS_MAX: u64 = 20_000;

/// Nesting of subschemas on the same value, with references followed. The validator recurses for
/// each of them, and again for each level of the arguments; its stack must be large enough.
const NESTING_MAX: usize = 32;

/// Subschemas examined in one schema; more are considered hostile.
const NODES_MAX: usize = 50_000;

/// Each pattern takes a third of a millisecond to compile.
const PATTERNS_MAX: usize = 1000;

/// Patterns with lookaround or backreferences. Real schemas have one or two.
const HEAVY_MAX: usize = 32;

/// The time that one subschema takes on one value; measured at 7 to 25 ns.
const STEP_NS: u64 = 25;

/// The time until a heavy pattern stops backtracking; measured.
const HEAVY_NS: u64 = 4_000_000;

/// Items of an `enum` compared in the time of one step.
const ITEMS_A_STEP: usize = 8;

/// Keywords whose subschemas apply to the same value again.
const SAME_VALUE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// Keywords whose subschemas apply to a part of the value, in addition to `properties`.
const PART: [&str; 9] = [
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "prefixItems",
    "contains",
    "unevaluatedProperties",
    "unevaluatedItems",
];

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The reason that the cost of a schema is not bounded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnboundedCost {
    /// It exceeds the limit for checking at all.
    TooCostly(String),
    /// It refers to something outside itself, or gives its parts their own names, so that it is
    /// unclear which subschema applies to what.
    Opaque(String),
}

/// The subschemas, and which others each one applies.
#[derive(Debug)]
pub(super) struct Graph {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    same: Vec<usize>,
    /// `properties`, by name.
    named: HashMap<String, usize>,
    /// Subschemas that may apply to any part.
    parts: Vec<usize>,
    steps: u64,
    on_text: Patterns,
    on_names: Patterns,
}

/// The patterns of one keyword.
#[derive(Debug, Default)]
struct Patterns {
    light: u64,
    heavy: u64,
}

/// The work of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) steps: u64,
    pub(super) ns: u64,
}

impl Graph {
    pub(super) fn new(schema: &Value) -> Result<Graph, UnboundedCost> {
        let mut builder =
            Builder { root: schema, anchors: None, known: HashMap::new(), waiting: Vec::new() };
        builder.meet(schema);
        let mut nodes = Vec::new();
        while let Some(schema) = builder.waiting.get(nodes.len()).copied() {
            if nodes.len() == NODES_MAX {
                let words = format!("it has more than {NODES_MAX} subschemas");
                return Err(UnboundedCost::TooCostly(words));
            }
            let node = builder.read(schema).map_err(UnboundedCost::Opaque)?;
            nodes.push(node);
        }
        let graph = Graph { nodes };
        graph
            .check_patterns()
            .and_then(|()| graph.check_steps())
            .map_err(UnboundedCost::TooCostly)?;
        Ok(graph)
    }

    fn check_patterns(&self) -> Result<(), String> {
        let patterns = || self.nodes.iter().flat_map(|node| [&node.on_text, &node.on_names]);
        let heavy: u64 = patterns().map(|patterns| patterns.heavy).sum();
        let count = patterns().filter(|it| it.light + it.heavy > 0).count();
        if heavy > HEAVY_MAX as u64 {
            return Err(format!(
                "it has {heavy} patterns with lookaround, backreferences or great size; at most \
                 {HEAVY_MAX} are allowed"
            ));
        }
        if count > PATTERNS_MAX {
            return Err(format!("it has more than {PATTERNS_MAX} patterns"));
        }
        Ok(())
    }

    /// Rejects a schema that applies too many subschemas, or endlessly itself, to one value.
    fn check_steps(&self) -> Result<(), String> {
        let mut steps = vec![Progress::Open; self.nodes.len()];
        let most = (0..self.nodes.len()).map(|node| self.reckon(node, 0, &mut steps)).max();
        match most.unwrap_or(0) {
            u64::MAX => Err("it applies itself endlessly to the same value".to_owned()),
            most if most > STEPS_MAX => Err(format!(
                "it applies {most} subschemas to one value; at most {STEPS_MAX} are allowed"
            )),
            _ => Ok(()),
        }
    }

    fn reckon(&self, node: usize, nesting: usize, steps: &mut [Progress]) -> u64 {
        match steps[node] {
            Progress::Known(steps) => return steps,
            Progress::Under => return u64::MAX,
            Progress::Open if nesting == NESTING_MAX => return u64::MAX,
            Progress::Open => steps[node] = Progress::Under,
        }
        let mut sum = self.nodes[node].steps;
        for same in &self.nodes[node].same {
            sum = sum.saturating_add(self.reckon(*same, nesting + 1, steps));
        }
        steps[node] = Progress::Known(sum);
        sum
    }

    /// Returns the work of checking this value, or `None` if it exceeds `ns_max`.
    pub(super) fn work(&self, value: &Value, ns_max: u64) -> Option<Work> {
        let mut walk = Walk { graph: self, work: Work::default(), ns_max };
        walk.value(value, &[0])?;
        Some(walk.work)
    }
}

#[derive(Clone, Copy)]
enum Progress {
    Open,
    Under,
    Known(u64),
}

struct Walk<'a> {
    graph: &'a Graph,
    work: Work,
    ns_max: u64,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value, applied: &[usize]) -> Option<()> {
        let mut all = Vec::with_capacity(applied.len());
        for node in applied {
            self.apply(*node, value, &mut all)?;
        }
        let nodes = &self.graph.nodes;
        match value {
            Value::Array(items) => {
                let next: Vec<usize> =
                    all.iter().flat_map(|node| nodes[*node].parts.iter().copied()).collect();
                items.iter().try_for_each(|item| self.value(item, &next))
            }
            Value::Object(members) => members.iter().try_for_each(|(name, member)| {
                let mut next = Vec::new();
                for node in all.iter().map(|node| &nodes[*node]) {
                    self.add(0, node.on_names.ns(name))?;
                    next.extend(node.named.get(name).into_iter().chain(&node.parts));
                }
                self.value(member, &next)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
        }
    }

    fn apply(&mut self, node: usize, value: &Value, all: &mut Vec<usize>) -> Option<()> {
        all.push(node);
        let node = &self.graph.nodes[node];
        self.add(node.steps, value.as_str().map_or(0, |text| node.on_text.ns(text)))?;
        node.same.iter().try_for_each(|same| self.apply(*same, value, all))
    }

    fn add(&mut self, steps: u64, pattern_ns: u64) -> Option<()> {
        self.work.steps = self.work.steps.saturating_add(steps);
        let ns = steps.saturating_mul(STEP_NS).saturating_add(pattern_ns);
        self.work.ns = self.work.ns.saturating_add(ns);
        (self.work.ns <= self.ns_max).then_some(())
    }
}

impl Patterns {
    fn add(&mut self, pattern: &str) {
        match pattern::light_size(pattern) {
            Some(size) => self.light += size + 1,
            None => self.heavy += 1,
        }
    }

    /// Returns the time to match a text. A light pattern takes a few nanoseconds per byte; a heavy
    /// one may start over at each byte.
    fn ns(&self, text: &str) -> u64 {
        if self.light + self.heavy == 0 {
            return 0;
        }
        let bytes = text.len() as u64;
        let light = if self.light == 0 { 0 } else { bytes.saturating_mul(10 + self.light / 4) };
        let each = bytes.saturating_mul(bytes).saturating_mul(2).saturating_add(HEAVY_NS);
        light.saturating_add(self.heavy.saturating_mul(each))
    }
}

/// Visits subschemas breadth first, so that a long chain of them needs no stack.
struct Builder<'a> {
    root: &'a Value,
    /// Subschemas by anchor, collected once: there may be as many references as anchors.
    anchors: Option<HashMap<&'a str, &'a Value>>,
    /// Visited subschemas, by memory address.
    known: HashMap<*const Value, usize>,
    /// The same, in order of their numbers.
    waiting: Vec<&'a Value>,
}

impl<'a> Builder<'a> {
    fn meet(&mut self, schema: &'a Value) -> usize {
        let next = self.waiting.len();
        let index = *self.known.entry(schema).or_insert(next);
        if index == next {
            self.waiting.push(schema);
        }
        index
    }

    fn read(&mut self, schema: &'a Value) -> Result<Node, String> {
        self.check_name(schema)?;
        let mut node = Node { steps: 1, ..Node::default() };
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            match keyword.as_str() {
                "properties" => {
                    let members = value.as_object().into_iter().flatten();
                    node.named
                        .extend(members.map(|(name, schema)| (name.clone(), self.meet(schema))));
                }
                "pattern" => node.on_text.add(value.as_str().unwrap_or_default()),
                "enum" => {
                    let items = value.as_array().map_or(0, Vec::len);
                    node.steps += (items / ITEMS_A_STEP) as u64;
                }
                keyword if SAME_VALUE.contains(&keyword) => {
                    let parts = subschemas(keyword, value);
                    node.same.extend(parts.into_iter().map(|schema| self.meet(schema)));
                }
                keyword if PART.contains(&keyword) => {
                    if keyword == "patternProperties" {
                        let patterns = value.as_object().into_iter().flatten();
                        patterns.for_each(|(pattern, _)| node.on_names.add(pattern));
                    }
                    let parts = subschemas(keyword, value);
                    node.parts.extend(parts.into_iter().map(|schema| self.meet(schema)));
                }
                keyword if REFERENCES.contains(&keyword) => {
                    let shown = || value.as_str().unwrap_or("a non-string value").chars().take(200);
                    let target = self.target(value).ok_or_else(|| {
                        format!(
                            "it refers to {}, which it does not contain",
                            shown().collect::<String>()
                        )
                    })?;
                    node.same.push(self.meet(target));
                }
                _ => {}
            }
        }
        self.read_names(schema, &mut node);
        Ok(node)
    }

    /// Rejects a part with its own name, below which references have another meaning.
    fn check_name(&self, schema: &Value) -> Result<(), String> {
        let is_named = |keyword: &str| schema.get(keyword).is_some_and(Value::is_string);
        let is_root = std::ptr::eq(schema, self.root);
        if !is_root && (is_named("$id") || is_named("id") && self.is_old()) {
            return Err("a subschema has its own $id".to_owned());
        }
        Ok(())
    }

    /// Reports whether the schema uses a draft that spells `$id` without the dollar sign.
    fn is_old(&self) -> bool {
        let draft = self.root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        draft.contains("draft-03") || draft.contains("draft-04")
    }

    /// Reads `propertyNames`, which applies to names, not parts: its own pattern counts here.
    fn read_names(&self, schema: &'a Value, node: &mut Node) {
        let pattern = schema.get("propertyNames").and_then(|names| names.get("pattern"));
        if let Some(pattern) = pattern.and_then(Value::as_str) {
            node.on_names.add(pattern);
        }
    }

    /// Resolves a reference within the document.
    fn target(&mut self, reference: &Value) -> Option<&'a Value> {
        let fragment = reference.as_str()?.strip_prefix('#')?;
        let fragment = percent::decode(fragment)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&fragment);
        }
        let anchors = self.anchors.get_or_insert_with(|| {
            let mut found = HashMap::new();
            gather_anchors(self.root, &mut found);
            found
        });
        anchors.get(&*fragment).copied()
    }
}

/// Returns the subschemas of a keyword: one schema, a list of them, or a map of them.
fn subschemas<'a>(keyword: &str, value: &'a Value) -> Vec<&'a Value> {
    let named = ["patternProperties", "dependentSchemas", "dependencies"].contains(&keyword);
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) if named => map.values().collect(),
        other => vec![other],
    }
}

/// Collects anchors; the first subschema of each anchor counts.
fn gather_anchors<'a>(schema: &'a Value, found: &mut HashMap<&'a str, &'a Value>) {
    match schema {
        Value::Object(map) => {
            for keyword in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = map.get(keyword).and_then(Value::as_str) {
                    found.entry(name).or_insert(schema);
                }
            }
            map.values().for_each(|value| gather_anchors(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| gather_anchors(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn work(schema: &Value, value: &Value) -> Option<Work> {
        Graph::new(schema).unwrap().work(value, 1_000_000_000)
    }

    fn excess(schema: &Value) -> String {
        match Graph::new(schema) {
            Err(UnboundedCost::TooCostly(words)) => words,
            other => panic!("{schema}: {other:?}"),
        }
    }

    #[test]
    fn schemas_with_external_or_broken_references_are_opaque() {
        for schema in [
            json!({"$ref": "http://127.0.0.1:9/never-fetched.json"}),
            json!({"$id": "http://e/r", "properties": {"a": {"$ref": "http://e/r"}}}),
            json!({"$defs": {"a": {"$id": "x", "$ref": "#/b"}}, "$ref": "#/$defs/a"}),
            json!({"$ref": "#/nothing"}),
            json!({"$ref": "#%zz"}),
            json!({"$ref": 7}),
        ] {
            assert!(matches!(Graph::new(&schema), Err(UnboundedCost::Opaque(_))), "{schema}");
        }
        let odd =
            json!({"$defs": {"a b%": {}}, "$ref": "#/$defs/a%20b%25", "properties": {"id": {}}});
        assert!(Graph::new(&odd).is_ok());
    }

    #[test]
    fn ordinary_arguments_take_a_step_for_each_value() {
        for (schema, value, steps) in [
            (json!({}), json!({"a": 1}), 1),
            (json!(true), json!({"a": 1}), 1),
            (json!({"properties": {"a": {"type": "string"}, "b": {}}}), json!({"a": "x"}), 2),
            (json!({"items": {"type": "integer"}}), json!([1, 2, 3]), 4),
            (json!({"allOf": [{}, {"anyOf": [{}, {}]}]}), json!({}), 5),
            (
                json!({"$defs": {"tree": {"properties": {"children": {"items":
                    {"$ref": "#/$defs/tree"}}}}}, "$ref": "#/$defs/tree"}),
                json!({"children": [{"children": []}, {}]}),
                8,
            ),
        ] {
            assert_eq!(work(&schema, &value).map(|work| work.steps), Some(steps), "{schema}");
        }
    }

    #[test]
    fn exponential_work_is_detected_before_it_is_done() {
        let branch = |extra: &str| json!({"properties": {"a": {"$ref": "#"}}, "required": [extra]});
        let schema = json!({"anyOf": [branch("x"), branch("y")]});
        let nested = |depth: usize| (0..depth).fold(json!({}), |value, _| json!({"a": value}));
        let graph = Graph::new(&schema).unwrap();
        assert!(graph.work(&nested(6), 10_000_000).is_some());
        assert_eq!(graph.work(&nested(60), 10_000_000), None);
    }

    #[test]
    fn many_items_under_many_subschemas_are_seen_before_they_are_checked() {
        let schema = json!({"items": {"allOf": vec![json!({"type": "integer"}); 10_000]}});
        assert!(work(&schema, &json!([1, 2])).is_some());
        assert_eq!(work(&schema, &json!(vec![1; 10_000])), None);
    }

    #[test]
    fn a_schema_that_repeats_itself_on_one_value_is_beyond_the_bound() {
        let mut definitions = serde_json::Map::new();
        for level in 0..64 {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            definitions.insert(format!("l{level}"), json!({"anyOf": [next, next]}));
        }
        definitions.insert("l64".to_owned(), json!({"type": "string"}));
        for schema in [
            json!({"$ref": "#/$defs/l0", "$defs": definitions}),
            json!({"$ref": "#"}),
            json!({"$anchor": "x", "allOf": [{"$ref": "#x"}]}),
        ] {
            assert!(excess(&schema).contains("applies itself endlessly"), "{schema}");
        }
        let wide = json!({"allOf": vec![json!({}); 20_001]});
        assert!(excess(&wide).contains("20002 subschemas to one value"));
    }

    #[test]
    fn a_long_chain_of_references_is_refused_without_a_deep_stack() {
        let mut definitions = serde_json::Map::new();
        for link in 0..20_000 {
            let next = json!({"$ref": format!("#/$defs/l{}", link + 1)});
            definitions.insert(format!("l{link}"), next);
        }
        definitions.insert("l20000".to_owned(), json!({}));
        excess(&json!({"$ref": "#/$defs/l0", "$defs": definitions}));
    }

    #[test]
    fn many_references_to_many_anchors_are_followed_without_end() {
        let anchors: Vec<Value> = (0..5_000).map(|n| json!({"$anchor": format!("a{n}")})).collect();
        let references: serde_json::Map<String, Value> =
            (0..5_000).map(|n| (format!("p{n}"), json!({"$ref": format!("#a{n}")}))).collect();
        let schema = json!({"$defs": {"all": anchors}, "properties": references});
        assert_eq!(work(&schema, &json!({"p7": 1})).map(|work| work.steps), Some(3));
    }

    #[test]
    fn patterns_add_to_the_cost() {
        let heavy = json!({"pattern": "(?=.*x)a"});
        assert!(excess(&json!({"allOf": vec![heavy.clone(); 400]})).contains("400 patterns"));
        let few = json!({"properties": {"a": {"allOf": vec![heavy; 8]}, "b": {}}});
        let ns = |value: Value| work(&few, &value).map(|work| work.ns);
        assert!(ns(json!({"b": "x".repeat(100_000)})) < Some(1000), "it is not applied there");
        assert!(ns(json!({"a": "x"})) > Some(8 * HEAVY_NS));
        assert_eq!(ns(json!({"a": "x".repeat(20_000)})), None);
        let named = json!({"patternProperties": {"(?=.*x)a": {}}});
        assert!(work(&named, &json!({"b": 1})).unwrap().ns > HEAVY_NS);
        let light = json!({"properties": {"a": {"pattern": "^[a-z]+$"}}});
        assert!(work(&light, &json!({"a": "abc"})).unwrap().ns < 1000);
        let many: Vec<Value> = (0..1001).map(|n| json!({"pattern": format!("a{n}")})).collect();
        assert!(excess(&json!({"anyOf": many})).contains("more than 1000 patterns"));
    }
}
