//! One spelling for one thing: ids, kinds, files of this machine and addresses.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use super::{CallPlace, Target, clean, is_break, of_file, tidy, uri};
use redact::{REDACTED, is_secret_key};
use text::{hex, percent};

/// The system of addresses, whichever tool reaches them.
pub const WEB: &str = "web";

/// Schemes whose addresses mean the same to everyone. Others, such as `memo://`, are a server's own.
const SHARED_SCHEMES: &[&str] =
    &["http", "https", "ws", "wss", "ftp", "ftps", "sftp", "ssh", "git", "s3", "gs"];

/// Hexadecimal digits of the hash that replaces a query.
const QUERY_DIGITS: usize = 12;

const TRACKING: &[&str] = text::words!("canonical/tracking.txt");

/// Beginnings of families of parameters that track a visitor or sign an address.
const FAMILIES: &[&str] = &["utm_", "mtm_", "hsa_", "x-amz-", "x-goog-", "session"];

/// Parameters that carry a login or a signature, in addition to those whose values are always
/// redacted.
const CREDENTIAL: &[&str] = &["auth", "key", "sid", "sig", "signature"];

/// Parameters that are a login only together: the answer of an authorization server.
const AUTHORIZATION: [&str; 2] = ["code", "state"];

/// Returns the canonical form of an id: a UUID without dashes in lower case, an issue key such as
/// `SHOP-12` in upper case, escapes decoded, no trailing slash.
pub(super) fn id(text: &str) -> Cow<'_, str> {
    let plain = value(text);
    if is_issue_key(&plain) { Cow::Owned(plain.to_ascii_uppercase()) } else { plain }
}

/// Returns the canonical form of a value that is not an issue key: `api-0` is the name of a pod.
pub(super) fn value(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if let Some(uuid) = uuid(text) {
        return Cow::Owned(uuid);
    }
    let decoded = if text.contains("://") { None } else { unescaped(text) };
    match decoded {
        Some(decoded) => Cow::Owned(without_slash(&decoded).to_owned()),
        None => Cow::Borrowed(without_slash(text)),
    }
}

fn without_slash(text: &str) -> &str {
    let trimmed = text.trim_end_matches('/');
    if trimmed.is_empty() { text } else { trimmed }
}

/// Returns the 32 digits of a UUID.
pub(super) fn uuid(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let dashed = bytes.len() == 36;
    if !dashed && bytes.len() != 32 {
        return None;
    }
    let is_dash = |at: usize| dashed && matches!(at, 8 | 13 | 18 | 23);
    let fits = bytes
        .iter()
        .enumerate()
        .all(|(at, byte)| if is_dash(at) { *byte == b'-' } else { byte.is_ascii_hexdigit() });
    fits.then(|| text.replace('-', "").to_ascii_lowercase())
}

/// Reports whether text has the form of an issue key: `SHOP-12`.
pub(super) fn is_issue_key(text: &str) -> bool {
    let Some((project, number)) = text.split_once('-') else {
        return false;
    };
    (2..=10).contains(&project.len())
        && project.starts_with(|first: char| first.is_ascii_alphabetic())
        && project.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && (1..=9).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns text without percent-encoding; `None` if it has none, or if what it hides is not a name.
fn unescaped(text: &str) -> Option<String> {
    let decoded = decoded(text)?;
    (!decoded.contains(|char: char| char.is_control() || is_break(char))).then_some(decoded)
}

/// Returns text without percent-encoding; `None` if it has none, or if what it hides is not a text.
fn decoded(text: &str) -> Option<String> {
    if text.contains('%') { percent::decode(text) } else { None }
}

/// Returns a kind in the singular, in lower case and in full: `Pods` and `po` are `pod`. A kind
/// with its own namespace, such as `AWS::S3::Bucket`, stays.
pub(super) fn kind(text: &str) -> String {
    let text = text.trim();
    if text.contains("::") {
        return text.to_owned();
    }
    let lower = text.to_ascii_lowercase();
    let full = match lower.as_str() {
        "cj" => "cronjob",
        "cm" => "configmap",
        "crd" | "crds" => "customresourcedefinition",
        "deploy" => "deployment",
        "ds" => "daemonset",
        "ep" => "endpoint",
        "hpa" => "horizontalpodautoscaler",
        "ing" => "ingress",
        "no" => "node",
        "ns" => "namespace",
        "po" => "pod",
        "pv" => "persistentvolume",
        "pvc" => "persistentvolumeclaim",
        "rs" => "replicaset",
        "sa" => "serviceaccount",
        "sts" => "statefulset",
        "svc" => "service",
        other => return singular(other).into_owned(),
    };
    full.to_owned()
}

/// Returns the singular of a noun in lower case, by the regular endings only.
pub(super) fn singular(word: &str) -> Cow<'_, str> {
    let stem = |cut: usize| &word[..word.len() - cut];
    if ["series", "species"].iter().any(|same| word.ends_with(same)) {
        return Cow::Borrowed(word);
    }
    if word.len() > 4 && word.ends_with("ies") {
        return Cow::Owned(format!("{}y", stem(3)));
    }
    if ["sses", "xes", "ches", "shes"].iter().any(|end| word.ends_with(end)) {
        return Cow::Borrowed(stem(2));
    }
    let kept = ["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    let plural = word.len() > 3 && word.ends_with('s') && !kept;
    Cow::Borrowed(if plural { stem(1) } else { word })
}

/// Returns a file of this machine, from its path or `file:` address. A server elsewhere has its own
/// files, a relative path needs a known folder and `~` a known home; `$X` depends on the server.
pub(super) fn file(path: &str, place: &CallPlace<'_>) -> Option<Target> {
    if !place.is_local {
        return None;
    }
    let root = place.root.unwrap_or_default();
    if let Some(path) = file_address(path) {
        return of_file(&path, root);
    }
    let path = tidy(path);
    let path = from_home(&path, place.home);
    let is_elsewhere = path.contains("://") || path.starts_with(['~', '$']);
    if is_elsewhere { None } else { of_file(&path, root) }
}

/// Returns a path with the home folder in place of `~`. The home of another user is not known.
pub(super) fn from_home<'p>(path: &'p str, home: Option<&str>) -> Cow<'p, str> {
    let rest = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (rest, home) {
        (Some(rest), Some(home)) => Cow::Owned(format!("{home}{rest}")),
        _ => Cow::Borrowed(path),
    }
}

