//! A run with a real agent program: a fresh home, a workspace and a scripted model.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::foreign;
use testkit::model::{self, Model, Turn};
use testkit::program::{command, countersign, example, run, stderr, stdout};
use testkit::wait::eventually;
use tokio::process::Command;

pub(crate) const PROVIDERS: [&str; 4] = ["claude", "gemini", "codex", "opencode"];

/// OpenCode takes 15 s on two quiet cores, and tests run in parallel.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

pub(crate) struct Stage {
    dir: TempDir,
    provider: String,
    pub(crate) model: Model,
    /// Set when a program was made for this stage alone.
    is_staged: AtomicBool,
}

/// The results of probes, which a stage takes from those before it: OpenCode alone takes 20 s.
fn shared_probes() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("probes")
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.is_staged.load(Ordering::Relaxed) {
            copy_probes(&self.probes(), &shared_probes());
        }
    }
}

/// Copies the results that are not there yet. One that cannot be copied is found by another probe.
fn copy_probes(from: &Path, to: &Path) {
    let entries: Vec<_> = std::fs::read_dir(from).into_iter().flatten().flatten().collect();
    if !entries.is_empty() {
        let mut folder = std::fs::DirBuilder::new();
        let _ = folder.recursive(true).mode(0o700).create(to);
    }
    for entry in entries {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.extension().is_some_and(|end| end == "json") && !target.exists() {
            let copy = to.join(format!("{}.new", uuid::Uuid::now_v7()));
            let _ = std::fs::copy(&path, &copy).and_then(|_| std::fs::rename(&copy, &target));
        }
    }
}

impl Stage {
    /// A stage on which the real programs need no probe if another one has seen them.
    pub(crate) async fn new(provider: &str, turns: impl IntoIterator<Item = Turn>) -> Stage {
        let stage = Stage::unprobed(provider, turns).await;
        copy_probes(&shared_probes(), &stage.probes());
        stage
    }

    /// A stage with a program of ours in the place of Claude Code, for tests in which any agent will
    /// do.
    pub(crate) async fn scripted(turns: impl IntoIterator<Item = Turn>) -> Stage {
        let stage = Stage::unprobed("claude", turns).await;
        stage.is_staged.store(true, Ordering::Relaxed);
        std::fs::create_dir(stage.bin()).unwrap();
        symlink(example("scripted_agent"), stage.bin().join("claude")).unwrap();
        stage
    }

