//! Attacks from the network: on the port, on what crosses the wire, and with wrong secrets.

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::{Certificate, Client, Method, StatusCode, header};
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::client::PATIENCE;
use testkit::gate::{Gate, client_builder, http_client};
use testkit::otlp::AUTHORITY;
use testkit::program::{first_lines, program, run, stderr, stdout};
use testkit::wait::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const CERTIFICATE: &str = include_str!("../../../../testkit/testdata/tls/server.pem");
const KEY: &str = include_str!("../../../../testkit/testdata/tls/server-key.pem");
const RENEWED: &str = include_str!("../../../../testkit/testdata/tls/renewed.pem");
const RENEWED_KEY: &str = include_str!("../../../../testkit/testdata/tls/renewed-key.pem");

/// The delay of an answer to a wrong secret, and the number that are answered at once.
const DELAY: Duration = Duration::from_millis(250);
const FREE: usize = 9;

#[tokio::test]
async fn beyond_loopback_it_listens_only_with_tls_or_behind_a_proxy() {
    let dir = tempfile::tempdir().unwrap();
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let refused = run(dir.path(), ["serve", "--listen", listen]).await;
        assert_eq!(refused.status.code(), Some(2));
        let words = stderr(&refused);
        for hint in [listen, "'tls'", "'behind_proxy': true", "127.0.0.1"] {
            assert!(words.contains(hint), "{hint} is not in: {words}");
        }
    }
    let config = dir.path().join("config.json");
    std::fs::write(&config, r#"{"behind_proxy": true}"#).unwrap();
    let mut command = program(dir.path());
    command.args(["serve", "--listen", "0.0.0.0:0", "-o", "json", "--config"]).arg(&config);
    let mut serving = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let ready = first_lines(&mut serving, 1).await;
    assert!(ready.contains("\"listen\":\"0.0.0.0:"), "{ready}");
}

fn trusting(certificate: &str) -> Client {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let trusted = Certificate::from_pem(certificate.as_bytes()).unwrap();
    client_builder().tls_certs_only([trusted]).build().unwrap()
}

fn write_certificate(dir: &Path, certificate: &str, key: &str) {
    std::fs::write(dir.join("cert.pem"), certificate).unwrap();
    std::fs::write(dir.join("key.pem"), key).unwrap();
}

async fn tls_gate() -> Gate {
    tls_gate_with(json!({})).await
}

async fn tls_gate_with(mut config: Value) -> Gate {
    let dir = tempfile::tempdir().unwrap();
    write_certificate(dir.path(), CERTIFICATE, KEY);
    config["tls"] = json!({"cert": dir.path().join("cert.pem"), "key": dir.path().join("key.pem")});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    Gate::open(dir).await
}

#[tokio::test]
async fn with_tls_nothing_is_served_in_plain_text_and_a_renewed_certificate_is_taken_up() {
    let gate = tls_gate().await;
    let url = format!("https://{}/healthz", gate.address);
    assert_eq!(trusting(AUTHORITY).get(&url).send().await.unwrap().status(), 200);
    let plain = http_client().get(format!("http://{}/healthz", gate.address)).send().await;
    assert!(plain.is_err(), "{plain:?}");
    write_certificate(gate.dir.path(), RENEWED, "no key");
    gate.log_line("the old certificate stays").await;
    assert_eq!(trusting(AUTHORITY).get(&url).send().await.unwrap().status(), 200);
    write_certificate(gate.dir.path(), RENEWED, RENEWED_KEY);
    let renewed = trusting(RENEWED);
    eventually(|| async { renewed.get(&url).send().await.ok() }).await;
}

#[tokio::test]
async fn unusable_certificates_end_the_start_with_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.json");
    for (cert, key, words) in [
        ("", KEY, "cert.pem': there is no certificate in it"),
        (CERTIFICATE, "", "key.pem': "),
        (CERTIFICATE, RENEWED_KEY, "cert.pem': "),
    ] {
        write_certificate(dir.path(), cert, key);
        std::fs::write(&config, r#"{"tls": {"cert": "cert.pem", "key": "key.pem"}}"#).unwrap();
        let refused = run(dir.path(), ["serve", "--config", "config.json"]).await;
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(words), "{}", stderr(&refused));
    }
}

