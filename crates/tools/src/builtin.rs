//! The six tools every agent expects, over one folder: Read, Write, Edit, Bash, Glob and Grep. All
//! files are reached through [`root`]; what went wrong is told in a result that the agent can read.

mod arguments;
mod bash;
mod definitions;
mod fault;
mod file;
mod glob;
mod grep;
mod limits;
mod read;
mod root;
mod stop;
mod tree;
mod write;

pub use bash::{COMMAND_META, Command};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::message::{Raw, to_raw};
use provider::{Call, CallContext, ProviderError, Reply, ToolProvider};
use serde_json::{Value, json};

use self::arguments::Arguments;
use self::fault::{Fault, Result};
use self::root::Root;
use self::stop::Stop;

/// What the operator allows beside reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    pub write: bool,
    pub shell: bool,
    pub allow_outside: bool,
}

/// What is Countersign's own: whoever could change it would decide what may be called.
#[derive(Clone)]
pub struct OffLimits {
    /// Folders that no tool reaches, also inside the root.
    pub folders: Vec<PathBuf>,
    /// Files that no tool changes. Asked for at each change, since a person may trust more of them
    /// meanwhile; where they cannot be told, nothing is changed.
    pub files: Files,
}

pub type Files = Arc<dyn Fn() -> std::result::Result<Vec<PathBuf>, String> + Send + Sync>;

impl Default for OffLimits {
    fn default() -> OffLimits {
        OffLimits { folders: Vec::new(), files: Arc::new(|| Ok(Vec::new())) }
    }
}

/// The built-in tools over one root.
pub struct Workspace {
    root: Arc<Root>,
    allowed: Allowed,
    supervisor: Option<PathBuf>,
    /// The longest that a command may be given.
    seconds_max: u64,
    /// Variables that commands do not get.
    withheld: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tool {
    Read,
    Write,
    Edit,
    Bash,
    Glob,
    Grep,
}

impl Tool {
    const ALL: [(Tool, &str); 6] = [
        (Tool::Read, "Read"),
        (Tool::Write, "Write"),
        (Tool::Edit, "Edit"),
        (Tool::Bash, "Bash"),
        (Tool::Glob, "Glob"),
        (Tool::Grep, "Grep"),
    ];

    fn is_in(self, allowed: Allowed) -> bool {
        match self {
            Tool::Read | Tool::Glob | Tool::Grep => true,
            Tool::Write | Tool::Edit => allowed.write,
            Tool::Bash => allowed.shell,
        }
    }
}

/// The content of a result.
struct Answer {
    content: Vec<Value>,
    is_error: bool,
    /// For programs: models are not shown it.
    meta: Option<Value>,
}

impl Answer {
    fn of(content: Vec<Value>) -> Answer {
        Answer { content, is_error: false, meta: None }
    }

    fn text(text: impl AsRef<str>) -> Answer {
        Answer::of(vec![text_block(text.as_ref())])
    }

    fn into_reply(self) -> Reply {
        let mut result = json!({"content": self.content, "isError": self.is_error});
        if let Some(meta) = self.meta {
            result["_meta"] = meta;
        }
        Reply { result: to_raw(&result) }
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

impl Workspace {
    /// How long a call may take at most: as long as Bash can be told to wait, and what it takes to
    /// end a command.
    pub const CALL_TIMEOUT: Duration = limits::CALL_TIMEOUT;

    /// Opens the root.
    pub fn new(
        root: &Path,
        allowed: Allowed,
        off_limits: OffLimits,
    ) -> std::result::Result<Workspace, String> {
        let root = Arc::new(Root::open(root, allowed.allow_outside, off_limits)?);
        let seconds_max = limits::BASH_TIMEOUT_SECONDS_MAX;
        Ok(Workspace { root, allowed, supervisor: None, seconds_max, withheld: Vec::new() })
    }

    /// Lets commands take longer than an agent may ask for.
    #[must_use]
    pub fn patient(self, at_most: Duration) -> Workspace {
        Workspace { seconds_max: at_most.as_secs().max(1), ..self }
    }

    /// Keeps these variables of the environment from commands, beside the gate's own.
    #[must_use]
    pub fn withholding(self, withheld: Vec<String>) -> Workspace {
        Workspace { withheld, ..self }
    }

    /// Has this program stand between the gate and each command, so that nothing of it is left when
    /// either ends: it is started as `supervise --gate <pid> -- command…`.
    #[must_use]
    pub fn supervised(self, supervisor: Option<PathBuf>) -> Workspace {
        Workspace { supervisor, ..self }
    }

    /// The root, absolute and without links.
    pub fn root(&self) -> &Path {
        &self.root.path
    }

    /// The tools that are allowed, each as the JSON object of `tools/list`.
    pub fn definitions(&self) -> Vec<Raw> {
        let offered = Tool::ALL.into_iter().filter(|(tool, _)| tool.is_in(self.allowed));
        offered.map(|(tool, _)| to_raw(&definitions::definition(tool, self.seconds_max))).collect()
    }

    async fn run(&self, call: &Call, ctx: &CallContext) -> Result<Answer> {
        let stop = Stop::of(ctx);
        stop.check()?;
        let name = call.tool.tool.as_str();
        let known =
            Tool::ALL.into_iter().find(|(tool, known)| *known == name && tool.is_in(self.allowed));
        let Some((tool, _)) = known else {
            return Err(Fault::said(format!("there is no tool '{name}' here")));
        };
        if tool == Tool::Bash {
            return self.bash(call, ctx).await;
        }
        let (root, members) = (self.root.clone(), call.arguments.members().clone());
        blocking(move || {
            let arguments = Arguments(&members);
            match tool {
                Tool::Read => read::run(&root, &arguments, &stop),
                Tool::Write => write::write(&root, &arguments),
                Tool::Edit => write::edit(&root, &arguments),
                Tool::Glob => glob::run(&root, &arguments, &stop),
                Tool::Grep => grep::run(&root, &arguments, &stop),
                Tool::Bash => Err(Fault::said("Bash runs elsewhere")),
            }
        })
        .await
    }

    async fn bash(&self, call: &Call, ctx: &CallContext) -> Result<Answer> {
        let arguments = Arguments(call.arguments.members());
        let asked = bash::Asked::of(&arguments, self.seconds_max)?;
        let cwd = arguments.optional_text(&["cwd"])?.map(str::to_owned);
        let root = self.root.clone();
        let cwd = blocking(move || root.find_folder(cwd.as_deref())).await?;
        let around = (self.supervisor.as_deref(), &self.withheld[..]);
        bash::run(asked, &cwd, around, ctx).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let working = tokio::task::spawn_blocking(work);
    working.await.unwrap_or_else(|error| Err(Fault::said(format!("the tool failed: {error}"))))
}

impl ToolProvider for Workspace {
    fn tools(&self) -> BoxFuture<'_, std::result::Result<Vec<Raw>, ProviderError>> {
        async { Ok(self.definitions()) }.boxed()
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, std::result::Result<Reply, ProviderError>> {
        async move {
            let answer = match self.run(call, ctx).await {
                Ok(answer) => answer,
                Err(fault) => {
                    let text = fault.into_error()?;
                    Answer { is_error: true, ..Answer::text(text) }
                }
            };
            Ok(answer.into_reply())
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}
