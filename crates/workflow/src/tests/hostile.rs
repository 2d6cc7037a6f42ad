//! Malicious or meaningless text is rejected promptly and without a panic.

use proptest::prelude::*;

use super::*;

fn one_error(text: &str) -> String {
    let errors = errors(text);
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].clone()
}

#[test]
fn anchors_that_explode_are_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..=30 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    let error = one_error(&text);
    assert!(
        error.ends_with("too many values; each alias counts as all the values it expands to"),
        "{error}"
    );
}

#[test]
fn deep_nesting_is_refused() {
    for (open, name) in [("[", "flow"), ("{a: ", "mapping"), ("- ", "block"), ("? ", "keys")] {
        let error = one_error(&open.repeat(10_000));
        assert!(error.starts_with("WORKFLOW.SYNTAX 1:"), "{name}: {error}");
        assert!(error.contains("nested deeper than 64 levels"), "{name}: {error}");
    }
    let mut aliased = String::from("a0: &a0 [x]\n");
    for level in 1..=100 {
        aliased.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(one_error(&aliased).contains("nested deeper than 64 levels"));
}

#[test]
fn a_huge_text_is_refused() {
    let text = format!("name: n # {}", "x".repeat(2 * 1024 * 1024));
    assert_eq!(one_error(&text), "WORKFLOW.SYNTAX 1:1 : the file is larger than 1 MiB");
}

#[test]
fn too_many_faults_are_counted_and_not_kept() {
    let keys: String = (0..20_000).map(|index| format!("k{index}: 1\n")).collect();
    let found = read(&keys, &known()).errors;
    assert_eq!(found.len(), 1_001);
    assert_eq!(found[1_000].message, "and 19002 more errors");
}

#[test]
fn too_many_states_and_branches_are_refused() {
    let states: String = (0..1_100).map(|n| format!("  s{n}: {{type: terminal}}\n")).collect();
    let text = format!("name: n\nstates:\n  initial: s0\n{states}");
    assert!(one_error(&text).contains("more than 1000 states"));
    let nested: String = (0..40)
        .map(|n| format!("  p{n}: {{type: parallel, parallel: [p{}], on_success: done}}\n", n + 1))
        .collect();
    let text = with_states(&format!("  initial: p0\n{nested}  p40: {{type: step, command: x}}"));
    assert!(errors(&text)[0].contains("parallel states are nested deeper than 16 levels"));
}

/// Each of these once took minutes, or would if a limit were missing.
#[test]
fn crowded_texts_are_read_in_good_time() {
    let values = "{{.inputs.x}} ".repeat(70_000);
    let many =
        |state: &str| with_states(&format!("  initial: s\n  s: {{{state}, on_success: done}}"));
    let leaves = format!("[{}]", "'{{.inputs.x}}', ".repeat(40_000));
    let names: String = (0..90_000).map(|index| format!("n{index}, ")).collect();
    let texts = [
        many(&format!("type: step, command: 'echo {values}'")),
        many(&format!("type: agent, provider: codex, prompt: '{values}'")),
        many(&format!(
            "type: agent, provider: codex, prompt: p, options: {{config: {{a: {leaves}}}}}"
        )),
        many(&format!("type: parallel, parallel: [{names}]")),
        many(&format!("type: step, command: x, dir: '{}'", "{{.x}}".repeat(150_000))),
        format!("inputs: [{{name: a, validation: {{enum: [{}]}}}}]", "~, ".repeat(45_000)),
    ];
    for text in texts {
        assert!(text.len() <= 1024 * 1024 + 200, "{}", text.len());
        assert_ne!(errors(&text), [""; 0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn reading_never_panics(text in any::<String>()) {
        let read = read(&text, &known());
        prop_assert_eq!(read.is_valid(), read.workflow.is_some());
    }

    #[test]
    fn reading_what_looks_like_yaml_never_panics(
        text in "([a-c]|name|states|initial|type|step|: |:|- |\n|\n  |\n    |\\[|\\]|\\{|\\}|, |\"|'|&a|\\*a|#|!|\\||>|%|\\?|\t|é|\\{\\{|\\}\\}|\\.inputs){0,40}",
    ) {
        let read = read(&text, &known());
        prop_assert_eq!(read.is_valid(), read.workflow.is_some());
    }

    #[test]
    fn a_good_workflow_with_a_piece_put_in_never_panics(at in 0_usize..600, piece in "(\\PC|\n|  |[:{}\\[\\],'\"|>&*!%#-]){0,8}") {
        let good = with_states(
            "  initial: a\n  a: {type: step, command: 'echo {{.workflow.id}}', retry: {max_attempts: 2}, \
             transitions: [{when: 'states.a.ExitCode == 1', goto: done}], on_success: p}\n  \
             p:\n    type: parallel\n    parallel: [b]\n    on_success: done\n  \
             b:\n    type: step\n    agent:\n      provider: claude\n      prompt: |\n        Do {{.states.a.Output}}\n        well\n    \
             mcp_proxy: {enable: true, mcp_servers: [github]}",
        );
        let at = good.floor_char_boundary(at.min(good.len()));
        let text = [&good[..at], &piece, &good[at..]].concat();
        let read = read(&text, &known());
        prop_assert_eq!(read.is_valid(), read.workflow.is_some());
    }
}
