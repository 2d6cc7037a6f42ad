//! A plugin and its operations, as their author writes them.

use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::protocol::{InputSchema, OperationSchema, OutputSchema};

/// A plugin under construction; [`Plugin::run`] serves it.
pub struct Plugin {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) operations: Vec<OfferedOperation>,
}

/// An operation with its handler.
pub(crate) struct OfferedOperation {
    pub(crate) schema: OperationSchema,
    pub(crate) handler: Handler,
}

/// An operation's schema.
pub struct Operation(OperationSchema);

/// One input of an operation.
pub struct Input(InputSchema);

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
}

/// The inputs of one execution of an operation.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub inputs: Map<String, Value>,
    /// The host's configuration for this plugin.
    pub config: Arc<Map<String, Value>>,
}

/// The result of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub output: String,
    pub data: Map<String, Value>,
}

pub(crate) type Handler =
    Arc<dyn Fn(Request) -> BoxFuture<'static, Result<Answer, String>> + Send + Sync>;

impl Plugin {
    pub fn new(name: &str, version: &str) -> Plugin {
        let (name, version) = (name.to_owned(), version.to_owned());
        Plugin { name, version, description: String::new(), operations: Vec::new() }
    }

    #[must_use]
    pub fn describe(self, description: &str) -> Plugin {
        Plugin { description: description.to_owned(), ..self }
    }

    /// Adds an operation. It returns an [`Answer`] or any JSON; an error is reported to the caller.
    #[must_use]
    pub fn operation<F, D, A, E>(mut self, operation: Operation, handler: F) -> Plugin
    where
        F: Fn(Request) -> D + Send + Sync + 'static,
        D: Future<Output = Result<A, E>> + Send + 'static,
        A: Into<Answer>,
        E: Display,
    {
        let handler: Handler = Arc::new(move |request| {
            let doing = handler(request);
            async move {
                let done = AssertUnwindSafe(doing).catch_unwind().await;
                let done = done.map_err(|_| "the plugin panicked".to_owned())?;
                done.map(Into::into).map_err(|error| error.to_string())
            }
            .boxed()
        });
        self.operations.push(OfferedOperation { schema: operation.0, handler });
        self
    }
}

impl Operation {
    pub fn new(name: &str, description: &str) -> Operation {
        Operation(OperationSchema {
            name: name.to_owned(),
            description: description.to_owned(),
            ..OperationSchema::default()
        })
    }

    #[must_use]
    pub fn input(mut self, input: Input) -> Operation {
        self.0.inputs.push(input.0);
        self
    }

    #[must_use]
    pub fn output(mut self, name: &str, kind: Kind, description: &str) -> Operation {
        let r#type = kind.as_str().to_owned();
        let (name, description) = (name.to_owned(), description.to_owned());
        self.0.outputs.push(OutputSchema { name, r#type, description });
        self
    }
}

impl Input {
    pub fn new(name: &str, kind: Kind, description: &str) -> Input {
        Input(InputSchema {
            name: name.to_owned(),
            r#type: kind.as_str().to_owned(),
            description: description.to_owned(),
            ..InputSchema::default()
        })
    }

    #[must_use]
    pub fn required(mut self) -> Input {
        self.0.required = true;
        self
    }

    /// The value if the caller gives none; the operation has to apply it itself.
    #[must_use]
    pub fn default(mut self, value: impl Into<Value>) -> Input {
        // The wire format has strings: a text unchanged, everything else as JSON.
        self.0.default = match value.into() {
            Value::String(text) => text,
            other => other.to_string(),
        };
        self
    }

    #[must_use]
    pub fn url(self) -> Input {
        self.validated("url")
    }

    #[must_use]
    pub fn email(self) -> Input {
        self.validated("email")
    }

    fn validated(mut self, rule: &str) -> Input {
        self.0.validation = rule.to_owned();
        self
    }
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }
}

impl Request {
    /// Returns a required text input.
    pub fn text(&self, name: &str) -> Result<&str, String> {
        let value = self.inputs.get(name).and_then(Value::as_str);
        value.ok_or_else(|| format!("'{name}' is required and must be a string"))
    }
}

/// An object becomes data, a text becomes output, and anything else becomes its JSON text.
impl From<Value> for Answer {
    fn from(value: Value) -> Answer {
        match value {
            Value::Object(data) => Answer { data, output: String::new() },
            Value::String(output) => Answer { output, ..Answer::default() },
            other => Answer { output: other.to_string(), ..Answer::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(plugin: &Plugin, inputs: &Value) -> Result<Answer, String> {
        let inputs = inputs.as_object().cloned().unwrap_or_default();
        let handler = &plugin.operations[0].handler;
        let running = handler(Request { inputs, ..Request::default() });
        running.now_or_never().expect("it does not wait")
    }

    #[test]
    fn answers_errors_and_panics_come_back() {
        let plugin =
            Plugin::new("p", "1").operation(Operation::new("o", ""), |request| async move {
                match request.text("want")? {
                    "panic" => panic!("as asked"),
                    "data" => Ok::<_, String>(json!({"a": 1})),
                    "text" => Ok(json!("said")),
                    _ => Ok(json!([1, 2])),
                }
            });
        let answer = |want: &str| run(&plugin, &json!({"want": want}));
        assert_eq!(answer("panic"), Err("the plugin panicked".to_owned()));
        assert_eq!(answer("data").map(|answer| answer.data["a"].clone()), Ok(json!(1)));
        assert_eq!(answer("text").map(|answer| answer.output), Ok("said".to_owned()));
        assert_eq!(answer("list").map(|answer| answer.output), Ok("[1,2]".to_owned()));
        assert_eq!(
            run(&plugin, &json!({})),
            Err("'want' is required and must be a string".to_owned())
        );
    }

    #[test]
    fn defaults_are_texts_on_the_wire() {
        for (value, expected) in [
            (json!("a"), "a"),
            (json!(7), "7"),
            (json!(true), "true"),
            (json!(["a"]), "[\"a\"]"),
            (json!({"a": 1}), "{\"a\":1}"),
        ] {
            let Input(input) = Input::new("x", Kind::Object, "").default(value);
            assert_eq!(input.default, expected);
        }
        let Input(input) = Input::new("x", Kind::String, "d").required().url();
        assert!(input.required && input.validation == "url" && input.r#type == "string");
    }
}
