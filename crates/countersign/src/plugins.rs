//! The plugins found here, and their server specifications for the gate.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::config::{Config, SecretsKey, ServerOrigin};
use domain::trust::ServerText;
use domain::upstream::UpstreamFailure;
use domain::{Code, Refusal};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway::spec::{FileDigest, PluginSpec, ServerSpec, Trust};
use mcp::child::StderrTail;
use provider::{Connector, ProviderConnection};
use store::StoreError;
use store::state::OperatorState;
use tools::plugin::{
    self, Findings, FoundPlugin, Places, Plugin, PluginOperations, SecretSource, StartOptions,
    Variables,
};
use vault::{Space, Vault};

use crate::folders;

/// The use of a plugin by a gate.
#[derive(Clone, Copy, Default)]
pub(crate) struct PluginUse<'a> {
    /// The folder that it runs in, if not that of the gate.
    pub(crate) cwd: Option<&'a Path>,
    /// The operations that are needed; the others need not be usable.
    pub(crate) needed: Option<&'a BTreeSet<String>>,
}

/// The plugins found in one search, which starts none of them.
pub(crate) struct Plugins {
    found: Vec<FoundPlugin>,
    start: StartOptions,
}

impl Plugins {
    /// Finds plugins. It reads every program in full, and so blocks for a moment.
    pub(crate) fn find(home: &Path, config: &Config) -> Plugins {
        let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let places = Places::new(&Variables::of_process(), &here);
        let Findings { plugins: mut found, faults } = plugin::find(&places, &config.plugins);
        for fault in faults {
            tracing::warn!("plugins: {fault}");
        }
        for plugin in &mut found {
            let is_taken = config.servers.iter().any(|server| server.name == plugin.name)
                || plugin.name == crate::workspace::NAME;
            if is_taken && plugin.fault.is_none() {
                plugin.fault = Some("a server has the same name: rename one of them".into());
            }
        }
        let start = StartOptions {
            supervisor: folders::own_program(),
            folder: home.join("plugins"),
            cwd: None,
            expose: None,
            needed: None,
            timeout: config.connect_timeout,
            secrets: secrets(home, &config.secrets.key),
        };
        Plugins { found, start }
    }

    pub(crate) fn found(&self) -> &[FoundPlugin] {
        &self.found
    }

    pub(crate) fn get(&self, name: &str) -> Option<&FoundPlugin> {
        self.found.iter().find(|found| found.name == name && found.shadowed_by.is_none())
    }

    /// Returns a plugin as a server of the gate, with the given use of it.
    pub(crate) fn spec(&self, name: &str, usage: PluginUse<'_>) -> Result<ServerSpec, Refusal> {
        let unusable = |message: String| Refusal::new(Code::ProxyUnknownPlugin, message);
        let found = self.get(name).ok_or_else(|| unusable(missing(name)))?;
        match &found.fault {
            Some(fault) => Err(unusable(format!("plugin '{name}' cannot be used: {fault}"))),
            None => Ok(self.usable(found, usage)),
        }
    }

    /// Returns the plugins of the configuration. An unusable one is shown with the reason.
    pub(crate) fn configured(home: &Path, config: &Config) -> Vec<ServerSpec> {
        if config.plugins.is_empty() {
            return Vec::new();
        }
        let plugins = Plugins::find(home, config);
        let specs = config.plugins.iter().map(|plugin| {
            let broken = |refusal: Refusal| broken(&plugin.name, refusal.message);
            plugins.spec(&plugin.name, PluginUse::default()).unwrap_or_else(broken)
        });
        specs.collect()
    }

    /// Reports whether the plugin may be started: it is the user's own, or approved in its present
    /// version.
    pub(crate) fn may_start(
        found: &FoundPlugin,
        decided: Option<&OperatorState>,
    ) -> Result<bool, StoreError> {
        if found.fault.is_some() {
            return Ok(false);
        }
        match (found.needs_approval(), decided) {
            (false, _) => Ok(true),
            (true, None) => Ok(false),
            (true, Some(state)) => trust(found).trusts_files(state),
        }
    }

    fn usable(&self, found: &FoundPlugin, usage: PluginUse<'_>) -> ServerSpec {
        let config = serde_json::Value::Object(found.config.clone());
        let PluginUse { cwd, needed } = usage;
        let start = StartOptions {
            cwd: cwd.map(Path::to_owned),
            needed: needed.cloned(),
            ..self.start.clone()
        };
        let env: Vec<String> =
            found.env.iter().map(|(name, value)| format!("{name}={}", value.text())).collect();
        let endpoint = PluginSpec {
            made_from: format!("{} {config} {env:?}", found.identity()),
            program: found.executable.clone(),
            cwd: cwd.map(Path::to_owned),
            connector: Arc::new(Plugin::new(found.clone(), start)),
        };
        ServerSpec::plugin(&found.name, endpoint, trust(found))
    }

    /// Returns a plugin's operations: starts it, queries it, and ends it.
    pub(crate) async fn operations(&self, found: &FoundPlugin) -> Result<PluginOperations, String> {
        plugin::operations(&Plugin::new(found.clone(), self.start.clone())).await
    }
}

fn secrets(home: &Path, key: &SecretsKey) -> SecretSource {
    let vault = Vault::of_home(home);
    vault.choose_key(key.clone());
    SecretSource::new(move |name| {
        let value = vault.get(Space::Secret, name).map_err(|error| error.to_string())?;
        Ok(value.map(|value| value.expose().to_owned()))
    })
}

fn missing(name: &str) -> String {
    format!("plugin '{name}' not found: see 'countersign plugin list'")
}

/// Returns the trust in a plugin. A project's plugin counts as the user's own once its files are
/// trusted in their present version.
fn trust(found: &FoundPlugin) -> Trust {
    let (origin, files) = if found.needs_approval() {
        (ServerOrigin::Found, files(found))
    } else {
        (ServerOrigin::Own, Vec::new())
    };
    let text = ServerText::of_files(files.iter().map(|file| (&*file.path, &*file.sha256)));
    Trust { origin, files, text, ..Trust::own(found.identity()) }
}

/// Returns the file digests that an approval is bound to, in the form that the store keeps.
pub(crate) fn files(found: &FoundPlugin) -> Vec<FileDigest> {
    let digest = |path: &Path, sha256: &str| FileDigest {
        path: path.to_string_lossy().into_owned(),
        sha256: sha256.to_owned(),
    };
    vec![
        digest(&found.folder.join(plugin::MANIFEST), &found.manifest_sha256),
        digest(&found.executable, &found.executable_sha256),
    ]
}

pub(crate) fn not_approved(plugin: &str) -> Refusal {
    Refusal::new(Code::ProxyPluginNotApproved, workflow::not_approved(plugin))
}

/// A stand-in for an unusable plugin, with the reason.
struct Broken(String);

fn broken(name: &str, reason: String) -> ServerSpec {
    let endpoint = PluginSpec {
        made_from: reason.clone(),
        program: PathBuf::new(),
        cwd: None,
        connector: Arc::new(Broken(reason)),
    };
    ServerSpec::plugin(name, endpoint, Trust::own(String::new()))
}

impl Connector for Broken {
    fn connect<'a>(
        &'a self,
        _said: &'a StderrTail,
    ) -> BoxFuture<'a, Result<Arc<dyn ProviderConnection>, UpstreamFailure>> {
        async { Err(self.0.clone().into()) }.boxed()
    }
}
