//! Runs: the order in which states start, and how runs end.

use serde_json::json;

use super::*;

fn machine(text: &str) -> Machine {
    machine_with(text, &[])
}

fn machine_with(text: &str, given: &[(&str, &str)]) -> Machine {
    let flow = workflow(text);
    let given: Vec<(String, String)> =
        given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let inputs = flow.inputs(&given).unwrap();
    Machine::new(flow, inputs, "run-1", |name| (name == "WHO").then(|| "me".to_owned()))
}

/// Abbreviates each action.
fn told_actions(actions: &[MachineAction]) -> Vec<String> {
    let told = actions.iter().map(|action| match action {
        MachineAction::Start { state, attempt, after } => match (attempt, after.as_millis()) {
            (1, 0) => state.clone(),
            (attempt, after) => format!("{state} #{attempt} after {after} ms"),
        },
        MachineAction::Cancel { state } => format!("cancel {state}"),
        MachineAction::Finish(finish) => {
            let Finish { ending, state, message, exit_status, code } = finish;
            let message = message.as_deref().unwrap_or("-");
            let code = code.map_or("", |code| code.as_str());
            format!("{} {exit_status} in {state}: {message} {code}", ending.name())
                .trim()
                .to_owned()
        }
    });
    told.collect()
}

fn begin(machine: &mut Machine) -> Vec<String> {
    told_actions(&machine.on(MachineEvent::Begin))
}

fn end(machine: &mut Machine, state: &str, status: Status) -> Vec<String> {
    end_with(machine, state, StepOutcome::new(status))
}

fn end_with(machine: &mut Machine, state: &str, outcome: StepOutcome) -> Vec<String> {
    told_actions(&machine.on(MachineEvent::Ended { state: state.to_owned(), outcome }))
}

fn step(name: &str, keys: &str) -> String {
    format!("  {name}: {{type: step, command: x, {keys}}}\n")
}

const OK: Status = Status::Success;
const NO: Status = Status::Failure;

#[test]
fn steps_follow_each_other_to_the_end() {
    let text = with_states(&format!(
        "  initial: a\n{}{}",
        step("a", "on_success: b, on_failure: failed"),
        step(
            "b",
            "on_success: done, on_failure: {message: 'no luck, {{.workflow.name}}', status: 7}"
        )
    ));
    let mut run = machine(&text);
    assert_eq!(begin(&mut run), ["a"]);
    assert_eq!(begin(&mut run), [""; 0]);
    assert_eq!(end(&mut run, "b", OK), [""; 0], "b is not under way");
    assert_eq!(end(&mut run, "a", OK), ["b"]);
    assert!(!run.is_finished());
    assert_eq!(end(&mut run, "b", OK), ["success 0 in done: -"]);
    assert!(run.is_finished());
    assert_eq!(end(&mut run, "b", OK), [""; 0]);
    let mut run = machine(&text);
    begin(&mut run);
    assert_eq!(end(&mut run, "a", NO), ["failure 3 in failed: -"]);
    let mut run = machine(&text);
    begin(&mut run);
    end(&mut run, "a", OK);
    assert_eq!(end(&mut run, "b", Status::TimedOut), ["failure 7 in b: no luck, n"]);
}

#[test]
fn a_failure_that_leads_nowhere_ends_the_run() {
    let text = with_states(&format!("  initial: a\n{}", step("a", "on_success: done")));
    let mut run = machine(&text);
    begin(&mut run);
    assert_eq!(end(&mut run, "a", NO), ["failure 3 in a: state 'a' ended with status failure"]);
    let text = with_states(&format!(
        "  initial: a\n{}",
        step("a", "on_success: done, continue_on_error: true")
    ));
    let mut run = machine(&text);
    begin(&mut run);
    assert_eq!(end(&mut run, "a", NO), ["success 0 in done: -"]);
    assert_eq!(run.outcome("a").unwrap().status, NO);
}

