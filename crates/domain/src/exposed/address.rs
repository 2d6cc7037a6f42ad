//! The addresses of resources in the view over all servers. An address stays as its server wrote it
//! as long as it leads to that server alone. Any other is qualified with the name of its server. A
//! template that could match any server's addresses leads to its server only with that name. The
//! mapping depends only on what the servers list, so that it is the same after every start.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use text::percent;

/// Qualified addresses begin with this, the server's name and a slash; the server's own address
/// follows unchanged.
const QUALIFIED: &str = "countersign://server/";

/// Hosts of apps recognise their pages by this scheme, so it stays in front.
const UI: &str = "ui://";

/// The part between the scheme of a page and its server's name.
const UI_MARK: &str = "countersign/";

/// Schemes of addresses that belong to no program: a server that has some of them does not have the
/// rest.
const SHARED_SCHEMES: [&str; 16] = [
    "blob", "data", "file", "ftp", "ftps", "git", "http", "https", "mailto", "sftp", "ssh", "tag",
    "ui", "urn", "ws", "wss",
];

/// The addresses of all servers that a caller sees.
#[derive(Default)]
pub struct Addresses {
    /// By the address as the server lists it.
    listed: BTreeMap<String, Vec<Arc<str>>>,
    /// Without those that have no literal scheme.
    templates: Vec<TemplateClaim>,
    /// By the scheme of what is listed, without shared schemes.
    schemes: HashMap<String, Vec<Arc<str>>>,
}

/// The addresses that a server claims with a template.
struct TemplateClaim {
    template: String,
    server: Arc<str>,
    /// Its literal start is distinctive enough to lead to the server.
    is_own: bool,
    /// The servers that list an address with the same literal start.
    neighbours: OnceLock<Vec<Arc<str>>>,
}

/// The server that an address leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressLookup {
    Found {
        server: String,
        uri: String,
        is_qualified: bool,
    },
    /// Several servers have it; each needs its qualified address.
    Several(Vec<Arc<str>>),
    Nothing,
}

impl Addresses {
    pub(crate) fn add_listed(&mut self, server: &Arc<str>, uri: &str) {
        self.add_scheme(server, uri);
        push(self.listed.entry(uri.to_owned()).or_default(), server);
    }

    pub(crate) fn add_template(&mut self, server: &Arc<str>, template: &str) {
        let start = literal_start(template);
        if scheme(start).is_none() {
            return;
        }
        self.add_scheme(server, start);
        self.templates.push(TemplateClaim {
            template: template.to_owned(),
            server: server.clone(),
            is_own: is_own_start(start),
            neighbours: OnceLock::new(),
        });
    }

    fn add_scheme(&mut self, server: &Arc<str>, uri: &str) {
        if let Some(scheme) = scheme(uri).filter(|scheme| !is_shared(scheme)) {
            push(self.schemes.entry(scheme).or_default(), server);
        }
    }

