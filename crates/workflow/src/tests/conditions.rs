//! The language of `when`: conditions that hold, and conditions that do not parse.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::values::Values;

fn values() -> Values {
    let text = "name: flow\ninputs:\n- {name: env, default: prod}\n- {name: n, type: integer, default: 7}\n\
                - {name: dry, type: boolean, default: true}\n- {name: none}\n\
                states: {initial: done, done: {type: terminal}}";
    let outcome = StepOutcome {
        output: "10\n".to_owned(),
        exit_code: Some(0),
        json: Some(json!({"list": [1, "two"], "ok": true, "text": "ready"})),
        ..StepOutcome::new(Status::Success)
    };
    Values {
        id: "run-1".to_owned(),
        name: "flow".to_owned(),
        inputs: workflow(text).inputs(&[]).unwrap(),
        env: BTreeMap::from([("CI".to_owned(), "true".to_owned())]),
        outcomes: BTreeMap::from([("s".to_owned(), outcome)]),
    }
}

#[test]
fn conditions_hold_as_documented() {
    let values = values();
    let table = [
        ("true", true),
        ("not true", false),
        ("inputs.env == 'prod'", true),
        (".inputs.env == \"prod\"", true),
        ("inputs.env != 'prod'", false),
        ("inputs.n == 7", true),
        ("inputs.n == '7'", true),
        ("inputs.n < 10", true),
        ("inputs.n >= 7.5", false),
        ("-1 < inputs.n", true),
        ("states.s.Output == 10", true),
        ("states.s.Output == '10'", true),
        ("states.s.Output > 9", true),
        ("'10' > '9'", true),
        ("'a' < 'b'", true),
        ("'a' < 5", false),
        ("'a' >= 5", false),
        ("states.s.Status == 'success'", true),
        ("states.s.ExitCode == 0", true),
        ("states.s.TokensUsed == 0", true),
        ("states.s.JSON.ok", true),
        ("states.s.JSON.list contains 'two'", true),
        ("states.s.JSON.list contains 1", true),
        ("states.s.JSON.list contains 3", false),
        ("states.s.JSON contains 'text'", true),
        ("states.s.JSON.list.1 == 'two'", true),
        ("states.s.JSON.gone == ''", false),
        ("states.other.Output == ''", false),
        ("states.other.Output != ''", true),
        ("states.other.Output < 1", false),
        ("not states.other.Output", true),
        ("inputs.none == ''", false),
        ("env.CI", true),
        ("env.CI == true", true),
        ("env.GONE", false),
        ("workflow.id startsWith 'run'", true),
        ("workflow.name endsWith 'ow'", true),
        ("inputs.n startsWith '7'", true),
        ("'abc' contains 'bc'", true),
        ("inputs.dry and inputs.n == 8", false),
        ("inputs.dry or inputs.n == 8", true),
        ("true or true and false", true),
        ("(true or true) and false", false),
        ("not (inputs.n == 8) and not not inputs.dry", true),
        ("not false and false", false),
        ("'nan' == 'nan'", true),
        ("'inf' > 1", false),
    ];
    for (text, expect) in table {
        let condition = Condition::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
        assert_eq!(condition.holds(&values), expect, "{text}");
        assert_eq!(condition.as_written(), text);
    }
}

#[test]
fn invalid_conditions_are_reported_with_place_and_reason() {
    let table = [
        ("", 0, "expected a value at the end"),
        ("inputs.n ==", 11, "expected a value at the end"),
        ("inputs.n = 1", 9, "use '=='"),
        ("inputs.n == 1 && true", 14, "use 'and'"),
        ("a || b", 2, "use 'or'"),
        ("!inputs.dry", 0, "use 'not'"),
        ("{{.inputs.n}} == 1", 0, "conditions use names without braces: write inputs.x"),
        (
            "inputs.env == prod",
            14,
            "'prod': expected inputs, states, workflow or env; put text in quotes",
        ),
        ("inputs.env == 'prod", 14, "the closing quote is missing"),
        (
            "not inputs.env == 'prod'",
            4,
            "write not (a == b), with parentheses: 'not' binds more tightly",
        ),
        ("1 < inputs.n < 3", 13, "comparisons cannot be chained: join them with 'and'"),
        ("(inputs.dry", 11, "a closing parenthesis is missing"),
        ("inputs.dry)", 10, "')' without '('"),
        ("(inputs.dry) == true", 13, "a condition in parentheses cannot be compared"),
        ("inputs.dry inputs.n", 11, "expected 'and', 'or' or a comparison before 'inputs.n'"),
        ("'text'", 0, "a value alone is not a condition: compare it"),
        ("5", 0, "a value alone is not a condition: compare it"),
        ("1.2.3 == 1", 0, "'1.2.3' is not a number"),
        ("and", 0, "expected a value, found 'and'"),
        ("inputs.n == ^", 12, "unexpected character '^'"),
    ];
    for (text, at, message) in table {
        let fault = Condition::parse(text).unwrap_err();
        assert_eq!((fault.at, fault.message.as_str()), (at, message), "{text}");
    }
    let deep = format!("{}true{}", "(".repeat(10_000), ")".repeat(10_000));
    assert!(Condition::parse(&deep).unwrap_err().message.contains("longer than 4096 bytes"));
    let deep = format!("{}true{}", "(".repeat(100), ")".repeat(100));
    assert!(Condition::parse(&deep).unwrap_err().message.contains("nested deeper than 32 levels"));
    assert!(Condition::parse(&"not ".repeat(900)).unwrap_err().message.contains("deeper"));
}

#[test]
fn names_in_conditions_are_checked() {
    let check = |when: &str, expect: &str| {
        let keys = format!("type: step, command: x, transitions: [{{when: '{when}', goto: done}}]");
        let expect = format!("WORKFLOW.BAD_EXPRESSION @ states.s.transitions[0].when: {expect}");
        let (text, expect) = placed(&with_state(&keys), &expect);
        assert_eq!(errors(&text), [expect], "{when}");
    };
    check("§inputs.x == 1", "input 'x' not found");
    check("true and §states.tt.Output == 1", "state 'tt' not found");
    check("§states.s.ExitCode", "this value is never true or false: compare it with another");
}

proptest! {
    #[test]
    fn reading_a_condition_never_panics(text in any::<String>()) {
        let _ = Condition::parse(&text);
    }

    #[test]
    fn what_looks_like_a_condition_never_panics(
        text in "(inputs\\.n|states\\.s\\.Output|'a'|\"b\"|1|-|\\.| |and |or |not |==|<|\\(|\\)|contains |true|é){0,20}",
    ) {
        if let Ok(condition) = Condition::parse(&text) {
            condition.holds(&values());
        }
    }
}
