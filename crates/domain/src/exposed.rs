//! Tools, prompts and resources as shown to pass-through clients: the servers' own definitions, and in
//! the view over all servers, under names that every client accepts and addresses that lead back.

mod address;
mod cursor;
mod rewrite;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;

pub(crate) use address::fits;
pub use address::{AddressLookup, Addresses, qualified as qualified_address};
pub use cursor::ListPosition;
pub use rewrite::{AddressForm, may_have_addresses, qualified, restored_arguments, with_string};

use crate::policy::Obstacle;
use crate::tool::{HASH_DIGITS, Tool, ToolName, short_hash};

/// The longest tool name that clients accept, in characters of `[A-Za-z0-9_-]`.
pub const NAME_CHARS_MAX: usize = 64;

/// The naming of a server's tools in the view over all servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// As `server__tool`.
    #[default]
    Prefixed,
    /// Unchanged; the caller must make sure that names are unique.
    Own,
}

/// Every tool under its exposed name, ready to be served.
pub struct ExposedTools {
    /// The `tools/list` response with the callable tools.
    pub list: Box<RawValue>,
    by_name: HashMap<String, ToolName>,
}

impl ExposedTools {
    /// Builds the list. The tools must come in a fixed order: where two names clash, the later one
    /// yields. Tools that cannot be called get a name too, so that it stays theirs and a rejected
    /// call can be given the reason. `addresses` are looked up only for tools with a page of an app.
    pub(crate) fn new<'a>(
        tools: impl Iterator<Item = (&'a str, Names, &'a Tool, Option<Obstacle>)>,
        addresses: impl Fn() -> Arc<Addresses>,
    ) -> ExposedTools {
        let mut by_name = HashMap::new();
        let mut definitions = Vec::new();
        for (server, names, tool, obstacle) in tools {
            let mut name = match names {
                Names::Prefixed => exposed_name(server, &tool.name),
                Names::Own => tool.name.clone(),
            };
            if by_name.contains_key(&name) {
                name = hashed_name(server, &tool.name);
            }
            let full = ToolName { server: server.to_owned(), tool: tool.name.clone() };
            let is_new = by_name.insert(name.clone(), full).is_none();
            if is_new && obstacle.is_none() {
                let definition = renamed(tool, &name);
                let is_app = definition.contains("esourceUri\"");
                let shown =
                    is_app.then(|| addresses().shown(server, AddressForm::Tool, &definition));
                definitions.push(shown.flatten().unwrap_or(definition));
            }
        }
        let list = list_response("tools", definitions.iter().map(String::as_str));
        ExposedTools { list, by_name }
    }

    pub fn tool(&self, exposed_name: &str) -> Option<&ToolName> {
        self.by_name.get(exposed_name)
    }
}

/// Returns `{"tools":[…]}`, or another list, from definitions that are already JSON.
pub(crate) fn list_response<'a>(
    member: &str,
    definitions: impl Iterator<Item = &'a str>,
) -> Box<RawValue> {
    let mut text = format!(r#"{{"{member}":["#);
    for (index, definition) in definitions.enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(definition);
    }
    text.push_str("]}");
    RawValue::from_string(text).expect("assembled from valid JSON")
}

/// Returns `server__tool` if that name is valid and identifies exactly one server and tool;
/// otherwise a name with a hash. It depends only on the two names, so it is the same after every
/// start.
pub(crate) fn exposed_name(server: &str, tool: &str) -> String {
    let plain = format!("{server}__{tool}");
    let fits = plain.len() <= NAME_CHARS_MAX && plain.chars().all(is_plain);
    // `a__` + `b` and `a` + `__b` would produce the same name.
    let unambiguous = !server.contains("__") && !server.ends_with('_');
    if fits && unambiguous { plain } else { hashed_name(server, tool) }
}

