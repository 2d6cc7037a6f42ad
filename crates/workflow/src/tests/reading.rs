//! Faults and warnings with their positions, and the plan of a valid file.

use std::time::Duration;

use super::*;

const AGENT: &str = "type: agent, provider: claude, prompt: p";

#[test]
fn a_whole_workflow_is_read() {
    let text = r#"
name: deploy
version: 1.0
description: all that there is
inputs:
  - {name: env, type: string, required: true, validation: {enum: [dev, prod], pattern: "^[a-z]+$"}}
  - {name: count, type: integer, default: 3, validation: {min: 1, max: 9}}
  - {name: dry, type: boolean, default: false}
states:
  initial: refactor
  refactor:
    type: step
    agent:
      provider: claude
      prompt: "Refactor {{.inputs.env}}"
      options: {model: sonnet, args: [--max-turns, 5], env: {A: "{{.env.HOME}}", B: 1}}
      system_prompt: be brief
    timeout: 10m
    on_success: test
    on_failure: {message: "no luck", status: 4}
    mcp_proxy:
      enable: true
      plugin_tools: [{plugin: kubernetes, expose: [kubectl_apply, kubectl_get]}]
      mcp_servers: [github]
    isolation: required
  test:
    type: step
    command: make test
    dir: "."
    timeout: 90
    retry: {max_attempts: 3, initial_delay: 2s, backoff: exponential}
    transitions:
      - {when: "states.test.ExitCode == 2 and not inputs.dry", goto: both}
      - {when: "inputs.env == 'prod'", goto: apply}
    on_success: done
    on_failure: failed
  both: {type: parallel, parallel: [a, b], strategy: any_succeed, max_concurrent: 1, on_success: done}
  a: {type: agent, provider: openai-compatible, prompt: hi, options: {base_url: "http://127.0.0.1:1", api_key: "{{.env.KEY}}", temperature: 0.5, max_turns: 3, stream: false}}
  b: {type: step, command: "true", continue_on_error: true}
  apply: {type: operation, operation: kubernetes.kubectl_apply, inputs: {file: "{{.inputs.env}}", n: 3}, on_success: done}
  done: {type: terminal, status: success}
  failed: {type: terminal, status: failure, message: "tests failed: {{.states.test.Output}}"}
"#;
    let read = read(text, &known());
    assert_eq!((&read.errors, &read.warnings), (&vec![], &vec![]));
    assert_eq!(
        read.json(),
        serde_json::json!({"valid": true, "workflow": "deploy", "errors": [], "warnings": []})
    );
    let flow = read.workflow.unwrap();
    assert_eq!(flow.version.as_deref(), Some("1.0"));
    assert_eq!(flow.env_names, ["HOME", "KEY"]);
    let refactor = flow.state("refactor").unwrap();
    assert_eq!(refactor.timeout, Some(Duration::from_secs(600)));
    let agent = refactor.agent().unwrap();
    assert_eq!((agent.provider, agent.isolation), (Provider::Claude, Demand::Required));
    assert!(matches!(&refactor.on_failure, Some(OnFailure::End { exit_status: 4, .. })));
    let test = flow.state("test").unwrap();
    assert_eq!(test.timeout, Some(Duration::from_secs(90)));
    assert_eq!((test.retry.max_attempts, test.retry.backoff), (3, Backoff::Exponential));
    assert_eq!(test.transitions.len(), 2);
    let a = flow.state("a").unwrap().agent().unwrap();
    assert_eq!(a.provider, Provider::OpenAiCompatible);
    assert_eq!((a.options.max_turns, a.options.openai.stream), (Some(3), Some(false)));
    assert_eq!(flow.inputs[1].default, Some(3.into()));
}

#[test]
fn the_four_cases_of_the_proxy_are_valid() {
    let step = |name: &str, proxy: &str| {
        format!(
            "name: n\nstates:\n  initial: {name}\n  {name}:\n    type: step\n    agent:\n      \
             provider: claude\n      prompt: \"Apply the new k8s manifest\"\n{proxy}\n    \
             on_success: done\n  done: {{type: terminal}}\n"
        )
    };
    let cases = [
        "    # no mcp_proxy: native built-ins",
        "    mcp_proxy:\n      enable: true",
        "    mcp_proxy:\n      enable: true\n      plugin_tools:\n        - plugin: kubernetes\n          \
         expose: [kubectl_apply, kubectl_get]",
        "    mcp_proxy:\n      enable: true\n      intercept_builtins: false\n      plugin_tools:\n        \
         - plugin: kubernetes\n          expose: [kubectl_apply]",
    ];
    let mut tools = Vec::new();
    for case in cases {
        let text = step("refactor", case);
        assert_eq!(warnings(&text), [""; 0]);
        let flow = workflow(&text);
        let entries = table(flow.state("refactor").unwrap(), &known()).unwrap();
        tools.push(entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>().join(" "));
    }
    let builtins = "Read Write Edit Bash Glob Grep";
    let all = format!("{builtins} kubernetes_kubectl_apply kubernetes_kubectl_get");
    assert_eq!(tools, ["", builtins, &all, "kubernetes_kubectl_apply"]);
}

