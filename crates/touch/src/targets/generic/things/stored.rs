//! The objects of a bucket, which have an address too: `s3://bucket/key`.

use super::super::super::canonical;
use super::super::Finding;
use super::super::role::Role;
use super::super::scope;
use super::super::tool::BucketStore;
use super::Call;

/// Nouns of what a bucket holds.
const STORED: &[&str] = &["blob", "file", "object"];

impl<'a> Call<'a> {
    /// Adds the addresses of the objects that are named by their bucket and key.
    pub(super) fn with_addresses(&self, mut found: Vec<Finding<'a>>) -> Vec<Finding<'a>> {
        let is_in_bucket = matches!(self.scopes[..], [(rank, _)] if scope::is_bucket(rank));
        if is_in_bucket {
            let addresses: Vec<Finding<'a>> =
                found.iter().filter_map(|object| self.address_of(object)).collect();
            found.extend(addresses);
        }
        found
    }

    fn address_of(&self, object: &Finding<'a>) -> Option<Finding<'a>> {
        let is_key = match &*object.given.role {
            Role::Key { .. } => true,
            Role::Id { noun, .. } if STORED.contains(&&**noun) => {
                object.given.key.to_ascii_lowercase().ends_with("key")
            }
            Role::Thing | Role::Path { .. } => false,
            _ => return None,
        };
        let scheme = match self.plan.tool.store {
            BucketStore::At(scheme) => scheme,
            // Only the protocol of S3 calls the name of an object its key.
            BucketStore::Untold if is_key => "s3",
            BucketStore::Untold | BucketStore::Other => return None,
        };
        let name = object.target.resource();
        let is_plain = object.target.system() == self.plan.system() && !name.contains(['?', '#']);
        let target = canonical::web(&format!("{scheme}://{name}"), self.place);
        let target = target.filter(|_| is_plain)?;
        Some(Finding { target, access: object.access, given: object.given })
    }

    /// Reports whether an id is that of an object in a bucket, which has one name, whatever the key
    /// that gives it.
    pub(super) fn is_stored(&self, noun: &str) -> bool {
        let last = self.scopes.last().map(|(rank, _)| *rank);
        STORED.contains(&noun) && last.is_some_and(scope::is_bucket)
    }
}
