//! `countersign targets coverage`: how many recorded calls had a target, and how it was found.

use std::path::Path;

use admin::view::{AgentLosses, BasisCount, CoverageList};

use crate::cli::Format;
use crate::control::{read, with_query};
use crate::exit::Failure;
use crate::output::{self, or_dash, plain, table};
use crate::site::Site;

/// The words for records that do not say how a target was found, or why there is none.
const UNSAID: &str = "not recorded";

pub(super) async fn run(
    site: &Site,
    db: Option<&Path>,
    values: &[(&str, Option<String>)],
    (is_verbose, format): (bool, Format),
) -> Result<(), Failure> {
    let answer = read(site, db, &with_query("/api/v1/targets/coverage", values)).await?;
    output::answer(format, &answer, |list| rows(list, is_verbose)).map(|_| ())
}

fn rows(list: &CoverageList, is_verbose: bool) -> String {
    let mut rows = Vec::new();
    for server in &list.servers {
        let name = or_dash(Some(&server.server));
        rows.push(row(name.clone(), server.calls, server.with_target, &server.by_basis));
        for tool in server.tools.iter().filter(|_| is_verbose) {
            let name = format!("{name}:{}", tool.tool);
            rows.push(row(name, tool.calls, tool.with_target, &tool.by_basis));
        }
    }
    if rows.is_empty() {
        return "no calls are recorded in this period".to_owned();
    }
    let counts = table(&["server", "calls", "with target", "found by", "none because"], &rows);
    with_losses(counts, &list.losses)
}

/// Adds a line for each agent whose records do not tell all that it touched.
pub(crate) fn with_losses(text: String, losses: &[AgentLosses]) -> String {
    let lines = losses.iter().map(|one| format!("\n{}", lost(one)));
    text + &lines.collect::<String>()
}

/// Tells how many calls of an agent have not all their targets, or not their whole names.
pub(crate) fn lost(losses: &AgentLosses) -> String {
    let AgentLosses { agent, dropped, shortened } = losses;
    format!("{}: targets of {dropped} calls dropped, of {shortened} shortened", plain(agent))
}

fn row(name: String, calls: u64, with_target: u64, by_basis: &[BasisCount]) -> Vec<String> {
    let list = |has_target: bool| {
        let some = by_basis.iter().filter(|one| one.has_target == has_target);
        let words: Vec<String> = some
            .map(|one| format!("{} ({})", one.basis.as_deref().unwrap_or(UNSAID), one.calls))
            .collect();
        or_dash(Some(&words.join(", ")))
    };
    let percent = with_target * 100 / calls.max(1);
    vec![name, calls.to_string(), format!("{with_target} ({percent} %)"), list(true), list(false)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_is_a_row_and_its_tools_follow_on_request() {
        let by_basis = json!([{"basis": "keys", "has_target": true, "calls": 2},
            {"basis": "no resource in the arguments", "has_target": false, "calls": 1}]);
        let tool = json!({"tool": "x", "calls": 3, "with_target": 2, "by_basis": by_basis});
        let list = json!({"servers": [{"server": "a", "calls": 3, "with_target": 2,
            "by_basis": by_basis, "tools": [tool]}]});
        let list: CoverageList = output::read(&list).unwrap();
        let brief = rows(&list, false);
        assert_eq!(
            brief,
            "SERVER  CALLS  WITH TARGET  FOUND BY  NONE BECAUSE\n\
             a       3      2 (66 %)     keys (2)  no resource in the arguments (1)"
        );
        assert!(rows(&list, true).contains("\na:x "));
        let agent = || AgentLosses { agent: "a#1".to_owned(), dropped: 2, shortened: 1 };
        let list = CoverageList { losses: vec![agent()], ..list };
        let words = "\na#1: targets of 2 calls dropped, of 1 shortened";
        assert!(rows(&list, false).ends_with(words));
        let none = CoverageList { servers: vec![], losses: vec![] };
        assert_eq!(rows(&none, false), "no calls are recorded in this period");
    }
}
