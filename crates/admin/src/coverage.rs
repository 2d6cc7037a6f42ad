//! `GET /targets/coverage`: how many calls of each server had a target, and how it was found.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use store::read::{CoverageFilter, Reader, TargetCoverage, TargetLosses};
use utoipa::IntoParams;

use crate::Admin;
use crate::answer::{Query, Refused};
use crate::ledger::SpanQuery;
use crate::view::{AgentLosses, BasisCount, CoverageList, ServerCoverage, ToolCoverage};

#[derive(Deserialize, IntoParams)]
pub(crate) struct CoverageQuery {
    /// Calls of this server.
    server: Option<String>,
}

pub(crate) async fn show(
    State(admin): State<Admin>,
    Query(query): Query<CoverageQuery>,
    Query(span): Query<SpanQuery>,
) -> Result<Json<CoverageList>, Refused> {
    let filter = CoverageFilter { server: query.server, start: span.start()?, end: span.end()? };
    let question = move |reader: &Reader| {
        Ok((reader.target_coverage(&filter)?, reader.target_losses(&filter)?))
    };
    let (counted, losses) = admin.ask(question).await?;
    Ok(Json(of(&counted, losses)))
}

/// Sums counts by server, and by tool within each.
fn of(counted: &[TargetCoverage], losses: Vec<TargetLosses>) -> CoverageList {
    let mut servers: BTreeMap<&str, BTreeMap<&str, Vec<&TargetCoverage>>> = BTreeMap::new();
    for one in counted {
        servers.entry(&one.server).or_default().entry(&one.tool).or_default().push(one);
    }
    let servers = servers.into_iter().map(|(server, tools)| {
        let all: Vec<&TargetCoverage> = tools.values().flatten().copied().collect();
        let tools = tools.into_iter().map(|(tool, counted)| {
            let Sum { calls, with_target, by_basis } = Sum::of(&counted);
            ToolCoverage { tool: tool.to_owned(), calls, with_target, by_basis }
        });
        let Sum { calls, with_target, by_basis } = Sum::of(&all);
        let server = server.to_owned();
        ServerCoverage { server, calls, with_target, by_basis, tools: tools.collect() }
    });
    let losses = losses.into_iter().map(AgentLosses::from).collect();
    CoverageList { servers: servers.collect(), losses }
}

struct Sum {
    calls: u64,
    with_target: u64,
    by_basis: Vec<BasisCount>,
}

impl Sum {
    fn of(counted: &[&TargetCoverage]) -> Sum {
        let mut sum = Sum { calls: 0, with_target: 0, by_basis: Vec::new() };
        for TargetCoverage { basis, has_target, calls, .. } in counted {
            sum.calls += calls;
            sum.with_target += if *has_target { *calls } else { 0 };
            let is_same =
                |known: &&mut BasisCount| (&known.basis, known.has_target) == (basis, *has_target);
            match sum.by_basis.iter_mut().find(is_same) {
                Some(known) => known.calls += calls,
                None => {
                    let (basis, has_target, calls) = (basis.clone(), *has_target, *calls);
                    sum.by_basis.push(BasisCount { basis, has_target, calls });
                }
            }
        }
        sum.by_basis.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.basis.cmp(&b.basis)));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_by_server_and_by_tool() {
        let row =
            |server: &str, tool: &str, basis: Option<&str>, has_target, calls| TargetCoverage {
                server: server.to_owned(),
                tool: tool.to_owned(),
                basis: basis.map(str::to_owned),
                has_target,
                calls,
            };
        let losses = TargetLosses { agent: "a#1".to_owned(), dropped: 2, shortened: 1 };
        let counted = [
            row("a", "x", Some("keys"), true, 2),
            row("a", "x", Some("no resource in the arguments"), false, 5),
            row("a", "y", Some("keys"), true, 1),
            row("b", "z", None, true, 4),
        ];
        let list = of(&counted, vec![losses]);
        assert_eq!((list.losses[0].agent.as_str(), list.losses[0].dropped), ("a#1", 2));
        let [a, b] = &list.servers[..] else { panic!() };
        assert_eq!((a.server.as_str(), a.calls, a.with_target, a.tools.len()), ("a", 8, 3, 2));
        let by_basis: Vec<_> = a.by_basis.iter().map(|one| (one.calls, one.has_target)).collect();
        assert_eq!(by_basis, [(5, false), (3, true)]);
        assert_eq!((a.tools[0].calls, a.tools[0].with_target), (7, 2));
        assert_eq!((b.calls, b.with_target, b.by_basis[0].basis.as_deref()), (4, 4, None));
    }
}
