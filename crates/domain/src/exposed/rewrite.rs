//! Rewrites the addresses in a message, at the places where the protocol has them. Only the literal
//! of an address changes; every other byte stays, and nothing is parsed that does not lead to one.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::address::{self, Addresses};

/// A message, or a part of one, that has addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressForm {
    /// The result of `tools/call`.
    ToolResult,
    /// The result of `prompts/get`.
    PromptResult,
    /// The result of `resources/read`.
    ReadResult,
    /// The params of `resources/updated`, or one resource of a list.
    Resource,
    /// The definition of a tool.
    Tool,
    /// A JSON-RPC error.
    Error,
}

/// Results of tools within results of tools; real ones nest less.
const NESTED_MAX: usize = 4;

/// Addresses of one message that are looked up. Any further one is qualified, which is always right.
const LOOKUPS_MAX: usize = 10_000;

/// Levels of arguments that are searched; deeper ones are rejected elsewhere.
const ARGUMENT_LEVELS_MAX: usize = 128;

impl Addresses {
    /// Returns a message of a server with each address as clients of all servers get it; `None` if
    /// nothing changes.
    pub fn shown(&self, server: &str, form: AddressForm, text: &str) -> Option<String> {
        qualified(server, form, text, &|uri| self.needs_server(server, uri))
    }
}

/// Returns the message with the addresses qualified that need it; `None` if none does.
pub fn qualified(
    server: &str,
    form: AddressForm,
    text: &str,
    needs_server: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let lookups = Cell::new(0_usize);
    let edit = |literal: &str| {
        let uri: Cow<'_, str> = serde_json::from_str(literal).ok()?;
        lookups.set(lookups.get() + 1);
        let needs_it = lookups.get() > LOOKUPS_MAX || needs_server(&uri);
        needs_it.then(|| address::qualified_literal(server, literal)).flatten()
    };
    edited(form, text, &edit)
}

/// Returns the message as the server sent it; `None` if no address in it is qualified.
#[cfg(test)]
fn restored(server: &str, form: AddressForm, text: &str) -> Option<String> {
    edited(form, text, &|literal| address::restored_literal(server, literal))
}

/// Returns arguments with every string restored that is the qualified address of a resource of this
/// server: a model may pass on what it was shown. `None` if there is none.
pub fn restored_arguments(server: &str, text: &str) -> Option<String> {
    if !text.contains("countersign") {
        return None;
    }
    let edit = |literal: &str| {
        let otherwise_spelled = || {
            let text: String = serde_json::from_str(literal).ok()?;
            let (of, uri) = address::split(&text)?;
            (of == server).then(|| quoted(&uri))
        };
        address::restored_literal(server, literal).or_else(otherwise_spelled)
    };
    let mut walk = AddressWalk { text, edit: &edit, edits: Vec::new() };
    walk.anything(text, ARGUMENT_LEVELS_MAX);
    walk.finish()
}

/// Returns an object with another string at this path; `None` if there is none.
pub fn with_string(text: &str, path: &[&str], value: &str) -> Option<String> {
    let edit = |_: &str| Some(quoted(value));
    let mut walk = AddressWalk { text, edit: &edit, edits: Vec::new() };
    walk.at(text, path);
    walk.finish()
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string can be written as JSON")
}

/// Reports whether a message may have an address: most have none, and need not be read. An address
/// is in a member `uri` or `resourceUri`, whose name may be written with escapes.
pub fn may_have_addresses(text: &str) -> bool {
    text.contains("uri\"") || text.contains("Uri\"") || text.contains("\\u")
}

fn edited(form: AddressForm, text: &str, edit: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    if !may_have_addresses(text) {
        return None;
    }
    let mut walk = AddressWalk { text, edit, edits: Vec::new() };
    match form {
        AddressForm::ToolResult => walk.tool_result(text),
        AddressForm::PromptResult => walk.prompt_result(text),
        AddressForm::ReadResult => walk.read_result(text),
        AddressForm::Resource => walk.resource(text),
        AddressForm::Tool => walk.meta_of(text),
        AddressForm::Error => walk.at(text, &["data", "uri"]),
    }
    walk.finish()
}

