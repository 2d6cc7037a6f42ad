//! Notices that the config file has changed and puts it into effect. A bad file changes nothing: the
//! old configuration stays, and the fault is logged and shown in the status.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use domain::config::Config;
use gateway::plan::Reach;
use gateway::{Gateway, Settings};
use mcp::http::guard::Guard;
use tokio_util::sync::CancellationToken;

use crate::app::Servers;
use crate::cli::Place;
use crate::source;

/// How often the file is looked at; a change is in effect about a second later.
const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Reload {
    pub(crate) place: Place,
    /// The version in effect.
    pub(crate) seen: Option<Fingerprint>,
    pub(crate) gateway: Gateway,
    pub(crate) servers: Servers,
    pub(crate) guard: Arc<ArcSwap<Guard>>,
    pub(crate) port: u16,
}

/// What tells one version of the file from another without reading it.
#[derive(PartialEq, Eq)]
pub(crate) struct Fingerprint {
    modified: (i64, i64),
    size: u64,
    inode: u64,
}

impl Reload {
    pub(crate) async fn watch(mut self, stop: CancellationToken) {
        let Some(path) = source::path(&self.place) else {
            return;
        };
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = stop.cancelled() => return,
            }
            let now = fingerprint(&path);
            if now == self.seen {
                continue;
            }
            match &now {
                Some(_) => self.apply(&path).await,
                // Some programs save by deleting first; nobody means "no servers" by it.
                None => self.reject(format!("config '{}' is gone", path.display())),
            }
            self.seen = now;
        }
    }

    async fn apply(&self, path: &Path) {
        match source::load(&self.place) {
            Ok(source) => {
                source.tell_notes();
                self.guard.store(Arc::new(guard(&source.config, self.port)));
                let plan = self.servers.plan(&source.config, Reach::All);
                self.gateway.reconfigure(Settings::from(&source.config), plan).await;
                self.gateway.set_config_fault(None);
                tracing::info!(config = %path.display(), "configuration reloaded");
            }
            Err(failure) => self.reject(failure.message().to_owned()),
        }
    }

    fn reject(&self, message: String) {
        tracing::error!("{message}; the old configuration stays");
        self.gateway.set_config_fault(Some(message));
    }
}

pub(crate) fn guard(config: &Config, port: u16) -> Guard {
    Guard::new(config.hosts(port), config.origins(port))
}

/// The version of the config file that lies there now. Taken before the file is read: a change that
/// comes in between is then seen as one.
pub(crate) fn version(place: &Place) -> Option<Fingerprint> {
    fingerprint(&source::path(place)?)
}

fn fingerprint(path: &Path) -> Option<Fingerprint> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(Fingerprint {
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        size: metadata.size(),
        inode: metadata.ino(),
    })
}