    /// Returns the servers that an unqualified address may lead to. What is listed counts more than
    /// a template, and a template more than a scheme. An address that fits a template leads to
    /// everybody who may have it, so that a wide template takes nothing from others.
    fn owners(&self, uri: &str) -> Cow<'_, [Arc<str>]> {
        if let Some(owners) = self.listed.get(uri) {
            return Cow::Borrowed(owners);
        }
        let mut owners = Vec::new();
        let mut is_claimed = false;
        for claim in self.templates.iter().filter(|claim| fits(&claim.template, uri)) {
            is_claimed |= claim.is_own;
            push(&mut owners, &claim.server);
            if claim.is_own {
                self.neighbours(claim).iter().for_each(|server| push(&mut owners, server));
            }
        }
        if is_claimed {
            return Cow::Owned(owners);
        }
        let by_scheme = scheme(uri).and_then(|scheme| self.schemes.get(&scheme));
        Cow::Borrowed(by_scheme.map_or(&[], Vec::as_slice))
    }

    fn neighbours<'a>(&'a self, claim: &'a TemplateClaim) -> &'a [Arc<str>] {
        claim.neighbours.get_or_init(|| {
            let start = literal_start(&claim.template);
            let listed = self.listed.range::<str, _>((Bound::Included(start), Bound::Unbounded));
            let mut servers = Vec::new();
            for (_, owners) in listed.take_while(|(uri, _)| uri.starts_with(start)) {
                owners.iter().for_each(|server| push(&mut servers, server));
            }
            servers
        })
    }

    /// Reports whether an address of a server must be qualified.
    pub fn needs_server(&self, server: &str, uri: &str) -> bool {
        is_reserved(uri) || !is_only(&self.owners(uri), server)
    }

    /// Reports whether a template must be qualified: it has no literal start that belongs to it
    /// alone, or another server may have one of its expansions.
    pub fn template_needs_server(&self, server: &str, template: &str) -> bool {
        let start = literal_start(template);
        let overlaps = |other: &TemplateClaim| {
            let other = literal_start(&other.template);
            other.starts_with(start) || start.starts_with(other)
        };
        let mut others = self.templates.iter().filter(|claim| *claim.server != *server);
        let own = self.templates.iter().find(|it| *it.server == *server && it.template == template);
        let is_alone = |claim: &TemplateClaim| {
            self.neighbours(claim).iter().all(|neighbour| **neighbour == *server)
        };
        is_reserved(template)
            || others.any(overlaps)
            || !own.is_some_and(|claim| claim.is_own && is_alone(claim))
    }

    /// Finds the server of an address, which a client may always qualify.
    pub fn find(&self, address: &str) -> AddressLookup {
        if is_reserved(address) {
            return split(address).map_or(AddressLookup::Nothing, |(server, uri)| {
                AddressLookup::Found { server, uri, is_qualified: true }
            });
        }
        found(&self.owners(address), address)
    }

    /// Finds the server of a template, or else of an address. A template without a literal start
    /// that belongs to it alone is found only if it is qualified.
    pub fn find_template(&self, template: &str) -> AddressLookup {
        let mut owners = Vec::new();
        let known = self.templates.iter().filter(|claim| claim.template == template);
        for claim in known.filter(|claim| claim.is_own) {
            push(&mut owners, &claim.server);
        }
        if owners.is_empty() { self.find(template) } else { found(&owners, template) }
    }
}

fn found(owners: &[Arc<str>], uri: &str) -> AddressLookup {
    match owners {
        [] => AddressLookup::Nothing,
        [server] => AddressLookup::Found {
            server: server.to_string(),
            uri: uri.to_owned(),
            is_qualified: false,
        },
        several => AddressLookup::Several(several.to_vec()),
    }
}

fn push(owners: &mut Vec<Arc<str>>, server: &Arc<str>) {
    if !owners.contains(server) {
        owners.push(server.clone());
    }
}

fn is_only(owners: &[Arc<str>], server: &str) -> bool {
    matches!(owners, [only] if **only == *server)
}

/// Returns the scheme of an address, in lower case.
fn scheme(uri: &str) -> Option<String> {
    let (scheme, _) = uri.split_once(':')?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    (is_scheme && scheme.bytes().all(fits)).then(|| scheme.to_ascii_lowercase())
}

fn is_shared(scheme: &str) -> bool {
    SHARED_SCHEMES.contains(&scheme)
}

/// Reports whether the literal start of a template is distinctive: it has a scheme of the server's
/// own or, in a shared scheme, a whole host or, for files, a whole folder.
fn is_own_start(start: &str) -> bool {
    let Some(scheme) = scheme(start) else { return false };
    let rest = &start[scheme.len() + 1..];
    let path = match rest.strip_prefix("//") {
        // A file's host is this machine.
        Some(rest) if scheme == "file" => rest.split_once('/').map_or("", |(_, path)| path),
        Some(rest) => rest,
        None => rest,
    };
    let mut segments = path.split(['/', ':', '?', '#']);
    // The expression continues what follows the last delimiter.
    segments.next_back();
    !is_shared(&scheme) || segments.any(|segment| !matches!(segment, "" | "." | ".."))
}

/// Returns the address with the name of its server.
pub fn qualified(server: &str, uri: &str) -> String {
    let server = encoded(server);
    match uri.strip_prefix(UI) {
        Some(rest) => format!("{UI}{UI_MARK}{server}/{rest}"),
        None => format!("{QUALIFIED}{server}/{uri}"),
    }
}