#[test]
fn the_first_transition_that_holds_is_taken() {
    let text = with_states(&format!(
        "  initial: a\n{}{}",
        step(
            "a",
            "on_success: done, transitions: [{when: 'states.a.ExitCode == 2', goto: b}, \
             {when: 'states.a.ExitCode >= 2', goto: failed}]"
        ),
        step("b", "transitions: [{goto: done}]"),
    ));
    let ended = |code: i32, status: Status| {
        let mut run = machine(&text);
        begin(&mut run);
        end_with(&mut run, "a", StepOutcome { exit_code: Some(code), ..StepOutcome::new(status) })
    };
    assert_eq!(ended(0, OK), ["success 0 in done: -"]);
    assert_eq!(ended(2, NO), ["b"]);
    assert_eq!(ended(3, OK), ["failure 3 in failed: -"]);
    let mut run = machine(&text);
    begin(&mut run);
    end_with(&mut run, "a", StepOutcome { exit_code: Some(2), ..StepOutcome::new(OK) });
    assert_eq!(end(&mut run, "b", NO), ["success 0 in done: -"]);
}

#[test]
fn failed_attempts_are_repeated_after_their_delay() {
    let retry = |backoff: &str| {
        let keys = format!(
            "on_success: done, on_failure: failed, retry: {{max_attempts: 4, initial_delay: 100ms, backoff: {backoff}}}"
        );
        machine(&with_states(&format!("  initial: a\n{}", step("a", &keys))))
    };
    for (backoff, waits) in [
        ("constant", [100, 100, 100]),
        ("linear", [100, 200, 300]),
        ("exponential", [100, 200, 400]),
    ] {
        let mut run = retry(backoff);
        assert_eq!(begin(&mut run), ["a"]);
        for (index, wait) in waits.iter().enumerate() {
            let expect = format!("a #{} after {wait} ms", index + 2);
            assert_eq!(end(&mut run, "a", Status::TimedOut), [expect]);
        }
        assert_eq!(end(&mut run, "a", NO), ["failure 3 in failed: -"]);
    }
    let mut run = retry("constant");
    begin(&mut run);
    end(&mut run, "a", NO);
    assert_eq!(end(&mut run, "a", OK), ["success 0 in done: -"]);
    let mut run = retry("constant");
    begin(&mut run);
    assert_eq!(end(&mut run, "a", Status::Cancelled), ["failure 3 in failed: -"], "not worth it");
    for status in [NO, Status::TimedOut] {
        let mut run = retry("constant");
        begin(&mut run);
        let unclear = StepOutcome { is_unclear: true, ..StepOutcome::new(status) };
        let ended = end_with(&mut run, "a", unclear);
        assert_eq!(ended, ["failure 3 in failed: -"], "it could happen twice");
    }
}

fn parallel(strategy: &str, keys: &str) -> Machine {
    let branches: String = ["a", "b", "c"]
        .iter()
        .map(|name| format!("  {name}: {{type: step, command: x}}\n"))
        .collect();
    machine(&with_states(&format!(
        "  initial: p\n  p: {{type: parallel, parallel: [a, b, c], strategy: {strategy}, {keys} on_success: done, on_failure: failed}}\n{branches}"
    )))
}

#[test]
fn all_succeed_stops_at_the_first_failure() {
    let mut run = parallel("all_succeed", "");
    assert_eq!(begin(&mut run), ["a", "b", "c"]);
    assert_eq!(end(&mut run, "b", OK), [""; 0]);
    assert_eq!(end(&mut run, "a", OK), [""; 0]);
    assert_eq!(end(&mut run, "c", OK), ["success 0 in done: -"]);
    assert_eq!(
        run.outcome("p").unwrap().json,
        Some(json!({"b": "success", "a": "success", "c": "success"}))
    );
    let mut run = parallel("all_succeed", "");
    begin(&mut run);
    assert_eq!(end(&mut run, "b", NO), ["cancel a", "cancel c"]);
    assert_eq!(end(&mut run, "a", Status::Cancelled), [""; 0]);
    assert_eq!(
        end(&mut run, "c", NO),
        ["failure 3 in failed: -"],
        "all have ended before it goes on"
    );
    assert_eq!(run.outcome("a").unwrap().status, Status::Cancelled);
}