/// Reports whether text is a `file:` address.
pub(super) fn is_file_address(text: &str) -> bool {
    file_rest(text).is_some()
}

/// Returns what follows `file:`, if that is a path.
fn file_rest(address: &str) -> Option<&str> {
    let (scheme, rest) = address.trim().split_once(':')?;
    (scheme.eq_ignore_ascii_case("file") && rest.starts_with('/')).then_some(rest)
}

/// Returns the path in a `file:` address of this machine, whichever user it names.
fn file_address(address: &str) -> Option<Cow<'_, str>> {
    let rest = file_rest(address)?.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/')?),
        None => ("", rest),
    };
    let host = authority.rsplit('@').next().unwrap_or_default();
    let is_here = host.is_empty() || host.eq_ignore_ascii_case("localhost");
    is_here.then(|| decoded(path).map_or(Cow::Borrowed(path), Cow::Owned))
}

/// Returns a path inside something that is not this machine's disk: no `.`, `..` or outer slashes.
pub(super) fn inner_path(path: &str) -> Option<String> {
    let path = path.trim();
    let cleaned = clean(path, "/")?;
    let inner = cleaned.trim_start_matches('/');
    (!inner.is_empty()).then(|| inner.to_owned())
}

/// Returns an address, without userinfo and query. A short hash replaces the parameters of the
/// query that are neither credentials nor tracking, so that two items stay apart. Clients open
/// `https:/h\a` like `https://h/a`, and so it is named.
pub(super) fn web(address: &str, place: &CallPlace<'_>) -> Option<Target> {
    let address = trimmed(address);
    let scheme = scheme(&address).filter(|scheme| is_shared(scheme))?;
    let rest = address[scheme.len() + 1..].split('#').next().unwrap_or_default();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_lenient = is_lenient(scheme);
    let rest = if is_lenient { replaced(rest, '\\', "/") } else { Cow::Borrowed(rest) };
    let rest = if is_lenient { rest.trim_start_matches('/') } else { rest.strip_prefix("//")? };
    if rest.is_empty() {
        return None;
    }
    let canonical = uri::canonical(&normalized(scheme, rest))?;
    if let Some(host_end) = holds_token(&canonical) {
        return Target::recorded(WEB, format!("{}/{REDACTED}", &canonical[..host_end]));
    }
    let digest = query_digest(query, place.query_key);
    Target::recorded(WEB, canonical + &digest)
}

/// Returns the object of a server's bucket at an address of a store.
pub(super) fn stored_at(address: &Target, system: &str) -> Option<Target> {
    let (scheme, name) = address.resource().split_once("://")?;
    if !["s3", "gs"].contains(&scheme) || name.contains('?') {
        return None;
    }
    Target::recorded(system, unescaped(name).unwrap_or_else(|| name.to_owned()))
}

/// Returns an address without what its opener leaves out.
fn trimmed(address: &str) -> Cow<'_, str> {
    without(address.trim_matches(|char: char| char <= ' '), &['\t', '\n', '\r'])
}

