//! `countersign mcp`: MCP on stdin and stdout. If `serve` is running, this process only copies
//! bytes to and from it; otherwise it is a separate gate.

use std::sync::Arc;

use axum::http::StatusCode;
use domain::Caller;
use gateway::events::Events;
use gateway::front::{View, stdio};
use gateway::plan::Reach;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use crate::app::{self, AGENT_TOKEN, Purpose};
use crate::cli::Mcp;
use crate::control::{self, LINES_PATH, LINES_PROTOCOL, Upgrade, with_query};
use crate::exit::Failure;
use crate::home::Home;
use crate::serve::take_spool;
use crate::site::Site;
use crate::stop_signal::StopSignal;

pub(crate) async fn run(site: &Site, args: Mcp) -> Result<(), Failure> {
    let home = site.home()?;
    home.prepare()?;
    match UnixStream::connect(home.control_socket()).await {
        Ok(stream) => bridge(home, stream, args).await,
        Err(_) => in_process(site, home, args).await,
    }
}

async fn bridge(home: &Home, stream: UnixStream, args: Mcp) -> Result<(), Failure> {
    // Without a file the gate says what is wrong; a new token would be unknown to it.
    let token = home.existing_agent_token()?;
    let named = name(&args);
    let all = args.all.then(|| "true".to_owned());
    let query = [("server", args.server), ("all", all), ("profile", args.profile)];
    let path = with_query(LINES_PATH, &query);
    let upgrade = control::upgrade(home, stream, (&path, LINES_PROTOCOL), token.as_ref()).await?;
    match upgrade {
        Upgrade::Done(connection) => {
            let (from_gate, to_gate) = tokio::io::split(connection);
            copy(from_gate, to_gate).await
        }
        Upgrade::Refused(answer) => {
            let is_missing = answer.status == StatusCode::NOT_FOUND;
            let named = if is_missing { named } else { String::new() };
            Err(Failure::input(format!("{}{named}", control::words(&answer))))
        }
    }
}

/// Copies between our stdio and a gate, until either side has ended.
pub(crate) async fn copy(
    mut from_gate: impl AsyncRead + Unpin,
    mut to_gate: impl AsyncWrite + Unpin,
) -> Result<(), Failure> {
    let asking = async {
        tokio::io::copy(&mut tokio::io::stdin(), &mut to_gate).await?;
        to_gate.shutdown().await
    };
    let mut stdout = tokio::io::stdout();
    let answering = tokio::io::copy(&mut from_gate, &mut stdout);
    tokio::pin!(answering);
    // A client that has closed its side still gets its responses. A gate that has ended will never
    // respond, and the client must see that.
    let asked = tokio::select! {
        _ = &mut answering => Err(std::io::ErrorKind::BrokenPipe.into()),
        asked = asking => {
            let _ = answering.await;
            asked
        }
    };
    asked.map_err(|_: std::io::Error| {
        Failure::system("the gate has stopped: restart the client to reconnect")
    })
}

async fn in_process(site: &Site, home: &Home, args: Mcp) -> Result<(), Failure> {
    let mut told = StopSignal::new()?;
    let source = site.source()?;
    source.log_notes();
    if !source.config.agent_token {
        return Err(Failure::input(
            "the default token, which 'countersign mcp' uses, is switched off ('agent_token' in the \
             config): run 'countersign serve', and connect over HTTP with a token of \
             'countersign token create'",
        ));
    }
    let reach = args.server.clone().map_or(Reach::All, Reach::Only);
    let app = app::build(site, reach, Purpose::Work)?;
    let stop = CancellationToken::new();
    // Its holder, for servers that each token signs in to for itself.
    let holder = app.gateway.tokens().caller(home.agent_token()?.expose());
    let caller = holder.unwrap_or_else(|| Arc::new(Caller::agent(AGENT_TOKEN)));
    let what = if args.profile.is_some() { "profile" } else { "server" };
    let named = name(&args);
    let view = View::named(args.server, args.all, args.profile);
    if !view.exists(&app.gateway, &caller) {
        return Err(Failure::input(format!("NOT_FOUND: there is no such {what}{named}")));
    }
    let service = view.open(&app.gateway, &caller);
    let events = Events::new(app.gateway.clone());
    let hear = CancellationToken::new();
    let taking = take_spool(home, &app.gateway, &events, &hear);
    let serving = stdio::serve(service, tokio::io::stdin(), tokio::io::stdout(), stop.clone());
    told.or_done(serving, stop).await;
    hear.cancel();
    let _ = taking.await;
    events.record_dropped_events().await;
    app.gateway.drain().await;
    app.telemetry.end().await;
    Ok(())
}

/// Returns the name of the server or profile, for a message.
fn name(args: &Mcp) -> String {
    let name = args.server.as_ref().or(args.profile.as_ref());
    name.map(|name| format!(": '{name}'")).unwrap_or_default()
}