#[test]
fn syntax_faults_are_reported_at_their_place() {
    let table = [
        ("§", "WORKFLOW.SYNTAX @ : the file is empty: a workflow needs a name and states"),
        (
            "§# nothing\n",
            "WORKFLOW.SYNTAX @ : the file is empty: a workflow needs a name and states",
        ),
        (
            "a: b§: c",
            "WORKFLOW.SYNTAX @ : not valid YAML: mapping values are not allowed in this context",
        ),
        (
            "name: n\nstates:\n§\tinitial: s",
            "WORKFLOW.SYNTAX @ : the line is indented with a tab: YAML requires spaces",
        ),
        (
            "name: \"a§\0b\"",
            "WORKFLOW.SYNTAX @ : the file contains a NUL character and is not text",
        ),
        (
            "name: n\n---\nname: m",
            "WORKFLOW.SYNTAX 2:1 : the file has a second YAML document: put each workflow in its own file",
        ),
        ("a: &x {b: *x}", "WORKFLOW.SYNTAX 1:11 : an alias refers to a value that contains it"),
        ("name: !mine n", "WORKFLOW.SYNTAX 1:7 : custom YAML tags are not supported"),
        (
            "a: &x {b: 1}\nc:\n  <<: *x",
            "WORKFLOW.SYNTAX 3:3 : merge keys (<<) are not supported: write the keys out",
        ),
        (
            "name: {{.inputs.x}}",
            "WORKFLOW.SYNTAX 1:7 : a value that begins with {{ must be in quotes",
        ),
        ("[a]", "WORKFLOW.WRONG_TYPE 1:1 : expected a mapping, found a list"),
        ("text", "WORKFLOW.WRONG_TYPE 1:1 : expected a mapping, found a string"),
    ];
    for (text, expect) in table {
        let (text, expect) = placed(text, expect);
        assert_eq!(errors(&text), [expect], "{text:?}");
    }
    let bom = format!("\u{feff}{}", with_state("type: step, command: x"));
    assert_eq!(errors(&bom), [""; 0]);
    assert_eq!(errors(&with_state("type: step, command: x").replace('\n', "\r\n")), [""; 0]);
    let twice = with_state("type: step, command: x, §command: y");
    let (twice, expect) = placed(&twice, "WORKFLOW.SYNTAX @ : duplicate key \"command\"");
    assert_eq!(errors(&twice), [expect]);
}

#[test]
fn faults_of_top_level_keys_are_reported() {
    let table: &[(&str, &[&str])] = &[
        (
            "nam: n\nversion: [1]\ndescription: ~",
            &[
                "WORKFLOW.UNKNOWN_KEY 1:1 nam: unknown key; did you mean 'name'?",
                "WORKFLOW.MISSING_KEY 1:1 : 'name' is missing",
                "WORKFLOW.MISSING_KEY 1:1 : 'states' is missing",
                "WORKFLOW.WRONG_TYPE 2:10 version: expected a string, found a list",
                "WORKFLOW.WRONG_TYPE 3:14 description: expected a string, found nothing",
            ],
        ),
        (
            "name: 5\nstates: {}",
            &[
                "WORKFLOW.WRONG_TYPE 1:7 name: expected a string, found a number",
                "WORKFLOW.MISSING_KEY 2:9 states: 'initial' is missing",
            ],
        ),
        (
            "name: ''\nstates: {initial: a, a b: {type: terminal}}",
            &[
                "WORKFLOW.BAD_NAME 1:7 name: the name must be one non-empty line of text",
                "WORKFLOW.UNKNOWN_STATE 2:19 states.initial: state 'a' not found",
                "WORKFLOW.BAD_NAME 2:22 states[\"a b\"]: a name must consist of 1 to 64 letters, digits, '_' and '-'",
            ],
        ),
        (
            "name: n\nstates: {initial: dnoe, done: {type: terminal}, x: 1}",
            &[
                "WORKFLOW.UNKNOWN_STATE 2:19 states.initial: state 'dnoe' not found; did you mean 'done'?",
                "WORKFLOW.WRONG_TYPE 2:52 states.x: expected a mapping, found a number",
            ],
        ),
    ];
    for (text, expect) in table {
        assert_eq!(errors(text), *expect, "{text}");
    }
}

