//! Measures the lock classifier alone, along each path to its result, with a hundred names in the
//! lists.

use std::collections::BTreeSet;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use domain::config::ToolRules;
use domain::policy::{ApprovalState, ServerRules, lock};

const NAMES: usize = 100;

fn names(prefix: &str) -> BTreeSet<String> {
    (0..NAMES).map(|number| format!("{prefix}_{number}")).collect()
}

fn locks(c: &mut Criterion) {
    let rules = ServerRules {
        tools: ToolRules::Except(names("never")),
        switched_off: names("off"),
        ..ServerRules::default()
    };
    let quarantined = ServerRules { quarantined: true, ..rules.clone() };
    for (name, rules, tool, approval) in [
        ("lock/callable", &rules, "create_issue", ApprovalState::Approved),
        ("lock/pending", &rules, "create_issue", ApprovalState::Pending),
        ("lock/by_config", &rules, "never_50", ApprovalState::Approved),
        ("lock/by_user", &rules, "off_50", ApprovalState::Approved),
        ("lock/quarantined", &quarantined, "create_issue", ApprovalState::Pending),
    ] {
        c.bench_function(name, |bencher| {
            bencher.iter(|| lock(black_box(rules), black_box(tool), black_box(approval)));
        });
    }
}

criterion_group!(benches, locks);
criterion_main!(benches);