/// Returns the code of a link to the page.
async fn page_code(gate: &Gate) -> String {
    let printed = stdout(&gate.cli(&["page"]).await);
    let (_, code) = printed.trim().rsplit_once("#code=").expect("a link with a code");
    code.split_whitespace().next().unwrap().to_owned()
}

async fn sign_in(client: &Client, origin: &str, code: &str) -> reqwest::Response {
    let request = client.post(format!("{origin}/api/v1/page/session")).header("origin", origin);
    let body = json!({"code": code}).to_string();
    request.header("content-type", "application/json").body(body).send().await.unwrap()
}

/// Returns the records of this kind of event, with their details.
async fn records(gate: &Gate, event: &str) -> Vec<Value> {
    let (_, found) = gate.rest(Method::GET, "/api/v1/activity?type=system", None).await;
    let mut records = Vec::new();
    for record in found["activities"].as_array().unwrap() {
        if record["metadata"]["tool_variant"] == event {
            let path = format!("/api/v1/activity/{}", record["id"].as_str().unwrap());
            records.push(gate.rest(Method::GET, &path, None).await.1);
        }
    }
    records
}

#[tokio::test]
async fn the_cookie_of_a_page_over_tls_is_secure() {
    let gate = tls_gate().await;
    let origin = format!("https://{}", gate.address);
    let entered = sign_in(&trusting(AUTHORITY), &origin, &page_code(&gate).await).await;
    assert_eq!(entered.status(), StatusCode::CREATED);
    let cookie = entered.headers()[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.ends_with("; Secure"), "{cookie}");
}

