//! The price of a call in instructions, divided among the parts of the gate.
//!
//! A part is found in two steps. First, each thread gets a role by the function, of those in `ROLES`,
//! under which it spends most: the threads of the signer, the writer and the log are one part each.
//! Second, on a thread that serves connections, the path of each cost is walked from the function outward, and the first
//! frame that begins with one of the `ANCHORS` names the part; so `memcpy` under `store::` under
//! `gateway::pipeline::` belongs to the record. A path without such a frame is the front: the
//! runtime, hyper, sessions. Every other thread is the rest. Each cost is counted in exactly one
//! part, so the parts add up to everything that the program executed.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;

use crate::callgrind::{PathCost, ThreadCosts};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PricePart {
    /// The connection, HTTP, guards, session and envelope.
    Front,
    /// Snapshot, verdict and the names of resources.
    Pipeline,
    /// Everything about the record that the caller waits for, with the text of its log line.
    Record,
    /// The connection to the server, the request and its answer.
    Forward,
    Signer,
    Writer,
    Log,
    /// The other threads.
    Rest,
}

impl PricePart {
    pub const ALL: [PricePart; 8] = [
        PricePart::Front,
        PricePart::Pipeline,
        PricePart::Record,
        PricePart::Forward,
        PricePart::Signer,
        PricePart::Writer,
        PricePart::Log,
        PricePart::Rest,
    ];

    pub fn name(self) -> &'static str {
        match self {
            PricePart::Front => "front",
            PricePart::Pipeline => "pipeline",
            PricePart::Record => "record",
            PricePart::Forward => "forward",
            PricePart::Signer => "signer thread",
            PricePart::Writer => "writer thread",
            PricePart::Log => "log thread",
            PricePart::Rest => "rest",
        }
    }

    /// The most instructions that it should take.
    pub fn goal(self) -> Option<u64> {
        match self {
            PricePart::Front => Some(35_000),
            PricePart::Pipeline => Some(15_000),
            PricePart::Record => Some(50_000),
            PricePart::Forward => Some(30_000),
            PricePart::Signer => Some(125_000),
            PricePart::Writer => Some(45_000),
            PricePart::Log | PricePart::Rest => None,
        }
    }
}

/// The goal of all parts together.
pub const SUM_GOAL: u64 = 300_000;

/// The part that a frame's code belongs to, on a thread that serves connections.
const ANCHORS: [(&str, PricePart); 17] = [
    ("gateway::pipeline::record::", PricePart::Record),
    ("gateway::pipeline::statement::", PricePart::Record),
    ("gateway::payload::", PricePart::Record),
    ("store::", PricePart::Record),
    ("receipt::", PricePart::Record),
    ("redact::", PricePart::Record),
    ("gateway::pipeline::forward::", PricePart::Forward),
    ("gateway::upstream::", PricePart::Forward),
    ("mcp::http::client::", PricePart::Forward),
    ("mcp::http::dial::", PricePart::Forward),
    ("mcp::http::outbound::", PricePart::Forward),
    ("mcp::http::pool::", PricePart::Forward),
    ("domain::policy::", PricePart::Pipeline),
    ("gateway::links::", PricePart::Pipeline),
    ("gateway::pipeline::", PricePart::Pipeline),
    ("touch::", PricePart::Pipeline),
    ("gateway::front::", PricePart::Front),
];

/// Code that shows which part a whole thread is; `Front` marks a thread that serves connections.
const ROLES: [(&str, PricePart); 5] = [
    ("gateway::pipeline::", PricePart::Front),
    ("store::write::signer::", PricePart::Signer),
    ("receipt::key::SigningKey::sign", PricePart::Signer),
    ("store::write::writer::", PricePart::Writer),
    ("countersign::logging::writer::Shared::write_lines", PricePart::Log),
];

/// A thread that spends less than one part in this many under such code has no role: many threads
/// pass through it once.
const ROLE_SHARE: u64 = 10;

/// The costs of a run.
#[derive(Default)]
pub struct RunCosts {
    parts: HashMap<PricePart, u64>,
    functions: HashMap<(PricePart, Arc<str>), u64>,
}

impl RunCosts {
    /// Divides what each thread executed.
    pub fn divide(threads: &[ThreadCosts]) -> RunCosts {
        let mut run = RunCosts::default();
        for thread in threads {
            let role = role(thread);
            for path in &thread.paths {
                let part = match role {
                    PricePart::Front => part(path),
                    whole => whole,
                };
                *run.parts.entry(part).or_default() += path.cost;
                if let Some(function) = path.frames.first() {
                    *run.functions.entry((part, function.clone())).or_default() += path.cost;
                }
            }
        }
        run
    }

    /// Names the parts that no code was found for: their anchors no longer fit the program.
    pub fn missing(&self) -> Vec<&'static str> {
        let is_missing = |part: &PricePart| *part != PricePart::Rest && self.cost(*part) == 0;
        PricePart::ALL.into_iter().filter(is_missing).map(PricePart::name).collect()
    }

    fn cost(&self, part: PricePart) -> u64 {
        self.parts.get(&part).copied().unwrap_or_default()
    }
}

/// The price of one call: what a longer run cost more than a shorter one, by its additional calls.
pub struct Price {
    few: RunCosts,
    many: RunCosts,
    calls: u64,
}

impl Price {
    pub fn between(few: RunCosts, many: RunCosts, calls: u64) -> Price {
        Price { few, many, calls }
    }

