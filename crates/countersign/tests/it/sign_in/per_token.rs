//! `"login": "per_token"`: each agent token signs in for itself, and its calls are made under its own
//! grant. The protected server says for whom each call was made.

use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use testkit::client::Client;
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::{stderr, stdout};

use super::{Authority, holders, login, look};

const PER_TOKEN: &str = "per_token";

/// A gate whose tokens sign in for themselves.
async fn gate(authority: &Authority) -> Gate {
    let server = json!({"s": {"url": authority.url(), "login": PER_TOKEN}});
    let gate = Gate::start(|_| server, json!({})).await;
    gate.server_when("s", |entry| entry["state"] == "needs_login").await;
    gate
}

/// Issues a token, and returns its secret.
async fn token(gate: &Gate, name: &str) -> String {
    let output = gate.cli(&["token", "create", name, "--operations", "read"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output).trim_end().to_owned()
}

async fn client(gate: &Gate, secret: &str) -> Client {
    gate.http_as(secret, "/mcp", json!({}), vec![]).await
}

/// Signs a token out. Another one may have to list the tools then, which takes a moment.
async fn sign_out(gate: &Gate, name: &str, state: &str) {
    let output = gate.cli(&["upstream", "logout", "s", "--token", name]).await;
    let words = format!("signed out of 's' for token '{name}': ");
    assert!(stdout(&output).starts_with(&words), "{output:?}");
    gate.server_when("s", |entry| entry["state"] == state).await;
}

/// Signs a token in as the person of the same name.
async fn sign_in(authority: &Authority, gate: &Gate, name: &str) {
    authority.test(&format!("person/{name}")).await;
    let output = login(gate.dir.path(), &["--token", name]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), format!("signed in to 's' for token '{name}': ready\n"));
}

fn is_seen_by(answer: &Value, person: &str) -> bool {
    answer["isError"] != true && answer.to_string().contains(&format!("seen by {person}\""))
}

async fn assert_seen_by(client: &Client, person: &str) {
    let answer = look(client).await;
    assert!(is_seen_by(&answer, person), "{person}: {answer}");
}

fn command(token: &str) -> String {
    format!("'countersign upstream login s --token {token}'")
}

async fn assert_must_sign_in(client: &Client, token: &str) {
    let refused = look(client).await;
    assert!(refused["isError"] == true, "{refused}");
    assert!(refused.to_string().contains(&command(token)), "{refused}");
}

