//! A scripted MCP server. Its tools are given as definitions. A member `x-do` in one defines the
//! effect of a call and, like every unknown member, must pass through the gate unchanged. A tool
//! with `x-needs` is listed only for clients that declared that capability, and one with `x-log` adds
//! a line to that file for each call. Prompts, templates and
//! resources are given as definitions too; every request that is not about lists or tools is answered
//! with the params that arrived.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::handshake::{self, ServerHello};
use mcp::message::{Notification, Raw, Request, raw, to_raw};
use mcp::object::ObjectMembers;
use mcp::peer::{Ask, Peer, RequestContext, Service};
use mcp::{ErrorObject, lines};
use serde_json::{Value, json};

use crate::listing::Listing;

/// The server's tools, which a call may change.
#[derive(Clone)]
pub struct Script {
    tools: Arc<Mutex<Vec<Value>>>,
    /// The instructions that the server gives to models.
    instructions: Arc<Mutex<Option<String>>>,
    /// The file from which the script is read again with every request.
    file: Option<PathBuf>,
    listing: Arc<Listing>,
    at_work: Arc<AtomicUsize>,
    /// The capabilities that the client declared.
    capabilities: Arc<Mutex<Value>>,
    /// The whole script, for what it offers besides tools.
    offer: Arc<Mutex<Value>>,
    /// The process or connection that serves it.
    id: u32,
}

impl Script {
    /// Reads `script`: an array of tool definitions, or an object with `tools` and optionally
    /// `list`, which replaces the plain listing, `instructions`, the lists `prompts`, `templates` and
    /// `resources`, two to a page, further `capabilities`, and `heard`, the file that gets a line for
    /// every other message of the client.
    pub fn new(script: Value) -> Script {
        let listing = Arc::new(Listing::read(&script["list"]));
        let read = Script {
            tools: Arc::default(),
            instructions: Arc::default(),
            file: None,
            listing,
            at_work: Arc::default(),
            capabilities: Arc::default(),
            offer: Arc::default(),
            id: std::process::id(),
        };
        read.replace(&script);
        read
    }

    /// Uses a script in a file that may be replaced while the server runs. The server sends no
    /// notification of that, unless a call with `x-do` `tell` is made.
    pub fn live(file: &Path) -> Script {
        Script { file: Some(file.to_owned()), ..Script::new(read(file)) }
    }

    /// Names this id in answers in place of the process, for a server that shares one with others.
    #[must_use]
    pub fn identified(self, id: u32) -> Script {
        Script { id, ..self }
    }

    /// Replaces the script, without a notification.
    pub fn replace(&self, script: &Value) {
        let tools = script.as_array().or_else(|| script["tools"].as_array());
        *self.tools.lock().unwrap() = tools.cloned().unwrap_or_default();
        *self.instructions.lock().unwrap() = script["instructions"].as_str().map(str::to_owned);
        *self.offer.lock().unwrap() = script.clone();
    }

    /// Returns the capabilities for what the script offers.
    fn declared(&self) -> Raw {
        let offer = self.offer.lock().unwrap();
        let mut declared = json!({"tools": {"listChanged": true}});
        if offer.get("prompts").is_some() {
            declared["prompts"] = json!({"x-number": 1});
        }
        if offer.get("templates").is_some() || offer.get("resources").is_some() {
            declared["resources"] = json!({"subscribe": true});
        }
        for (name, capability) in offer["capabilities"].as_object().into_iter().flatten() {
            declared[name] = capability.clone();
        }
        to_raw(&declared)
    }

