//! No two top modules of a crate need each other, directly or through others: what is in a circle
//! can only be understood, moved and tested as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, assert_none, code_only, rust_files, without_tests};

/// The top modules of a crate, each with those that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_module_is_in_a_circle() {
    let crates = uses(&rust_files());
    assert_none(crates.iter().flat_map(|(name, uses)| {
        let found = in_circles(uses).into_iter();
        found.map(move |module| format!("{name}: {}", circle(uses, module).join(" -> ")))
    }));
}

#[test]
fn a_circle_is_noticed() {
    let file = |path: &str, text: &str| Source { path: path.into(), text: text.to_owned() };
    let files = [
        file("crates/x/src/lib.rs", "mod a; mod b; mod c; use crate::a::A;"),
        file("crates/x/src/a.rs", "use crate::{Root, b::B};"),
        file("crates/x/src/b/inner.rs", "use crate::c;\n#[cfg(test)]\nmod tests { use crate::a; }"),
        file("crates/x/src/c.rs", "// crate::a\nuse super::a::A;"),
        file("crates/x/src/d.rs", "use crate::a;"),
        file("crates/x/tests/d.rs", "use crate::d;"),
    ];
    let crates = uses(&files);
    let found = in_circles(&crates["x"]);
    assert_eq!(found.iter().copied().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(circle(&crates["x"], "b"), ["b", "c", "a", "b"]);
}

fn uses(files: &[Source]) -> BTreeMap<String, Uses> {
    let mut crates: BTreeMap<String, Uses> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_test()) {
        let Some((name, module, is_top)) = place(file) else { continue };
        let code = without_tests(&code_only(&file.text));
        let mut used = roots(&code, "crate::");
        if is_top {
            used.extend(roots(&code, "super::"));
        }
        crates.entry(name).or_default().entry(module).or_default().extend(used);
    }
    for uses in crates.values_mut() {
        let modules: BTreeSet<String> = uses.keys().cloned().collect();
        uses.iter_mut().for_each(|(module, used)| {
            used.retain(|name| modules.contains(name) && name != module);
        });
    }
    crates
}

/// Returns the crate and top module of a file, and whether it is the module's own file. The root of
/// a crate is no module: it may use all of them.
fn place(file: &Source) -> Option<(String, String, bool)> {
    let path = file.path.to_str()?.strip_prefix("crates/")?;
    let (name, inside) = path.split_once("/src/")?;
    let module = inside.split('/').next()?.trim_end_matches(".rs");
    let is_root = matches!(inside, "lib.rs" | "main.rs");
    (!is_root).then(|| (name.to_owned(), module.to_owned(), !inside.contains('/')))
}

/// Returns the first names of the paths that begin with this prefix.
fn roots(code: &str, prefix: &str) -> BTreeSet<String> {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let first = |path: &str| path.trim().chars().take_while(|c| is_name(*c)).collect::<String>();
    let starts = code.match_indices(prefix);
    let whole = starts.filter(|(at, _)| !code[..*at].ends_with(|c| is_name(c) || c == ':'));
    whole
        .flat_map(|(at, _)| {
            let rest = &code[at + prefix.len()..];
            match rest.strip_prefix('{') {
                Some(list) => members(list).into_iter().map(first).collect(),
                None => vec![first(rest)],
            }
        })
        .collect()
}

/// Returns the members of a list in braces, the first of which is open.
fn members(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut members) = (0, 0, Vec::new());
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => {
                members.push(&list[start..at]);
                return members;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                members.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    members
}

fn in_circles(uses: &Uses) -> BTreeSet<&str> {
    uses.keys().map(String::as_str).filter(|module| !circle(uses, module).is_empty()).collect()
}

/// Returns a shortest way from a module back to itself; nothing if there is none.
fn circle(uses: &Uses, module: &str) -> Vec<String> {
    let mut ways = vec![vec![module.to_owned()]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = way.last().expect("a way begins somewhere");
            for next in uses.get(last).into_iter().flatten() {
                let way: Vec<String> = way.iter().chain([next]).cloned().collect();
                if next == module {
                    return way;
                }
                if seen.insert(next.clone()) {
                    longer.push(way);
                }
            }
        }
        ways = longer;
    }
    Vec::new()
}