#[test]
fn faults_of_every_type_of_state_are_reported() {
    let table = [
        ("command: x", "WORKFLOW.MISSING_KEY 4:6 states.s: 'type' is missing"),
        (
            "type: §sleep",
            "WORKFLOW.BAD_VALUE @ states.s.type: expected step or agent or operation or parallel or terminal, found \"sleep\"; did you mean 'step'?",
        ),
        ("type: step", "WORKFLOW.MISSING_KEY 4:6 states.s: a step requires 'command' or 'agent'"),
        (
            "type: step, command: x, §agent: {}",
            "WORKFLOW.BAD_VALUE @ states.s.agent: a step cannot have both 'command' and 'agent'",
        ),
        (
            "type: step, command: §[x]",
            "WORKFLOW.WRONG_TYPE @ states.s.command: expected a string, found a list",
        ),
        (
            "type: step, command: §' '",
            "WORKFLOW.BAD_VALUE @ states.s.command: the command is empty",
        ),
        (
            "type: step, command: x, §comand: y",
            "WORKFLOW.UNKNOWN_KEY @ states.s.comand: unknown key; did you mean 'command'?",
        ),
        (
            "type: step, command: x, §mcp_proxy: {}",
            "WORKFLOW.UNKNOWN_KEY @ states.s.mcp_proxy: a step with a command does not have this key; a step with an agent does",
        ),
        (
            "type: step, command: x, timeout: §soon",
            "WORKFLOW.BAD_VALUE @ states.s.timeout: expected a number of seconds, or a duration such as 500ms, 1.5s, 10m or 1h30m",
        ),
        (
            "type: step, command: x, timeout: §0",
            "WORKFLOW.BAD_VALUE @ states.s.timeout: expected a duration from 1 ms to 604800 s",
        ),
        (
            "type: step, command: x, timeout: §[1]",
            "WORKFLOW.WRONG_TYPE @ states.s.timeout: expected a number of seconds, or a duration such as 500ms, 1.5s, 10m or 1h30m, found a list",
        ),
        (
            "type: step, command: x, continue_on_error: §yes",
            "WORKFLOW.WRONG_TYPE @ states.s.continue_on_error: expected true or false, found a string",
        ),
        (
            "type: step, command: x, retry: §{}",
            "WORKFLOW.MISSING_KEY @ states.s.retry: 'max_attempts' is missing",
        ),
        (
            "type: step, command: x, retry: {max_attempts: §0}",
            "WORKFLOW.BAD_VALUE @ states.s.retry.max_attempts: expected a whole number from 1 to 100, found 0",
        ),
        (
            "type: step, command: x, retry: {max_attempts: 2, backoff: §fibonacci}",
            "WORKFLOW.BAD_VALUE @ states.s.retry.backoff: expected constant or linear or exponential, found \"fibonacci\"",
        ),
        (
            "type: step, command: x, on_failure: §{status: 3}",
            "WORKFLOW.MISSING_KEY @ states.s.on_failure: 'message' is missing",
        ),
        (
            "type: step, command: x, on_failure: {message: m, status: §0}",
            "WORKFLOW.BAD_VALUE @ states.s.on_failure.status: expected a whole number from 1 to 255, found 0",
        ),
        (
            "type: step, command: x, on_failure: §faild",
            "WORKFLOW.UNKNOWN_STATE @ states.s.on_failure: state 'faild' not found; did you mean 'failed'?",
        ),
        (
            "type: step, command: x, transitions: [§{when: 'true'}]",
            "WORKFLOW.MISSING_KEY @ states.s.transitions[0]: 'goto' is missing",
        ),
        (
            "type: step, command: x, transitions: [{when: 'inputs.x §= 1', goto: done}]",
            "WORKFLOW.BAD_EXPRESSION @ states.s.transitions[0].when: use '=='",
        ),
        (
            "type: step, command: x, transitions: [{when: 'true', goto: §nowhere}]",
            "WORKFLOW.UNKNOWN_STATE @ states.s.transitions[0].goto: state 'nowhere' not found",
        ),
        ("type: operation", "WORKFLOW.MISSING_KEY 4:6 states.s: 'operation' is missing"),
        (
            "type: operation, operation: §kubectl",
            "WORKFLOW.BAD_VALUE @ states.s.operation: expected PLUGIN.OPERATION, such as kubernetes.kubectl_apply",
        ),
        (
            "type: operation, operation: §kubernets.kubectl_get",
            "MCP_PROXY.UNKNOWN_PLUGIN @ states.s.operation: plugin 'kubernets' not found; did you mean 'kubernetes'?",
        ),
        (
            "type: operation, operation: §kubernetes.kubectl_gte",
            "MCP_PROXY.UNKNOWN_OPERATION @ states.s.operation: plugin 'kubernetes' has no operation 'kubectl_gte'; did you mean 'kubectl_get'?",
        ),
        (
            "type: operation, operation: §strange.x",
            "MCP_PROXY.PLUGIN_NOT_APPROVED @ states.s.operation: plugin 'strange' is not approved: review it, then run 'countersign plugin approve strange'",
        ),
        (
            "type: operation, operation: kubernetes.kubectl_get, inputs: {a: ['§{{x}}']}",
            "WORKFLOW.BAD_TEMPLATE @ states.s.inputs.a[0]: write a value as {{.inputs.x}} or {{.states.S.Output}}, with the dot",
        ),
        ("type: parallel", "WORKFLOW.MISSING_KEY 4:6 states.s: 'parallel' is missing"),
        (
            "type: parallel, parallel: §[]",
            "WORKFLOW.BAD_PARALLEL @ states.s.parallel: a parallel state requires at least one state",
        ),
        (
            "type: parallel, parallel: [done]",
            "WORKFLOW.BAD_PARALLEL 4:3 states.s: 'done' is a terminal state and cannot be a branch",
        ),
        (
            "type: parallel, parallel: [s]",
            "WORKFLOW.BAD_PARALLEL 4:3 states.s: 's' would run twice at the same time",
        ),
        (
            "type: parallel, parallel: [§x], timeout: 3",
            "WORKFLOW.UNKNOWN_STATE @ states.s.parallel[0]: state 'x' not found; did you mean 's'?",
        ),
        (
            "type: parallel, parallel: [s], max_concurrent: §0",
            "WORKFLOW.BAD_VALUE @ states.s.max_concurrent: expected a whole number from 1 to 1000, found 0",
        ),
        (
            "type: parallel, parallel: [s], strategy: §all",
            "WORKFLOW.BAD_VALUE @ states.s.strategy: expected all_succeed or any_succeed or best_effort, found \"all\"; did you mean 'all_succeed'?",
        ),
    ];
    for (keys, expect) in table {
        let (text, expect) = placed(&with_state(keys), expect);
        let found = errors(&text);
        assert!(found.contains(&expect), "{keys}: {found:#?}");
    }
    let terminals = [
        (
            "status: §ok",
            "WORKFLOW.BAD_VALUE @ states.e.status: expected success or failure, found \"ok\"",
        ),
        (
            "§on_success: done",
            "WORKFLOW.UNKNOWN_KEY @ states.e.on_success: a terminal state does not have this \
             key; a step with a command does",
        ),
    ];
    for (keys, expect) in terminals {
        let text = with_states(&format!("  initial: e\n  e: {{type: terminal, {keys}}}"));
        let (text, expect) = placed(&text, expect);
        assert_eq!(errors(&text), [expect], "{keys}");
    }
}

