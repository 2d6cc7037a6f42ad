//! Finds the object that a Kubernetes manifest describes.

use serde_json::Value;

use super::canonical;

/// Longer manifests are not read.
const MANIFEST_BYTES_MAX: usize = 64 << 10;

/// The object of a manifest with one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) namespace: Option<String>,
    pub(super) kind: String,
    pub(super) name: String,
}

impl Object {
    /// Returns `namespace/kind/name`; the namespace is that of the manifest, else the given one.
    pub(super) fn resource(&self, namespace: Option<&str>) -> String {
        match self.namespace.as_deref().or(namespace) {
            Some(namespace) => format!("{namespace}/{}/{}", self.kind, self.name),
            None => format!("{}/{}", self.kind, self.name),
        }
    }
}

/// Returns the object of a manifest in YAML or JSON with a single document.
pub(super) fn read(manifest: &str) -> Option<Object> {
    if manifest.len() > MANIFEST_BYTES_MAX {
        return None;
    }
    let manifest = manifest.trim_start_matches('\u{feff}').trim();
    if manifest.starts_with('{') { of_json(manifest) } else { of_yaml(manifest) }
}

fn of_json(manifest: &str) -> Option<Object> {
    let value: Value = serde_json::from_str(manifest).ok()?;
    let text = |value: &Value, key: &str| value.get(key)?.as_str().map(str::to_owned);
    text(&value, "apiVersion")?;
    let metadata = value.get("metadata")?;
    Object::new(text(metadata, "namespace"), &text(&value, "kind")?, &text(metadata, "name")?)
}

/// Reads the members that name the object. Nothing else of the document is understood.
fn of_yaml(manifest: &str) -> Option<Object> {
    let mut fields = Fields::default();
    let mut within_metadata = None;
    for line in manifest.lines() {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let Some((key, value)) = text.split_once(':').filter(|_| !text.starts_with('#')) else {
            continue;
        };
        if indent == 0 {
            within_metadata = (key == "metadata").then_some(0);
            match key {
                "apiVersion" => fields.is_manifest = true,
                // A second document.
                "kind" if fields.kind.is_some() => return None,
                "kind" => fields.kind = scalar(value),
                _ => {}
            }
            continue;
        }
        // The members of `metadata` are those with the indent of its first line.
        if within_metadata == Some(0) {
            within_metadata = Some(indent);
        }
        if within_metadata == Some(indent) {
            match key {
                "name" => fields.name = scalar(value),
                "namespace" => fields.namespace = scalar(value),
                _ => {}
            }
        }
    }
    if !fields.is_manifest {
        return None;
    }
    Object::new(fields.namespace, &fields.kind?, &fields.name?)
}

#[derive(Default)]
struct Fields {
    is_manifest: bool,
    kind: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
}

impl Object {
    fn new(namespace: Option<String>, kind: &str, name: &str) -> Option<Object> {
        let kind = canonical::kind(kind);
        (!kind.is_empty() && !name.is_empty()).then(|| Object {
            namespace,
            kind,
            name: name.to_owned(),
        })
    }
}

/// Returns a plain or quoted word, without a comment.
fn scalar(value: &str) -> Option<String> {
    let value = value.split(" #").next().unwrap_or_default().trim();
    let bare = value.trim_matches(['"', '\'']);
    let is_word = !bare.is_empty() && !bare.contains(char::is_whitespace);
    (is_word && !bare.starts_with(['{', '[', '&', '*', '|', '>'])).then(|| bare.to_owned())
}
