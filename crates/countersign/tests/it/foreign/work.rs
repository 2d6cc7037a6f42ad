//! Work on real servers: tools are found, and reading, writing and deleting take effect.

use serde_json::{Value, json};
use testkit::client::text;
use testkit::foreign;
use testkit::gate::Gate;

use super::clients::Foreign;
use super::servers::{self, EverythingHttp};

/// Returns a result that must not be an error.
async fn done(client: &mut Foreign, operation: &str, tool: &str, args: Value) -> Value {
    let result = client.use_tool(operation, tool, args).await;
    assert_ne!(result["isError"], true, "{tool}: {result}");
    result
}

async fn refused(client: &mut Foreign, operation: &str, tool: &str, args: Value) {
    let result = client.use_tool(operation, tool, args).await;
    assert_eq!(result["isError"], true, "{tool}: {result}");
    let error = testkit::client::refusal(&result);
    assert_eq!(error["code"], "SERVER_MISMATCH", "{tool}: {result}");
    let message =
        format!("Tool '{tool}' is marked destructive by server, use call_tool_destructive");
    assert_eq!(text(&result), message);
}

async fn with_every_server() -> (Gate, EverythingHttp) {
    let http = EverythingHttp::start().await;
    let entry = http.entry.clone();
    let gate = servers::gate(|dir| {
        let mut servers = servers::all(dir);
        servers["everything-http"] = entry;
        servers
    })
    .await;
    (gate, http)
}

#[tokio::test]
async fn foreign_clients_read_write_and_delete_on_real_servers() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let (gate, _http) = with_every_server().await;
    for which in Foreign::ALL {
        let mut client = Foreign::open(which, &gate).await;
        let names = client.tool_names().await;
        let expected = [
            "retrieve_tools",
            "describe_tool",
            "call_tool_read",
            "call_tool_write",
            "call_tool_destructive",
            "read_cache",
            "upstream_servers",
        ];
        assert_eq!(names, expected, "{which}");
        files(&mut client, &gate, which).await;
        memory(&mut client, which).await;
        git(&mut client, &gate, which).await;
        tables(&mut client, which).await;
        let time = done(&mut client, "read", "time:get_current_time", json!({"timezone": "UTC"}));
        let time: Value = serde_json::from_str(text(&time.await)).unwrap();
        assert_eq!(time["timezone"], "UTC", "{which}");
        assert!(time["datetime"].as_str().unwrap().ends_with("+00:00"), "{which}: {time}");
        let sum = json!({"a": 2, "b": 40});
        for server in ["everything", "everything-http"] {
            let sum = done(&mut client, "read", &format!("{server}:get-sum"), sum.clone()).await;
            assert_eq!(text(&sum), "The sum of 2 and 40 is 42.", "{which} {server}");
        }
        client.end().await;
    }
    assert_eq!(gate.stop().await, Some(0));
}

/// `write_file` overwrites, and its server says so: it takes the destructive key.
async fn files(client: &mut Foreign, gate: &Gate, which: &str) {
    let folder = gate.dir.path().join("files").join(which);
    let file = folder.join("a.txt");
    done(client, "write", "filesystem:create_directory", json!({"path": folder})).await;
    assert!(folder.is_dir(), "{which}");
    let content = format!("words of {which}\n");
    let write = json!({"path": file, "content": content});
    for operation in ["read", "write"] {
        refused(client, operation, "filesystem:write_file", write.clone()).await;
        assert!(!file.exists(), "{which} {operation}");
    }
    done(client, "destructive", "filesystem:write_file", write).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), content, "{which}");
    let read = done(client, "read", "filesystem:read_text_file", json!({"path": file})).await;
    assert_eq!(text(&read), content, "{which}");
    assert_eq!(read["structuredContent"], json!({"content": content}), "{which}");
    let outside = json!({"path": gate.dir.path().join("config.json")});
    let denied = client.use_tool("read", "filesystem:read_text_file", outside).await;
    assert_eq!(denied["isError"], true, "{which}");
    assert!(text(&denied).contains("Access denied"), "{which}: the server's own words: {denied}");
}