#[test]
fn faults_of_agents_and_their_proxy_are_reported() {
    let table = [
        (
            "type: step, agent: §{prompt: p}",
            "WORKFLOW.MISSING_KEY @ states.s.agent: 'provider' is missing",
        ),
        (
            "type: agent, provider: §claud, prompt: p",
            "WORKFLOW.BAD_VALUE @ states.s.provider: expected claude or gemini or codex or opencode or openai_compatible, found \"claud\"; did you mean 'claude'?",
        ),
        ("type: agent, provider: claude", "WORKFLOW.MISSING_KEY 4:6 states.s: 'prompt' is missing"),
        (
            "type: agent, provider: claude, prompt: p, §agent: {}",
            "WORKFLOW.UNKNOWN_KEY @ states.s.agent: an agent state does not have this key; a step with an agent does",
        ),
        (
            "type: step, agent: {provider: claude, prompt: p, §optons: {}}",
            "WORKFLOW.UNKNOWN_KEY @ states.s.agent.optons: unknown key; did you mean 'options'?",
        ),
        (
            "A, options: {§config: {}}",
            "WORKFLOW.UNKNOWN_KEY @ states.s.options.config: claude does not support this option; only codex, opencode",
        ),
        (
            "A, options: {§temperature: 1}",
            "WORKFLOW.UNKNOWN_KEY @ states.s.options.temperature: claude does not support this option; only openai_compatible",
        ),
        (
            "A, options: {§modle: x}",
            "WORKFLOW.UNKNOWN_KEY @ states.s.options.modle: unknown key; did you mean 'model'?",
        ),
        (
            "A, options: {args: §x}",
            "WORKFLOW.WRONG_TYPE @ states.s.options.args: expected a list of texts, found a string",
        ),
        (
            "A, options: {env: {§A-B: x}}",
            "WORKFLOW.BAD_NAME @ states.s.options.env.A-B: a variable name must consist of letters, digits and '_'",
        ),
        (
            "A, options: {env: {§COUNTERSIGN_HOME: x}}",
            "WORKFLOW.BAD_NAME @ states.s.options.env.COUNTERSIGN_HOME: variables named COUNTERSIGN_… are not passed to agents",
        ),
        (
            "type: agent, provider: openai_compatible, prompt: p, options: {top_p: §2}",
            "WORKFLOW.BAD_VALUE @ states.s.options.top_p: expected 0 to 1, found 2",
        ),
        (
            "type: agent, provider: openai_compatible, prompt: p, options: {temperature: §2.5}",
            "WORKFLOW.BAD_VALUE @ states.s.options.temperature: expected 0 to 2, found 2.5",
        ),
        (
            "type: agent, provider: openai_compatible, prompt: p, options: {max_turns: §0}",
            "WORKFLOW.BAD_VALUE @ states.s.options.max_turns: expected a whole number from 1 to 1000, found 0",
        ),
        (
            "type: agent, provider: openai_compatible, prompt: p, options: {api: §chatt}",
            "WORKFLOW.BAD_VALUE @ states.s.options.api: expected chat or responses, found \"chatt\"; did you mean 'chat'?",
        ),
        (
            "type: agent, provider: openai_compatible, prompt: p, options: {headers: {§Host: x}}",
            "WORKFLOW.BAD_NAME @ states.s.options.headers.Host: this header is set by countersign itself (for a key, use api_key)",
        ),
        (
            "type: agent, provider: openai_compatible, prompt: p, options: {headers: {§\"a b\": x}}",
            "WORKFLOW.BAD_NAME @ states.s.options.headers[\"a b\"]: the name of a header must consist of letters, digits, '-', '_', '.'",
        ),
        (
            "type: agent, provider: openai_compatible, prompt: p, options: {max_completion_tokens: §0}",
            "WORKFLOW.BAD_VALUE @ states.s.options.max_completion_tokens: expected a whole number from 1 to 10000000, found 0",
        ),
        (
            "type: agent, provider: openai_compatible, prompt: p, options: {stream: §1}",
            "WORKFLOW.WRONG_TYPE @ states.s.options.stream: expected true or false, found a number",
        ),
        (
            "type: agent, provider: openai_compatible, prompt: p, options: {§args: []}",
            "WORKFLOW.UNKNOWN_KEY @ states.s.options.args: openai_compatible does not support this option; only claude, gemini, codex, opencode",
        ),
        (
            "A, mcp_proxy: {§enabled: true}",
            "MCP_PROXY.UNKNOWN_KEY @ states.s.mcp_proxy.enabled: unknown key; did you mean 'enable'?",
        ),
        (
            "A, mcp_proxy: {enable: true, plugin_tools: [{plugin: kubernetes, expose: [], §exposes: []}]}",
            "MCP_PROXY.UNKNOWN_KEY @ states.s.mcp_proxy.plugin_tools[0].exposes: unknown key; did you mean 'expose'?",
        ),
        (
            "A, mcp_proxy: {enable: §1}",
            "WORKFLOW.WRONG_TYPE @ states.s.mcp_proxy.enable: expected true or false, found a number",
        ),
        (
            "A, mcp_proxy: {enable: true, plugin_tools: [{plugin: §kubernetse, expose: [a]}]}",
            "MCP_PROXY.UNKNOWN_PLUGIN @ states.s.mcp_proxy.plugin_tools[0].plugin: plugin 'kubernetse' not found; did you mean 'kubernetes'?",
        ),
        (
            "A, mcp_proxy: {enable: true, plugin_tools: [{plugin: §strange, expose: [a]}]}",
            "MCP_PROXY.PLUGIN_NOT_APPROVED @ states.s.mcp_proxy.plugin_tools[0].plugin: plugin 'strange' is not approved: review it, then run 'countersign plugin approve strange'",
        ),
        (
            "A, mcp_proxy: {enable: true, plugin_tools: [{plugin: kubernetes, expose: [§kubectl_del]}]}",
            "MCP_PROXY.UNKNOWN_OPERATION @ states.s.mcp_proxy.plugin_tools[0].expose[0]: plugin 'kubernetes' has no operation 'kubectl_del'; did you mean 'kubectl_get'?",
        ),
        (
            "A, mcp_proxy: {enable: true, mcp_servers: [§gihub]}",
            "MCP_PROXY.UNKNOWN_SERVER @ states.s.mcp_proxy.mcp_servers[0]: server 'gihub' not found in the config; did you mean 'github'?",
        ),
        (
            "A, mcp_proxy: §{enable: true, intercept_builtins: false}",
            "MCP_PROXY.EMPTY_PROXY @ states.s.mcp_proxy: mcp_proxy is enabled but offers no tools: set intercept_builtins, or add plugin_tools or mcp_servers",
        ),
        (
            "A, mcp_proxy: §{enable: true, intercept_builtins: false, plugin_tools: [{plugin: kubernetes, expose: []}]}",
            "MCP_PROXY.EMPTY_PROXY @ states.s.mcp_proxy: mcp_proxy is enabled but offers no tools: set intercept_builtins, or add plugin_tools or mcp_servers",
        ),
        (
            "A, isolation: §always",
            "WORKFLOW.BAD_VALUE @ states.s.isolation: expected preferred or required, found \"always\"",
        ),
        (
            "A, isolation: §required",
            "WORKFLOW.ISOLATION @ states.s.isolation: isolation requires mcp_proxy with enable: true and intercept_builtins: true",
        ),
        (
            "A, isolation: §required, mcp_proxy: {enable: true, intercept_builtins: false, mcp_servers: [github]}",
            "WORKFLOW.ISOLATION @ states.s.isolation: isolation requires mcp_proxy with enable: true and intercept_builtins: true",
        ),
        (
            "A, isolation: required, mcp_proxy: {enable: true}, options: {args: [§--tools=Bash]}",
            "WORKFLOW.ISOLATION @ states.s.options.args[0]: --tools is not known to be safe under isolation",
        ),
        (
            "A, mcp_proxy: {enable: true}, options: {args: [--verbose, §--tools=Bash]}",
            "WORKFLOW.ISOLATION @ states.s.options.args[1]: --tools is not known to be safe under isolation",
        ),
        (
            "A, mcp_proxy: {enable: true}, options: {env: {§CLAUDE_CODE_SIMPLE: x, CLAUDE_CONFIG_DIR: y}}",
            "WORKFLOW.ISOLATION @ states.s.options.env.CLAUDE_CODE_SIMPLE: this variable affects the program's own tools or settings",
        ),
        (
            "type: agent, provider: opencode, prompt: p, mcp_proxy: {enable: true}, options: {config: {model: m, §mcp: {}}}",
            "WORKFLOW.ISOLATION @ states.s.options.config.mcp: mcp is not known to be safe under isolation",
        ),
        (
            "A, options: {model: §--yolo}",
            "WORKFLOW.BAD_VALUE @ states.s.options.model: a model's name cannot begin with '-'",
        ),
    ];
    for (keys, expect) in table {
        let keys = keys.replacen('A', AGENT, usize::from(keys.starts_with("A,")));
        let (text, expect) = placed(&with_state(&keys), expect);
        assert_eq!(errors(&text), [expect], "{keys}");
    }
}

