//! The six tools every agent expects, over one folder: Read, Write, Edit, Bash, Glob and Grep. All
//! file access goes through [`root`]; errors are results that the agent can read.

mod answer;
mod arguments;
mod bash;
mod definitions;
mod fault;
mod file;
mod glob;
mod grep;
mod limits;
mod off_limits;
mod read;
mod root;
mod stop;
mod tool;
mod tree;
mod write;

pub use bash::{COMMAND_META, CommandResult};
pub use off_limits::{OffLimits, ProtectedFiles};
pub use tool::Permissions;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::message::{Raw, to_raw};
use mcp::task;
use provider::{Call, CallContext, ProviderError, Reply, ToolProvider};

use self::answer::ToolAnswer;
use self::arguments::Arguments;
use self::fault::{Fault, Result};
use self::root::Root;
use self::stop::Stop;
use self::tool::BuiltinTool;

/// The built-in tools over one root.
pub struct Workspace {
    root: Arc<Root>,
    permissions: Permissions,
    supervisor: Option<PathBuf>,
    /// The longest timeout a command may have.
    seconds_max: u64,
    /// Variables withheld from commands.
    withheld: Vec<String>,
    /// Bytes of a command's stdout that are kept.
    stdout_bytes_max: usize,
}

impl Workspace {
    /// Maximum duration of a call: the longest Bash timeout, plus the time to end a command.
    pub const CALL_TIMEOUT: Duration = limits::CALL_TIMEOUT;

    pub fn new(
        root: &Path,
        permissions: Permissions,
        off_limits: OffLimits,
    ) -> std::result::Result<Workspace, String> {
        let root = Arc::new(Root::open(root, permissions.allow_outside, off_limits)?);
        Ok(Workspace {
            root,
            permissions,
            supervisor: None,
            seconds_max: limits::BASH_TIMEOUT_SECONDS_MAX,
            withheld: Vec::new(),
            stdout_bytes_max: limits::BASH_STDOUT_BYTES_MAX,
        })
    }

    /// Allows commands longer timeouts than an agent may request.
    #[must_use]
    pub fn patient(self, at_most: Duration) -> Workspace {
        Workspace { seconds_max: at_most.as_secs() + u64::from(at_most.subsec_nanos() > 0), ..self }
    }

    /// Keeps more of a command's stdout than an agent would read.
    #[must_use]
    pub fn keeping(self, stdout_bytes_max: usize) -> Workspace {
        Workspace { stdout_bytes_max, ..self }
    }

    /// Withholds these environment variables from commands, besides the gate's own.
    #[must_use]
    pub fn withholding(self, withheld: Vec<String>) -> Workspace {
        Workspace { withheld, ..self }
    }

    /// Runs each command under this program, as `supervise --gate <pid> -- command…`, so that
    /// nothing of the command is left when it or the gate ends.
    #[must_use]
    pub fn supervised(self, supervisor: Option<PathBuf>) -> Workspace {
        Workspace { supervisor, ..self }
    }

    /// Returns the root, absolute and without links.
    pub fn root(&self) -> &Path {
        &self.root.path
    }

    /// Returns the allowed tools, each as the JSON object of `tools/list`.
    pub fn definitions(&self) -> Vec<Raw> {
        let offered =
            BuiltinTool::ALL.into_iter().filter(|(tool, _)| tool.is_permitted(self.permissions));
        offered.map(|(tool, _)| to_raw(&definitions::definition(tool, self.seconds_max))).collect()
    }

    async fn run(&self, call: &Call, ctx: &CallContext) -> Result<ToolAnswer> {
        let stop = Stop::of(ctx);
        let name = call.tool.tool.as_str();
        let known = BuiltinTool::ALL
            .into_iter()
            .find(|(tool, known)| *known == name && tool.is_permitted(self.permissions));
        let Some((tool, _)) = known else {
            return Err(Fault::said(format!("the workspace has no tool '{name}'")));
        };
        if tool == BuiltinTool::Bash {
            return self.bash(call, ctx).await;
        }
        let (root, members) = (self.root.clone(), call.arguments.members().clone());
        blocking(move || {
            let arguments = Arguments(&members);
            match tool {
                BuiltinTool::Read => read::run(&root, &arguments, &stop),
                BuiltinTool::Write => write::write(&root, &arguments),
                BuiltinTool::Edit => write::edit(&root, &arguments),
                BuiltinTool::Glob => glob::run(&root, &arguments, &stop),
                BuiltinTool::Grep => grep::run(&root, &arguments, &stop),
                BuiltinTool::Bash => Err(Fault::said("Bash cannot run on this thread")),
            }
        })
        .await
    }

    async fn bash(&self, call: &Call, ctx: &CallContext) -> Result<ToolAnswer> {
        let arguments = Arguments(call.arguments.members());
        let request = bash::BashRequest::of(&arguments, self.seconds_max)?;
        let cwd = arguments.optional_text(&["cwd"])?.map(str::to_owned);
        let root = self.root.clone();
        let cwd = blocking(move || root.find_folder(cwd.as_deref())).await?;
        let shell = bash::Shell {
            supervisor: self.supervisor.as_deref(),
            withheld: &self.withheld,
            stdout_bytes_max: self.stdout_bytes_max,
        };
        bash::run(request, &cwd, shell, ctx).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let working = task::spawn_blocking(work);
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
            if let Err(fault) = Stop::of(ctx).check() {
                fault.into_error(false)?;
            }
            let answer = match self.run(call, ctx).await {
                Ok(answer) => answer,
                Err(fault) => {
                    let text = fault.into_error(true)?;
                    ToolAnswer { is_error: true, ..ToolAnswer::text(text) }
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
