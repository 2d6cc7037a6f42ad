//! Measures the graph of a million touches: spread over a month, packed into one window, and on a
//! single resource that twenty agents contend for.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use touch::contention::{AgentNumber, ContainerMeetings, Contention, Question, Touch};
use touch::targets::Access;

const HOUR_US: i64 = 3_600_000_000;

/// Returns touches of one resource after another by twenty agents over `span_us`, in order.
fn touches(
    agents: &[AgentNumber],
    (count, resources): (u64, u64),
    span_us: i64,
) -> Vec<(String, Vec<Touch<u64>>)> {
    let each = count / resources;
    let step_us = span_us / i64::try_from(each).expect("small");
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut touch = |turn: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Touch {
            agent: agents[(state % 20) as usize],
            access: if state & 0x300 == 0 { Access::Write } else { Access::Read },
            at_us: i64::try_from(turn).expect("small") * step_us,
            record: turn,
        }
    };
    let name = |resource: u64| format!("/srv/project/file-{resource:06}.rs");
    (0..resources).map(|resource| (name(resource), (0..each).map(&mut touch).collect())).collect()
}

/// Returns an empty history and the numbers of twenty agents in it.
fn begin() -> (Contention<u64>, Vec<AgentNumber>) {
    let mut contention = Contention::new(Question {
        window_us: HOUR_US,
        kind: None,
        edge: None,
        nesting: ContainerMeetings::Ignored,
    });
    let agents = (0..20).map(|n| contention.agent(&format!("claude-code/session-{n}"))).collect();
    (contention, agents)
}

fn contention(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("contention");
    group.sample_size(10);
    for (name, count, resources, span_us) in [
        ("1M touches over 30 days", 1_000_000, 10_000, 30 * 24 * HOUR_US),
        ("1M touches in one window", 1_000_000, 10_000, HOUR_US),
        ("100k touches of one resource", 100_000, 1, HOUR_US),
    ] {
        let touches = touches(&begin().1, (count, resources), span_us);
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || begin().0,
                |mut contention| {
                    for (resource, touches) in &touches {
                        contention.turn_to("filesystem", resource);
                        touches.iter().for_each(|touch| contention.push(black_box(*touch)));
                    }
                    contention.finish().edges.len()
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, contention);
criterion_main!(benches);
