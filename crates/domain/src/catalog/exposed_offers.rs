//! Prompts, templates and resources of all servers as one caller is shown them, under names and
//! addresses that lead back to their server.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::{ListedItem, ListedResource, Server};
use crate::caller::Caller;
use crate::exposed::{
    self, AddressForm, Addresses, ListPosition, exposed_name, hashed_name, list_response,
};
use crate::policy::ApprovalState;
use crate::trust::ItemKind;

/// Resources in one page, and their size; a page has at least one.
const PAGE_ITEMS_MAX: usize = 500;
const PAGE_BYTES_MAX: usize = 512 * 1024;

/// Templates of one server; each is compared with those of all others.
const TEMPLATES_MAX: usize = 256;

/// A prompt of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptName {
    pub server: Arc<str>,
    pub prompt: String,
}

/// Everything besides tools that a caller is shown of all servers.
pub struct ExposedOffers {
    /// The responses to `prompts/list` and `resources/templates/list`.
    pub prompts: Box<RawValue>,
    pub templates: Box<RawValue>,
    pub addresses: Arc<Addresses>,
    prompt_names: HashMap<String, PromptName>,
    /// Sorted by server.
    resources: Vec<(Arc<str>, Arc<[ListedResource]>)>,
    resources_hash: u64,
}

/// A page of `resources/list`, and the place where the next one begins.
pub struct ResourcePage {
    /// The definitions, each as JSON.
    pub definitions: Vec<String>,
    pub next: Option<ListPosition>,
}

impl ExposedOffers {
    /// Collects what these servers offer, in their order. Prompts that cannot be used get a name too,
    /// so that it stays theirs and a refusal can give the reason.
    pub(crate) fn new<'a>(
        servers: impl Iterator<Item = &'a Arc<Server>> + Clone,
        caller: &Caller,
    ) -> ExposedOffers {
        let open = servers.clone().filter(|server| !server.is_locked());
        let reads = open.filter(|server| caller.sees_tool(&server.name, "resources/read"));
        let mut addresses = Addresses::default();
        let mut resources = Vec::new();
        for server in reads.clone() {
            let Some(offer) = server.listing.offer() else { continue };
            offer.resources().iter().for_each(|it| addresses.add_listed(&server.name, &it.uri));
            for template in templates_of(server) {
                addresses.add_template(&server.name, &template.name);
            }
            if !offer.resources().is_empty() {
                resources.push((server.name.clone(), offer.resources().clone()));
            }
        }
        let templates: Vec<String> = reads
            .flat_map(|server| templates_of(server).map(move |it| (server, it)))
            .map(|(server, template)| shown_template(&addresses, &server.name, template))
            .collect();
        let (prompts, prompt_names) = prompts(servers, caller);
        ExposedOffers {
            prompts: list_response("prompts", prompts.iter().map(String::as_str)),
            templates: list_response("resourceTemplates", templates.iter().map(String::as_str)),
            prompt_names,
            resources_hash: hash(&addresses, &resources),
            resources,
            addresses: Arc::new(addresses),
        }
    }

    pub fn prompt(&self, exposed_name: &str) -> Option<&PromptName> {
        self.prompt_names.get(exposed_name)
    }

    /// Returns a hash that changes with what `resources/list` shows.
    pub fn resources_hash(&self) -> u64 {
        self.resources_hash
    }

    /// Returns the resources from a place on. A server that has gone meanwhile is passed over.
    pub fn page(&self, from: Option<&ListPosition>) -> ResourcePage {
        let (mut definitions, mut bytes) = (Vec::new(), 0);
        for (server, resources) in &self.resources {
            let start = match from {
                Some(from) if **server < *from.server => continue,
                Some(from) if **server == *from.server => from.index,
                Some(_) | None => 0,
            };
            for (index, resource) in resources.iter().enumerate().skip(start) {
                if definitions.len() >= PAGE_ITEMS_MAX || bytes >= PAGE_BYTES_MAX {
                    let next = ListPosition { server: server.to_string(), index };
                    return ResourcePage { definitions, next: Some(next) };
                }
                let text = resource.definition.get();
                let shown = self.addresses.shown(server, AddressForm::Resource, text);
                let shown = shown.unwrap_or_else(|| text.to_owned());
                bytes += shown.len();
                definitions.push(shown);
            }
        }
        ResourcePage { definitions, next: None }
    }
}

fn templates_of(server: &Server) -> impl Iterator<Item = &ListedItem> {
    let items = server.listing.offer().into_iter().flat_map(|offer| offer.items());
    let approved = items.filter(|item| item.approval == ApprovalState::Approved);
    approved.filter(|item| item.kind == ItemKind::Template).take(TEMPLATES_MAX)
}

/// Returns the definition of a template, with another address only if it needs one.
fn shown_template(addresses: &Addresses, server: &str, template: &ListedItem) -> String {
    let text = template.definition.get();
    let other = addresses.template_needs_server(server, &template.name).then(|| {
        let address = exposed::qualified_address(server, &template.name);
        exposed::with_string(text, &["uriTemplate"], &address)
    });
    other.flatten().unwrap_or_else(|| text.to_owned())
}

