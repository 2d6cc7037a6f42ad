//! A tool's input schema, compiled once, against which arguments are checked before the call is
//! forwarded. Remote references are never fetched. A schema comes from a server that may be
//! hostile: the cost of a check is estimated before it runs.

mod cost;
mod example;
mod fault;
mod pattern;
mod validator;

use serde_json::Value;
use text::json::{self, Object};

use crate::refusal::Refusal;
use cost::{Graph, UnboundedCost};
use fault::Advice;
use validator::Validator;

/// A longer schema is not compiled; real ones are far smaller.
const SCHEMA_BYTES_MAX: usize = 1024 * 1024;

/// A schema without patterns and references that is no longer than this is within every limit.
const PLAIN_BYTES_MAX: usize = 16 * 1024;

/// The longest work allowed on a thread that others wait for.
const AT_ONCE_NS: u64 = 500_000;

/// A check that would take longer is not run.
const CHECK_NS_MAX: u64 = 2_000_000_000;

/// The measured time to compile a byte of a schema, and a pattern in it.
const COMPILE_BYTE_NS: u64 = 60;
const COMPILE_PATTERN_NS: u64 = 300_000;

/// The measured worst-case time to produce a refusal's message, for each step of the check.
const WORDS_STEP_NS: u64 = 15_000;

/// An estimate of a schema's cost from its text, before anything is compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    compile_ns: u64,
    excess: Option<String>,
}

impl Outline {
    pub fn of(json: Option<&str>) -> Outline {
        let Some(json) = json else { return Outline::default() };
        let patterns = json.matches("attern").count() as u64;
        // A keyword may be written with escapes; its text then does not show its cost.
        let is_escaped = json.contains("\\u");
        let compile_ns = if is_escaped {
            u64::MAX
        } else {
            json.len() as u64 * COMPILE_BYTE_NS + patterns * COMPILE_PATTERN_NS
        };
        // `$ref`, `$dynamicRef`, `$recursiveRef`.
        let refers = || json.contains("ref\"") || json.contains("Ref\"");
        let is_short = json.len() <= PLAIN_BYTES_MAX;
        let is_plain = is_short && !is_escaped && patterns == 0 && !refers();
        let excess = if is_plain { None } else { excess(json) };
        Outline { compile_ns, excess }
    }

    /// Returns the reason that arguments cannot be checked against the schema in bounded time.
    pub fn excess(&self) -> Option<&str> {
        self.excess.as_deref()
    }

    /// Reports whether compiling it is quick enough not to block others.
    pub fn compiles_at_once(&self) -> bool {
        self.compile_ns <= AT_ONCE_NS
    }
}

fn excess(json: &str) -> Option<String> {
    if json.len() > SCHEMA_BYTES_MAX {
        return Some(format!("it has {} bytes", json.len()));
    }
    match Graph::new(&serde_json::from_str(json).ok()?) {
        Err(UnboundedCost::TooCostly(words)) => Some(words),
        Ok(_) | Err(UnboundedCost::Opaque(_)) => None,
    }
}

pub enum Schema {
    /// The tool has no schema and accepts any arguments.
    Absent,
    Compiled(Box<CompiledSchema>),
    /// The reason it does not compile; calls pass with a warning.
    Unusable(String),
}

pub struct CompiledSchema {
    validator: Validator,
    graph: Graph,
    advice: Advice,
}

impl Schema {
    pub fn compile(json: Option<&str>) -> Schema {
        match json.map(CompiledSchema::new) {
            None => Schema::Absent,
            Some(Ok(compiled)) => Schema::Compiled(Box::new(compiled)),
            Some(Err(why)) => Schema::Unusable(why),
        }
    }

    pub fn check(&self, arguments: &Object) -> SchemaVerdict {
        self.checked(arguments, CHECK_NS_MAX).unwrap_or_else(|| {
            SchemaVerdict::Unknown(
                "arguments were not checked: checking them against the tool's input schema would \
                 take too long"
                    .to_owned(),
            )
        })
    }

