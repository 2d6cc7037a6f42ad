//! Client requests that take several exchanges: whole lists, page by page.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::fault::explain;
use crate::limits;
use crate::message::{Raw, to_raw};
use crate::peer::{Ask, Peer, RequestError};

/// The kinds of list a server may offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Tools,
    Prompts,
    ResourceTemplates,
    Resources,
}

impl List {
    pub fn method(self) -> &'static str {
        match self {
            List::Tools => "tools/list",
            List::Prompts => "prompts/list",
            List::ResourceTemplates => "resources/templates/list",
            List::Resources => "resources/list",
        }
    }

    fn items(self) -> &'static str {
        match self {
            List::Tools => "tools",
            List::Prompts => "prompts",
            List::ResourceTemplates => "templates",
            List::Resources => "resources",
        }
    }

    /// The capability a server must declare to offer this list.
    pub fn capability(self) -> &'static str {
        match self {
            List::Tools => "tools",
            List::Prompts => "prompts",
            List::ResourceTemplates | List::Resources => "resources",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error("{list}: {error}", list = .0.method(), error = .1)]
    Request(List, RequestError),
    #[error("{list}: invalid response: {why}", list = .0.method(), why = explain(.1))]
    Answer(List, serde_json::Error),
    #[error("{list}: the server repeats the cursor '{cursor}'", list = .0.method(), cursor = .1)]
    CursorLoop(List, String),
    #[error("{}: a cursor of {} bytes, over {}", .0.method(), .1, limits::CURSOR_BYTES_MAX)]
    LongCursor(List, usize),
    #[error(
        "{}: more than {} pages or {} {}",
        .0.method(), limits::LIST_PAGES_MAX, limits::LIST_ITEMS_MAX, .0.items()
    )]
    TooMany(List),
    #[error("{}: more than {} MiB", .0.method(), limits::LIST_BYTES_MAX / (1024 * 1024))]
    TooLarge(List),
    #[error("{}: not finished after {} s", .0.method(), limits::LIST_TIME_MAX.as_secs())]
    TooSlow(List),
}

/// Returns all items of a list, each as the JSON object the server sent. `timeout` applies to each
/// page.
pub async fn list(peer: &Peer, list: List, timeout: Duration) -> Result<Vec<Raw>, ListError> {
    let listing = tokio::time::timeout(limits::LIST_TIME_MAX, list_pages(peer, list, timeout));
    listing.await.unwrap_or(Err(ListError::TooSlow(list)))
}

async fn list_pages(peer: &Peer, list: List, timeout: Duration) -> Result<Vec<Raw>, ListError> {
    let mut items: Vec<Raw> = Vec::new();
    let mut bytes = 0;
    let mut cursors = HashSet::new();
    let mut params = None;
    for _ in 0..limits::LIST_PAGES_MAX {
        let asked = peer.request(Ask::new(list.method(), params, timeout)).await;
        let answer = asked.map_err(|error| ListError::Request(list, error))?;
        let page: Page =
            serde_json::from_str(answer.get()).map_err(|error| ListError::Answer(list, error))?;
        bytes += page.items.iter().map(|item| item.get().len()).sum::<usize>();
        items.extend(page.items);
        if bytes > limits::LIST_BYTES_MAX {
            return Err(ListError::TooLarge(list));
        }
        if items.len() > limits::LIST_ITEMS_MAX {
            return Err(ListError::TooMany(list));
        }
        let Some(cursor) = page.next_cursor else {
            return Ok(items);
        };
        if cursor.len() > limits::CURSOR_BYTES_MAX {
            return Err(ListError::LongCursor(list, cursor.len()));
        }
        params = Some(to_raw(&json!({"cursor": cursor})));
        if !cursors.insert(cursor.clone()) {
            return Err(ListError::CursorLoop(list, cursor));
        }
    }
    Err(ListError::TooMany(list))
}

/// A page of any of the lists.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(rename = "tools", alias = "prompts", alias = "resourceTemplates", alias = "resources")]
    items: Vec<Raw>,
    #[serde(default)]
    next_cursor: Option<String>,
}
