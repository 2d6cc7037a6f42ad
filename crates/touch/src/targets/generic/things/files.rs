//! The files of a call: alone, in a folder that another argument names, or at the ends of a move.

use std::borrow::Cow;

use super::super::super::{Access, Target, canonical, clean, uri};
use super::super::Finding;
use super::super::given::Given;
use super::super::role::{PathForm, Role, Side};
use super::super::scope::SCOPES;
use super::Call;

/// Methods of requests; next to one of them, a path is that of an address.
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

fn is_file_name(given: &Given<'_>) -> bool {
    form(given) == PathForm::FileName
}

fn form(given: &Given<'_>) -> PathForm {
    match *given.role {
        Role::Path { form, .. } => form,
        Role::Scope { .. } => PathForm::Folder,
        _ => PathForm::Whole,
    }
}

fn side(given: &Given<'_>) -> Side {
    match *given.role {
        Role::Path { side, .. } | Role::End(side) => side,
        _ => Side::Neither,
    }
}

/// Reports whether the name of a container is a folder of this machine.
fn is_folder(given: &Given<'_>) -> bool {
    let is_word = given.key.eq_ignore_ascii_case("folder");
    is_word && given.first().starts_with(['/', '~', '.'])
}

/// Reports whether a path is complete, not a folder for others.
fn is_alone(given: &Given<'_>) -> bool {
    !matches!(form(given), PathForm::Base | PathForm::WorkingFolder)
}

/// Reports whether text can be the path of one file, rather than a pattern or a place in a document.
fn is_path(text: &str) -> bool {
    !text.starts_with(['$', '{', '<']) && !text.contains('*')
}

/// Joins a folder and a path relative to it.
fn within<'t>(folder: Option<&str>, path: &'t str) -> Cow<'t, str> {
    match folder {
        Some(folder) if !path.starts_with(['/', '~']) && !path.contains("://") => {
            Cow::Owned(format!("{folder}/{path}"))
        }
        _ => Cow::Borrowed(path),
    }
}

