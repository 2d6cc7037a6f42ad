//! The site of a command: the home, the config and the ledger that its locations name. Each is opened
//! at its first use, so that a command pays for no more than it needs.

use std::sync::OnceLock;

use store::Store;

use crate::cli::Locations;
use crate::exit::Failure;
use crate::home::Home;
use crate::source::{self, OwnConfig, Source};

/// The home and the config of a command, which stay the same to its end.
pub(crate) struct Site {
    place: Locations,
    home: OnceLock<Home>,
    own: OnceLock<OwnConfig>,
    source: OnceLock<Source>,
}

impl Site {
    pub(crate) fn new(place: Locations) -> Site {
        let (home, own, source) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Site { place, home, own, source }
    }

    /// Returns the same locations with nothing opened, for work after the config was written.
    pub(crate) fn afresh(&self) -> Site {
        Site::new(self.place.clone())
    }

    pub(crate) fn place(&self) -> &Locations {
        &self.place
    }

    /// Returns the home, which need not exist.
    pub(crate) fn home(&self) -> Result<&Home, Failure> {
        or_open(&self.home, || Home::of(&self.place))
    }

    /// Returns the user's own config.
    pub(crate) fn own(&self) -> Result<&OwnConfig, Failure> {
        or_open(&self.own, || source::own(&self.place))
    }

    /// Returns the config in effect.
    pub(crate) fn source(&self) -> Result<&Source, Failure> {
        or_open(&self.source, || Ok(self.own()?.clone().with_folder(&self.place)))
    }

    /// Opens the ledger to write, under the config in effect.
    pub(crate) fn store(&self) -> Result<Store, Failure> {
        self.home()?.store(&self.source()?.config.ledger)
    }
}

fn or_open<T>(
    known: &OnceLock<T>,
    open: impl FnOnce() -> Result<T, Failure>,
) -> Result<&T, Failure> {
    match known.get() {
        Some(opened) => Ok(opened),
        None => open().map(|opened| known.get_or_init(|| opened)),
    }
}