    /// A stage on which no program was probed yet.
    pub(crate) async fn unprobed(provider: &str, turns: impl IntoIterator<Item = Turn>) -> Stage {
        let dir = tempfile::tempdir().unwrap();
        let model = Model::start(turns).await;
        let (provider, is_staged) = (provider.to_owned(), AtomicBool::new(false));
        let stage = Stage { dir, provider, model, is_staged };
        std::fs::create_dir(stage.dir.path().join("workspace")).unwrap();
        std::fs::write(stage.workspace().join("a.txt"), "one line\n").unwrap();
        if stage.provider == "gemini" {
            // With another endpoint, Gemini requires an explicit choice.
            let auth = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
            let folder = stage.dir.path().join(".gemini");
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("settings.json"), auth.to_string()).unwrap();
        }
        stage
    }

    pub(crate) fn provider(&self) -> &str {
        &self.provider
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("workspace")
    }

    /// Returns the folder of probes.
    pub(crate) fn probes(&self) -> PathBuf {
        self.home().join("probes")
    }

    /// Returns the folder of programs that come before the real ones.
    fn bin(&self) -> PathBuf {
        self.dir.path().join("bin")
    }

    /// Returns the agent that the stage works with.
    fn real(&self) -> PathBuf {
        let scripted = self.bin().join(&self.provider);
        let real = || foreign::folder().join("agents/bin").join(&self.provider);
        if scripted.exists() { scripted } else { real() }
    }

    /// Returns the folder around all of it.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Makes a program for `options.command`: a shell script, in which `$REAL` is the stage's agent
    /// and `$HOME_OF_GATE` the gate's home.
    pub(crate) fn program(&self, script: &str) -> PathBuf {
        self.is_staged.store(true, Ordering::Relaxed);
        let (real, home) = (self.real(), self.home());
        let path = self.dir.path().join("agent.sh");
        let (real, home) = (real.display(), home.display());
        let text = format!("#!/bin/sh\nREAL='{real}' HOME_OF_GATE='{home}'\n{script}\n");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Makes a program that answers the queries sent to Claude Code before its start, offers our
    /// tools to a probe, and then runs the script.
    pub(crate) fn fake_claude(&self, script: &str) -> PathBuf {
        self.program(&format!("{}\n{}\n{script}", answers("claude"), self.offers("")))
    }

    /// Makes the same for the stage's own agent.
    pub(crate) fn fake(&self, script: &str) -> PathBuf {
        let answers = answers(&self.provider);
        self.program(&format!("{answers}\n{}\n{script}", self.offers("")))
    }

    /// Returns the part of a script that offers our Read to a probe, as the real program does, and
    /// one tool more if it is named.
    pub(crate) fn offers(&self, more: &str) -> String {
        let more: Vec<Value> = more.split_whitespace().map(|name| json!({"name": name})).collect();
        let tools = |ours: Value| [vec![ours], more.clone()].concat();
        let (path, body) = match self.provider.as_str() {
            "gemini" => {
                let tools = tools(json!({"name": "mcp_awf-proxy_Read"}));
                (":generateContent", json!({"tools": [{"functionDeclarations": tools}]}))
            }
            "codex" => {
                let read = json!({"name": "mcp__awf_proxy__Read"});
                ("/responses", json!({"tools": tools(read)}))
            }
            "opencode" => {
                let read = json!({"function": {"name": "awf-proxy_Read"}});
                ("/chat/completions", json!({"tools": tools(read)}))
            }
            _ => ("/messages", json!({"tools": tools(json!({"name": "mcp__awf-proxy__Read"}))})),
        };
        format!("OFFERED='{path} {body}'\n{OFFERS}")
    }

    /// Returns the step of another program.
    pub(crate) fn step_with(&self, proxy: &Value, program: &Path) -> Value {
        let mut step = self.step(proxy);
        step["options"]["command"] = json!(program);
        step
    }

    /// Writes servers into the gate's config; returns the arguments that name it.
    pub(crate) fn config(&self, servers: &Value) -> [String; 2] {
        let file = self.dir.path().join("config.json");
        std::fs::write(&file, json!({"mcpServers": servers}).to_string()).unwrap();
        ["--config".to_owned(), file.to_str().unwrap().to_owned()]
    }

    /// Makes a gate give running calls longer than any test waits, so that a run which waits for
    /// one does not end; returns the arguments that name the config.
    pub(crate) fn patient_gate(&self) -> [&'static str; 2] {
        let config = json!({"shutdown_timeout": "5m"}).to_string();
        std::fs::write(self.dir.path().join("patient.json"), config).unwrap();
        ["--config", "../patient.json"]
    }

    /// Returns the gate's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Returns the agent's step, whatever else its workflow has.
    pub(crate) fn step(&self, proxy: &Value) -> Value {
        let url = self.model.url();
        let mut options = match self.provider.as_str() {
            "claude" => json!({"env": {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "test"}}),
            "gemini" => json!({
                "env": {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "test"},
                "model": "gemini-2.5-flash",
            }),
            "codex" => json!({
                "env": {"FAKE_KEY": "test"}, "config": model::codex_config(&url), "model": "gpt-5.5",
            }),
            "opencode" => json!({"config": model::opencode_config(&url)}),
            "openai_compatible" => {
                json!({"base_url": format!("{url}/v1"), "model": "m-1", "api_key": "test"})
            }
            other => panic!("unknown provider {other}"),
        };
        if self.bin().exists() {
            options["command"] = json!(self.real());
        }
        json!({
            "type": "agent", "provider": self.provider, "prompt": "do it", "options": options,
            "mcp_proxy": proxy, "timeout": "4m", "on_success": "done",
        })
    }

    /// Writes a workflow with one step to a file: JSON is YAML.
    pub(crate) fn flow(&self, proxy: &Value) -> PathBuf {
        self.flow_of(json!({"initial": "task", "task": self.step(proxy)}))
    }

    pub(crate) fn flow_of(&self, mut states: Value) -> PathBuf {
        states["done"] = json!({"type": "terminal", "status": "success"});
        let flow = json!({"name": "flow", "states": states});
        let file = self.dir.path().join("flow.yaml");
        std::fs::write(&file, flow.to_string()).unwrap();
        file
    }

    /// Returns a `countersign run` command for the workspace.
    pub(crate) fn command(&self, flow: &Path, args: &[&str]) -> Command {
        let mut command = self.countersign("run");
        command.arg(flow).args(args);
        command
    }

    /// Returns a command for the program with the agents on its path, in the workspace.
    pub(crate) fn countersign(&self, word: &str) -> Command {
        self.countersign_at(&countersign(), word)
    }

    /// Returns a command for another copy of the program.
    pub(crate) fn countersign_at(&self, program: &Path, word: &str) -> Command {
        let mut command = self.prepared(program);
        command.arg(word);
        command
    }

    /// Returns a command for the real agent itself, as a shell in the workspace starts it.
    pub(crate) fn agent(&self) -> Command {
        let mut command =
            self.prepared(&foreign::program(&format!("agents/bin/{}", self.provider)));
        // OpenCode works in the folder that the shell names.
        command.env("PWD", self.workspace());
        command
    }

    fn prepared(&self, program: &Path) -> Command {
        let mut command = command(program, self.dir.path());
        let programs = [self.bin(), foreign::folder().join("agents/bin")];
        let path = std::env::var_os("PATH").unwrap();
        let path = programs.into_iter().chain(std::env::split_paths(&path));
        command
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
            .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
            .current_dir(self.workspace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) async fn run(&self, flow: &Path, args: &[&str]) -> Output {
        ended(self.command(flow, args)).await
    }

    /// Runs the workflow and returns its JSON output, and all of its output as text.
    pub(crate) async fn run_json(&self, flow: &Path, args: &[&str]) -> (Value, String) {
        let output = self.run(flow, &[args, &["-o", "json"]].concat()).await;
        let words = format!("{}\n{}", stdout(&output), stderr(&output));
        let told = serde_json::from_str(&stdout(&output));
        (told.unwrap_or_else(|_| panic!("{:?}: {words}", output.status)), words)
    }

    /// Returns the newest run, as the program shows it.
    pub(crate) async fn last_run(&self) -> Value {
        let list = run(self.dir.path(), ["runs", "list", "-o", "json"]).await;
        let list: Value = serde_json::from_str(&stdout(&list)).unwrap();
        let id = list["runs"][0]["id"].as_str().unwrap_or_else(|| panic!("{list}")).to_owned();
        let run = run(self.dir.path(), ["runs", "show", &id, "-o", "json"]).await;
        serde_json::from_str(&stdout(&run)).unwrap()
    }

    /// Asserts that no process has this stage's folder in its command line or environment, and that
    /// no file of a step is left.
    pub(crate) async fn assert_nothing_left(&self) {
        eventually(|| async { self.left().is_empty().then_some(()) }).await;
        let steps = std::fs::read_dir(self.home().join("steps")).into_iter().flatten();
        assert_eq!(steps.count(), 0, "files of steps are left");
    }

    pub(crate) fn left(&self) -> Vec<String> {
        let folder = self.dir.path().to_str().unwrap().to_owned();
        let own = std::process::id().to_string();
        let mut left = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let pid = entry.file_name().into_string().unwrap_or_default();
            if pid == own || pid.parse::<u32>().is_err() {
                continue;
            }
            let read = |name: &str| {
                let bytes = std::fs::read(entry.path().join(name)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            let (line, env) = (read("cmdline"), read("environ"));
            if line.contains(&folder) || env.contains(&folder) {
                left.push(format!("{pid}: {line}"));
            }
        }
        left
    }
}

/// Runs a command to its end, however long the agents take.
pub(crate) async fn ended(mut command: Command) -> Output {
    let running = command.output();
    tokio::time::timeout(PATIENCE, running).await.expect("it ends").expect("it runs")
}

/// Sends the model of a probe its first request, and waits to be ended.
const OFFERS: &str = r#"case "$PWD" in */probes/*)
    port=$(printf '%s\n' "$@" "$ANTHROPIC_BASE_URL" "$GOOGLE_GEMINI_BASE_URL" \
        "$OPENCODE_CONFIG_CONTENT" | grep -o '127\.0\.0\.1:[0-9]*' | head -n 1)
    exec bash -c 'exec 3<>"/dev/tcp/127.0.0.1/${1#*:}"
        printf "POST %s HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" "$2" "${#3}" "$3" >&3
        exec cat <&3' probed "$port" "${OFFERED%% *}" "${OFFERED#* }" ;;
esac"#;

/// Returns the part of a script that answers what an agent is asked before its start: its version,
/// which is that of the table, its flags, and for Codex its models.
pub(crate) fn answers(provider: &str) -> String {
    let (version, flags) = match provider {
        "claude" => (
            "2.1.325 (Claude Code)",
            "--output-format stream-json --verbose --mcp-config --strict-mcp-config --tools \
             --allowedTools --setting-sources",
        ),
        "gemini" => (
            "0.61.0",
            "--output-format stream-json --policy --allowed-mcp-server-names --extensions \
             --skip-trust",
        ),
        "codex" => (
            "codex-cli 0.166.0",
            "--json --config --skip-git-repo-check --sandbox --ephemeral --ignore-user-config \
             --ignore-rules --disable",
        ),
        "opencode" => ("1.18.33", "--format --model --pure --agent"),
        other => panic!("unknown provider {other}"),
    };
    let model = json!({"slug": "gpt-5.5", "shell_type": "default", "apply_patch_tool_type": null,
        "supports_search_tool": false});
    let models = json!({"models": [model]});
    format!(
        "case \"$*\" in\n\
         --version) echo '{version}'; exit ;;\n\
         --help | 'exec --help' | 'run --help') echo '{flags}'; exit ;;\n\
         'debug models') echo '{models}'; exit ;;\n\
         esac"
    )
}