/// Returns the server and its own address, of one that is qualified.
pub(super) fn split(address: &str) -> Option<(String, String)> {
    let page = address.strip_prefix(UI).and_then(|rest| rest.strip_prefix(UI_MARK));
    if let Some(rest) = page {
        let (server, rest) = rest.split_once('/')?;
        return Some((percent::decode(server)?, format!("{UI}{rest}")));
    }
    let (server, uri) = address.strip_prefix(QUALIFIED)?.split_once('/')?;
    Some((percent::decode(server)?, uri.to_owned()))
}

/// Reports whether an address looks qualified. One that a server wrote like this is qualified once
/// more, so that it is never mistaken for ours.
fn is_reserved(address: &str) -> bool {
    let page = address.strip_prefix(UI).is_some_and(|rest| rest.starts_with(UI_MARK));
    page || address.starts_with(QUALIFIED)
}

/// Returns a JSON string literal of an address, qualified. The server's spelling of it is kept.
pub(super) fn qualified_literal(server: &str, literal: &str) -> Option<String> {
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    let server = encoded(server);
    Some(match spelled_prefix(inner, UI) {
        Some(end) => format!("\"{}{UI_MARK}{server}/{}\"", &inner[..end], &inner[end..]),
        None => format!("\"{QUALIFIED}{server}/{inner}\""),
    })
}

/// Returns the literal that [`qualified_literal`] was given; `None` if it does not name the server.
pub(super) fn restored_literal(server: &str, literal: &str) -> Option<String> {
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mark = format!("{}/", encoded(server));
    let page = spelled_prefix(inner, UI).and_then(|end| {
        let rest = inner[end..].strip_prefix(UI_MARK)?.strip_prefix(&mark)?;
        Some(format!("\"{}{rest}\"", &inner[..end]))
    });
    let other = || Some(format!("\"{}\"", inner.strip_prefix(QUALIFIED)?.strip_prefix(&mark)?));
    page.or_else(other)
}

/// Returns the end of a prefix in the text of a JSON string, where it may be written with escapes.
fn spelled_prefix(inner: &str, prefix: &str) -> Option<usize> {
    let mut at = 0;
    for expected in prefix.chars() {
        let rest = &inner[at..];
        at += if rest.starts_with(expected) {
            1
        } else if expected == '/' && rest.starts_with("\\/") {
            2
        } else {
            let digits = rest.strip_prefix("\\u")?.get(..4)?;
            let code = u32::from_str_radix(digits, 16).ok()?;
            (char::from_u32(code) == Some(expected)).then_some(6)?
        };
    }
    Some(at)
}

/// Writes a server's name as one segment of a path.
fn encoded(server: &str) -> String {
    percent::encode(server, percent::is_unreserved)
}

/// Returns the text of a template in front of its first expression.
fn literal_start(template: &str) -> &str {
    template.split('{').next().unwrap_or_default()
}