#[test]
fn any_succeed_stops_at_the_first_success() {
    let mut run = parallel("any_succeed", "max_concurrent: 2,");
    assert_eq!(begin(&mut run), ["a", "b"]);
    assert_eq!(end(&mut run, "a", NO), ["c"]);
    assert_eq!(end(&mut run, "c", OK), ["cancel b"]);
    assert_eq!(end(&mut run, "b", Status::Cancelled), ["success 0 in done: -"]);
    let mut run = parallel("any_succeed", "");
    begin(&mut run);
    end(&mut run, "a", NO);
    end(&mut run, "b", NO);
    assert_eq!(end(&mut run, "c", NO), ["failure 3 in failed: -"]);
    let mut run = parallel("any_succeed", "max_concurrent: 1,");
    begin(&mut run);
    assert_eq!(end(&mut run, "a", OK), ["success 0 in done: -"], "the rest never begins");
}

#[test]
fn best_effort_waits_for_all() {
    let mut run = parallel("best_effort", "max_concurrent: 1,");
    assert_eq!(begin(&mut run), ["a"]);
    assert_eq!(end(&mut run, "a", NO), ["b"]);
    assert_eq!(end(&mut run, "b", NO), ["c"]);
    assert_eq!(end(&mut run, "c", NO), ["success 0 in done: -"]);
}

#[test]
fn branches_retry_nest_and_may_go_on_after_errors() {
    let text = with_states(
        "  initial: p\n  p: {type: parallel, parallel: [q, a], on_success: done, on_failure: failed}\n  \
         q: {type: parallel, parallel: [b, c], strategy: any_succeed}\n  \
         a: {type: step, command: x, continue_on_error: true}\n  \
         b: {type: step, command: x, retry: {max_attempts: 2, initial_delay: 0}}\n  \
         c: {type: step, command: x}",
    );
    let mut run = machine(&text);
    assert_eq!(begin(&mut run), ["b", "c", "a"]);
    assert_eq!(end(&mut run, "b", NO), ["b #2 after 0 ms"]);
    assert_eq!(end(&mut run, "a", NO), [""; 0], "counts as a success");
    assert_eq!(end(&mut run, "c", OK), ["cancel b"]);
    assert_eq!(end(&mut run, "b", NO), ["success 0 in done: -"], "not tried again once cancelled");
    let mut run = machine(&text);
    begin(&mut run);
    end(&mut run, "c", NO);
    end(&mut run, "b", NO);
    assert_eq!(end(&mut run, "b", NO), ["cancel a"]);
    assert_eq!(end(&mut run, "a", Status::Cancelled), ["failure 3 in failed: -"]);
}

#[test]
fn a_cancelled_run_ends_once_all_of_it_has() {
    let mut run = parallel("best_effort", "max_concurrent: 2,");
    begin(&mut run);
    assert_eq!(told_actions(&run.on(MachineEvent::Cancel)), ["cancel a", "cancel b"]);
    assert_eq!(told_actions(&run.on(MachineEvent::Cancel)), [""; 0]);
    assert_eq!(end(&mut run, "a", OK), [""; 0], "c is not begun");
    assert_eq!(end(&mut run, "b", NO), ["cancelled 130 in p: cancelled"]);
    assert_eq!(
        told_actions(&parallel("best_effort", "").on(MachineEvent::Cancel)),
        ["cancelled 130 in p: cancelled"]
    );
    let keys = "on_success: done, retry: {max_attempts: 3}";
    let mut run = machine(&with_states(&format!("  initial: a\n{}", step("a", keys))));
    begin(&mut run);
    assert_eq!(end(&mut run, "a", NO), ["a #2 after 1000 ms"]);
    assert_eq!(told_actions(&run.on(MachineEvent::Cancel)), ["cancel a"]);
    assert_eq!(end(&mut run, "a", Status::Cancelled), ["cancelled 130 in a: cancelled"]);
}

