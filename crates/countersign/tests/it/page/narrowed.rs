//! A scene for the filters of the Activity view that few need.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::foreign;
use testkit::gate::Gate;

use super::{call_owned, drive, nothing, plain_tools, rest};

/// The resources that each of two agents reads before the page opens.
const ONE: [&str; 3] = ["/shared", "/shared/plan.md", "/elsewhere"];
const OTHER: [&str; 2] = ["/shared/plan.md", "/elsewhere"];

#[tokio::test]
async fn a_session_a_resource_and_its_containers_narrow_the_list() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = Gate::scripted(plain_tools()).await;
    gate.ready("s").await;
    let (one, other) = (gate.http().await, gate.stdio().await);
    for (client, paths) in [(&one, &ONE[..]), (&other, &OTHER)] {
        for path in paths {
            call_owned(client, "read", "s:echo", path).await;
        }
    }
    // The newest first.
    let list = rest(&gate, Method::GET, "/activity?tool=echo", None).await;
    let session = |at: usize| list["activities"][at]["session_id"].clone();
    let count = ONE.len() + OTHER.len();
    let scene = json!({"one": session(count - 1), "other": session(0), "calls": count,
        "ofOther": OTHER.len()});
    let act = async |what: &str, args: Value| match what {
        "call" => {
            let client = if args["who"] == "one" { &one } else { &other };
            call_owned(client, "read", "s:echo", args["path"].as_str().unwrap()).await;
            json!({})
        }
        what => nothing(what, args).await,
    };
    drive(&gate, "narrow.mjs", scene, act).await;
}
