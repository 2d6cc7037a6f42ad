//! Glob: the files below a folder whose path matches a pattern, newest first.

use globset::{GlobBuilder, GlobSet};
use rustix::fs::{AtFlags, statat};

use super::answer::{ToolAnswer, text_block};
use super::arguments::Arguments;
use super::fault::{Fault, Result};
use super::limits::{GLOB_BYTES_MAX, GLOB_FOUND_MAX, GLOB_PATHS_MAX};
use super::root::Root;
use super::stop::Stop;
use super::tree::{IgnoreFiles, Tree, WalkStep};

pub(super) fn run(root: &Root, arguments: &Arguments<'_>, stop: &Stop) -> Result<ToolAnswer> {
    let pattern = arguments.text(&["pattern"])?;
    let matcher = matcher(below(root, pattern)?)?;
    let ignoring =
        if arguments.flag("no_ignore")? { IgnoreFiles::Off } else { IgnoreFiles::Honoured };
    let start = root.find_folder(arguments.optional_text(&["cwd", "path"])?)?;
    let mut tree = Tree::new(root, stop, ignoring);
    let mut found = Vec::new();
    tree.walk(&start, &mut |folder, name| {
        let path = folder.path.join(&name);
        if matcher.is_match(path.strip_prefix(&start.path).unwrap_or(&path))
            && let Ok(seen) = statat(&*folder.fd, &name, AtFlags::SYMLINK_NOFOLLOW)
        {
            let shown = root.shown(&path).display().to_string();
            found.push((seen.st_mtime, seen.st_mtime_nsec, shown));
        }
        Ok(if found.len() < GLOB_FOUND_MAX { WalkStep::More } else { WalkStep::Enough })
    })?;
    found.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then_with(|| a.2.cmp(&b.2)));
    let all = found.len();
    let paths: Vec<&str> = found.iter().take(GLOB_PATHS_MAX).map(|it| it.2.as_str()).collect();
    let text = if paths.is_empty() { "no matching files".to_owned() } else { paths.join("\n") };
    let mut content = vec![text_block(&text)];
    if all > paths.len() {
        let least = if all == GLOB_FOUND_MAX { "at least " } else { "" };
        content.push(text_block(&format!(
            "[showing {} of {least}{all} paths: narrow the pattern]",
            paths.len()
        )));
    }
    content.extend(tree.notes.text().map(|notes| text_block(&notes)));
    Ok(ToolAnswer::of(content).with_opened(start.path))
}

/// Strips the root's own path, which an agent may put in front of the pattern.
fn below<'a>(root: &Root, pattern: &'a str) -> Result<&'a str> {
    let own = root.path.to_string_lossy();
    let below = pattern.strip_prefix(&*own).map(|rest| rest.trim_start_matches('/'));
    let pattern = below.unwrap_or(pattern);
    if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return Err(Fault::said(format!(
            "invalid glob '{pattern}': must be relative, without '..'; give the folder in 'cwd'"
        )));
    }
    Ok(pattern.strip_prefix("./").unwrap_or(pattern))
}

pub(super) fn matcher(pattern: &str) -> Result<GlobSet> {
    if pattern.is_empty() {
        return Err(Fault::said("invalid glob: the pattern is empty"));
    }
    if pattern.len() > GLOB_BYTES_MAX {
        return Err(Fault::said(format!("invalid glob: longer than {GLOB_BYTES_MAX} bytes")));
    }
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
    let glob = glob.map_err(|e| Fault::said(format!("invalid glob '{pattern}': {}", e.kind())))?;
    // A set reports a pattern that is too complex; a single matcher would panic.
    GlobSet::new([glob]).map_err(|_| {
        Fault::said(format!("invalid glob '{pattern}': too complex; use fewer nested braces"))
    })
}
