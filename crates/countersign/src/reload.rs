//! Detects changed config files and applies them. A bad file of the user's own changes nothing: the
//! old configuration stays, and the fault is logged and shown in the status. A bad file in the
//! folder has no effect at all.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use admin::page::GateAddress;
use arc_swap::ArcSwap;
use domain::config::Config;
use gateway::plan::Reach;
use gateway::{GateSettings, Gateway};
use mcp::http::guard::Guard;
use mcp::http::names_this_machine;
use mcp::task;
use tokio_util::sync::CancellationToken;

use crate::app::{self, Servers};
use crate::cli::Locations;
use crate::fingerprint::{Fingerprint, fingerprint};
use crate::home::Home;
use crate::logging;
use crate::source::{self, OwnConfig, Source, found};

/// The interval between checks of the files; a change takes effect about a second later.
const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Reload {
    pub(crate) place: Locations,
    pub(crate) home: Home,
    /// The version in effect.
    pub(crate) seen: Version,
    /// The version of the folder's file that was trusted at that time.
    pub(crate) trusted: Option<String>,
    /// The user's own last valid configuration.
    pub(crate) own: OwnConfig,
    pub(crate) gateway: Gateway,
    pub(crate) servers: Servers,
    pub(crate) guard: Arc<ArcSwap<Guard>>,
    pub(crate) port: u16,
    pub(crate) address: GateAddress,
}

/// The versions of the config files.
pub(crate) struct Version {
    own: Option<Fingerprint>,
    folder: Option<Fingerprint>,
}

impl Reload {
    pub(crate) async fn watch(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = stop.cancelled() => return,
            }
            let now = version(&self.place);
            let trusted = self.trusted_now(&now).await;
            let has_own = now.own != self.seen.own && self.take_own(&now);
            let has_folder = now.folder != self.seen.folder || trusted != self.trusted;
            self.seen = now;
            self.trusted = trusted;
            if has_own || has_folder {
                self.apply().await;
            }
        }
    }

    /// Reads the user's own file; reports whether it gave a configuration.
    fn take_own(&mut self, now: &Version) -> bool {
        if now.own.is_none() {
            // Some programs save by deleting first; a missing file does not mean "no servers".
            let path = source::path(&self.place).unwrap_or_default();
            self.reject(format!("config '{}' does not exist", path.display()));
            return false;
        }
        match source::own(&self.place) {
            Ok(own) => {
                self.own = own;
                self.gateway.set_config_fault(None);
                true
            }
            Err(failure) => {
                self.reject(failure.message().to_owned());
                false
            }
        }
    }

    async fn apply(&self) {
        let source = self.own.clone().with_folder(&self.place);
        source.log_notes();
        self.guard.store(Arc::new(guard(&source.config, self.port, &self.address)));
        if let Err(failure) = app::know_agent(&self.gateway, &self.home, &source.config) {
            tracing::error!("{}; the default token is not known", failure.message());
        }
        app::set_retention(self.gateway.store(), &source.config).await;
        self.gateway.store().vault().choose_key(source.config.secrets.key.clone());
        let plan = self.servers.plan(&source.config, Reach::All);
        self.gateway.reconfigure(GateSettings::from(&source.config), plan).await;
        logging::redact_with(self.gateway.settings().redactor.clone());
        tracing::info!("configuration reloaded");
    }

    fn reject(&self, message: String) {
        tracing::error!("{message}; the old configuration stays in effect");
        self.gateway.set_config_fault(Some(message));
    }

    /// Returns the version of the folder's file that is trusted now. If the store cannot be read,
    /// the last known version stays.
    async fn trusted_now(&self, now: &Version) -> Option<String> {
        now.folder.as_ref()?;
        let place = found::place(Path::new(found::SHOWN))?;
        let place = place.to_str()?.to_owned();
        let store = self.gateway.store().clone();
        let asking = task::spawn_blocking(move || store.state().trusted_file(&place));
        match asking.await {
            Ok(Ok(trusted)) => trusted,
            Ok(Err(_)) | Err(_) => self.trusted.clone(),
        }
    }
}

/// Returns the version of the folder's file that was trusted when the configuration was made.
pub(crate) fn trusted(source: &Source) -> Option<String> {
    source.folder.as_ref()?.trusted.clone()
}

/// Returns the names to accept: those of the config, that of the page, and by default the loopback
/// address that the gate listens on, if it is not one of the usual ones.
pub(crate) fn guard(config: &Config, port: u16, address: &GateAddress) -> Guard {
    let own = || address.own_name().map(str::to_owned);
    let own_origin = own().map(|name| format!("http://{name}"));
    let (_, listening) = address.clients().split_once("://").unwrap_or_default();
    let is_local = names_this_machine(listening);
    let host = (is_local && config.allowed_hosts.is_none()).then(|| listening.to_owned());
    let origin =
        (is_local && config.allowed_origins.is_none()).then(|| address.clients().to_owned());
    let hosts = config.hosts(port).into_iter().chain(own()).chain(host);
    Guard::new(hosts, config.origins(port).into_iter().chain(own_origin).chain(origin))
}

/// Returns the current version of the config files. Call it before reading the files, so that a
/// change in between is detected.
pub(crate) fn version(place: &Locations) -> Version {
    Version {
        own: source::path(place).and_then(|path| fingerprint(&path)),
        folder: source::folder_path(place).and_then(|path| fingerprint(&path)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use axum::http::{HeaderMap, Uri, header};

    use super::*;

    #[test]
    fn a_gate_accepts_its_own_loopback_address() {
        let passes = |config: &Config, listening: &str, host: &str| {
            let listening = listening.parse().unwrap();
            let address = GateAddress::of(config, listening, None).unwrap();
            let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
            let guard = guard(config, listening.port(), &address);
            guard.check(&Uri::from_static("/mcp"), &headers).is_ok()
        };
        let plain = Config::default();
        let own_list =
            Config { allowed_hosts: Some(vec!["a.example".into()]), ..Config::default() };
        for (config, listening, host, expected) in [
            (&plain, "127.0.0.1:7420", "127.0.0.1:7420", true),
            (&plain, "127.0.0.1:7420", "127.0.0.2:7420", false),
            (&plain, "127.0.0.1:80", "127.0.0.1", true),
            (&plain, "127.0.0.2:7420", "127.0.0.2:7420", true),
            (&plain, "192.168.1.5:7420", "192.168.1.5:7420", false),
            (&own_list, "127.0.0.2:7420", "127.0.0.2:7420", false),
            (&own_list, "127.0.0.2:7420", "a.example", true),
        ] {
            assert_eq!(passes(config, listening, host), expected, "{listening} {host}");
        }
    }
}
