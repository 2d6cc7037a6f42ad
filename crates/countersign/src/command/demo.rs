//! `countersign demo`: the gate with demo servers in a temporary home, and two scripted agents that
//! find tools, call them, get refused and touch the same resources, for as long as it runs.

mod scene;
mod script;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::Caller;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway::Gateway;
use gateway::front::{View, stdio};
use mcp::handshake;
use mcp::message::{Notification, Raw, Request, raw, to_raw};
use mcp::peer::{Ask, Peer, RequestContext, Service};
use mcp::{ErrorObject, lines};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::app::Purpose;
use crate::cli::{Demo, Locations, Serve, ServeFormat};
use crate::command::demo::script::{PLANNER, REVIEWER, Step};
use crate::exit::Failure;
use crate::site::Site;
use crate::{demo, output, serve};

/// The pause between two steps of the agents: long enough to read along.
const PAUSE: Duration = Duration::from_millis(1500);

/// The time limit of a step.
const PATIENCE: Duration = Duration::from_secs(10);

/// The size of the pipe between an agent and the gate.
const PIPE_BYTES: usize = 64 * 1024;

pub(crate) async fn run(args: Demo) -> Result<(), Failure> {
    let folder = Folder::make()?;
    // The demo has its own config: neither the servers of the user and the folder nor the folder's
    // files take part.
    let config = folder.0.join("config.json");
    std::fs::write(&config, r#"{"workspace": {"enabled": false}}"#).map_err(|error| {
        Failure::system(format!("cannot write '{}': {error}", config.display()))
    })?;
    let site = Site::new(Locations {
        config: Some(config),
        home: Some(folder.0.join("home")),
        alone: true,
    });
    let listen = args.listen.unwrap_or_else(|| ([127, 0, 0, 1], 0).into());
    let serve = Serve { listen: Some(listen), output: ServeFormat::Text };
    let home = folder.0.join("home");
    let show = |gateway| show(gateway, home, args.once).boxed();
    serve::run_with(&site, serve, Purpose::Demo, show).await
}

/// A folder that is removed when the demo ends.
struct Folder(PathBuf);

impl Folder {
    /// Makes the folder. It must be new and its name unpredictable: in a directory that all users
    /// share, another user could have made it first.
    fn make() -> Result<Folder, Failure> {
        let random = getrandom::u64().map_err(|error| {
            Failure::system(format!("cannot generate a random folder name: {error}"))
        })?;
        let path = std::env::temp_dir().join(format!("countersign-demo-{random:016x}"));
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            Failure::system(format!("cannot create '{}': {error}", path.display()))
        })?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Plays the opening, then the rounds that can be watched.
async fn show(gateway: Gateway, home: PathBuf, once: bool) -> Result<(), Failure> {
    Agents::at_work(&gateway, async |agents| open(&gateway, agents).await).await?;
    // From here on the server describes its tool differently.
    gateway.restart(demo::MAIL).await;
    scene::copies(&gateway, &home).await?;
    Agents::at_work(&gateway, async |agents| rounds(agents, once).await).await
}

/// Plays a run with two steps at a time, each on its own connection.
async fn open(gateway: &Gateway, agents: &Agents) -> Result<(), Failure> {
    let mut run = scene::Run::begin(gateway).await?;
    let plan = run.begin_step("plan", PLANNER).await?;
    let review = run.begin_step("review", REVIEWER).await?;
    for step in script::opening() {
        agents.play(&step).await?;
    }
    run.end_step(review, REVIEWER).await?;
    run.end_step(plan, PLANNER).await?;
    run.end().await
}

async fn rounds(agents: &Agents, once: bool) -> Result<(), Failure> {
    output::line("\nTwo scripted agents are working:\n")?;
    for round in 1.. {
        for step in script::round(round) {
            output::line(&step.told(&agents.play(&step).await?))?;
            tokio::time::sleep(PAUSE).await;
        }
        if once {
            break;
        }
    }
    Ok(())
}

/// The scripted agents, connected.
struct Agents {
    planner: Peer,
    reviewer: Peer,
}

impl Agents {
    /// Connects the agents for the duration of the work.
    async fn at_work(
        gateway: &Gateway,
        work: impl AsyncFnOnce(&Agents) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (planner, planner_gate) = connect(gateway, PLANNER);
        let (reviewer, reviewer_gate) = connect(gateway, REVIEWER);
        let agents = Agents { planner, reviewer };
        tokio::select! {
            () = planner_gate => Err(Failure::system("the connection of the demo agents closed")),
            () = reviewer_gate => Err(Failure::system("the connection of the demo agents closed")),
            told = async {
                agents.greet().await?;
                work(&agents).await
            } => told,
        }
    }

    async fn greet(&self) -> Result<(), Failure> {
        for (peer, name) in [(&self.planner, PLANNER), (&self.reviewer, REVIEWER)] {
            let info = json!({"name": name, "version": env!("CARGO_PKG_VERSION")});
            handshake::initialize(peer, &info, &raw("{}".to_owned()), PATIENCE).await.map_err(
                |error| {
                    Failure::system(format!("the demo agent cannot connect to the gate: {error}"))
                },
            )?;
        }
        Ok(())
    }

    async fn play(&self, step: &Step) -> Result<Value, Failure> {
        let peer = if step.agent == PLANNER { &self.planner } else { &self.reviewer };
        let params = to_raw(&json!({"name": step.tool, "arguments": step.arguments}));
        let answer = peer.request(Ask::new("tools/call", Some(params), PATIENCE)).await.map_err(
            |error| {
                Failure::system(format!("the demo agent got no response from the gate: {error}"))
            },
        )?;
        Ok(serde_json::from_str(answer.get()).unwrap_or_default())
    }
}

/// Connects a client, and returns it with the gate's side of the connection.
fn connect(gateway: &Gateway, name: &str) -> (Peer, impl Future<Output = ()> + use<>) {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let service = View::Discovery.open(gateway, &Arc::new(Caller::agent(name)));
    let (reader, writer) = tokio::io::split(theirs);
    let gate = stdio::serve(service, reader, writer, CancellationToken::new());
    let (reader, writer) = tokio::io::split(ours);
    (lines::connect(reader, writer, Arc::new(Mute)), gate)
}

/// A service of agents that answer no requests.
struct Mute;

impl Service for Mute {
    fn request(
        &self,
        request: Request,
        _incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        async move { Err(ErrorObject::method_not_found(&request.method)) }.boxed()
    }

    fn notification(&self, _notification: Notification, _peer: Peer) {}
}