#[test]
fn a_loop_that_does_not_end_is_ended() {
    let mut run = machine(&with_states(&format!(
        "  initial: a\n{}",
        step("a", "on_success: done, on_failure: a")
    )));
    begin(&mut run);
    let mut started = 1;
    let last = loop {
        let actions = end(&mut run, "a", NO);
        if actions != ["a"] {
            break actions;
        }
        started += 1;
        assert!(started <= 1_000);
    };
    assert_eq!(started, 1_000);
    assert_eq!(
        last,
        [
            "failure 3 in a: the run visited 1000 states without reaching a terminal state USER.WORKFLOW.VISIT_LIMIT"
        ]
    );
    assert_eq!(end(&mut run, "a", NO), [""; 0]);
}

#[test]
fn values_are_inserted_into_terminal_messages() {
    let text = "name: n\nstates:\n  initial: a\n  a: {type: step, command: x, on_success: failed, on_failure: odd}\n  \
                b: {type: step, command: x, on_success: a}\n  \
                failed: {type: terminal, status: failure, message: \"tests failed: {{.states.a.Output}}\"}\n  \
                odd: {type: terminal, message: \"{{.states.b.Output}}\"}\n";
    let mut run = machine(text);
    begin(&mut run);
    let outcome = StepOutcome { output: "3 of 4\n".to_owned(), ..StepOutcome::new(OK) };
    assert_eq!(end_with(&mut run, "a", outcome), ["failure 3 in failed: tests failed: 3 of 4"]);
    let mut run = machine(text);
    begin(&mut run);
    assert_eq!(
        end(&mut run, "a", NO),
        [
            "failure 3 in odd: cannot fill in the message of 'odd': {{.states.b.Output}}: state 'b' has not run USER.WORKFLOW.BAD_TEMPLATE"
        ]
    );
}

#[test]
fn outcomes_are_kept_bounded() {
    let text =
        with_states(&format!("  initial: a\n{}", step("a", "on_success: a, on_failure: done")));
    let mut run = machine(&text);
    begin(&mut run);
    let long = format!("[{}]", "é".repeat(3 * 1024 * 1024));
    let (output, stderr) = (long.clone(), long);
    end_with(&mut run, "a", StepOutcome { output, stderr, ..StepOutcome::new(OK) });
    let kept = run.outcome("a").unwrap();
    assert!(kept.output.len() < 4_200_000 && kept.stderr.len() < 4_200_000 && kept.is_cut);
    assert!(kept.output.starts_with("[é") && kept.output.ends_with("é]"));
    assert!(kept.output.contains("bytes omitted"));
    assert_eq!(kept.json, None);
}