#[test]
fn a_provider_that_keeps_its_own_tools_causes_a_warning() {
    let text = "mcp_proxy on provider=codex runs in coexistence mode. Built-in tools cannot be \
                disabled and may bypass the proxy. Use 'claude' or 'openai_compatible' for \
                guaranteed MCP-only isolation. Reason: version 0.1 is too old.";
    let codex = "type: agent, provider: codex, prompt: p";
    let warning = format!("MCP_PROXY.UNSUPPORTED_PROVIDER 4:30 states.s.provider: {text}");
    let enabled = format!("{codex}, mcp_proxy: {{enable: true}}");
    assert_eq!(warnings(&with_state(&enabled)), std::slice::from_ref(&warning));
    let additive = format!(
        "{codex}, mcp_proxy: {{enable: true, intercept_builtins: false, mcp_servers: [github]}}"
    );
    assert_eq!(warnings(&with_state(&additive)), [""; 0]);
    assert_eq!(warnings(&with_state(codex)), [""; 0]);
    let another = format!("{enabled}, options: {{command: ./codex-of-mine}}");
    assert_eq!(warnings(&with_state(&another)), [""; 0], "another program, another answer");
    let free = format!("{enabled}, options: {{args: [--search]}}");
    assert_eq!(
        warnings(&with_state(&free)),
        std::slice::from_ref(&warning),
        "no isolation to undo"
    );
    let required = format!("{enabled}, isolation: required");
    assert_eq!(errors(&with_state(&required)), [warning]);
}

