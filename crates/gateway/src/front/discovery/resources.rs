//! Resources in discovery mode. The links in what a server returns name that server, so that clients
//! read them with `resources/read`, and models with `call_tool_read`, which takes a link as a name.

use domain::exposed::{self, AddressForm};
use mcp::message::{Raw, raw};
use mcp::object::{ObjectMembers, quote};
use serde_json::value::RawValue;

/// The method that reads a resource.
pub(super) const READ: &str = "resources/read";

/// Returns a message of a server in which every address names that server.
pub(super) fn linked(message: Raw, form: AddressForm, server: &str) -> Raw {
    exposed::qualified(server, form, message.get(), &|_| true).map_or(message, raw)
}

/// Reports whether the name of a tool is the address of a resource instead.
pub(super) fn is_address(name: &domain::ToolName) -> bool {
    name.tool.starts_with("//")
}

/// Converts the result of `resources/read` to that of a tool: text as text, so that every client
/// shows it and a long one can be cut, pictures and sound as such, anything else embedded.
pub(super) fn as_tool_result(result: &RawValue, server: &str) -> Option<Raw> {
    let mut members = ObjectMembers::parse(result).ok()?;
    let contents: Vec<&RawValue> = serde_json::from_str(members.get("contents")?).ok()?;
    let blocks: Vec<String> = contents.iter().map(|item| block(item, server)).collect();
    members.remove("contents");
    members.set("content", format!("[{}]", blocks.join(",")));
    Some(members.write())
}

fn block(item: &RawValue, server: &str) -> String {
    let members = ObjectMembers::parse(item).unwrap_or_default();
    if let Some(text) = members.get("text") {
        return format!(r#"{{"type":"text","text":{text}}}"#);
    }
    let media = members.get("mimeType").unwrap_or("\"\"");
    let kind =
        ["image", "audio"].into_iter().find(|kind| media[1..].starts_with(&format!("{kind}/")));
    match (kind, members.get("blob")) {
        (Some(kind), Some(data)) => {
            format!(r#"{{"type":"{kind}","data":{data},"mimeType":{media}}}"#)
        }
        _ => {
            let item = linked(item.to_owned(), AddressForm::Resource, server);
            format!(r#"{{"type":"resource","resource":{item}}}"#)
        }
    }
}

/// Returns the params of a request that only names a resource.
pub(super) fn params(uri: &str) -> Raw {
    raw(format!(r#"{{"uri":{}}}"#, quote(uri)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_names_its_server() {
        let result = r#"{"n":1E2,"content":[{"type":"resource_link","uri":"memo://a"}]}"#;
        assert_eq!(
            linked(raw(result.to_owned()), AddressForm::ToolResult, "s").get(),
            result.replace("memo://a", "countersign://server/s/memo://a")
        );
        let plain = r#"{ "content": [{"type":"text","text":"uri"}] }"#;
        assert_eq!(linked(raw(plain.to_owned()), AddressForm::ToolResult, "s").get(), plain);
    }

    #[test]
    fn an_address_is_no_name_of_a_tool() {
        let is = |name: &str| is_address(&domain::ToolName::parse(name).unwrap());
        assert!(is("countersign://server/s/memo://a") && is("file:///a"));
        assert!(!is("s:t") && !is("s:resources/read"));
    }

    #[test]
    fn contents_become_blocks_that_models_are_shown() {
        let converted = |contents: &str| {
            as_tool_result(&raw(format!(r#"{{"contents":[{contents}],"x":1E2}}"#)), "s")
                .map(|raw| raw.get().to_owned())
        };
        for (contents, blocks) in [
            (r#"{"uri":"m://a","text":"\u0041"}"#, r#"{"type":"text","text":"\u0041"}"#),
            (
                r#"{"uri":"m://a","mimeType":"image/png","blob":"AA=="}"#,
                r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#,
            ),
            (
                r#"{"uri":"m://a","blob":"AA=="}"#,
                r#"{"type":"resource","resource":{"uri":"countersign://server/s/m://a","blob":"AA=="}}"#,
            ),
        ] {
            let expected = format!(r#"{{"x":1E2,"content":[{blocks}]}}"#);
            assert_eq!(converted(contents), Some(expected));
        }
        assert_eq!(
            as_tool_result(&raw("{}".to_owned()), "s").map(|raw| raw.get().to_owned()),
            None
        );
    }
}
