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
    let printed = match root.find(arguments.optional_text(&["path", "cwd"])?.unwrap_or("."))? {
        Destination::File(folder, name) => {
            let mut found = FileMatches::default();
            search.file(&mut search.desk(), file::open_in(&folder, &name)?, &mut found)?;
            tree.notes.append(found.notes);
            found.printed
        }
        Destination::Folder(start) => {
            let fits = filter.map(|filter| {
                let start = &start.path;
                move |path: &Path| filter.is_match(path.strip_prefix(start).unwrap_or(path))
            });
            let wanted = fits.as_ref().map(|fits| fits as &dyn Fn(&Path) -> bool);
            crowd::search(&search, &mut tree, &start, wanted)?
        }
        Destination::Missing(folder, names) => return Err(missing(&folder, &names)),
    };
    Ok(printed.answer(&tree.notes))
}

/// A pattern without a slash matches file names in any folder.
fn filter(pattern: &str) -> Result<GlobSet> {
    if pattern.contains('/') {
        glob::matcher(pattern.trim_start_matches("./"))
    } else {
        glob::matcher(&format!("**/{pattern}"))
    }
}
