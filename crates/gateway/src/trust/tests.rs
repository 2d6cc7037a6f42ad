//! Lists that arrive one after the other, and which of their items may be shown.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

use serde_json::{Value, json};
use store::state::ItemVersion;

use super::*;

const OPEN: ApprovalTerms = ApprovalTerms { auto_approve: AutoApprove::None, quarantined: false };

fn offer(tools: &[Value]) -> Offer {
    let tools = tools.iter().map(|tool| raw(tool.to_string())).collect();
    Offer { tools: ToolList::New(tools), extras: Extras::default(), info: None }
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description})
}

fn compared(store: &Store, terms: ApprovalTerms, offer: Offer, scope: ListScope) -> Review {
    let terms = Arc::new(ArcSwap::from_pointee(terms));
    let store = store.clone();
    let source = Source::Mcp("s".into());
    let server: Arc<str> = "s".into();
    let publisher = Arc::<crate::catalogs::Catalogs>::default().publisher(&server);
    let (unsaved_baseline, lines) = (Arc::default(), Arc::default());
    let targets = Arc::default();
    let reviewer =
        Reviewer { store, publisher, server, source, terms, targets, unsaved_baseline, lines };
    reviewer.compare(offer, scope)
}

fn shared(store: &Store, terms: ApprovalTerms, offer: Offer) -> Review {
    compared(store, terms, offer, ListScope::Shared)
}

fn approvals(reviewed: &Review) -> Vec<(String, ApprovalState)> {
    let tools = reviewed.listing.tools().iter();
    tools.map(|tool| (tool.name.clone(), reviewed.listing.approval(&tool.name).unwrap())).collect()
}

fn waiting(store: &Store) -> Vec<String> {
    let items = store.state().items("s").unwrap();
    let waiting = items.iter().filter(|item| item.pending.is_some());
    waiting.map(|item| format!("{} {}", item.kind, item.name)).collect()
}

fn approve_all(store: &Store) {
    for item in store.state().items("s").unwrap() {
        if let Some(pending) = item.pending {
            let reviewed = [ItemVersion {
                kind: &item.kind,
                name: &item.name,
                fingerprint: &pending.fingerprint,
            }];
            store.state().approve_items("s", &reviewed).unwrap();
        }
    }
}

#[test]
fn the_first_list_is_the_baseline_and_later_changes_are_pending() {
    let store = Store::nowhere();
    let (old, new) = (tool("a", "old"), tool("b", "new"));
    let first = shared(&store, OPEN, offer(std::slice::from_ref(&old)));
    assert_eq!(approvals(&first), [("a".to_owned(), ApprovalState::Approved)]);
    let changed = [tool("a", "another"), new.clone()];
    let second = shared(&store, OPEN, offer(&changed));
    let pending = ["a", "b"].map(|name| (name.to_owned(), ApprovalState::Pending));
    assert_eq!(approvals(&second), pending);
    assert_eq!(waiting(&store), ["tool a", "tool b"]);
    // The approved text is back, so nothing is pending for that item any more.
    shared(&store, OPEN, offer(&[old, new.clone()]));
    assert_eq!(waiting(&store), ["tool b"]);
    approve_all(&store);
    let third = shared(&store, OPEN, offer(&[new]));
    assert_eq!(approvals(&third), [("b".to_owned(), ApprovalState::Approved)]);
}

#[test]
fn nothing_of_a_server_in_quarantine_is_taken_as_approved() {
    let store = Store::nowhere();
    let quarantined = ApprovalTerms { auto_approve: AutoApprove::All, quarantined: true };
    let reviewed = shared(&store, quarantined, offer(&[tool("a", "text")]));
    assert_eq!(approvals(&reviewed), [("a".to_owned(), ApprovalState::Pending)]);
    assert!(!store.state().server("s").unwrap().is_some_and(|server| server.has_baseline));
}

