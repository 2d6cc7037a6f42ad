//! A project and a person's own folder, both with room for plugins.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::Caller;
use domain::config;
use domain::method::Method;
use domain::tool::ToolName;
use mcp::child::StderrTail;
use provider::{
    Call, CallContext, Connector, Declared, ProviderConnection, ProviderError, Surface,
};
use serde_json::Value;
use text::json::Object;
use tools::plugin::{
    Findings, FoundPlugin, Places, Plugin, SecretSource, StartOptions, Variables, find,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Rig {
    pub(crate) around: tempfile::TempDir,
    pub(crate) project: PathBuf,
    /// The folder of the person's own plugins.
    pub(crate) own: PathBuf,
    /// The plugins in the person's config.
    pub(crate) configured: Vec<config::PluginConfig>,
}

/// A tool's response.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) is_error: bool,
    pub(crate) text: String,
    pub(crate) result: Value,
}

/// A started plugin, with its output besides its responses.
pub(crate) struct Started {
    pub(crate) connected: Arc<dyn ProviderConnection>,
    pub(crate) said: StderrTail,
}

impl Rig {
    pub(crate) fn new() -> Rig {
        let around = tempfile::tempdir().unwrap();
        let root = around.path().canonicalize().unwrap();
        let (project, own) = (root.join("project"), root.join("data/countersign/plugins"));
        std::fs::create_dir_all(&project).unwrap();
        std::fs::create_dir_all(&own).unwrap();
        Rig { around, project, own, configured: Vec::new() }
    }

    pub(crate) fn variables(&self) -> Variables {
        let text = |path: &Path| Some(path.to_str().unwrap().to_owned());
        let data = self.own.ancestors().nth(2).unwrap();
        Variables {
            xdg_data_home: text(data),
            home: text(&data.join("home")),
            ..Default::default()
        }
    }

    pub(crate) fn find(&self) -> Findings {
        find(&Places::new(&self.variables(), &self.project), &self.configured)
    }

    pub(crate) fn found(&self, name: &str) -> FoundPlugin {
        let findings = self.find();
        let found = findings.plugins.into_iter().find(|found| found.name == name);
        found.unwrap_or_else(|| panic!("there is no '{name}': {:?}", findings.faults))
    }

    /// Installs a program built with the tests as one of the person's own plugins.
    pub(crate) fn install(&self, name: &str, program: &str) -> PathBuf {
        let folder = place(&self.own, name, &manifest(name));
        std::fs::copy(built(program), folder.join(format!("awf-plugin-{name}"))).unwrap();
        folder
    }

    pub(crate) fn script(&self, name: &str, body: &str) {
        let folder = place(&self.own, name, &manifest(name));
        executable(&folder.join(format!("awf-plugin-{name}")), body);
    }

    pub(crate) fn configure(&mut self, name: &str, config: &Value) {
        let config = config.as_object().unwrap().clone();
        let plugin = config::PluginConfig {
            name: name.to_owned(),
            path: None,
            config,
            env: Vec::new(),
            sha256: None,
        };
        self.configured.push(plugin);
    }

    pub(crate) fn sockets(&self) -> PathBuf {
        self.around.path().canonicalize().unwrap().join("s")
    }

    pub(crate) fn start(&self) -> StartOptions {
        StartOptions {
            supervisor: None,
            folder: self.sockets(),
            cwd: Some(self.project.clone()),
            expose: None,
            needed: None,
            timeout: PATIENCE,
            secrets: SecretSource::none(),
        }
    }

    pub(crate) fn exposing(&self, operations: &[&str]) -> StartOptions {
        let expose = operations.iter().map(|name| (*name).to_owned()).collect();
        StartOptions { expose: Some(expose), ..self.start() }
    }

    pub(crate) fn plugin(&self, name: &str, start: StartOptions) -> Plugin {
        Plugin::new(self.found(name), start)
    }

    pub(crate) async fn connect(&self, name: &str, start: StartOptions) -> Result<Started, String> {
        let said = StderrTail::default();
        let connected = self.plugin(name, start).connect(&said).await;
        let connected = connected.map_err(|failure| failure.to_string())?;
        Ok(Started { connected, said })
    }

    /// Asserts that nothing of a plugin is left in the folder of sockets.
    pub(crate) fn assert_empty(&self) {
        let left: Vec<_> = std::fs::read_dir(self.sockets()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Started {
    pub(crate) async fn tools(&self) -> Vec<Value> {
        let tools = self.connected.tools().await.unwrap();
        tools.iter().map(|tool| serde_json::from_str(tool.get()).unwrap()).collect()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> Result<Said, ProviderError> {
        self.call_with(tool, arguments, &CallContext::within(PATIENCE)).await
    }

    pub(crate) async fn call_with(
        &self,
        tool: &str,
        arguments: &str,
        ctx: &CallContext,
    ) -> Result<Said, ProviderError> {
        let reply = self.connected.call(&call(tool, arguments), ctx).await?;
        let result: Value = serde_json::from_str(reply.result.get()).unwrap();
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        Ok(Said { is_error: result["isError"].as_bool().unwrap(), text, result })
    }

    /// Waits until the plugin has printed these words.
    pub(crate) async fn heard(&self, words: &str) {
        for _ in 0..1000 {
            if self.said.lines().iter().any(|line| line.contains(words)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("'{words}' was not heard: {:?}", self.said.lines());
    }
}

pub(crate) fn call(tool: &str, arguments: &str) -> Call {
    Call {
        id: String::new(),
        caller: Arc::new(Caller::admin()),
        client: None,
        session: None,
        request_id: None,
        surface: Surface::Cli,
        method: Method::ToolCall,
        tool: ToolName { server: "plugin".to_owned(), tool: tool.to_owned() },
        arguments: Object::parse(arguments).unwrap().unwrap(),
        declared: Declared::Nothing,
        other: Vec::new(),
    }
}

/// Creates a plugin's folder with this manifest.
pub(crate) fn place(plugins: &Path, folder: &str, manifest: &str) -> PathBuf {
    let folder = plugins.join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("plugin.yaml"), manifest).unwrap();
    folder
}

pub(crate) fn manifest(name: &str) -> String {
    format!("name: {name}\nversion: 1.0.0\nawf_version: '>=0.4.0'\ncapabilities: [operations]\n")
}

pub(crate) fn executable(path: &Path, body: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Returns the path of a program that cargo builds with the tests.
pub(crate) fn built(program: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let path = deps.ancestors().nth(2).unwrap().join("examples").join(program);
    assert!(path.is_file(), "no {program}: run cargo build -p plugin-sdk --examples");
    path
}

/// Waits until the process is gone, or only init has yet to reap it.
pub(crate) async fn gone(id: &str) {
    for _ in 0..500 {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {id} is still there");
}