#[tokio::test]
async fn over_tls_the_page_is_served_at_the_configured_name() {
    let (host, origin) = ("gate.example", "https://gate.example");
    let gate = tls_gate_with(json!({"allowed_hosts": [host], "allowed_origins": [origin]})).await;
    let printed = stdout(&gate.cli(&["page"]).await);
    assert!(printed.starts_with(&format!("{origin}/#code=")), "{printed}");
    let code = printed.trim().rsplit_once('=').unwrap().1;
    let client = trusting(AUTHORITY);
    let url = |path: &str| format!("https://{}{path}", gate.address);
    let page = client.get(url("/")).header("host", host).send().await.unwrap();
    assert!(page.headers().get("clear-site-data").is_none());
    assert!(page.text().await.unwrap().contains("<!doctype html>"));
    let enter = async |origin: &str| {
        let request = client.post(url("/api/v1/page/session")).header("host", host);
        let body = json!({"code": code}).to_string();
        let request = request.header("origin", origin).header("content-type", "application/json");
        request.body(body).send().await.unwrap()
    };
    assert_eq!(enter(&url("")).await.status(), 403, "an origin that is not allowed");
    let entered = enter(origin).await;
    assert_eq!(entered.status(), StatusCode::CREATED);
    let cookie = entered.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    let session: Value = serde_json::from_str(&entered.text().await.unwrap()).unwrap();
    let status = client.get(url("/api/v1/status")).header("host", host);
    let status = status.header("cookie", cookie.split(';').next().unwrap());
    let status = status.header("x-countersign-session", session["token"].as_str().unwrap());
    assert_eq!(status.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_foreign_host_is_told_of_the_setting() {
    let gate = Gate::scripted(json!([])).await;
    let request = http_client().get(format!("http://{}/healthz", gate.address));
    let refused = request.header("host", "gate.example").send().await.unwrap();
    assert_eq!(refused.status(), 403);
    let words = refused.text().await.unwrap();
    assert!(words.contains("add it to 'allowed_hosts'"), "{words}");
}

/// Shows a wrong token and returns the status.
async fn guess(client: &Client, gate: &Gate) -> reqwest::Result<u16> {
    let request = client.post(format!("http://{}/mcp", gate.address)).bearer_auth("cst_guess");
    Ok(request.send().await?.status().as_u16())
}

/// Shows 2,000 wrong tokens on 50 connections.
pub(super) async fn guess_2000_times(gate: &Gate) {
    let guessing = (0..50).map(|_| async {
        let client = http_client();
        for _ in 0..40 {
            // The gate may end a connection to make room for another one.
            let status = loop {
                if let Ok(status) = guess(&client, gate).await {
                    break status;
                }
            };
            assert_eq!(status, 401);
        }
    });
    join_all(guessing).await;
}

#[tokio::test]
async fn wrong_tokens_are_slowed_down_and_recorded_once() {
    let gate = Gate::scripted(json!([{"name": "t", "annotations": {"readOnlyHint": true}}])).await;
    gate.ready("s").await;
    let (client, honest) = (http_client(), gate.http().await);
    let start = Instant::now();
    for _ in 0..FREE + 3 {
        assert_eq!(guess(&client, &gate).await.unwrap(), 401);
    }
    assert!(start.elapsed() >= 3 * DELAY, "the last three were late");
    let recorded = records(&gate, "failed_entries").await;
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    assert_eq!(
        (&recorded[0]["status"], &recorded[0]["error_code"]),
        (&json!("blocked"), &json!("UNAUTHORIZED"))
    );
    assert_eq!(recorded[0]["arguments"]["address"], "127.0.0.1");
    assert_eq!(honest.code_of("read", "s:t").await, "ok");
}

#[tokio::test]
async fn wrong_codes_are_slowed_down_and_sign_ins_recorded() {
    let gate = Gate::scripted(json!([])).await;
    let printed = stdout(&gate.cli(&["page"]).await);
    let (origin, code) = printed.trim().split_once("/#code=").unwrap();
    let name = origin.strip_prefix("http://").unwrap().split(':').next().unwrap();
    let client = client_builder().resolve(name, gate.address.parse().unwrap());
    let client = client.build().unwrap();
    let start = Instant::now();
    for _ in 0..FREE + 2 {
        assert_eq!(sign_in(&client, origin, "csl_guess").await.status(), 401);
    }
    assert!(start.elapsed() >= 2 * DELAY, "the last two were late");
    assert_eq!(records(&gate, "failed_entries").await.len(), 1);
    assert_eq!(records(&gate, "page_sign_in").await.len(), 0);
    assert_eq!(sign_in(&client, origin, code).await.status(), 201);
    let recorded = records(&gate, "page_sign_in").await;
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    assert_eq!(recorded[0]["arguments"]["address"], "127.0.0.1");
}

#[tokio::test]
async fn long_2000_wrong_tokens_leave_one_record_and_do_not_delay_the_honest() {
    if !testkit::run::is_long_or_skipped() {
        return;
    }
    let gate = Gate::scripted(json!([{"name": "t", "annotations": {"readOnlyHint": true}}])).await;
    gate.ready("s").await;
    let honest = gate.http().await;
    let start = Instant::now();
    let guessing = guess_2000_times(&gate);
    let (mut calls, mut slowest) = (0, Duration::ZERO);
    tokio::pin!(guessing);
    loop {
        let call = async {
            let start = Instant::now();
            assert_eq!(honest.code_of("read", "s:t").await, "ok");
            start.elapsed()
        };
        tokio::select! {
            biased;
            took = call => (calls, slowest) = (calls + 1, slowest.max(took)),
            () = &mut guessing => break,
        }
    }
    println!(
        "2,000 wrong tokens took {:?}; meanwhile {calls} calls, at most {slowest:?}",
        start.elapsed()
    );
    assert_eq!(records(&gate, "failed_entries").await.len(), 1);
}

/// Opens more connections than the gate takes, each with responses that the client never reads.
pub(super) async fn crowd(gate: &Gate) -> Vec<TcpStream> {
    let host = &gate.address;
    let requests = format!("GET /page/style.css HTTP/1.1\r\nHost: {host}\r\n\r\n").repeat(200);
    let mut crowd = Vec::new();
    for _ in 0..1030 {
        // A small buffer, so that little fits on the way.
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(host.parse().unwrap()).await.unwrap();
        // The gate may have ended it already.
        let _ = stream.write_all(requests.as_bytes()).await;
        crowd.push(stream);
    }
    crowd
}

#[tokio::test]
async fn connections_that_never_read_do_not_shut_the_port() {
    let gate = Gate::scripted(json!([])).await;
    let crowd = crowd(&gate).await;
    let client = gate.http().await;
    client.request("tools/list", json!({})).await.unwrap();
    let fresh = http_client().get(format!("http://{}/healthz", gate.address)).send();
    let fresh = tokio::time::timeout(PATIENCE, fresh).await.expect("the port is open");
    assert_eq!(fresh.unwrap().status(), 200);
    drop(crowd);
}

/// Connections wait in the system's queue while the gate is busy; a stopped gate accepts none.
#[tokio::test]
async fn a_crowd_that_arrives_at_once_is_not_turned_away() {
    const CROWD: usize = 500;
    let bound = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    if bound.trim().parse::<usize>().is_ok_and(|bound| bound > CROWD) {
        let gate = Gate::scripted(json!([])).await;
        rustix::process::kill_process(gate.pid(), Signal::STOP).unwrap();
        let mut crowd = Vec::new();
        for n in 0..CROWD {
            let connecting = tokio::time::timeout(PATIENCE, TcpStream::connect(&gate.address));
            crowd.push(connecting.await.unwrap_or_else(|_| panic!("{n} fit")).unwrap());
        }
        rustix::process::kill_process(gate.pid(), Signal::CONT).unwrap();
        gate.http().await.request("tools/list", json!({})).await.unwrap();
    } else {
        testkit::run::skipped("the system keeps only a few connections waiting");
    }
}

/// Sends bytes and returns the status of the response.
async fn status_of(gate: &Gate, head: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(&gate.address).await.unwrap();
    stream.write_all(head).await.unwrap();
    let mut answer = [0; 12];
    let reading = stream.read_exact(&mut answer);
    tokio::time::timeout(PATIENCE, reading).await.expect("an answer").expect("a status line");
    String::from_utf8_lossy(&answer[9..]).parse().unwrap()
}

#[tokio::test]
async fn ambiguous_requests_are_refused() {
    let gate = Gate::scripted(json!([])).await;
    let (host, key) = (&gate.address, gate.secret("api-key"));
    let bearer = format!("Authorization: Bearer {key}\r\n");
    let status = async |target: &str, headers: &str| {
        let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
        status_of(&gate, head.as_bytes()).await
    };
    assert_eq!(status("/api/v1/status", &bearer).await, 200);
    assert_eq!(status(&format!("http://{host}/api/v1/status"), &bearer).await, 200);
    assert_eq!(status("/api/v1/status", &format!("{bearer}{bearer}")).await, 403);
    assert_eq!(
        status("/api/v1/status", &format!("{bearer}Authorization: Bearer x\r\n")).await,
        403
    );
    assert_eq!(status("http://evil.example/api/v1/status", &bearer).await, 403);
    assert_eq!(status("/api/v1/status", &format!("X: a\n{bearer}")).await, 400);
    let bare = format!("GET /healthz HTTP/1.1\nHost: {host}\n\n");
    assert_eq!(status_of(&gate, bare.as_bytes()).await, 400);
    let whole = |size: usize| format!("X: {}\r\n", "x".repeat(size));
    assert_eq!(status("/healthz", &whole(60 * 1024)).await, 200);
    assert_eq!(status("/healthz", &whole(65 * 1024)).await, 431);
    // Sent slowly, so that it is read in parts.
    let mut stream = TcpStream::connect(host).await.unwrap();
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n{}\r\n", whole(100 * 1024));
    for part in head.as_bytes().chunks(8 * 1024) {
        if stream.write_all(part).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}
