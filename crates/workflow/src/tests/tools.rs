//! The table of a step's tools, and names that would clash in it.

use super::*;

fn step(proxy: &str) -> String {
    with_state(&format!(
        "type: agent, provider: claude, prompt: p, mcp_proxy: {{enable: true, {proxy}}}"
    ))
}

#[test]
fn the_table_names_every_tool_with_its_source() {
    let flow = workflow(&step(
        "plugin_tools: [{plugin: kubernetes, expose: [kubectl_get]}], mcp_servers: [github]",
    ));
    let entries = table(flow.state("s").unwrap(), &known()).unwrap();
    assert_eq!(entries.len(), BUILTINS.len() + 2);
    assert_eq!(entries[0], ToolTableEntry { name: "Read".to_owned(), source: ToolSource::Builtin });
    let server = ToolSource::Server("github".to_owned());
    assert_eq!(entries[6], ToolTableEntry { name: "github__*".to_owned(), source: server });
    let (plugin, operation) = ("kubernetes".to_owned(), "kubectl_get".to_owned());
    let source = ToolSource::Plugin { plugin, operation };
    assert_eq!(entries[7], ToolTableEntry { name: "kubernetes_kubectl_get".to_owned(), source });
    assert_eq!(table(flow.state("done").unwrap(), &known()), Ok(vec![]));
}

#[test]
fn colliding_tool_names_are_faults() {
    let table = [
        (
            "plugin_tools: [{plugin: kubernetes, expose: [kubectl_get]}, {plugin: kubernetes_kubectl, expose: [§get]}]",
            "MCP_PROXY.NAME_COLLISION @ states.s.mcp_proxy.plugin_tools[1].expose[0]: two tools are named kubernetes_kubectl_get: kubectl_get of plugin 'kubernetes' and this one",
        ),
        (
            "plugin_tools: [{plugin: kubernetes, expose: [kubectl_get, §kubectl_get]}]",
            "MCP_PROXY.NAME_COLLISION @ states.s.mcp_proxy.plugin_tools[0].expose[1]: two tools are named kubernetes_kubectl_get: kubectl_get of plugin 'kubernetes' and this one",
        ),
        (
            "plugin_tools: [{plugin: github, expose: [issue, §_issue]}], mcp_servers: [github]",
            "MCP_PROXY.NAME_COLLISION @ states.s.mcp_proxy.plugin_tools[0].expose[1]: two tools are named github__issue: a tool of server 'github' and this one",
        ),
        (
            "mcp_servers: [github, §github]",
            "MCP_PROXY.NAME_COLLISION @ states.s.mcp_proxy.mcp_servers[1]: two tools are named github__*: a tool of server 'github' and this one",
        ),
        (
            "plugin_tools: [{plugin: github, expose: [§bad.name]}]",
            "WORKFLOW.BAD_NAME @ states.s.mcp_proxy.plugin_tools[0].expose[0]: tool name 'github_bad.name' is not valid: clients accept at most 64 letters, digits, '_' and '-'",
        ),
    ];
    for (proxy, expect) in table {
        let (text, expect) = placed(&step(proxy), expect);
        assert_eq!(errors(&text), [expect], "{proxy}");
    }
}

#[test]
fn a_table_reports_a_server_missing_from_the_inventory() {
    let flow = workflow(&step("mcp_servers: [github]"));
    let fault = table(flow.state("s").unwrap(), &Inventory::default()).unwrap_err();
    assert_eq!(fault.code.as_str(), "USER.MCP_PROXY.UNKNOWN_SERVER");
}
