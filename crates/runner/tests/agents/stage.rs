//! One run of a real agent program: a fresh home, a workspace, a scripted model, a scripted server.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use runner::agent::{
    AgentEvent, AgentFailure, AgentReport, AgentRequest, AgentServer, AgentTools, InstalledAgent,
    Launch, Person, Provider, Search, Stream, prepare,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::foreign;
use testkit::model::{self, Model, Turn};
use testkit::program::example;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::attacks::{self, Attack, Places};
use super::home;
use super::trace::Ground;

/// OpenCode takes 15 s on two quiet cores, and tests run concurrently.
const PATIENCE: Duration = Duration::from_secs(240);

/// The step's private folder, where the product has it.
const PRIVATE: &str = "home/.local/share/countersign/steps/1";

pub(crate) struct Stage {
    dir: TempDir,
    installed: InstalledAgent,
    pub(crate) model_name: Option<String>,
    /// The endpoint is in the person's own Gemini file, not in the environment.
    pub(crate) endpoint_by_file: bool,
    /// Records the files that the program looks at.
    pub(crate) is_traced: bool,
}

pub(crate) struct Outcome {
    pub(crate) launch: Launch,
    pub(crate) advertised: BTreeSet<String>,
    pub(crate) results: Vec<String>,
    /// Everything sent to the model, as text.
    pub(crate) asked: String,
    /// The arguments of the calls that reached our server's Read.
    pub(crate) calls: Vec<Value>,
    pub(crate) events: Vec<AgentEvent>,
    pub(crate) report: Result<AgentReport, AgentFailure>,
    pub(crate) found_in_workspace: Vec<String>,
    pub(crate) left_in_workspace: Vec<String>,
    /// The system calls with paths, if the run is traced.
    pub(crate) trace: String,
    stdout: String,
    stderr: String,
}

