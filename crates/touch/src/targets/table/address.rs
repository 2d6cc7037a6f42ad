//! Addresses of pages that show a resource of a known service.

use serde_json::{Map, Value};

use super::super::template::{Found, TargetTemplate};
use super::super::{CallPlace, Target};

/// A form of address, such as `https://github.com/{owner}/{repo}/issues/{number}`. A part in braces
/// matches one segment of the path, and `*` at the end for any others.
#[derive(Debug)]
pub(super) struct KnownAddress {
    host: String,
    segments: Vec<Segment>,
    has_rest: bool,
    resource: TargetTemplate,
}

#[derive(Debug)]
enum Segment {
    Literal(String),
    Named(String),
}

/// The names of a service's resources depend on nothing but the address.
const NOWHERE: CallPlace<'_> =
    CallPlace { root: None, home: None, is_local: false, query_key: &[0; 32] };

impl KnownAddress {
    pub(super) fn parse(address: &str, resource: &str) -> Option<KnownAddress> {
        let (host, path) = address.strip_prefix("https://")?.split_once('/')?;
        let (path, has_rest) = match path.strip_suffix("/*") {
            Some(path) => (path, true),
            None => (path, false),
        };
        let segment = |text: &str| match text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
            Some(name) => Segment::Named(name.to_owned()),
            None => Segment::Literal(text.to_owned()),
        };
        Some(KnownAddress {
            host: host.to_owned(),
            segments: path.split('/').map(segment).collect(),
            has_rest,
            resource: TargetTemplate::parse(resource).ok()?,
        })
    }

    /// Returns the resource that the page at a canonical address shows.
    pub(super) fn resource(&self, system: &str, address: &str) -> Option<Target> {
        let (host, path) = address.strip_prefix("https://")?.split_once('/')?;
        let host = host.strip_prefix("www.").unwrap_or(host);
        // A query may select something else.
        if host != self.host || path.contains('?') {
            return None;
        }
        let mut given = path.split('/');
        let mut parts = Map::new();
        for segment in &self.segments {
            let text = given.next().filter(|text| !text.is_empty())?;
            match segment {
                Segment::Literal(literal) if literal == text => {}
                Segment::Literal(_) => return None,
                Segment::Named(name) => drop(parts.insert(name.clone(), Value::from(text))),
            }
        }
        if given.next().is_some() && !self.has_rest {
            return None;
        }
        let mut found = Found::default();
        self.resource.apply(&parts, system, &NOWHERE, &mut found);
        found.targets.into_iter().next().map(|(target, _)| target)
    }
}
