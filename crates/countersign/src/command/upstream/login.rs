//! `countersign upstream login` and `logout`: the browser returns to a listener of this command, which
//! passes the response to the gate.

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use admin::server::login::told;
use admin::view::{LoginRequest, LoginResponse, LogoutRequest, ServerEntry, ServerLogin};
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use gateway::plan::Reach;
use mcp::authorization::{CallbackParameters, redirect_port};
use mcp::task;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use workflow::EXIT_CANCELLED;

use super::PATH;
use super::signpost::Signpost;
use crate::cli::Login;
use crate::control::{Control, encode};
use crate::exit::Failure;
use crate::output::{self, note, plain};
use crate::site::Site;
use crate::stop_signal::StopSignal;

/// The pause between two checks whether somebody has entered the code.
const LOOK: Duration = Duration::from_secs(1);

/// The time that a person has.
const PATIENCE: Duration = Duration::from_mins(10);

/// A response that a browser brought, or that was pasted.
struct Brought {
    query: String,
    /// Takes the page to show.
    reply: Option<oneshot::Sender<Response>>,
}

pub(super) async fn login(site: &Site, args: Login) -> Result<(), Failure> {
    let name = args.name.clone();
    let home = site.home()?;
    let work = async |control: &Control| {
        if args.device {
            with_code(control, &args).await
        } else {
            in_browser(control, &args, home.path()).await
        }
    };
    let server = Control::with(site, Reach::Only(name.clone()), work).await?;
    let holder = holder(args.token.as_deref());
    output::line(&format!("signed in to '{name}'{holder}: {}", server.state))?;
    match server.error {
        Some(error) => Err(Failure::call(format!("it cannot be used: {}", plain(&error)))),
        None => Ok(()),
    }
}

pub(super) async fn logout(
    site: &Site,
    name: String,
    token: Option<String>,
) -> Result<(), Failure> {
    let path = format!("{PATH}/{}/logout", encode(&name));
    let holder = holder(token.as_deref());
    let request = LogoutRequest { token };
    let leave = async |control: &Control| control.send_json(&path, &request).await;
    let server = Control::with(site, Reach::Only(name.clone()), leave).await?;
    let server: ServerEntry = output::read(&server)?;
    output::line(&format!("signed out of '{name}'{holder}: {}", server.state))
}

/// Names the agent token, if the sign-in is that of one.
fn holder(token: Option<&str>) -> String {
    token.map(|token| format!(" for token '{token}'")).unwrap_or_default()
}

/// Returns the path that begins a sign-in, and the one that shows how far it is.
fn paths(args: &Login) -> (String, String) {
    let path = format!("{PATH}/{}/login", encode(&args.name));
    let query = args.token.as_ref().map(|token| format!("?token={}", encode(token)));
    let state = format!("{path}{}", query.unwrap_or_default());
    (path, state)
}

async fn in_browser(control: &Control, args: &Login, home: &Path) -> Result<ServerEntry, Failure> {
    let mut stop = StopSignal::new()?;
    let (path, state_path) = paths(args);
    let known: ServerLogin = output::read(&control.get(&state_path).await?)?;
    let (listener, port) = listen(args.port, known.redirect_uri.as_deref()).await?;
    let redirect_uri = Some(format!("http://127.0.0.1:{port}/callback"));
    let request = LoginRequest { redirect_uri, device: None, token: args.token.clone() };
    let begun: ServerLogin = output::read(&control.send_json(&path, &request).await?)?;
    let address = begun.address.unwrap_or_default();
    let (bring, mut brought) = mpsc::channel(16);
    let ended = CancellationToken::new();
    let router = Router::new().route("/callback", get(take)).with_state(bring.clone());
    let serving = axum::serve(listener, router);
    let serving =
        task::spawn(serving.with_graceful_shutdown(ended.clone().cancelled_owned()).into_future());
    note(&format!("Open this address in a browser to sign in:\n{address}"));
    let mut opened = None;
    if args.no_browser {
        note("If the browser runs on another machine, paste the address that it ends at here:");
        read_pasted(bring);
    } else {
        opened = Signpost::open(home, &address);
        if opened.is_none() {
            note("No browser could be started.");
        }
    }
    let state = state_of(&address);
    let finishing = finish(control, &mut brought, state);
    let finished = tokio::select! {
        finished = tokio::time::timeout(PATIENCE, finishing) => finished
            .unwrap_or_else(|_| Err(Failure::call("nobody signed in within ten minutes"))),
        () = stop.received() => Err(Failure::with_status(EXIT_CANCELLED, "cancelled")),
    };
    drop(opened);
    ended.cancel();
    let _ = tokio::time::timeout(LOOK, serving).await;
    finished
}