async fn memory(client: &mut Foreign, which: &str) {
    let entity = json!({"name": which, "entityType": "client", "observations": ["it calls"]});
    let create = json!({"entities": [entity]});
    done(client, "write", "memory:create_entities", create).await;
    let graph = done(client, "read", "memory:read_graph", json!({})).await;
    assert_eq!(graph["structuredContent"]["entities"], json!([entity]), "{which}");
    let delete = json!({"entityNames": [which]});
    refused(client, "write", "memory:delete_entities", delete.clone()).await;
    let graph = done(client, "read", "memory:read_graph", json!({})).await;
    assert_eq!(graph["structuredContent"]["entities"], json!([entity]), "{which}");
    done(client, "destructive", "memory:delete_entities", delete).await;
    let graph = done(client, "read", "memory:read_graph", json!({})).await;
    assert_eq!(graph["structuredContent"]["entities"], json!([]), "{which}");
}

async fn git(client: &mut Foreign, gate: &Gate, which: &str) {
    let repository = gate.dir.path().join("repository");
    let here = json!({"repo_path": repository});
    let log = done(client, "read", "git:git_log", here.clone()).await;
    assert!(text(&log).contains("first-words"), "{which}: {log}");
    std::fs::write(repository.join(which), "new").unwrap();
    done(client, "write", "git:git_add", json!({"repo_path": repository, "files": [which]})).await;
    let status = done(client, "read", "git:git_status", here.clone()).await;
    let staged = format!("new file:   {which}");
    assert!(text(&status).contains(&staged), "{which}: {status}");
    refused(client, "write", "git:git_reset", here.clone()).await;
    done(client, "destructive", "git:git_reset", here.clone()).await;
    let status = done(client, "read", "git:git_status", here).await;
    assert!(!text(&status).contains(&staged), "{which}: {status}");
    assert!(text(&status).contains("Untracked files"), "{which}: {status}");
}

/// No tool of this server has annotations, so each accepts the key it is called with.
async fn tables(client: &mut Foreign, which: &str) {
    let query = |words: String| json!({"query": words});
    let create = query(format!("CREATE TABLE {which} (word TEXT)"));
    done(client, "write", "sqlite:create_table", create).await;
    let insert = query(format!("INSERT INTO {which} VALUES ('kept')"));
    done(client, "write", "sqlite:write_query", insert).await;
    let select = query(format!("SELECT word FROM {which}"));
    let rows = done(client, "read", "sqlite:read_query", select).await;
    assert_eq!(text(&rows), "[{'word': 'kept'}]", "{which}");
    let drop = query(format!("DELETE FROM {which}"));
    let gone = done(client, "destructive", "sqlite:write_query", drop).await;
    assert_eq!(text(&gone), "[{'affected_rows': 1}]", "{which}");
}

#[tokio::test]
async fn a_search_among_real_servers_finds_the_sensible_tool() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let (gate, _http) = with_every_server().await;
    let queries = [
        ("read a file", "filesystem:read_text_file", "call_tool_read"),
        ("write text to a file", "filesystem:write_file", "call_tool_destructive"),
        ("create a new directory", "filesystem:create_directory", "call_tool_write"),
        (
            "delete entities from the knowledge graph",
            "memory:delete_entities",
            "call_tool_destructive",
        ),
        ("commit history", "git:git_log", "call_tool_read"),
        ("what time is it now", "time:get_current_time", "call_tool_read"),
        ("run a SELECT query", "sqlite:read_query", "call_tool_write"),
    ];
    for which in Foreign::ALL {
        let mut client = Foreign::open(which, &gate).await;
        for (query, tool, call_with) in queries {
            let arguments = json!({"query": query, "limit": 3});
            let found = client.document("retrieve_tools", arguments).await;
            let tools = found["tools"].as_array().unwrap();
            let entry = tools.iter().find(|entry| entry["name"] == tool);
            let names: Vec<&Value> = tools.iter().map(|entry| &entry["name"]).collect();
            let entry = entry.unwrap_or_else(|| panic!("{which}: {query}: {names:?}"));
            assert_eq!(entry["call_with"], call_with, "{which}: {query}");
        }
        let ids = json!({"tool_ids": ["git:git_log", "sqlite:read_query"]});
        let described = client.document("describe_tool", ids).await;
        let first = &described["tools"][0];
        assert_eq!(first["name"], "git:git_log", "{which}");
        assert_eq!(first["inputSchema"]["required"], json!(["repo_path"]), "{which}");
        let second = &described["tools"][1];
        assert_eq!(second["name"], "sqlite:read_query", "{which}");
        assert_eq!(second.get("annotations"), None, "{which}");
        client.end().await;
    }
    assert_eq!(gate.stop().await, Some(0));
}