#[tokio::test]
async fn each_token_signs_in_for_itself_and_calls_never_cross() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let mut gate = gate(&authority).await;
    let secrets = [token(&gate, "alice").await, token(&gate, "bob").await];
    let third = token(&gate, "carol").await;
    let (alice, bob) = (client(&gate, &secrets[0]).await, client(&gate, &secrets[1]).await);
    let carol = client(&gate, &third).await;
    // There is no sign-in yet; each token's error names its own command.
    assert_must_sign_in(&alice, "alice").await;
    assert_must_sign_in(&bob, "bob").await;

    sign_in(&authority, &gate, "alice").await;
    gate.ready("s").await;
    assert_seen_by(&alice, "alice").await;
    assert_must_sign_in(&bob, "bob").await;
    sign_in(&authority, &gate, "bob").await;
    assert_seen_by(&bob, "bob").await;
    assert_seen_by(&alice, "alice").await;

    // A third one is no worse off for it, but has to sign in.
    assert_must_sign_in(&carol, "carol").await;
    let found = carol.call("retrieve_tools", json!({"query": "look"})).await.to_string();
    assert!(found.contains("s:look") && found.contains("login s --token carol"), "{found}");
    let servers = carol.call("upstream_servers", json!({})).await.to_string();
    assert!(servers.contains("needs_login"), "{servers}");
    let found = alice.call("retrieve_tools", json!({"query": "look"})).await.to_string();
    assert!(found.contains("s:look") && !found.contains("login s"), "{found}");
    let listed = stdout(&gate.cli(&["upstream", "list"]).await);
    let words = "signed in: alice, bob; not signed in: agent-token, carol";
    assert!(listed.contains(words), "{listed}");

    // Twenty calls of both at a time, with tokens that have to be renewed first.
    authority.test("expire").await;
    let calls = (0..20).map(|_| join(look(&alice), look(&bob)));
    for (of_alice, of_bob) in join_all(calls).await {
        assert!(is_seen_by(&of_alice, "alice"), "{of_alice}");
        assert!(is_seen_by(&of_bob, "bob"), "{of_bob}");
    }
    assert_eq!(authority.refreshes().await, 2, "one for each");
    assert_eq!(authority.test("crossed").await["crossed"], 0);

    // The operator has no token, and no grant.
    let call = ["call", "tool-read", "--tool-name", "s:look"];
    let output = gate.cli(&call).await;
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    assert!(stderr(&output).contains("not made with one"), "{}", stderr(&output));

    drop((alice, bob, carol));
    gate.end().await;
    gate.restart().await;
    gate.ready("s").await;
    assert_seen_by(&client(&gate, &secrets[0]).await, "alice").await;
    assert_seen_by(&client(&gate, &secrets[1]).await, "bob").await;
    assert_must_sign_in(&client(&gate, &third).await, "carol").await;
    let issued: Vec<String> = serde_json::from_value(authority.test("issued").await).unwrap();
    let log = gate.log();
    for token in &issued {
        assert!(holders(gate.dir.path(), token).is_empty() && !log.contains(token));
    }
    assert_eq!(authority.test("crossed").await["crossed"], 0);
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn one_token_that_loses_its_grant_leaves_the_others_alone() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let gate = gate(&authority).await;
    let (secret, other) = (token(&gate, "alice").await, token(&gate, "bob").await);
    let (alice, bob) = (client(&gate, &secret).await, client(&gate, &other).await);
    sign_in(&authority, &gate, "alice").await;
    sign_in(&authority, &gate, "bob").await;
    assert_seen_by(&bob, "bob").await;

    // The one whose grant lists the tools withdraws it at the authorization server.
    authority.test("revoke/alice").await;
    let answers = join_all((0..10).map(|_| look(&alice))).await;
    let refused = |answer: &Value| answer.to_string().contains(&command("alice"));
    assert!(answers.iter().all(refused), "{answers:?}");
    assert_eq!(authority.refreshes().await, 1, "it is not asked for again");
    assert_seen_by(&bob, "bob").await;
    gate.ready("s").await;

    // It signs in again, then out.
    sign_in(&authority, &gate, "alice").await;
    assert_seen_by(&alice, "alice").await;
    sign_out(&gate, "bob", "ready").await;
    assert_must_sign_in(&bob, "bob").await;
    assert_seen_by(&alice, "alice").await;

    // Another token of the same name inherits nothing.
    assert_eq!(gate.cli(&["token", "revoke", "alice"]).await.status.code(), Some(0));
    let again = client(&gate, &token(&gate, "alice").await).await;
    assert_must_sign_in(&again, "alice").await;
    gate.server_when("s", |entry| entry["state"] == "needs_login").await;
    let vault = std::fs::read_to_string(gate.home().join("secrets/vault.json"));
    assert!(!vault.is_ok_and(|vault| vault.contains("alice")), "its grant is gone");
    assert_eq!(authority.test("crossed").await["crossed"], 0);
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn a_tool_that_differs_under_a_grant_is_locked_for_its_token() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let gate = gate(&authority).await;
    let (secret, other) = (token(&gate, "alice").await, token(&gate, "bob").await);
    let (alice, bob) = (client(&gate, &secret).await, client(&gate, &other).await);
    authority.test("odd/bob").await;
    sign_in(&authority, &gate, "alice").await;
    gate.ready("s").await;
    assert_seen_by(&alice, "alice").await;
    sign_in(&authority, &gate, "bob").await;
    let refused = look(&bob).await.to_string();
    assert!(refused.contains("TOOL_BLOCKED") && !refused.contains("elsewhere"), "{refused}");
    let found = bob.call("retrieve_tools", json!({"query": "look"})).await.to_string();
    assert!(!found.contains("elsewhere"), "{found}");
    assert_seen_by(&alice, "alice").await;
    // Another person takes its place, in a separate session of the server.
    authority.test("person/dora").await;
    let output = login(gate.dir.path(), &["--token", "alice"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_seen_by(&alice, "dora").await;
    assert_eq!(authority.test("crossed").await["crossed"], 0);
    // Clients over stdio use the default token.
    let stdio = gate.stdio().await;
    assert_must_sign_in(&stdio, "agent-token").await;
    sign_in(&authority, &gate, "agent-token").await;
    assert_seen_by(&stdio, "agent-token").await;
    // As long as one is signed in, it lists the tools for all.
    for (name, state) in [("alice", "ready"), ("bob", "ready"), ("agent-token", "needs_login")] {
        sign_out(&gate, name, state).await;
    }
    assert_must_sign_in(&alice, "alice").await;
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn a_sign_in_names_its_token_where_each_has_its_own() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::start(dir.path(), json!({})).await;
    let server = json!({"s": {"url": authority.url(), "login": PER_TOKEN},
        "t": {"url": authority.url()}});
    let gate = Gate::start(|_| server, json!({})).await;
    let scoped = ["token", "create", "x", "--operations", "read", "--servers", "t"];
    assert_eq!(gate.cli(&scoped).await.status.code(), Some(0));
    for (args, words) in [
        (&["s"][..], "name one with --token (agent-token"),
        (&["s", "--token", "nobody"], "no valid agent token 'nobody'"),
        (&["s", "--token", "admin"], "no valid agent token 'admin'"),
        (&["s", "--token", "x"], "may not use server 's'"),
        (&["t", "--token", "agent-token"], "all tokens share one sign-in"),
    ] {
        let output = gate.cli(&[&["upstream", "login"], args].concat()).await;
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
    }
    assert_eq!(gate.stop().await, Some(0));
}