/// Passes the response to the gate. One that belongs to another sign-in, or to none, is ignored.
async fn finish(
    control: &Control,
    brought: &mut mpsc::Receiver<Brought>,
    state: Option<String>,
) -> Result<ServerEntry, Failure> {
    while let Some(Brought { query, reply }) = brought.recv().await {
        let answer = |page: Response| {
            // A browser that has closed the connection wants no answer.
            let _ = reply.map(|reply| reply.send(page).is_ok());
        };
        let is_ours = CallbackParameters::parse(&query).is_ok_and(|it| it.state == state);
        if !is_ours {
            note("A response to another sign-in was ignored.");
            answer(told(Err("this is not the response to the sign-in that is under way")));
            continue;
        }
        let response = LoginResponse { response: query };
        return match control.send_json("/api/v1/logins", &response).await {
            Ok(server) => {
                let server: ServerEntry = output::read(&server)?;
                answer(told(Ok(&server.name)));
                Ok(server)
            }
            Err(failure) => {
                answer(told(Err("the terminal says why")));
                Err(failure)
            }
        };
    }
    Err(Failure::system("the listener for the browser has ended"))
}

async fn take(State(bring): State<mpsc::Sender<Brought>>, RawQuery(query): RawQuery) -> Response {
    let (reply, page) = oneshot::channel();
    let brought = Brought { query: query.unwrap_or_default(), reply: Some(reply) };
    let _ = bring.send(brought).await;
    page.await.unwrap_or_else(|_| told(Err("the sign-in has ended")))
}

/// Listens on the given port, or on that of the last sign-in, for which the gate is registered, or on
/// any free one.
async fn listen(asked: Option<u16>, known: Option<&str>) -> Result<(TcpListener, u16), Failure> {
    let known = known.and_then(redirect_port).filter(|_| asked.is_none());
    let failed = |port: u16, error: std::io::Error| {
        Failure::input(format!("cannot listen on port {port} for the browser: {error}"))
    };
    let bound = match known {
        Some(port) => match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Err(error) if error.kind() == ErrorKind::AddrInUse => None,
            other => Some(other.map_err(|error| failed(port, error))?),
        },
        None => None,
    };
    let port = asked.unwrap_or(0);
    let listener = match bound {
        Some(listener) => listener,
        None => TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(|error| failed(port, error))?,
    };
    let port = listener.local_addr().map_err(|error| failed(port, error))?.port();
    Ok((listener, port))
}

/// Reads lines from stdin on a separate thread, which ends with the process.
fn read_pasted(bring: mpsc::Sender<Brought>) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let query = line.split_once('?').map_or(line, |(_, query)| query);
            let query = query.split('#').next().unwrap_or_default().to_owned();
            if bring.blocking_send(Brought { query, reply: None }).is_err() {
                return;
            }
        }
    });
}

fn state_of(address: &str) -> Option<String> {
    let query = address.split_once('?').map(|(_, query)| query)?;
    CallbackParameters::parse(query).ok()?.state
}

/// Signs in with a code that a person enters on any machine.
async fn with_code(control: &Control, args: &Login) -> Result<ServerEntry, Failure> {
    let (path, state_path) = paths(args);
    let request =
        LoginRequest { device: Some(true), redirect_uri: None, token: args.token.clone() };
    let begun: ServerLogin = output::read(&control.send_json(&path, &request).await?)?;
    let (address, code) = (begun.address.unwrap_or_default(), begun.user_code.unwrap_or_default());
    note(&format!(
        "Open this address on any machine, and enter the code {}:\n{address}",
        plain(&code)
    ));
    loop {
        tokio::time::sleep(LOOK).await;
        let now: ServerLogin = output::read(&control.get(&state_path).await?)?;
        match now.state.as_str() {
            "pending" => {}
            "done" => {
                let server = control.get(&format!("{PATH}/{}", encode(&args.name))).await?;
                return output::read(&server);
            }
            _ => {
                let reason = now.error.unwrap_or_else(|| "the sign-in has ended".to_owned());
                return Err(Failure::call(format!("SIGN_IN_FAILED: {}", plain(&reason))));
            }
        }
    }
}
