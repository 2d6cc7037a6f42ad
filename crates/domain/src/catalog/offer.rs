//! The prompts, resource templates and resources that one server listed. Prompts and templates have
//! approvals; a resource follows the lock of its server, or of the template it belongs to.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::exposed::fits;
use crate::method::{SUBJECT_BYTES_MAX, SubjectItem};
use crate::policy::ApprovalState;
use crate::trust::ItemKind;

/// One prompt or template.
#[derive(Clone, Debug)]
pub struct ListedItem {
    pub kind: ItemKind,
    /// The name of a prompt, the `uriTemplate` of a template.
    pub name: String,
    pub definition: Box<RawValue>,
    pub approval: ApprovalState,
}

/// One resource, which needs no approval.
#[derive(Clone, Debug)]
pub struct ListedResource {
    pub uri: String,
    pub definition: Box<RawValue>,
}

impl ListedResource {
    /// Reads a definition; `None` without a usable address.
    pub fn parse(definition: Box<RawValue>) -> Option<ListedResource> {
        #[derive(Deserialize)]
        struct Addressed {
            uri: String,
        }
        let Addressed { uri } = serde_json::from_str(definition.get()).ok()?;
        (uri.len() <= SUBJECT_BYTES_MAX).then_some(ListedResource { uri, definition })
    }
}

impl PartialEq for ListedResource {
    fn eq(&self, other: &ListedResource) -> bool {
        self.definition.get() == other.definition.get()
    }
}

/// Everything besides tools that a server offers, in its order.
#[derive(Clone, Debug, Default)]
pub struct ServerOffer {
    items: Vec<ListedItem>,
    resources: Arc<[ListedResource]>,
    /// The number of times the server announced other resources.
    resources_changed: u64,
}

impl PartialEq for ServerOffer {
    fn eq(&self, other: &ServerOffer) -> bool {
        let same = |(one, other): (&ListedItem, &ListedItem)| {
            one.kind == other.kind
                && one.approval == other.approval
                && one.definition.get() == other.definition.get()
        };
        self.resources_changed == other.resources_changed
            && self.resources == other.resources
            && self.items.len() == other.items.len()
            && self.items.iter().zip(&other.items).all(same)
    }
}

impl ServerOffer {
    pub fn new(items: Vec<ListedItem>, resources_changed: u64) -> ServerOffer {
        ServerOffer { items, resources: Arc::default(), resources_changed }
    }

    #[must_use]
    pub fn with_resources(self, resources: Arc<[ListedResource]>) -> ServerOffer {
        ServerOffer { resources, ..self }
    }

    pub fn resources(&self) -> &Arc<[ListedResource]> {
        &self.resources
    }

    pub fn items(&self) -> &[ListedItem] {
        &self.items
    }

    pub fn resources_changed(&self) -> u64 {
        self.resources_changed
    }

    /// Returns the approved definitions of one kind, as the server sent them.
    pub fn approved(&self, kind: ItemKind) -> impl Iterator<Item = &str> {
        let of_kind = self.items.iter().filter(move |item| item.kind == kind);
        let approved = of_kind.filter(|item| item.approval == ApprovalState::Approved);
        approved.map(|item| item.definition.get())
    }

    /// Returns the approval of what a request is about; `None` for a prompt that is not listed.
    pub fn approval(&self, subject: SubjectItem<'_>) -> Option<ApprovalState> {
        match subject {
            SubjectItem::Prompt(name) => self.named(ItemKind::Prompt, name),
            SubjectItem::Template(name) => {
                Some(self.named(ItemKind::Template, name).unwrap_or_else(|| self.of_resource(name)))
            }
            SubjectItem::Resource(uri) => Some(self.of_resource(uri)),
        }
    }

    /// Returns the approval of every item of this name: one that waits locks them all.
    fn named(&self, kind: ItemKind, name: &str) -> Option<ApprovalState> {
        let named = self.items.iter().filter(|item| item.kind == kind && item.name == name);
        let mut approvals = named.map(|item| item.approval);
        let first = approvals.next()?;
        let waits = |approval: &ApprovalState| *approval != ApprovalState::Approved;
        Some(std::iter::once(first).chain(approvals).find(waits).unwrap_or(first))
    }

    /// A resource is locked if only templates that wait for approval describe it.
    fn of_resource(&self, uri: &str) -> ApprovalState {
        let templates = self.items.iter().filter(|item| item.kind == ItemKind::Template);
        let mut waiting = None;
        for template in templates.filter(|template| fits(&template.name, uri)) {
            if template.approval == ApprovalState::Approved {
                return ApprovalState::Approved;
            }
            waiting = Some(template.approval);
        }
        waiting.unwrap_or(ApprovalState::Approved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: ItemKind, name: &str, approval: ApprovalState) -> ListedItem {
        let definition = RawValue::from_string(format!("\"{name} {approval:?}\"")).unwrap();
        ListedItem { kind, name: name.to_owned(), definition, approval }
    }

    #[test]
    fn what_waits_is_locked_and_not_shown() {
        use ApprovalState::{Approved, Pending};
        let items = vec![
            item(ItemKind::Prompt, "good", Approved),
            item(ItemKind::Prompt, "new", Pending),
            item(ItemKind::Prompt, "twice", Approved),
            item(ItemKind::Prompt, "twice", Pending),
            item(ItemKind::Template, "a://{x}", Approved),
            item(ItemKind::Template, "a://{x}/more", Pending),
            item(ItemKind::Template, "b://{x}", Pending),
        ];
        let offer = ServerOffer::new(items, 0);
        for (subject, expected) in [
            (SubjectItem::Prompt("good"), Some(Approved)),
            (SubjectItem::Prompt("new"), Some(Pending)),
            (SubjectItem::Prompt("twice"), Some(Pending)),
            (SubjectItem::Prompt("none"), None),
            (SubjectItem::Template("a://{x}"), Some(Approved)),
            (SubjectItem::Template("b://{x}"), Some(Pending)),
            (SubjectItem::Template("c://{x}"), Some(Approved)),
            (SubjectItem::Resource("a://1/more"), Some(Approved)),
            (SubjectItem::Resource("b://1"), Some(Pending)),
            (SubjectItem::Resource("c://1"), Some(Approved)),
        ] {
            assert_eq!(offer.approval(subject), expected, "{subject:?}");
        }
        let shown: Vec<&str> = offer.approved(ItemKind::Prompt).collect();
        assert_eq!(shown, ["\"good Approved\"", "\"twice Approved\""]);
    }
}
