//! A scripted server's responses to `tools/list`: its tools, or the behaviour of broken, hostile or
//! enormous servers.

use std::sync::atomic::{AtomicU64, Ordering};

use mcp::ErrorObject;
use mcp::message::{Raw, Request, raw, to_raw};
use serde_json::{Value, json};

pub(crate) enum Listing {
    Plain,
    /// `count` tools that differ in their number, `page` at a time.
    Made {
        count: usize,
        page: usize,
    },
    /// Every page names the same next cursor.
    Loop,
    /// Every page names a new cursor.
    Endless(AtomicU64),
    /// This response, whatever it is.
    Answer(Value),
    /// Responds this many times, then never again.
    Falter(AtomicU64),
}

impl Listing {
    pub(crate) fn read(list: &Value) -> Listing {
        match list {
            Value::Null => Listing::Plain,
            Value::String(word) if word == "loop" => Listing::Loop,
            Value::String(word) if word == "endless" => Listing::Endless(AtomicU64::new(0)),
            list if list.get("answer").is_some() => Listing::Answer(list["answer"].clone()),
            list if list.get("falter").is_some() => {
                Listing::Falter(AtomicU64::new(list["falter"].as_u64().unwrap_or(1)))
            }
            list => {
                let number = |name: &str| list[name].as_u64().expect("a number") as usize;
                Listing::Made { count: number("made"), page: number("page") }
            }
        }
    }

    /// Reports whether the list contains generated tools.
    pub(crate) fn makes_tools(&self) -> bool {
        matches!(self, Listing::Made { .. })
    }

    pub(crate) async fn answer(&self, request: &Request, tools: Value) -> Result<Raw, ErrorObject> {
        Ok(match self {
            Listing::Plain => to_raw(&json!({"tools": tools})),
            Listing::Made { count, page } => made(start(request), *page, *count),
            Listing::Loop => to_raw(&json!({"tools": tools, "nextCursor": "again"})),
            Listing::Endless(next) => {
                let cursor = next.fetch_add(1, Ordering::Relaxed).to_string();
                to_raw(&json!({"tools": tools, "nextCursor": cursor}))
            }
            Listing::Answer(answer) => to_raw(answer),
            Listing::Falter(left) => {
                let counted = |left: u64| left.checked_sub(1);
                if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted).is_err() {
                    std::future::pending::<()>().await;
                }
                to_raw(&json!({"tools": tools}))
            }
        })
    }
}

/// Returns the start of a page: the cursor of a generated list is the number of its first tool.
fn start(request: &Request) -> usize {
    let params: Value = request.params().unwrap_or_default();
    params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0)
}

fn made(start: usize, page: usize, count: usize) -> Raw {
    let end = (start + page).min(count);
    let tools: Vec<String> = (start..end)
        .map(|n| format!(r#"{{"name":"made_{n}","description":"Tool number {n}."}}"#))
        .collect();
    let next = if end < count { format!(r#","nextCursor":"{end}""#) } else { String::new() };
    raw(format!(r#"{{"tools":[{}]{next}}}"#, tools.join(",")))
}