#[test]
fn auto_approve_accepts_no_new_or_all_changes() {
    for (auto_approve, expected) in [
        (AutoApprove::None, [ApprovalState::Pending, ApprovalState::Pending]),
        (AutoApprove::New, [ApprovalState::Pending, ApprovalState::Approved]),
        (AutoApprove::All, [ApprovalState::Approved, ApprovalState::Approved]),
    ] {
        let store = Store::nowhere();
        shared(&store, OPEN, offer(&[tool("a", "old")]));
        let terms = ApprovalTerms { auto_approve, ..OPEN };
        let reviewed = shared(&store, terms, offer(&[tool("a", "another"), tool("b", "new")]));
        let found: Vec<ApprovalState> = approvals(&reviewed).into_iter().map(|(_, a)| a).collect();
        assert_eq!(found, expected, "{auto_approve:?}");
    }
}

#[test]
fn instructions_prompts_and_templates_are_reviewed_like_tools() {
    let store = Store::nowhere();
    let saying = |instructions: &str, prompt: &str, template: &str| Offer {
        tools: ToolList::New(Vec::new()),
        extras: Extras {
            instructions: Some(instructions.to_owned()),
            resources: Arc::default(),
            resources_changed: 0,
            lists: vec![
                ItemList {
                    kind: ItemKind::Prompt,
                    items: vec![raw(tool("p", prompt).to_string())],
                },
                ItemList {
                    kind: ItemKind::Template,
                    items: vec![raw(
                        json!({"uriTemplate": "file:///{x}", "name": template}).to_string()
                    )],
                },
            ],
        },
        info: None,
    };
    let first = shared(&store, OPEN, saying("be kind", "one", "one"));
    assert_eq!(first.instructions.as_deref(), Some("be kind"));
    let second = shared(&store, OPEN, saying("be cruel", "two", "two"));
    assert_eq!(second.instructions, None);
    assert_eq!(waiting(&store), ["instructions ", "prompt p", "template file:///{x}"]);
    approve_all(&store);
    let third = shared(&store, OPEN, saying("be cruel", "two", "two"));
    assert_eq!(third.instructions.as_deref(), Some("be cruel"));
    assert!(waiting(&store).is_empty());
    // A list that could not be fetched says nothing about removed items.
    shared(
        &store,
        OPEN,
        Offer { tools: ToolList::New(Vec::new()), extras: Extras::default(), info: None },
    );
    let listed = |kind: &str| {
        let items = store.state().items("s").unwrap();
        items.iter().any(|item| item.kind == kind && item.listed)
    };
    assert!(listed("prompt") && listed("template") && !listed("instructions"));
}

#[test]
fn a_clients_own_list_adds_pending_items_and_removes_none() {
    let store = Store::nowhere();
    shared(&store, OPEN, offer(&[tool("a", "text"), tool("b", "text")]));
    let own = offer(&[tool("a", "text"), tool("c", "for one")]);
    let reviewed = compared(&store, OPEN, own, ListScope::Own);
    let found = [("a", ApprovalState::Approved), ("c", ApprovalState::Pending)];
    assert_eq!(approvals(&reviewed), found.map(|(name, approval)| (name.to_owned(), approval)));
    assert_eq!(waiting(&store), ["tool c"]);
    assert!(store.state().items("s").unwrap().iter().all(|item| item.listed));
}

#[test]
fn a_server_that_is_not_started_shows_what_it_listed_last() {
    let store = Store::nowhere();
    shared(&store, OPEN, offer(&[tool("b", "text"), tool("a", "text")]));
    shared(&store, OPEN, offer(&[tool("b", "text"), tool("a", "another")]));
    let found = [("a", ApprovalState::Pending), ("b", ApprovalState::Approved)];
    let remembered =
        remembered(&store, &Source::Mcp("s".into()), &PlanSource::new(&"s".into(), None));
    assert_eq!(approvals(&remembered), found.map(|(name, approval)| (name.to_owned(), approval)));
}