pub(crate) fn hashed_name(server: &str, tool: &str) -> String {
    let hash = short_hash(&format!("{server}:{tool}"));
    let plain: String = format!("{server}__{tool}")
        .chars()
        .map(|character| if is_plain(character) { character } else { '_' })
        .take(NAME_CHARS_MAX - HASH_DIGITS - 1)
        .collect();
    format!("{plain}_{hash}")
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

/// Returns the definition with another name and every other byte unchanged.
fn renamed(tool: &Tool, name: &str) -> String {
    let definition = tool.definition().get();
    let range = tool.name_range();
    let quoted = serde_json::to_string(name).expect("a string can be written as JSON");
    format!("{}{quoted}{}", &definition[..range.start], &definition[range.end..])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::tool::Source;

    fn tool(definition: &str) -> Tool {
        Tool::parse(Source::Builtin, RawValue::from_string(definition.to_owned()).unwrap()).unwrap()
    }

    fn nothing() -> Arc<Addresses> {
        Arc::default()
    }

    #[test]
    fn names_fit_every_client_and_stay_the_same() {
        for (server, tool, expected) in [
            ("github", "create_issue", "github__create_issue"),
            ("my.server", "do", "my_server__do_f7f6b2cb"),
            ("a__b", "c", "a__b__c_"),
            ("a_", "b", "a___b_"),
            ("s", "name with blanks", "s__name_with_blanks_"),
            ("s", "\u{4f60}\u{597d}", "s_____"),
        ] {
            let name = exposed_name(server, tool);
            let start = expected.trim_end_matches(|c: char| c.is_ascii_hexdigit());
            assert!(name.starts_with(start), "{server} {tool}: {name}");
            assert_eq!(name, exposed_name(server, tool));
            assert!(name.len() <= NAME_CHARS_MAX && name.chars().all(is_plain), "{name}");
        }
        let long = exposed_name("server", &"x".repeat(100));
        assert_eq!(long.len(), NAME_CHARS_MAX);
        assert_ne!(long, exposed_name("server", &"x".repeat(101)));
    }

    #[test]
    fn no_two_tools_share_a_name() {
        let pairs =
            [("a", "_b"), ("a_", "b"), ("a__b", "c"), ("a", "b__c"), ("a.b", "c"), ("a_b", "c")];
        let names: HashSet<String> = pairs.iter().map(|(s, t)| exposed_name(s, t)).collect();
        assert_eq!(names.len(), pairs.len());
        let hostile = exposed_name("a.b", "c");
        let (server, name) = hostile.split_once("__").unwrap();
        let (first, second) = (tool(r#"{"name":"c"}"#), tool(&format!(r#"{{"name":"{name}"}}"#)));
        let tools = [("a.b", &first), (server, &second)];
        let exposed = ExposedTools::new(
            tools.into_iter().map(|(server, tool)| (server, Names::Prefixed, tool, None)),
            nothing,
        );
        assert_eq!(exposed.by_name.len(), 2);
        assert_eq!(exposed.tool(&hostile).unwrap().server, "a.b");
    }

    #[test]
    fn an_exposed_definition_differs_only_in_its_name() {
        let tool = tool(r#"{ "x":1E2, "name" : "t", "description":"name" }"#);
        let locked = Some(Obstacle::Locked(crate::policy::LockStatus::DisabledByConfig));
        let exposed = ExposedTools::new(
            [("s", Names::Prefixed, &tool, None), ("l", Names::Prefixed, &tool, locked)]
                .into_iter(),
            nothing,
        );
        assert!(exposed.tool("l__t").is_some(), "locked: named, not listed");
        assert_eq!(
            exposed.list.get(),
            r#"{"tools":[{ "x":1E2, "name" : "s__t", "description":"name" }]}"#
        );
        let own = ExposedTools::new([("s", Names::Own, &tool, None)].into_iter(), nothing);
        assert_eq!(own.tool("t").unwrap().server, "s");
        assert!(own.tool("s__t").is_none());
        assert_eq!(own.list.get(), format!(r#"{{"tools":[{}]}}"#, tool.definition().get()));
    }

    #[test]
    fn the_page_of_an_app_is_addressed_like_its_resource() {
        let tool = tool(r#"{"name":"t","_meta":{"ui":{"resourceUri":"ui://p"}}}"#);
        let tools = [("s", Names::Prefixed, &tool, None)];
        let exposed = ExposedTools::new(tools.into_iter(), nothing);
        let expected = r#"{"name":"s__t","_meta":{"ui":{"resourceUri":"ui://countersign/s/p"}}}"#;
        assert_eq!(exposed.list.get(), format!(r#"{{"tools":[{expected}]}}"#));
    }
}