    /// Like `check`, but returns `None` if it might block others.
    pub fn check_at_once(&self, arguments: &Object) -> Option<SchemaVerdict> {
        self.checked(arguments, AT_ONCE_NS)
    }

    fn checked(&self, arguments: &Object, ns_max: u64) -> Option<SchemaVerdict> {
        match self {
            Schema::Absent => Some(SchemaVerdict::Fits),
            Schema::Unusable(why) => Some(SchemaVerdict::Unknown(format!(
                "arguments were not checked: the tool's input schema does not compile ({why})"
            ))),
            Schema::Compiled(compiled) => compiled.check(arguments.value(), ns_max),
        }
    }
}

impl CompiledSchema {
    fn new(json: &str) -> Result<CompiledSchema, String> {
        if json.len() > SCHEMA_BYTES_MAX {
            return Err(format!("it has {} bytes", json.len()));
        }
        let schema: Value = serde_json::from_str(json).map_err(|error| json::explain(&error))?;
        let graph = Graph::new(&schema).map_err(|unbounded| match unbounded {
            UnboundedCost::TooCostly(words) | UnboundedCost::Opaque(words) => words,
        })?;
        let validator = Validator::new(&schema)?;
        Ok(CompiledSchema { validator, graph, advice: Advice::of(&schema) })
    }

    fn check(&self, arguments: &Value, ns_max: u64) -> Option<SchemaVerdict> {
        let work = self.graph.work(arguments, ns_max)?;
        if self.validator.is_valid(arguments) {
            return Some(SchemaVerdict::Fits);
        }
        let words_ns = work.ns.saturating_add(work.steps.saturating_mul(WORDS_STEP_NS));
        match (words_ns <= ns_max, ns_max == CHECK_NS_MAX) {
            (true, _) => Some(SchemaVerdict::Faulty(self.refusal(arguments))),
            (false, true) => Some(SchemaVerdict::Faulty(Refusal::invalid_arguments(
                "the arguments do not match the tool's input schema, and are too large to say where",
            ))),
            (false, false) => None,
        }
    }

    fn refusal(&self, arguments: &Value) -> Refusal {
        let violations = self.validator.violations(arguments, fault::FAULTS_MAX);
        fault::refusal(violations, &self.advice)
    }
}