fn prompts<'a>(
    servers: impl Iterator<Item = &'a Arc<Server>>,
    caller: &Caller,
) -> (Vec<String>, HashMap<String, PromptName>) {
    let (mut shown, mut names) = (Vec::new(), HashMap::new());
    for server in servers.filter(|server| caller.sees_tool(&server.name, "prompts/get")) {
        let items = server.listing.offer().into_iter().flat_map(|offer| offer.items());
        for prompt in items.filter(|item| item.kind == ItemKind::Prompt) {
            let full = PromptName { server: server.name.clone(), prompt: prompt.name.clone() };
            let mut name = exposed_name(&server.name, &prompt.name);
            if names.get(&name).is_some_and(|known| *known != full) {
                name = hashed_name(&server.name, &prompt.name);
            }
            let is_shown = !server.is_locked() && prompt.approval == ApprovalState::Approved;
            if names.get(&name).is_some_and(|known| *known != full) {
                continue;
            }
            if is_shown {
                let text = prompt.definition.get();
                let renamed = exposed::with_string(text, &["name"], &name);
                shown.push(renamed.unwrap_or_else(|| text.to_owned()));
            }
            names.insert(name, full);
        }
    }
    (shown, names)
}

fn hash(addresses: &Addresses, resources: &[(Arc<str>, Arc<[ListedResource]>)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (server, resources) in resources {
        server.hash(&mut hasher);
        for resource in &**resources {
            addresses.needs_server(server, &resource.uri).hash(&mut hasher);
            resource.definition.get().hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Listing, ServerOffer};
    use crate::policy::ServerRules;
    use crate::tool::Source;
    use crate::upstream::UpstreamState;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn item(kind: ItemKind, name: &str, text: &str, approval: ApprovalState) -> ListedItem {
        ListedItem { kind, name: name.to_owned(), definition: raw(text), approval }
    }

    fn server(name: &str, items: Vec<ListedItem>, resources: &[String]) -> Arc<Server> {
        let resources = resources.iter().filter_map(|text| ListedResource::parse(raw(text)));
        let offer = ServerOffer::new(items, 0).with_resources(resources.collect());
        let listing = Listing::new(&Source::Mcp(name.into()), Vec::new()).with_offer(offer);
        let (rules, state) = (Arc::new(ServerRules::default()), UpstreamState::Ready);
        Arc::new(Server::new(name.into(), "stdio", rules, state, listing.unwrap().into()))
    }

    #[test]
    fn lists_are_merged_and_differ_only_in_names_and_addresses() {
        use ApprovalState::{Approved, Pending};
        let prompt = r#"{ "x":1E2, "name" : "p" }"#;
        let template = r#"{"uriTemplate":"t://{x}" ,"n":1.0}"#;
        let items = |prompt_state| {
            vec![
                item(ItemKind::Prompt, "p", prompt, prompt_state),
                item(ItemKind::Template, "t://{x}", template, Approved),
            ]
        };
        let a = server("a", items(Approved), &[r#"{ "uri":"m://1" ,"n":1E2}"#.to_owned()]);
        let alone = ExposedOffers::new([&a].into_iter(), &Caller::admin());
        assert_eq!(alone.prompts.get(), r#"{"prompts":[{ "x":1E2, "name" : "a__p" }]}"#);
        assert_eq!(alone.templates.get(), format!(r#"{{"resourceTemplates":[{template}]}}"#));
        assert_eq!(alone.page(None).definitions, [r#"{ "uri":"m://1" ,"n":1E2}"#]);
        let b = server("b", items(Pending), &[r#"{"uri":"m://1"}"#.to_owned()]);
        let both = ExposedOffers::new([&a, &b].into_iter(), &Caller::admin());
        assert_eq!(both.prompts.get(), alone.prompts.get(), "the other waits for approval");
        assert_eq!(both.prompt("b__p").map(|name| &*name.server), Some("b"));
        let shown = both.templates.get();
        assert!(shown.contains(r#"{"uriTemplate":"countersign://server/a/t://{x}" ,"n":1.0}"#));
        assert!(shown.contains("countersign://server/b/t://{x}"), "{shown}");
        let shown = both.page(None).definitions;
        assert_eq!(shown[0], r#"{ "uri":"countersign://server/a/m://1" ,"n":1E2}"#);
        assert_ne!(both.resources_hash(), alone.resources_hash());
    }

    #[test]
    fn pages_follow_one_another_over_all_servers() {
        let resources = |name: &str, count: usize| -> Vec<String> {
            (0..count).map(|n| format!(r#"{{"uri":"{name}://{n}"}}"#)).collect()
        };
        let servers: Vec<_> = [("a", 700), ("b", 0), ("c", 900)]
            .into_iter()
            .map(|(name, count)| server(name, Vec::new(), &resources(name, count)))
            .collect();
        let offers = ExposedOffers::new(servers.iter(), &Caller::admin());
        let (mut all, mut from, mut pages) = (Vec::new(), None, 0);
        loop {
            let ResourcePage { definitions, next } = offers.page(from.as_ref());
            all.extend(definitions);
            pages += 1;
            from = next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(pages, 4);
        let expected: Vec<String> =
            resources("a", 700).into_iter().chain(resources("c", 900)).collect();
        assert_eq!(all, expected);
        let gone = ListPosition { server: "bb".to_owned(), index: 3 };
        assert_eq!(offers.page(Some(&gone)).definitions[0], r#"{"uri":"c://0"}"#);
    }
}
