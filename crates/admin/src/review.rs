//! An item of a server as a reviewer sees it: the approved text against the listed one, hidden
//! characters visible, with warnings.

use domain::Catalog;
use domain::trust::{Fingerprint, ItemKind, ReviewChange, change_fingerprint, difference};
use store::state::{Definition, ServerItem};
use suspect::{KnownNames, Warning, warnings};
use text::visible;

use crate::view::{DiffLine, ReviewItem, TextWarning};

/// Returns the names of every server's tools, to find texts that borrow one.
pub(crate) fn known_names(catalog: &Catalog) -> KnownNames {
    KnownNames::new(catalog.tool_names())
}

/// One item: the pending text if there is one, otherwise the approved one.
pub(crate) struct Review<'a> {
    pub(crate) text: &'a str,
    pub(crate) fingerprint: String,
    pub(crate) approved: Option<&'a Definition>,
    /// The reason the item is pending, if it is.
    pub(crate) change: Option<ReviewChange>,
}

impl<'a> Review<'a> {
    /// Reviews an item that the store knows.
    pub(crate) fn of(item: &'a ServerItem) -> Option<Review<'a>> {
        let approved = item.approved.as_ref();
        let shown = item.pending.as_ref().or(approved)?;
        let change = item.pending.as_ref().map(|_| match approved {
            Some(_) => ReviewChange::Changed,
            None => ReviewChange::New,
        });
        let fingerprint = shown.fingerprint.clone();
        Some(Review { text: &shown.text, fingerprint, approved, change })
    }

    /// Reviews a tool that the store does not know.
    pub(crate) fn unknown(definition: &'a str) -> Review<'a> {
        let fingerprint = Fingerprint::of(definition).to_string();
        Review { text: definition, fingerprint, approved: None, change: None }
    }

    /// Returns the whole text, laid out with hidden characters visible.
    pub(crate) fn visible(&self) -> String {
        laid_out(self.text)
    }

    /// Returns the difference between the approved and the pending text.
    pub(crate) fn difference(&self) -> Option<Vec<DiffLine>> {
        self.change?;
        let old = self.approved.map(|approved| &*approved.text);
        Some(difference(old, self.text).into_iter().map(DiffLine::from).collect())
    }

    /// Returns a hash of the change, which equal changes of other items share.
    pub(crate) fn change_hash(&self) -> Option<String> {
        let approved = self.approved.filter(|_| self.change.is_some())?;
        Some(change_fingerprint(&approved.text, self.text).to_string())
    }

    pub(crate) fn warnings(&self, server: &str, known: &KnownNames) -> Vec<TextWarning> {
        let warnings = warnings(self.text, server, known).into_iter();
        let entry = |warning: Warning| TextWarning {
            kind: warning.kind.as_str().to_owned(),
            text: warning.text,
        };
        warnings.map(entry).collect()
    }
}

/// Lays out a whole text, with hidden characters visible.
pub(crate) fn laid_out(text: &str) -> String {
    let lines = difference(Some(text), text);
    lines.into_iter().map(|line| line.text).collect::<Vec<_>>().join("\n")
}

/// Returns one item for review, with its name checked too, since a name can also mislead.
pub(crate) fn entry(server: &str, item: &ServerItem, known: &KnownNames) -> Option<ReviewItem> {
    let review = Review::of(item)?;
    let is_plain = ItemKind::parse(&item.kind) == Some(ItemKind::Instructions);
    Some(ReviewItem {
        kind: item.kind.clone(),
        name: item.name.clone(),
        status: if review.change.is_some() { "pending_approval" } else { "approved" }.to_owned(),
        text: review.text.to_owned(),
        visible: if is_plain { visible(review.text).into_owned() } else { review.visible() },
        warnings: review.warnings(server, known),
        approved_fingerprint: review.approved.map(|approved| approved.fingerprint.clone()),
        change: review.change.map(|change| change.as_str().to_owned()),
        change_hash: review.change_hash(),
        diff: review.difference(),
        fingerprint: review.fingerprint,
    })
}