#[test]
fn every_fault_of_every_step_at_once_in_order() {
    let text = with_states(
        "  initial: a\n  \
         a: {type: agent, provider: claude, prompt: p, mcp_proxy: {enable: true, intercept_builtins: false}, on_success: b}\n  \
         b: {type: agent, provider: claude, prompt: '{{.inputs.nope}}', mcp_proxy: {nable: true}, on_success: gone}\n  \
         c: {type: agent, provider: claude, prompt: p, mcp_proxy: {enable: true, mcp_servers: [x], plugin_tools: [{plugin: y, expose: [z]}]}}",
    );
    let codes: Vec<String> = errors(&text)
        .iter()
        .map(|error| error.split(' ').take(3).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        codes,
        [
            "MCP_PROXY.EMPTY_PROXY 4:60 states.a.mcp_proxy:",
            "WORKFLOW.BAD_TEMPLATE 5:47 states.b.prompt:",
            "MCP_PROXY.UNKNOWN_KEY 5:78 states.b.mcp_proxy.nable:",
            "WORKFLOW.UNKNOWN_STATE 5:104 states.b.on_success:",
            "WORKFLOW.MISSING_KEY 6:3 states.c:",
            "MCP_PROXY.UNKNOWN_SERVER 6:89 states.c.mcp_proxy.mcp_servers[0]:",
            "MCP_PROXY.UNKNOWN_PLUGIN 6:117 states.c.mcp_proxy.plugin_tools[0].plugin:",
        ]
    );
    let json = read(&text, &known()).json();
    assert_eq!(json["valid"], false);
    assert_eq!(json["workflow"], "n");
    assert_eq!(
        json["errors"][0],
        serde_json::json!({
            "code": "USER.MCP_PROXY.EMPTY_PROXY",
            "message": "mcp_proxy is enabled but offers no tools: set intercept_builtins, or add plugin_tools or mcp_servers",
            "path": "states.a.mcp_proxy", "line": 4, "column": 60,
        })
    );
}