impl<'a> Call<'a> {
    /// Returns the arguments that are paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = &'a Given<'a>> {
        let paths = self.given.iter().filter(|given| match *given.role {
            Role::Path { .. } => true,
            Role::End(_) => {
                let (text, tool) = (given.first(), &self.plan.tool);
                let is_of_files = || ["directory", "file"].iter().any(|noun| tool.is_about(noun));
                text.contains('/') || text.starts_with(['.', '~']) || is_of_files()
            }
            Role::Scope { .. } => is_folder(given),
            _ => false,
        });
        paths.filter(|given| given.values.iter().any(|path| is_path(path)))
    }

    /// Reports whether files are only named, so that they may lie in a thing of the server.
    pub(super) fn only_file_names(&self) -> bool {
        self.paths().next().is_some() && self.paths().all(is_file_name)
    }

    /// Reports whether a container of the call holds the files that are named.
    pub(super) fn holds_files(&self) -> bool {
        let is_relative = |path: &str| !path.starts_with(['/', '~']) && !path.contains("://");
        let mut paths = self.paths().flat_map(|given| given.values.iter());
        let all_relative = paths.all(|path| is_relative(path));
        // A container may be a folder of this machine itself.
        let is_base =
            |given: &Given<'_>| form(given) == PathForm::Base && !is_relative(given.first());
        let holds = |rank: usize| SCOPES[rank].files.is_some();
        let may_hold = self.scopes.iter().any(|(rank, _)| holds(*rank));
        (may_hold && !self.paths().any(is_base))
            || (all_relative && !self.scopes_beside(true).is_empty())
    }

    /// Names the files of a call, the destination first.
    pub(super) fn files(&self) -> Vec<Finding<'a>> {
        let paths: Vec<&'a Given<'a>> = self.paths().collect();
        if paths.is_empty() || self.holds_files() {
            return Vec::new();
        }
        if self.is_request() {
            return self.request(paths[0]).into_iter().collect();
        }
        if let Some(found) = self.in_folder(&paths) {
            return vec![found];
        }
        let base = paths.iter().copied().find(|given| form(given) == PathForm::Base);
        let mut rest: Vec<&'a Given<'a>> =
            paths.iter().copied().filter(|given| is_alone(given)).collect();
        if rest.is_empty() {
            return base.and_then(|base| self.file(base, base.first(), None)).into_iter().collect();
        }
        rest.sort_by_key(|given| match side(given) {
            Side::Destination => 0,
            Side::Neither => 1,
            Side::Source => 2,
        });
        let folder = base.or_else(|| paths.iter().copied().find(|given| !is_alone(given)));
        let mut found = Vec::new();
        for given in &rest {
            let access = self.access_of_end(side(given), &rest);
            for path in given.values.iter().filter(|path| is_path(path)) {
                let path = within(folder.map(Given::first), path);
                found.extend(self.file(given, &path, access));
            }
        }
        found
    }

    /// Reports whether the call is a request to an address, so that its path is none of a file.
    pub(super) fn is_request(&self) -> bool {
        let is_method = |text: &str| METHODS.iter().any(|name| text.eq_ignore_ascii_case(name));
        self.with_role(|role| *role == Role::Method).any(|given| is_method(given.first()))
    }

    /// Names the address of a request whose path is given apart, or the path alone.
    fn request(&self, path: &'a Given<'a>) -> Option<Finding<'a>> {
        let inner = canonical::inner_path(path.first())?;
        let base = self.with_role(|role| *role == Role::Address).next();
        let base = base.and_then(|base| base.first().split(['?', '#']).next());
        let whole = base.map(|base| format!("{}/{inner}", base.trim_end_matches('/')));
        match whole.and_then(|whole| canonical::web(&whole, self.place)) {
            Some(target) => Some(Finding { target, access: None, given: path }),
            None => self.named(path, format!("/{inner}")),
        }
    }

    /// Names a file whose folder and name are two arguments.
    fn in_folder(&self, paths: &[&'a Given<'a>]) -> Option<Finding<'a>> {
        let mut names = paths.iter().copied().filter(|given| is_file_name(given));
        let (name, None) = (names.next()?, names.next()) else {
            return None;
        };
        let folder = paths.iter().copied().find(|given| {
            let is_folder = form(given) == PathForm::Folder || side(given) == Side::Destination;
            is_folder && !is_file_name(given)
        })?;
        let path = within(Some(folder.first()), name.first());
        let access = (side(folder) == Side::Destination).then_some(Access::Write);
        self.file(name, &path, access)
    }

    /// Returns the access that the end of a move or copy shows.
    pub(super) fn access_of_end(&self, end: Side, paths: &[&Given<'_>]) -> Option<Access> {
        let goes = paths.iter().any(|given| side(given) == Side::Destination);
        match end {
            Side::Destination => Some(Access::Write),
            Side::Neither if self.plan.tool.saves && !goes => Some(Access::Write),
            Side::Source | Side::Neither if goes => Some(self.access_of_source()),
            Side::Source | Side::Neither => None,
        }
    }

    /// Returns what happens to the thing that is moved or copied.
    pub(super) fn access_of_source(&self) -> Access {
        if self.plan.tool.moves { Access::Write } else { Access::Read }
    }

    /// Names a file of this machine, or one that only the server can find.
    fn file(
        &self,
        given: &'a Given<'a>,
        path: &str,
        access: Option<Access>,
    ) -> Option<Finding<'a>> {
        let key = given.key.to_ascii_lowercase();
        let is_elsewhere =
            key.contains("remote") || self.plan.tool.has_files && !key.contains("local");
        let here = if is_elsewhere { None } else { canonical::file(path, self.place) };
        if let Some(target) = here.or_else(|| canonical::web(path, self.place)) {
            return Some(Finding { target, access, given });
        }
        let resource = if path.starts_with('/') {
            clean(path, "/")?
        } else if path.contains("://") || canonical::is_address(path) {
            uri::canonical(path).or_else(|| self.miss())?
        } else {
            canonical::inner_path(path)?
        };
        let target = Target::of_server(self.plan.system(), resource).or_else(|| self.miss())?;
        Some(Finding { target, access, given })
    }
}
