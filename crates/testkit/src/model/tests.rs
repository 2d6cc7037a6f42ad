//! The model sees every tool, wherever a program puts it, and responds in the requested form.

use super::*;

fn asked(path: &str, body: Value) -> ModelRequest {
    ModelRequest { path: path.to_owned(), body, authorization: None, headers: BTreeMap::new() }
}

#[test]
fn tools_are_found_in_every_request_format() {
    for (path, body, expected) in [
        ("/v1/messages", json!({"tools": [{"name": "a"}, {"name": "b"}]}), "a b"),
        (
            "/v1beta/models/m:streamGenerateContent",
            json!({"tools": [{"functionDeclarations": [{"name": "a"}]}, {"googleSearch": {}}]}),
            "a",
        ),
        (
            "/v1/responses",
            json!({
                "tools": [{"type": "function", "name": "a"}, {"type": "web_search"}],
                "input": [{"type": "additional_tools", "tools": [
                    {"type": "namespace", "name": "n", "tools": [{"name": "b"}]},
                ]}],
            }),
            "a web_search n.b",
        ),
        ("/v1/chat/completions", json!({"tools": [{"function": {"name": "a"}}]}), "a"),
        ("/v1/chat/completions", json!({}), ""),
    ] {
        let tools = Api::of(path).unwrap().tools(&body);
        let names: Vec<String> = tools.iter().map(Tool::full).collect();
        assert_eq!(names.join(" "), expected, "{path}");
    }
}

#[test]
fn our_tools_are_called_by_the_name_that_the_program_gave_them() {
    let tool = |namespace: Option<&str>, name: &str| Tool {
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    };
    for (advertised, expected) in [
        ("mcp__awf-proxy__Read", tool(None, "mcp__awf-proxy__Read")),
        ("awf-proxy_Read", tool(None, "awf-proxy_Read")),
        ("Read", tool(None, "Read")),
    ] {
        let found = ModelCall::ours("Read", json!({}))
            .resolve(&[tool(None, "Bash"), tool(None, advertised)]);
        assert_eq!(found, expected);
    }
    let inside = tool(Some("mcp__awf_proxy"), "Read");
    let advertised = [tool(None, "Read"), inside.clone()];
    assert_eq!(ModelCall::ours("Read", json!({})).resolve(&advertised), inside);
    assert_eq!(ModelCall::native("Read", json!({})).resolve(&advertised), tool(None, "Read"));
}

#[test]
fn answers_are_events_or_one_object() {
    let parts = || {
        let tool = Tool { namespace: None, name: "t".to_owned() };
        let call = Part::Call { id: "1".to_owned(), tool, arguments: json!({"a": 1}) };
        [Part::Text("words".to_owned()), call]
    };
    for (path, body) in [
        ("/v1/messages", json!({})),
        ("/v1beta/models/m:generateContent", json!({})),
        ("/v1/responses", json!({})),
        ("/v1/chat/completions", json!({})),
    ] {
        let api = Api::of(path).unwrap();
        let whole = api.answer(&asked(path, body), &parts());
        let value: Value = serde_json::from_str(&whole).unwrap();
        assert!(value.to_string().contains("words"), "{path}");
        let streamed =
            asked(&path.replace(":generate", ":streamGenerate"), json!({"stream": true}));
        let events = api.answer(&streamed, &parts());
        assert!(events.contains("data: {") && events.ends_with("\n\n"), "{path}: {events}");
        let data = events.lines().filter_map(|line| line.strip_prefix("data: "));
        for data in data.filter(|data| *data != "[DONE]") {
            serde_json::from_str::<Value>(data).unwrap();
        }
    }
}

#[test]
fn auxiliary_requests_take_no_turn() {
    for (path, body, aside) in [
        ("/v1/messages", json!({"max_tokens": 1}), true),
        ("/v1/messages", json!({"max_tokens": 1, "tools": [{"name": "a"}]}), false),
        (
            "/m:generateContent",
            json!({"generationConfig": {"responseMimeType": "application/json"}}),
            true,
        ),
        ("/m:generateContent", json!({}), false),
        ("/v1/chat/completions", json!({"messages": ["You are a title generator."]}), true),
        ("/v1/chat/completions", json!({"messages": []}), false),
        ("/v1/responses", json!({}), false),
    ] {
        assert_eq!(Api::of(path).unwrap().aside(&body).is_some(), aside, "{path} {body}");
    }
}
