//! Plugins for Countersign and AWF: a process that writes its address to stdout, and serves gRPC
//! there. [`Plugin`] serves one; the generated types of the protocol are for hosts as well. Depends
//! on nothing else of Countersign.
//!
//! A plugin with one operation. Its `main` returns `plugin().run()`; the operation is a function
//! that a test can call:
//!
//! ```rust
//! # #[cfg(feature = "server")]
//! # {
//! use plugin_sdk::{Answer, Input, Kind, Operation, Plugin, Request};
//! use serde_json::{Map, Value, json};
//!
//! fn echo(request: &Request) -> Result<Value, String> {
//!     let prefix = request.inputs.get("prefix").and_then(Value::as_str).unwrap_or_default();
//!     Ok(json!({"text": format!("{prefix}{}", request.text("text")?)}))
//! }
//!
//! fn plugin() -> Plugin {
//!     let operation = Operation::new("echo", "Returns a text, after a prefix if there is one.")
//!         .input(Input::new("text", Kind::String, "The text to return.").required())
//!         .input(Input::new("prefix", Kind::String, "The text to put before it."))
//!         .output("text", Kind::String, "The text with its prefix.");
//!     Plugin::new("echo", "0.1.0")
//!         .describe("Returns what it is given")
//!         .operation(operation, |request| async move { echo(&request) })
//! }
//!
//! let given = [("text", "you"), ("prefix", "hello ")];
//! let inputs = Map::from_iter(given.map(|(name, text)| (name.to_owned(), json!(text))));
//! let data = echo(&Request { inputs, ..Request::default() }).unwrap();
//! assert_eq!(data, json!({"text": "hello you"}));
//! assert_eq!(Answer::from(data).data["text"], "hello you");
//! assert!(echo(&Request::default()).is_err(), "the text is required");
//! # let _ = plugin();
//! # }
//! ```

pub mod handshake;
#[cfg(feature = "server")]
mod plugin;
pub mod protocol;
#[cfg(feature = "server")]
mod service;

#[cfg(feature = "server")]
pub use plugin::{Answer, Input, Kind, Operation, Plugin, Request};
