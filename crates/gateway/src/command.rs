//! The command of a server that is a child process: the child to start, with its arguments and
//! variables, and the program file that it starts.

mod program;

use std::path::PathBuf;

use access::secrets::SecretValues;
use domain::config::{ConfigTemplate, Environment, MissingValue, Withheld};
use mcp::child;

pub use program::ProgramFile;
pub(crate) use program::ProgramVersion;

#[derive(Clone, PartialEq)]
pub struct ChildCommand {
    pub command: String,
    pub args: Vec<ConfigTemplate>,
    pub env: Vec<(String, ConfigTemplate)>,
    pub cwd: Option<PathBuf>,
    pub inherit_env: bool,
    /// The program that runs the command as `supervise -- …`, so that it ends with the gate.
    pub supervisor: Option<PathBuf>,
    /// The only program file that may be started.
    pub pinned: Option<ProgramFile>,
}

impl ChildCommand {
    /// Reports whether its program is found. Blocks.
    pub(crate) fn finds_program(&self) -> bool {
        program::find(self).is_some()
    }

    /// Returns the child to start and the variables it does not inherit, or one sentence saying why
    /// it cannot start.
    pub(crate) fn child_spec(
        &self,
        secrets: &SecretValues,
    ) -> Result<(child::Spec, Withheld), String> {
        if let Some(cwd) = &self.cwd
            && !cwd.is_dir()
        {
            return Err(format!(
                "cannot start '{}': cwd '{}' is not a folder",
                self.command,
                cwd.display()
            ));
        }
        self.expanded(secrets).map_err(|error| error.to_string())
    }

    fn expanded(&self, secrets: &SecretValues) -> Result<(child::Spec, Withheld), MissingValue> {
        let all = std::env::vars_os();
        let mut env =
            if self.inherit_env { Environment::whole(all) } else { Environment::usual(all) };
        for (name, value) in &self.env {
            env.set(name, secrets.expand(value)?);
        }
        let args =
            self.args.iter().map(|arg| secrets.expand(arg)).collect::<Result<Vec<_>, _>>()?;
        let (command, args) = match &self.supervisor {
            Some(supervisor) => {
                let count = args.len().to_string();
                for (number, arg) in args.into_iter().enumerate() {
                    env.set(&child::supervised_argument(number), arg);
                }
                let args = ["supervise", "--handed-over", &count, "--", &self.command];
                (supervisor.to_string_lossy().into_owned(), args.map(str::to_owned).to_vec())
            }
            None => (self.command.clone(), args),
        };
        let Environment { variables: env, withheld } = env;
        let supervisor = self.supervisor.is_some();
        Ok((child::Spec { command, args, env, cwd: self.cwd.clone(), supervisor }, withheld))
    }
}