#[test]
fn steps_are_resolved_with_the_values_of_now() {
    let text = with_states(
        "  initial: a\n  a: {type: step, command: 'cat {{.inputs.file}}', dir: '/tmp/{{.workflow.id}}', on_success: b}\n  \
         b: {type: agent, provider: codex, prompt: 'Fix {{.states.a.JSON.why}} ({{.states.a.JSON}})', system_prompt: '{{.env.WHO}}', \
         options: {model: '{{.inputs.file}}', args: ['-v', '{{.inputs.n}}'], env: {N: '{{.inputs.n}}'}, config: {deep: [{x: '{{.env.WHO}}', n: 1}]}}, on_success: c}\n  \
         c: {type: operation, operation: kubernetes.kubectl_get, inputs: {n: '{{.inputs.n}}', text: 'n={{.inputs.n}}', why: '{{.states.a.JSON}}'}, on_success: d}\n  \
         d: {type: agent, provider: openai_compatible, prompt: '{{.env.GONE}}', on_success: e}\n  \
         e: {type: agent, provider: openai_compatible, prompt: p, options: {api_key: '{{.env.WHO}}'}, on_success: done}",
    )
    .replacen("states:", "inputs: [{name: file}, {name: n, type: integer, default: 4}]\nstates:", 1);
    let evil = "it's $(touch pwned)";
    let mut run = machine_with(&text, &[("file", evil)]);
    begin(&mut run);
    let ResolvedStep::Command { command, dir } = run.resolve("a").unwrap() else { panic!() };
    assert_eq!(command, "__value_1='it'\\''s $(touch pwned)'\ncat \"${__value_1}\"");
    assert_eq!(dir.as_deref(), Some("/tmp/run-1"));
    let fault = run.resolve("b").unwrap_err();
    assert_eq!(
        told(&fault),
        "WORKFLOW.BAD_TEMPLATE 6:6 states.b.prompt: {{.states.a.JSON.why}}: state 'a' has not run"
    );
    let output = "{\"why\": \"it\"}\n".to_owned();
    end_with(&mut run, "a", StepOutcome { output, ..StepOutcome::new(OK) });
    let ResolvedStep::Agent(agent) = run.resolve("b").unwrap() else { panic!() };
    assert_eq!(agent.prompt, "Fix it ({\"why\":\"it\"})");
    assert_eq!(agent.system_prompt.as_deref(), Some("me"));
    assert_eq!(agent.options.model.as_deref(), Some(evil));
    assert_eq!(agent.options.args, ["-v", "4"]);
    assert_eq!(agent.options.env, [("N".to_owned(), "4".to_owned())]);
    assert_eq!(json!(agent.options.config), json!({"deep": [{"x": "me", "n": 1}]}));
    let ResolvedStep::Operation { inputs, .. } = run.resolve("c").unwrap() else { panic!() };
    assert_eq!(json!(inputs), json!({"n": 4, "text": "n=4", "why": {"why": "it"}}));
    let fault = run.resolve("d").unwrap_err();
    assert_eq!(fault.message, "{{.env.GONE}}: environment variable GONE is not set");
    let ResolvedStep::Agent(agent) = run.resolve("e").unwrap() else { panic!() };
    assert_eq!(agent.options.api_key.as_ref().map(HiddenText::reveal), Some("me"));
    assert!(!format!("{agent:?}").contains("\"me\""));
    assert_eq!(
        run.resolve("done").unwrap_err().message,
        "a terminal state cannot be run on its own"
    );
    assert_eq!(run.resolve("x").unwrap_err().code.as_str(), "USER.WORKFLOW.UNKNOWN_STATE");
    let mut run = machine_with(&text, &[("file", "a\0b")]);
    begin(&mut run);
    assert!(run.resolve("a").unwrap_err().message.contains("NUL"));
}

#[test]
fn a_resumed_run_begins_where_the_earlier_one_stopped() {
    let text = with_states(&format!(
        "  initial: a\n{}{}{}{}",
        step("a", "on_success: both"),
        "  both: {type: parallel, parallel: [left, right], on_success: done}\n",
        step("left", "retry: {max_attempts: 1}"),
        "  right: {type: step, command: \"echo {{.states.a.Output}}\"}\n",
    ));
    let outcomes = || {
        let said = StepOutcome { output: "said before".to_owned(), ..StepOutcome::new(OK) };
        [("a".to_owned(), said)].into_iter().collect()
    };
    let from = |done: &[&str]| {
        let done = done.iter().map(|name| (*name).to_owned()).collect();
        Resumption { at: "both".to_owned(), outcomes: outcomes(), done }
    };
    let mut one = machine(&text).resumed(from(&["left"]));
    assert_eq!(begin(&mut one), ["right"]);
    let Ok(ResolvedStep::Command { command, .. }) = one.resolve("right") else { panic!() };
    assert!(command.contains("said before"), "{command}");
    assert!(end(&mut one, "right", OK)[0].starts_with("success 0 in done"));
    assert_eq!(one.take_settled(), ["right", "both"]);
    assert_eq!(one.take_settled(), Vec::<String>::new());

    let mut all = machine(&text).resumed(from(&["left", "right"]));
    assert!(begin(&mut all)[0].starts_with("success 0 in done"));
    let mut none = machine(&text).resumed(from(&[]));
    assert_eq!(begin(&mut none), ["left", "right"]);
}
