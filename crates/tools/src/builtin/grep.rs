//! Grep: lines that match a regular expression, in a file or below a folder.

mod crowd;
mod search;

use std::path::Path;

use globset::GlobSet;

use super::answer::ToolAnswer;
use super::arguments::Arguments;
use super::fault::Result;
use super::root::{Destination, Root, missing};
use super::stop::Stop;
use super::tree::{IgnoreFiles, Tree};
use super::{file, glob};
use crate::builtin::grep::search::{FileMatches, GrepSearch};

pub(super) fn run(root: &Root, arguments: &Arguments<'_>, stop: &Stop) -> Result<ToolAnswer> {
    let filter = arguments.optional_text(&["glob"])?.map(filter).transpose()?;
    let search = GrepSearch::new(root, arguments, stop)?;
    let ignoring =
        if arguments.flag("no_ignore")? { IgnoreFiles::Off } else { IgnoreFiles::Honoured };
    let mut tree = Tree::new(root, stop, ignoring);
    let (printed, opened) =
        match root.find(arguments.optional_text(&["path", "cwd"])?.unwrap_or("."))? {
            Destination::File(folder, name) => {
                let mut found = FileMatches::default();
                let file = file::open_in(&folder, &name)?;
                let path = file.path.clone();
                search.file(&mut search.desk(), file, &mut found)?;
                tree.notes.append(found.notes);
                (found.printed, path)
            }
            Destination::Folder(start) => {
                let fits = filter.map(|filter| {
                    let start = &start.path;
                    move |path: &Path| filter.is_match(path.strip_prefix(start).unwrap_or(path))
                });
                let wanted = fits.as_ref().map(|fits| fits as &dyn Fn(&Path) -> bool);
                (crowd::search(&search, &mut tree, &start, wanted)?, start.path.clone())
            }
            Destination::Missing(folder, names) => return Err(missing(&folder, &names)),
        };
    Ok(printed.answer(&tree.notes).with_opened(opened))
}

/// A pattern without a slash matches file names in any folder.
fn filter(pattern: &str) -> Result<GlobSet> {
    if pattern.contains('/') {
        glob::matcher(pattern.trim_start_matches("./"))
    } else {
        glob::matcher(&format!("**/{pattern}"))
    }
}
