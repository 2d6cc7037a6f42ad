//! Facts about the machine: agents, servers, folders, models and plugins that a step cannot use.

use serde_json::json;

use super::*;

fn told_with(text: &str, known: &Inventory) -> (Vec<String>, Vec<String>) {
    let read = read(text, known);
    (read.errors.iter().map(told).collect(), read.warnings.iter().map(told).collect())
}

#[test]
fn an_agent_or_server_that_cannot_be_used_is_an_error_where_it_is_named() {
    let mut known = known();
    let gone = AgentSupport::Unusable("program 'gemini' not found".to_owned());
    known.agents.insert((Provider::Gemini, None), gone.clone());
    known.agents.insert((Provider::Claude, Some("./mine".to_owned())), gone);
    let off = ServerAvailability::Unusable("it is disabled".to_owned());
    known.servers.insert("off".to_owned(), off);
    for (keys, expect) in [
        (
            "type: agent, prompt: p, provider: §gemini",
            "WORKFLOW.AGENT_UNAVAILABLE @ states.s.provider: program 'gemini' not found",
        ),
        (
            "type: agent, prompt: p, provider: claude, options: {command: §./mine}",
            "WORKFLOW.AGENT_UNAVAILABLE @ states.s.options.command: program 'gemini' not found",
        ),
        (
            "type: agent, prompt: p, provider: claude, mcp_proxy: {enable: true, mcp_servers: [§off]}",
            "MCP_PROXY.SERVER_UNUSABLE @ states.s.mcp_proxy.mcp_servers[0]: server 'off' cannot be used: it is disabled",
        ),
        (
            "type: agent, prompt: §\"\\n\", provider: claude",
            "WORKFLOW.BAD_VALUE @ states.s.prompt: the prompt is empty",
        ),
    ] {
        let (text, expect) = placed(&with_state(keys), expect);
        assert_eq!(told_with(&text, &known), (vec![expect], vec![]), "{keys}");
    }
}

#[test]
fn a_missing_folder_is_an_error_only_where_nothing_can_have_created_it() {
    let missing = || StepFaults {
        folder: Some(FolderFault::Missing("the folder 'x' does not exist".to_owned())),
        ..StepFaults::default()
    };
    let names = ["first", "later", "left", "right"];
    let steps = names.map(|name| (name.to_owned(), missing()));
    let known = Inventory { steps: steps.into(), ..known() };
    let step = |next: &str| format!("{{type: step, command: pwd, dir: x{next}}}");
    let text = with_states(&format!(
        "  initial: both\n  both: {{type: parallel, parallel: [left, first], on_success: later}}\n  \
         left: {}\n  first: {}\n  later: {}\n  right: {}",
        step(""),
        step(""),
        step(", on_success: right"),
        step(", on_success: done"),
    ));
    let (errors, warnings) = told_with(&text, &known);
    let places = |faults: &[String]| -> Vec<String> {
        faults.iter().map(|fault| fault.split(' ').nth(2).unwrap().to_owned()).collect()
    };
    assert_eq!(places(&errors), ["states.left.dir:", "states.first.dir:"], "{errors:?}");
    assert_eq!(places(&warnings), ["states.later.dir:", "states.right.dir:"], "{warnings:?}");
    assert!(warnings[0].ends_with("; an earlier step must create it"), "{warnings:?}");
}

#[test]
fn faults_of_a_models_options_are_reported_at_the_option_or_at_the_block() {
    let fault = |option| SettingFault { option, message: format!("{option} is wrong") };
    let faults =
        StepFaults { options: vec![fault("base_url"), fault("model")], ..StepFaults::default() };
    let known = Inventory { steps: [("s".to_owned(), faults)].into(), ..known() };
    let agent = "type: agent, provider: openai_compatible, prompt: p";
    let text = with_state(&format!("{agent}, options: {{base_url: x}}"));
    let (errors, _) = told_with(&text, &known);
    assert_eq!(
        errors,
        [
            "WORKFLOW.BAD_VALUE 4:69 states.s.options: model is wrong",
            "WORKFLOW.BAD_VALUE 4:80 states.s.options.base_url: base_url is wrong",
        ]
    );
    let (errors, _) = told_with(&with_state(agent), &known);
    assert_eq!(errors.len(), 2);
    assert!(errors.iter().all(|error| error.contains(" states.s: ")), "{errors:?}");
}

#[test]
fn the_inputs_of_an_operation_are_checked_as_far_as_they_are_known() {
    let inputs = json!({
        "type": "object", "additionalProperties": false, "required": ["file", "n"],
        "properties": {"file": {"type": "string"}, "n": {"type": "integer"}},
    });
    let operations = BTreeMap::from([
        ("apply".to_owned(), KnownOperation::Usable { inputs }),
        ("odd".to_owned(), KnownOperation::Unusable("input 'x': unknown type".to_owned())),
    ]);
    let mut known = known();
    known.plugins.insert("k".to_owned(), KnownPlugin::Approved { operations });
    for (keys, expect) in [
        ("operation: k.apply, inputs: {file: a, n: 3}", None),
        ("operation: k.apply, inputs: {file: '{{.workflow.id}}', n: '{{.workflow.id}}'}", None),
        (
            "operation: k.apply, inputs: §{file: a}",
            Some("WORKFLOW.BAD_VALUE @ states.s.inputs: invalid arguments: n is required"),
        ),
        (
            "operation: §k.apply",
            Some(
                "WORKFLOW.BAD_VALUE @ states.s.operation: invalid arguments: file is required; n is required",
            ),
        ),
        (
            "operation: k.apply, inputs: §{file: '{{.workflow.id}}', n: 1, m: '{{.workflow.id}}'}",
            Some("WORKFLOW.BAD_VALUE @ states.s.inputs: k.apply has no input 'm'"),
        ),
        (
            "operation: §k.odd",
            Some("MCP_PROXY.UNKNOWN_OPERATION @ states.s.operation: input 'x': unknown type"),
        ),
    ] {
        let (text, expect) =
            placed(&with_state(&format!("type: operation, {keys}")), expect.unwrap_or_default());
        let expected = if expect.is_empty() { vec![] } else { vec![expect] };
        assert_eq!(told_with(&text, &known).0, expected, "{keys}");
    }
}

#[test]
fn a_draft_names_what_a_faulty_workflow_needs() {
    let text = with_states(
        "  initial: a\n  a: {type: agent, provider: gemini, prompt: p, on_success: nowhere}\n  \
         b: {type: step, commando: x}",
    );
    let draft = draft(&text).unwrap();
    assert_eq!(draft.states.len(), 3);
    assert_eq!(draft.state("a").unwrap().agent().unwrap().provider, Provider::Gemini);
    assert!(super::draft("[").is_none() && super::draft("a: b").is_none());
}
