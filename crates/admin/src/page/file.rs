//! The page's files, embedded in the program: nothing is installed, built or fetched.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// The content security policy: only our scripts and requests, no frames, no forms, no workers,
/// nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
    form-action 'none'; worker-src 'none'";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
pub(crate) const HTML: &str = "text/html; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// The media types of the page's files.
pub(crate) const KINDS: &[&str] = &[JAVASCRIPT, CSS, SVG, HTML];

pub(super) const INDEX: &str = "index.html";

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../page/", $name)))),*]
    };
}

const FILES: &[(&str, &[u8])] = files![
    "index.html",
    "tokens.css",
    "style.css",
    "icon.svg",
    "api.mjs",
    "app.mjs",
    "format.mjs",
    "live.mjs",
    "notice.mjs",
    "place.mjs",
    "tabs.mjs",
    "text.mjs",
    "part/change.mjs",
    "part/chart.mjs",
    "part/dialog.mjs",
    "part/diff.mjs",
    "part/filters.mjs",
    "part/fits.mjs",
    "part/graph.mjs",
    "part/lanes.mjs",
    "part/layout.mjs",
    "part/list.mjs",
    "part/match.mjs",
    "part/needs.mjs",
    "part/palette.mjs",
    "part/pasted.mjs",
    "part/receipt.mjs",
    "part/record-row.mjs",
    "part/rows.mjs",
    "part/shown.mjs",
    "part/tree.mjs",
    "part/waterfall.mjs",
    "view/activity.mjs",
    "view/add.mjs",
    "view/clients.mjs",
    "view/contention.mjs",
    "view/edge.mjs",
    "view/grouped.mjs",
    "view/lanes.mjs",
    "view/overview.mjs",
    "view/receipts.mjs",
    "view/record.mjs",
    "view/review.mjs",
    "view/runs.mjs",
    "view/servers.mjs",
    "view/signin.mjs",
    "view/tokens.mjs",
    "view/tool.mjs",
    "vendor/hooks.mjs",
    "vendor/htm.mjs",
    "vendor/preact.mjs",
    "vendor/signals-core.mjs",
    "vendor/signals.mjs",
];

struct File {
    bytes: &'static [u8],
    kind: &'static str,
    /// The entity tag, by which a browser recognizes a version that it has cached.
    tag: HeaderValue,
}

static BY_NAME: LazyLock<HashMap<&str, File>> = LazyLock::new(|| {
    let file = |bytes: &'static [u8], name: &str| {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let tag = format!("\"{:016x}\"", hasher.finish());
        let tag = HeaderValue::from_str(&tag).expect("hexadecimal digits");
        File { bytes, kind: kind(name), tag }
    };
    FILES.iter().map(|(name, bytes)| (*name, file(bytes, name))).collect()
});

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => HTML,
        Some("css") => CSS,
        Some("svg") => SVG,
        _ => JAVASCRIPT,
    }
}

/// Returns the file of this name, if there is one.
pub(super) fn answer(name: &str, headers: &HeaderMap) -> Option<Response> {
    let file = BY_NAME.get(name)?;
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == file.tag);
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, file.kind)], file.bytes).into_response()
    };
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
        // Pages on other ports of this machine are same-site, but not trusted.
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response.headers_mut().insert(header::ETAG, file.tag.clone());
    Some(response)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    /// The limit for the uncompressed size, so that it holds for any compression.
    const BYTES_MAX: usize = 300 * 1024;

    fn below(folder: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                below(&path, found);
            } else {
                found.insert(path);
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let mut found = BTreeSet::new();
        below(&folder, &mut found);
        let is_served = |name: &PathBuf| name.extension().is_none_or(|ending| ending != "md");
        let found: BTreeSet<PathBuf> =
            found.iter().map(|path| path.strip_prefix(&folder).unwrap().to_owned()).collect();
        let found: BTreeSet<PathBuf> = found.into_iter().filter(is_served).collect();
        assert_eq!(found, FILES.iter().map(|(name, _)| PathBuf::from(name)).collect());
    }

    /// A module that is found only through another one would be waited for twice.
    #[test]
    fn every_module_is_preloaded() {
        let index = str::from_utf8(include_bytes!("../../page/index.html")).unwrap();
        for (name, _) in FILES.iter().filter(|(name, _)| name.ends_with(".mjs")) {
            assert!(index.contains(&format!("\"/page/{name}\"")), "{name}");
        }
    }

    #[test]
    fn the_page_is_small() {
        let bytes: usize = FILES.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(bytes < BYTES_MAX, "{bytes} bytes");
    }

    #[test]
    fn a_browser_that_has_a_file_is_not_sent_it_again() {
        let first = answer("style.css", &HeaderMap::new()).unwrap();
        assert_eq!(first.status(), StatusCode::OK);
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        assert_eq!(answer("style.css", &headers).unwrap().status(), StatusCode::NOT_MODIFIED);
        assert!(answer("../Cargo.toml", &headers).is_none());
    }

    /// Foreign text reaches the document as text nodes only.
    #[test]
    fn page_scripts_never_parse_text_as_markup_or_code() {
        let ours = FILES.iter().filter(|(name, _)| !name.starts_with("vendor/"));
        for (name, bytes) in ours {
            let text = std::str::from_utf8(bytes).unwrap();
            let words = [
                "innerHTML",
                "outerHTML",
                "insertAdjacent",
                "document.write",
                "eval(",
                "Function(",
            ];
            for word in words.into_iter().chain(["srcdoc", "javascript:", "DOMParser"]) {
                let word = word.to_lowercase();
                assert!(!text.to_lowercase().contains(&*word), "{name}: {word}");
            }
        }
    }

    /// A module that imports a missing file would show a blank page.
    #[test]
    fn every_imported_file_exists() {
        for (name, bytes) in FILES.iter().filter(|(name, _)| name.ends_with(".mjs")) {
            let text = std::str::from_utf8(bytes).unwrap();
            let folder = Path::new(name).parent().unwrap();
            for part in text.split("from\"").skip(1).chain(text.split("from '").skip(1)) {
                let target = part.split(['"', '\'']).next().unwrap();
                assert!(target.starts_with('.'), "{name}: {target}");
                let mut path = PathBuf::new();
                for step in folder.join(target).components() {
                    match step {
                        std::path::Component::ParentDir => drop(path.pop()),
                        std::path::Component::CurDir => {}
                        step => path.push(step),
                    }
                }
                assert!(BY_NAME.contains_key(path.to_str().unwrap()), "{name}: {target}");
            }
        }
    }
}