/// Finds the literals of addresses, in the order of the text.
struct AddressWalk<'t, 'e> {
    text: &'t str,
    edit: &'e dyn Fn(&str) -> Option<String>,
    edits: Vec<(Range<usize>, String)>,
}

impl<'t> AddressWalk<'t, '_> {
    fn finish(self) -> Option<String> {
        if self.edits.is_empty() {
            return None;
        }
        let added: usize = self.edits.iter().map(|(_, literal)| literal.len()).sum();
        let mut text = String::with_capacity(self.text.len() + added);
        let mut end = 0;
        for (place, literal) in self.edits {
            text.push_str(&self.text[end..place.start]);
            text.push_str(&literal);
            end = place.end;
        }
        text.push_str(&self.text[end..]);
        Some(text)
    }

    fn literal(&mut self, literal: &'t str) {
        if literal.starts_with('"')
            && let Some(other) = (self.edit)(literal)
        {
            let start = literal.as_ptr().addr() - self.text.as_ptr().addr();
            self.edits.push((start..start + literal.len(), other));
        }
    }

    fn at(&mut self, text: &'t str, path: &[&str]) {
        match path {
            [] => self.literal(text),
            [name, rest @ ..] => {
                for (_, value) in members(text).into_iter().filter(|(key, _)| key == name) {
                    self.at(value, rest);
                }
            }
        }
    }

    fn tool_result(&mut self, text: &'t str) {
        for (name, value) in members(text) {
            match &*name {
                "content" => self.blocks(value, NESTED_MAX),
                "_meta" => self.meta(value),
                _ => {}
            }
        }
    }

    fn prompt_result(&mut self, text: &'t str) {
        for (name, value) in members(text) {
            match &*name {
                "messages" => {
                    for message in elements(value) {
                        for (_, content) in content_of(message) {
                            self.blocks(content, NESTED_MAX);
                        }
                    }
                }
                "_meta" => self.meta(value),
                _ => {}
            }
        }
    }

    fn read_result(&mut self, text: &'t str) {
        for (name, value) in members(text) {
            match &*name {
                "contents" => elements(value).into_iter().for_each(|one| self.resource(one)),
                "_meta" => self.meta(value),
                _ => {}
            }
        }
    }

    /// Takes one block of content, or a list of them.
    fn blocks(&mut self, text: &'t str, levels: usize) {
        if text.starts_with('{') {
            self.block(text, levels);
        } else {
            elements(text).into_iter().for_each(|block| self.block(block, levels));
        }
    }

    fn block(&mut self, text: &'t str, levels: usize) {
        let members = members(text);
        let kind = members.iter().find(|(name, _)| name == "type").map(|(_, value)| *value);
        for (name, value) in members {
            match (kind, &*name) {
                (Some(r#""resource_link""#), "uri") => self.literal(value),
                (Some(r#""resource""#), "resource") => self.resource(value),
                (Some(r#""tool_result""#), "content") if levels > 0 => {
                    self.blocks(value, levels - 1);
                }
                (_, "_meta") => self.meta(value),
                _ => {}
            }
        }
    }

    fn resource(&mut self, text: &'t str) {
        for (name, value) in members(text) {
            match &*name {
                "uri" => self.literal(value),
                "_meta" => self.meta(value),
                _ => {}
            }
        }
    }

    fn meta_of(&mut self, text: &'t str) {
        for (_, value) in members(text).into_iter().filter(|(name, _)| name == "_meta") {
            self.meta(value);
        }
    }

    /// Takes the page of an app, in the place it has today and in the earlier one.
    fn meta(&mut self, text: &'t str) {
        for (name, value) in members(text) {
            match &*name {
                "ui" => self.at(value, &["resourceUri"]),
                "ui/resourceUri" => self.literal(value),
                _ => {}
            }
        }
    }

    fn anything(&mut self, text: &'t str, levels: usize) {
        if levels == 0 || !text.contains("countersign") {
            return;
        }
        match text.as_bytes().first() {
            Some(b'"') => self.literal(text),
            Some(b'[') => {
                elements(text).into_iter().for_each(|one| self.anything(one, levels - 1));
            }
            Some(b'{') => {
                members(text).into_iter().for_each(|(_, one)| self.anything(one, levels - 1));
            }
            _ => {}
        }
    }
}

fn content_of(message: &str) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    members(message).into_iter().filter(|(name, _)| name == "content")
}

/// Returns the members of an object with their text; none of anything else.
fn members(text: &str) -> Vec<(Cow<'_, str>, &str)> {
    serde_json::from_str::<Members<'_>>(text).map(|members| members.0).unwrap_or_default()
}

/// Returns the elements of an array with their text; none of anything else.
fn elements(text: &str) -> Vec<&str> {
    let elements: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
    elements.into_iter().map(RawValue::get).collect()
}

struct Members<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    members.push((name.0, value.get()));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn all(form: AddressForm, text: &str) -> Option<String> {
        qualified("s", form, text, &|_| true)
    }

    /// Addresses stand where `@` does; the others stay.
    #[test]
    fn addresses_are_found_where_the_protocol_has_them() {
        use AddressForm::{Error, PromptResult, ReadResult, Resource, Tool, ToolResult};
        for (form, text) in [
            (ToolResult, r#"{ "content":[{"type":"resource_link","uri":"@","x":1E2}],"uri":"x" }"#),
            (ToolResult, r#"{"content":[{"type" : "resource", "resource": {"uri" : "@"} }]}"#),
            (ToolResult, r#"{"content":[{"type":"text","uri":"x","text":"\"uri\":\"x\""}]}"#),
            (ToolResult, r#"{"structuredContent":{"uri":"x"},"content":[]}"#),
            (ToolResult, r#"{"_meta":{"ui":{"resourceUri":"@","x":"x"},"ui/resourceUri":"@"}}"#),
            (ToolResult, r#"{"content":[{"type":"text","_meta":{"ui":{"resourceUri":"@"}}}]}"#),
            (
                ToolResult,
                r#"{"content":[{"type":"tool_result","content":[{"type":"resource_link","uri":"@"}]}]}"#,
            ),
            (ToolResult, r#"{"content":[{"type":"resource_link","uri":["x"]},7,"uri"]}"#),
            (
                PromptResult,
                r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"@","text":"x"}}},{"content":[{"type":"resource_link","uri":"@"}]}]}"#,
            ),
            (ReadResult, r#"{"contents":[{"uri":"@","text":"x"},{"uri":"@","blob":""}]}"#),
            (Resource, r#"{"uri":"@","name":"x"}"#),
            (Tool, r#"{"name":"x","_meta":{"ui":{"resourceUri":"@"}},"inputSchema":{"uri":"x"}}"#),
            (Error, r#"{"code":-32002,"message":"x","data":{"uri":"@"}}"#),
        ] {
            let given = text.replace('@', "memo://x");
            let expected = text.replace('@', "countersign://server/s/memo://x");
            let changed = all(form, &given);
            assert_eq!(changed.as_deref().unwrap_or(&given), expected, "{text}");
            assert_eq!(restored("s", form, &expected).unwrap_or(expected), given);
        }
    }

    #[test]
    fn a_name_with_escapes_and_a_name_given_twice_hide_no_address() {
        let text = r#"{"\u0075ri":"a:1","uri":"a:2"}"#;
        let expected =
            r#"{"\u0075ri":"countersign://server/s/a:1","uri":"countersign://server/s/a:2"}"#;
        assert_eq!(all(AddressForm::Resource, text).as_deref(), Some(expected));
    }

    #[test]
    fn arguments_get_the_servers_own_addresses_back() {
        let text = r#"{ "a":["countersign://server/s/memo://x", 1E2], "b":{"c":"ui:\/\/countersign\/s\/p"},
            "other":"countersign://server/t/memo://x","words":"see countersign://server/s/x" }"#;
        let expected = r#"{ "a":["memo://x", 1E2], "b":{"c":"ui://p"},
            "other":"countersign://server/t/memo://x","words":"see countersign://server/s/x" }"#;
        assert_eq!(restored_arguments("s", text).as_deref(), Some(expected));
        assert_eq!(restored_arguments("s", r#"{"a":"memo://x"}"#), None);
    }

    #[test]
    fn a_string_is_replaced_at_its_path() {
        let text = r#"{ "ref" : {"type":"ref/prompt", "name" : "s__p"}, "name":"x" }"#;
        let expected = r#"{ "ref" : {"type":"ref/prompt", "name" : "p"}, "name":"x" }"#;
        assert_eq!(with_string(text, &["ref", "name"], "p").as_deref(), Some(expected));
        assert_eq!(with_string(text, &["ref", "uri"], "p"), None);
    }

    /// Returns JSON in many spellings, with members that may or may not be addresses.
    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
            Just("true".to_owned()),
            Just("null".to_owned()),
            Just(r#""ui:\/\/page""#.to_owned()),
            Just(r#""\u0075i://page""#.to_owned()),
            Just(r#""countersign://server/s/a:b""#.to_owned()),
            Just(r#""ui://countersign/s/x""#.to_owned()),
            Just(r#""resource_link""#.to_owned()),
            Just(r#""resource""#.to_owned()),
            "\"[a-z]{1,4}:(//)?[a-z/]{0,6}(\\\\u00e4|\\\\/|\\\\n|\u{e9})?\"",
        ];
        let name = prop_oneof![
            Just("uri"),
            Just("_meta"),
            Just("ui"),
            Just("resourceUri"),
            Just("ui/resourceUri"),
            Just("content"),
            Just("contents"),
            Just("messages"),
            Just("resource"),
            Just("type"),
            Just("\\u0075ri"),
            Just("other"),
        ];
        leaf.prop_recursive(6, 64, 6, move |inner| {
            let space = prop_oneof![Just(""), Just(" "), Just("\n\t")];
            let member = (space.clone(), name.clone(), space, inner.clone()).prop_map(
                |(before, name, after, value)| {
                    format!("{before}\"{name}\"{after}:{before}{value}{after}")
                },
            );
            prop_oneof![
                vec(inner, 0..4).prop_map(|items| format!("[ {} ]", items.join(" ,"))),
                vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(","))),
            ]
        })
    }

    /// Returns a result that begins like one of the protocol's.
    fn result() -> impl Strategy<Value = (AddressForm, String)> {
        let link = |kind: &'static str| {
            json().prop_map(move |uri| {
                format!(r#"{{ "type":"{kind}" , "uri":{uri},"resource":{{"uri":{uri}}} }}"#)
            })
        };
        let blocks = vec(prop_oneof![json(), link("resource_link"), link("resource")], 0..5);
        (0..5_usize, blocks, json()).prop_map(|(kind, blocks, rest)| {
            let blocks = blocks.join(", ");
            match kind {
                0 => {
                    let text = format!(r#"{{"content":[{blocks}],"_meta":{rest}}}"#);
                    (AddressForm::ToolResult, text)
                }
                1 => {
                    let text = format!(r#"{{"messages":[{{"content":[{blocks}]}},{rest}]}}"#);
                    (AddressForm::PromptResult, text)
                }
                2 => (AddressForm::ReadResult, format!(r#"{{"contents" : [{blocks}]}}"#)),
                3 => (AddressForm::Tool, format!(r#"{{"name":"t","_meta":{rest}}}"#)),
                _ => (AddressForm::Resource, rest),
            }
        })
    }

    proptest! {
        #[test]
        fn to_the_client_and_back_changes_no_byte((form, text) in result(), salt in 0..3_usize) {
            // Any choice of addresses must do, as long as those that look qualified are among them.
            let chosen = |uri: &str| {
                uri.starts_with("countersign:") || uri.starts_with("ui://c") || uri.len() % 3 != salt
            };
            let shown = qualified("s", form, &text, &chosen);
            let shown = shown.unwrap_or_else(|| text.clone());
            prop_assert!(serde_json::from_str::<&RawValue>(&shown).is_ok());
            let back = restored("s", form, &shown).unwrap_or(shown);
            prop_assert_eq!(back, text);
        }
    }
}
