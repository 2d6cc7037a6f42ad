//! The members of `_meta` that concern one connection: progress tokens, and in the stateless revision
//! a client's words about itself and the stream of a notification.

use serde_json::value::RawValue;

use crate::id::Id;
use crate::message::Raw;
use crate::object::{ObjectMembers, quote};
use crate::version::Version;

const VERSION_META: &str = "io.modelcontextprotocol/protocolVersion";
const INFO_META: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES_META: &str = "io.modelcontextprotocol/clientCapabilities";
const LEVEL_META: &str = "io.modelcontextprotocol/logLevel";
/// The member in which a server names itself.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The member of `_meta` by which a notification names the stream that it belongs to.
const SUBSCRIPTION_META: &str = "io.modelcontextprotocol/subscriptionId";

/// The capability of clients that use additions to the protocol, with other kinds of results.
const EXTENSIONS: &str = "extensions";

/// A client's words about itself in each of its requests.
#[derive(Clone, Debug)]
pub struct ClientMeta {
    info: String,
    capabilities: String,
}

impl ClientMeta {
    pub fn new(info: &serde_json::Value, capabilities: &RawValue) -> ClientMeta {
        ClientMeta { info: info.to_string(), capabilities: capabilities.get().to_owned() }
    }

    /// Returns the params with these words in their `_meta`, and with our own progress token or
    /// none. Params that are not an object are returned as they are.
    pub(crate) fn within(
        &self,
        params: Option<Raw>,
        token: Option<i64>,
        level: Option<&'static str>,
    ) -> Option<Raw> {
        let given = params.as_deref().map_or("{}", RawValue::get);
        let rewritten = (|| {
            let mut members: ObjectMembers<'_> = serde_json::from_str(given).ok()?;
            let meta_text = members.get("_meta").unwrap_or("{}").to_owned();
            let mut meta: ObjectMembers<'_> = serde_json::from_str(&meta_text).ok()?;
            match token {
                Some(token) => meta.set("progressToken", token.to_string()),
                None => meta.remove("progressToken"),
            }
            meta.set(VERSION_META, quote(Version::V2026_07_28.as_str()));
            meta.set(INFO_META, self.info.as_str());
            meta.set(CAPABILITIES_META, self.capabilities.as_str());
            if let Some(level) = level {
                meta.set(LEVEL_META, quote(level));
            }
            members.set("_meta", meta.write_text());
            Some(members.write())
        })();
        rewritten.or(params)
    }

    /// Reports whether the client declares additions to the protocol.
    pub(crate) fn has_extensions(&self) -> bool {
        let declared: Option<ObjectMembers<'_>> = serde_json::from_str(&self.capabilities).ok();
        declared.is_some_and(|declared| declared.get(EXTENSIONS).is_some())
    }
}

/// Replaces the other side's progress token, which would mean nothing to the third party we ask,
/// with ours, or removes it.
pub(crate) fn with_progress_token(params: Option<Raw>, token: Option<i64>) -> Option<Raw> {
    let given = params.as_deref().map_or("{}", RawValue::get);
    if token.is_none() && !given.contains("progressToken") {
        return params;
    }
    let rewritten = (|| {
        let mut members: ObjectMembers<'_> = serde_json::from_str(given).ok()?;
        let meta_text = members.get("_meta").unwrap_or("{}").to_owned();
        let mut meta: ObjectMembers<'_> = serde_json::from_str(&meta_text).ok()?;
        match token {
            Some(token) => meta.set("progressToken", token.to_string()),
            None => meta.remove("progressToken"),
        }
        if meta.is_empty() && members.get("_meta").is_none() {
            return None;
        }
        members.set("_meta", meta.write().get().to_owned());
        Some(members.write())
    })();
    rewritten.or(params)
}

/// Returns the stream that a notification names.
pub(crate) fn subscription(params: Option<&RawValue>) -> Option<Id> {
    if !params?.get().contains(SUBSCRIPTION_META) {
        return None;
    }
    let members = ObjectMembers::parse(params?).ok()?;
    let meta: ObjectMembers<'_> = serde_json::from_str(members.get("_meta")?).ok()?;
    serde_json::from_str(meta.get(SUBSCRIPTION_META)?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::raw;

    fn rewritten(params: &str, token: Option<i64>) -> String {
        let params = Some(RawValue::from_string(params.to_owned()).unwrap());
        with_progress_token(params, token).unwrap().get().to_owned()
    }

    #[test]
    fn progress_tokens_are_ours_and_the_rest_of_meta_stays() {
        let params = r#"{"name":"t","_meta":{"progressToken":"abc","x":1.0}}"#;
        assert_eq!(rewritten(params, None), r#"{"name":"t","_meta":{"x":1.0}}"#);
        assert_eq!(
            rewritten(params, Some(7)),
            r#"{"name":"t","_meta":{"progressToken":7,"x":1.0}}"#
        );
        assert_eq!(rewritten(r#"{"a":1}"#, Some(7)), r#"{"a":1,"_meta":{"progressToken":7}}"#);
        assert_eq!(rewritten(r#"{"a":"progressToken"}"#, None), r#"{"a":"progressToken"}"#);
    }

    fn within(params: &str, token: Option<i64>, level: Option<&'static str>) -> String {
        let capabilities = raw(r#"{"sampling":{}}"#.to_owned());
        let client = ClientMeta::new(&json!({"name": "c"}), &capabilities);
        client.within(Some(raw(params.to_owned())), token, level).unwrap().get().to_owned()
    }

    #[test]
    fn each_request_says_what_its_client_is() {
        let ours = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}"#;
        assert_eq!(
            within(r#"{"n":1E2}"#, None, None),
            format!(r#"{{"n":1E2,"_meta":{{{ours}}}}}"#)
        );
        let level = r#""io.modelcontextprotocol/logLevel":"info""#;
        assert_eq!(
            within(r#"{"_meta":{"x":1.0,"progressToken":"a"}}"#, Some(7), Some("info")),
            format!(r#"{{"_meta":{{"x":1.0,"progressToken":7,{ours},{level}}}}}"#)
        );
        let forged = r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}"#;
        assert!(!within(forged, None, None).contains("roots"), "the words are the gate's own");
        assert_eq!(within("[1]", None, None), "[1]");
    }
}