    /// Returns a page of a list besides the tools.
    fn page(
        &self,
        request: &Request,
        from: &str,
        member: &'static str,
    ) -> Result<Raw, ErrorObject> {
        let offer = self.offer.lock().unwrap();
        let Some(items) = offer[from].as_array() else {
            return Err(ErrorObject::method_not_found(&request.method));
        };
        let params: Value = request.params()?;
        if params["cursor"] == "die" {
            std::process::abort();
        }
        let start = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().expect("ours"));
        let end = items.len().min(start + 2);
        let mut page = ObjectMembers::default();
        let definitions: Vec<String> = items[start..end]
            .iter()
            .map(|item| item["x-text"].as_str().map_or_else(|| item.to_string(), str::to_owned))
            .collect();
        page.set(member, format!("[{}]", definitions.join(",")));
        if end < items.len() {
            page.set("nextCursor", format!("\"{end}\""));
        }
        page.set("x-page", "1E0");
        Ok(page.write())
    }

    /// Writes a message of the client to the file `heard`.
    fn hear(&self, method: &str, params: Option<&Raw>) {
        let offer = self.offer.lock().unwrap();
        if let Some(path) = offer["heard"].as_str() {
            add_line(path, &format!("{method} {}", params.map_or("-", |params| params.get())));
        }
    }

    pub fn set_tools(&self, tools: Value) {
        *self.tools.lock().unwrap() = tools.as_array().cloned().unwrap_or_default();
    }

    /// Returns the tools that this client gets.
    fn tools(&self) -> Vec<Value> {
        let capabilities = self.capabilities.lock().unwrap();
        let fits = |tool: &&Value| match tool["x-needs"].as_str() {
            Some(needed) => capabilities.get(needed).is_some(),
            None => true,
        };
        self.tools.lock().unwrap().iter().filter(fits).cloned().collect()
    }

    /// Serves this process's stdin and stdout until they close.
    pub async fn serve_stdio(self) {
        let service = Arc::new(self);
        lines::serve(tokio::io::stdin(), tokio::io::stdout(), service, |_| ()).await;
    }

    async fn answer(&self, request: Request, incoming: RequestContext) -> Result<Raw, ErrorObject> {
        if let Some(file) = &self.file {
            self.replace(&read(file));
        }
        match request.method.as_str() {
            "initialize" => {
                let mut hello = ServerHello::new("scripted", "1", self.declared());
                hello.instructions.clone_from(&self.instructions.lock().unwrap());
                let (client, answer) = handshake::accept(&request, &incoming.peer, &hello)?;
                *self.capabilities.lock().unwrap() =
                    serde_json::from_str(client.capabilities.get())
                        .expect("the capabilities are JSON");
                Ok(answer)
            }
            "ping" => Ok(raw("{}".to_owned())),
            "tools/list" => {
                let tools = json!(self.tools());
                self.listing.answer(&request, tools).await
            }
            "tools/call" => self.call(&request, &incoming).await,
            "prompts/list" => self.page(&request, "prompts", "prompts"),
            "resources/list" => self.page(&request, "resources", "resources"),
            "resources/templates/list" => self.page(&request, "templates", "resourceTemplates"),
            other => self.other(other, &request),
        }
    }

    /// Answers a request with its params, if the script offers what it is about.
    fn other(&self, method: &str, request: &Request) -> Result<Raw, ErrorObject> {
        self.hear(method, request.params.as_ref());
        let needed = match method.split_once('/') {
            Some(("resources", _)) => "resources",
            Some(("prompts", _)) => "prompts",
            Some(("completion", _)) => "completions",
            Some(("logging", _)) => "logging",
            Some(("custom", _)) => "tools",
            _ => return Err(ErrorObject::method_not_found(method)),
        };
        let declared: Value = serde_json::from_str(self.declared().get()).expect("ours");
        if declared.get(needed).is_none() {
            return Err(ErrorObject::method_not_found(method));
        }
        let mut answer = ObjectMembers::default();
        answer.set("echo", request.params.as_ref().map_or("null", |params| params.get()));
        answer.set("x-number", "1E2");
        answer.set("_meta", r#"{"x-meta":1.0}"#);
        Ok(answer.write())
    }

    /// Writes the arguments as a line to the file `log`, works for `ms` and until the file `until`
    /// exists, and reports the number of concurrent calls when this one began.
    async fn work(&self, what: &Value, request: &Request) -> Raw {
        let together = self.at_work.fetch_add(1, Ordering::SeqCst) + 1;
        let _at_work = RunningCall(&self.at_work);
        if let Some(path) = what["log"].as_str() {
            let params: Value = request.params().expect("tools/call has params");
            add_line(path, &params["arguments"].to_string());
        }
        tokio::time::sleep(Duration::from_millis(what["ms"].as_u64().unwrap_or(0))).await;
        while what["until"].as_str().is_some_and(|path| !Path::new(path).exists()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let done = json!({"together": together, "pid": self.id});
        to_raw(&json!({"content": [{"type": "text", "text": done.to_string()}]}))
    }

    async fn call(&self, request: &Request, incoming: &RequestContext) -> Result<Raw, ErrorObject> {
        let params = request.params.as_ref().expect("tools/call has params");
        let name: Value = request.params::<Value>()?["name"].clone();
        let tools = self.tools();
        let known = tools.iter().find(|tool| tool["name"] == name);
        let tool = known
            .or(self.listing.makes_tools().then_some(&Value::Null))
            .ok_or_else(|| ErrorObject::invalid_params(format!("unknown tool {name}")))?;
        if let Some(path) = tool["x-log"].as_str() {
            add_line(path, &name.to_string());
        }
        let what = &tool["x-do"];
        match what.as_str().or_else(|| what.as_object()?.keys().next().map(String::as_str)) {
            None | Some("echo") => Ok(echo(params)),
            Some("progress") => {
                progress(what["progress"].as_u64().unwrap_or(1), params, incoming).await
            }
            Some("hang") => {
                incoming.cancel.cancelled().await;
                if let Some(path) = what["hang"].as_str() {
                    std::fs::write(path, "cancelled").expect("the marker can be written");
                }
                Err(ErrorObject::new(-32800, "cancelled"))
            }
            // A result, given as text.
            Some("return") => Ok(raw(what["return"].as_str().unwrap_or("{}").to_owned())),
            Some("text") => Ok(long_text(what["text"].as_u64().unwrap_or(0))),
            Some("error") => {
                Err(ErrorObject::new(-32042, "no luck").with_data(&json!({"why": "scripted"})))
            }
            // The argument `message` as an error, or on stderr.
            Some("fail") => Err(ErrorObject::new(-32043, message(request)?)),
            Some("log") => log(request),
            Some("mirror") => mirror(request),
            Some("reply") => Ok(to_raw(&what["reply"])),
            Some("refuse") => Err(error(&what["refuse"])),
            Some("is_error") => Ok(to_raw(
                &json!({"content": [{"type": "text", "text": "went wrong"}], "isError": true}),
            )),
            Some("become") => {
                self.set_tools(what["become"].clone());
                tell(incoming).await?;
                Ok(echo(params))
            }
            Some("tell") => {
                tell(incoming).await?;
                Ok(echo(params))
            }
            Some("work") => Ok(self.work(&what["work"], request).await),
            Some("storm") => self.storm(what, incoming).await,
            Some("say") => say(what, incoming).await,
            Some("close") => close(what["close"].as_str().unwrap_or_default(), incoming).await,
            Some("ask") => ask(what, incoming).await,
            Some("ask_later") => {
                tokio::spawn(ask_later(what["ask_later"].clone(), incoming.peer.clone()));
                Ok(echo(params))
            }
            Some("notify") => {
                for message in what["notify"].as_array().into_iter().flatten() {
                    notify(message, &incoming.peer).await?;
                }
                Ok(echo(params))
            }
            Some("die") => std::process::abort(),
            Some("hang_up") => Err(hang_up(incoming)),
            Some(other) => Err(ErrorObject::internal(format!("no such x-do: {other}"))),
        }
    }
}

impl Script {
    /// Changes its tools this many times, `every_ms` or without a pause, with a notification of
    /// each change; the last list stays.
    async fn storm(&self, what: &Value, incoming: &RequestContext) -> Result<Raw, ErrorObject> {
        let pause = what["every_ms"].as_u64().map(Duration::from_millis);
        for n in 1..=what["storm"].as_u64().unwrap_or(1) {
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
            self.set_tools(json!([{"name": format!("v{n}")}]));
            tell(incoming).await?;
        }
        Ok(raw(r#"{"content":[]}"#.to_owned()))
    }
}

fn hang_up(incoming: &RequestContext) -> ErrorObject {
    incoming.peer.close("the server hangs up");
    ErrorObject::internal("it hung up")
}

fn add_line(path: &str, line: &str) {
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let log = log.as_mut().expect("the log can be opened");
    // One write, so that the lines of several processes do not mix.
    log.write_all(format!("{line}\n").as_bytes()).expect("the log can be written");
}

fn long_text(length: u64) -> Raw {
    let text: String = (0..length).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
    let content = json!([{"type": "text", "text": text}]);
    to_raw(&json!({"content": content, "structuredContent": {"length": length}}))
}

/// Returns an error with a code, a message and data.
fn error(error: &Value) -> ErrorObject {
    let words = error["message"].as_str().unwrap_or_default();
    let code = error["code"].as_i64().expect("an error has a code");
    ErrorObject::new(code, words).with_data(&error["data"])
}

fn log(request: &Request) -> Result<Raw, ErrorObject> {
    let line = message(request)?;
    writeln!(std::io::stderr(), "{line}").expect("stderr is open");
    Ok(raw(r#"{"content":[]}"#.to_owned()))
}

/// Answers with texts that the arguments have in pieces, so that only the answer has them whole:
/// `text` and `value` in the result, `name` as the name of a member, `stderr`, or `error` instead.
fn mirror(request: &Request) -> Result<Raw, ErrorObject> {
    let params = request.params::<Value>()?;
    let arguments = &params["arguments"];
    let joined = |name: &str| -> Option<String> {
        Some(arguments[name].as_array()?.iter().filter_map(Value::as_str).collect())
    };
    if let Some(error) = joined("error") {
        return Err(ErrorObject::new(-32043, error));
    }
    if let Some(line) = joined("stderr") {
        writeln!(std::io::stderr(), "{line}").expect("stderr is open");
    }
    let text = joined("text").unwrap_or_default();
    let mut structured = json!({"value": joined("value")});
    structured[joined("name").unwrap_or_default()] = true.into();
    Ok(to_raw(&json!({"content": [{"type": "text", "text": text}],
        "structuredContent": structured, "isError": arguments["is_error"] == true})))
}

fn message(request: &Request) -> Result<String, ErrorObject> {
    let params = request.params::<Value>()?;
    Ok(params["arguments"]["message"].as_str().unwrap_or_default().to_owned())
}

fn read(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).expect("the script can be read");
    serde_json::from_str(&text).expect("the script is JSON")
}

async fn tell(incoming: &RequestContext) -> Result<(), ErrorObject> {
    let told = incoming.peer.notify("notifications/tools/list_changed", None).await;
    told.map_err(|error| ErrorObject::internal(error.to_string()))
}

/// Writes a line, which may be given in parts, to stdout `times` times, bypassing the protocol,
/// with `$id` for the id of the call. With `hang`, no response follows.
async fn say(what: &Value, incoming: &RequestContext) -> Result<Raw, ErrorObject> {
    let line: String = match what["say"].as_array() {
        Some(parts) => parts.iter().filter_map(Value::as_str).collect(),
        None => what["say"].as_str().unwrap_or_default().to_owned(),
    };
    let line = format!("{}\n", line.replace("$id", &incoming.id.to_string()));
    let mut stdout = std::io::stdout();
    for _ in 0..what["times"].as_u64().unwrap_or(1) {
        stdout.write_all(line.as_bytes()).expect("stdout is open");
    }
    stdout.flush().expect("stdout is open");
    if what["hang"] == true {
        incoming.cancel.cancelled().await;
    }
    Ok(raw(r#"{"content":[{"type":"text","text":"said"}]}"#.to_owned()))
}

/// Writes `half` a line, closes stdout and keeps running.
async fn close(half: &str, incoming: &RequestContext) -> Result<Raw, ErrorObject> {
    let mut stdout = std::io::stdout();
    stdout.write_all(half.as_bytes()).expect("stdout is open");
    stdout.flush().expect("stdout is open");
    let nowhere = std::fs::File::create("/dev/null").expect("/dev/null can be opened");
    rustix::stdio::dup2_stdout(nowhere).expect("stdout can be replaced");
    incoming.cancel.cancelled().await;
    Err(ErrorObject::new(-32800, "cancelled"))
}

/// Adds one to the count of running calls until it is dropped.
struct RunningCall<'a>(&'a AtomicUsize);

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Sends a notification, whose params may be given as text.
async fn notify(message: &Value, peer: &Peer) -> Result<(), ErrorObject> {
    let params = match &message["params"] {
        Value::Null => None,
        Value::String(text) => Some(raw(text.clone())),
        params => Some(to_raw(params)),
    };
    let method = message["method"].as_str().unwrap_or_default();
    let told = peer.notify(method, params).await;
    told.map_err(|error| ErrorObject::internal(error.to_string()))
}

/// Returns the received params as text, so that a test can compare bytes.
fn echo(params: &Raw) -> Raw {
    let mut result = ObjectMembers::default();
    let block = json!([{"type": "text", "text": params.get(), "x-block": 1}]);
    result.set("content", block.to_string());
    result.set("x-number", "1E2");
    result.set("x-big", "12345678901234567890123");
    result.set("_meta", r#"{"x-meta":{"kept":1.0}}"#);
    result.write()
}

async fn progress(count: u64, params: &Raw, incoming: &RequestContext) -> Result<Raw, ErrorObject> {
    let params_value: Value = serde_json::from_str(params.get()).expect("params are JSON");
    let token = &params_value["_meta"]["progressToken"];
    for step in 1..=count {
        let params =
            json!({"progressToken": token, "progress": step, "total": count, "x-step": step});
        let sent = incoming.peer.notify("notifications/progress", Some(to_raw(&params))).await;
        sent.map_err(|error| ErrorObject::internal(error.to_string()))?;
    }
    Ok(echo(params))
}

/// Requests `ask` with the params `with` from the client, and returns its answer.
async fn ask(what: &Value, incoming: &RequestContext) -> Result<Raw, ErrorObject> {
    let method = what["ask"].as_str().unwrap_or("roots/list");
    let params = what.get("with").map(to_raw);
    let answer = incoming.peer.request(Ask::new(method, params, Duration::from_secs(10))).await;
    match answer {
        Ok(answer) => Ok(to_raw(&json!({"content": [{"type": "text", "text": answer.get()}]}))),
        Err(error) => Ok(to_raw(
            &json!({"content": [{"type": "text", "text": error.to_string()}], "isError": true}),
        )),
    }
}

/// Requests `method` once the file `after` exists, and writes the result to the file `write`.
async fn ask_later(what: Value, peer: Peer) {
    while what["after"].as_str().is_some_and(|path| !Path::new(path).exists()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let method = what["method"].as_str().unwrap_or("roots/list");
    let words = match peer.request(Ask::new(method, None, Duration::from_secs(10))).await {
        Ok(answer) => answer.get().to_owned(),
        Err(error) => error.to_string(),
    };
    std::fs::write(what["write"].as_str().unwrap_or_default(), words)
        .expect("the file can be written");
}

impl Service for Script {
    fn request(
        &self,
        request: Request,
        incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        self.answer(request, incoming).boxed()
    }

    fn notification(&self, notification: Notification, _peer: Peer) {
        self.hear(&notification.method, notification.params.as_ref());
    }
}