#[test]
fn templates_are_checked_where_they_stand() {
    let table = [
        (
            "command: 'echo §{{.inputs.nam}}'",
            "states.s.command: input 'nam' not found; did you mean 'name'?",
        ),
        ("command: 'echo §{{.states.tt.Output}}'", "states.s.command: state 'tt' not found"),
        (
            "command: 'echo §{{.states.done.Output}}'",
            "states.s.command: 'done' is a terminal state and has no output",
        ),
        (
            "command: \"echo '§{{.inputs.name}}'\"",
            "states.s.command: a value is quoted automatically: write it outside of quotes, as \
             in 'a '{{.inputs.x}}' b'",
        ),
        (
            "command: 'echo $(cat <<E §{{.inputs.name}})'",
            "states.s.command: a value after '<<' is not supported: here-documents are not quoted",
        ),
        ("command: x, dir: '§{{.env}}'", "states.s.dir: write env.NAME"),
    ];
    for (keys, expect) in table {
        let text = with_state(&format!("type: step, {keys}"));
        let text = format!("inputs: [{{name: name}}]\n{text}");
        let (text, expect) = placed(&text, &format!("WORKFLOW.BAD_TEMPLATE @ {expect}"));
        assert_eq!(errors(&text), [expect], "{keys}");
    }
    let block = "name: n\nstates:\n  initial: s\n  s:\n    type: step\n    command: |\n      echo ä\n      echo ä {{.inputs.a}} {{.inputs.b}}\n    on_success: s\n    dir: \"ä {{.x}}\"\n";
    let places: Vec<String> =
        errors(block).iter().map(|e| e.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(places, ["8:14", "8:28", "10:13"]);
}

#[test]
fn unreachable_states_and_missing_ends_are_reported() {
    let loops = with_states(
        "  initial: a\n  a: {type: step, command: x, on_success: b}\n  b: {type: step, command: x, on_success: a, on_failure: a}",
    );
    assert_eq!(
        errors(&loops),
        ["WORKFLOW.NO_TERMINAL 4:3 states: no terminal state can be reached from 'initial'"]
    );
    let retry =
        with_states("  initial: a\n  a: {type: step, command: x, on_success: done, on_failure: a}");
    assert_eq!(
        warnings(&retry),
        ["WORKFLOW.UNREACHABLE 6:3 states.failed: this state cannot be reached from 'initial'"]
    );
    let nowhere = with_states(
        "  initial: a\n  a: {type: step, command: x, transitions: [{when: 'true', goto: done}]}",
    );
    assert_eq!(
        errors(&nowhere),
        ["WORKFLOW.MISSING_KEY 4:3 states.a: 'on_success' is missing: name the next state"]
    );
    let default = nowhere.replace("when: 'true', ", "");
    assert_eq!(errors(&default), [""; 0]);
    let idle = with_states(
        "  initial: p\n  p: {type: parallel, parallel: [a], on_success: done, on_failure: failed}\n  \
         a: {type: step, command: x, on_success: done, continue_on_error: true, on_failure: failed}\n  \
         i: {type: terminal}",
    );
    let idle = idle.replace("  i: {type: terminal}\n", "");
    assert_eq!(
        warnings(&idle),
        [
            "WORKFLOW.NO_EFFECT 5:3 states.a.on_failure: no effect: with continue_on_error, a failure continues with on_success",
            "WORKFLOW.NO_EFFECT 5:3 states.a: no effect: after a branch, the run continues with its parallel state; on_success, on_failure and transitions are ignored",
        ]
    );
    let both = with_states(
        "  initial: a\n  a: {type: step, command: x, on_success: p, on_failure: failed}\n  \
         p: {type: parallel, parallel: [a, q], on_success: done}\n  \
         q: {type: parallel, parallel: [b]}\n  b: {type: step, command: x}",
    );
    assert_eq!(warnings(&both), [""; 0]);
}

#[test]
fn parallel_states_may_not_form_a_cycle_or_share_branches() {
    let text = |states: &str| with_states(&format!("  initial: p\n{states}"));
    let step = "  a: {type: step, command: x}\n";
    let ring = "  p: {type: parallel, parallel: [q], on_success: done}\n  q: {type: parallel, parallel: [p]}";
    assert_eq!(
        errors(&text(ring)),
        [
            "WORKFLOW.BAD_PARALLEL 4:3 states.p: 'p' would run twice at the same time",
            "WORKFLOW.BAD_PARALLEL 5:3 states.q: 'q' would run twice at the same time",
        ]
    );
    let shared = format!(
        "{step}  p: {{type: parallel, parallel: [a, q], on_success: done}}\n  q: {{type: parallel, parallel: [a]}}"
    );
    assert_eq!(
        errors(&text(&shared)),
        ["WORKFLOW.BAD_PARALLEL 5:3 states.p: 'a' would run twice at the same time"]
    );
    let twice = format!("{step}  p: {{type: parallel, parallel: [a, a], on_success: done}}");
    assert_eq!(
        errors(&text(&twice)),
        ["WORKFLOW.BAD_PARALLEL 5:37 states.p.parallel[1]: 'a' is listed twice"]
    );
}

#[test]
fn faults_of_declared_inputs_are_reported() {
    let table = [
        ("x: 1", "WORKFLOW.WRONG_TYPE 2:9 inputs: expected a list of inputs, found a mapping"),
        ("- §{type: string}", "WORKFLOW.MISSING_KEY @ inputs[0]: 'name' is missing"),
        (
            "- {name: §a.b}",
            "WORKFLOW.BAD_NAME @ inputs[0].name: a name must consist of 1 to 64 letters, digits, '_' and '-'",
        ),
        ("- {name: a}\n- §{name: a}", "WORKFLOW.BAD_NAME @ inputs[1]: duplicate input 'a'"),
        (
            "- {name: a, type: §float}",
            "WORKFLOW.BAD_VALUE @ inputs[0].type: expected string or integer or boolean, found \"float\"",
        ),
        (
            "- {name: a, §typ: x}",
            "WORKFLOW.UNKNOWN_KEY @ inputs[0].typ: unknown key; did you mean 'type'?",
        ),
        (
            "- {name: a, required: §1}",
            "WORKFLOW.WRONG_TYPE @ inputs[0].required: expected true or false, found a number",
        ),
        (
            "- {name: a, type: integer, default: §many}",
            "WORKFLOW.BAD_INPUT @ inputs[0].default: expected a whole number, found \"many\"",
        ),
        (
            "- {name: a, default: §c, validation: {enum: [a, b]}}",
            "WORKFLOW.BAD_INPUT @ inputs[0].default: expected \"a\" or \"b\", found \"c\"",
        ),
        (
            "- {name: a, validation: {pattern: §'('}}",
            "WORKFLOW.BAD_INPUT @ inputs[0].validation.pattern: not a valid pattern: unclosed group",
        ),
        (
            "- {name: a, validation: {pattern: §'(\\w{900}){900}'}}",
            "WORKFLOW.BAD_INPUT @ inputs[0].validation.pattern: not a valid pattern: Compiled regex exceeds size limit of 1048576 bytes.",
        ),
        (
            "- {name: a, validation: {§min: 1}}",
            "WORKFLOW.BAD_INPUT @ inputs[0].validation.min: min applies only to inputs of type integer",
        ),
        (
            "- {name: a, type: integer, validation: §{min: 3, max: 1}}",
            "WORKFLOW.BAD_INPUT @ inputs[0].validation: min 3 is greater than max 1",
        ),
        (
            "- {name: a, type: integer, validation: {enum: [§x]}}",
            "WORKFLOW.BAD_INPUT @ inputs[0].validation.enum[0]: expected a whole number, found \"x\"",
        ),
        (
            "- {name: a, validation: {enum: §[]}}",
            "WORKFLOW.BAD_INPUT @ inputs[0].validation.enum: an empty list allows no value",
        ),
    ];
    for (inputs, expect) in table {
        let inputs = if inputs.starts_with('-') {
            format!("inputs:\n{inputs}")
        } else {
            format!("inputs: {{{inputs}}}")
        };
        let text =
            format!("name: n\n{inputs}\nstates: {{initial: done, done: {{type: terminal}}}}");
        let (text, expect) = placed(&text, expect);
        assert_eq!(errors(&text), [expect], "{inputs}");
    }
}

#[test]
fn given_inputs_are_checked_all_at_once() {
    let flow = workflow(
        "name: n\ninputs:\n- {name: env, required: true, validation: {enum: [dev, prod]}}\n\
         - {name: count, type: integer, default: 3, validation: {min: 1, max: 9}}\n\
         - {name: dry, type: boolean}\n- {name: tag, validation: {pattern: '^v[0-9]+$'}}\n\
         states: {initial: done, done: {type: terminal}}",
    );
    let inputs = |given: &[(&str, &str)]| {
        let given: Vec<(String, String)> =
            given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        flow.inputs(&given)
    };
    let good = inputs(&[("env", "dev"), ("dry", "true"), ("tag", "v12")]).unwrap();
    assert_eq!(good.get("count"), Some(&3.into()));
    assert_eq!(good.get("dry"), Some(&true.into()));
    assert_eq!(good.iter().count(), 4);
    assert_eq!(inputs(&[("env", "dev")]).unwrap().get("dry"), None);
    let faults = |given: &[(&str, &str)]| -> Vec<String> {
        inputs(given).unwrap_err().iter().map(told).collect()
    };
    assert_eq!(
        faults(&[
            ("evn", "x"),
            ("count", "ten"),
            ("dry", "yes"),
            ("tag", "1"),
            ("tag", "v1"),
            ("tag", "v1")
        ]),
        [
            "WORKFLOW.BAD_INPUT 0:0 inputs.evn: unknown input; did you mean 'env'?",
            "WORKFLOW.BAD_INPUT 4:3 inputs.count: expected a whole number, found \"ten\"",
            "WORKFLOW.BAD_INPUT 5:3 inputs.dry: expected true or false, found \"yes\"",
            "WORKFLOW.BAD_INPUT 6:3 inputs.tag: \"1\" does not match ^v[0-9]+$",
            "WORKFLOW.BAD_INPUT 6:3 inputs.tag: given twice",
            "WORKFLOW.BAD_INPUT 3:3 inputs.env: required: pass -i env=…",
        ]
    );
    assert_eq!(
        faults(&[("env", "test"), ("count", "0"), ("count", "10")]),
        [
            "WORKFLOW.BAD_INPUT 3:3 inputs.env: expected \"dev\" or \"prod\", found \"test\"",
            "WORKFLOW.BAD_INPUT 4:3 inputs.count: expected 1 or more, found 0",
            "WORKFLOW.BAD_INPUT 4:3 inputs.count: expected 9 or less, found 10",
        ]
    );
}