impl Stage {
    /// A home that contains only the person's choice to sign in with a key.
    pub(crate) async fn friendly(provider: Provider) -> Stage {
        let installed = installed(provider).await;
        let dir = tempfile::tempdir().unwrap();
        for folder in ["home", "workspace", "stage/marks", PRIVATE] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join("workspace/secret.txt"), "SECRET WORDS\n").unwrap();
        home::sign_in(provider, &dir.path().join("home"));
        let (model_name, endpoint_by_file, is_traced) = (None, false, false);
        Stage { dir, installed, model_name, endpoint_by_file, is_traced }
    }

    /// A machine whose files attack the program in every known way; returns the attacks as well.
    pub(crate) async fn attacked(provider: Provider) -> (Stage, Vec<Attack>) {
        let stage = Stage::friendly(provider).await;
        let marks = stage.marks();
        let config = attacks::remote_config(&marks).to_string();
        let places = Places {
            around: stage.around().to_owned(),
            home: stage.home(),
            workspace: stage.workspace(),
            marks,
            remote: serve_file(config).await,
        };
        home::make_repository(&stage.home(), &stage.workspace());
        let attacks = attacks::lay(provider, &places);
        (stage, attacks)
    }

    /// The folder in which attacks leave their marks.
    pub(crate) fn marks(&self) -> PathBuf {
        self.around().join("stage/marks")
    }

    pub(crate) fn ground(&self) -> Ground {
        Ground {
            around: self.around().to_owned(),
            home: self.home(),
            workspace: self.workspace(),
            private: self.around().join(PRIVATE),
            stage: self.around().join("stage"),
        }
    }

    pub(crate) async fn hostile(provider: Provider) -> Stage {
        let stage = Stage::friendly(provider).await;
        let tools =
            json!([{"name": "Evil", "description": "evil", "inputSchema": {"type": "object"}}]);
        let file = stage.dir.path().join("stage/evil.json");
        std::fs::write(&file, tools.to_string()).unwrap();
        let started = stage.home().join("evil-started");
        let (started, server) = (started.display(), example("step_server"));
        let start = format!("touch {started}; exec {} {}", server.display(), file.display());
        let evil = ["sh".to_owned(), "-c".to_owned(), start];
        let workspace = stage.dir.path().join("workspace");
        home::make_hostile(provider, &stage.home(), &workspace, &evil);
        home::make_repository(&stage.home(), &workspace);
        stage
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    /// The folder that holds all the others.
    pub(crate) fn around(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn installed(&self) -> &InstalledAgent {
        &self.installed
    }

    /// The file that only a tool of the program's own can create.
    pub(crate) fn pwned(&self) -> PathBuf {
        self.dir.path().join("workspace/pwned")
    }

    /// Reports whether the home's hook or its server has run.
    pub(crate) fn exists(&self, marker: &str) -> bool {
        self.home().join(marker).exists()
    }

    pub(crate) async fn run(
        &self,
        tools: AgentTools,
        prompt: &str,
        turns: impl IntoIterator<Item = Turn>,
        args: &[&str],
    ) -> Outcome {
        let model = Model::start(turns).await;
        let mut request = self.request(tools, prompt, &model.url());
        if self.endpoint_by_file {
            request.env.retain(|(name, _)| name != "GOOGLE_GEMINI_BASE_URL");
            let line = format!("GOOGLE_GEMINI_BASE_URL={}\n", model.url());
            std::fs::write(self.home().join(".gemini/.env"), line).unwrap();
        }
        request.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        let inherited = self.inherited();
        let launch = prepare(&self.installed, &request, &Person::new(inherited.clone())).unwrap();
        launch.write().unwrap();
        let found_in_workspace = names(&self.workspace());
        let output = self.start(&launch, inherited).await;
        let stdout = String::from_utf8(output.stdout).unwrap();
        let mut stream = Stream::new(self.installed.provider());
        let events = stdout.lines().flat_map(|line| stream.line(line)).collect();
        let log = std::fs::read_to_string(self.dir.path().join("stage/calls")).unwrap_or_default();
        let asked: Vec<String> = model.turns().iter().map(|asked| asked.body.to_string()).collect();
        Outcome {
            launch,
            advertised: model.advertised(),
            results: model.results(),
            asked: asked.join("\n"),
            calls: log.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
            events,
            report: stream.end(),
            found_in_workspace,
            left_in_workspace: names(&self.workspace()),
            trace: std::fs::read_to_string(self.trace()).unwrap_or_default(),
            stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Loopback only: the endpoint, a dummy key, and no downloads.
    pub(crate) fn inherited(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap();
        let mut vars: Vec<(OsString, OsString)> = vec![("PATH".into(), path)];
        vars.push(("HOME".into(), self.home().into()));
        vars.push(("COUNTERSIGN_HOME".into(), "/nowhere".into()));
        for name in [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_AUTOUPDATER",
            "OPENCODE_DISABLE_AUTOUPDATE",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS",
            "OPENCODE_DISABLE_MODELS_FETCH",
        ] {
            vars.push((name.into(), "1".into()));
        }
        vars
    }

    pub(crate) fn request(&self, tools: AgentTools, prompt: &str, url: &str) -> AgentRequest {
        let provider = self.installed.provider();
        let env = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let (env, config, model) = match provider {
            Provider::Claude => {
                (env(&[("ANTHROPIC_BASE_URL", url), ("ANTHROPIC_API_KEY", "test")]), None, None)
            }
            Provider::Gemini => (
                env(&[("GOOGLE_GEMINI_BASE_URL", url), ("GEMINI_API_KEY", "test")]),
                None,
                Some("gemini-2.5-flash"),
            ),
            Provider::Codex => {
                (env(&[("FAKE_KEY", "test")]), Some(model::codex_config(url)), Some("gpt-5.5"))
            }
            Provider::OpenCode => (Vec::new(), Some(model::opencode_config(url)), None),
        };
        AgentRequest {
            prompt: prompt.to_owned(),
            system_prompt: Some("Speak like a pirate.".to_owned()),
            model: self.model_name.clone().or(model.map(str::to_owned)),
            args: Vec::new(),
            env,
            config,
            dir: self.dir.path().join("workspace"),
            private: self.dir.path().join(PRIVATE),
            server: self.server(),
            tools,
            max_cost_usd: None,
            call_timeout: Duration::from_secs(600),
        }
    }

    fn server(&self) -> AgentServer {
        let log = self.dir.path().join("stage/calls");
        let text = |name: &str| json!({"type": "object", "properties": {name: {"type": "string", "description": name}}});
        let tools = json!([
            {
                "name": "Read", "description": "Reads a file", "inputSchema": text("path"),
                "annotations": {"readOnlyHint": true}, "x-do": {"work": {"log": log}},
            },
            {"name": "Bash", "description": "Runs a command", "inputSchema": text("command")},
        ]);
        let file = self.dir.path().join("stage/tools.json");
        std::fs::write(&file, tools.to_string()).unwrap();
        AgentServer {
            program: example("step_server"),
            args: vec![file.to_str().unwrap().to_owned()],
        }
    }

    async fn start(
        &self,
        launch: &Launch,
        inherited: Vec<(OsString, OsString)>,
    ) -> std::process::Output {
        let mut command = if self.is_traced {
            let mut command = Command::new("strace");
            command.args(["-f", "-y", "-qq", "-s", "4096", "-e", "trace=%file", "-o"]);
            command.arg(self.trace()).arg("--").arg(&launch.program);
            command
        } else {
            Command::new(&launch.program)
        };
        command.args(&launch.args).env_clear().envs(inherited);
        for name in &launch.env_remove {
            command.env_remove(name);
        }
        command.envs(launch.env.iter().cloned()).current_dir(&launch.dir);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).kill_on_drop(true).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let prompt = launch.stdin.clone().unwrap_or_default();
        let writing = async move { drop(stdin.write_all(&prompt).await) };
        let ended = async { tokio::join!(writing, child.wait_with_output()).1 };
        tokio::time::timeout(PATIENCE, ended).await.expect("it ends").unwrap()
    }
}

impl Stage {
    fn trace(&self) -> PathBuf {
        self.around().join("stage/trace")
    }
}

/// Serves one JSON text at every address of a server on loopback; returns its URL.
async fn serve_file(text: String) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let length = text.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
                 connection: close\r\n\r\n{text}"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}

impl Outcome {
    /// Returns the details a person needs when a test fails.
    pub(crate) fn shown(&self) -> String {
        format!(
            "\nargs: {:?}\nadvertised: {:?}\nresults: {:#?}\ncalls: {:?}\nreport: {:#?}\nstdout:\n{}\nstderr:\n{}",
            self.launch.args,
            self.advertised,
            self.results,
            self.calls,
            self.report,
            self.stdout,
            self.stderr
        )
    }
}

/// Queried once per program: some take seconds to start.
async fn installed(provider: Provider) -> InstalledAgent {
    static FOUND: [OnceCell<InstalledAgent>; 4] = [const { OnceCell::const_new() }; 4];
    let place = Provider::ALL.iter().position(|known| *known == provider).unwrap();
    let detect = || async {
        let path = std::env::var_os("PATH").unwrap();
        let folders = std::env::split_paths(&path);
        let folders = std::iter::once(foreign::program("agents/bin")).chain(folders);
        let path = std::env::join_paths(folders).unwrap();
        let search = Search { path: Some(&path), ..Search::default() };
        InstalledAgent::detect(provider, &search).await.unwrap()
    };
    FOUND[place].get_or_init(detect).await.clone()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
