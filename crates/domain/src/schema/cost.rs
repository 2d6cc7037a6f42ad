//! How much work a schema can make. References let a small schema ask the same question of the
//! same value over and over, or twice as often with each level of nesting; before arguments are
//! checked, this says how deep they may be so that the check stays affordable.

use std::collections::HashMap;

use serde_json::Value;

/// Subschemas applied to one argument object. A step takes up to 15 µs, most of it for the words of
/// a refusal, so this is under half a second; real schemas stay below a thousand.
const STEPS_MAX: u64 = 20_000;

/// Subschemas nested in one another on the same value, references followed. The validator calls
/// itself for each, and again for each level of the arguments: its stack must hold that.
const NESTING_MAX: usize = 32;

/// Subschemas of one schema that are looked at; more are taken for hostile.
const NODES_MAX: usize = 50_000;

/// JSON is not read deeper than this, so nothing deeper has to be reckoned.
const DEPTH_MAX: usize = 128;

/// Keywords whose subschemas look at the same value again.
const SAME_VALUE: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

/// Keywords whose subschemas look at a part of the value.
const PART: [&str; 9] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "contains",
    "unevaluatedProperties",
    "unevaluatedItems",
];

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The deepest arguments that are affordable: `None` where not even flat ones are.
pub(super) fn depth_max(schema: &Value) -> Option<usize> {
    let graph = Graph::new(schema)?;
    let mut parts = vec![0; graph.nodes.len()];
    for depth in 0..=DEPTH_MAX {
        let steps = graph.steps(&parts);
        if steps.first().is_none_or(|steps| *steps > STEPS_MAX) {
            return depth.checked_sub(1);
        }
        if steps == parts {
            // Nothing grows any more: the schema does not come back to itself.
            return Some(DEPTH_MAX);
        }
        parts = steps;
    }
    Some(DEPTH_MAX)
}

/// The subschemas and which of them each one applies.
struct Graph {
    nodes: Vec<Node>,
}

#[derive(Default)]
struct Node {
    same: Vec<usize>,
    part: Vec<usize>,
}

impl Graph {
    fn new(schema: &Value) -> Option<Graph> {
        let mut builder = Builder { root: schema, known: HashMap::new(), waiting: Vec::new() };
        builder.meet(schema);
        let mut nodes = Vec::new();
        while let Some(schema) = builder.waiting.get(nodes.len()).copied() {
            if nodes.len() == NODES_MAX {
                return None;
            }
            let node = builder.read(schema);
            nodes.push(node);
        }
        Some(Graph { nodes })
    }

    /// Steps that each node costs, given what nodes cost one level further down. A node that
    /// applies itself to the same value never ends: it costs more than there is.
    fn steps(&self, below: &[u64]) -> Vec<u64> {
        let mut steps = vec![Progress::Open; self.nodes.len()];
        for node in 0..self.nodes.len() {
            self.reckon(node, 0, below, &mut steps);
        }
        let known = steps.into_iter().map(|progress| match progress {
            Progress::Known(steps) => steps,
            Progress::Open | Progress::Under => u64::MAX,
        });
        known.collect()
    }

    fn reckon(&self, node: usize, nesting: usize, below: &[u64], steps: &mut [Progress]) -> u64 {
        match steps[node] {
            Progress::Known(steps) => return steps,
            Progress::Under => return u64::MAX,
            Progress::Open if nesting == NESTING_MAX => return u64::MAX,
            Progress::Open => steps[node] = Progress::Under,
        }
        let mut sum: u64 = 1;
        for same in &self.nodes[node].same {
            sum = sum.saturating_add(self.reckon(*same, nesting + 1, below, steps));
        }
        for part in &self.nodes[node].part {
            sum = sum.saturating_add(below[*part]);
        }
        steps[node] = Progress::Known(sum);
        sum
    }
}

#[derive(Clone, Copy)]
enum Progress {
    Open,
    Under,
    Known(u64),
}

