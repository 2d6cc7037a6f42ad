//! `countersign demo`: the gate with its two demo servers in a temporary home, and a scripted agent
//! that finds tools, calls them and is refused, for as long as it runs.

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
use mcp::peer::{Ask, Incoming, Peer, Service};
use mcp::{ErrorObject, lines};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::app::Purpose;
use crate::cli::{Demo, Place, Serve, ServeFormat};
use crate::exit::Failure;
use crate::{output, serve};

/// Between two steps of the agent: slow enough to read along.
const PAUSE: Duration = Duration::from_millis(1500);

/// No step takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes in flight between the agent and the gate.
const PIPE_BYTES: usize = 64 * 1024;

pub(crate) async fn run(args: Demo) -> Result<(), Failure> {
    let folder = Folder::make()?;
    // A config of its own: the servers of the person and the folder have no part in a demo, nor
    // have the files of the folder it runs in.
    let config = folder.0.join("config.json");
    std::fs::write(&config, r#"{"workspace": {"enabled": false}}"#).map_err(|error| {
        Failure::system(format!("cannot write '{}': {error}", config.display()))
    })?;
    let place = Place { config: Some(config), home: Some(folder.0.join("home")), alone: true };
    let listen = args.listen.unwrap_or_else(|| ([127, 0, 0, 1], 0).into());
    let serve = Serve { listen: Some(listen), output: ServeFormat::Text };
    let agent = |gateway| agent(gateway, args.once).boxed();
    serve::run_with(&place, serve, Purpose::Demo, agent).await
}

/// A folder that is gone when the demo ends.
struct Folder(PathBuf);

impl Folder {
    /// The name cannot be guessed and the folder must be new: in a place that all users share,
    /// another one could have made it first.
    fn make() -> Result<Folder, Failure> {
        let random = getrandom::u64()
            .map_err(|error| Failure::system(format!("no randomness for a folder: {error}")))?;
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

async fn agent(gateway: Gateway, once: bool) -> Result<(), Failure> {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let service = View::Discovery.open(&gateway, &Arc::new(Caller::agent("demo-agent")));
    let (reader, writer) = tokio::io::split(theirs);
    let gate = stdio::serve(service, reader, writer, CancellationToken::new());
    let (reader, writer) = tokio::io::split(ours);
    let peer = lines::connect(reader, writer, Arc::new(Mute));
    tokio::select! {
        () = gate => Err(Failure::system("the demo's connection ended")),
        told = play(&peer, once) => told,
    }
}

async fn play(peer: &Peer, once: bool) -> Result<(), Failure> {
    let info = json!({"name": "demo-agent", "version": env!("CARGO_PKG_VERSION")});
    handshake::initialize(peer, &info, &raw("{}".to_owned()), PATIENCE)
        .await
        .map_err(|error| Failure::system(format!("the demo's agent cannot connect: {error}")))?;
    output::line("\nA scripted agent is at work:\n")?;
    for round in 1.. {
        for step in script(round) {
            output::line(&step.play(peer).await?)?;
            tokio::time::sleep(PAUSE).await;
        }
        if once {
            break;
        }
    }
    Ok(())
}

/// One thing that the agent does, and what it thinks that it is for.
struct Step {
    tool: &'static str,
    arguments: Value,
}

fn script(round: u32) -> Vec<Step> {
    let call = |variant: &'static str, operation: &str, name: &str, args: Value| Step {
        tool: variant,
        arguments: json!({"name": name, "args": args, "intent": {"operation_type": operation}}),
    };
    let title = format!("round {round}");
    vec![
        Step {
            tool: "retrieve_tools",
            arguments: json!({"query": "write down a note", "limit": 3}),
        },
        call("call_tool_read", "read", "clock:current_time", json!({})),
        call(
            "call_tool_write",
            "write",
            "notes:write_note",
            json!({"title": title, "text": "hello"}),
        ),
        call("call_tool_read", "read", "notes:read_note", json!({"title": title})),
        // A slip: deleting is not reading, and the gate says so.
        call("call_tool_read", "read", "notes:delete_note", json!({"title": title})),
        call("call_tool_write", "read", "notes:list_notes", json!({})),
        call("call_tool_destructive", "destructive", "notes:delete_note", json!({"title": title})),
    ]
}

impl Step {
    async fn play(&self, peer: &Peer) -> Result<String, Failure> {
        let params = to_raw(&json!({"name": self.tool, "arguments": self.arguments}));
        let answer = peer
            .request(Ask::new("tools/call", Some(params), PATIENCE))
            .await
            .map_err(|error| Failure::system(format!("the demo's agent got no answer: {error}")))?;
        let result: Value = serde_json::from_str(answer.get()).unwrap_or_default();
        let what = self.arguments["name"].as_str().or(self.arguments["query"].as_str());
        let what = what.unwrap_or_default();
        Ok(format!("  {:<22} {:<20} {}", self.tool, what, words(&result)))
    }
}

fn words(result: &Value) -> String {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let code = result["structuredContent"]["error"]["code"].as_str();
    let words = match (code, serde_json::from_str::<Value>(text)) {
        (Some(code), _) => format!("refused: {code}: {text}"),
        (None, Ok(Value::Object(found))) => {
            let tools = found.get("tools").and_then(Value::as_array);
            let names = tools.into_iter().flatten().filter_map(|tool| tool["name"].as_str());
            format!("found: {}", names.collect::<Vec<_>>().join(", "))
        }
        (None, _) => format!("ok: {text}"),
    };
    output::plain(&words)
}

/// The agent answers no questions.
struct Mute;

impl Service for Mute {
    fn request(
        &self,
        request: Request,
        _incoming: Incoming,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        async move { Err(ErrorObject::method_not_found(&request.method)) }.boxed()
    }

    fn notification(&self, _notification: Notification, _peer: Peer) {}
}
