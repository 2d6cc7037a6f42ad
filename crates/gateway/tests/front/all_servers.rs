//! Everything that all servers offer, merged: names and addresses lead back to their server, and one
//! server spoils nothing of another.

use serde_json::json;
use testkit::client::{Client, text};
use testkit::wait::eventually;

use crate::gate::Gate;
use crate::offer::{ADDRESS_A, ADDRESS_B, LINKS, MEMO, OPERATIONS, PROMPT, TwoOffers, offer, say};
use crate::server::Server;

#[tokio::test]
async fn the_lists_of_all_servers_come_as_one_with_addresses_that_lead_back() {
    let TwoOffers { gate, .. } = TwoOffers::start().await;
    for (door, client) in gate.doors("/mcp/all").await {
        let prompts = client.request_text("prompts/list", "{}").await.unwrap();
        for name in ["a__p", "b__p"] {
            let named = PROMPT.replace(r#""p""#, &format!("{name:?}"));
            assert!(prompts.contains(&named), "{door:?}: {prompts}");
        }
        let prompts = client.listed("prompts/list").await;
        let expected = (6, "a__p", "a__q", "b__p", "b__q");
        let found = (prompts.len(), &*prompts[0], &*prompts[2], &*prompts[3], &*prompts[5]);
        assert_eq!(found, expected, "{door:?}");
        assert!(prompts[1].starts_with("a__only_a_") && prompts[1].len() <= 64, "{prompts:?}");
        let templates = client.listed("resources/templates/list").await;
        let both = |name: &str| format!("countersign://server/{name}/both://{{x}}/data");
        assert_eq!(templates, ["a://{x}", &both("a"), "b://{x}", &both("b")], "{door:?}");
        let pages = ["ui://countersign/a/page", "ui://countersign/b/page"];
        let expected = [ADDRESS_A, "memo://a", pages[0], ADDRESS_B, "memo://b", pages[1]];
        assert_eq!(client.listed("resources/list").await, expected, "{door:?}");
        let resources = client.request_text("resources/list", "{}").await.unwrap();
        let spelled = MEMO.replace("memo:", "countersign://server/b/memo:");
        assert!(resources.contains(&spelled), "only the address is another: {resources}");
        let tools = client.request("tools/list", json!({})).await.unwrap();
        let tools = tools["tools"].as_array().unwrap();
        let page = tools.iter().find(|tool| tool["name"] == "b__page").unwrap();
        assert_eq!(page["_meta"]["ui"]["resourceUri"], pages[1], "{door:?}");
    }
}

#[tokio::test]
async fn results_of_all_servers_have_links_that_lead_back() {
    let TwoOffers { gate, .. } = TwoOffers::start().await;
    let client = gate.client("/mcp/all").await;
    for name in ["a", "b"] {
        let params = format!(r#"{{"name":"{name}__links"}}"#);
        let answer = client.request_text("tools/call", &params).await.unwrap();
        let address = format!("countersign://server/{name}/memo://both");
        let expected = LINKS
            .replace("NAME", name)
            .replacen(r#""memo://both""#, &format!("\"{address}\""), 1)
            .replace(r"ui:\/\/page", &format!(r"ui:\/\/countersign/{name}/page"))
            .replace(r#""ui://page""#, &format!(r#""ui://countersign/{name}/page""#));
        assert_eq!(answer, expected);
        let read = client.request("resources/read", json!({"uri": address})).await.unwrap();
        assert_eq!(read["echo"]["uri"], "memo://both");
        let sent = json!({"name": format!("{name}__plain"), "arguments": {"uri": address}});
        let sent = client.request("tools/call", sent).await.unwrap();
        let expected = r#"{"name":"plain","arguments":{"uri":"memo://both"}}"#;
        assert_eq!(text(&sent), expected, "a model may pass an address on");
    }
}

#[tokio::test]
async fn requests_that_lead_to_no_server_or_to_several_are_refused() {
    let TwoOffers { gate, a, b, tools } = TwoOffers::start().await;
    let client = gate.client("/mcp/all").await;
    for (method, params, code, words) in [
        ("resources/read", json!({"uri": "memo://both"}), -32602, ADDRESS_A),
        ("resources/subscribe", json!({"uri": "both://1/data"}), -32602, "server/b/both://1/data"),
        ("resources/read", json!({"uri": "none://x"}), -32002, "unknown resource: none://x"),
        ("resources/read", json!({"uri": "countersign://server/none/x"}), -32002, "unknown"),
        ("resources/read", json!({"uri": "countersign://server/tools/x"}), -32002, "unknown"),
        ("prompts/get", json!({"name": "p"}), -32602, "unknown prompt: p"),
        ("prompts/get", json!({"name": ["a__p"]}), -32602, "name must be a string"),
        ("completion/complete", json!({"ref": {"type": "ref/x"}}), -32602, "ref must name"),
        ("custom/reindex", json!({}), -32601, "custom/reindex"),
        ("tasks/list", json!({}), -32601, "tasks/list"),
        ("prompts/list", json!({"cursor": "x"}), -32602, "unknown cursor"),
        ("resources/list", json!({"cursor": 7}), -32602, "cursor must be a string"),
    ] {
        let refused = client.refused(method, params.clone()).await;
        assert_eq!(refused.code, code, "{method} {params}: {}", refused.message);
        assert!(refused.message.contains(words), "{}", refused.message);
    }
    say(&client, "notifications/custom/hello", None).await;
    let url = client.refused("tools/call", json!({"name": "a__url"})).await;
    assert_eq!(url.code, -32042, "an error of the server passes");
    for server in [a, b, tools] {
        assert_eq!(server.heard_besides(), [""; 0]);
    }
    let odd = json!({"name": "a__p", "x": 1, "arguments": 1});
    client.request("prompts/get", odd).await.unwrap();
}

#[tokio::test]
async fn resources_of_all_servers_come_in_pages_that_belong_to_their_caller() {
    let server = |name: &str, count: usize| {
        let resources = (0..count).map(|n| json!({"uri": format!("{name}://{n}"), "name": "r"}));
        Server::scripted(json!({"tools": [], "resources": resources.collect::<Vec<_>>()}))
    };
    let gate = Gate::start(&[("a", &server("a", 300)), ("b", &server("b", 450))], json!({})).await;
    let client = gate.client("/mcp/all").await;
    let listed = eventually(|| async {
        Some(client.listed("resources/list").await).filter(|listed| listed.len() == 750)
    })
    .await;
    assert_eq!((&*listed[0], &*listed[300], &*listed[749]), ("a://0", "b://0", "b://449"));
    let first = client.request("resources/list", json!({})).await.unwrap();
    let cursor = first["nextCursor"].as_str().unwrap().to_owned();
    let scope = json!({"operations": OPERATIONS, "surfaces": ["passthrough"]});
    let secret = gate.token("other", scope).await;
    let other = gate.client_as(&secret, "/mcp/all", json!({}), vec![]).await;
    let refused = async |client: &Client, cursor: &str| {
        client.refused("resources/list", json!({"cursor": cursor})).await.code
    };
    assert_eq!(refused(&other, &cursor).await, -32602);
    for tampered in [&cursor[1..], &format!("{cursor}A"), "AAAA", ""] {
        assert_eq!(refused(&client, tampered).await, -32602, "{tampered}");
    }
    for method in ["prompts/list", "resources/templates/list"] {
        let error = client.refused(method, json!({"cursor": cursor})).await;
        assert_eq!(error.code, -32602, "{method} has no pages");
    }
    let again = gate.client("/mcp/all").await;
    let again = again.request("resources/list", json!({"cursor": cursor})).await;
    assert!(again.is_ok(), "another session of the same caller");
}

#[tokio::test]
async fn one_bad_server_spoils_nothing_of_the_others() {
    // It answers everything but its list of resources, which never comes.
    let hangs = Server::written(json!({
        "initialize": r#"{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"tools":{}},"serverInfo":{"name":"h","version":"1"}}"#,
        "tools/list": r#"{"tools":[{"name":"t"}]}"#,
        "resources/templates/list": r#"{"resourceTemplates":[{"uriTemplate":"{+all}","name":"x"},{"name":"none"},7]}"#,
    }));
    let wild = json!([7, {"uri": 7}, {"name": "no uri"},
        {"uri": "countersign://server/good/memo://good", "name": "x"}]);
    let wild = Server::scripted(json!({"tools": [], "resources": wild}));
    let (good, silent) = (Server::scripted(offer("good")), Server::written(json!({})));
    let servers = [
        ("good", &good),
        ("dead", &Server::dead()),
        ("hangs", &hangs),
        ("silent", &silent),
        ("wild", &wild),
    ];
    let gate = Gate::open(&servers, json!({})).await;
    for name in ["good", "wild", "hangs"] {
        gate.ready(name).await;
    }
    for client in [gate.client("/mcp/all").await, gate.able("/mcp/all", "me").await] {
        let resources = client.listed("resources/list").await;
        let wild = "countersign://server/wild/countersign://server/good/memo://good";
        assert_eq!(resources, ["memo://both", "memo://good", "ui://page", wild]);
        assert_eq!(client.listed("prompts/list").await[0], "good__p");
        assert!(client.listed("tools/list").await.contains(&"hangs__t".to_owned()));
        client.request("resources/read", json!({"uri": "memo://good"})).await.unwrap();
        client.request("logging/setLevel", json!({"level": "error"})).await.unwrap();
    }
}

#[tokio::test]
async fn names_of_all_servers_fit_and_stay_the_same() {
    let long = "x".repeat(200);
    let tools = json!([
        {"name": "plain"}, {"name": "a.b/c"}, {"name": "日本"}, {"name": "_t"}, {"name": long},
        {"name": format!("{long}y")}, {"name": "a:b:c"},
    ]);
    let servers = ["s", "s_", "s.t", "s__t", "ssssssssssssssssssssssssssssssssssssssssssssss"];
    let servers = servers.map(|name| (name, Server::scripted(tools.clone())));
    let mut seen = Vec::new();
    for is_reversed in [false, true] {
        let mut order: Vec<(&str, &Server)> =
            servers.iter().map(|(name, server)| (*name, server)).collect();
        if is_reversed {
            order.reverse();
        }
        let gate = Gate::start(&order, json!({})).await;
        let client = gate.client("/mcp/all").await;
        let mut names = client.listed("tools/list").await;
        names.sort();
        names.dedup();
        assert_eq!(names.len(), servers.len() * tools.as_array().unwrap().len());
        for name in &names {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(name.len() <= 64 && name.chars().all(plain), "{name}");
            let result = client.call(name, json!({"called": name})).await;
            assert!(text(&result).contains(&format!(r#"{{"called":"{name}"}}"#)), "{result}");
        }
        assert!(names.contains(&"s__plain".to_owned()), "{names:?}");
        seen.push(names);
    }
    assert_eq!(seen[0], seen[1]);
}