/// Meets subschemas breadth first, so that a long chain of them needs no stack.
struct Builder<'a> {
    root: &'a Value,
    /// Subschemas that have been met, by where they are in memory.
    known: HashMap<*const Value, usize>,
    /// The same in the order of their numbers.
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

    fn read(&mut self, schema: &'a Value) -> Node {
        let mut node = Node::default();
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            if SAME_VALUE.contains(&keyword.as_str()) {
                let parts = subschemas(keyword, value);
                node.same.extend(parts.into_iter().map(|schema| self.meet(schema)));
            } else if PART.contains(&keyword.as_str()) {
                let parts = subschemas(keyword, value);
                node.part.extend(parts.into_iter().map(|schema| self.meet(schema)));
            } else if REFERENCES.contains(&keyword.as_str())
                && let Some(target) = self.target(value)
            {
                node.same.push(self.meet(target));
            }
        }
        node
    }

    /// What a reference within the document points at. Others do not compile.
    fn target(&self, reference: &Value) -> Option<&'a Value> {
        let fragment = reference.as_str()?.strip_prefix('#')?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&fragment.replace("%25", "%"));
        }
        anchored(self.root, fragment)
    }
}

/// One schema, a list of them, or a map of them.
fn subschemas<'a>(keyword: &str, value: &'a Value) -> Vec<&'a Value> {
    let named = ["properties", "patternProperties", "dependentSchemas"].contains(&keyword);
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) if named => map.values().collect(),
        other => vec![other],
    }
}

fn anchored<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    match schema {
        Value::Object(map) => {
            let is_it = |keyword| map.get(keyword).and_then(Value::as_str) == Some(name);
            if is_it("$anchor") || is_it("$dynamicAnchor") {
                return Some(schema);
            }
            map.values().find_map(|value| anchored(value, name))
        }
        Value::Array(list) => list.iter().find_map(|value| anchored(value, name)),
        _ => None,
    }
}

/// How deep a value is: 0 for one without parts.
pub(super) fn depth(value: &Value) -> usize {
    let parts: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(list) => Box::new(list.iter()),
        Value::Object(map) => Box::new(map.values()),
        _ => return 0,
    };
    1 + parts.map(depth).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ordinary_schemas_are_affordable_at_any_depth() {
        for schema in [
            json!({}),
            json!(true),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"items": {"enum": [1]}}}}),
            json!({"$defs": {"tree": {"properties": {"children": {"items": {"$ref": "#/$defs/tree"}}}}},
                   "$ref": "#/$defs/tree"}),
        ] {
            assert_eq!(depth_max(&schema), Some(DEPTH_MAX), "{schema}");
        }
    }

    #[test]
    fn a_schema_that_doubles_with_each_level_is_affordable_to_a_depth() {
        let branch = |extra: &str| json!({"properties": {"a": {"$ref": "#"}}, "required": [extra]});
        let schema = json!({"anyOf": [branch("x"), branch("y")]});
        let depth = depth_max(&schema).unwrap();
        assert!((6..20).contains(&depth), "{depth}");
    }

    #[test]
    fn a_schema_that_repeats_itself_on_one_value_is_not_affordable() {
        let mut definitions = serde_json::Map::new();
        for level in 0..64 {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            definitions.insert(format!("l{level}"), json!({"anyOf": [next, next]}));
        }
        definitions.insert("l64".to_owned(), json!({"type": "string"}));
        let schema = json!({"$ref": "#/$defs/l0", "$defs": definitions});
        assert_eq!(depth_max(&schema), None);
        assert_eq!(depth_max(&json!({"$ref": "#"})), None);
        assert_eq!(depth_max(&json!({"$anchor": "x", "allOf": [{"$ref": "#x"}]})), None);
    }

    #[test]
    fn a_long_chain_of_references_is_refused_without_a_deep_stack() {
        let mut definitions = serde_json::Map::new();
        for link in 0..20_000 {
            let next = json!({"$ref": format!("#/$defs/l{}", link + 1)});
            definitions.insert(format!("l{link}"), next);
        }
        definitions.insert("l20000".to_owned(), json!({}));
        let schema = json!({"$ref": "#/$defs/l0", "$defs": definitions});
        assert_eq!(depth_max(&schema), None);
    }

    #[test]
    fn depth_counts_levels() {
        for (value, expected) in [(json!(1), 0), (json!({}), 1), (json!({"a": [1]}), 2)] {
            assert_eq!(depth(&value), expected, "{value}");
        }
    }
}