/// The result of checking arguments against the schema.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaVerdict {
    Fits,
    Unknown(String),
    Faulty(Refusal),
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &str, arguments: &str) -> SchemaVerdict {
        let arguments = Object::parse(arguments).unwrap().unwrap();
        Schema::compile(Some(schema)).check(&arguments)
    }

    fn message(checked: SchemaVerdict) -> String {
        match checked {
            SchemaVerdict::Faulty(refusal) => refusal.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_fault_names_its_path_and_reason() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"object","properties":{"n":{"type":"integer"}}}},"required":["b"]}"#;
        let message = message(check(schema, r#"{"a":{"n":"x"}}"#));
        assert_eq!(
            message,
            "invalid arguments: b is required; a.n must be a whole number, got \"x\""
        );
        assert_eq!(check(schema, r#"{"a":{"n":3},"b":1}"#), SchemaVerdict::Fits);
    }

    #[test]
    fn drafts_are_told_apart() {
        let draft7 = r#"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"t":{"items":[{"type":"string"}]}}}"#;
        assert!(matches!(check(draft7, r#"{"t":[1]}"#), SchemaVerdict::Faulty(_)));
        let latest = r#"{"properties":{"t":{"prefixItems":[{"type":"string"}]}}}"#;
        assert!(matches!(check(latest, r#"{"t":[1]}"#), SchemaVerdict::Faulty(_)));
    }

    #[test]
    fn a_schema_that_does_not_compile_gives_an_unknown_verdict() {
        for schema in [
            r#"{"$ref":"http://127.0.0.1:9/never-fetched.json"}"#,
            r#"{"type":"nonsense"}"#,
            r#"{"properties":{"a":{"pattern":"("}}}"#,
            r#"[]"#,
        ] {
            assert!(matches!(check(schema, r#"{"a":"x"}"#), SchemaVerdict::Unknown(_)), "{schema}");
        }
        assert_eq!(Schema::compile(None).check(&Object::empty()), SchemaVerdict::Fits);
    }

    #[test]
    fn an_exponential_schema_ends() {
        let branch = |extra: &str| {
            format!(r##"{{"properties":{{"a":{{"$ref":"#"}}}},"required":["{extra}"]}}"##)
        };
        let schema = format!(r#"{{"anyOf":[{},{}]}}"#, branch("x"), branch("y"));
        let nested =
            |depth: usize| format!("{}{{}}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        assert!(matches!(check(&schema, &nested(3)), SchemaVerdict::Faulty(_)));
        assert!(matches!(check(&schema, &nested(100)), SchemaVerdict::Unknown(_)));
        let arguments = Object::parse(&nested(10)).unwrap().unwrap();
        assert_eq!(Schema::compile(Some(&schema)).check_at_once(&arguments), None);
    }

    #[test]
    fn an_excessive_schema_is_recognized_from_its_text() {
        let patterns = |count| json!({"allOf": vec![json!({"pattern": "(?=.*x)a"}); count]});
        for (schema, reason) in [
            (patterns(400).to_string(), Some("400 patterns")),
            (patterns(400).to_string().replace("pattern", r"p\u0061ttern"), Some("400 patterns")),
            (r##"{"$ref":"#"}"##.to_owned(), Some("applies itself endlessly")),
            (format!(r#"{{"title":"{}"}}"#, "x".repeat(SCHEMA_BYTES_MAX)), Some("bytes")),
            (patterns(3).to_string(), None),
            (r#"{"type":"object","properties":{"a":{"type":"string"}}}"#.to_owned(), None),
            ("no JSON".to_owned(), None),
        ] {
            let outline = Outline::of(Some(&schema));
            let found = outline.excess().unwrap_or_default();
            assert!(found.contains(reason.unwrap_or("")), "{schema}: {found}");
            assert_eq!(outline.excess().is_some(), reason.is_some(), "{schema}");
        }
        let ordinary = r#"{"type":"object","properties":{"a":{"pattern":"^[a-z]+$"}}}"#;
        assert!(Outline::of(Some(ordinary)).compiles_at_once());
        assert!(!Outline::of(Some(&patterns(3).to_string())).compiles_at_once());
        let hidden = ordinary.replace("pattern", r"p\u0061ttern");
        assert!(!Outline::of(Some(&hidden)).compiles_at_once());
    }

    #[test]
    fn a_costly_check_is_not_made_at_once() {
        let schema = r#"{"properties":{"a":{"pattern":"(?=.*x)a"},"b":{"type":"string"}}}"#;
        let schema = Schema::compile(Some(schema));
        let arguments = |text: String| Object::parse(&text).unwrap().unwrap();
        let other = arguments(format!(r#"{{"b":"{}"}}"#, "a".repeat(100_000)));
        assert_eq!(schema.check_at_once(&other), Some(SchemaVerdict::Fits));
        let short = arguments(r#"{"a":"ax"}"#.to_owned());
        assert_eq!(
            (schema.check_at_once(&short), schema.check(&short)),
            (None, SchemaVerdict::Fits)
        );
        let huge = arguments(format!(r#"{{"a":"{}"}}"#, "a".repeat(100_000)));
        assert!(matches!(schema.check(&huge), SchemaVerdict::Unknown(_)));
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let schema = r#"{"properties":{"a":{"type":"string","pattern":"^(a+)+$(?=x)"}}}"#;
        let arguments = format!(r#"{{"a":"{}!"}}"#, "a".repeat(200));
        assert!(matches!(check(schema, &arguments), SchemaVerdict::Faulty(_)));
    }
}