/// Reports whether an address may be an expansion of a template (RFC 6570). An expression matches
/// any text, so that no expansion is missed.
pub(crate) fn fits(template: &str, uri: &str) -> bool {
    let mut literals = Vec::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        literals.push(&rest[..open]);
        rest = rest[open..].find('}').map_or("", |close| &rest[open + close + 1..]);
    }
    let Some(first) = literals.first() else { return template == uri };
    let Some(mut left) = uri.strip_prefix(first) else { return false };
    for literal in &literals[1..] {
        match left.find(literal) {
            Some(at) => left = &left[at + literal.len()..],
            None => return false,
        }
    }
    left.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Addresses {
        let mut addresses = Addresses::default();
        let (a, b, c): (Arc<str>, Arc<str>, Arc<str>) = ("a".into(), "b".into(), "c".into());
        for (server, uri) in [
            (&a, "memo://one"),
            (&a, "memo://both"),
            (&b, "memo://both"),
            (&b, "file:///b.txt"),
            (&a, "ui://dash"),
            (&b, "ui://dash"),
            (&a, "note:a"),
            (&c, "countersign://server/a/memo://one"),
        ] {
            addresses.add_listed(server, uri);
        }
        for (server, template) in [
            (&a, "file:///{path}"),
            (&a, "db://{table}/rows"),
            (&b, "db://{table}/rows"),
            (&a, "log://{day}"),
            (&c, "{+anything}"),
        ] {
            addresses.add_template(server, template);
        }
        addresses
    }

    #[test]
    fn an_address_that_leads_to_its_server_alone_stays() {
        let addresses = addresses();
        for (server, uri, expected) in [
            ("a", "memo://one", false),
            ("a", "memo://both", true),
            ("b", "memo://both", true),
            ("b", "memo://one", true),
            ("b", "file:///b.txt", false),
            ("a", "file:///b.txt", true),
            ("a", "ui://dash", true),
            ("c", "other:x", true),
            ("a", "file:///unlisted.txt", true),
            ("b", "ui://unlisted", true),
            ("c", "countersign://server/a/memo://one", true),
            ("c", "ui://countersign/a/x", true),
            ("a", "note:a", false),
        ] {
            assert_eq!(addresses.needs_server(server, uri), expected, "{server} {uri}");
        }
    }

    #[test]
    fn a_template_stays_if_no_other_server_can_have_an_expansion() {
        let addresses = addresses();
        for (server, template, expected) in [
            ("a", "file:///{path}", true),
            ("a", "db://{table}/rows", true),
            ("b", "db://{table}/rows", true),
            ("a", "log://{day}", false),
            ("b", "log://today/{hour}", true),
            ("c", "{+anything}", true),
        ] {
            let needs = addresses.template_needs_server(server, template);
            assert_eq!(needs, expected, "{server} {template}");
        }
    }

    #[test]
    fn every_address_leads_to_one_server_or_says_which_have_it() {
        let addresses = addresses();
        let found = |server: &str, uri: &str, is_qualified| AddressLookup::Found {
            server: server.to_owned(),
            uri: uri.to_owned(),
            is_qualified,
        };
        let several = AddressLookup::Several(vec!["a".into(), "b".into()]);
        for (address, expected) in [
            ("memo://one", found("a", "memo://one", false)),
            ("countersign://server/a/memo://one", found("a", "memo://one", true)),
            ("countersign://server/none/x", found("none", "x", true)),
            ("ui://countersign/b/dash", found("b", "ui://dash", true)),
            ("memo://both", several.clone()),
            ("db://x/rows", several.clone()),
            ("log://1", found("a", "log://1", false)),
            ("LOG:1", found("a", "LOG:1", false)),
            ("memo://unlisted", several.clone()),
            ("other://x", AddressLookup::Nothing),
            ("countersign://server/a", AddressLookup::Nothing),
            ("no scheme", AddressLookup::Nothing),
        ] {
            assert_eq!(addresses.find(address), expected, "{address}");
        }
        assert_eq!(addresses.find_template("log://{day}"), found("a", "log://{day}", false));
        assert_eq!(addresses.find_template("db://{table}/rows"), several);
        let named = addresses.find_template("countersign://server/b/db://{table}/rows");
        assert_eq!(named, found("b", "db://{table}/rows", true));
        assert_eq!(addresses.find_template("file:///{path}"), AddressLookup::Nothing);
    }

    /// The hostile server offers one template, or several, next to a server that lists resources
    /// and one that has a template and a server of any file.
    #[test]
    fn a_template_leads_nowhere_without_a_literal_start_of_its_own() {
        let unclaimed = ["unknown:x", "file:///etc/passwd", "https://other.com/x", "ui://page"];
        let wide = "{+any} {scheme}://{+rest} {+a}memo://{b} m{+rest} http{s}://{x} https://{host}/x \
            https:{+rest} HTTPS://{host}/{x} https://a{+rest} file:{+path} file://{+path} \
            file:///{a} FILE:///{a} file:////{a} file:///./{+a} file:///../{+a} \
            file://localhost/{+a} file:///e{+rest} ui://{page} urn:{+rest} data:{+rest} { file :{x}";
        let wide: Vec<&str> = wide.split(' ').collect();
        let mut all = addresses_with("hostile", &wide);
        let letters: Vec<String> = ('a'..='z').map(|at| format!("file:///{at}{{+rest}}")).collect();
        letters.iter().for_each(|template| all.add_template(&"hostile".into(), template));
        for address in unclaimed {
            assert_eq!(all.find(address), AddressLookup::Nothing, "{address}");
        }
        for template in wide.iter().copied().chain(letters.iter().map(String::as_str)) {
            assert!(all.template_needs_server("hostile", template), "{template}");
            assert_eq!(all.find_template(template), AddressLookup::Nothing, "{template}");
            let address = qualified("hostile", template);
            assert!(
                matches!(all.find_template(&address), AddressLookup::Found { .. }),
                "{address}"
            );
        }
        let owner = |addresses: &Addresses, address: &str| match addresses.find(address) {
            AddressLookup::Found { server, .. } => server,
            AddressLookup::Several(servers) => servers.join(" "),
            AddressLookup::Nothing => String::new(),
        };
        let own = |address: &str| owner(&addresses_with("hostile", &[]), address);
        for address in ["memo://1", "memo://unlisted", "db://t/rows", "db://t/cols", "x:1"] {
            assert_eq!(owner(&all, address), own(address), "{address}: none has its scheme");
        }
        // What has a literal start is contested by everybody who may have the same addresses.
        for (template, address, expected) in [
            ("own://{x}", "own://1", "hostile"),
            ("urn:own:{x}", "urn:own:1", "hostile"),
            ("https://own.com/{x}", "https://own.com/1", "hostile"),
            ("https://own.com/{x}", "https://own.com.other/1", ""),
            ("file:///own/{x}", "file:///own/1", "files hostile"),
            ("memo://{x}", "memo://1", "lists"),
            ("memo://{x}", "memo://unlisted", "hostile lists"),
            ("memo://box/{x}", "memo://box/unlisted", "hostile lists"),
            ("db://{x}", "db://t/rows", "describes hostile"),
            ("db://t/{x}", "db://t/rows", "describes hostile"),
        ] {
            let addresses = addresses_with("hostile", &[template]);
            assert_eq!(owner(&addresses, address), expected, "{template} {address}");
        }
    }

    fn addresses_with(server: &str, templates: &[&str]) -> Addresses {
        let mut addresses = Addresses::default();
        for uri in ["memo://1", "memo://box/1"] {
            addresses.add_listed(&"lists".into(), uri);
        }
        addresses.add_template(&"describes".into(), "db://{table}/rows");
        addresses.add_template(&"files".into(), "file:///{+path}");
        templates.iter().for_each(|template| addresses.add_template(&server.into(), template));
        addresses
    }

    #[test]
    fn what_is_qualified_is_found_again() {
        for server in ["a", "My.Server", "x/y", "ä b", "%41", "a~b_c-d"] {
            for uri in
                ["memo://x", "ui://x/y", "ui://", "", "urn:x", "UI://x", "ui://countersign/a/x"]
            {
                let address = qualified(server, uri);
                assert_eq!(split(&address), Some((server.to_owned(), uri.to_owned())), "{address}");
            }
        }
        for literal in [r#""ui:\/\/x""#, r#""\u0075i://x""#, r#""memo:\/\/\u0041""#, r#""""#] {
            let with_server = qualified_literal("a b", literal).unwrap();
            let uri: String = serde_json::from_str(literal).unwrap();
            let address: String = serde_json::from_str(&with_server).unwrap();
            assert_eq!(address, qualified("a b", &uri));
            assert_eq!(restored_literal("a b", &with_server).as_deref(), Some(literal));
            assert_eq!(restored_literal("a", &with_server), None);
        }
    }

    #[test]
    fn templates_fit_their_expansions() {
        for (template, uri, expected) in [
            ("a://b", "a://b", true),
            ("a://b", "a://bc", false),
            ("a://{x}", "a://", true),
            ("a://{x}", "a://1/2?q", true),
            ("a://{x}", "b://1", false),
            ("a://{x}/data", "a://1/data", true),
            ("a://{x}/data", "a://1/date", false),
            ("a://{x}/b/{y}", "a://1/b/2", true),
            ("a://{x}/b/{y}", "a://1/c/2", false),
            ("a://{x}{?q,r}", "a://1?q=2", true),
            ("a://{x", "a://1", true),
        ] {
            assert_eq!(fits(template, uri), expected, "{template} {uri}");
        }
    }
}
