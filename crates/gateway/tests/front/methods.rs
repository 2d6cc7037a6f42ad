//! Every method besides the calls of tools, on every view: a request reaches its server under the
//! server's own names and addresses, and its answer comes unchanged.

use mcp::peer::{Ask, RequestError};
use serde_json::json;
use testkit::client::PATIENCE;

use crate::dice::Dice;
use crate::gate::Gate;
use crate::offer::{PROMPT, TwoOffers, echoed, offer};
use crate::server::Server;

/// Server `b` alone, all servers, and the gate's own tools.
const VIEWS: [&str; 3] = ["/mcp/s/b", "/mcp/all", "/mcp"];

/// A request on one view.
enum Given {
    Passes(&'static str),
    /// It passes with the spaces between its members written anew.
    Spaced(&'static str, &'static str),
    /// It is refused with this code.
    Refused(i64, &'static str),
}

use Given::{Passes, Refused, Spaced};

/// A method with the params that a client gives on each of the [`VIEWS`], and those that `b` gets.
struct Row(&'static str, [Given; 3], &'static str);

const COMPLETION: &str = r#"{ "ref":{"type":"ref/prompt","name" : "p"},"argument":{"n":1E2}}"#;
const COMPLETION_B: &str = r#"{ "ref":{"type":"ref/prompt","name" : "b__p"},"argument":{"n":1E2}}"#;
const TEMPLATE: &str =
    r#"{ "ref":{"type":"ref/resource","uri" : "both://{x}/data"},"argument":{"n":1E2}}"#;
const TEMPLATE_B: &str = r#"{ "ref":{"type":"ref/resource","uri" : "countersign://server/b/both://{x}/data"},"argument":{"n":1E2}}"#;
const OWN_TEMPLATE: &str =
    r#"{ "ref":{"type":"ref/resource","uri" : "b://{x}"},"argument":{"n":1E2}}"#;
const OWN_METHOD: &str = r#"{"deep":{"list":[{"n":0.10}]},"_meta":{"k":1.50}}"#;

/// No view has such a method.
const NOWHERE: [Given; 3] = [Refused(-32601, "{}"), Refused(-32601, "{}"), Refused(-32601, "{}")];

const ROWS: &[Row] = &[
    Row(
        "resources/read",
        [
            Passes(r#"{ "uri" : "memo://both","x":[1.0,1E2]}"#),
            Passes(r#"{ "uri" : "countersign://server/b/memo://both","x":[1.0,1E2]}"#),
            Spaced(
                r#"{ "uri" : "countersign://server/b/memo://both","x":[1.0,1E2]}"#,
                r#"{"uri":"memo://both","x":[1.0,1E2]}"#,
            ),
        ],
        r#"{ "uri" : "memo://both","x":[1.0,1E2]}"#,
    ),
    Row(
        "resources/read",
        [
            Passes(r#"{"uri":"memo://b"}"#),
            Passes(r#"{"uri":"memo://b"}"#),
            Passes(r#"{"uri":"memo://b"}"#),
        ],
        r#"{"uri":"memo://b"}"#,
    ),
    Row(
        "resources/read",
        [
            Passes(r#"{"uri":"memo://b"}"#),
            Passes(r#"{"uri":"countersign://server/b/memo://b"}"#),
            Passes(r#"{"uri":"countersign://server/b/memo://b"}"#),
        ],
        r#"{"uri":"memo://b"}"#,
    ),
    Row(
        "resources/read",
        [
            Passes(r#"{"uri":"b://any"}"#),
            Passes(r#"{"uri":"b://any"}"#),
            Passes(r#"{"uri":"b://any"}"#),
        ],
        r#"{"uri":"b://any"}"#,
    ),
    Row(
        "prompts/get",
        [
            Passes(r#"{ "name":"p", "arguments":{"big":123456789012345678901234567890}}"#),
            Passes(r#"{ "name":"b__p", "arguments":{"big":123456789012345678901234567890}}"#),
            Spaced(
                r#"{ "name":"b__p", "arguments":{"big":123456789012345678901234567890}}"#,
                r#"{"name":"p","arguments":{"big":123456789012345678901234567890}}"#,
            ),
        ],
        r#"{ "name":"p", "arguments":{"big":123456789012345678901234567890}}"#,
    ),
    Row(
        "completion/complete",
        [Passes(COMPLETION), Passes(COMPLETION_B), Refused(-32601, COMPLETION_B)],
        COMPLETION,
    ),
    Row(
        "completion/complete",
        [Passes(OWN_TEMPLATE), Passes(OWN_TEMPLATE), Refused(-32601, OWN_TEMPLATE)],
        OWN_TEMPLATE,
    ),
    Row(
        "completion/complete",
        [Passes(TEMPLATE), Passes(TEMPLATE_B), Refused(-32601, TEMPLATE_B)],
        TEMPLATE,
    ),
    Row(
        "custom/reindex",
        [Passes(OWN_METHOD), Refused(-32601, OWN_METHOD), Refused(-32601, OWN_METHOD)],
        OWN_METHOD,
    ),
    Row("tasks/list", NOWHERE, ""),
    Row("server/discover", NOWHERE, ""),
    Row("resources/forget", NOWHERE, ""),
    Row("sampling/createMessage", NOWHERE, ""),
];

#[tokio::test]
async fn requests_reach_their_server_unchanged_on_each_view() {
    let TwoOffers { gate, a, b, .. } = TwoOffers::start().await;
    for (number, view) in VIEWS.into_iter().enumerate() {
        for (door, client) in gate.doors(view).await {
            for Row(method, given, sent) in ROWS {
                let before = b.heard_besides().len();
                let (params, sent) = match given[number] {
                    Passes(params) => (params, sent),
                    Spaced(params, ref sent) => (params, sent),
                    Refused(code, params) => {
                        let params = serde_json::from_str(params).unwrap();
                        let refused = client.refused(method, params).await;
                        assert_eq!(refused.code, code, "{door:?} {view} {method}");
                        assert_eq!(b.heard_besides().len(), before, "{door:?} {view} {method}");
                        continue;
                    }
                };
                let answer = client.request_text(method, params).await.unwrap();
                assert_eq!(answer, echoed(sent), "{door:?} {view} {method} {params}");
                assert_eq!(b.heard_besides().len(), before + 1, "{door:?} {view} {method}");
            }
        }
    }
    assert_eq!(a.heard_besides(), [""; 0]);
    for (door, client) in gate.doors("/mcp/s/b").await {
        let bare = client.peer.request(Ask::new("custom/reindex", None, PATIENCE)).await.unwrap();
        assert_eq!(bare.get(), echoed("null"), "{door:?}: absent params stay absent");
    }
}

#[tokio::test]
async fn each_view_declares_what_its_servers_offer() {
    let TwoOffers { gate, .. } = TwoOffers::start().await;
    let one = json!({
        "tools": {"listChanged": true},
        "prompts": {"listChanged": true, "x-number": 1},
        "resources": {"listChanged": true, "subscribe": true},
        "logging": {}, "completions": {}, "experimental": {"x": {"n": 1}},
    });
    let all = json!({
        "tools": {"listChanged": true}, "prompts": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true}, "completions": {}, "logging": {},
    });
    for (view, expected) in [("/mcp/s/a", one), ("/mcp/all", all)] {
        for (door, client) in gate.doors(view).await {
            assert_eq!(client.welcome["capabilities"], expected, "{door:?} {view}");
        }
    }
}

#[tokio::test]
async fn the_lists_of_one_server_come_byte_for_byte() {
    let TwoOffers { gate, .. } = TwoOffers::start().await;
    for (door, client) in gate.doors("/mcp/s/b").await {
        let prompts = client.request_text("prompts/list", "{}").await.unwrap();
        let expected = format!(r#"{{"prompts":[{PROMPT},{{"name":"only b"}},{{"name":"q"}}]}}"#);
        assert_eq!(prompts, expected, "{door:?}");
        let templates = client.request_text("resources/templates/list", "{}").await.unwrap();
        let expected = r#"{"resourceTemplates":[{"uriTemplate":"b://{x}","name":"own"},{"uriTemplate":"both://{x}/data","name":"both"}]}"#;
        assert_eq!(templates, expected, "{door:?}");
        let first = client.request("resources/list", json!({})).await.unwrap();
        assert_eq!(first["resources"].as_array().map(Vec::len), Some(2), "{door:?}");
        let next = json!({"cursor": first["nextCursor"]}).to_string();
        let last = client.request_text("resources/list", &next).await.unwrap();
        let expected = r#"{"resources":[{"uri":"ui://page","name":"page"}],"x-page":1E0}"#;
        assert_eq!(last, expected, "{door:?}");
    }
}

#[tokio::test]
async fn requests_of_one_server_that_do_not_name_their_subject_are_refused() {
    let server = Server::scripted(offer("s"));
    let gate = Gate::of(&server).await;
    let client = gate.client("/mcp/s/s").await;
    for (method, params) in [
        ("resources/read", r#"{"uri":["memo://a"]}"#),
        ("resources/subscribe", "{}"),
        ("prompts/get", r#"{"name":{"toString":1}}"#),
        ("prompts/get", r#"{"name":"p","name":"q"}"#),
        ("prompts/get", r#"{"name":"p","arguments":{"a":1,"a":2}}"#),
        ("completion/complete", r#"{"ref":{"type":"ref/other","name":"p"}}"#),
        ("prompts/get", r#"{"name":"none"}"#),
    ] {
        match client.request_text(method, params).await {
            Err(RequestError::Refused(error)) => {
                assert_eq!(error.code, -32602, "{method} {params}: {}", error.message);
            }
            other => panic!("{method} {params}: {other:?}"),
        }
    }
    assert_eq!(server.heard_besides(), [""; 0]);
}

#[tokio::test]
async fn random_params_arrive_and_return_character_for_character() {
    let gate = Gate::of(&Server::scripted(offer("s"))).await;
    let client = gate.client("/mcp/s/s").await;
    let mut dice = Dice(1);
    for case in 0..200 {
        let given = dice.json(4);
        let (method, params) = match case % 4 {
            0 => ("resources/read", format!(r#"{{"uri":"memo://a","x":{given}}}"#)),
            1 => ("prompts/get", format!(r#"{{"name":"p","arguments":{given}}}"#)),
            2 => {
                let reference = r#"{"type":"ref/prompt","name":"p"}"#;
                ("completion/complete", format!(r#"{{"ref":{reference},"argument":{given}}}"#))
            }
            _ => ("custom/any", format!(r#"{{"x":{given},"_meta":{{"y":{given}}}}}"#)),
        };
        let answer = client.request_text(method, &params).await;
        assert_eq!(answer.unwrap(), echoed(&params), "{method}");
    }
}
