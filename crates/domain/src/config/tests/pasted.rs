//! Blocks of other programs, pasted as they are.

use super::*;

#[test]
fn a_block_of_claude_desktop_can_be_pasted() {
    let (config, notes) = parsed(
        r#"{
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"]
    },
    "github": {
      "type": "stdio",
      "command": "/usr/bin/docker",
      "args": ["run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server"],
      "env": { "GITHUB_TOKEN": "${env:GITHUB_TOKEN}" }
    }
  }
}"#,
    );
    assert_eq!(notes, [""; 0]);
    assert!(!config.workspace.enabled);
    let Transport::Stdio(StdioTransport { command, args, env, cwd, inherit_env: false }) =
        &config.servers[1].transport
    else {
        panic!("{:?}", config.servers[1]);
    };
    assert_eq!((command.as_str(), args.len(), cwd), ("/usr/bin/docker", 6, &None));
    let value =
        env[0].1.expand(&|name| (name == "GITHUB_TOKEN").then(|| "t".to_owned()), &|_| None);
    assert_eq!((env[0].0.as_str(), value.as_deref()), ("GITHUB_TOKEN", Ok("t")));
}

#[test]
fn a_block_of_cursor_or_cline_can_be_pasted() {
    let (server, notes) = server(
        r#""url": "https://h/mcp", "headers": {"Authorization": "Bearer x", "Accept": "*/*"},
"env": {"A": "b"}, "disabled": true, "autoApprove": ["a"], "alwaysAllow": [], "timeout": 60"#,
    );
    assert!(!server.enabled);
    let Transport::Remote(RemoteTransport { headers, .. }) = &server.transport else {
        panic!("{server:?}")
    };
    assert_eq!(headers.len(), 1);
    let expect = [
        "line 2, column 66: mcpServers.s.headers.Accept: ignored: the protocol sets this header",
        "line 3, column 1: mcpServers.s.env: ignored: has no effect with 'url'",
        "line 3, column 38: mcpServers.s.autoApprove: ignored: tools are approved in Countersign \
         (see 'auto_approve')",
        "line 3, column 60: mcpServers.s.alwaysAllow: ignored: tools are approved in Countersign \
         (see 'auto_approve')",
        "line 3, column 79: mcpServers.s.timeout: ignored: clients differ on its unit; use \
         'call_timeout'",
    ];
    assert_eq!(notes, expect);
}

#[test]
fn a_block_of_vs_code_can_be_pasted() {
    let (server, notes) = server(
        r#""type": "stdio", "command": "node", "args": ["${workspaceFolder}/s.js"],
"env": {"KEY": "${input:key}"}, "envFile": ".env", "dev": {"watch": "*.js"}"#,
    );
    assert!(matches!(server.transport, Transport::Stdio(_)));
    let kept =
        "only ${env:NAME} and ${secret:NAME} are replaced; any other '${…}' is passed on unchanged";
    assert_eq!(notes, [
        format!("line 2, column 46: mcpServers.s.args[0]: {kept}"),
        format!("line 3, column 16: mcpServers.s.env.KEY: {kept}"),
        "line 3, column 33: mcpServers.s.envFile: ignored: Countersign reads no env file; put the \
         variables in 'env'"
            .to_owned(),
        "line 3, column 52: mcpServers.s.dev: ignored: setting of a client's development mode".to_owned(),
    ]);
    check(
        r#"{"servers": {}}"#,
        &["line 1, column 2: servers: unknown key, did you mean 'mcpServers'?"],
    );
}
