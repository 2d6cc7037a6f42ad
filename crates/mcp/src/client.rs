//! What a client asks of a server beyond single requests: whole lists, page by page.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::limits;
use crate::message::{Raw, to_raw};
use crate::peer::{Ask, Peer, RequestError};

#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error("tools/list: {0}")]
    Request(#[from] RequestError),
    #[error("tools/list: the answer makes no sense: {0}")]
    Answer(#[from] serde_json::Error),
    #[error("tools/list: the server repeats the cursor '{0}'")]
    CursorLoop(String),
    #[error(
        "tools/list: more than {} pages or {} tools",
        limits::LIST_PAGES_MAX,
        limits::LIST_ITEMS_MAX
    )]
    TooMany,
    #[error("tools/list: not finished after {} s", limits::LIST_TIME_MAX.as_secs())]
    TooSlow,
}

/// All tools of a server, each the JSON object that it sent. `timeout` is for each page.
pub async fn list_tools(peer: &Peer, timeout: Duration) -> Result<Vec<Raw>, ListError> {
    let listing = tokio::time::timeout(limits::LIST_TIME_MAX, list_pages(peer, timeout));
    listing.await.unwrap_or(Err(ListError::TooSlow))
}

async fn list_pages(peer: &Peer, timeout: Duration) -> Result<Vec<Raw>, ListError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page {
        tools: Vec<Raw>,
        #[serde(default)]
        next_cursor: Option<String>,
    }
    let mut tools = Vec::new();
    let mut cursors = HashSet::new();
    let mut params = None;
    for _ in 0..limits::LIST_PAGES_MAX {
        let answer = peer.request(Ask::new("tools/list", params, timeout)).await?;
        let page: Page = serde_json::from_str(answer.get())?;
        tools.extend(page.tools);
        if tools.len() > limits::LIST_ITEMS_MAX {
            return Err(ListError::TooMany);
        }
        let Some(cursor) = page.next_cursor else {
            return Ok(tools);
        };
        params = Some(to_raw(&json!({"cursor": cursor})));
        if !cursors.insert(cursor.clone()) {
            return Err(ListError::CursorLoop(cursor));
        }
    }
    Err(ListError::TooMany)
}