/// Returns the scheme of an address. On the web, slashes in any number follow, or none.
fn scheme(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once(':')?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_http = || ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    let follows = |first: char| {
        matches!(first, '/' | '\\') && is_lenient(scheme)
            || first.is_ascii_alphanumeric() && is_http()
    };
    (is_scheme && (rest.starts_with("//") || rest.starts_with(follows))).then_some(scheme)
}

/// Reports whether text has the form of an address.
pub(super) fn is_address(text: &str) -> bool {
    scheme(&trimmed(text)).is_some()
}

/// Reports whether addresses of this scheme mean the same to everyone.
pub(super) fn is_shared(scheme: &str) -> bool {
    SHARED_SCHEMES.iter().any(|shared| scheme.eq_ignore_ascii_case(shared))
}

/// Reports whether clients repair addresses of this scheme: slashes in any number and direction.
fn is_lenient(scheme: &str) -> bool {
    ["http", "https", "ws", "wss"].iter().any(|web| scheme.eq_ignore_ascii_case(web))
}

/// Returns an address up to its query, with one form of percent-encoding and without dot segments.
fn normalized(scheme: &str, rest: &str) -> String {
    let rest = reencoded(rest);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut whole = format!("{scheme}://{host}");
    if !path.contains("/.") {
        whole.push_str(path);
        return whole;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    for part in parts {
        whole.push('/');
        whole.push_str(part);
    }
    whole
}

/// Decodes escapes of characters that need none, and writes the others in upper case. Blanks and
/// what is not ASCII get escapes.
fn reencoded(text: &str) -> String {
    let text = &*escaped(text);
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        written.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match percent::escaped_byte(rest.as_bytes()) {
            Some(code) if percent::is_unreserved(code) => {
                written.push(char::from(code));
                rest = &rest[2..];
            }
            Some(code) => {
                percent::push_escape(&mut written, code);
                rest = &rest[2..];
            }
            None => written.push('%'),
        }
    }
    written.push_str(rest);
    written
}

/// Returns text with escapes for blanks, controls and everything beyond ASCII.
fn escaped(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic();
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(percent::encode(text, is_plain))
}

fn replaced<'t>(text: &'t str, char: char, by: &str) -> Cow<'t, str> {
    if text.contains(char) { Cow::Owned(text.replace(char, by)) } else { Cow::Borrowed(text) }
}

/// Returns text without some characters.
fn without<'t>(text: &'t str, chars: &[char]) -> Cow<'t, str> {
    if text.contains(chars) { Cow::Owned(text.replace(chars, "")) } else { Cow::Borrowed(text) }
}

/// Returns the end of the host if the path of an address is a credential, whose knowledge suffices
/// to post.
fn holds_token(address: &str) -> Option<usize> {
    let holds =
        ["//hooks.slack.com/", "/api/webhooks/", "//api.telegram.org/bot", "//hooks.zapier.com/"]
            .iter()
            .any(|part| address.contains(part));
    let host = address.find("://").filter(|_| holds)? + "://".len();
    Some(host + address[host..].find('/')?)
}

/// Returns `?~` and a hash of the parameters of a query that tell two items apart; empty if there are none.
fn query_digest(query: &str, key: &[u8; 32]) -> String {
    let pairs = || query.split('&').filter(|pair| !pair.is_empty());
    let is_login = AUTHORIZATION.iter().all(|one| pairs().any(|pair| parameter(pair) == *one));
    let tells_apart = |pair: &&str| {
        let name = parameter(pair);
        !(is_no_matter(&name) || is_login && AUTHORIZATION.contains(&name.as_str()))
    };
    let mut kept: Vec<String> = pairs().filter(tells_apart).map(reencoded).collect();
    if kept.is_empty() {
        return String::new();
    }
    kept.sort_unstable();
    let mut hash = Sha256::new_with_prefix(key);
    for pair in &kept {
        hash.update(pair.as_bytes());
        hash.update(b"&");
    }
    format!("?~{}", hex::encode(&hash.finalize()[..QUERY_DIGITS / 2]))
}

/// Returns the name of a parameter, in lower case.
fn parameter(pair: &str) -> String {
    let name = pair.split('=').next().unwrap_or_default();
    unescaped(name).map_or(Cow::Borrowed(name), Cow::Owned).to_ascii_lowercase()
}

/// Reports whether a parameter is a credential or tracks a visitor.
fn is_no_matter(name: &str) -> bool {
    FAMILIES.iter().any(|start| name.starts_with(start))
        || TRACKING.contains(&name)
        || CREDENTIAL.contains(&name)
        || is_secret_key(name)
}
