//! Scores what plans make of labelled calls: `testdata/targets/README.md` explains the data.

mod judge;
mod live;

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::{CallPlace, PlannedTargets, Target, TargetPlan, ToolShape, of_builtin};
use judge::{Gold, Verdict};
use redact::Redactor;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::builtin);

#[derive(Deserialize)]
struct LabelledCall {
    #[serde(default)]
    id: String,
    server: String,
    server_info: Option<String>,
    root: Option<String>,
    tool: String,
    #[serde(default)]
    params: Map<String, Value>,
    args: Map<String, Value>,
    gold: Option<Gold>,
}

#[derive(Deserialize)]
struct LabelledPair {
    id: String,
    gold: String,
    why: String,
    needs: Option<String>,
    a: LabelledCall,
    b: LabelledCall,
}

/// Returns the targets of a call, as (system, resource).
fn targets(call: &LabelledCall) -> Vec<(String, String)> {
    let pair = |(system, resource): (&str, &str)| (system.to_owned(), resource.to_owned());
    if call.server == "builtin" {
        let target = of_builtin(&call.tool, &call.args, call.root.as_deref().unwrap_or("/"), None);
        return target.iter().map(|t| pair((t.system(), t.resource()))).collect();
    }
    let recorded = |(target, _): &(Target, _)| {
        let named = target.recordable(&REDACTOR)?;
        Some(pair((named.system(), named.resource())))
    };
    planned(call).found.iter().filter_map(recorded).collect()
}

fn planned(call: &LabelledCall) -> PlannedTargets {
    // Pairs tell no parameters: a tool has at least those that it is called with.
    let given = call.args.keys().map(|name| (name.clone(), serde_json::json!({})));
    let known =
        call.params.iter().map(|(name, kind)| (name.clone(), serde_json::json!({"type": kind})));
    let properties = given.chain(known);
    let shape = ToolShape {
        server: call.server.rsplit('@').next().unwrap_or_default(),
        info: call.server_info.as_deref(),
        tool: &call.tool,
        properties: &properties.collect(),
    };
    let place = CallPlace {
        root: call.root.as_deref(),
        home: Some("/u/ada"),
        is_local: true,
        query_key: &[7; 32],
    };
    TargetPlan::compile(&shape, None).find(&call.args, &place)
}

#[derive(Debug, Default)]
struct Score {
    emitted: usize,
    exact: usize,
    named: usize,
    hit: usize,
    leaks: usize,
    misses: Vec<String>,
}

impl Score {
    fn add(&mut self, call: &LabelledCall) {
        let Some(gold) = &call.gold else {
            return;
        };
        let found = targets(call);
        self.emitted += found.len();
        let leaks = |(_, resource): &&(String, String)| gold.leaks_into(resource);
        self.leaks += usize::from(found.iter().any(|one| leaks(&one)));
        let verdicts: Vec<Verdict> =
            found.iter().map(|(_, resource)| gold.judge(resource, &call.args)).collect();
        self.exact += verdicts.iter().filter(|v| matches!(v, Verdict::Exact(_))).count();
        let is_named = !gold.targets.is_empty();
        let hit = verdicts.contains(&Verdict::Exact(0));
        self.named += usize::from(is_named);
        self.hit += usize::from(hit);
        let wrong = verdicts.iter().any(|verdict| !matches!(verdict, Verdict::Exact(_)));
        if (is_named && !hit) || wrong {
            self.misses.push(format!("{} {:?} of {found:?}", call.id, verdicts));
        }
    }

    fn precision(&self) -> f64 {
        self.exact as f64 / self.emitted as f64
    }

    fn recall(&self) -> f64 {
        self.hit as f64 / self.named as f64
    }
}

#[test]
fn labelled_calls_get_the_resource_that_they_touch() {
    let calls: Vec<LabelledCall> =
        serde_json::from_str(include_str!("../../../testdata/targets/calls.json")).unwrap();
    let mut score = Score::default();
    for call in &calls {
        score.add(call);
    }
    let shown = format!("precision {:.3}, recall {:.3}", score.precision(), score.recall());
    println!("{shown}");
    let shown = format!("{shown}\n{}", score.misses.join("\n"));
    assert_eq!(score.leaks, 0, "{shown}");
    assert!(score.precision() >= 0.97 && score.recall() >= 0.94, "{shown}");
    let told = calls.iter().filter(|call| call.server != "builtin" && planned(call).is_partial);
    let told: Vec<&str> = told.map(|call| call.id.as_str()).collect();
    assert!(told.is_empty(), "ordinary arguments can be read: {told:?}");
}

#[test]
fn pairs_of_calls_join_where_they_touch_one_thing() {
    let pairs: Vec<LabelledPair> =
        serde_json::from_str(include_str!("../../../testdata/targets/pairs.json")).unwrap();
    for pair in pairs.iter().filter(|pair| pair.needs.as_deref() != Some("disk")) {
        let (one, other) = (targets(&pair.a), targets(&pair.b));
        let same = one.iter().any(|target| other.contains(target));
        let expected = pair.gold == "same";
        assert_eq!(same, expected, "{}: {} {one:?} {other:?}", pair.id, pair.why);
    }
}