    /// Returns the instructions of a part. A part without any work per call can have cost less in
    /// the longer run; it counts as nothing.
    pub fn of(&self, part: PricePart) -> u64 {
        self.many.cost(part).saturating_sub(self.few.cost(part)) / self.calls
    }

    pub fn sum(&self) -> u64 {
        PricePart::ALL.into_iter().map(|part| self.of(part)).sum()
    }

    /// Returns the figures by name, `sum` among them.
    pub fn figures(&self) -> BTreeMap<String, u64> {
        let parts = PricePart::ALL.into_iter().map(|part| (part.name().to_owned(), self.of(part)));
        parts.chain([("sum".to_owned(), self.sum())]).collect()
    }

    /// Returns the functions of a part that cost most by themselves, with their instructions in one
    /// call.
    pub fn top_functions(&self, part: PricePart, count: usize) -> Vec<(Arc<str>, u64)> {
        let of_part = self.many.functions.iter().filter(|((of, _), _)| *of == part);
        let mut costs: Vec<(Arc<str>, u64)> = of_part
            .map(|(key, cost)| {
                let before = self.few.functions.get(key).copied().unwrap_or_default();
                (key.1.clone(), cost.saturating_sub(before) / self.calls)
            })
            .collect();
        costs.sort_by(|(name, cost), (other_name, other)| {
            other.cmp(cost).then_with(|| name.cmp(other_name))
        });
        costs.truncate(count);
        costs
    }
}

fn role(thread: &ThreadCosts) -> PricePart {
    let cost_under = |prefix: &str| -> u64 {
        let is_under = |path: &&PathCost| path.frames.iter().any(|frame| is_in(frame, prefix));
        thread.paths.iter().filter(is_under).map(|path| path.cost).sum()
    };
    let costs = ROLES.map(|(prefix, part)| (cost_under(prefix), part));
    let most = costs.into_iter().max_by_key(|(cost, _)| *cost);
    let is_role = |(cost, _): &(u64, PricePart)| *cost > thread.total / ROLE_SHARE;
    most.filter(is_role).map_or(PricePart::Rest, |(_, part)| part)
}

fn part(path: &PathCost) -> PricePart {
    let anchored = |frame: &Arc<str>| ANCHORS.into_iter().find(|(prefix, _)| is_in(frame, prefix));
    path.frames.iter().find_map(anchored).map_or(PricePart::Front, |(_, part)| part)
}

/// Reports whether a function is in a module. An implementation of a trait, `<module::Type as …>`,
/// is in the module of its type.
fn is_in(frame: &str, prefix: &str) -> bool {
    frame.trim_start_matches(['<', '&']).starts_with(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(paths: &[(&[&str], u64)]) -> ThreadCosts {
        let path = |(frames, cost): &(&[&str], u64)| PathCost {
            frames: frames.iter().map(|frame| Arc::from(*frame)).collect(),
            cost: *cost,
        };
        let paths: Vec<PathCost> = paths.iter().map(path).collect();
        ThreadCosts { total: paths.iter().map(|path| path.cost).sum(), paths }
    }

    fn run(calls: u64) -> [ThreadCosts; 5] {
        let make = "gateway::pipeline::<impl gateway::Gateway>::make::{{closure}}";
        let end = "gateway::pipeline::record::Record::end::{{closure}}";
        let call = "<gateway::upstream::Upstream as provider::ToolProvider>::call::{{closure}}";
        [
            thread(&[
                (&["memcpy", "hyper::proto::dispatch", "start"], 1_000 * calls),
                (&["memcpy", make, "hyper::proto::dispatch", "start"], 200 * calls),
                (&["memcpy", "store::append", end, make, "start"], 30 * calls),
                (&["hyper::client", call, make, "start"], 4 * calls),
                (&["start"], 99),
            ]),
            thread(&[(&["sign", "store::write::signer::Signer::spawn::{{closure}}"], 70 * calls)]),
            thread(&[
                (&["receipt::canonical::write", "store::write::writer::run"], 59 * calls),
                (
                    &["send", "store::write::signer::Signer::sign", "store::write::writer::run"],
                    calls,
                ),
            ]),
            thread(&[(&["countersign::logging::writer::Shared::write_lines"], 50 * calls)]),
            thread(&[
                (&["store::read::query", "start"], 12_345 - calls),
                (&["gateway::pipeline::intake", "start"], 12),
            ]),
        ]
    }

    #[test]
    fn a_cost_belongs_to_the_innermost_anchor_and_the_parts_add_up() {
        let (few, many) = (RunCosts::divide(&run(100)), RunCosts::divide(&run(700)));
        assert_eq!(few.missing(), [""; 0]);
        let total: u64 = run(700).iter().map(|thread| thread.total).sum();
        assert_eq!(many.parts.values().sum::<u64>(), total);
        let price = Price::between(few, many, 600);
        let parts: Vec<u64> = PricePart::ALL.into_iter().map(|part| price.of(part)).collect();
        assert_eq!(parts, [1_000, 200, 30, 4, 70, 60, 50, 0]);
        assert_eq!(price.sum(), 1_414);
        assert_eq!(price.figures()["sum"], 1_414);
        assert_eq!(price.top_functions(PricePart::Front, 1), [(Arc::from("memcpy"), 1_000)]);
    }

    #[test]
    fn a_part_without_code_is_named() {
        let run = RunCosts::divide(&run(1)[..2]);
        assert_eq!(run.missing(), ["writer thread", "log thread"]);
    }
}
