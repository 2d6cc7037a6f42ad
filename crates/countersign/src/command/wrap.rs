//! `countersign wrap --name N -- command…`: stands in for a server in a client's configuration.
//! Client and server communicate as if directly connected; every call is recorded.

use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use domain::Caller;
use domain::config::is_withheld;
use domain::policy::ServerRules;
use gateway::front::wrap::{self, WrapEnd, WrappedServer};
use gateway::place::ServerPlace;
use gateway::spec::ServerSpec;
use gateway::{GateSettings, Gateway};
use mcp::child::enter;
use mcp::limits::CHILD_GRACE;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::cli::Wrap;
use crate::exit::Failure;
use crate::folders;
use crate::logging;
use crate::site::Site;
use crate::source::{Folder, Source};
use crate::stop_signal::StopSignal;
use telemetry::SpanExport;

/// The base of a shell's exit code for a command that a signal ended; the signal's number is added.
const SIGNALLED: i32 = 128;

/// The time to wait for the supervisor, which grants the server `CHILD_GRACE` twice and then kills
/// the rest.
const EXIT_WAIT: Duration = CHILD_GRACE.saturating_mul(3);

pub(crate) async fn run(site: &Site, args: Wrap) -> Result<(), Failure> {
    let mut told = StopSignal::new()?;
    let is_own = site.own()?.config.server(&args.name).is_some();
    let source = site.source()?;
    source.log_notes();
    let home = site.home()?;
    home.prepare()?;
    let rules = rules(source, &args.name, is_own)?;
    let store = site.store()?;
    let telemetry = SpanExport::start(&source.config.telemetry, logging::redactor);
    let gateway =
        Gateway::with_tracer(GateSettings::from(&source.config), store, telemetry.tracer());
    home.hide_keys(gateway.settings().redactor.known());
    logging::redact_with(gateway.settings().redactor.clone());
    let place = place_of(&args.command);
    let mut child = spawn(&args.command)?;
    let server = WrapEnd {
        reader: child.stdout.take().expect("stdout is piped"),
        writer: child.stdin.take().expect("stdin is piped"),
    };
    let client = WrapEnd { reader: tokio::io::stdin(), writer: tokio::io::stdout() };
    let wrapped = WrappedServer {
        name: args.name.into(),
        rules,
        caller: Arc::new(Caller::agent("agent-token")),
        place,
    };
    let stop = CancellationToken::new();
    let serving = wrap::serve(&gateway, wrapped, client, server, stop.clone());
    told.or_done(serving, stop).await;
    gateway.drain().await;
    telemetry.end().await;
    leave(&mut child).await
}

/// Returns the rules of the configured server of this name, which apply here as well.
fn rules(source: &Source, name: &str, is_own: bool) -> Result<Arc<ServerRules>, Failure> {
    let configured = source.config.server(name);
    let rules = configured.map(|server| ServerSpec::configured(server, None).rules);
    let mut rules = rules.unwrap_or_default();
    // A server from an untrusted file in the folder is a different one: only its lists count.
    if !is_own && source.folder.as_ref().is_some_and(Folder::is_untrusted) {
        (rules.quarantined, rules.disabled) = (false, false);
    }
    if rules.disabled || rules.quarantined {
        return Err(Failure::call(format!(
            "TOOL_BLOCKED: server '{name}' is disabled or quarantined by the configuration"
        )));
    }
    Ok(Arc::new(rules))
}

/// Returns the place of the server's files; the server starts in the folder of this process.
fn place_of(command: &[OsString]) -> ServerPlace {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into()).collect();
    let (program, args) = words.split_first().map_or(("", &[][..]), |(it, args)| (it, args));
    ServerPlace::of_command(program, args, None)
}

/// Starts the server under a supervisor, so that it ends with this process however that ends.
fn spawn(command: &[OsString]) -> Result<Child, Failure> {
    let own = folders::own_program()
        .ok_or_else(|| Failure::system("cannot find the path of the countersign executable"))?;
    let inherited = std::env::vars_os().filter(|(name, _)| !is_withheld(&name.to_string_lossy()));
    let mut supervised = Command::new(own);
    supervised
        .arg("supervise")
        .arg("--")
        .args(command)
        .env_clear()
        .envs(inherited)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .process_group(0)
        .kill_on_drop(true);
    // A client that starts us in another folder than its own may leave its own in `PWD`.
    enter(&mut supervised, Path::new("."));
    supervised.spawn().map_err(|error| Failure::system(format!("cannot start the server: {error}")))
}

/// Exits as the server did.
async fn leave(child: &mut Child) -> Result<(), Failure> {
    let Ok(Ok(status)) = tokio::time::timeout(EXIT_WAIT, child.wait()).await else {
        return Err(Failure::system("the server did not exit"));
    };
    match code(status) {
        0 => Ok(()),
        code => Err(Failure::with_status(code, "")),
    }
}

fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| SIGNALLED + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
