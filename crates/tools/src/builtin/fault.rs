//! The reason a tool failed: one sentence for the agent, or the end of the call.

use std::path::Path;

use provider::ProviderError;
use rustix::io::Errno;

#[derive(Debug)]
pub(super) enum Fault {
    /// A response: the result with `isError`.
    Said(String),
    /// The caller no longer waits.
    Cancelled,
    OutOfTime,
}

pub(super) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    pub(super) fn said(text: impl Into<String>) -> Fault {
        Fault::Said(text.into())
    }

    pub(super) fn outside(path: &str) -> Fault {
        Fault::said(format!(
            "'{path}' is outside the workspace root, or leads outside it; only files inside can be \
             accessed"
        ))
    }

    pub(super) fn refused(path: &str) -> Fault {
        Fault::said(format!("'{path}' is in Countersign's own home, which no tool can access"))
    }

    /// Refuses to change a file that decides what agents may do.
    pub(super) fn protected(path: &Path) -> Fault {
        Fault::said(format!(
            "'{}' is part of Countersign or of its configuration, which no tool can change; ask \
             the person who runs Countersign to edit it",
            path.display()
        ))
    }

    pub(super) fn unchecked(path: &Path, why: &str) -> Fault {
        Fault::said(format!("cannot determine whether '{}' may be changed: {why}", path.display()))
    }

    pub(super) fn is_folder(path: &Path) -> Fault {
        Fault::said(format!("'{}' is a directory, not a file", path.display()))
    }

    /// The system's error message for a path.
    pub(super) fn system(path: &Path, error: Errno) -> Fault {
        let path = path.display();
        Fault::said(match error {
            Errno::NOENT => format!("'{path}' does not exist"),
            Errno::ISDIR => format!("'{path}' is a directory, not a file"),
            Errno::NOTDIR => format!("'{path}' is not a directory, or one of its parents is not"),
            Errno::ACCESS | Errno::PERM => format!("cannot open '{path}': permission denied"),
            Errno::NAMETOOLONG => format!("'{path}' is too long for a path"),
            error => format!("'{path}': {}", std::io::Error::from(error)),
        })
    }

    pub(super) fn io(path: &Path, error: &std::io::Error) -> Fault {
        match Errno::from_io_error(error) {
            Some(errno) => Fault::system(path, errno),
            None => Fault::said(format!("'{}': {error}", path.display())),
        }
    }

    /// Returns the sentence for the agent, or the end of a call whose work had begun or not.
    pub(super) fn into_error(self, sent: bool) -> std::result::Result<String, ProviderError> {
        match self {
            Fault::Said(text) => Ok(text),
            Fault::Cancelled => Err(ProviderError::Cancelled { sent }),
            Fault::OutOfTime => Err(ProviderError::Timeout { sent }),
        }
    }
}
