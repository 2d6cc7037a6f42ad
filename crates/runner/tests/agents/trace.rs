//! The files that a traced program looked at, by their places.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use runner::agent::ReadTable;

/// The places of a stage that the table speaks of.
pub(crate) struct Ground {
    pub(crate) around: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) workspace: PathBuf,
    pub(crate) private: PathBuf,
    /// Files of the test itself.
    pub(crate) stage: PathBuf,
}

/// Returns the places in the trace that the table does not have.
pub(crate) fn unlisted(trace: &str, ground: &Ground, table: &ReadTable) -> BTreeSet<String> {
    let places = paths(trace).into_iter().filter_map(|path| places(&path, ground));
    let unknown = places.filter(|places| places.iter().all(|place| table.file(place).is_none()));
    unknown.filter_map(|places| places.into_iter().next()).collect()
}

/// Returns the ways in which the table may name a path: below the private folder, the home, or a
/// folder above the private one. `None` if it is elsewhere on the machine.
fn places(path: &Path, ground: &Ground) -> Option<Vec<String>> {
    let below = |folder: &Path, sign: &str| {
        let rest = path.strip_prefix(folder).ok()?;
        Some(format!("{sign}/{}", rest.display()))
    };
    if path.starts_with(&ground.stage) || !path.starts_with(&ground.around) {
        return None;
    }
    if let Some(place) = below(&ground.private, "+") {
        return Some(vec![place]);
    }
    if let Some(place) = below(&ground.workspace, ".") {
        return Some(vec![place]);
    }
    let above = ground.private.ancestors().skip(1).find_map(|folder| below(folder, "^"));
    Some(below(&ground.home, "~").into_iter().chain(above).collect())
}

/// Returns every path in the arguments of a system call. `strace -y` shows the folder of each file
/// descriptor, and so what a relative path is relative to.
fn paths(trace: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for line in trace.lines() {
        let Some((_, args)) = line.split_once('(') else { continue };
        // What a call returned is no argument of it.
        let args = args.rsplit_once(") = ").map_or(args, |(args, _)| args);
        collect(args, &mut found);
    }
    found
}

fn collect(args: &str, found: &mut BTreeSet<PathBuf>) {
    let mut folder: Option<&str> = None;
    let mut rest = args;
    while let Some(at) = rest.find(['<', '"']) {
        let opening = rest.as_bytes()[at];
        let inner = &rest[at + 1..];
        let closing = if opening == b'<' { '>' } else { '"' };
        let Some(end) = inner.find(closing) else { return };
        let text = &inner[..end];
        if opening == b'<' {
            folder = Some(text);
        } else if text.starts_with('/') {
            found.insert(tidy(Path::new(text)));
        } else if let Some(folder) = folder.filter(|folder| folder.starts_with('/')) {
            found.insert(tidy(&Path::new(folder).join(text)));
        }
        rest = &inner[end + 1..];
    }
}

/// Resolves `.` and `..` in the text of a path.
fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                tidied.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => tidied.push(part),
        }
    }
    tidied
}
