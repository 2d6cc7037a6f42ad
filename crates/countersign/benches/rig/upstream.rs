//! The upstream of a measurement, in its own process: an HTTP server whose path `/N` is an MCP
//! server with its share of the tools, and `/echo` and `/plain` ones that echo. Its responses are
//! prepared, so that it costs as little as an upstream can.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request as HttpRequest;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::handshake::{self, ServerHello};
use mcp::http::server::{SessionOwner, Sessions};
use mcp::message::{Notification, Raw, Request, raw};
use mcp::peer::{Peer, RequestContext, Service};
use mcp::{ErrorObject, server};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::catalog::Set;

pub(crate) struct Upstream {
    list: Raw,
}

impl Upstream {
    fn new(tools: &[Raw]) -> Upstream {
        let tools: Vec<&str> = tools.iter().map(|tool| tool.get()).collect();
        Upstream { list: raw(format!(r#"{{"tools":[{}]}}"#, tools.join(","))) }
    }

    /// Returns two tools that do the same under different annotations.
    pub(crate) fn echo() -> Upstream {
        let tool = |name: &str, reads: bool| {
            raw(format!(
                r#"{{"name":"{name}","description":"Says what it is told.","inputSchema":
                {{"type":"object","properties":{{"text":{{"type":"string"}}}},"required":["text"]}},
                "annotations":{{"readOnlyHint":{reads}}}}}"#
            ))
        };
        Upstream::new(&[tool("echo_read", true), tool("echo_write", false)])
    }

    /// Returns one tool without annotations, so that its calls count as changing something.
    fn plain() -> Upstream {
        Upstream::new(&[raw(
            r#"{"name":"echo","description":"Says what it is told.","inputSchema":
            {"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}"#
                .to_owned(),
        )])
    }
}

impl Service for Upstream {
    fn request(
        &self,
        request: Request,
        incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        async move {
            match request.method.as_str() {
                "initialize" => {
                    let hello = ServerHello::new("rig", "1", raw(r#"{"tools":{}}"#.to_owned()));
                    Ok(handshake::accept(&request, &incoming.peer, &hello)?.1)
                }
                "tools/list" => Ok(self.list.clone()),
                "tools/call" => {
                    Ok(server::text_result(request.params.as_ref().map_or("", |p| p.get())))
                }
                other => Err(ErrorObject::method_not_found(other)),
            }
        }
        .boxed()
    }

    fn notification(&self, _notification: Notification, _peer: Peer) {}
}

/// Serves until stdin ends, which it does with the process that started this one.
pub(crate) async fn serve(set: Set, tools: usize, servers: usize) {
    let tools = set.tools(tools);
    let mut services: HashMap<String, Arc<Upstream>> = tools
        .chunks(tools.len().div_ceil(servers))
        .enumerate()
        .map(|(number, share)| (format!("/{number}"), Arc::new(Upstream::new(share))))
        .collect();
    services.insert("/echo".to_owned(), Arc::new(Upstream::echo()));
    services.insert("/plain".to_owned(), Arc::new(Upstream::plain()));
    let (services, sessions) = (Arc::new(services), Sessions::new());
    let router = Router::new().fallback(move |request: HttpRequest| {
        let (services, sessions) = (services.clone(), sessions.clone());
        async move {
            let path = request.uri().path().to_owned();
            match services.get(&path) {
                Some(service) => {
                    let owner = SessionOwner { holder: String::new(), view: path };
                    sessions.handle(request, &owner, || service.clone()).await
                }
                None => StatusCode::NOT_FOUND.into_response(),
            }
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    announce(&listener);
    tokio::select! {
        _ = axum::serve(listener, router) => {}
        () = parent_gone() => {}
    }
}

#[allow(clippy::print_stdout, reason = "the parent reads the address")]
pub(crate) fn announce(listener: &TcpListener) {
    println!("{}", listener.local_addr().expect("it is bound"));
}

pub(crate) async fn parent_gone() {
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
}
