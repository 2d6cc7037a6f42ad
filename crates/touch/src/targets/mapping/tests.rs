//! Patterns of tools, and the fit of a mapping to the tools of its server.

use super::*;

#[test]
fn patterns_match_whole_names() {
    for (pattern, tool, expected) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("*", "", true),
        ("*", "any", true),
        ("get_*", "get_", true),
        ("get_*", "forget_x", false),
        ("*issue*", "add_issue_comment", true),
        ("*a*b", "xaabb", true),
        ("*a*b", "xaabc", false),
        ("a|b*", "bc", true),
        ("a|b", "a|b", false),
        ("é*", "éa", true),
    ] {
        assert_eq!(
            ToolPattern::parse(pattern).unwrap().matches(tool),
            expected,
            "{pattern} {tool}"
        );
    }
    let stars = "*a".repeat(200);
    assert!(!ToolPattern::parse(&stars).unwrap().matches(&"a".repeat(199)));
    for invalid in ["", " ", "a|", "|a", "a | b"] {
        assert!(ToolPattern::parse(invalid).is_err(), "{invalid:?}");
    }
}

#[test]
fn rules_that_do_not_fit_the_tools_are_told() {
    let template = |text: &str| TargetTemplate::parse(text).unwrap();
    let rule = |tools: &str, text: &str| TargetRule {
        tools: ToolPattern::parse(tools).unwrap(),
        resource: RuleResource::Named(vec![template(text)]),
        reads: Vec::new(),
    };
    let mapping = TargetMapping {
        system: None,
        rules: vec![
            rule("get_isue", "{owner}"),
            rule("get_*", "{ownr}/{repo|name}"),
            rule("get_*", "{owner}/{number}"),
        ],
    };
    let tools: [FitTool<'_>; 2] =
        [("get_issue", vec!["owner", "number"]), ("get_repo", vec!["owner", "repo"])];
    let told: Vec<String> = mapping.unfit(&tools).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "targets: 'get_isue' matches no tool that the server lists; did you mean 'get_issue'?",
            "targets: the rule for 'get_*' uses 'ownr', but no tool that it matches has such an \
         argument; did you mean 'owner'?",
        ]
    );
}
